//! The command line: commands, flags and their help.

mod explain;
mod export;
#[cfg_attr(
    not(feature = "fleet"),
    expect(
        dead_code,
        reason = "read by commands that this build does not contain"
    )
)]
mod fleet;
mod flight;
mod front_page;
mod help;
#[cfg(test)]
mod help_snapshots;
mod load;
mod now;
mod query_args;
mod query_commands;
mod record;
mod stack_weight;
#[cfg(test)]
mod tests;
mod tool_hint;
mod topics;
mod usage_error;

pub(crate) use explain::{ExplainArgs, Versus};
pub(crate) use export::{ExportArgs, ExportCommand, ReportArgs, SnapshotArgs, StackArgs, SvgArgs};
pub(crate) use fleet::{FleetCommand, FleetQuery, PushArgs};
#[cfg(feature = "fleet")]
pub(crate) use fleet::{
    FleetCompactArgs, FleetExpireArgs, FleetFetchArgs, FleetFindArgs, FleetPushArgs,
};
pub(crate) use help::HelpArgs;
#[cfg(feature = "load")]
pub(crate) use load::{AmountArgs, ListArg, RequestArgs};
pub(crate) use load::{LoadArgs, LoadCheckArgs, LoadCommand, LoadDiffArgs};
pub(crate) use now::NowArgs;
pub(crate) use query_args::{FilterArgs, GraphArgs, QueryArgs, WindowArgs};
pub(crate) use query_commands::{QueryCommand, ViewArgs};
pub(crate) use record::{FormArg, HeldArgs, RecordArgs, Stacks};
pub(crate) use stack_weight::StackWeight;
pub(crate) use tool_hint::command_for;
pub(crate) use topics::{TopicChange, completed as completed_topics, topics};

use std::ffi::OsString;
use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};
use whyslow_base::args::{NamedCommands, OutputArgs, TalkArgs};
use whyslow_base::failure::Failure;
use whyslow_base::time::parse_duration;
use whyslow_base::{normalised, path_parser};
use whyslow_emulations::AsCommand;
use whyslow_model::Ns;
use whyslow_serve::ServeArgs;

/// Find out why something on a Linux machine was slow, and what caused it.
#[derive(Debug, Parser)]
#[command(
    name = "whyslow",
    version,
    propagate_version = true,
    arg_required_else_help = true,
    disable_help_subcommand = true,
    max_term_width = 100
)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) talk: TalkArgs,
    #[command(subcommand)]
    pub(crate) command: Command,
}

impl Cli {
    /// Parses the command line; prints help or an error and exits if that is the result.
    ///
    /// # Errors
    ///
    /// If the words are no valid command. For the name of another tool, the hint is the command that
    /// shows the same.
    pub(crate) fn from_args() -> Result<Self, Failure> {
        let mut args: Vec<OsString> = std::env::args_os().collect();
        let is_root = rustix::process::geteuid().is_root();
        let is_on_terminal = std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
        if is_explained_at_once(args.len(), is_root, is_on_terminal) {
            args.push("now".into());
        }
        let command = Self::of(NamedCommands::Among(&args));
        let matches = command.try_get_matches_from(&args);
        let read = |matches| Self::from_arg_matches(&matches);
        let explain = |error: clap::Error| error.format(&mut Self::whole());
        let found = matches.and_then(|matches| read(matches).map_err(explain));
        found.map_err(
            |error| match tool_hint::failure_of(&error, &args, is_root) {
                Some(failure) => failure,
                None => usage_error::failure(&with_tip(error)),
            },
        )
    }

    /// Parses the request of another program, given as command-line arguments; prints nothing.
    pub(crate) fn read(args: &[OsString]) -> Result<Self, clap::Error> {
        let command = Self::of(NamedCommands::Among(args));
        Self::from_arg_matches(&command.try_get_matches_from(args)?)
    }

    /// The definition of a command: `io top`, `explain`.
    pub(crate) fn definition(path: &[&str]) -> Option<clap::Command> {
        let args: Vec<OsString> = path.iter().map(OsString::from).collect();
        let mut command = Self::of(NamedCommands::Among(&args));
        for name in path {
            command = command.find_subcommand(name)?.clone();
        }
        Some(command)
    }

    /// All commands with all their options, for manual pages.
    pub(crate) fn whole() -> clap::Command {
        Self::of(NamedCommands::All)
    }

    /// All commands; those that occur among the words have all their options.
    pub(crate) fn naming(words: &[OsString]) -> clap::Command {
        Self::of(NamedCommands::Among(words))
    }

    /// All commands, but only the named ones with their options: defining the options of all
    /// commands takes longer than many queries.
    fn of(named: NamedCommands<'_>) -> clap::Command {
        let command = Self::command().mut_subcommands(|command| match command.get_name() {
            "as" => whyslow_emulations::complete(command, named),
            _ => query_commands::complete(command, named),
        });
        front_page::add(command)
    }
}

/// Whether the program without arguments records and explains: as root and in a terminal.
/// Otherwise it prints what to type first.
fn is_explained_at_once(count: usize, is_root: bool, is_on_terminal: bool) -> bool {
    count == 1 && is_root && is_on_terminal
}

/// Explains the order of arguments if a recording is given in place of a command.
fn with_tip(mut error: clap::Error) -> clap::Error {
    if error.kind() == ErrorKind::InvalidSubcommand
        && let Some(ContextValue::String(name)) = error.get(ContextKind::InvalidSubcommand)
        && (name.ends_with(".wsl") || name.starts_with('@') || Path::new(name).exists())
    {
        let tip = "name the recording after the command: whyslow io stats web.wsl";
        let tips = ContextValue::StyledStrs(vec![tip.into()]);
        error.insert(ContextKind::Suggested, tips);
    }
    error
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Record 10 s, explain what was slow, and show which resources are saturated
    #[command(before_help = now::EXAMPLES)]
    Now(NowArgs),
    /// Record this machine: system calls, scheduling, block I/O, locks, DNS lookups, …
    #[command(before_help = record::EXAMPLES, after_long_help = flight::MANUAL)]
    Record(Box<RecordArgs>),
    /// Add a marker to every active recording
    #[command(before_help = MARK_EXAMPLES)]
    Mark(MarkArgs),
    /// Check what can be recorded on this machine, and how to enable the rest
    Doctor(DoctorArgs),
    #[command(hide = true)]
    Held(HeldArgs),
    /// Import traces and reports of other tools into a recording
    #[command(before_help = IMPORT_EXAMPLES)]
    Import(ImportArgs),
    /// Show what a recording contains and what was lost
    #[command(before_help = INFO_EXAMPLES)]
    Info(InfoArgs),
    /// Explain what was slow, why, and which thread or process caused it
    // `report`: the word of perf for the same.
    #[command(before_help = explain::EXAMPLES, alias = "report")]
    Explain(Box<ExplainArgs>),
    /// Send HTTP requests and measure their phases; compare and check recorded requests
    #[command(before_help = load::EXAMPLES)]
    Load(Box<LoadArgs>),
    /// Export a recording: reports, snapshots, flame graphs, profiles of other tools
    #[command(subcommand, before_help = export::EXAMPLES, arg_required_else_help = true)]
    Export(Box<ExportCommand>),
    #[command(flatten)]
    Query(Box<QueryCommand>),
    /// Show a recording as a familiar tool would: iostat, pidstat, opensnoop, lttng-iolatencytop, …
    #[command(subcommand, before_help = AS_EXAMPLES, arg_required_else_help = true)]
    As(AsCommand),
    /// Query a recording in SQL (needs the duckdb command line)
    #[command(before_help = SQL_EXAMPLES)]
    Sql(SqlArgs),
    /// Analyse many hosts: push summaries of recordings to a lake, and query it
    #[command(subcommand, before_help = fleet::EXAMPLES, arg_required_else_help = true)]
    Fleet(Box<FleetCommand>),
    /// Serve recordings to a browser, and to programs over HTTP
    #[command(before_help = whyslow_serve::EXAMPLES)]
    Serve(ServeArgs),
    /// Print a shell completion script
    #[command(before_help = COMPLETIONS_EXAMPLES)]
    Completions(CompletionsArgs),
    /// Print help for a command, or for whyslow
    #[command(before_help = help::EXAMPLES)]
    Help(HelpArgs),
    /// Show a manual page, or write all of them to a directory
    #[command(before_help = MAN_EXAMPLES)]
    Man(ManArgs),
    /// Print the JSON Schema of a machine-readable format
    Schema(SchemaArgs),
    /// Print the version
    Version,
}

const MARK_EXAMPLES: &str = "\
Examples:
  sudo whyslow mark deployed 2.4.1           `whyslow info` lists the markers of a recording";
const IMPORT_EXAMPLES: &str = "\
Examples:
  whyslow import lttng-traces/auto-20150115-120942 -o web.wsl
  whyslow import trace.tar.zst
  whyslow import host-a/ host-b/ -o both.wsl     several traces, merged by time
  whyslow import --formats                       what can be imported";
const INFO_EXAMPLES: &str = "\
Examples:
  whyslow info web.wsl
  whyslow info web.wsl --events          also the number of events by name
  whyslow info web.wsl --devices         disks, volumes and mounts as a tree";
const AS_EXAMPLES: &str = "\
Examples:
  whyslow as iostat web.wsl -dx 1              disks, every second
  whyslow as opensnoop web.wsl -x              failed opens
  whyslow as lttng-iolatencytop web.wsl --minsize 2 --limit 4
  whyslow as lttng-schedstats-mi trace/        LAMI 1.0, for Trace Compass
  sudo whyslow as opensnoop @live              opens on this machine, live";
const SQL_EXAMPLES: &str = "\
Examples:
  whyslow sql web.wsl \"SELECT comm, count(*) AS n FROM io GROUP BY comm ORDER BY n DESC\"
  whyslow sql web.wsl --tables           the views and their columns
  whyslow sql web.wsl                    interactive";
const COMPLETIONS_EXAMPLES: &str = "\
Examples:
  whyslow completions bash > ~/.local/share/bash-completion/completions/whyslow
  whyslow completions zsh  > ~/.zfunc/_whyslow
  whyslow completions fish > ~/.config/fish/completions/whyslow.fish";
const MAN_EXAMPLES: &str = "\
Examples:
  whyslow man                            on a terminal, in a pager
  whyslow man io top
  whyslow man --dir ~/.local/share/man/man1     then `man whyslow` works";

#[derive(Debug, Args)]
pub(crate) struct MarkArgs {
    /// Text of the marker
    #[arg(required = true, value_name = "TEXT")]
    pub(crate) text: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ImportArgs {
    /// Traces: directories, files, archives (.tar, .tar.gz, .tar.xz, .tar.zst, .zip)
    ///
    /// LTTng, perf, trace-cmd, blktrace, strace, bcc, sysstat, JFR, pprof, access logs, spans and
    /// others, detected by content: see --formats
    #[arg(required_unless_present = "formats", value_name = "TRACE", value_parser = path_parser())]
    pub(crate) sources: Vec<PathBuf>,
    /// List the formats that can be imported, which tools write them, and examples
    #[arg(long, exclusive = true)]
    pub(crate) formats: bool,
    /// Write the recording to NAME.wsl [default: named after the first trace]
    #[arg(short, long, value_name = "NAME.wsl", value_parser = path_parser())]
    pub(crate) output: Option<PathBuf>,
    /// Replace an existing recording
    #[arg(long)]
    pub(crate) force: bool,
    /// Exit with status 3 if the trace lost events or parts of it could not be read
    #[arg(long)]
    pub(crate) strict: bool,
    /// Add DURATION to all timestamps of TRACE: `profile.jfr=+1.5s`; may be repeated
    #[arg(long, value_name = "TRACE=±DURATION", value_parser = parse_shift)]
    pub(crate) shift: Vec<(PathBuf, Ns)>,
    /// Parse access logs in FORMAT, as written in nginx (log_format) or Apache (LogFormat)
    /// [default: their built-in formats]
    #[arg(long, value_name = "FORMAT")]
    pub(crate) format: Option<String>,
    /// Omit CLASSES of events of a spool, to test results without them
    #[arg(long, hide = true, value_name = "CLASSES", value_delimiter = ',')]
    pub(crate) leave_out: Vec<String>,
    /// Drop PERCENT of the events of a spool, as if they had been lost
    #[arg(long, hide = true, value_name = "PERCENT", value_parser = parse_percent)]
    pub(crate) lose: Option<f64>,
}

/// `profile.jfr=-20ms`: a source, and the offset added to its timestamps.
fn parse_shift(text: &str) -> Result<(PathBuf, Ns), String> {
    let wrong = || format!("`{text}` is not a shift: write it like profile.jfr=+1.5s");
    let (path, by) = text.rsplit_once('=').ok_or_else(wrong)?;
    let (sign, length) = match by.strip_prefix('-') {
        Some(length) => (-1, length),
        None => (1, by.strip_prefix('+').unwrap_or(by)),
    };
    if path.is_empty() || length.is_empty() {
        return Err(wrong());
    }
    Ok((normalised(Path::new(path)), sign * parse_duration(length)?))
}

/// `1%`, from 0 to 100.
fn parse_percent(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').and_then(|text| text.parse().ok());
    number
        .filter(|percent| (0.0..=100.0).contains(percent))
        .ok_or_else(|| format!("`{text}` is not a percentage: write it like 1%"))
}

#[derive(Debug, Args)]
pub(crate) struct InfoArgs {
    /// Recording or trace [default: @last]
    #[arg(value_name = "RECORDING")]
    pub(crate) recording: Option<String>,
    /// Also show the number of events by name
    #[arg(long)]
    pub(crate) events: bool,
    /// Show only block devices, as a tree with their mount points
    #[arg(long, conflicts_with = "events")]
    pub(crate) devices: bool,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

#[derive(Debug, Args)]
pub(crate) struct SqlArgs {
    /// Recording or trace [default: @last]
    #[arg(value_name = "RECORDING")]
    pub(crate) recording: Option<String>,
    /// Statement to run [default: an interactive shell]
    #[arg(value_name = "SQL")]
    pub(crate) statement: Option<String>,
    /// List the views and their columns
    #[arg(long, conflicts_with_all = ["statement", "query_file"])]
    pub(crate) tables: bool,
    /// Read the statement from FILE
    #[arg(long, value_name = "FILE", conflicts_with = "statement")]
    pub(crate) query_file: Option<PathBuf>,
    /// Write the result in FORMAT [default: a table]
    #[arg(long, value_name = "FORMAT")]
    pub(crate) format: Option<SqlFormat>,
    /// Same as --format json
    #[arg(long, conflicts_with_all = ["format", "csv"])]
    pub(crate) json: bool,
    /// Same as --format csv
    #[arg(long, conflicts_with = "format")]
    pub(crate) csv: bool,
    /// Limit the memory of the query to SIZE
    #[arg(long, value_name = "SIZE", default_value = "4GiB", value_parser = whyslow_base::time::parse_size)]
    pub(crate) memory: i64,
    /// Run the query on N threads [default: one per CPU]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub(crate) threads: Option<u32>,
    /// Path of a temporary recording, which must not become @last
    #[arg(long, hide = true)]
    pub(crate) at: Option<std::path::PathBuf>,
}

/// Output formats of the duckdb command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SqlFormat {
    Text,
    Json,
    Ndjson,
    Csv,
    Md,
    Html,
}

#[derive(Debug, Args)]
pub(crate) struct CompletionsArgs {
    /// Print the script for SHELL
    pub(crate) shell: Shell,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum Shell {
    Bash,
    Zsh,
    Fish,
}

#[derive(Debug, Args)]
pub(crate) struct ManArgs {
    /// Print the page of COMMAND [default: that of whyslow]
    #[arg(value_name = "COMMAND", conflicts_with = "dir")]
    pub(crate) command: Vec<String>,
    /// Write the pages of all commands to DIR
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct SchemaArgs {
    /// Print the schema of WHAT
    #[arg(default_value = "answer")]
    pub(crate) what: SchemaKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SchemaKind {
    /// `--format json`
    Answer,
    /// A line of `--format ndjson`
    Ndjson,
    /// A line of `--progress=json`
    Progress,
    /// `explain --format json`
    Explanation,
}
