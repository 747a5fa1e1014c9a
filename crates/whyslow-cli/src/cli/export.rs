use std::path::PathBuf;

use clap::{Args, Subcommand};
use whyslow_base::args::RedactArgs;
use whyslow_base::time::{WindowText, parse_duration};
use whyslow_model::Ns;

use super::ask::{FilterArgs, WindowArgs};
use super::stack_weight::StackWeight;

pub(crate) const EXAMPLES: &str = "\
Examples:
  whyslow export html web.wsl -o incident.html            a report that opens in any browser
  whyslow export md web.wsl -w +9s..+10s                  the same as text for a ticket
  whyslow export svg web.wsl -w op:17 -o flame.svg        where threads waited in that call
  whyslow export svg web.wsl -w +9s..+10s --vs +1s..+2s   what is different from then
  whyslow export collapsed web.wsl | flamegraph.pl        for other tools
  whyslow export pprof web.wsl -o web.pb.gz               go tool pprof -http : web.pb.gz
  whyslow export speedscope web.wsl -o web.json           https://www.speedscope.app, offline too
  whyslow export otlp web.wsl --min 10ms -o spans.jsonl   for collectors of OpenTelemetry
  whyslow export openmetrics web.wsl -o web.prom          counters and histograms for Prometheus
  whyslow export firefox web.wsl -o web.json              https://profiler.firefox.com
  whyslow export snapshot web.wsl -w op:17 -o s.wsl.tar.zst   to send; every command opens it
  whyslow export snapshot web.wsl --redact -o s.wsl.tar.zst   with paths, hosts and users hidden
  whyslow export perfetto web.wsl -w +8s..+11s -o web.perfetto-trace
Tables: every answer is written as a file by its own command
  whyslow io top web.wsl --format parquet -o top.parquet  also csv, tsv, ndjson, arrow, md, html";

/// For whom a recording is written.
#[derive(Debug, Subcommand)]
pub(crate) enum ExportCommand {
    /// A window as a recording of its own, one small file to send
    Snapshot(SnapshotArgs),
    /// What was slow and why, with charts and tables, in one file that opens in any browser offline
    Html(ReportArgs),
    /// The same as text for tickets and mails: what was slow and why, with tables
    Md(ReportArgs),
    /// Flame graph of where threads waited, one file that zooms and searches offline
    Svg(SvgArgs),
    /// Time lines of threads, CPUs, calls and devices for ui.perfetto.dev and trace_processor
    Perfetto(ExportArgs),
    /// Operations of 1 ms or more (--min) with their waits, as OpenTelemetry spans (OTLP, JSON lines)
    Otlp(ExportArgs),
    /// Counters and histograms of latency for Prometheus and the like, as OpenMetrics text
    Openmetrics(ExportArgs),
    /// Stacks, a line each, for flamegraph.pl, inferno and the like
    Collapsed(StackArgs),
    /// Stacks for speedscope
    Speedscope(StackArgs),
    /// Stacks, and calls of 1 ms or more (--min), for profiler.firefox.com
    Firefox(StackArgs),
    /// Stacks for `go tool pprof`
    Pprof(StackArgs),
}

/// What every export takes.
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
    /// Write to a file instead of standard output
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
    /// Keep so much before and after the window, too [default: as long as it is, 5 s at least]
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, help_heading = "Window")]
    pub(crate) around: Option<Ns>,
    #[command(flatten)]
    pub(crate) redact: RedactArgs,
    /// Write to a file instead of standard output
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
    /// Write to a file instead of standard output
    #[arg(short, long, value_name = "FILE", help_heading = "Output")]
    pub(crate) output: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct StackArgs {
    #[command(flatten)]
    pub(crate) export: ExportArgs,
    /// What is counted: time away from the CPU, samples as their sampler counted them, or all time of
    /// a wall-clock profile, also of threads that could not be sampled [default: time for such profiles,
    /// else offcpu]
    #[arg(long, value_name = "WHAT", help_heading = "Stacks")]
    pub(crate) weight: Option<StackWeight>,
    /// Only where threads were left in these states: uninterruptible, sleeping, runnable …
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
    /// Colour what takes more of the time than in this window, and what less
    #[arg(
        long = "vs",
        value_name = "WINDOW",
        value_parser = WindowText::parse,
        allow_hyphen_values = true,
        help_heading = "Stacks"
    )]
    pub(crate) versus: Option<WindowText>,
    /// Title of the picture [default: name of the recording]
    #[arg(long, value_name = "TEXT", help_heading = "Output")]
    pub(crate) title: Option<String>,
}
