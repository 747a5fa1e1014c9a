//! What a culprit did to a victim, in the terms of each mechanism.

use super::clause::Clause;
use super::{activity, length, thread};
use crate::report::{Actor, ActorKind, Part, Thing};

/// The parts of a clause that several mechanisms share.
struct Scene<'p> {
    part: &'p Part,
    victim: &'p str,
    /// Name of the culprit.
    name: String,
    /// The same with what it was doing: `dd[99] (in write(/var/log/app.log))`.
    culprit: String,
    is_own: bool,
}

const WAITED: (&str, &str) = ("waited", "waiting");
const WAS: (&str, &str) = ("was", "being");
const HELD: (&str, &str) = ("held", "holding");

/// What the culprit of a part did to the thread `victim`.
pub(crate) fn clause(part: &Part, victim: &str) -> Clause {
    let is_own = part.culprit.kind == ActorKind::Own;
    let name = culprit(&part.culprit, victim);
    let scene = Scene {
        part,
        victim,
        culprit: match doing(part) {
            Some(doing) if !is_own => format!("{name} ({doing})"),
            _ => name.clone(),
        },
        name,
        is_own,
    };
    let root = part.root.as_str();
    match part.mechanism.as_str() {
        mechanism if root == "dns_lookup" && mechanism != "dns_lookup" => scene.dns_of_another(),
        "sync_storm" | "block_queue" | "block_service" | "block_held" | "device_held"
        | "writeback_wait" | "journal_wait" => scene.storage(),
        "lock_inode" | "lock_kernel" | "lock_program" | "lock_futex" | "lock_file" => scene.lock(),
        "cpu_runqueue" | "cpu_idle_delay" | "cpu_throttled" | "cpu_stalled" | "cpu_running"
        | "irq_stolen" | "timer_sleep" | "polling" => scene.cpu(),
        "dns_lookup" | "network_remote" | "send_buffer" => scene.network(),
        _ if root == "network_retransmit" => scene.network(),
        "send_delayed" | "local_ipc" | "pipe_wait" => scene.peer(),
        "reclaim" | "memory_throttle" | "dirty_throttle" | "swap_in" => scene.memory(),
        _ => scene.other(),
    }
}

/// What the culprit was doing: `in write(/var/log/app.log)`, `serving a request of report[30]`.
fn doing(part: &Part) -> Option<String> {
    let call = part
        .activity
        .as_ref()
        .map(|call| format!("in {}", activity(call)));
    let client = part
        .client
        .as_ref()
        .map(|client| format!("serving a request of {}", thread(client)));
    match (client, call) {
        (Some(client), Some(call)) => Some(format!("{client}, {call}")),
        (client, call) => client.or(call),
    }
}

/// The same where the victim waited for `direct`, which the culprit held up.
pub(super) fn through(part: &Part, victim: &str, direct: &Actor) -> Clause {
    let first = Part {
        culprit: direct.clone(),
        activity: None,
        client: None,
        ..part.clone()
    };
    let call = doing(part).map_or_else(String::new, |doing| format!(", {doing}"));
    clause(&first, victim).and(&format!(
        " ({} was held up by {}{call})",
        culprit(direct, victim),
        culprit(&part.culprit, victim)
    ))
}

fn culprit(actor: &Actor, victim: &str) -> String {
    match actor.kind {
        ActorKind::Own => victim.to_owned(),
        ActorKind::Process | ActorKind::Kernel => thread(actor),
        ActorKind::Device => format!("device {}", actor.name),
        ActorKind::Interrupt => format!("interrupts ({})", actor.name),
        ActorKind::Unknown => "an unidentified thread".into(),
        ActorKind::Peer | ActorKind::Timer | ActorKind::Cgroup | ActorKind::Cpu => {
            actor.name.clone()
        }
    }
}

impl Scene<'_> {
    fn object(&self) -> Option<&Thing> {
        self.part.object.as_ref()
    }

    /// The name of the object if it is of that kind: the object of a part is that of the last
    /// link of its chain, which may be a CPU where the wait was for a lock.
    fn object_of(&self, kind: &str) -> Option<&str> {
        let thing = self
            .object()
            .filter(|thing| thing.kind == kind && !thing.name.is_empty());
        thing.map(|thing| thing.name.as_str())
    }

    /// ` on sda`, ` to sda`.
    fn device(&self, preposition: &str) -> String {
        match self.object() {
            Some(thing) if thing.kind == "device" => format!(" {preposition} {}", thing.name),
            _ => String::new(),
        }
    }

    fn waited(&self, rest: impl Into<String>) -> Clause {
        Clause::new(self.victim, WAITED, rest)
    }

    fn storage(&self) -> Clause {
        let (victim, culprit) = (self.victim, &self.culprit);
        let device = self.object_of("device").unwrap_or("the device");
        match self.part.mechanism.as_str() {
            "sync_storm" => {
                let call = self.part.activity.as_ref();
                let call = call.map_or_else(String::new, |call| format!(" ({})", activity(call)));
                let rest = format!("dirty pages{}{call}", self.device("to"));
                Clause::new(&self.name, ("flushed", "flushing"), rest)
            }
            "block_queue" if self.is_own => {
                self.waited(format!("behind its own requests{}", self.device("on")))
            }
            "block_queue" if self.part.culprit.kind == ActorKind::Device => self.waited(format!(
                "behind requests of unidentified threads{}",
                self.device("on")
            )),
            "block_queue" => {
                let on = self.device("on");
                self.waited(format!("behind requests of {culprit}{on}"))
            }
            "block_service" if self.is_own => Clause::new(
                device,
                ("took", "taking"),
                format!("that long to complete requests of {victim}"),
            ),
            "block_service" if self.part.culprit.kind == ActorKind::Device => Clause::new(
                device,
                ("took", "taking"),
                format!(
                    "much longer to complete a request of {victim} than it takes for similar requests"
                ),
            ),
            "block_service" => {
                let rest = format!("data that {culprit} was writing{}", self.device("to"));
                Clause::new(victim, ("needed", "needing"), rest)
            }
            "block_held" => Clause::new(
                format!("I/O of {victim} to {device}"),
                WAS,
                "throttled before the block layer (cgroup I/O limit or tag exhaustion)",
            ),
            "device_held" => Clause::new(
                device,
                HELD,
                format!("a request of {victim} while no device below was serving it"),
            ),
            "writeback_wait" if self.is_own => self.waited(format!(
                "for writeback of its own pages{}",
                self.device("to")
            )),
            "writeback_wait" => {
                let to = self.device("to");
                self.waited(format!("for {culprit} to write back dirty pages{to}"))
            }
            _ if self.is_own => self.waited("for a commit of the file system journal"),
            _ => Clause::new(culprit, ("kept", "keeping"), "the file system journal busy"),
        }
    }

    fn lock(&self) -> Clause {
        let victim = self.victim;
        let what = match (self.part.mechanism.as_str(), self.object_of("lock")) {
            ("lock_inode", _) => "the inode lock of the file".to_owned(),
            ("lock_kernel", Some(lock)) => format!("kernel lock {lock}"),
            ("lock_kernel", None) => format!("the kernel lock that {victim} waited for"),
            ("lock_program", Some(lock)) => format!("the lock {lock}"),
            ("lock_file", _) => {
                let file = self.object_of("file").unwrap_or("the file");
                format!("the lock on {file} that {victim} waited for")
            }
            _ => format!("the lock that {victim} waited for"),
        };
        Clause::new(&self.culprit, HELD, what)
    }

    fn cpu(&self) -> Clause {
        let (victim, culprit) = (self.victim, &self.culprit);
        match self.part.mechanism.as_str() {
            "cpu_runqueue" if self.object_of("children").is_some() => Clause::new(
                format!(
                    "{} of {}",
                    self.object_of("children").unwrap_or(""),
                    self.name
                ),
                ("were running", "running"),
                format!("on the CPU that {victim} was queued for"),
            ),
            "cpu_stalled" => Clause::new(
                &self.name,
                ("stood still", "standing still"),
                "(no timer tick: hypervisor steal, an SMI, or interrupts off)",
            ),
            "cpu_runqueue" => Clause::new(
                culprit,
                ("was running", "running"),
                format!("on the CPU that {victim} was queued for"),
            ),
            "cpu_idle_delay" => Clause::new(victim, WAS, "runnable while its CPU was still idle"),
            "cpu_throttled" => Clause::new(
                format!("the cgroup of {}", self.name),
                ("had used up", "having used up"),
                "its CPU quota",
            ),
            "cpu_running" => Clause::new(culprit, WAS, "on CPU"),
            "irq_stolen" => Clause::new(
                culprit,
                ("ran", "running"),
                format!("on the CPU of {victim}"),
            ),
            "polling" => {
                let what = match (self.object_of("file"), self.object_of("function")) {
                    (Some(file), _) => format!("for {file} "),
                    (None, Some(call)) => format!("with {call} "),
                    (None, None) => String::new(),
                };
                let rest = format!("{what}between sleeps");
                if !self.is_own && self.part.mechanism == "polling" {
                    return Clause::new(
                        culprit,
                        ("kept", "keeping"),
                        format!("{victim} polling {rest}"),
                    );
                }
                Clause::new(culprit, ("polled", "polling"), rest)
            }
            _ => Clause::new(
                culprit,
                ("slept", "sleeping"),
                format!("by its own timer{}", self.timer()),
            ),
        }
    }

    /// ` (nanosleep 40 ms)`: the call that set the timer, where it is known.
    fn timer(&self) -> String {
        let is_single = self.part.pieces == 1;
        match self.object() {
            Some(thing) if thing.kind == "function" && is_single => {
                format!(" ({} {})", thing.name, length(self.part.dur_ns))
            }
            Some(thing) if thing.kind == "function" => format!(" ({})", thing.name),
            Some(thing) => format!(" (timeout while waiting for {})", thing.name),
            None => String::new(),
        }
    }

    fn dns_of_another(&self) -> Clause {
        let server = match self.object_of("peer") {
            Some(server) => format!("name server {server}"),
            None => "its name server".to_owned(),
        };
        Clause::new(
            format!("{}, which {} waited for,", self.name, self.victim),
            ("got", "getting"),
            format!("no reply from {server}"),
        )
    }

    fn network(&self) -> Clause {
        let named = match self.part.culprit.kind {
            ActorKind::Peer => self.part.culprit.name.as_str(),
            _ => "the other host",
        };
        let peer = self.object().map_or(named, |thing| thing.name.as_str());
        match self.part.mechanism.as_str() {
            "dns_lookup" => {
                let server = match self.object() {
                    Some(server) => format!("name server {}", server.name),
                    None => "the resolver".to_owned(),
                };
                Clause::new(server, ("did not reply", "not replying"), "")
            }
            "network_remote" if self.object().is_some_and(|thing| thing.kind == "way") => {
                Clause::new("the request", WAS, format!("in transit {peer}"))
            }
            "network_remote" => self.waited(format!("for a reply from {peer}")),
            "send_buffer" => Clause::new(
                peer,
                ("did not read", "not reading"),
                format!("or acknowledge data that {} sent", self.victim),
            ),
            _ => Clause::new(
                format!("packets to or from {peer}"),
                ("were", "being"),
                "lost and retransmitted",
            ),
        }
    }

    fn peer(&self) -> Clause {
        let (victim, culprit) = (self.victim, &self.culprit);
        let is_delayed = self.part.root == "send_delayed";
        match self.part.mechanism.as_str() {
            "send_delayed" if self.is_own => {
                let peer = self.object_of("peer").unwrap_or("its peer");
                delayed(&format!("data that {victim} had sent to {peer}"))
            }
            "send_delayed" => delayed(&format!("data that {} had sent", self.name)),
            _ if is_delayed => {
                let peer = self.object_of("peer").unwrap_or("its peer");
                delayed(&format!(
                    "data sent to {peer} until an acknowledgement arrived"
                ))
            }
            _ if self.is_own => self.waited("for its peer, and its peer for it"),
            _ => self.waited(format!("for {culprit} to reply")),
        }
    }

    fn memory(&self) -> Clause {
        let (victim, culprit) = (self.victim, &self.culprit);
        let device = match self.device("to") {
            none if none.is_empty() => " to disk".to_owned(),
            device => device,
        };
        let throttled = format!("which throttled {victim} in balance_dirty_pages()");
        match self.part.mechanism.as_str() {
            "reclaim" if !self.is_own => Clause::new(
                culprit,
                ("used", "using"),
                format!("memory that {victim} had to reclaim"),
            ),
            "memory_throttle" if !self.is_own => Clause::new(
                culprit,
                ("used", "using"),
                format!("up memory, which throttled {victim}"),
            ),
            "reclaim" => Clause::new(victim, WAS, "in direct memory reclaim"),
            "memory_throttle" => Clause::new(
                victim,
                WAS,
                "throttled because memory was short (reclaim or memory.high)",
            ),
            "dirty_throttle" if self.part.culprit.kind == ActorKind::Process => Clause::new(
                culprit,
                ("dirtied", "dirtying"),
                format!("pages faster than they were written back{device}, {throttled}"),
            ),
            "dirty_throttle" => Clause::new(
                "pages",
                ("were", "being"),
                format!("dirtied faster than they were written back{device}, {throttled}"),
            ),
            _ => self.waited(format!(
                "for a page to be swapped in{}",
                self.device("from")
            )),
        }
    }

    fn other(&self) -> Clause {
        let (victim, culprit) = (self.victim, &self.culprit);
        match self.part.mechanism.as_str() {
            "unseen_wait" => Clause::new(
                victim,
                WAS,
                format!(
                    "blocked in the kernel, in {}",
                    self.object_of("function").unwrap_or("a system call")
                ),
            ),
            "frozen" => Clause::new(
                culprit,
                ("froze", "freezing"),
                format!("the cgroup of {victim}"),
            ),
            "fs_frozen" => Clause::new(
                culprit,
                ("froze", "freezing"),
                format!("the file system {victim} was writing to"),
            ),
            "runtime_pause" => Clause::new(
                culprit,
                ("paused", "pausing"),
                "the threads of the program (garbage collection or a safepoint)",
            ),
            "fuse_wait" => self.waited(format!("for {culprit} to reply (FUSE)")),
            "child_wait" => self.waited(format!("for its child {culprit} to exit")),
            "signal_stop" => {
                let rest = match self.object_of("function") {
                    Some(signal) => format!("{victim} ({signal})"),
                    None => format!("{victim} with a signal"),
                };
                Clause::new(culprit, ("stopped", "stopping"), rest)
            }
            "producer_idle" => Clause::new(
                culprit,
                ("had not started", "not having started"),
                format!("the work that {victim} waited for"),
            ),
            "kernel_wait" => {
                let function = self.object_of("function").unwrap_or("the kernel");
                self.waited(format!("in {function} for {culprit}"))
            }
            "device_irq" => {
                let name = match self.part.culprit.kind {
                    ActorKind::Interrupt => format!(" ({})", self.part.culprit.name),
                    _ => String::new(),
                };
                self.waited(format!("for a device interrupt{name}"))
            }
            "woken_by" => self.waited(format!("for {culprit} to wake it")),
            "io_wait" => self.waited("for its own I/O"),
            "still_blocked" => {
                Clause::unexplained(victim, WAS, "still blocked when the recording ended")
            }
            "lost" => Clause::unexplained("events of that time", ("were", "being"), "lost"),
            _ => Clause::unexplained("no recorded event", ("shows", "showing"), "the cause"),
        }
    }
}

fn delayed(what: &str) -> Clause {
    let why = "Nagle's algorithm or a full window";
    Clause::new(
        "the kernel",
        ("delayed", "delaying"),
        format!("{what} ({why})"),
    )
}
