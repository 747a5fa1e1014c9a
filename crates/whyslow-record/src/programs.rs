//! Which programs there are, what each is for, and which of them this kernel takes.

/// What a recording can hold.
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
    /// Lookups of host names by functions of libc.
    Dns,
    /// Memory reclaim, and waits that it imposes.
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
    /// Every topic, in the order of the command line's help.
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
    /// What is recorded unless something else is asked for.
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

    /// As `record --what` has it.
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

    /// The topic of that [`Topic::name`].
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
    /// None of what every recording needs to know whose events are.
    pub(crate) topic: Option<Topic>,
    /// What is not known without it.
    pub(crate) tells: &'static str,
    pub(crate) hook: Hook,
    /// What stands in for it where the kernel refuses it, in the order in which it is tried.
    pub(crate) others: &'static [&'static str],
}

impl Program {
    const fn or(self, others: &'static [&'static str]) -> Self {
        Self { others, ..self }
    }
}

/// What a program at a tracepoint gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Structures whose types the kernel describes, to be read like one's own.
    Typed,
    /// The same without types.
    Raw,
    /// What tracefs shows.
    Classic,
    /// Iterators, for which files of `/proc` stand in.
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
    /// The forms of a program that may be tried, best first.
    pub(crate) fn forms(
        program: &'static Program,
        refuse: &[Form],
    ) -> impl Iterator<Item = Chosen> {
        let names = std::iter::once(program.name).chain(program.others.iter().copied());
        let hook = program.hook;
        let may = move |name: &&str| match hook {
            Hook::Tracepoint => !refuse.contains(&Form::of(name)),
            Hook::Look => !refuse.contains(&Form::Iterator),
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
    /// In functions of programs, which are found while recording.
    Function,
    /// On each CPU, some times a second.
    Tick,
    /// The same, as often as asked for.
    Sample,
    /// By the recorder itself, for every thread.
    Iterator,
    /// The same, each interval of the clock on the wall.
    Look,
    /// On each CPU, as often.
    Wall,
}

const fn program(name: &'static str, topic: Option<Topic>, tells: &'static str) -> Program {
    Program {
        name,
        topic,
        tells,
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
/// What takes stacks of threads that were away from the CPU, and of those that run.
pub(crate) const STACKS: &str = "on_back";
/// What looks at all threads, and what takes the stacks of those that run.
pub(crate) const LOOKS: &str = "on_look";
pub(crate) const RUNS: &str = "on_wall";
/// What watches functions that were asked for: neither is of use without the other.
pub(crate) const FUNCTIONS: [&str; 2] = ["on_function", "on_function_end"];
/// What watches static probes.
pub(crate) const USDT: &str = "on_usdt";
/// Those for lookups of names.
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
        ..program(
            "on_end",
            SYSCALLS,
            "calls that have not returned at the end",
        )
    },
    program("on_switch", SCHED, "who runs").or(&["on_switch_old", "raw_switch", "tp_switch"]),
    program(STACKS, SCHED, "stacks of threads that waited"),
    Program {
        hook: Hook::Sample,
        ..program("on_sample", None, "stacks of what runs")
    },
    Program {
        hook: Hook::Look,
        ..program(LOOKS, None, "what all threads do, at once")
    },
    Program {
        hook: Hook::Wall,
        ..program(
            RUNS,
            None,
            "stacks of threads that run, by the clock on the wall",
        )
    },
    program("on_lock_wait", LOCKS, "waits for locks"),
    program("on_lock_end", LOCKS, "waits for locks"),
    program("on_waking", SCHED, "who wakes whom").or(&["raw_waking", "tp_waking"]),
    program("on_wakeup_new", SCHED, "who wakes new threads")
        .or(&["raw_wakeup_new", "tp_wakeup_new"]),
    program("on_fork", None, "which process a new thread belongs to").or(&["raw_fork", "tp_fork"]),
    program("on_exec", None, "which program a process runs").or(&["raw_exec", "tp_exec"]),
    program("on_exit", None, "when threads end").or(&["raw_exit", "tp_exit"]),
    program("on_free", None, "when ids of threads are used again").or(&["raw_free", "tp_free"]),
    program("on_rename", None, "names of threads").or(&["raw_rename", "tp_rename"]),
    program(
        "on_cgroup",
        None,
        "processes that are moved into a control group",
    ),
    program("on_signal", SCHED, "signals that stop, continue or end"),
    program(
        "on_signal_deliver",
        SCHED,
        "when these signals have an effect",
    ),
    program("on_bio_queue", BLOCK, "who submits block I/O").or(&["raw_bio_queue", "tp_bio_queue"]),
    program("on_bio_backmerge", BLOCK, "merged block I/O")
        .or(&["raw_bio_backmerge", "tp_bio_backmerge"]),
    program("on_bio_frontmerge", BLOCK, "merged block I/O")
        .or(&["raw_bio_frontmerge", "tp_bio_frontmerge"]),
    program("on_bio_complete", BLOCK, "completions of stacked devices")
        .or(&["raw_bio_complete", "tp_bio_complete"]),
    program(
        "on_bio_remap",
        BLOCK,
        "which partition or volume block I/O was for",
    )
    .or(&["raw_bio_remap", "tp_bio_remap"]),
    program("on_split", BLOCK, "split block I/O").or(&["raw_split", "tp_split"]),
    program("on_getrq", BLOCK, "when block I/O gets its request").or(&["raw_getrq", "tp_getrq"]),
    program(
        "on_rq_insert",
        BLOCK,
        "time in the queues of I/O schedulers",
    )
    .or(&["raw_rq_insert", "tp_rq_insert"]),
    program("on_rq_issue", BLOCK, "when devices get requests").or(&["raw_rq_issue", "tp_rq_issue"]),
    program("on_rq_merge", BLOCK, "merged requests").or(&["raw_rq_merge", "tp_rq_merge"]),
    program("on_rq_requeue", BLOCK, "requests that were put back")
        .or(&["raw_rq_requeue", "tp_rq_requeue"]),
    program("on_rq_complete", BLOCK, "when devices complete requests")
        .or(&["raw_rq_complete", "tp_rq_complete"]),
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
        ..program(LOOKUPS[0], DNS, "lookups of names")
    },
    Program {
        hook: Hook::Function,
        ..program(LOOKUPS[1], DNS, "lookups of names")
    },
    Program {
        hook: Hook::Function,
        ..program(FUNCTIONS[0], None, "calls of functions")
    },
    Program {
        hook: Hook::Function,
        ..program(FUNCTIONS[1], None, "calls of functions")
    },
    Program {
        hook: Hook::Function,
        ..program(USDT, None, "static probes of programs")
    },
    program("on_lookup_exec", DNS, "lookups that exec ended"),
    program("on_hrtimer_enter", IRQ, "high-resolution timers"),
    program("on_hrtimer_exit", IRQ, "high-resolution timers"),
    program("on_ipi", IPI, "who interrupts other CPUs"),
    program("on_ipis", IPI, "who interrupts other CPUs"),
    program("on_reschedule_enter", IPI, "interrupts by other CPUs"),
    program("on_reschedule_exit", IPI, "interrupts by other CPUs"),
    program("on_call_enter", IPI, "interrupts by other CPUs"),
    program("on_call_exit", IPI, "interrupts by other CPUs"),
    program("on_call_single_enter", IPI, "interrupts by other CPUs"),
    program("on_call_single_exit", IPI, "interrupts by other CPUs"),
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
    program("on_dirty_throttle", FS, "writers that are held back").or(&["on_dirty_throttle_old"]),
    program("on_log_wait_begin", FS, "waits for room in logs of XFS"),
    program("on_log_wait_end", FS, "waits for room in logs of XFS"),
    program("on_work_queue", WORK, "who puts off work, and when"),
    program("on_work_activate", WORK, "limits of workqueues"),
    program("on_work_begin", WORK, "work that was put off"),
    program("on_work_end", WORK, "work that was put off"),
    program("on_tcp_state", TCP, "TCP connections"),
    program("on_receive", NET, "packets received"),
    program("on_queue", NET, "packets sent"),
    program("on_transmit", NET, "what drivers did with packets"),
    program("on_retransmit", NET, "what TCP sends again"),
    program("on_retransmit_synack", NET, "what TCP sends again"),
    program("on_drop", NET, "packets thrown away"),
    program("on_fault_user", PAGES, "page faults of programs"),
    program("on_fault_kernel", PAGES, "page faults of the kernel"),
    program(
        "on_cache_add",
        PAGES,
        "what comes into the page cache, by file",
    ),
    program("on_cache_remove", PAGES, "pages that leave the page cache"),
];

/// A form that stands in for a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StandIn {
    /// What another form of runs: a program of `recorder.bpf.c`.
    pub program: &'static str,
    /// What runs in its place: a program with another [`Form`], or `proc` for files of `/proc`.
    pub form: &'static str,
    /// Topic that it is for; `None` for what every recording needs.
    pub topic: Option<Topic>,
}

/// A program that does not run, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Off {
    /// Program of `recorder.bpf.c`.
    pub program: &'static str,
    /// Topic that it is for; `None` for what every recording needs.
    pub topic: Option<Topic>,
    /// What is not recorded without it.
    pub tells: &'static str,
    /// Reason of the kernel, or of the recorder.
    pub reason: String,
}
