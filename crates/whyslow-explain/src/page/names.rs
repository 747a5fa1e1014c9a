//! Names of threads with their processes and ids, as sentences print them.

use rustc_hash::FxHashMap;
use whyslow_model::row::Row;
use whyslow_model::tables::{ProcessRow, ThreadRow};
use whyslow_store::Tables;

use crate::report::{Activity, Actor, ActorKind};
use crate::window_slice::columns::{Result, rows};

/// Longer names of files, locks and functions are shortened in sentences.
const NAME_MAX: usize = 48;
/// Longer command lines are cut.
const COMMAND_MAX: usize = 60;

/// Programs that only start others: what started them is named, too.
const LAUNCHERS: [&str; 13] = [
    "bash", "chrt", "dash", "env", "ionice", "nice", "setsid", "sh", "su", "sudo", "time",
    "timeout", "xargs",
];
/// Programs of a chain of launchers that are named.
const ANCESTORS: usize = 3;

#[derive(Debug, Clone, Default)]
struct Process {
    pid: i32,
    comm: String,
    command_line: String,
    /// Systemd unit, or container.
    unit: Option<String>,
    /// Recording-unique id of its parent.
    parent: Option<i32>,
    /// It started during the recording.
    is_new: bool,
}

/// Names of the explained recording by kernel id. Where an id was reused, the last name counts.
#[derive(Debug, Default)]
pub(super) struct Names {
    processes: FxHashMap<i32, Process>,
    /// By recording-unique id: parents.
    all: FxHashMap<i32, Process>,
    /// By pid and tid.
    threads: FxHashMap<(i32, i32), String>,
}

impl Names {
    pub(super) fn read(tables: &dyn Tables) -> Result<Self> {
        let mut names = Self::default();
        let ints = ["pid", "upid", "parent_upid", "ts_start"];
        let texts = ["comm", "command_line", "cgroup", "container"];
        let columns = (&ints[..], &texts[..]);
        rows(tables, ProcessRow::TABLE, columns, None, |cells, row| {
            let (Some(pid), Some(upid)) = (cells.small(0, row), cells.small(1, row)) else {
                return;
            };
            let process = Process {
                pid,
                comm: cells.text(0, row).to_owned(),
                command_line: cells.text(1, row).to_owned(),
                unit: unit(cells.text(2, row), cells.text(3, row)),
                parent: cells.small(2, row),
                is_new: cells.int(3, row).is_some(),
            };
            names.all.insert(upid, process.clone());
            names.processes.insert(pid, process);
        })?;
        let columns = (&["pid", "tid"][..], &["comm", "runtime_name"][..]);
        rows(tables, ThreadRow::TABLE, columns, None, |cells, row| {
            let (comm, full) = (cells.text(0, row), cells.text(1, row));
            // The kernel keeps the first 15 bytes of the name that a runtime gives.
            let name = if full.starts_with(comm) { full } else { comm };
            if let (Some(pid), Some(tid), false) =
                (cells.small(0, row), cells.small(1, row), name.is_empty())
            {
                names.threads.insert((pid, tid), name.to_owned());
            }
        })?;
        Ok(names)
    }

    fn process(&self, pid: i32) -> Option<&Process> {
        self.processes.get(&pid)
    }

    /// The name of the thread itself, of the device or of the host.
    pub(super) fn label<'n>(&'n self, actor: &'n Actor) -> &'n str {
        if actor.host.is_some() || actor.name.len() > 15 {
            return &actor.name;
        }
        // A process is named by the thread that acted.
        match (actor.kind, actor.pid, actor.tid) {
            (ActorKind::Process | ActorKind::Own, Some(pid), Some(tid)) if pid != tid => {
                let name = self.threads.get(&(pid, tid));
                name.map_or(&actor.name, String::as_str)
            }
            _ => &actor.name,
        }
    }

    /// `sessiond (pid 16191)`, `reporter (tid 32070, python3 pid 32028)`, `device sda`.
    pub(super) fn actor(&self, actor: &Actor) -> String {
        let name = self.label(actor);
        match actor.kind {
            ActorKind::Device => format!("device {name}"),
            ActorKind::Interrupt => format!("interrupt handler {name}"),
            ActorKind::Unknown => "an unidentified thread".to_owned(),
            _ if name.is_empty() => format!("unnamed thread{}", self.ids(actor, name)),
            ActorKind::Kernel => format!("kernel thread {name}{}", self.ids(actor, name)),
            _ => format!("{name}{}", self.ids(actor, name)),
        }
    }

    /// Ids in parentheses, with the name of the process if it differs from that of the thread.
    fn ids(&self, actor: &Actor, name: &str) -> String {
        let on = actor
            .host
            .as_ref()
            .map_or_else(String::new, |host| format!(" on {host}"));
        let ids = match (actor.pid, actor.tid) {
            (Some(pid), Some(tid)) if pid != tid => {
                let process = self.process(pid).filter(|_| actor.host.is_none());
                match process.map(|process| process.comm.as_str()) {
                    Some(comm) if !comm.is_empty() && comm != name => {
                        format!("tid {tid}, {comm} pid {pid}")
                    }
                    _ => format!("tid {tid}, pid {pid}"),
                }
            }
            (Some(pid), _) => format!("pid {pid}"),
            (None, Some(tid)) => format!("tid {tid}"),
            (None, None) => return on,
        };
        format!(" ({ids}{on})")
    }

    /// ` of unit nginx.service`, ` of container 3f2a…` for a process of this host where it is known.
    pub(super) fn of_unit(&self, actor: &Actor) -> String {
        let process = actor.pid.filter(|_| actor.host.is_none());
        let unit = process.and_then(|pid| self.process(pid)?.unit.as_ref());
        unit.map_or_else(String::new, |unit| format!(" of {unit}"))
    }

    /// What started a process of this host, if it was started during the recording: its parent, and
    /// further ancestors if that is a shell, for example.
    pub(super) fn launched_by(&self, actor: &Actor) -> Option<String> {
        let pid = actor.pid.filter(|_| actor.host.is_none())?;
        let process = self.process(pid).filter(|process| process.is_new)?;
        let mut ancestors: Vec<String> = Vec::new();
        let mut at = process;
        while let Some(parent) = at.parent.and_then(|upid| self.all.get(&upid)) {
            // A server that forks is its own origin.
            if parent.comm.is_empty() || parent.comm == at.comm || parent.pid <= 1 {
                break;
            }
            ancestors.push(format!("{} (pid {})", parent.comm, parent.pid));
            let is_launcher = LAUNCHERS.contains(&parent.comm.as_str());
            if !is_launcher || ancestors.len() == ANCESTORS {
                break;
            }
            at = parent;
        }
        (!ancestors.is_empty()).then(|| ancestors.join(", which was started by "))
    }

    /// Whether two processes of this host are runs of one program that the same process started
    /// during the recording: their times count together.
    pub(super) fn is_other_run(&self, one: &Actor, other: &Actor) -> bool {
        let process = |actor: &Actor| {
            let pid = actor.pid.filter(|_| actor.host.is_none())?;
            self.process(pid).filter(|process| process.is_new)
        };
        let (Some(one), Some(other)) = (process(one), process(other)) else {
            return false;
        };
        let parent = one.parent.and_then(|upid| self.all.get(&upid));
        let is_launched = parent.is_some_and(|parent| {
            parent.pid != 1 && !parent.comm.is_empty() && parent.comm != one.comm
        });
        is_launched && (one.parent, &one.comm) == (other.parent, &other.comm)
    }

    /// The command line of a process of this host, without the folder of the program, cut if it is
    /// long.
    pub(super) fn command_line(&self, actor: &Actor) -> Option<String> {
        let process = actor.pid.filter(|_| actor.host.is_none())?;
        let line = &self.process(process)?.command_line;
        let program = line.split(' ').next().unwrap_or("");
        let folder = program.rfind('/').map_or(0, |slash| slash + 1);
        let line = &line[folder..];
        (!line.is_empty()).then(|| {
            let mut cut: String = line.chars().take(COMMAND_MAX).collect();
            if cut.len() < line.len() {
                cut.push('…');
            }
            cut
        })
    }
}

/// Digits of a container id that its tools print.
const ID_LENGTH: usize = 12;

/// The unit or container of a cgroup. Sessions of users are no units of a service.
fn unit(cgroup: &str, container: &str) -> Option<String> {
    if !container.is_empty() {
        let id: String = container.chars().take(ID_LENGTH).collect();
        return Some(format!("container {id}"));
    }
    let mut above = cgroup.rsplit('/');
    let service = above.find(|name| name.ends_with(".service") && !name.starts_with("user@"));
    service.map(|service| format!("unit {service}"))
}

/// A system call or function: `openat()`; names that are more than one word stay as they are.
pub(super) fn call(name: &str) -> String {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if !name.is_empty() && name.chars().all(is_word) {
        format!("{name}()")
    } else {
        shortened(name)
    }
}

/// A call with its file: `openat(/tmp/a)`.
pub(super) fn call_of(activity: &Activity) -> String {
    match &activity.path {
        Some(path) => format!("{}({path})", activity.call),
        None => call(&activity.call),
    }
}

/// A name, shortened in the middle if it is long.
pub(super) fn shortened(name: &str) -> String {
    let length = name.chars().count();
    if length <= NAME_MAX {
        return name.to_owned();
    }
    let end = NAME_MAX * 2 / 3;
    let first: String = name.chars().take(NAME_MAX - end - 1).collect();
    let last: String = name.chars().skip(length - end).collect();
    format!("{first}…{last}")
}

/// A number with thousands separators.
pub(super) fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A program `python3` (pid 10) with a thread `reporter` (tid 12).
    pub(in crate::page) fn names() -> Names {
        let mut names = Names::default();
        let process = Process {
            pid: 10,
            comm: "python3".to_owned(),
            command_line: "/usr/bin/python3 /srv/run.py".to_owned(),
            unit: unit("/system.slice/shop.service/worker", ""),
            parent: Some(2),
            is_new: true,
        };
        names.processes.insert(10, process);
        let ancestor = |pid, comm: &str, parent| Process {
            pid,
            comm: comm.to_owned(),
            parent,
            ..Process::default()
        };
        names.all.insert(2, ancestor(8, "sh", Some(1)));
        names.all.insert(1, ancestor(7, "cron", None));
        names.threads.insert((10, 10), "python3".to_owned());
        names.threads.insert((10, 12), "reporter".to_owned());
        names.threads.insert((10, 13), "python3".to_owned());
        names
    }

    pub(in crate::page) fn actor(kind: ActorKind, name: &str, ids: Option<(i32, i32)>) -> Actor {
        Actor {
            kind,
            name: name.to_owned(),
            pid: ids.map(|(pid, _)| pid),
            tid: ids.map(|(_, tid)| tid),
            host: None,
        }
    }

    #[test]
    fn a_thread_is_named_before_its_process() {
        let names = names();
        let check = |kind, name, ids, expected: &str| {
            assert_eq!(names.actor(&actor(kind, name, ids)), expected);
        };
        check(ActorKind::Own, "sessiond", Some((7, 7)), "sessiond (pid 7)");
        check(
            ActorKind::Own,
            "reporter",
            Some((10, 12)),
            "reporter (tid 12, python3 pid 10)",
        );
        // Other processes are known by the name of the process.
        check(
            ActorKind::Process,
            "python3",
            Some((10, 12)),
            "reporter (tid 12, python3 pid 10)",
        );
        check(
            ActorKind::Process,
            "python3",
            Some((10, 13)),
            "python3 (tid 13, pid 10)",
        );
        check(
            ActorKind::Kernel,
            "kworker/0:1",
            Some((9, 9)),
            "kernel thread kworker/0:1 (pid 9)",
        );
        check(ActorKind::Device, "sda", None, "device sda");
        check(ActorKind::Peer, "10.0.0.1:53", None, "10.0.0.1:53");
        let there = Actor {
            host: Some("db".to_owned()),
            ..actor(ActorKind::Process, "postgres", Some((10, 10)))
        };
        assert_eq!(names.actor(&there), "postgres (pid 10 on db)");
        assert_eq!(names.command_line(&there), None);
        let here = actor(ActorKind::Process, "python3", Some((10, 12)));
        let line = names.command_line(&here);
        assert_eq!(line.as_deref(), Some("python3 /srv/run.py"));
    }

    #[test]
    fn a_service_or_a_container_is_a_unit() {
        let id = "3f2a9c0d1e5b7a6f";
        let scope = format!("/system.slice/docker-{id}.scope");
        assert_eq!(unit(&scope, id).as_deref(), Some("container 3f2a9c0d1e5b"));
        let user = "/user.slice/user-0.slice/user@0.service/app.slice/db.service";
        assert_eq!(unit(user, "").as_deref(), Some("unit db.service"));
        for none in ["/user.slice/user-0.slice/session-3.scope", "/", ""] {
            assert_eq!(unit(none, ""), None, "{none}");
        }
        let names = names();
        let here = actor(ActorKind::Process, "python3", Some((10, 12)));
        assert_eq!(names.of_unit(&here), " of unit shop.service");
        let there = Actor {
            host: Some("db".to_owned()),
            ..here
        };
        assert_eq!(names.of_unit(&there), "");
    }

    #[test]
    fn what_started_a_new_process_is_named_up_to_the_first_that_is_no_shell() {
        let names = names();
        let launched = |pid| names.launched_by(&actor(ActorKind::Process, "x", Some((pid, pid))));
        assert_eq!(
            launched(10).as_deref(),
            Some("sh (pid 8), which was started by cron (pid 7)")
        );
        assert_eq!(launched(8), None, "it is older than the recording");
    }

    #[test]
    fn calls_and_numbers_are_short() {
        assert_eq!(call("openat"), "openat()");
        assert_eq!(call("a.Log.append"), "a.Log.append");
        assert_eq!(count(1_234_567), "1,234,567");
        assert_eq!(count(999), "999");
        let long = shortened(&"x".repeat(300));
        assert_eq!(long.chars().count(), NAME_MAX);
    }
}
