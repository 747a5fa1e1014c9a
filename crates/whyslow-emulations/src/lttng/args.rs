//! Options that the commands of lttng-analyses share.

use clap::Args;
use whyslow_base::time::{Moment, WindowText, parse_seconds_or_duration};

use whyslow_model::Ns;

#[derive(Debug, Clone, Args)]
pub(super) struct LttngArgs {
    /// Recording or trace [default: @last]
    #[arg(value_name = "TRACE")]
    pub(super) trace: Option<String>,
    /// Tables for every so long a part of the trace (1s, 100ms)
    #[arg(short, long, value_name = "LENGTH", value_parser = parse_seconds_or_duration)]
    pub(super) refresh: Option<Ns>,
    /// Times in UTC
    #[arg(long)]
    pub(super) gmt: bool,
    /// Begin of the range
    #[arg(long, value_name = "TIME", value_parser = Moment::parse)]
    pub(super) begin: Option<Moment>,
    /// End of the range
    #[arg(long, value_name = "TIME", value_parser = Moment::parse)]
    pub(super) end: Option<Moment>,
    /// [BEGIN,END]
    #[arg(long, value_name = "RANGE", value_parser = WindowText::parse, conflicts_with_all = ["begin", "end"])]
    pub(super) timerange: Option<WindowText>,
    /// Only these CPUs
    #[arg(long, value_name = "CPU", value_delimiter = ',')]
    pub(super) cpu: Vec<i32>,
    /// Only threads of these names
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub(super) procname: Vec<String>,
    /// Only these threads
    #[arg(long, value_name = "TID", value_delimiter = ',')]
    pub(super) tid: Vec<i32>,
    /// Rows of a top list
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub(super) limit: usize,
    /// Least duration in microseconds
    #[arg(long, value_name = "USEC")]
    pub(super) min: Option<f64>,
    /// Greatest duration in microseconds
    #[arg(long, value_name = "USEC")]
    pub(super) max: Option<f64>,
    /// Least size in bytes
    #[arg(long, value_name = "BYTES")]
    pub(super) minsize: Option<f64>,
    /// Greatest size in bytes
    #[arg(long, value_name = "BYTES")]
    pub(super) maxsize: Option<f64>,
    /// Bins of a frequency distribution
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u16).range(1..=10_000))]
    pub(super) freq_resolution: u16,
    /// The same bins for all distributions
    #[arg(long)]
    pub(super) freq_uniform: bool,
    /// Usage tables
    #[arg(long)]
    pub(super) usage: bool,
    /// Statistics tables
    #[arg(long)]
    pub(super) stats: bool,
    /// Top tables
    #[arg(long)]
    pub(super) top: bool,
    /// Frequency distributions
    #[arg(long)]
    pub(super) freq: bool,
    /// Log
    #[arg(long)]
    pub(super) log: bool,
    /// Statistics of all threads together
    #[arg(long)]
    pub(super) total: bool,
    /// Statistics by thread
    #[arg(long)]
    pub(super) per_tid: bool,
    /// Statistics by priority
    #[arg(long)]
    pub(super) per_prio: bool,
    /// Only these hardware interrupts
    #[arg(long, value_name = "NR", value_delimiter = ',')]
    pub(super) irq: Vec<i64>,
    /// Only these softirqs
    #[arg(long, value_name = "NR", value_delimiter = ',')]
    pub(super) softirq: Vec<i64>,
    /// Refused with a hint rather than as unknown
    #[arg(long, hide = true)]
    pub(super) freq_series: bool,
    #[command(flatten)]
    pub(super) machine: MachineArgs,
    #[command(flatten)]
    pub(super) ignored: IgnoredArgs,
    #[command(flatten)]
    pub(super) periods: PeriodArgs,
}

/// The machine form.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Machine form (LAMI 1.0)")]
pub(super) struct MachineArgs {
    /// Print LAMI 1.0, as lttng-…-mi does
    #[arg(long)]
    pub(super) mi: bool,
    /// Version of the machine form
    #[arg(long)]
    pub(super) mi_version: bool,
    /// Describe the tables
    #[arg(long)]
    pub(super) metadata: bool,
    /// Tell by the exit status whether the trace can be analysed
    #[arg(long)]
    pub(super) test_compatibility: bool,
    /// Progress on standard output
    #[arg(long)]
    pub(super) output_progress: bool,
}

/// Taken, and without effect here.
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

/// Refused with a hint rather than as unknown.
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
