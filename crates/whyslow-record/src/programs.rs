//! Which programs there are, what each is for, and which of them this kernel takes.

/// What a recording can hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Topic {
    Syscalls,
    Sched,
    Block,
    Irq,
    Locks,
    Dns,
    Mem,
    Fs,
    Net,
    Pages,
}

impl Topic {
    pub const ALL: &[Topic] = &[
        Topic::Syscalls,
        Topic::Sched,
        Topic::Block,
        Topic::Irq,
        Topic::Locks,
        Topic::Dns,
        Topic::Mem,
        Topic::Fs,
        Topic::Net,
        Topic::Pages,
    ];
    /// What is recorded unless something else is asked for.
    pub const DEFAULT: &[Topic] = &[
        Topic::Syscalls,
        Topic::Sched,
        Topic::Block,
        Topic::Dns,
        Topic::Locks,
        Topic::Mem,
        Topic::Fs,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Topic::Syscalls => "syscalls",
            Topic::Sched => "sched",
            Topic::Block => "block",
            Topic::Irq => "irq",
            Topic::Locks => "locks",
            Topic::Dns => "dns",
            Topic::Mem => "mem",
            Topic::Fs => "fs",
            Topic::Net => "net",
            Topic::Pages => "pages",
        }
    }

    pub fn by_name(name: &str) -> Option<Topic> {
        Topic::ALL
            .iter()
            .copied()
            .find(|topic| topic.name() == name)
    }
}

/// A program of `recorder.bpf.c`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Program {
    pub(crate) name: &'static str,
    /// None of what every recording needs to know whose events are.
    pub(crate) topic: Option<Topic>,
    /// What is not known without it.
    pub(crate) tells: &'static str,
    pub(crate) hook: Hook,
}

/// How a program is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hook {
    Tracepoint,
    /// In functions of programs, which are found while recording.
    Function,
    /// On each CPU, some times a second.
    Tick,
    /// The same, as often as asked for.
    Sample,
    /// By the recorder itself, for every thread.
    Iterator,
}

const fn program(name: &'static str, topic: Option<Topic>, tells: &'static str) -> Program {
    Program {
        name,
        topic,
        tells,
        hook: Hook::Tracepoint,
    }
}

const SYSCALLS: Option<Topic> = Some(Topic::Syscalls);
const SCHED: Option<Topic> = Some(Topic::Sched);
const BLOCK: Option<Topic> = Some(Topic::Block);
const IRQ: Option<Topic> = Some(Topic::Irq);
const DNS: Option<Topic> = Some(Topic::Dns);
const LOCKS: Option<Topic> = Some(Topic::Locks);
/// What takes stacks of threads that were away from the CPU, and of those that run.
pub(crate) const STACKS: &str = "on_back";
const MEM: Option<Topic> = Some(Topic::Mem);
const FS: Option<Topic> = Some(Topic::Fs);
const NET: Option<Topic> = Some(Topic::Net);
const PAGES: Option<Topic> = Some(Topic::Pages);

pub(crate) static PROGRAMS: &[Program] = &[
    program("on_sys_enter", SYSCALLS, "system calls"),
    program("on_sys_exit", SYSCALLS, "system calls"),
    program("raw_sys_enter", SYSCALLS, "system calls"),
    program("raw_sys_exit", SYSCALLS, "system calls"),
    Program {
        hook: Hook::Tick,
        ..program("on_tick", SYSCALLS, "long calls before they end")
    },
    Program {
        hook: Hook::Iterator,
        ..program(
            "on_end",
            SYSCALLS,
            "calls that have not returned at the end",
        )
    },
    program("on_switch", SCHED, "who runs"),
    program("on_switch_old", SCHED, "who runs"),
    program(STACKS, SCHED, "stacks of threads that waited"),
    Program {
        hook: Hook::Sample,
        ..program("on_sample", None, "stacks of what runs")
    },
    program("on_lock_wait", LOCKS, "waits for locks"),
    program("on_lock_end", LOCKS, "waits for locks"),
    program("on_waking", SCHED, "who wakes whom"),
    program("on_wakeup_new", SCHED, "who wakes new threads"),
    program("on_fork", None, "which process a new thread belongs to"),
    program("on_exec", None, "which program a process runs"),
    program("on_exit", None, "when threads end"),
    program("on_free", None, "when ids of threads are used again"),
    program("on_rename", None, "names of threads"),
    program(
        "on_cgroup",
        None,
        "processes that are moved into a control group",
    ),
    program("on_bio_queue", BLOCK, "who submits block I/O"),
    program("on_bio_backmerge", BLOCK, "merged block I/O"),
    program("on_bio_frontmerge", BLOCK, "merged block I/O"),
    program("on_bio_complete", BLOCK, "completions of stacked devices"),
    program(
        "on_bio_remap",
        BLOCK,
        "which partition or volume block I/O was for",
    ),
    program("on_split", BLOCK, "split block I/O"),
    program("on_getrq", BLOCK, "when block I/O gets its request"),
    program(
        "on_rq_insert",
        BLOCK,
        "time in the queues of I/O schedulers",
    ),
    program("on_rq_issue", BLOCK, "when devices get requests"),
    program("on_rq_merge", BLOCK, "merged requests"),
    program("on_rq_requeue", BLOCK, "requests that were put back"),
    program("on_rq_complete", BLOCK, "when devices complete requests"),
    program("on_irq_enter", IRQ, "hard interrupt handlers"),
    program("on_irq_exit", IRQ, "hard interrupt handlers"),
    program("on_softirq_enter", IRQ, "soft interrupt handlers"),
    program("on_softirq_exit", IRQ, "soft interrupt handlers"),
    program(
        "on_softirq_raise",
        IRQ,
        "when soft interrupts were asked for",
    ),
    Program {
        hook: Hook::Function,
        ..program("on_lookup", DNS, "lookups of names")
    },
    Program {
        hook: Hook::Function,
        ..program("on_lookup_end", DNS, "lookups of names")
    },
    program("on_lookup_exec", DNS, "lookups that exec ended"),
    program("on_hrtimer_enter", IRQ, "high-resolution timers"),
    program("on_hrtimer_exit", IRQ, "high-resolution timers"),
    program("on_direct_begin", MEM, "threads that reclaim memory"),
    program("on_direct_end", MEM, "threads that reclaim memory"),
    program("on_cgroup_begin", MEM, "reclaim at limits of cgroups"),
    program("on_cgroup_end", MEM, "reclaim at limits of cgroups"),
    program("on_soft_begin", MEM, "reclaim at soft limits of cgroups"),
    program("on_soft_end", MEM, "reclaim at soft limits of cgroups"),
    program("on_node_begin", MEM, "reclaim of nodes"),
    program("on_node_end", MEM, "reclaim of nodes"),
    program("on_kswapd_wake", MEM, "when kswapd is awake"),
    program("on_kswapd_sleep", MEM, "when kswapd is awake"),
    program("on_kswapd_call", MEM, "who calls kswapd"),
    program("on_reclaim_write", MEM, "pages that reclaim writes"),
    program("on_reclaim_throttled", MEM, "threads held back by reclaim"),
    program("on_commit_begin", FS, "commits of journals"),
    program("on_commit_locking", FS, "phases of commits"),
    program("on_commit_flushing", FS, "phases of commits"),
    program("on_commit_logging", FS, "phases of commits"),
    program("on_commit_end", FS, "commits of journals"),
    program("on_buffer_stall", FS, "stalls at buffers of journals"),
    program("on_writeback_begin", FS, "writeback"),
    program("on_writeback_end", FS, "writeback"),
    program("on_dirty_throttle", FS, "writers that are held back"),
    program("on_dirty_throttle_old", FS, "writers that are held back"),
    program("on_log_wait_begin", FS, "waits for room in logs of XFS"),
    program("on_log_wait_end", FS, "waits for room in logs of XFS"),
    program("on_receive", NET, "packets received"),
    program("on_queue", NET, "packets sent"),
    program("on_transmit", NET, "what drivers did with packets"),
    program("on_retransmit", NET, "what TCP sends again"),
    program("on_retransmit_synack", NET, "what TCP sends again"),
    program("on_drop", NET, "packets thrown away"),
    program("on_fault_user", PAGES, "page faults of programs"),
    program("on_fault_kernel", PAGES, "page faults of the kernel"),
    program("on_cache_add", PAGES, "pages that come into the page cache"),
    program("on_cache_remove", PAGES, "pages that leave the page cache"),
];

/// Programs for older kernels, each loaded where the other one is refused.
pub(crate) const OLDER: &[(&str, &str)] = &[
    // Need no types.
    ("on_sys_enter", "raw_sys_enter"),
    ("on_sys_exit", "raw_sys_exit"),
    // Hands over no state of the thread that goes.
    ("on_switch", "on_switch_old"),
    // Hands over the thresholds one by one.
    ("on_dirty_throttle", "on_dirty_throttle_old"),
];

/// A program that does not run, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Off {
    pub program: &'static str,
    pub topic: Option<Topic>,
    pub tells: &'static str,
    pub reason: String,
}
