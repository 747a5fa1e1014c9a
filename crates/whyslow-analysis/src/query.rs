//! A question, as the command line, the server and tests put it.

use whyslow_model::{Ns, Window};

/// What is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// System calls that do input or output.
    Io,
    /// Requests to block devices.
    Block,
    /// Files by path, pattern and directory.
    Files,
    /// Threads, and what they did with their time.
    Threads,
    /// States of threads: running, runnable, asleep.
    States,
    /// Waits for a CPU.
    Sched,
    /// Time on CPUs.
    Cpu,
    /// Interrupt handlers.
    Irq,
    /// System calls of every class.
    Syscalls,
    /// Page allocation, page faults and reclaim.
    Mem,
    /// Journal commits, writeback, throttled writers.
    Fs,
    /// Workqueue items.
    Work,
    /// Packets, retransmits and drops.
    Net,
    /// TCP connections.
    Tcp,
    /// Signals that stop, continue or end processes.
    Signals,
    /// Lookups of host names.
    Dns,
    /// DNS queries to name servers.
    NameServers,
    /// Requests of clients and servers.
    Requests,
    /// Function calls (uprobes).
    Functions,
    /// Hits of static probes (USDT).
    Usdt,
    /// Waits for contended locks.
    Locks,
    /// Stacks of long waits, and samples.
    Stacks,
    /// Sampling gaps of wall-clock profiles.
    Gaps,
    /// Events of a runtime (JVM).
    Runtime,
    /// Utilisation, saturation and errors of resources.
    Use,
    /// Counters, sampled over time.
    Counters,
}

/// How it is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Verb {
    /// Totals by group, with the share of each.
    Usage,
    /// Count, minimum, mean, percentiles and maximum by group.
    Stats,
    /// Histogram of lengths or sizes.
    Hist,
    /// Rows with the greatest values of a column.
    Top,
    /// Rows in order of time.
    Log,
    /// Heat map: time by length.
    Heat,
    /// `io syscalls`: statistics by system call name.
    Syscalls,
    /// `files tree`: by directory.
    Tree,
    /// `files open --at`.
    Open,
    /// `threads list`.
    List,
    /// `threads states`: time by state.
    States,
    /// `threads timeline`: states over time.
    Timeline,
    /// `threads dump --at`: stacks of all threads.
    Dump,
    /// `threads gaps`: times without samples.
    Gaps,
    /// `threads flame`: time by stack as a tree.
    Flame,
    /// `locks chains`: who waited for whom.
    Chains,
    /// `block outliers`: long requests, and devices that deviate from their peers.
    Outliers,
    /// `locks stacks`: time by stack.
    Stacks,
    /// What is more frequent among these than among others.
    Differs,
    /// `requests threads`: who worked for a request when, and in which state.
    Threads,
    /// `requests outbound`: what requests asked of others.
    Outbound,
    /// `requests bursts`: clients that asked or failed far more than usual.
    Bursts,
}

impl Kind {
    /// The word of the command line.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Io => "io",
            Kind::Block => "block",
            Kind::Files => "files",
            Kind::Threads => "threads",
            Kind::States => "states",
            Kind::Sched => "sched",
            Kind::Cpu => "cpu",
            Kind::Irq => "irq",
            Kind::Syscalls => "syscalls",
            Kind::Mem => "mem",
            Kind::Fs => "fs",
            Kind::Work => "work",
            Kind::Net => "net",
            Kind::Tcp => "tcp",
            Kind::Signals => "signals",
            Kind::Dns => "dns",
            Kind::NameServers => "nameservers",
            Kind::Requests => "requests",
            Kind::Functions => "functions",
            Kind::Usdt => "usdt",
            Kind::Locks => "locks",
            Kind::Stacks => "stacks",
            Kind::Gaps => "gaps",
            Kind::Runtime => "runtime",
            Kind::Use => "use",
            Kind::Counters => "counters",
        }
    }
}

impl Verb {
    /// The word of the command line.
    pub fn name(self) -> &'static str {
        match self {
            Verb::Usage => "usage",
            Verb::Stats => "stats",
            Verb::Hist => "hist",
            Verb::Top => "top",
            Verb::Log => "log",
            Verb::Heat => "heat",
            Verb::Syscalls => "syscalls",
            Verb::Tree => "tree",
            Verb::Open => "open",
            Verb::List => "list",
            Verb::States => "states",
            Verb::Timeline => "timeline",
            Verb::Dump => "dump",
            Verb::Gaps => "gaps",
            Verb::Flame => "flame",
            Verb::Chains => "chains",
            Verb::Outliers => "outliers",
            Verb::Stacks => "stacks",
            Verb::Differs => "differs",
            Verb::Threads => "threads",
            Verb::Outbound => "outbound",
            Verb::Bursts => "bursts",
        }
    }
}

/// A device as people write it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeviceRef {
    /// Name without `/dev/`: a disk, a partition or a mapping.
    Name(String),
    /// `MAJOR:MINOR`.
    Number {
        /// Major number of the `dev_t`.
        major: i32,
        /// Minor number of the `dev_t`.
        minor: i32,
    },
}

/// Which rows count. Empty lists and `None` let everything through; within a list any match
/// suffices, between fields all must hold.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Filter {
    /// Kernel process ids.
    pub pids: Vec<i32>,
    /// Kernel thread ids.
    pub tids: Vec<i32>,
    /// Globs on the thread's name.
    pub comms: Vec<String>,
    /// Regular expressions on the thread's name.
    pub threads: Vec<String>,
    /// Regular expressions on functions: some frame of the stack must match.
    pub frames: Vec<String>,
    /// Regular expressions on functions: no frame of the stack may match.
    pub frames_not: Vec<String>,
    /// Globs on the path of the process's control group, as those on files.
    pub cgroups: Vec<String>,
    /// Whole disks or partitions.
    pub devices: Vec<DeviceRef>,
    /// Globs on the path (`*` crosses no `/`, `**` does; a glob without `/` is matched against the
    /// last component too).
    pub files: Vec<String>,
    /// Operation classes (`read`, `open`, …) or system call names (`openat`).
    pub ops: Vec<String>,
    /// Exact names of system calls or interrupt handlers, also where a class is called the same.
    pub names: Vec<String>,
    /// Exact size in bytes.
    pub size: Option<i64>,
    /// Bytes moved; rows without a size pass, as failed calls, opens and syncs have none.
    pub size_min: Option<i64>,
    /// Greatest number of bytes moved, inclusive; rows without a size pass.
    pub size_max: Option<i64>,
    /// Least length in ns, inclusive; a row whose length is not known passes if the part of it that
    /// was recorded is as long.
    pub dur_min: Option<Ns>,
    /// Greatest length in ns, inclusive; rows whose length is not known do not pass.
    pub dur_max: Option<Ns>,
    /// Part of the duration that is meant instead of the whole, here and in histograms and heat
    /// maps: `queue`, `device`, `raise`.
    pub stage: Option<String>,
    /// Only failed operations.
    pub errors_only: bool,
    /// Values of keys, each key once. Rows that have none do not pass.
    pub values: Vec<KeyFilter>,
    /// Only what ended in this range, so that parts of a window share nothing.
    pub ended_in: Option<Window>,
    /// CPU numbers.
    pub cpus: Vec<i32>,
    /// Leave out the tracer's own processes.
    pub no_tracer: bool,
}

/// Values that a key of `--by` may have: of texts globs, in which `*` matches anything; of numbers
/// these themselves, or `5xx` for all from 500 to 599.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyFilter {
    /// Name of the key, as `--by` has it.
    pub key: &'static str,
    /// Any of these.
    pub values: Vec<String>,
}

impl Filter {
    /// Whether stacks are looked at.
    pub fn is_of_stacks(&self) -> bool {
        !self.frames.is_empty() || !self.frames_not.is_empty()
    }

    /// The same for what has no stacks.
    pub(crate) fn without_stacks(&self) -> Self {
        Self {
            frames: Vec::new(),
            frames_not: Vec::new(),
            ..self.clone()
        }
    }
}

/// Order of the rows of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sort {
    /// Name of a column of the answer.
    pub column: String,
    /// Least value first.
    pub ascending: bool,
}

/// What the buckets of histograms and heat maps hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Weight {
    /// Number of rows.
    #[default]
    Count,
    /// Count × latency.
    Intensity,
}

/// Buckets of `hist`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Bins {
    /// Powers of two for people; percentiles from 32 buckets per octave.
    #[default]
    Log,
    /// So many equal buckets between least and greatest; `uniform` shares them between the tables.
    Linear {
        /// Number of buckets.
        count: usize,
        /// One range for all tables, instead of one for each.
        uniform: bool,
    },
}

/// A query: what is measured, how it is shown, and of which rows.
#[derive(Debug, Clone, PartialEq)]
pub struct Question {
    /// What is measured.
    pub kind: Kind,
    /// How it is shown.
    pub verb: Verb,
    /// `None` for the whole recording, or the focus of a part of one.
    pub window: Option<Window>,
    /// Which rows count.
    pub filter: Filter,
    /// Column names to group by; empty = the verb's own default.
    pub by: Vec<String>,
    /// `None` for the verb's own order.
    pub sort: Option<Sort>,
    /// Rows of `top` and `usage`; `None` = the verb's default, 0 = all.
    pub limit: Option<usize>,
    /// One block of rows per so many ns.
    pub interval: Option<Ns>,
    /// What buckets hold.
    pub weight: Weight,
    /// Which buckets `hist` has.
    pub bins: Bins,
    /// Compare with the same question for this device.
    pub versus: Option<DeviceRef>,
    /// `differs`: the others are those of this window.
    pub baseline: Option<Window>,
    /// Only rows that overlap this operation: table name and id (`--overlaps op:ID`).
    pub overlaps: Option<(String, i64)>,
    /// `requests threads` and `outbound`: of this request alone.
    pub request: Option<i64>,
    /// Moment for `files open`.
    pub at: Option<Ns>,
    /// More columns: every sharer of a file, …
    pub wide: bool,
    /// Of what the end of the recording cuts, only time is measured: it counts in the recording that
    /// goes on there, in which it ends.
    pub counts_ended: bool,
}

impl Question {
    /// Everything but kind and verb at its default: all rows of the whole recording.
    pub fn new(kind: Kind, verb: Verb) -> Self {
        Self {
            kind,
            verb,
            window: None,
            filter: Filter::default(),
            by: Vec::new(),
            sort: None,
            limit: None,
            interval: None,
            weight: Weight::default(),
            bins: Bins::default(),
            versus: None,
            baseline: None,
            overlaps: None,
            request: None,
            at: None,
            wide: false,
            counts_ended: false,
        }
    }
}
