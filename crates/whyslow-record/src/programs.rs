//! The BPF programs: what each is for, and which of them this kernel accepts.

/// What can be recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Topic {
    /// System calls with arguments and paths.
    Syscalls,
    /// Scheduling: switches, wakeups, migrations.
    Sched,
    /// Block I/O.
    Block,
    /// Hard and soft interrupt handlers.
    Irq,
    /// Interrupts that CPUs send each other.
    Ipi,
    /// Contended kernel locks.
    Locks,
    /// DNS lookups by functions of libc.
    Dns,
    /// Memory reclaim, and the waits that it imposes.
    Mem,
    /// Writeback, journal commits, throttled writers.
    Fs,
    /// Workqueue items.
    Work,
    /// TCP connections.
    Tcp,
    /// Packets, retransmits and drops.
    Net,
    /// Page faults and the page cache.
    Pages,
}

impl Topic {
    /// Every topic, in the order of the command-line help.
    pub const ALL: &[Topic] = &[
        Topic::Syscalls,
        Topic::Sched,
        Topic::Block,
        Topic::Irq,
        Topic::Ipi,
        Topic::Locks,
        Topic::Dns,
        Topic::Mem,
        Topic::Fs,
        Topic::Work,
        Topic::Tcp,
        Topic::Net,
        Topic::Pages,
    ];
    /// Topics recorded by default.
    pub const DEFAULT: &[Topic] = &[
        Topic::Syscalls,
        Topic::Sched,
        Topic::Block,
        Topic::Dns,
        Topic::Locks,
        Topic::Mem,
        Topic::Fs,
        Topic::Tcp,
    ];

    /// As in `record --what`.
    pub fn name(self) -> &'static str {
        match self {
            Topic::Syscalls => "syscalls",
            Topic::Sched => "sched",
            Topic::Block => "block",
            Topic::Irq => "irq",
            Topic::Ipi => "ipi",
            Topic::Locks => "locks",
            Topic::Dns => "dns",
            Topic::Mem => "mem",
            Topic::Fs => "fs",
            Topic::Work => "work",
            Topic::Tcp => "tcp",
            Topic::Net => "net",
            Topic::Pages => "pages",
        }
    }

    /// Inverse of [`Topic::name`].
    pub fn by_name(name: &str) -> Option<Topic> {
        Topic::ALL
            .iter()
            .copied()
            .find(|topic| topic.name() == name)
    }
}

/// A program of `recorder.bpf.c`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Program {
    pub(crate) name: &'static str,
    /// `None` for programs that every recording needs to identify threads.
    pub(crate) topic: Option<Topic>,
    /// What is unavailable without it.
    pub(crate) provides: &'static str,
    pub(crate) hook: Hook,
    /// Fallbacks if the kernel rejects it, in the order in which they are tried.
    pub(crate) others: &'static [&'static str],
}

impl Program {
    const fn or(self, others: &'static [&'static str]) -> Self {
        Self { others, ..self }
    }
}

/// What a program receives from its tracepoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Kernel structures with BTF types, which can be read directly.
    Typed,
    /// The same arguments without types.
    Raw,
    /// The record that tracefs shows.
    Classic,
    /// Iterators; the fallback is `/proc`.
    Iterator,
}

impl Form {
    fn of(name: &str) -> Form {
        match name {
            name if name.starts_with("raw_") => Form::Raw,
            name if name.starts_with("tp_") => Form::Classic,
            _ => Form::Typed,
        }
    }
}

/// A program in one of its forms.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Chosen {
    pub(crate) program: &'static Program,
    /// Name of the form.
    pub(crate) form: &'static str,
}

impl Chosen {
    /// The forms of a program to try, best first.
    pub(crate) fn forms(
        program: &'static Program,
        refuse: &[Form],
    ) -> impl Iterator<Item = Chosen> {
        let names = std::iter::once(program.name).chain(program.others.iter().copied());
        let hook = program.hook;
        let may = move |name: &&str| match hook {
            Hook::Tracepoint => !refuse.contains(&Form::of(name)),
            Hook::WallIterator => !refuse.contains(&Form::Iterator),
            _ => true,
        };
        names.filter(may).map(move |form| Chosen { program, form })
    }

    pub(crate) fn stands_in(&self) -> bool {
        self.form != self.program.name
    }
}

/// How a program is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hook {
    Tracepoint,
    /// In user-space functions, which are located while recording.
    Function,
    /// On each CPU, at a fixed rate.
    Tick,
    /// On each CPU, at the requested rate.
    Sample,
    /// Run by the recorder, for every thread.
    Iterator,
    /// Run by the recorder for every thread, at each wall-clock interval.
    WallIterator,
    /// On each CPU, at the same interval.
    Wall,
}

const fn program(name: &'static str, topic: Option<Topic>, provides: &'static str) -> Program {
    Program {
        name,
        topic,
        provides,
        hook: Hook::Tracepoint,
        others: &[],
    }
}

const SYSCALLS: Option<Topic> = Some(Topic::Syscalls);
const SCHED: Option<Topic> = Some(Topic::Sched);
const BLOCK: Option<Topic> = Some(Topic::Block);
const IRQ: Option<Topic> = Some(Topic::Irq);
const IPI: Option<Topic> = Some(Topic::Ipi);
const DNS: Option<Topic> = Some(Topic::Dns);
const LOCKS: Option<Topic> = Some(Topic::Locks);
/// Takes stacks of threads that were off-CPU, and of running ones.
pub(crate) const STACKS: &str = "on_back";
/// Reads all threads, and takes the stacks of the running ones.
pub(crate) const WALL_ITERATOR: &str = "on_look";
pub(crate) const WALL_TICK: &str = "on_wall";
/// Requested function probes: entry and return are useful only together.
pub(crate) const FUNCTIONS: [&str; 2] = ["on_function", "on_function_end"];
/// Handles USDT probes.
pub(crate) const USDT: &str = "on_usdt";
/// Handle DNS lookups.
pub(crate) const LOOKUPS: [&str; 2] = ["on_lookup", "on_lookup_end"];
const MEM: Option<Topic> = Some(Topic::Mem);
const FS: Option<Topic> = Some(Topic::Fs);
const WORK: Option<Topic> = Some(Topic::Work);
const TCP: Option<Topic> = Some(Topic::Tcp);
const NET: Option<Topic> = Some(Topic::Net);
const PAGES: Option<Topic> = Some(Topic::Pages);

pub(crate) static PROGRAMS: &[Program] = &[
    program("on_sys_enter", SYSCALLS, "system calls").or(&["raw_sys_enter", "tp_sys_enter"]),
    program("on_sys_exit", SYSCALLS, "system calls").or(&["raw_sys_exit", "tp_sys_exit"]),
    Program {
        hook: Hook::Tick,
        ..program("on_tick", SYSCALLS, "long calls before they end")
    },
    Program {
        hook: Hook::Iterator,
        ..program("on_end", SYSCALLS, "calls in progress at the end")
    },
    program("on_switch", SCHED, "context switches").or(&[
        "on_switch_old",
        "raw_switch",
        "tp_switch",
    ]),
    program(STACKS, SCHED, "off-CPU stacks"),
    Program {
        hook: Hook::Sample,
        ..program("on_sample", None, "on-CPU stack samples")
    },
    Program {
        hook: Hook::WallIterator,
        ..program(WALL_ITERATOR, None, "wall-clock samples of all threads")
    },
    Program {
        hook: Hook::Wall,
        ..program(WALL_TICK, None, "wall-clock stacks of running threads")
    },
    program("on_lock_wait", LOCKS, "lock waits"),
    program("on_lock_end", LOCKS, "lock waits"),
    program("on_waking", SCHED, "wakeups").or(&["raw_waking", "tp_waking"]),
    program("on_wakeup_new", SCHED, "wakeups of new threads")
        .or(&["raw_wakeup_new", "tp_wakeup_new"]),
    program("on_fork", None, "processes of new threads").or(&["raw_fork", "tp_fork"]),
    program("on_exec", None, "program starts (exec)").or(&["raw_exec", "tp_exec"]),
    program("on_exit", None, "thread exits").or(&["raw_exit", "tp_exit"]),
    program("on_free", None, "reuse of thread ids").or(&["raw_free", "tp_free"]),
    program("on_rename", None, "thread renames").or(&["raw_rename", "tp_rename"]),
    program("on_cgroup", None, "moves between control groups"),
    program(
        "on_signal",
        SCHED,
        "signals that stop, continue or end processes",
    ),
    program("on_signal_deliver", SCHED, "delivery of these signals"),
    program("on_bio_queue", BLOCK, "submitters of block I/O")
        .or(&["raw_bio_queue", "tp_bio_queue"]),
    program("on_bio_backmerge", BLOCK, "merged block I/O")
        .or(&["raw_bio_backmerge", "tp_bio_backmerge"]),
    program("on_bio_frontmerge", BLOCK, "merged block I/O")
        .or(&["raw_bio_frontmerge", "tp_bio_frontmerge"]),
    program("on_bio_complete", BLOCK, "completions of stacked devices")
        .or(&["raw_bio_complete", "tp_bio_complete"]),
    program("on_bio_remap", BLOCK, "partitions and volumes of block I/O")
        .or(&["raw_bio_remap", "tp_bio_remap"]),
    program("on_split", BLOCK, "split block I/O").or(&["raw_split", "tp_split"]),
    program("on_getrq", BLOCK, "request allocation of block I/O").or(&["raw_getrq", "tp_getrq"]),
    program("on_rq_insert", BLOCK, "time in I/O scheduler queues")
        .or(&["raw_rq_insert", "tp_rq_insert"]),
    program("on_rq_issue", BLOCK, "requests issued to devices")
        .or(&["raw_rq_issue", "tp_rq_issue"]),
    program("on_rq_merge", BLOCK, "merged requests").or(&["raw_rq_merge", "tp_rq_merge"]),
    program("on_rq_requeue", BLOCK, "requeued requests").or(&["raw_rq_requeue", "tp_rq_requeue"]),
    program("on_rq_complete", BLOCK, "requests completed by devices")
        .or(&["raw_rq_complete", "tp_rq_complete"]),
    program("on_irq_enter", IRQ, "hard interrupt handlers"),
    program("on_irq_exit", IRQ, "hard interrupt handlers"),
    program("on_softirq_enter", IRQ, "soft interrupt handlers"),
    program("on_softirq_exit", IRQ, "soft interrupt handlers"),
    program("on_softirq_raise", IRQ, "raised soft interrupts"),
    Program {
        hook: Hook::Function,
        ..program(LOOKUPS[0], DNS, "DNS lookups")
    },
    Program {
        hook: Hook::Function,
        ..program(LOOKUPS[1], DNS, "DNS lookups")
    },
    Program {
        hook: Hook::Function,
        ..program(FUNCTIONS[0], None, "function calls (uprobes)")
    },
    Program {
        hook: Hook::Function,
        ..program(FUNCTIONS[1], None, "function calls (uprobes)")
    },
    Program {
        hook: Hook::Function,
        ..program(USDT, None, "USDT probes")
    },
    program("on_lookup_exec", DNS, "DNS lookups ended by exec"),
    program("on_hrtimer_enter", IRQ, "high-resolution timers"),
    program("on_hrtimer_exit", IRQ, "high-resolution timers"),
    program("on_ipi", IPI, "senders of inter-processor interrupts"),
    program("on_ipis", IPI, "senders of inter-processor interrupts"),
    program("on_reschedule_enter", IPI, "inter-processor interrupts"),
    program("on_reschedule_exit", IPI, "inter-processor interrupts"),
    program("on_call_enter", IPI, "inter-processor interrupts"),
    program("on_call_exit", IPI, "inter-processor interrupts"),
    program("on_call_single_enter", IPI, "inter-processor interrupts"),
    program("on_call_single_exit", IPI, "inter-processor interrupts"),
    program("on_direct_begin", MEM, "direct reclaim"),
    program("on_direct_end", MEM, "direct reclaim"),
    program("on_cgroup_begin", MEM, "reclaim at cgroup limits"),
    program("on_cgroup_end", MEM, "reclaim at cgroup limits"),
    program("on_soft_begin", MEM, "reclaim at cgroup soft limits"),
    program("on_soft_end", MEM, "reclaim at cgroup soft limits"),
    program("on_node_begin", MEM, "node reclaim"),
    program("on_node_end", MEM, "node reclaim"),
    program("on_kswapd_wake", MEM, "kswapd activity"),
    program("on_kswapd_sleep", MEM, "kswapd activity"),
    program("on_kswapd_call", MEM, "kswapd wakeups"),
    program("on_reclaim_write", MEM, "pages written by reclaim"),
    program("on_reclaim_throttled", MEM, "threads throttled by reclaim"),
    program("on_commit_begin", FS, "journal commits"),
    program("on_commit_locking", FS, "journal commit phases"),
    program("on_commit_flushing", FS, "journal commit phases"),
    program("on_commit_logging", FS, "journal commit phases"),
    program("on_commit_end", FS, "journal commits"),
    program("on_buffer_stall", FS, "stalls on journal buffers"),
    program("on_writeback_begin", FS, "writeback"),
    program("on_writeback_end", FS, "writeback"),
    program("on_dirty_throttle", FS, "throttled writers").or(&["on_dirty_throttle_old"]),
    program("on_log_wait_begin", FS, "waits for XFS log space"),
    program("on_log_wait_end", FS, "waits for XFS log space"),
    program("on_work_queue", WORK, "queued workqueue items"),
    program("on_work_activate", WORK, "concurrency limits of workqueues"),
    program("on_work_begin", WORK, "workqueue items"),
    program("on_work_end", WORK, "workqueue items"),
    program("on_tcp_state", TCP, "TCP connections"),
    program("on_receive", NET, "packets received"),
    program("on_queue", NET, "packets sent"),
    program("on_transmit", NET, "packets passed to drivers"),
    program("on_retransmit", NET, "TCP retransmits"),
    program("on_retransmit_synack", NET, "TCP retransmits"),
    program("on_drop", NET, "dropped packets"),
    program("on_fault_user", PAGES, "user page faults"),
    program("on_fault_kernel", PAGES, "kernel page faults"),
    program("on_cache_add", PAGES, "page-cache fills by file"),
    program("on_cache_remove", PAGES, "page-cache evictions"),
];

/// A form that runs instead of the preferred one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StandIn {
    /// The program that runs in another form: a program of `recorder.bpf.c`.
    pub program: &'static str,
    /// What runs instead: a program with another [`Form`], or `proc` for files of `/proc`.
    pub form: &'static str,
    /// Its topic; `None` for what every recording needs.
    pub topic: Option<Topic>,
}

/// A program that does not run, with the reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Off {
    /// Program of `recorder.bpf.c`.
    pub program: &'static str,
    /// Its topic; `None` for what every recording needs.
    pub topic: Option<Topic>,
    /// What is not recorded without it.
    pub provides: &'static str,
    /// The kernel's or the recorder's reason.
    pub reason: String,
}
