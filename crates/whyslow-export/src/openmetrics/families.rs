//! What is measured: kinds of operations and what tells their series apart.

use whyslow_analysis::Kind;

/// Upper ends of the buckets of durations, in seconds: from a page found in memory to a hung disk.
pub(super) const BUCKETS: [f64; 14] = [
    1e-5, 1e-4, 2.5e-4, 5e-4, 1e-3, 2.5e-3, 5e-3, 1e-2, 2.5e-2, 5e-2, 0.1, 0.5, 1.0, 10.0,
];

/// Operations of a kind, counted once each, when they end.
pub(super) struct Measured {
    pub(super) name: &'static str,
    pub(super) help: &'static str,
    pub(super) kind: Kind,
    pub(super) table: &'static str,
    /// What tells series apart: the name of a label, and the column that it comes from.
    pub(super) labels: &'static [(&'static str, &'static str)],
    /// Of what lasts on, how long its first part took.
    pub(super) dur: &'static str,
    pub(super) bytes: Option<&'static str>,
    pub(super) error: Option<&'static str>,
    /// With a histogram of durations; else only how many there were.
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
        help: "Requests to block devices, from the queue to the end",
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
        help: "System calls that do input or output, by command",
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
        help: "Waits of runnable threads for a CPU",
        kind: Kind::Sched,
        table: "thread_state",
        labels: &[("reason", "reason")],
        ..NOTHING
    },
    Measured {
        name: "lock_wait",
        help: "Waits for contended locks of the kernel and, as profiles show them, of programs",
        kind: Kind::Locks,
        table: "lock_wait",
        labels: &[("kind", "kind")],
        ..NOTHING
    },
    Measured {
        name: "irq_handler",
        help: "Interrupt handlers, what interrupted them included",
        kind: Kind::Irq,
        table: "irq",
        labels: &[("kind", "kind"), ("handler", "name")],
        ..NOTHING
    },
    Measured {
        name: "dns_lookup",
        help: "Lookups of host names",
        kind: Kind::Dns,
        table: "dns_lookup",
        labels: &[("result", "result")],
        ..NOTHING
    },
    Measured {
        name: "tcp_connect",
        help: "TCP connections that this machine opened, until they were answered or given up",
        kind: Kind::Tcp,
        table: "tcp_connection",
        labels: &[("outcome", "outcome")],
        dur: "connect_ns",
        ..NOTHING
    },
];

impl Measured {
    /// The columns that are read of each row.
    pub(super) fn columns(&self) -> Vec<&'static str> {
        let labels = self.labels.iter().map(|(_, column)| *column);
        let figures = ["ts_ns", self.dur].into_iter();
        let optional = self.bytes.into_iter().chain(self.error);
        figures.chain(labels).chain(optional).collect()
    }
}
