use clap::Args;
use whyslow_analysis::{KeyFilter, Weight};
use whyslow_base::args::OutputArgs;
use whyslow_base::time::{Moment, OperationRef, WindowText, parse_duration, parse_size};
use whyslow_model::Ns;

use super::stack_weight::StackWeight;

/// What every question takes.
#[derive(Debug, Clone, Args)]
pub(crate) struct AskArgs {
    /// Recording or trace [default: @last], or @live, this machine now; then perhaps an interval
    /// (seconds, or with a unit) and a number of intervals
    #[arg(value_name = "RECORDING [INTERVAL [COUNT]]", num_args = 0..=3)]
    pub(crate) positional: Vec<String>,
    #[command(flatten)]
    pub(crate) window: WindowArgs,
    #[command(flatten)]
    pub(crate) filter: FilterArgs,
    #[command(flatten)]
    pub(crate) shape: ShapeArgs,
    /// Paths as the host has them, of processes in containers and below other roots too, where it is
    /// known what is mounted there; --file is then about these
    #[arg(long, help_heading = "Shape")]
    pub(crate) host_paths: bool,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Window")]
pub(crate) struct WindowArgs {
    /// A..B, A+437ms, T~200ms, [A,B], op:ID or request:ID. Times: 12:18:50.432, 2015-01-15 12:18:50, RFC 3339,
    /// seconds since 1970, +3.2s from the begin, -5s from the end
    #[arg(
        short,
        long,
        visible_alias = "timerange",
        value_parser = WindowText::parse,
        allow_hyphen_values = true,
        conflicts_with_all = ["begin", "end"],
    )]
    pub(crate) window: Option<WindowText>,
    /// Begin of the window
    #[arg(long, value_name = "TIME", value_parser = Moment::parse, allow_hyphen_values = true)]
    pub(crate) begin: Option<Moment>,
    /// End of the window
    #[arg(long, value_name = "TIME", value_parser = Moment::parse, allow_hyphen_values = true)]
    pub(crate) end: Option<Moment>,
    /// Only what ran across this operation (op:ID)
    #[arg(long, value_name = "op:ID", value_parser = parse_operation)]
    pub(crate) overlaps: Option<OperationRef>,
}

impl WindowArgs {
    pub(crate) fn text(&self) -> Option<WindowText> {
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
            "`{text}` is not an operation: write op:ID with an id from `top` or `log`"
        ))
    })
}

#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Filters")]
pub(crate) struct FilterArgs {
    /// Processes
    #[arg(short, long, value_name = "PID", value_delimiter = ',')]
    pub(crate) pid: Vec<i32>,
    /// Threads
    #[arg(short, long, value_name = "TID", value_delimiter = ',')]
    pub(crate) tid: Vec<i32>,
    /// Names of threads, as globs
    #[arg(
        short,
        long,
        visible_alias = "procname",
        value_name = "GLOB",
        value_delimiter = ','
    )]
    pub(crate) comm: Vec<String>,
    /// Names of threads, as regular expressions: 'request-handler-[0-3]$'
    #[arg(long, value_name = "REGEX")]
    pub(crate) threads: Vec<String>,
    /// Only stacks with a function that matches this regular expression
    #[arg(long = "match", value_name = "REGEX")]
    pub(crate) frames: Vec<String>,
    /// Without stacks that have such a function
    #[arg(long = "reject", value_name = "REGEX")]
    pub(crate) frames_not: Vec<String>,
    /// Processes in control groups with such a path, as globs: '/docker/**'
    #[arg(long, value_name = "GLOB")]
    pub(crate) cgroup: Vec<String>,
    /// Block devices, as name or MAJOR:MINOR
    #[arg(short, long, value_name = "DEV", value_delimiter = ',')]
    pub(crate) dev: Vec<String>,
    /// Paths, as globs: * stays within a directory, ** does not
    #[arg(long, value_name = "GLOB")]
    pub(crate) file: Vec<String>,
    /// Classes: of operations (open, close, read, write, sync, metadata …), waits (woken, preempted),
    /// interrupts (hard, soft); or system calls (openat)
    #[arg(long, value_name = "OP", value_delimiter = ',')]
    pub(crate) op: Vec<String>,
    /// Exactly these system calls or interrupt handlers: `write` without `pwrite64`
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub(crate) name: Vec<String>,
    /// CPUs
    #[arg(long, value_name = "CPU", value_delimiter = ',')]
    pub(crate) cpu: Vec<i32>,
    /// Exactly so many bytes (8k)
    #[arg(long, value_name = "BYTES", value_parser = parse_size, conflicts_with_all = ["min_size", "max_size"])]
    pub(crate) size: Option<i64>,
    /// At least so many bytes; operations without a size pass
    #[arg(long, visible_alias = "minsize", value_name = "BYTES", value_parser = parse_size)]
    pub(crate) min_size: Option<i64>,
    /// At most so many bytes; operations without a size pass
    #[arg(long, visible_alias = "maxsize", value_name = "BYTES", value_parser = parse_size)]
    pub(crate) max_size: Option<i64>,
    /// At least so long (200us, 5ms, 1s)
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    pub(crate) min: Option<Ns>,
    /// At most so long
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    pub(crate) max: Option<Ns>,
    /// Only failed operations
    #[arg(long)]
    pub(crate) errors: bool,
    /// Without the tracer's own processes
    #[arg(long)]
    pub(crate) no_tracer: bool,
}

/// What questions about requests take besides: values of their keys.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Requests")]
pub(crate) struct RequestArgs {
    /// What was asked for, as globs: '/api/*'
    #[arg(long, value_name = "GLOB", value_delimiter = ',')]
    pub(crate) endpoint: Vec<String>,
    /// GET, POST, …
    #[arg(long, value_name = "METHOD", value_delimiter = ',')]
    pub(crate) method: Vec<String>,
    /// Status of the answer: 404, or 5xx
    #[arg(long, value_name = "STATUS", value_delimiter = ',')]
    pub(crate) status: Vec<String>,
    /// ok, error, timeout, refused, reset, …
    #[arg(long, value_name = "OUTCOME", value_delimiter = ',')]
    pub(crate) outcome: Vec<String>,
    /// Who asked, as globs
    #[arg(long, value_name = "GLOB", value_delimiter = ',')]
    pub(crate) client: Vec<String>,
    /// Numbers of connections
    #[arg(long, value_name = "N", value_delimiter = ',')]
    pub(crate) connection: Vec<String>,
    /// Hosts that were asked, as globs
    #[arg(long, value_name = "GLOB", value_delimiter = ',')]
    pub(crate) host: Vec<String>,
    /// Address and port of the other side, as globs: '10.0.0.5:*'
    #[arg(long, value_name = "GLOB", value_delimiter = ',')]
    pub(crate) peer: Vec<String>,
    /// Only these phases: wait, request_queue, …
    #[arg(long, value_name = "PHASE", value_delimiter = ',')]
    pub(crate) phase: Vec<String>,
    /// Workers of the load
    #[arg(long, value_name = "N", value_delimiter = ',')]
    pub(crate) worker: Vec<String>,
    /// What told of them: load, socket, …
    #[arg(long, value_name = "SOURCE", value_delimiter = ',')]
    pub(crate) source: Vec<String>,
    /// Whose view: client, server, proxy
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
    /// Rows at most; 0 is all
    #[arg(short = 'n', long, value_name = "N")]
    pub(crate) limit: Option<usize>,
    /// Order by a column, greatest first; KEY:asc is least first
    #[arg(long, value_name = "KEY[:asc]")]
    pub(crate) sort: Option<String>,
    /// Group by these columns
    #[arg(long, value_name = "KEY", value_delimiter = ',')]
    pub(crate) by: Vec<String>,
}

#[derive(Debug, Clone, Args)]
pub(crate) struct VersusArgs {
    /// Compare with this device over the same window
    #[arg(long, value_name = "DEV", help_heading = "Shape")]
    pub(crate) vs: Option<String>,
}

#[derive(Debug, Clone, Args)]
pub(crate) struct DiffersArgs {
    #[command(flatten)]
    pub(crate) ask: AskArgs,
    /// The others are those of this window, by the same filters [default: all of the recording that
    /// is not asked about]
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
    pub(crate) ask: AskArgs,
    /// So many equal buckets instead of powers of two
    #[arg(
        long,
        visible_alias = "freq-resolution",
        value_name = "N",
        value_parser = clap::value_parser!(u16).range(1..=10_000),
        help_heading = "Shape"
    )]
    pub(crate) linear: Option<u16>,
    /// The same equal buckets for all tables
    #[arg(long, visible_alias = "freq-uniform", help_heading = "Shape")]
    pub(crate) uniform: bool,
    #[command(flatten)]
    pub(crate) stage: StageArgs,
}

#[derive(Debug, Clone, Args)]
pub(crate) struct HeatArgs {
    #[command(flatten)]
    pub(crate) ask: AskArgs,
    /// What makes a cell dark: the number of operations, or number times length
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
    /// Measure this part instead of the whole: queue or device of requests, raise of softirqs
    #[arg(long, value_name = "STAGE", help_heading = "Shape")]
    pub(crate) stage: Option<String>,
}

#[derive(Debug, Clone, Args)]
pub(crate) struct FlameArgs {
    #[command(flatten)]
    pub(crate) ask: AskArgs,
    #[command(flatten)]
    pub(crate) graph: GraphArgs,
}

/// What a graph of stacks takes beside a question. The file's name says its form: .svg, .txt (lines of
/// stacks) or .json (speedscope).
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Stacks")]
pub(crate) struct GraphArgs {
    /// What is counted: time away from the CPU, samples as their sampler counted them, or all time of
    /// a wall-clock profile, also of threads that could not be sampled [default: time for such profiles,
    /// else offcpu]
    #[arg(long, value_name = "WHAT")]
    pub(crate) weight: Option<StackWeight>,
    /// Only where threads were left in these states: uninterruptible, sleeping, runnable …
    #[arg(long, value_name = "STATE", value_delimiter = ',')]
    pub(crate) state: Vec<String>,
    /// Beside it the same of this window
    #[arg(
        long = "vs",
        value_name = "WINDOW",
        value_parser = WindowText::parse,
        allow_hyphen_values = true,
        conflicts_with = "chart"
    )]
    pub(crate) versus: Option<WindowText>,
    /// Not merged: what each thread was in over time, as a picture (-n threads, those that run most)
    #[arg(long)]
    pub(crate) chart: bool,
    /// Title of the picture [default: name of the recording]
    #[arg(long, value_name = "TEXT")]
    pub(crate) title: Option<String>,
}

/// What `threads dump` takes beside a moment, to make dumps itself.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "A running JVM")]
pub(crate) struct DumpArgs {
    #[command(flatten)]
    pub(crate) open: OpenArgs,
    /// Dump the threads of the JVM of -p each so often (1s), until Ctrl-C; -o names the recording
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, requires_all = ["pid", "output"])]
    pub(crate) every: Option<Ns>,
    /// For so long
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
    pub(crate) ask: AskArgs,
    /// Moment [default: the end of the window]
    #[arg(long, value_name = "TIME", value_parser = Moment::parse, allow_hyphen_values = true)]
    pub(crate) at: Option<Moment>,
}
