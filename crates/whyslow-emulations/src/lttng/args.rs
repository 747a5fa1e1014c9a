//! Common options of the commands of lttng-analyses.

use clap::Args;
use whyslow_base::time::{Moment, WindowText, parse_seconds_or_duration};
use whyslow_model::Ns;

#[derive(Debug, Clone, Args)]
pub(super) struct LttngArgs {
    /// Recording or trace [default: @last]
    #[arg(value_name = "TRACE")]
    pub(super) trace: Option<String>,
    /// Print tables every LENGTH of the trace (1s, 100ms)
    #[arg(short, long, value_name = "LENGTH", value_parser = parse_seconds_or_duration)]
    pub(super) refresh: Option<Ns>,
    /// Print times in UTC
    #[arg(long)]
    pub(super) gmt: bool,
    /// Start the range at TIME
    #[arg(long, value_name = "TIME", value_parser = Moment::parse)]
    pub(super) begin: Option<Moment>,
    /// End the range at TIME
    #[arg(long, value_name = "TIME", value_parser = Moment::parse)]
    pub(super) end: Option<Moment>,
    /// Analyse only RANGE: [BEGIN,END]
    #[arg(long, value_name = "RANGE", value_parser = WindowText::parse, conflicts_with_all = ["begin", "end"])]
    pub(super) timerange: Option<WindowText>,
    /// Show only CPU number CPU
    #[arg(long, value_name = "CPU", value_delimiter = ',')]
    pub(super) cpu: Vec<i32>,
    /// Show only threads named NAME
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub(super) procname: Vec<String>,
    /// Show only thread TID
    #[arg(long, value_name = "TID", value_delimiter = ',')]
    pub(super) tid: Vec<i32>,
    /// Print at most N rows per top list
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub(super) limit: usize,
    /// Show only durations of at least USEC microseconds
    #[arg(long, value_name = "USEC")]
    pub(super) min: Option<f64>,
    /// Show only durations of at most USEC microseconds
    #[arg(long, value_name = "USEC")]
    pub(super) max: Option<f64>,
    /// Show only sizes of at least BYTES
    #[arg(long, value_name = "BYTES")]
    pub(super) minsize: Option<f64>,
    /// Show only sizes of at most BYTES
    #[arg(long, value_name = "BYTES")]
    pub(super) maxsize: Option<f64>,
    /// Print frequency distributions with N bins
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u16).range(1..=10_000))]
    pub(super) freq_resolution: u16,
    /// Use the same bins for all distributions
    #[arg(long)]
    pub(super) freq_uniform: bool,
    /// Print usage tables
    #[arg(long)]
    pub(super) usage: bool,
    /// Print statistics tables
    #[arg(long)]
    pub(super) stats: bool,
    /// Print top tables
    #[arg(long)]
    pub(super) top: bool,
    /// Print frequency distributions
    #[arg(long)]
    pub(super) freq: bool,
    /// Print the log
    #[arg(long)]
    pub(super) log: bool,
    /// Print statistics of all threads together
    #[arg(long)]
    pub(super) total: bool,
    /// Print statistics by thread
    #[arg(long)]
    pub(super) per_tid: bool,
    /// Print statistics by priority
    #[arg(long)]
    pub(super) per_prio: bool,
    /// Show only hardware interrupt NR
    #[arg(long, value_name = "NR", value_delimiter = ',')]
    pub(super) irq: Vec<i64>,
    /// Show only softirq NR
    #[arg(long, value_name = "NR", value_delimiter = ',')]
    pub(super) softirq: Vec<i64>,
    /// Rejected with a hint instead of as an unknown option
    #[arg(long, hide = true)]
    pub(super) freq_series: bool,
    #[command(flatten)]
    pub(super) machine: MachineArgs,
    #[command(flatten)]
    pub(super) ignored: IgnoredArgs,
    #[command(flatten)]
    pub(super) periods: PeriodArgs,
}

/// Machine-readable output.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Machine-readable output (LAMI 1.0)")]
pub(super) struct MachineArgs {
    /// Print LAMI 1.0, like lttng-…-mi
    #[arg(long)]
    pub(super) mi: bool,
    /// Print the version of the machine-readable format
    #[arg(long)]
    pub(super) mi_version: bool,
    /// Describe the tables
    #[arg(long)]
    pub(super) metadata: bool,
    /// Check whether the trace can be analysed, and report it in the exit status
    #[arg(long)]
    pub(super) test_compatibility: bool,
    /// Print progress to standard output
    #[arg(long)]
    pub(super) output_progress: bool,
}

/// Accepted, but without effect.
#[derive(Debug, Clone, Args)]
pub(super) struct IgnoredArgs {
    #[arg(long, hide = true)]
    skip_validation: bool,
    #[arg(long, hide = true)]
    progress_use_size: bool,
    #[arg(long, hide = true)]
    no_intersection: bool,
    #[arg(long, hide = true)]
    debug: bool,
    #[arg(long, hide = true)]
    no_color: bool,
}

/// Rejected with a hint instead of as unknown options.
#[derive(Debug, Clone, Args)]
pub(super) struct PeriodArgs {
    #[arg(long, hide = true, num_args = 0..)]
    period: Vec<String>,
    #[arg(long, hide = true, num_args = 0..)]
    period_begin: Vec<String>,
    #[arg(long, hide = true, num_args = 0..)]
    period_end: Vec<String>,
    #[arg(long, hide = true, num_args = 0..)]
    period_begin_key: Vec<String>,
    #[arg(long, hide = true, num_args = 0..)]
    period_end_key: Vec<String>,
    #[arg(long, hide = true, num_args = 0..)]
    period_key_value: Vec<String>,
    #[arg(long, hide = true, num_args = 0..)]
    period_captures: Vec<String>,
}

impl PeriodArgs {
    pub(super) fn are_given(&self) -> bool {
        let all = [
            &self.period,
            &self.period_begin,
            &self.period_end,
            &self.period_begin_key,
            &self.period_end_key,
            &self.period_key_value,
            &self.period_captures,
        ];
        all.iter().any(|words| !words.is_empty())
    }
}
