//! The tracks there are, and what their numbers mean.

use whyslow_model::syscall::Op;
use whyslow_model::tables::THREAD_STATES;

/// Numbers of tracks in the file.
pub(crate) const STATES: u8 = 0;
pub(crate) const CALLS: u8 = 1;
pub(crate) const CPUS: u8 = 2;
pub(crate) const LOCKS: u8 = 3;
pub(crate) const BLOCK: u8 = 4;
pub(crate) const SAMPLES: u8 = 5;
/// Heat maps, each of whose lanes is one of a device and an operation.
pub(crate) const HEAT_BLOCK: u8 = 16;
pub(crate) const HEAT_IO: u8 = 17;

/// Kinds of locks of the kernel, then what is none of these, and locks of programs: as system calls show them,
/// then as profiles do.
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

/// What a thread did when it was sampled, then why there is no sample. A value of the track has the place in
/// this list in its lowest four bits.
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

/// Operations of requests.
pub(crate) const BLOCK_OPS: [&str; 5] = ["read", "write", "discard", "flush", "other"];

/// Lanes of heat maps are numbered by device and operation.
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

/// Place of a class of operations in [`Op::ALL`].
pub(crate) fn op_place(name: &str) -> u8 {
    let last = Op::ALL.len() - 1;
    let place = Op::ALL.iter().position(|op| op.name() == name);
    place.unwrap_or(last) as u8
}

/// Group of a call. What is a file and what is the network is as in `whyslow io usage`.
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
        // These are about names: of files, unless something else is known.
        (Op::Metadata | Op::Sync, None | Some("unknown")) => FILE,
        (Op::Open, Some("unknown") | None) => FILE,
        _ => OTHER,
    }
}
