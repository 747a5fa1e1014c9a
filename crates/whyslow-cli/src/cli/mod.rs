//! What can be typed: commands, flags and their help.

mod ask;
mod explain;
mod export;
#[cfg_attr(
    not(feature = "fleet"),
    expect(
        dead_code,
        reason = "read by the commands that such a build leaves out"
    )
)]
mod fleet;
mod flight;
mod load;
mod questions;
mod record;
mod stack_weight;

pub(crate) use ask::{AskArgs, FilterArgs, GraphArgs, WindowArgs};
pub(crate) use explain::{ExplainArgs, Versus};
pub(crate) use export::{ExportArgs, ExportCommand, ReportArgs, SnapshotArgs, StackArgs, SvgArgs};
pub(crate) use fleet::{FleetAsk, FleetCommand, PushArgs};
#[cfg(feature = "fleet")]
pub(crate) use fleet::{
    FleetCompactArgs, FleetExpireArgs, FleetFetchArgs, FleetFindArgs, FleetPushArgs,
};
#[cfg(feature = "load")]
pub(crate) use load::{AmountArgs, ListArg, RequestArgs};
pub(crate) use load::{LoadArgs, LoadCheckArgs, LoadCommand, LoadDiffArgs};
pub(crate) use questions::{QuestionCommand, ViewArgs};
pub(crate) use record::{FormArg, HeldArgs, RecordArgs, Stacks, TopicArg};
pub(crate) use stack_weight::StackWeight;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};
use whyslow_base::args::{NamedCommands, OutputArgs, TalkArgs};
use whyslow_base::time::parse_duration;
use whyslow_emulations::AsCommand;
use whyslow_model::Ns;
use whyslow_serve::ServeArgs;

/// Find out why something on a Linux machine was slow, and who did it.
#[derive(Debug, Parser)]
#[command(
    name = "whyslow",
    version,
    propagate_version = true,
    arg_required_else_help = true,
    disable_help_subcommand = true,
    max_term_width = 100,
    before_help = EXAMPLES,
    after_help = "A recording is a directory NAME.wsl. Wherever one is taken, the trace of another tool is taken \
                  too (imported into a cache), and so is @last, the recording used last. Questions, \
                  `as`, `info` and `sql` also take @live: this machine is recorded (as root) into a place of \
                  its own that nobody else sees, each interval is answered when it is over, and nothing is \
                  kept. A recorder that runs anyway and has what is needed is followed instead; @live:new \
                  follows none, @live:PID this one."
)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) talk: TalkArgs,
    #[command(subcommand)]
    pub(crate) command: Command,
}

impl Cli {
    /// The command line, or its help or what is wrong with it, and the end.
    pub(crate) fn from_words() -> Self {
        let words: Vec<OsString> = std::env::args_os().collect();
        let command = Self::of(NamedCommands::Among(&words));
        let matches = command.try_get_matches_from(&words);
        let read = |matches| Self::from_arg_matches(&matches);
        let explain = |error: clap::Error| error.format(&mut Self::whole());
        let found = matches.and_then(|matches| read(matches).map_err(explain));
        found.unwrap_or_else(|error| with_tip(error).exit())
    }

    /// What other programs ask, in the words of the command line; nothing is printed.
    pub(crate) fn read(words: &[OsString]) -> Result<Self, clap::Error> {
        let command = Self::of(NamedCommands::Among(words));
        Self::from_arg_matches(&command.try_get_matches_from(words)?)
    }

    /// The definition of a command: `io top`, `explain`.
    pub(crate) fn definition(path: &[&str]) -> Option<clap::Command> {
        let words: Vec<OsString> = path.iter().map(OsString::from).collect();
        let mut command = Self::of(NamedCommands::Among(&words));
        for name in path {
            command = command.find_subcommand(name)?.clone();
        }
        Some(command)
    }

    /// Every command with everything it takes, for its manual.
    pub(crate) fn whole() -> clap::Command {
        Self::of(NamedCommands::All)
    }

    /// All commands, those that are asked for with everything they take: to say this of all of them
    /// takes longer than many an answer.
    fn of(asked: NamedCommands<'_>) -> clap::Command {
        Self::command().mut_subcommands(|command| match command.get_name() {
            "as" => whyslow_emulations::complete(command, asked),
            _ => questions::complete(command, asked),
        })
    }
}

/// Who names a recording where a question belongs is told the order of the two.
fn with_tip(mut error: clap::Error) -> clap::Error {
    if error.kind() == ErrorKind::InvalidSubcommand
        && let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidSubcommand)
        && (word.ends_with(".wsl") || word.starts_with('@') || Path::new(word).exists())
    {
        let tip = "a recording comes after the question, as in: whyslow io stats web.wsl";
        let tips = ContextValue::StyledStrs(vec![tip.into()]);
        error.insert(ContextKind::Suggested, tips);
    }
    error
}

const EXAMPLES: &str = "\
Examples:
  whyslow import trace/ -o web.wsl       an LTTng kernel trace becomes a recording
  whyslow explain                        what was slow, and who did it
  whyslow io usage                       who read and wrote how much
  whyslow io stats                       how long opens, reads, writes, syncs took
  whyslow io top --op open -n 5          the five slowest opens, with file names
  whyslow io top -w op:17                what else ran while operation 17 did
  whyslow block hist --dev sda --vs sdb  two disks side by side
  sudo whyslow io usage @live 1          the same of this machine, every second";

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Record this machine: calls, scheduling, block I/O
    #[command(before_help = record::EXAMPLES, after_long_help = flight::MANUAL)]
    Record(Box<RecordArgs>),
    /// Say what happens now, in every recording under way
    #[command(before_help = MARK_EXAMPLES)]
    Mark(MarkArgs),
    /// What can be recorded on this machine, and what would make it more
    Doctor(DoctorArgs),
    #[command(hide = true)]
    Held(HeldArgs),
    /// Turn the traces of other tools into a recording
    #[command(before_help = IMPORT_EXAMPLES)]
    Import(ImportArgs),
    /// What a recording holds, and what was lost
    #[command(before_help = INFO_EXAMPLES)]
    Info(InfoArgs),
    /// Why something was slow, and who did it
    #[command(before_help = explain::EXAMPLES)]
    Explain(Box<ExplainArgs>),
    /// Send requests and see what each spent its time with; whether a change helped
    #[command(before_help = load::EXAMPLES)]
    Load(Box<LoadArgs>),
    /// Write a recording for other tools: flame graphs, profiles
    #[command(subcommand, before_help = export::EXAMPLES, arg_required_else_help = true)]
    Export(Box<ExportCommand>),
    #[command(flatten)]
    Question(Box<QuestionCommand>),
    /// Answer in the columns of a tool you know: iostat, pidstat, opensnoop, lttng-iolatencytop, …
    #[command(subcommand, before_help = AS_EXAMPLES, arg_required_else_help = true)]
    As(AsCommand),
    /// Ask in SQL (needs the duckdb command line)
    #[command(before_help = SQL_EXAMPLES)]
    Sql(SqlArgs),
    /// Many hosts: put what recordings come to into a lake, and ask it
    #[command(subcommand, before_help = fleet::EXAMPLES, arg_required_else_help = true)]
    Fleet(Box<FleetCommand>),
    /// Show recordings in a browser, or answer programs over HTTP
    #[command(before_help = whyslow_serve::EXAMPLES)]
    Serve(ServeArgs),
    /// Print a completion script for a shell
    #[command(before_help = COMPLETIONS_EXAMPLES)]
    Completions(CompletionsArgs),
    /// Print or write the manual pages
    #[command(before_help = MAN_EXAMPLES)]
    Man(ManArgs),
    /// Print the JSON Schema of the machine forms
    Schema(SchemaArgs),
}

const MARK_EXAMPLES: &str = "\
Examples:
  sudo whyslow mark deployed 2.4.1           `whyslow info` lists the marks of a recording";
const IMPORT_EXAMPLES: &str = "\
Examples:
  whyslow import lttng-traces/auto-20150115-120942 -o web.wsl
  whyslow import trace.tar.zst
  whyslow import host-a/ host-b/ -o both.wsl     several sources on one clock";
const INFO_EXAMPLES: &str = "\
Examples:
  whyslow info web.wsl
  whyslow info web.wsl --events          with the number of events of each kind
  whyslow info web.wsl --devices         disks, volumes and mounts as a tree";
const AS_EXAMPLES: &str = "\
Examples:
  whyslow as iostat web.wsl -dx 1              disks, second by second
  whyslow as opensnoop web.wsl -x              opens that failed
  whyslow as lttng-iolatencytop web.wsl --minsize 2 --limit 4
  whyslow as lttng-schedstats-mi trace/        LAMI 1.0, for Trace Compass
  sudo whyslow as opensnoop @live              this machine, as it happens";
const SQL_EXAMPLES: &str = "\
Examples:
  whyslow sql web.wsl \"SELECT comm, count(*) AS n FROM io GROUP BY comm ORDER BY n DESC\"
  whyslow sql web.wsl --tables           the views and what their columns mean
  whyslow sql web.wsl                    interactive";
const COMPLETIONS_EXAMPLES: &str = "\
Examples:
  whyslow completions bash > ~/.local/share/bash-completion/completions/whyslow
  whyslow completions zsh  > ~/.zfunc/_whyslow
  whyslow completions fish > ~/.config/fish/completions/whyslow.fish";
const MAN_EXAMPLES: &str = "\
Examples:
  whyslow man | man -l -
  whyslow man io top | man -l -
  whyslow man --dir ~/.local/share/man/man1";

#[derive(Debug, Args)]
pub(crate) struct MarkArgs {
    /// What happens
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
    #[arg(required = true, value_name = "TRACE")]
    pub(crate) sources: Vec<PathBuf>,
    /// Recording to write [default: named after the first trace]
    #[arg(short, long, value_name = "NAME.wsl")]
    pub(crate) output: Option<PathBuf>,
    /// Replace an existing recording
    #[arg(long)]
    pub(crate) force: bool,
    /// Exit with 3 if the trace lost events or parts of it could not be read
    #[arg(long)]
    pub(crate) strict: bool,
    /// Times of this source are so much too early or too late: `profile.jfr=+1.5s` adds that to all of
    /// them; may be repeated
    #[arg(long, value_name = "TRACE=±DURATION", value_parser = parse_shift)]
    pub(crate) shift: Vec<(PathBuf, Ns)>,
    /// Format of the access logs among the traces, as in the configuration of nginx (log_format) or Apache
    /// (LogFormat); without it the formats that both have built in are known
    #[arg(long, value_name = "FORMAT")]
    pub(crate) format: Option<String>,
    /// Of a spool, without these classes of events: to see what answers are worth without them
    #[arg(long, hide = true, value_name = "CLASSES", value_delimiter = ',')]
    pub(crate) leave_out: Vec<String>,
    /// Of a spool, as if so many of a hundred events had been lost
    #[arg(long, hide = true, value_name = "PERCENT", value_parser = parse_percent)]
    pub(crate) lose: Option<f64>,
}

/// `profile.jfr=-20ms`: a source, and what is added to its times.
fn parse_shift(text: &str) -> Result<(PathBuf, Ns), String> {
    let wrong = || format!("`{text}` is no shift: write it like profile.jfr=+1.5s");
    let (path, by) = text.rsplit_once('=').ok_or_else(wrong)?;
    let (sign, length) = match by.strip_prefix('-') {
        Some(length) => (-1, length),
        None => (1, by.strip_prefix('+').unwrap_or(by)),
    };
    if path.is_empty() || length.is_empty() {
        return Err(wrong());
    }
    Ok((PathBuf::from(path), sign * parse_duration(length)?))
}

/// `1%`, of 0 to 100.
fn parse_percent(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').and_then(|text| text.parse().ok());
    number
        .filter(|percent| (0.0..=100.0).contains(percent))
        .ok_or_else(|| format!("`{text}` is not a share: write it like 1%"))
}

#[derive(Debug, Args)]
pub(crate) struct InfoArgs {
    /// Recording or trace [default: @last]
    #[arg(value_name = "RECORDING")]
    pub(crate) recording: Option<String>,
    /// Also the number of events by name
    #[arg(long)]
    pub(crate) events: bool,
    /// Instead: which block device lies on which, and what is mounted from it
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
    /// Statement; interactive without one
    #[arg(value_name = "SQL")]
    pub(crate) statement: Option<String>,
    /// List the views with their columns
    #[arg(long, conflicts_with_all = ["statement", "query_file"])]
    pub(crate) tables: bool,
    /// Take the statement from a file
    #[arg(long, value_name = "FILE", conflicts_with = "statement")]
    pub(crate) query_file: Option<PathBuf>,
    /// Form of the result [default: a table]
    #[arg(long, value_name = "FORM")]
    pub(crate) format: Option<SqlFormat>,
    /// Short for --format json
    #[arg(long, conflicts_with_all = ["format", "csv"])]
    pub(crate) json: bool,
    /// Short for --format csv
    #[arg(long, conflicts_with = "format")]
    pub(crate) csv: bool,
    /// Memory the query may use
    #[arg(long, value_name = "SIZE", default_value = "4GiB", value_parser = whyslow_base::time::parse_size)]
    pub(crate) memory: i64,
    /// Threads the query may use [default: all CPUs]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub(crate) threads: Option<u32>,
    /// Where the recording lies that goes when it has been asked; it is not to be known as @last
    #[arg(long, hide = true)]
    pub(crate) at: Option<std::path::PathBuf>,
}

/// Forms the duckdb command line prints.
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
    /// Command whose page is wanted [default: whyslow itself]
    #[arg(value_name = "COMMAND", conflicts_with = "dir")]
    pub(crate) command: Vec<String>,
    /// Write the pages of all commands into this directory
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct SchemaArgs {
    #[arg(default_value = "answer")]
    pub(crate) what: SchemaKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SchemaKind {
    /// `--format json`
    Answer,
    /// One line of `--format ndjson`
    Ndjson,
    /// One line of `--progress=json`
    Progress,
    /// `explain --format json`
    Explanation,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_tree_is_consistent() {
        Cli::whole().debug_assert();
    }

    /// What a command says of itself does not depend on which others are complete.
    #[test]
    fn a_command_that_is_asked_for_is_complete() {
        let help = |command: &clap::Command, names: &[&str]| {
            let find = |found: &clap::Command, name| found.find_subcommand(name).cloned();
            let found = names
                .iter()
                .try_fold(command.clone(), |found, name| find(&found, name));
            let mut found = found.expect("it is there");
            [found.render_help(), found.render_long_help()].map(|text| text.to_string())
        };
        let mut whole = Cli::whole();
        whole.build();
        let check = |names: &[&str]| {
            let words: Vec<OsString> = names.iter().map(OsString::from).collect();
            let mut asked = Cli::of(NamedCommands::Among(&words));
            asked.build();
            assert_eq!(help(&asked, names), help(&whole, names), "{names:?}");
        };
        check(&[]);
        let mut count = 0;
        for command in whole.get_subcommands() {
            let name = command.get_name();
            check(&[name]);
            for inner in command.get_subcommands() {
                check(&[name, inner.get_name()]);
                count += 1;
            }
        }
        assert!(count > 100, "{count}");
    }
}
