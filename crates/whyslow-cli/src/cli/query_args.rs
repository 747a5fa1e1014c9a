use clap::Args;
use whyslow_analysis::{KeyFilter, Weight};
use whyslow_base::args::OutputArgs;
use whyslow_base::time::{
    Moment, OperationRef, WindowText, parse_duration, parse_length, parse_size,
};
use whyslow_model::Ns;

use super::stack_weight::StackWeight;

/// Arguments of every query.
#[derive(Debug, Clone, Args)]
pub(crate) struct QueryArgs {
    /// Recording or trace [default: @last], or @live for this machine; optionally INTERVAL
    /// (seconds, or with a unit) and COUNT
    #[arg(value_name = "RECORDING [INTERVAL [COUNT]]", num_args = 0..=3)]
    pub(crate) positional: Vec<String>,
    #[command(flatten)]
    pub(crate) window: WindowArgs,
    #[command(flatten)]
    pub(crate) filter: FilterArgs,
    #[command(flatten)]
    pub(crate) shape: ShapeArgs,
    /// Print paths as seen from the host, and match --file against them
    ///
    /// Applies to processes in containers and chroots, if their mounts were recorded.
    #[arg(long, help_heading = "Shape")]
    pub(crate) host_paths: bool,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Window")]
pub(crate) struct WindowArgs {
    /// Restrict to WINDOW: A..B, A+437ms, T~200ms (centred on T), [A,B], 'last 5s', op:ID, request:ID
    ///
    /// Times: 12:18:50.432, 2015-01-15 12:18:50, RFC 3339, seconds since 1970, +3.2s from the start
    /// of the recording, -5s from its end
    #[arg(
        short,
        long,
        visible_alias = "timerange",
        value_parser = WindowText::parse,
        allow_hyphen_values = true,
        conflicts_with_all = ["begin", "end", "last"],
    )]
    pub(crate) window: Option<WindowText>,
    /// Restrict to the last DURATION of the recording (90s, 5m)
    #[arg(
        long,
        value_name = "DURATION",
        value_parser = parse_length,
        conflicts_with_all = ["begin", "end"],
    )]
    pub(crate) last: Option<Ns>,
    /// Start the window at TIME
    #[arg(long, value_name = "TIME", value_parser = Moment::parse, allow_hyphen_values = true)]
    pub(crate) begin: Option<Moment>,
    /// End the window at TIME
    #[arg(long, value_name = "TIME", value_parser = Moment::parse, allow_hyphen_values = true)]
    pub(crate) end: Option<Moment>,
    /// Include only what overlaps operation ID
    #[arg(long, value_name = "op:ID", value_parser = parse_operation)]
    pub(crate) overlaps: Option<OperationRef>,
}

impl WindowArgs {
    pub(crate) fn text(&self) -> Option<WindowText> {
        if let Some(length) = self.last {
            return Some(WindowText::Last(length));
        }
        match (&self.window, &self.begin, &self.end) {
            (Some(window), _, _) => Some(window.clone()),
            (None, None, None) => None,
            (None, begin, end) => Some(WindowText::Between(begin.clone(), end.clone())),
        }
    }
}

fn parse_operation(text: &str) -> Result<OperationRef, String> {
    OperationRef::parse(text).unwrap_or_else(|| {
        Err(format!(
            "`{text}` is not an operation: write op:ID, with an id from `top` or `log`"
        ))
    })
}

#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Filters")]
pub(crate) struct FilterArgs {
    /// Include only process PID
    #[arg(short, long, value_name = "PID", value_delimiter = ',')]
    pub(crate) pid: Vec<i32>,
    /// Include only thread TID
    #[arg(short, long, value_name = "TID", value_delimiter = ',')]
    pub(crate) tid: Vec<i32>,
    /// Include only threads with a name matching GLOB
    #[arg(
        short,
        long,
        visible_alias = "procname",
        value_name = "GLOB",
        value_delimiter = ','
    )]
    pub(crate) comm: Vec<String>,
    /// Include only threads with a name matching REGEX: 'request-handler-[0-3]$'
    #[arg(long, value_name = "REGEX")]
    pub(crate) threads: Vec<String>,
    /// Include only stacks with a function matching REGEX
    #[arg(long = "match", value_name = "REGEX")]
    pub(crate) frames: Vec<String>,
    /// Exclude stacks with a function matching REGEX
    #[arg(long = "reject", value_name = "REGEX")]
    pub(crate) frames_not: Vec<String>,
    /// Include only processes in a cgroup with a path matching GLOB: '/docker/**'
    #[arg(long, value_name = "GLOB")]
    pub(crate) cgroup: Vec<String>,
    /// Include only block device DEV, by name or MAJOR:MINOR
    #[arg(short, long, value_name = "DEV", value_delimiter = ',')]
    pub(crate) dev: Vec<String>,
    /// Include only paths matching GLOB; * matches within a directory, ** across directories
    #[arg(long, value_name = "GLOB")]
    pub(crate) file: Vec<String>,
    /// Include only operations of class OP (open, read, write, sync, …), or system call OP (openat)
    ///
    /// Classes of system calls: open, connect, read, write, sync, metadata, …; of run-queue waits:
    /// woken, preempted; of interrupts: hard, soft.
    #[arg(long, value_name = "OP", value_delimiter = ',')]
    pub(crate) op: Vec<String>,
    /// Include only system call or interrupt handler NAME: `write` does not include `pwrite64`
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub(crate) name: Vec<String>,
    /// Include only CPU number CPU
    #[arg(long, value_name = "CPU", value_delimiter = ',')]
    pub(crate) cpu: Vec<i32>,
    /// Include only operations of exactly BYTES (8k)
    #[arg(long, value_name = "BYTES", value_parser = parse_size, conflicts_with_all = ["min_size", "max_size"])]
    pub(crate) size: Option<i64>,
    /// Include only operations of at least BYTES, or without a size
    #[arg(long, visible_alias = "minsize", value_name = "BYTES", value_parser = parse_size)]
    pub(crate) min_size: Option<i64>,
    /// Include only operations of at most BYTES, or without a size
    #[arg(long, visible_alias = "maxsize", value_name = "BYTES", value_parser = parse_size)]
    pub(crate) max_size: Option<i64>,
    /// Include only operations that lasted at least DURATION (200us, 5ms, 1s)
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    pub(crate) min: Option<Ns>,
    /// Include only operations that lasted at most DURATION
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    pub(crate) max: Option<Ns>,
    /// Include only failed operations
    #[arg(long)]
    pub(crate) errors: bool,
    /// Exclude the tracer's own processes
    #[arg(long)]
    pub(crate) no_tracer: bool,
    /// Include waits for work (accept, poll, reads of sockets and pipes, …) in views of durations
    ///
    /// Their durations show how long there was nothing to do. `top`, `stats`, `hist`, `heat` and
    /// `differs` of system calls, files and states leave them out, unless they are selected by name
    /// (`--op accept4`, `--name read`), and report their number and total. `log` and `usage`
    /// include them.
    #[arg(long)]
    pub(crate) waits: bool,
}

/// Additional filters of queries on requests: values of their keys.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Requests")]
pub(crate) struct RequestArgs {
    /// Include only endpoints matching GLOB: '/api/*'
    #[arg(long, value_name = "GLOB", value_delimiter = ',')]
    pub(crate) endpoint: Vec<String>,
    /// Include only requests with METHOD: GET, POST, …
    #[arg(long, value_name = "METHOD", value_delimiter = ',')]
    pub(crate) method: Vec<String>,
    /// Include only requests with response STATUS: 404, or 5xx
    #[arg(long, value_name = "STATUS", value_delimiter = ',')]
    pub(crate) status: Vec<String>,
    /// Include only requests with OUTCOME: ok, error, timeout, refused, reset, …
    #[arg(long, value_name = "OUTCOME", value_delimiter = ',')]
    pub(crate) outcome: Vec<String>,
    /// Include only clients matching GLOB
    #[arg(long, value_name = "GLOB", value_delimiter = ',')]
    pub(crate) client: Vec<String>,
    /// Include only requests on connection number N
    #[arg(long, value_name = "N", value_delimiter = ',')]
    pub(crate) connection: Vec<String>,
    /// Include only requests to hosts matching GLOB
    #[arg(long, value_name = "GLOB", value_delimiter = ',')]
    pub(crate) host: Vec<String>,
    /// Include only peers (ADDRESS:PORT) matching GLOB: '10.0.0.5:*'
    #[arg(long, value_name = "GLOB", value_delimiter = ',')]
    pub(crate) peer: Vec<String>,
    /// Include only phase PHASE: wait, request_queue, …
    #[arg(long, value_name = "PHASE", value_delimiter = ',')]
    pub(crate) phase: Vec<String>,
    /// Include only requests of load worker N
    #[arg(long, value_name = "N", value_delimiter = ',')]
    pub(crate) worker: Vec<String>,
    /// Include only requests observed by SOURCE: load, socket, …
    #[arg(long, value_name = "SOURCE", value_delimiter = ',')]
    pub(crate) source: Vec<String>,
    /// Include only requests observed in ROLE: client, server, proxy
    #[arg(long, value_name = "ROLE", value_delimiter = ',')]
    pub(crate) role: Vec<String>,
}

impl RequestArgs {
    pub(crate) fn values(&self) -> Vec<KeyFilter> {
        let all = [
            ("endpoint", &self.endpoint),
            ("method", &self.method),
            ("status", &self.status),
            ("outcome", &self.outcome),
            ("client", &self.client),
            ("connection", &self.connection),
            ("host", &self.host),
            ("peer", &self.peer),
            ("phase", &self.phase),
            ("worker", &self.worker),
            ("source", &self.source),
            ("role", &self.role),
        ];
        let given = all.into_iter().filter(|(_, values)| !values.is_empty());
        let values = given.map(|(key, values)| KeyFilter {
            key,
            values: values.clone(),
        });
        values.collect()
    }
}

#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Shape")]
pub(crate) struct ShapeArgs {
    /// Print at most N rows; 0 prints all [default: depends on the view]
    #[arg(short = 'n', long, value_name = "N")]
    pub(crate) limit: Option<usize>,
    /// Sort by column KEY, descending; KEY:asc sorts ascending
    #[arg(long, value_name = "KEY[:asc]")]
    pub(crate) sort: Option<String>,
    /// Group by column KEY
    #[arg(long, value_name = "KEY", value_delimiter = ',')]
    pub(crate) by: Vec<String>,
}

#[derive(Debug, Clone, Args)]
pub(crate) struct VersusArgs {
    /// Compare with device DEV over the same window
    #[arg(long, value_name = "DEV", help_heading = "Shape")]
    pub(crate) vs: Option<String>,
}

#[derive(Debug, Clone, Args)]
pub(crate) struct DiffersArgs {
    #[command(flatten)]
    pub(crate) query: QueryArgs,
    /// Compare with WINDOW, with the same filters [default: the rest of the recording]
    #[arg(
        long = "vs",
        value_name = "WINDOW",
        value_parser = WindowText::parse,
        allow_hyphen_values = true,
        help_heading = "Shape"
    )]
    pub(crate) baseline: Option<WindowText>,
}

#[derive(Debug, Clone, Args)]
pub(crate) struct HistArgs {
    #[command(flatten)]
    pub(crate) query: QueryArgs,
    /// Use N buckets of equal width instead of powers of two
    #[arg(
        long,
        visible_alias = "freq-resolution",
        value_name = "N",
        value_parser = clap::value_parser!(u16).range(1..=10_000),
        help_heading = "Shape"
    )]
    pub(crate) linear: Option<u16>,
    /// Use the same buckets of equal width in all tables
    #[arg(long, visible_alias = "freq-uniform", help_heading = "Shape")]
    pub(crate) uniform: bool,
    #[command(flatten)]
    pub(crate) stage: StageArgs,
}

#[derive(Debug, Clone, Args)]
pub(crate) struct HeatArgs {
    #[command(flatten)]
    pub(crate) query: QueryArgs,
    /// Shade cells by WHAT: the number of operations (count), or count × latency (intensity)
    #[arg(
        long,
        value_name = "WHAT",
        default_value = "count",
        help_heading = "Shape"
    )]
    pub(crate) weight: WeightChoice,
    #[command(flatten)]
    pub(crate) stage: StageArgs,
}

#[derive(Debug, Clone, Args)]
pub(crate) struct StageArgs {
    /// Measure only STAGE: queue, device (block); raise (irq); connect (tcp); queue, run (work); …
    #[arg(long, value_name = "STAGE", help_heading = "Shape")]
    pub(crate) stage: Option<String>,
}

#[derive(Debug, Clone, Args)]
pub(crate) struct FlameArgs {
    #[command(flatten)]
    pub(crate) query: QueryArgs,
    #[command(flatten)]
    pub(crate) graph: GraphArgs,
}

/// Additional arguments of stack graphs. The file name determines the format: .svg, .txt (collapsed
/// stacks) or .json (speedscope).
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Stacks")]
pub(crate) struct GraphArgs {
    /// Weight stacks by off-CPU time, samples, or wall-clock time [default: time or offcpu]
    ///
    /// `offcpu` is off-CPU time, `samples` is the number of samples, and `time` is all time of a
    /// wall-clock profile, including sampling gaps. The default is `time` for wall-clock profiles,
    /// else `offcpu`.
    #[arg(long, value_name = "WHAT")]
    pub(crate) weight: Option<StackWeight>,
    /// Include only stacks of threads that left the CPU in STATE: uninterruptible, runnable, …
    #[arg(long, value_name = "STATE", value_delimiter = ',')]
    pub(crate) state: Vec<String>,
    /// Compare with WINDOW
    #[arg(
        long = "vs",
        value_name = "WINDOW",
        value_parser = WindowText::parse,
        allow_hyphen_values = true,
        conflicts_with = "chart"
    )]
    pub(crate) versus: Option<WindowText>,
    /// Draw a flame chart: the stacks of each thread over time (-n N: only the N busiest threads)
    #[arg(long)]
    pub(crate) chart: bool,
    /// Set the title of the image to TEXT [default: name of the recording]
    #[arg(long, value_name = "TEXT")]
    pub(crate) title: Option<String>,
}

/// Additional arguments of `threads dump`, to take dumps of a running JVM.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "A running JVM")]
pub(crate) struct DumpArgs {
    #[command(flatten)]
    pub(crate) open: OpenArgs,
    /// Dump the threads of a JVM (-p) every DURATION into a recording (-o) until Ctrl-C
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, requires_all = ["pid", "output"])]
    pub(crate) every: Option<Ns>,
    /// Stop after DURATION
    #[arg(long = "for", value_name = "DURATION", value_parser = parse_duration, requires = "every")]
    pub(crate) lasting: Option<Ns>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum WeightChoice {
    Count,
    Intensity,
}

impl From<WeightChoice> for Weight {
    fn from(choice: WeightChoice) -> Self {
        match choice {
            WeightChoice::Count => Weight::Count,
            WeightChoice::Intensity => Weight::Intensity,
        }
    }
}

#[derive(Debug, Clone, Args)]
pub(crate) struct OpenArgs {
    #[command(flatten)]
    pub(crate) query: QueryArgs,
    /// Show the state at TIME [default: the end of the window]
    #[arg(long, value_name = "TIME", value_parser = Moment::parse, allow_hyphen_values = true)]
    pub(crate) at: Option<Moment>,
}
