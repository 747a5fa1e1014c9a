//! Which topics a tracer recorded, from the events that its file declares: without an event of a
//! recorded topic, none happened.

/// Topics as in `record --what`, with the events that make them complete: one of each list.
const TOPICS: &[(&str, &[&[&str]])] = &[
    (
        "sched",
        &[&["sched_switch"], &["sched_waking", "sched_wakeup"]],
    ),
    ("block", &[&["block_rq_issue"], &["block_rq_complete"]]),
    (
        "irq",
        &[
            &["irq_handler_entry"],
            &["irq_handler_exit"],
            &["irq_softirq_entry", "softirq_entry"],
            &["irq_softirq_exit", "softirq_exit"],
        ],
    ),
    (
        "net",
        &[
            &["net_dev_queue"],
            &["net_if_receive_skb", "netif_receive_skb"],
        ],
    ),
    (
        "mem",
        &[
            &["mm_vmscan_direct_reclaim_begin"],
            &["mm_vmscan_direct_reclaim_end"],
        ],
    ),
    (
        "page_counts",
        &[
            &["kmem_mm_page_alloc", "mm_page_alloc"],
            &["kmem_mm_page_free", "mm_page_free", "mm_page_free_direct"],
        ],
    ),
];

/// The topics of declared events, comma-separated as in the metadata of a recording.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct DeclaredTopics {
    /// All events of these topics are declared, …
    pub(crate) whole: String,
    /// … and some of those of these.
    pub(crate) part: String,
}

impl DeclaredTopics {
    pub(crate) fn of(events: &[&str]) -> Self {
        let has = |names: &[&str]| names.iter().any(|name| events.contains(name));
        let mut topics = Self::default();
        for (topic, needed) in TOPICS {
            let found = needed.iter().filter(|names| has(names)).count();
            topics.add(topic, (found, needed.len()));
        }
        let calls: Vec<(bool, &str)> = events.iter().filter_map(|name| call_of(name)).collect();
        let needed = [true, false].map(|is_entry| ["read", "write"].map(|call| (is_entry, call)));
        let needed = needed.as_flattened();
        let is_declared = |(is_entry, call): &&(bool, &str)| {
            let mut calls = calls.iter();
            calls.any(|one| one.0 == *is_entry && (one.1 == *call || one.1 == ANY))
        };
        let found = needed.iter().filter(is_declared).count();
        topics.add(
            "syscalls",
            (found.max(usize::from(!calls.is_empty())), needed.len()),
        );
        topics
    }

    /// Adds a topic that does not consist of tracepoints.
    pub(crate) fn add_whole(&mut self, topic: &str) {
        self.add(topic, (1, 1));
    }

    /// The facts of the metadata.
    pub(crate) fn facts(self) -> impl Iterator<Item = (&'static str, String)> {
        let part = Some(self.part).filter(|part| !part.is_empty());
        let part = part.map(|part| ("topics_partial", part));
        std::iter::once(("topics", self.whole)).chain(part)
    }

    fn add(&mut self, topic: &str, (found, needed): (usize, usize)) {
        let list = match found {
            0 => return,
            found if found == needed => &mut self.whole,
            _ => &mut self.part,
        };
        if !list.is_empty() {
            list.push(',');
        }
        list.push_str(topic);
    }
}

/// The name of events that stand for all calls.
const ANY: &str = "*";

/// Whether an event is the entry of a system call or its exit, and of which call.
fn call_of(event: &str) -> Option<(bool, &str)> {
    match event {
        "sys_enter" => return Some((true, ANY)),
        "sys_exit" | "exit_syscall" => return Some((false, ANY)),
        _ => {}
    }
    let strip = |prefixes: [&str; 2]| {
        let mut names = prefixes.into_iter();
        names.find_map(|prefix| event.strip_prefix(prefix))
    };
    if let Some(call) = strip(["syscall_entry_", "sys_enter_"]) {
        Some((true, call))
    } else if let Some(call) = strip(["syscall_exit_", "sys_exit_"]) {
        Some((false, call))
    } else {
        // LTTng before 2.6; its exits are `exit_syscall`.
        Some((true, event.strip_prefix("sys_")?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_topic_is_whole_with_all_of_its_events() {
        let check = |events: &[&str], whole: &str, part: &str| {
            let topics = DeclaredTopics::of(events);
            assert_eq!(
                (topics.whole.as_str(), topics.part.as_str()),
                (whole, part),
                "{events:?}"
            );
        };
        check(&[], "", "");
        check(&["my_event"], "", "");
        check(&["sched_switch", "sched_waking"], "sched", "");
        check(&["sched_switch"], "", "sched");
        check(
            &["block_rq_issue", "sched_switch", "block_rq_complete"],
            "block",
            "sched",
        );
        check(&["sys_enter", "sys_exit"], "syscalls", "");
        check(&["sys_read", "sys_write", "exit_syscall"], "syscalls", "");
        check(
            &["syscall_entry_openat", "syscall_exit_openat"],
            "",
            "syscalls",
        );
    }

    #[test]
    fn part_of_no_topic_is_no_fact() {
        let facts: Vec<_> = DeclaredTopics::of(&["net_dev_queue", "net_if_receive_skb"])
            .facts()
            .collect();
        assert_eq!(facts, [("topics", "net".to_owned())]);
        // That nothing known was recorded is a fact, too.
        let facts: Vec<_> = DeclaredTopics::of(&[]).facts().collect();
        assert_eq!(facts, [("topics", String::new())]);
    }
}
