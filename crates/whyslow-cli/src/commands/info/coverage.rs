//! Which classes of events a recording contains, and what is unknown without them.

use std::collections::BTreeSet;

use whyslow_analysis::{AnalysisError, table_state};
use whyslow_model::answer::{AnswerColumn, AnswerTable, Measure};
use whyslow_model::topic_state::TopicState;
use whyslow_store::Tables;

use super::ImportStat;

/// A class of events: its name, how its presence is detected, and what is unknown without it.
struct Class {
    name: &'static str,
    evidence: Evidence,
    /// Topic of `record` that includes the class: it was recorded, whether or not such events
    /// happened.
    topic: &'static str,
    without: &'static str,
}

enum Evidence {
    /// This table has rows.
    Table(&'static str),
    /// Events with this name prefix were read.
    Event(&'static str),
    /// Events with this name prefix, or records of this kind in the recorder's spool, were read.
    EventOr(&'static str, &'static str),
}

const CLASSES: &[Class] = &[
    Class {
        name: "system calls",
        evidence: Evidence::Table("syscall"),
        topic: "syscalls",
        without: "`io` and `files` unavailable: operations of programs unknown",
    },
    Class {
        name: "block requests",
        evidence: Evidence::Table("block_io"),
        topic: "block",
        without: "`block` unavailable: time in devices and their queues unknown",
    },
    Class {
        name: "scheduling",
        evidence: Evidence::Table("sched_slice"),
        topic: "sched",
        without: "`threads states` unavailable: on-CPU times unknown; threads known only from the context of events",
    },
    Class {
        name: "wakeups",
        evidence: Evidence::Table("wakeup"),
        topic: "sched",
        without: "wakers of waiting threads unknown",
    },
    Class {
        name: "signals",
        evidence: Evidence::EventOr("signal_generate", "Signal"),
        topic: "sched",
        without: "`signals` unavailable: senders of signals that stopped or ended a process unknown",
    },
    Class {
        name: "interrupts",
        evidence: Evidence::Table("irq"),
        topic: "irq",
        without: "time in interrupts counts as time of the interrupted thread",
    },
    Class {
        name: "network packets",
        evidence: Evidence::Table("net_packet"),
        topic: "net",
        without: "traffic known from system calls only, not by interface",
    },
    Class {
        name: "TCP connections",
        evidence: Evidence::Table("tcp_connection"),
        topic: "tcp",
        without: "`tcp` unavailable: connections and how they ended unknown",
    },
    Class {
        name: "requests",
        evidence: Evidence::Table("request"),
        topic: "",
        without: "`requests` unavailable: requests and their latency unknown",
    },
    Class {
        name: "threads of requests",
        evidence: Evidence::Table("request_thread"),
        topic: "",
        without: "`requests threads` unavailable: threads that served requests unknown",
    },
    Class {
        name: "DNS lookups",
        evidence: Evidence::Table("dns_lookup"),
        topic: "dns",
        without: "`dns` unavailable: DNS lookups unknown",
    },
    Class {
        name: "DNS queries",
        evidence: Evidence::Table("dns_query"),
        topic: "",
        without: "`nameservers` unavailable: replies of name servers unknown (needs system calls)",
    },
    Class {
        name: "function calls (uprobes)",
        evidence: Evidence::Table("function_call"),
        topic: "functions",
        without: "`functions` unavailable: function calls not recorded (add `--function`)",
    },
    Class {
        name: "USDT probes",
        evidence: Evidence::Table("usdt_event"),
        topic: "usdt",
        without: "`usdt` unavailable: USDT probes not recorded (add `--usdt`)",
    },
    Class {
        name: "page allocation",
        evidence: Evidence::Table("page_count"),
        topic: "",
        without: "memory use by thread unknown",
    },
    Class {
        name: "page faults",
        evidence: Evidence::Event("x86_exceptions_page_fault"),
        topic: "pages",
        without: "page faults in `mem` and page-cache hits of files unknown",
    },
    Class {
        name: "memory reclaim",
        evidence: Evidence::Event("mm_vmscan_direct_reclaim"),
        topic: "mem",
        without: "waits for memory unknown",
    },
    Class {
        name: "lock waits",
        evidence: Evidence::Table("lock_wait"),
        topic: "locks",
        without: "`locks` unavailable: waits for kernel locks unknown",
    },
    Class {
        name: "stacks",
        evidence: Evidence::Table("stack_sample"),
        topic: "stacks",
        without: "`stacks` unavailable: code locations of waits unknown",
    },
    Class {
        name: "runtime events",
        evidence: Evidence::Table("runtime_event"),
        topic: "locks",
        without: "waits for locks of a language runtime (Java) unknown",
    },
    Class {
        name: "file system work",
        evidence: Evidence::Table("kernel_work"),
        topic: "fs",
        without: "`fs` unavailable: waits for journals and writeback unknown",
    },
    Class {
        name: "workqueue items",
        evidence: Evidence::Table("work_item"),
        topic: "work",
        without: "`work` unavailable: threads that queued work of kernel threads unknown",
    },
    Class {
        name: "TCP retransmits",
        evidence: Evidence::Event("tcp_retransmit_skb"),
        topic: "net",
        without: "TCP retransmits unknown",
    },
    Class {
        name: "open files at the start",
        evidence: Evidence::EventOr("lttng_statedump_file_descriptor", "Fd"),
        topic: "",
        without: "files opened before the recording have no name",
    },
    Class {
        name: "processes at the start",
        evidence: Evidence::EventOr("lttng_statedump_process_state", "Process"),
        topic: "",
        without: "processes known only from their first event, kernel threads inferred",
    },
];

/// `topics` are those that the sources state to have recorded.
pub(super) fn table(
    tables: &dyn Tables,
    counts: &[ImportStat],
    topics: &BTreeSet<String>,
) -> Result<AnswerTable, AnalysisError> {
    let columns = vec![
        AnswerColumn::new("class", "events", Measure::Text),
        AnswerColumn::new("present", "recorded", Measure::Text),
        AnswerColumn::new("meaning", "without them", Measure::Text).priority(1),
    ];
    let mut table = AnswerTable::new("coverage", "what was recorded", columns);
    for class in CLASSES {
        let present = if topics.contains(class.topic) {
            Some(true)
        } else {
            class.evidence.present(tables, counts)?
        };
        let meaning = (present != Some(true)).then_some(class.without);
        table
            .rows
            .push(vec![class.name.into(), present.into(), meaning.into()]);
    }
    Ok(table)
}

impl Evidence {
    /// `None` if the sources do not state it.
    fn present(
        &self,
        tables: &dyn Tables,
        counts: &[ImportStat],
    ) -> Result<Option<bool>, AnalysisError> {
        Ok(match self {
            Evidence::Table(name) => match table_state(tables, name)? {
                TopicState::Unknown { .. } => None,
                // No view reads the table, so it is not known what its rows need.
                TopicState::NoneHappened { .. } if name == &"wakeup" => Some(false),
                state => Some(state.is_recorded()),
            },
            Evidence::Event(prefix) => Some(has_event(counts, |name| name.starts_with(prefix))),
            Evidence::EventOr(prefix, record) => Some(has_event(counts, |name| {
                name.starts_with(prefix) || name == *record
            })),
        })
    }
}

fn has_event(counts: &[ImportStat], matches: impl Fn(&str) -> bool) -> bool {
    super::of_kind(counts, "event").any(|event| matches(&event.name) && event.count > 0)
}
