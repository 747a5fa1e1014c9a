//! WHY: the cause as one sentence with the culprit as its subject.

use std::collections::BTreeSet;

use whyslow_model::Ns;

use super::Drawn;
use super::names::{call, shortened};
use super::phrases::{Values, phrase};
use crate::report::{Activity, Actor, ActorKind, Confidence, Followed, Grade, Part, Thing};
use crate::requests::did;
use crate::sentence::{first_object, length, percent};

/// A culprit with a larger share explains all of the time.
const WHOLE: f64 = 0.9;
/// Parts with a smaller share are not listed.
const LISTED_MIN: f64 = 0.05;
/// Mechanisms whose predicate of a culprit ends in a clause, so that `for 3 ms` cannot follow it.
const CLAUSE_LAST: [&str; 9] = [
    "block_service",
    "fuse_wait",
    "lock_file",
    "lock_futex",
    "lock_inode",
    "lock_kernel",
    "lock_program",
    "producer_idle",
    "woken_by",
];
/// Mechanisms whose predicates are events or verdicts without a duration.
const WITHOUT_DURATION: [&str; 7] = [
    "lost",
    "misbehaving_disk",
    "network_retransmit",
    "send_delayed",
    "still_blocked",
    "temporary_files",
    "unknown",
];
/// More threads between culprit and victim are counted.
const BETWEEN_MAX: usize = 3;
/// Parts that are listed if there is no culprit.
const LISTED: usize = 3;
/// Share of time without a recorded cause from which nothing can be concluded.
const UNEXPLAINED: f64 = 0.5;

impl Drawn<'_> {
    pub(super) fn why(&self) -> String {
        let why = match (self.culprit, self.other()) {
            (Some(_), Some(part)) => format!("{}{}", self.by_other(part), self.for_client(part)),
            (Some(part), None) => self.by_itself(part),
            (None, _) => self.without_culprit(),
        };
        let behind = self.finding.behind.as_ref();
        let behind = behind.map(|behind| format!("Meanwhile, {behind}."));
        let more = [behind, self.number_of_these(), self.launched_by()];
        let more = more.into_iter().flatten();
        more.fold(why, |why, more| format!("{why} {more}"))
    }

    /// What started a culprit that started during the recording, and may be over.
    fn launched_by(&self) -> Option<String> {
        let culprit = &self.other()?.culprit;
        let is_other = culprit.pid != self.finding.target.actor.pid;
        if culprit.kind != ActorKind::Process || !is_other {
            return None;
        }
        let by = self.names.launched_by(culprit)?;
        let name = &culprit.name;
        match self.runs(culprit) {
            0 => Some(format!("{name} was started by {by}.")),
            1 => Some(format!(
                "The time is that of {name} and another run of it, both started by {by}."
            )),
            more => Some(format!(
                "The time is that of {name} and {more} other runs of it, all started by {by}."
            )),
        }
    }

    /// The number of other runs of the culprit's program whose time is attributed to it.
    fn runs(&self, culprit: &Actor) -> usize {
        let parts = self.finding.parts.iter().map(|part| &part.culprit);
        let others = parts.filter(|other| {
            other.kind == ActorKind::Process
                && other.pid != culprit.pid
                && other.pid != self.finding.target.actor.pid
                && self.names.is_other_run(culprit, other)
        });
        others.map(|other| other.pid).collect::<BTreeSet<_>>().len()
    }

    /// If the slow operations of a group have different causes: how many have this one, and their
    /// time.
    fn number_of_these(&self) -> Option<String> {
        let group = self.finding.group.as_ref()?;
        if self.culprit.is_none() || self.finding.contention.is_some() {
            return None;
        }
        let time = |other: &Followed| other.end_ns - other.begin_ns;
        let same = group.others.iter().filter(|other| other.is_same);
        let (all, sum) = (
            1 + group.others.len(),
            self.length() + same.clone().map(time).sum::<Ns>(),
        );
        let same = 1 + same.count();
        (same < all).then(|| {
            let whole = self.length() + group.others.iter().map(time).sum::<Ns>();
            format!(
                "That is the cause of {same} of {all} slow operations ({} of {}).",
                length(sum),
                length(whole)
            )
        })
    }

    /// Whose request a server worked on meanwhile.
    fn for_client(&self, part: &Part) -> String {
        let client = part.client.as_ref();
        client.map_or_else(String::new, |client| {
            let client = self.names.actor(client);
            format!(" It was serving a request of {client}.")
        })
    }

    /// All time attributed to the culprit.
    fn sum(&self, part: &Part) -> Ns {
        self.finding.saved_at_most_ns.max(part.dur_ns)
    }

    /// `1.20 s`, with the share if it is not all of the time: `3.75 ms of 11.1 ms (34 %)`.
    fn time(&self, part: &Part) -> String {
        let sum = self.sum(part);
        let share = sum as f64 / self.length() as f64;
        if share >= WHOLE {
            return length(sum);
        }
        let whole = length(self.length());
        format!("{} of {whole} ({})", length(sum), percent(share))
    }

    /// A predicate with its duration: `kept the CPU of dd busy for 1.20 s`, or `held the lock that
    /// dd waited for (1.20 s)`.
    fn timed(&self, part: &Part, did: &str, can_last: bool) -> String {
        if can_last && !WITHOUT_DURATION.contains(&part.mechanism.as_str()) {
            return format!("{did} for {}", self.time(part));
        }
        format!("{did} ({})", self.time_in_parentheses(part))
    }

    /// `3.75 ms of 11.1 ms, 34 %`.
    fn time_in_parentheses(&self, part: &Part) -> String {
        self.time(part).replace(" (", ", ").replace(')', "")
    }

    fn by_itself(&self, part: &Part) -> String {
        let subject = self.names.actor(&self.finding.target.actor);
        let values = Values::new("", &[self.first_object(part), device(part)]);
        let did = values.fill(phrase(&part.mechanism).own);
        let likely = self.likely(part);
        let within = self.call_on_cpu(part).map_or_else(String::new, |activity| {
            format!(" in {}", call(&activity.call))
        });
        let timed = hedged(likely, &self.timed(part, &did, true));
        format!("{subject} {timed}{within}.")
    }

    /// The system call that took most of the longest time on CPU, such as `clone` of a large process.
    fn call_on_cpu<'p>(&self, part: &'p Part) -> Option<&'p Activity> {
        let is_on_cpu = part.mechanism == "cpu_running" && part.root == "cpu_running";
        let activity = part.activity.as_ref().filter(|_| is_on_cpu)?;
        let ran = self.finding.chain.last().filter(|hop| hop.what == "ran")?;
        let end = activity.end_ns.unwrap_or(self.recorded.end);
        let inside = end.min(ran.end_ns) - activity.begin_ns.max(ran.begin_ns);
        (inside * 2 >= ran.end_ns - ran.begin_ns).then_some(activity)
    }

    fn by_other(&self, part: &Part) -> String {
        let kind = part.object.as_ref().map(|thing| thing.kind.as_str());
        if kind == Some("way") {
            return self.in_transit(part);
        }
        if part.culprit.kind == ActorKind::Device && part.grade != Grade::C {
            return self.slow_device(part);
        }
        let subject = self.subject(part);
        if part.grade == Grade::C {
            return self.overlap(part, &subject);
        }
        let (did, likely) = (self.did(part), self.likely(part));
        let Some(activity) = self.activity() else {
            let within = part.activity.as_ref().map_or_else(String::new, |activity| {
                format!(", partly in {}", call(&activity.call))
            });
            let can_last =
                !did.contains([',', ';']) && !CLAUSE_LAST.contains(&part.mechanism.as_str());
            let timed = hedged(likely, &self.timed(part, &did, can_last));
            return format!("{subject} {timed}{within}.");
        };
        let end = activity.end_ns.unwrap_or(self.recorded.end);
        let lasted = length(end - activity.begin_ns);
        let verb = verb(&activity.call);
        let open = if activity.end_ns.is_none() {
            " (still in progress at the end of the recording)"
        } else {
            ""
        };
        let sum = self.sum(part);
        let share = sum as f64 / self.length() as f64;
        let rest = if share < WHOLE {
            let whole = length(self.length());
            format!("; that is {} of {whole} ({})", length(sum), percent(share))
        } else {
            String::new()
        };
        let call = call(&activity.call);
        if let Some(direct) = self.between().filter(|_| part.root == "timer_sleep") {
            let held_up = self.held_up(part, direct, likely);
            return format!("{subject} slept in {call} for {lasted}{open}; {held_up}{rest}.");
        }
        let did = hedged(likely, &did);
        format!("{subject} {verb} {call} for {lasted}{open} and {did}{rest}.")
    }

    /// At the start of a sentence.
    fn subject(&self, part: &Part) -> String {
        let subject = self.names.actor(&part.culprit);
        // The victim's own process is named with it.
        let subject = match part.culprit.kind {
            ActorKind::Process if part.culprit.pid != self.finding.target.actor.pid => {
                subject + &self.names.of_unit(&part.culprit)
            }
            _ => subject,
        };
        if let Some(server) = part.object.as_ref().filter(|thing| {
            (part.mechanism.as_str(), part.root.as_str()) == ("dns_lookup", "dns_lookup")
                && part.culprit.tid.is_some()
                && thing.kind == "peer"
        }) {
            return format!("{subject}, name server {},", server.name);
        }
        let is_server = part.mechanism == "dns_lookup" && part.culprit.kind == ActorKind::Peer;
        let is_address = part
            .culprit
            .name
            .starts_with(|c: char| c.is_ascii_digit() || c == '[');
        if is_server && is_address {
            return format!("Name server {subject}");
        }
        match part.culprit.kind {
            ActorKind::Device | ActorKind::Interrupt | ActorKind::Kernel | ActorKind::Unknown => {
                capitalized(&subject)
            }
            ActorKind::Peer if subject.starts_with("the ") => capitalized(&subject),
            _ => subject,
        }
    }

    /// The predicate of a culprit, with the thread between it and the victim.
    fn did(&self, part: &Part) -> String {
        let victim = self.names.label(&self.finding.target.actor);
        let (first, last) = (self.first_object(part), part.object.as_ref());
        if let Some(journal) = self.journal(part) {
            return journal;
        }
        if let Some(direct) = self.between() {
            let root = phrase(&part.root);
            let root = if self.is_of_culprit(part) {
                root.own
            } else {
                root.other
            };
            let did = Values::new(self.names.label(direct), &[last]).fill(root);
            return format!("{did}; {}", self.held_up(part, direct, ""));
        }
        let did = Values::new(victim, &[first, device(part)]).fill(self.done_to_victim(part));
        let children = part.object.as_ref();
        if let Some(children) = children.filter(|thing| thing.kind == "children") {
            return format!("{did} with {}", children.name);
        }
        // What the culprit did meanwhile matters if it held or owed something.
        let owes = part.mechanism.starts_with("lock_")
            || matches!(
                part.mechanism.as_str(),
                "journal_wait" | "local_ipc" | "pipe_wait" | "kernel_wait" | "fuse_wait"
            );
        let is_plain = part.root == part.mechanism || !owes;
        if is_plain || part.activity.is_some() {
            return did;
        }
        let root = Values::new(victim, &[last]).fill(phrase(&part.root).own);
        format!("{did}, while it {root}")
    }

    /// The predicate of what the victim waited for. A sender waits for room, not for a reply.
    fn done_to_victim(&self, part: &Part) -> &'static str {
        let called = self.finding.target.what.as_str();
        let is_sent = ["send", "write"]
            .iter()
            .any(|call| called.starts_with(call));
        if part.mechanism == "local_ipc" && is_sent {
            return "kept {victim} waiting to send over a local socket";
        }
        phrase(&part.mechanism).other
    }

    /// What the victim itself waited for: the object of a part is that of the last link. `None` if
    /// the chain does not show it.
    fn first_object<'p>(&'p self, part: &'p Part) -> Option<&'p Thing> {
        first_object(part, &self.finding.chain)
    }

    /// Whether the chain ends with a wait of the culprit itself, not with what it did to another
    /// thread.
    fn is_of_culprit(&self, part: &Part) -> bool {
        let last = self.finding.chain.last();
        last.is_some_and(|hop| hop.what == "waited" && hop.actor.tid == part.culprit.tid)
    }

    /// What the culprit held up, and how that held up the victim.
    fn held_up(&self, part: &Part, direct: &Actor, likely: &str) -> String {
        let victim = self.names.label(&self.finding.target.actor);
        let first = self.first_object(part);
        let did = Values::new(victim, &[first]).fill(self.done_to_victim(part));
        let mut others = self.others_between(part, direct);
        others.push(self.names.actor(direct));
        format!(
            "that {likely}held up {}, which {did}",
            others.join(", then ")
        )
    }

    /// The threads between the culprit and the thread that the victim waited for, the culprit's
    /// neighbour first; the first and the number of the others if there are many.
    fn others_between(&self, part: &Part, direct: &Actor) -> Vec<String> {
        let is_known = |actor: &Actor| {
            actor.tid.is_some() && actor.tid != part.culprit.tid && actor.tid != direct.tid
        };
        let links = self.finding.chain.iter().skip(2).map(|hop| &hop.actor);
        let mut names: Vec<String> = links
            .filter(|actor| is_known(actor))
            .map(|actor| self.names.actor(actor))
            .collect();
        names.dedup();
        names.reverse();
        if names.len() > BETWEEN_MAX {
            let more = names.len() - 1;
            names.truncate(1);
            names.push(format!("{more} other threads"));
        }
        names
    }

    /// If the victim waited in the journal, that is what the culprit kept busy.
    fn journal(&self, part: &Part) -> Option<String> {
        let by_disk = matches!(
            part.mechanism.as_str(),
            "sync_storm" | "block_queue" | "block_service" | "journal_wait" | "writeback_wait"
        );
        let stack = &self.finding.chain.first().filter(|_| by_disk)?.stack;
        let has = |part: &str| stack.iter().any(|frame| frame.contains(part));
        let kind = match (has("jbd2"), has("ext4")) {
            (true, true) => "ext4",
            (true, false) => "file system",
            (false, _) => return None,
        };
        let on = Values::new("", &[part.object.as_ref()]);
        Some(on.fill(&format!("kept the {kind} journal{{on}} busy")))
    }

    /// Overlapping in time is no cause.
    fn overlap(&self, part: &Part, subject: &str) -> String {
        let victim = self.names.label(&self.finding.target.actor);
        let did = match self.activity() {
            Some(activity) => {
                let end = activity.end_ns.unwrap_or(self.recorded.end);
                let call = call(&activity.call);
                let lasted = length(end - activity.begin_ns);
                format!("{} {call} for {lasted}", verb(&activity.call))
            }
            None => "was active".to_owned(),
        };
        let time = self.time(part);
        if part.root == "dns_lookup" && part.culprit.kind == ActorKind::Peer {
            return format!(
                "{subject} did not reply to a DNS query of {victim} for {time}; it is on this host, but the process was not recorded."
            );
        }
        format!("{subject} {did} while {victim} waited for {time}; causality is not established.")
    }

    fn slow_device(&self, part: &Part) -> String {
        let subject = capitalized(&self.names.actor(&part.culprit));
        // The finding is about the block I/O itself, which was not compared with other requests.
        if self.finding.chain.is_empty() {
            let did = match part.mechanism.as_str() {
                "block_queue" => "kept the request in its queue",
                "device_held" => "held the request while no device below was serving it",
                _ => "served the request",
            };
            return format!("{subject} {did} for {}.", self.time(part));
        }
        let (likely, direct) = (self.likely(part), self.between());
        let held_up = direct.map_or_else(String::new, |direct| {
            format!("; {}", self.held_up(part, direct, ""))
        });
        let waiting = self
            .names
            .label(direct.unwrap_or(&self.finding.target.actor));
        if part.root == "device_held" {
            return format!(
                "{subject} {likely}held requests of {waiting} while no device below was serving them ({}){held_up}.",
                self.time_in_parentheses(part)
            );
        }
        // Requests whose threads are unknown are attributed to the device.
        if part.mechanism == "block_queue" {
            return format!(
                "{subject} served requests of unidentified threads before those of {waiting} ({}){held_up}.",
                self.time_in_parentheses(part)
            );
        }
        format!(
            "{subject} {likely}took much longer for requests of {waiting} than for similar ones ({}){held_up}.",
            self.time_in_parentheses(part)
        )
    }

    fn in_transit(&self, part: &Part) -> String {
        let way = part.object.as_ref().map_or("", |way| way.name.as_str());
        let time = self.time(part);
        format!("The request was in transit {way} for {time}.")
    }

    /// A word for what is inferred and not certain.
    fn likely(&self, part: &Part) -> &'static str {
        // That no reply came is a fact.
        let is_sure = part.grade == Grade::A
            || self.finding.confidence == Confidence::High
            || (part.root == "dns_lookup" && part.mechanism == "dns_lookup");
        if is_sure { "" } else { "most likely " }
    }

    fn without_culprit(&self) -> String {
        let finding = self.finding;
        let target = &finding.target;
        let took = length(self.length());
        if finding.remote.is_usual {
            let usual = finding.baseline.as_ref().map_or_else(String::new, |usual| {
                format!(", typically {}", length(usual.median_ns))
            });
            return format!(
                "Not slower than usual: {} took {took}{usual}.",
                shortened(&target.what)
            );
        }
        // What a source without threads reports.
        let by_phases = finding.parts.iter().any(|part| {
            let object = part.object.as_ref();
            object.is_some_and(|thing| thing.kind == "phase")
        });
        let summary = finding.remote.summary.strip_prefix(&finding.remote.head);
        if by_phases && let Some(rest) = summary {
            return format!("Cannot tell: {}.", rest.trim_start_matches([':', ' ']));
        }
        let unexplained = finding.unexplained_ns as f64 / self.length() as f64;
        let cause = if unexplained >= UNEXPLAINED {
            format!(
                "Cannot tell: {} of {took} ({}) has no recorded cause{}.",
                length(finding.unexplained_ns),
                percent(unexplained),
                self.reason()
            )
        } else {
            self.largest_shares()
        };
        match did::most(finding) {
            Some(did) => format!("{}. {cause}", did::in_words(did)),
            None => cause,
        }
    }

    /// Why the cause was not recorded.
    fn reason(&self) -> String {
        let is_lost = self.finding.parts.iter().any(|part| part.root == "lost");
        if is_lost {
            return "; events of that time were lost".to_owned();
        }
        let missing = self.finding.missing.iter();
        let missing: Vec<&str> = missing.map(|one| one.events.as_str()).collect();
        if missing.is_empty() {
            return String::new();
        }
        format!("; not recorded: {}", missing.join(", "))
    }

    fn largest_shares(&self) -> String {
        let parts = self.finding.parts.iter();
        let listed = parts.filter(|part| part.share >= LISTED_MIN).take(LISTED);
        let shares: Vec<String> = listed
            .map(|part| {
                let object = part.object.as_ref();
                let own = object.filter(|_| part.root == part.mechanism);
                let values = Values::new("", &[own, device(part)]);
                let noun = values.fill(phrase(&part.mechanism).noun);
                let by = match part.culprit.kind {
                    ActorKind::Own | ActorKind::Unknown | ActorKind::Timer => String::new(),
                    _ => format!(" due to {}", self.names.actor(&part.culprit)),
                };
                format!("{} {noun}{by}", percent(part.share))
            })
            .collect();
        if shares.is_empty() {
            return "No single cause: each accounts for less than 5 % of the time.".to_owned();
        }
        format!("No single cause: {}.", shares.join(", "))
    }
}

/// A predicate that may be marked as likely: `was most likely on CPU`.
fn hedged(likely: &str, did: &str) -> String {
    match did.strip_prefix("was ").filter(|_| !likely.is_empty()) {
        Some(state) => format!("was {likely}{state}"),
        None => format!("{likely}{did}"),
    }
}

/// Sync calls and I/O are work of the thread; in other calls it may wait.
fn verb(call: &str) -> &'static str {
    let is_work = [
        "sync",
        "write",
        "read",
        "send",
        "truncate",
        "unlink",
        "fallocate",
        "execve",
    ]
    .iter()
    .any(|part| call.contains(part));
    if is_work && !call.contains('.') {
        "ran"
    } else {
        "was in"
    }
}

/// The device at the end of the chain, which most of its links are about.
fn device(part: &Part) -> Option<&Thing> {
    part.object.as_ref().filter(|thing| thing.kind == "device")
}

fn capitalized(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| {
        first.to_uppercase().chain(chars).collect()
    })
}
