//! All tracks, and what their numbers mean.

use whyslow_model::syscall::Op;
use whyslow_model::tables::THREAD_STATES;

/// Track numbers in the file.
pub(crate) const STATES: u8 = 0;
pub(crate) const CALLS: u8 = 1;
pub(crate) const CPUS: u8 = 2;
pub(crate) const LOCKS: u8 = 3;
pub(crate) const BLOCK: u8 = 4;
pub(crate) const SAMPLES: u8 = 5;
/// Heat maps: one lane for each operation, of kind `block` also for each device.
pub(crate) const HEAT_BLOCK: u8 = 16;
pub(crate) const HEAT_IO: u8 = 17;

/// Kernel lock types and `other`, then user-space locks: `futex` from system calls, the rest from
/// profiles.
pub(crate) const LOCK_KINDS: [&str; 12] = [
    "mutex",
    "rwsem",
    "percpu_rwsem",
    "rt_mutex",
    "semaphore",
    "spin",
    "rwlock",
    "other",
    "futex",
    "monitor",
    "library_lock",
    "pthread",
];
pub(crate) const LOCK_OTHER: u8 = 7;
pub(crate) const LOCK_FUTEX: u8 = 8;

/// Thread states of samples, then reasons of sampling gaps. The lowest four bits of a value of the
/// track are an index into this list.
pub(crate) const SAMPLE_CLASSES: [&str; 10] = [
    "running",
    "runnable",
    "sleeping",
    "uninterruptible",
    "waiting",
    "unknown",
    "kernel_wait",
    "page_fault",
    "sampler_late",
    "cpu_starved",
];

/// Operations of block requests.
pub(crate) const BLOCK_OPS: [&str; 5] = ["read", "write", "discard", "flush", "other"];

/// Lane id of a heat map of kind `block`: device * this + operation.
pub(crate) const OPS_OF_DEVICE: i32 = 16;

pub(crate) struct Kind {
    pub(crate) track: u8,
    pub(crate) name: &'static str,
    pub(crate) groups: [&'static str; 4],
}

pub(crate) const KINDS: [Kind; 6] = [
    Kind {
        track: STATES,
        name: "states",
        groups: ["running", "runnable", "uninterruptible", "other"],
    },
    Kind {
        track: CALLS,
        name: "calls",
        groups: ["file", "network", "waiting", "other"],
    },
    Kind {
        track: CPUS,
        name: "cpus",
        groups: ["user", "system", "irq", ""],
    },
    Kind {
        track: LOCKS,
        name: "locks",
        groups: ["kernel lock", "program's lock", "", ""],
    },
    Kind {
        track: BLOCK,
        name: "block",
        groups: ["read only", "write only", "both", "other"],
    },
    Kind {
        track: SAMPLES,
        name: "samples",
        groups: [
            "running",
            "waiting",
            "kernel wait (inferred)",
            "not sampled",
        ],
    },
];

impl Kind {
    pub(crate) fn values(&self) -> Vec<&'static str> {
        match self.track {
            STATES => THREAD_STATES.to_vec(),
            CALLS => Op::ALL.iter().map(|op| op.name()).collect(),
            LOCKS => LOCK_KINDS.to_vec(),
            SAMPLES => SAMPLE_CLASSES.to_vec(),
            _ => Vec::new(),
        }
    }
}

/// Index of a class of operations in [`Op::ALL`].
pub(crate) fn op_index(name: &str) -> u8 {
    let last = Op::ALL.len() - 1;
    let index = Op::ALL.iter().position(|op| op.name() == name);
    index.unwrap_or(last) as u8
}

/// Group of a system call. Files and network are distinguished as in `whyslow io usage`.
pub(crate) fn call_group(op: Op, class: Option<&str>) -> u8 {
    const FILE: u8 = 0;
    const NETWORK: u8 = 1;
    const WAITING: u8 = 2;
    const OTHER: u8 = 3;
    match (op, class) {
        (Op::Wait | Op::Lock | Op::Sleep, _) => WAITING,
        (op, _) if !op.is_io() => OTHER,
        (_, Some("file" | "directory" | "block" | "memfd")) => FILE,
        (_, Some("inet" | "inet6")) => NETWORK,
        // These calls take path names: files unless known otherwise.
        (Op::Metadata | Op::Sync, None | Some("unknown")) => FILE,
        (Op::Open, Some("unknown") | None) => FILE,
        _ => OTHER,
    }
}
