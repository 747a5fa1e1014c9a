//! What a recording must contain so that a table can have rows, and how to record it.

use crate::recorded::Recorder;

/// What the rows of a table are made of.
pub(crate) struct Need {
    pub(crate) table: &'static str,
    /// What is unavailable without them.
    pub(crate) what: &'static str,
    /// Plural noun for the events.
    pub(crate) events: &'static str,
    /// What must be recorded, if it has another name.
    basis: Option<&'static str>,
    /// Topics of [`crate::recorded::RecordedTopics`], all of which are needed.
    pub(crate) topics: &'static [&'static str],
    /// Options of `whyslow record`; empty if it cannot record them.
    options: &'static str,
    /// Instead of options, what provides them.
    instruction: Option<&'static str>,
    /// Tracepoints that provide them in other tracers.
    tracepoints: &'static [&'static str],
}

impl Need {
    /// `None` for tables that no view reads.
    pub(crate) fn of(table: &str) -> Option<&'static Need> {
        NEEDS.iter().find(|need| need.table == table)
    }

    /// What must be recorded.
    pub(crate) fn basis(&self) -> &'static str {
        self.basis.unwrap_or(self.events)
    }

    /// What to add to a recording by this recorder.
    pub(crate) fn record_with(&self, recorder: Recorder) -> Option<String> {
        match recorder {
            _ if self.options.is_empty() => self.instruction.map(str::to_owned),
            Recorder::Whyslow => Some(self.options.to_owned()),
            Recorder::Tracer if !self.tracepoints.is_empty() => {
                Some(format!("enable {}", self.tracepoints.join(", ")))
            }
            Recorder::Tracer | Recorder::Other => {
                Some(format!("`whyslow record {}` records them", self.options))
            }
        }
    }
}

const fn need(
    table: &'static str,
    (what, events): (&'static str, &'static str),
    topics: &'static [&'static str],
    options: &'static str,
) -> Need {
    Need {
        table,
        what,
        events,
        basis: None,
        topics,
        options,
        instruction: None,
        tracepoints: &[],
    }
}

impl Need {
    const fn traced_by(self, tracepoints: &'static [&'static str]) -> Self {
        Self {
            tracepoints,
            ..self
        }
    }

    const fn based_on(self, basis: &'static str) -> Self {
        Self {
            basis: Some(basis),
            ..self
        }
    }

    const fn from(self, instruction: &'static str) -> Self {
        Self {
            instruction: Some(instruction),
            ..self
        }
    }
}

const SWITCH: &[&str] = &["sched_switch", "sched_waking"];
const SYSCALLS: &[&str] = &["syscalls"];

static NEEDS: [Need; 28] = [
    need(
        "syscall",
        ("system call data", "system calls"),
        SYSCALLS,
        "--what +syscalls",
    )
    .traced_by(&["all system calls"]),
    need(
        "file_life",
        ("files", "opened files"),
        SYSCALLS,
        "--what +syscalls",
    )
    .based_on("system calls")
    .traced_by(&["all system calls"]),
    need(
        "fd_life",
        ("files", "opened files"),
        SYSCALLS,
        "--what +syscalls",
    )
    .based_on("system calls")
    .traced_by(&["all system calls"]),
    need(
        "block_io",
        ("disk activity", "block requests"),
        &["block"],
        "--what +block",
    )
    .traced_by(&["block_rq_issue", "block_rq_complete"]),
    need(
        "thread_state",
        ("thread states", "context switches"),
        &["sched"],
        "--what +sched",
    )
    .traced_by(SWITCH),
    need(
        "sched_slice",
        ("CPU usage", "context switches"),
        &["sched"],
        "--what +sched",
    )
    .traced_by(SWITCH),
    need(
        "signal",
        ("signals", "signals"),
        &["signals"],
        "--what +sched",
    ),
    need(
        "irq",
        ("interrupt time", "interrupts"),
        &["irq"],
        "--what +irq",
    )
    .traced_by(&[
        "irq_handler_entry",
        "irq_handler_exit",
        "irq_softirq_entry",
        "irq_softirq_exit",
    ]),
    need(
        "net_packet",
        ("network traffic", "packets"),
        &["net"],
        "--what +net",
    )
    .traced_by(&["net_dev_queue", "net_if_receive_skb"]),
    need(
        "page_count",
        ("memory usage by thread", "page faults and allocations"),
        &["page_counts"],
        "--what +pages",
    )
    .traced_by(&["kmem_mm_page_alloc", "kmem_mm_page_free"]),
    need(
        "reclaim",
        ("waits for memory", "reclaim intervals"),
        &["mem"],
        "--what +mem",
    )
    .based_on("memory reclaim")
    .traced_by(&[
        "mm_vmscan_direct_reclaim_begin",
        "mm_vmscan_direct_reclaim_end",
    ]),
    need(
        "request",
        ("requests", "requests"),
        &["requests"],
        "--what +syscalls",
    )
    .based_on("system calls"),
    need(
        "request_phase",
        ("requests", "requests"),
        &["requests"],
        "--what +syscalls",
    )
    .based_on("system calls"),
    need(
        "request_thread",
        ("request threads", "threads that served requests"),
        &["syscalls", "sched"],
        "--what +syscalls,+sched",
    )
    .based_on("system calls and context switches"),
    need(
        "dns_lookup",
        ("DNS lookups", "DNS lookups"),
        &["dns"],
        "--what +dns",
    ),
    need(
        "dns_query",
        ("DNS queries", "DNS queries"),
        SYSCALLS,
        "--what +syscalls",
    )
    .based_on("system calls"),
    need(
        "function_call",
        ("function calls", "function calls"),
        &["functions"],
        "--function FILE:NAME",
    ),
    need(
        "usdt_event",
        ("USDT probes", "USDT probe hits"),
        &["usdt"],
        "--usdt FILE:PROVIDER:NAME",
    ),
    need(
        "lock_wait",
        ("lock contention", "lock waits"),
        &["locks"],
        "--what +locks",
    ),
    need(
        "stack_sample",
        ("stacks", "stacks"),
        &["stacks"],
        "--stacks 1ms",
    ),
    need(
        "kernel_work",
        (
            "file system work",
            "journal commits, writeback or throttling",
        ),
        &["fs"],
        "--what +fs",
    ),
    need(
        "work_item",
        ("workqueue items", "workqueue items"),
        &["work"],
        "--what +work",
    ),
    need(
        "tcp_connection",
        ("TCP connections", "TCP connections"),
        &["tcp"],
        "--what +tcp",
    ),
    need(
        "sample_gap",
        ("sampling gaps", "sampling gaps"),
        &["gaps"],
        "",
    )
    .from("import a wall-clock profile of all threads"),
    need(
        "runtime_event",
        ("runtime events", "runtime events"),
        &["runtime"],
        "",
    )
    .from("import a JFR file"),
    need("counter", ("counters", "counters"), &["counters"], "").from("import a sysstat report"),
    need("cpu", ("resource usage", "CPUs"), &[], "").from("the source does not identify CPUs"),
    need("thread", ("threads", "threads"), &[], "").from("the source does not identify them"),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TOPICS;

    #[test]
    fn every_view_reads_a_table_with_a_need() {
        for view in TOPICS.iter().flat_map(|topic| topic.views) {
            let table = view.table().name;
            assert!(Need::of(table).is_some(), "{table}");
        }
    }

    #[test]
    fn what_to_add_depends_on_the_recorder() {
        let check = |table: &str, recorder, want: &str| {
            let need = Need::of(table).expect("a table of a view");
            assert_eq!(need.record_with(recorder).as_deref(), Some(want));
        };
        check("lock_wait", Recorder::Whyslow, "--what +locks");
        let said = "`whyslow record --what +locks` records them";
        check("lock_wait", Recorder::Tracer, said);
        check("lock_wait", Recorder::Other, said);
        let said = "enable sched_switch, sched_waking";
        check("sched_slice", Recorder::Tracer, said);
        check("runtime_event", Recorder::Whyslow, "import a JFR file");
    }
}
