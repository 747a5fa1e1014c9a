//! Metric families: kinds of operations and the labels of their series.

use whyslow_analysis::Kind;

/// Upper bounds of the duration buckets in seconds: from a page found in memory to a hung disk.
pub(super) const BUCKETS: [f64; 14] = [
    1e-5, 1e-4, 2.5e-4, 5e-4, 1e-3, 2.5e-3, 5e-3, 1e-2, 2.5e-2, 5e-2, 0.1, 0.5, 1.0, 10.0,
];

/// Operations of a kind, each counted once at its end.
pub(super) struct Measured {
    pub(super) name: &'static str,
    pub(super) help: &'static str,
    pub(super) kind: Kind,
    pub(super) table: &'static str,
    /// Labels of the series: label name and source column.
    pub(super) labels: &'static [(&'static str, &'static str)],
    /// Duration column; for long-lived operations, the duration of the first phase.
    pub(super) dur: &'static str,
    pub(super) bytes: Option<&'static str>,
    pub(super) error: Option<&'static str>,
    /// Whether there is a histogram of durations, or only a count.
    pub(super) is_timed: bool,
}

const NOTHING: Measured = Measured {
    name: "",
    help: "",
    kind: Kind::Syscalls,
    table: "",
    labels: &[],
    dur: "dur_ns",
    bytes: None,
    error: None,
    is_timed: true,
};

pub(super) const MEASURED: &[Measured] = &[
    Measured {
        name: "block_request",
        help: "Block requests, from queueing to completion",
        kind: Kind::Block,
        table: "block_io",
        labels: &[("device", "dev"), ("op", "op")],
        bytes: Some("bytes"),
        error: Some("error"),
        ..NOTHING
    },
    Measured {
        name: "syscall",
        help: "System calls by name",
        kind: Kind::Syscalls,
        table: "syscall",
        labels: &[("syscall", "name")],
        error: Some("error"),
        ..NOTHING
    },
    Measured {
        name: "io",
        help: "I/O system calls by command",
        kind: Kind::Io,
        table: "syscall",
        labels: &[("command", "comm"), ("op", "op")],
        bytes: Some("bytes"),
        error: Some("error"),
        is_timed: false,
        ..NOTHING
    },
    Measured {
        name: "cpu_wait",
        help: "Run-queue latency of threads",
        kind: Kind::Sched,
        table: "thread_state",
        labels: &[("reason", "reason")],
        ..NOTHING
    },
    Measured {
        name: "lock_wait",
        help: "Waits for contended kernel locks, and for user-space locks from profiles",
        kind: Kind::Locks,
        table: "lock_wait",
        labels: &[("kind", "kind")],
        ..NOTHING
    },
    Measured {
        name: "irq_handler",
        help: "Interrupt handlers, including nested interrupts",
        kind: Kind::Irq,
        table: "irq",
        labels: &[("kind", "kind"), ("handler", "name")],
        ..NOTHING
    },
    Measured {
        name: "dns_lookup",
        help: "DNS lookups",
        kind: Kind::Dns,
        table: "dns_lookup",
        labels: &[("result", "result")],
        ..NOTHING
    },
    Measured {
        name: "tcp_connect",
        help: "TCP connection attempts of this machine, until they succeeded or failed",
        kind: Kind::Tcp,
        table: "tcp_connection",
        labels: &[("outcome", "outcome")],
        dur: "connect_ns",
        ..NOTHING
    },
];

impl Measured {
    /// The columns that are read from each row.
    pub(super) fn columns(&self) -> Vec<&'static str> {
        let labels = self.labels.iter().map(|(_, column)| *column);
        let figures = ["ts_ns", self.dur].into_iter();
        let optional = self.bytes.into_iter().chain(self.error);
        figures.chain(labels).chain(optional).collect()
    }
}
