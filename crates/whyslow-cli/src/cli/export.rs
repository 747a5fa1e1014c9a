use std::path::PathBuf;

use clap::{Args, Subcommand};
use whyslow_base::args::RedactArgs;
use whyslow_base::time::{WindowText, parse_duration};
use whyslow_model::Ns;

use super::query_args::{FilterArgs, WindowArgs};
use super::stack_weight::StackWeight;

pub(crate) const EXAMPLES: &str = "\
Examples:
  whyslow export html web.wsl -o incident.html            a report that opens in any browser
  whyslow export md web.wsl -w +9s..+10s                  the same as Markdown, for a ticket
  whyslow export svg web.wsl -w op:17 -o flame.svg        off-CPU flame graph during system call 17
  whyslow export svg web.wsl -w +9s..+10s --vs +1s..+2s   differential flame graph of two windows
  whyslow export collapsed web.wsl | flamegraph.pl        collapsed stacks for other tools
  whyslow export pprof web.wsl -o web.pb.gz               go tool pprof -http : web.pb.gz
  whyslow export speedscope web.wsl -o web.json           https://www.speedscope.app, offline too
  whyslow export otlp web.wsl --min 10ms -o spans.jsonl   for OpenTelemetry collectors
  whyslow export openmetrics web.wsl -o web.prom          counters and histograms for Prometheus
  whyslow export firefox web.wsl -o web.json              https://profiler.firefox.com
  whyslow export snapshot web.wsl -w op:17 -o s.wsl.tar.zst   one file that every command opens
  whyslow export snapshot web.wsl --redact -o s.wsl.tar.zst   the same, without paths, hosts and users
  whyslow export perfetto web.wsl -w +8s..+11s -o web.perfetto-trace
Tables: every query writes its result to a file
  whyslow io top web.wsl --format parquet -o top.parquet  also csv, tsv, ndjson, arrow, md, html";

/// The formats.
#[derive(Debug, Subcommand)]
pub(crate) enum ExportCommand {
    /// Cut a window out of a recording into one small file to send
    Snapshot(SnapshotArgs),
    /// Write a report: findings, charts and tables in one file that opens in any browser offline
    Html(ReportArgs),
    /// Write a report as Markdown for tickets and email: findings and tables
    Md(ReportArgs),
    /// Write a flame graph as one file with zoom and search, offline
    Svg(SvgArgs),
    /// Write timelines for ui.perfetto.dev and trace_processor
    Perfetto(ExportArgs),
    /// Write operations of 1 ms or more (--min) and their waits as OpenTelemetry spans (JSON lines)
    Otlp(ExportArgs),
    /// Write counters and latency histograms for Prometheus, as OpenMetrics text
    Openmetrics(ExportArgs),
    /// Write collapsed stacks, one per line, for flamegraph.pl, inferno and similar tools
    Collapsed(StackArgs),
    /// Write stacks for speedscope
    Speedscope(StackArgs),
    /// Write stacks, and system calls of 1 ms or more (--min), for profiler.firefox.com
    Firefox(StackArgs),
    /// Write stacks for `go tool pprof`
    Pprof(StackArgs),
}

/// Arguments of every export.
#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    /// Recording or trace [default: @last]
    #[arg(value_name = "RECORDING")]
    pub(crate) recording: Option<String>,
    #[command(flatten)]
    pub(crate) window: WindowArgs,
    #[command(flatten)]
    pub(crate) filter: FilterArgs,
    #[command(flatten)]
    pub(crate) redact: RedactArgs,
    /// Write to FILE instead of standard output
    #[arg(short, long, value_name = "FILE", help_heading = "Output")]
    pub(crate) output: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct SnapshotArgs {
    /// Recording or trace [default: @last]
    #[arg(value_name = "RECORDING")]
    pub(crate) recording: Option<String>,
    #[command(flatten)]
    pub(crate) window: WindowArgs,
    /// Include DURATION before and after the window [default: length of the window, at least 5 s]
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, help_heading = "Window")]
    pub(crate) around: Option<Ns>,
    #[command(flatten)]
    pub(crate) redact: RedactArgs,
    /// Write to FILE instead of standard output
    #[arg(short, long, value_name = "FILE", help_heading = "Output")]
    pub(crate) output: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct ReportArgs {
    /// Recording or trace [default: @last]
    #[arg(value_name = "RECORDING")]
    pub(crate) recording: Option<String>,
    #[command(flatten)]
    pub(crate) window: WindowArgs,
    #[command(flatten)]
    pub(crate) redact: RedactArgs,
    /// Write to FILE instead of standard output
    #[arg(short, long, value_name = "FILE", help_heading = "Output")]
    pub(crate) output: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct StackArgs {
    #[command(flatten)]
    pub(crate) export: ExportArgs,
    /// Weight stacks by off-CPU time, samples, or wall-clock time [default: time or offcpu]
    ///
    /// `offcpu` is off-CPU time, `samples` is the number of samples, and `time` is all time of a
    /// wall-clock profile, including sampling gaps. The default is `time` for wall-clock profiles,
    /// else `offcpu`.
    #[arg(long, value_name = "WHAT", help_heading = "Stacks")]
    pub(crate) weight: Option<StackWeight>,
    /// Include only stacks of threads that left the CPU in STATE: uninterruptible, runnable, …
    #[arg(
        long,
        value_name = "STATE",
        value_delimiter = ',',
        help_heading = "Stacks"
    )]
    pub(crate) state: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct SvgArgs {
    #[command(flatten)]
    pub(crate) stacks: StackArgs,
    /// Colour stacks by the change of their share compared with WINDOW
    #[arg(
        long = "vs",
        value_name = "WINDOW",
        value_parser = WindowText::parse,
        allow_hyphen_values = true,
        help_heading = "Stacks"
    )]
    pub(crate) versus: Option<WindowText>,
    /// Set the title of the image to TEXT [default: name of the recording]
    #[arg(long, value_name = "TEXT", help_heading = "Output")]
    pub(crate) title: Option<String>,
}
