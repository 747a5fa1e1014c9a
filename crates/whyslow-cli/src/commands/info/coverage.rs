//! Which classes of events a recording has, and what their absence means for answers.

use whyslow_model::answer::{AnswerColumn, AnswerTable, Measure};
use whyslow_store::RecordingInfo;

use super::Met;

/// A class of events: its name, how its presence shows, and what is unknown without it.
struct Class {
    name: &'static str,
    shows: Shows,
    /// Our recorder says that it recorded this, whether or not it happened.
    topic: &'static str,
    without: &'static str,
}

enum Shows {
    /// This table has rows.
    Table(&'static str),
    /// Events whose name begins so were read.
    Event(&'static str),
    /// Records of this kind were read from the spool of the recorder.
    EventOr(&'static str, &'static str),
}

const CLASSES: &[Class] = &[
    Class {
        name: "system calls",
        shows: Shows::Table("syscall"),
        topic: "syscalls",
        without: "no `io` and no `files`: what programs asked for is unknown",
    },
    Class {
        name: "block requests",
        shows: Shows::Table("block_io"),
        topic: "block",
        without: "no `block`: time in disks and their queues is unknown",
    },
    Class {
        name: "scheduling",
        shows: Shows::Table("sched_slice"),
        topic: "sched",
        without: "no `threads states`: who ran when is unknown, threads only by their contexts",
    },
    Class {
        name: "wakeups",
        shows: Shows::Table("wakeup"),
        topic: "sched",
        without: "what ended a wait is unknown",
    },
    Class {
        name: "signals",
        shows: Shows::EventOr("signal_generate", "Signal"),
        topic: "sched",
        without: "no `signals`: who stopped or ended a process is unknown",
    },
    Class {
        name: "interrupts",
        shows: Shows::Table("irq"),
        topic: "irq",
        without: "time in interrupts counts for the thread they hit",
    },
    Class {
        name: "network packets",
        shows: Shows::Table("net_packet"),
        topic: "net",
        without: "traffic is known from system calls only, not by interface",
    },
    Class {
        name: "TCP connections",
        shows: Shows::Table("tcp_connection"),
        topic: "tcp",
        without: "no `tcp`: who connected where, and how it ended, is unknown",
    },
    Class {
        name: "requests",
        shows: Shows::Table("request"),
        topic: "",
        without: "no `requests`: who asked for what and how long it took is unknown",
    },
    Class {
        name: "threads of requests",
        shows: Shows::Table("request_thread"),
        topic: "",
        without: "no `requests threads`: which thread worked for which request is unknown",
    },
    Class {
        name: "lookups of names",
        shows: Shows::Table("dns_lookup"),
        topic: "dns",
        without: "no `dns`: who waited for names to be resolved is unknown, or nobody did",
    },
    Class {
        name: "questions to name servers",
        shows: Shows::Table("dns_query"),
        topic: "",
        without: "no `nameservers`: which name servers answered is unknown (system calls tell), or nobody asked",
    },
    Class {
        name: "calls of functions",
        shows: Shows::Table("function_call"),
        topic: "functions",
        without: "no `functions`: they are recorded where they are asked for (record --function)",
    },
    Class {
        name: "static probes of programs",
        shows: Shows::Table("usdt_event"),
        topic: "usdt",
        without: "no `usdt`: they are recorded where they are asked for (record --usdt)",
    },
    Class {
        name: "page allocation",
        shows: Shows::Table("page_count"),
        topic: "",
        without: "memory use by thread is unknown",
    },
    Class {
        name: "page faults",
        shows: Shows::Event("x86_exceptions_page_fault"),
        topic: "pages",
        without: "no faults in `mem`, and what of files was in the page cache is unknown",
    },
    Class {
        name: "reclaim",
        shows: Shows::Event("mm_vmscan_direct_reclaim"),
        topic: "mem",
        without: "who waited for memory is unknown, or nobody did",
    },
    Class {
        name: "waits for locks",
        shows: Shows::Table("lock_wait"),
        topic: "locks",
        without: "no `locks`: who waited for locks of the kernel is unknown, or nobody did for long",
    },
    Class {
        name: "stacks",
        shows: Shows::Table("stack_sample"),
        topic: "stacks",
        without: "no `stacks`: where in the code threads waited is unknown",
    },
    Class {
        name: "what runtimes tell of their threads",
        shows: Shows::Table("runtime_event"),
        topic: "locks",
        without: "waits for locks of a language (Java) are unknown",
    },
    Class {
        name: "work of file systems",
        shows: Shows::Table("kernel_work"),
        topic: "fs",
        without: "no `fs`: who waited for journals and writeback is unknown, or nobody did",
    },
    Class {
        name: "work that the kernel put off",
        shows: Shows::Table("work_item"),
        topic: "work",
        without: "no `work`: for whom threads of the kernel work is unknown",
    },
    Class {
        name: "retransmits",
        shows: Shows::Event("tcp_retransmit_skb"),
        topic: "net",
        without: "what TCP sent again is unknown, or it sent nothing again",
    },
    Class {
        name: "state of open files at the begin",
        shows: Shows::EventOr("lttng_statedump_file_descriptor", "Fd"),
        topic: "",
        without: "files opened before the recording have no name",
    },
    Class {
        name: "state of processes at the begin",
        shows: Shows::EventOr("lttng_statedump_process_state", "Process"),
        topic: "",
        without: "processes are known from their first event on, kernel threads by guess",
    },
];

pub(super) fn table(info: &RecordingInfo, counts: &[Met], topics: &str) -> AnswerTable {
    let columns = vec![
        AnswerColumn::new("class", "events", Measure::Text),
        AnswerColumn::new("present", "recorded", Measure::Text),
        AnswerColumn::new("meaning", "without them", Measure::Text).priority(1),
    ];
    let mut table = AnswerTable::new("coverage", "what was recorded", columns);
    for class in CLASSES {
        let is_topic = topics.split(',').any(|topic| topic == class.topic);
        let is_told = is_topic && !class.topic.is_empty();
        let present = is_told || class.shows.present(info, counts);
        let meaning = (!present).then_some(class.without);
        table
            .rows
            .push(vec![class.name.into(), present.into(), meaning.into()]);
    }
    table
}

impl Shows {
    fn present(&self, info: &RecordingInfo, counts: &[Met]) -> bool {
        match self {
            Shows::Table(name) => info.rows_of_whole(name) > 0,
            Shows::Event(prefix) => has_event(counts, |name| name.starts_with(prefix)),
            Shows::EventOr(prefix, record) => {
                has_event(counts, |name| name.starts_with(prefix) || name == *record)
            }
        }
    }
}

fn has_event(counts: &[Met], is_meant: impl Fn(&str) -> bool) -> bool {
    super::of_kind(counts, "event").any(|event| is_meant(&event.name) && event.count > 0)
}
