//! A query, as passed by the command line, the server and tests.

use whyslow_model::{Ns, Window};

/// What is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// I/O system calls.
    Io,
    /// Block device requests.
    Block,
    /// Files by path, pattern and directory.
    Files,
    /// Threads, their states over time, and their stacks.
    Threads,
    /// Thread states: running, runnable, asleep.
    States,
    /// Run-queue latency.
    Sched,
    /// CPU time slices.
    Cpu,
    /// Interrupt handlers.
    Irq,
    /// All system calls.
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
    /// Signals that stop, continue or terminate processes.
    Signals,
    /// DNS lookups.
    Dns,
    /// DNS queries to name servers.
    NameServers,
    /// Requests of clients and servers.
    Requests,
    /// Function calls (uprobes).
    Functions,
    /// Hits of static probes (USDT).
    Usdt,
    /// Lock contention.
    Locks,
    /// Off-CPU stacks of long waits, and samples.
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
    /// Histogram of durations or sizes.
    Hist,
    /// Rows with the greatest values of a column.
    Top,
    /// Rows in chronological order.
    Log,
    /// Heat map: time by duration.
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
    /// `threads gaps`: sampling gaps.
    Gaps,
    /// `threads flame`: time by stack as a tree.
    Flame,
    /// `locks chains`: chains of waiting threads.
    Chains,
    /// `block outliers`: long requests, and devices that deviate from their peers.
    Outliers,
    /// `locks stacks`: time by stack.
    Stacks,
    /// Properties that are more frequent in the selected rows than in others.
    Differs,
    /// `requests threads`: threads that worked on a request, with their states over time.
    Threads,
    /// `requests outbound`: outbound requests of threads that serve requests.
    Outbound,
    /// `requests bursts`: clients with far more requests or errors than usual.
    Bursts,
}

impl Kind {
    /// The word on the command line.
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
    /// The word on the command line.
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

/// A device as the user wrote it.
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

/// Row filter. Empty lists and `None` match everything; within a list one match suffices, and all
/// fields must match.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Filter {
    /// Kernel process ids.
    pub pids: Vec<i32>,
    /// Kernel thread ids.
    pub tids: Vec<i32>,
    /// Globs for the thread name.
    pub comms: Vec<String>,
    /// Regular expressions for the thread name.
    pub threads: Vec<String>,
    /// Regular expressions for functions: some frame of the stack must match.
    pub frames: Vec<String>,
    /// Regular expressions for functions: no frame of the stack may match.
    pub frames_not: Vec<String>,
    /// Globs for the path of the process's control group, as in `files`.
    pub cgroups: Vec<String>,
    /// Whole disks or partitions.
    pub devices: Vec<DeviceRef>,
    /// Globs for the path (`*` does not match `/`, `**` does; a glob without `/` is also matched
    /// against the last component).
    pub files: Vec<String>,
    /// Operation classes (`read`, `open`, …) or system call names (`openat`).
    pub ops: Vec<String>,
    /// Exact names of system calls or interrupt handlers, even if a class has the same name.
    pub names: Vec<String>,
    /// Exact size in bytes.
    pub size: Option<i64>,
    /// Minimum number of bytes transferred; rows without a size pass, because failed calls, opens
    /// and syncs have none.
    pub size_min: Option<i64>,
    /// Maximum number of bytes transferred, inclusive; rows without a size pass.
    pub size_max: Option<i64>,
    /// Minimum duration in ns, inclusive; a row with unknown duration passes if its recorded part
    /// is long enough.
    pub dur_min: Option<Ns>,
    /// Maximum duration in ns, inclusive; rows with unknown duration do not pass.
    pub dur_max: Option<Ns>,
    /// Part of the duration that is meant instead of the whole, here and in histograms and heat
    /// maps: `queue`, `device`, `raise`.
    pub stage: Option<String>,
    /// Only failed operations.
    pub errors_only: bool,
    /// Values of keys, each key once. Rows without a value do not pass.
    pub values: Vec<KeyFilter>,
    /// Only what ended in this range, so that adjacent windows are disjoint.
    pub ended_in: Option<Window>,
    /// CPU numbers.
    pub cpus: Vec<i32>,
    /// Exclude the processes of the tracer.
    pub no_tracer: bool,
}

/// Values of a `--by` key: globs for texts, in which `*` matches anything; for numbers exact
/// values, or `5xx` for 500 to 599.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyFilter {
    /// Name of the key, as in `--by`.
    pub key: &'static str,
    /// Any of these.
    pub values: Vec<String>,
}

impl Filter {
    /// Whether it filters stacks.
    pub fn is_of_stacks(&self) -> bool {
        !self.frames.is_empty() || !self.frames_not.is_empty()
    }

    /// The filter without its conditions on stacks.
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
    /// Ascending order.
    pub ascending: bool,
}

/// What histogram and heat map buckets count.
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
    /// Powers of two in text output; percentiles from 32 buckets per octave.
    #[default]
    Log,
    /// Equal buckets between minimum and maximum; `uniform` uses the same ones for all tables.
    Linear {
        /// Number of buckets.
        count: usize,
        /// One range for all tables, instead of one for each.
        uniform: bool,
    },
}

/// A query: what is measured, how it is shown, and of which rows.
#[derive(Debug, Clone, PartialEq)]
pub struct Query {
    /// What is measured.
    pub kind: Kind,
    /// How it is shown.
    pub verb: Verb,
    /// `None` for the whole recording, or the focus of a slice of one.
    pub window: Option<Window>,
    /// Which rows count.
    pub filter: Filter,
    /// Column names to group by; empty = the verb's own default.
    pub by: Vec<String>,
    /// `None` for the verb's own order.
    pub sort: Option<Sort>,
    /// Rows of `top` and `usage`; `None` = the verb's default, 0 = all.
    pub limit: Option<usize>,
    /// Width of the intervals in ns, with one block of rows each.
    pub interval: Option<Ns>,
    /// What buckets count.
    pub weight: Weight,
    /// Buckets of `hist`.
    pub bins: Bins,
    /// Compare with the same query for this device.
    pub versus: Option<DeviceRef>,
    /// `differs`: the window of the rows to compare with.
    pub baseline: Option<Window>,
    /// Only rows that overlap this operation: table name and id (`--overlaps op:ID`).
    pub overlaps: Option<(String, i64)>,
    /// `requests threads` and `outbound`: only this request.
    pub request: Option<i64>,
    /// Time for `files open`.
    pub at: Option<Ns>,
    /// Additional columns: every sharer of a file, …
    pub wide: bool,
    /// Include waits for work, which views of durations leave out otherwise.
    pub waits: bool,
    /// Operations cut by the end of the recording only contribute time: they are counted in the
    /// next recording, in which they end.
    pub counts_ended: bool,
}

impl Query {
    /// All rows of the whole recording, with defaults for everything but kind and verb.
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
            waits: false,
            counts_ended: false,
        }
    }
}
