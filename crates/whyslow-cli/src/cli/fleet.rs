use std::path::PathBuf;

use clap::error::ErrorKind;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, Error, FromArgMatches, Subcommand};
use serde_json::{Map, Value};
use whyslow_base::args::{OutputArgs, RedactArgs};
use whyslow_base::time::{WindowText, parse_duration, parse_size};
use whyslow_model::Ns;
use whyslow_model::text::is_name;
use whyslow_sources::lake::{Parameter, QUERIES, TextQuery};

pub(super) const EXAMPLES: &str = "\
Examples:
  whyslow fleet push web.wsl s3://traces/lake         push a summary (a few KiB)
  whyslow fleet deviations --lake s3://traces/lake    hosts slower than the others
  whyslow fleet verdicts --lake /mnt/lake -w -1h..    findings of the last hour
  whyslow fleet verdicts web-*.wsl db-*.wsl           findings of local recordings
  whyslow fleet deviations --lake /mnt/lake --by rack --hosts 'web-*'
  whyslow fleet sql --lake /mnt/lake \"SELECT host, count(*) AS n FROM finding GROUP BY host\"
  whyslow fleet push *.wsl /mnt/lake --label rack=r7 --label version=2.4.1
  whyslow fleet compact s3://traces/lake              merge small files
  whyslow fleet expire s3://traces/lake --keep 30d";

const PUSH_EXAMPLES: &str = "\
Examples:
  whyslow fleet push web.wsl s3://traces/lake
  whyslow fleet push *.wsl gs://traces/lake --cluster eu-1 --label service=shop
  whyslow fleet push web.wsl /mnt/lake --raw          also the tables, for your own SQL
  whyslow fleet push web.wsl s3://traces/lake --redact --redact-key key";

const PLACES: &str = "\
A lake is a directory or a prefix in an object store: s3://BUCKET/PATH, gs://BUCKET/PATH, az://CONTAINER/PATH, \
file:///PATH. Credentials are taken from the environment (AWS_ACCESS_KEY_ID, AWS_ENDPOINT_URL, \
GOOGLE_APPLICATION_CREDENTIALS, AZURE_STORAGE_ACCOUNT_NAME, …) or from the instance role. \
docs/fleet.md describes the layout.";

#[derive(Debug)]
pub(crate) enum FleetCommand {
    Push(FleetPushArgs),
    Compact(FleetCompactArgs),
    Expire(FleetExpireArgs),
    Find(FleetFindArgs),
    Fetch(FleetFetchArgs),
    Keep(FleetKeepArgs),
    Query(Box<FleetQuery>),
}

/// A lake query as typed.
#[derive(Debug, Clone)]
pub(crate) struct FleetQuery {
    /// The name of a query in `sql/fleet/`; `sql` is a statement of the user instead.
    pub(crate) query: Option<String>,
    pub(crate) sql: Option<String>,
    /// Given parameters of the query; the others have the defaults of its text.
    pub(crate) parameters: Map<String, Value>,
    pub(crate) args: FleetQueryArgs,
}

/// Arguments of every lake query.
#[derive(Debug, Clone, Args)]
pub(crate) struct FleetQueryArgs {
    /// Query these recordings or traces instead of a lake
    #[arg(value_name = "RECORDING", conflicts_with = "lake")]
    pub(crate) recordings: Vec<String>,
    /// Query LAKE [default: $WHYSLOW_LAKE]
    #[arg(long, value_name = "LAKE")]
    pub(crate) lake: Option<String>,
    /// Include only hosts matching GLOB: 'web-*'; may be repeated
    #[arg(long, value_name = "GLOB", value_delimiter = ',')]
    pub(crate) hosts: Vec<String>,
    /// Include only clusters matching GLOB
    #[arg(long, value_name = "GLOB")]
    pub(crate) cluster: Option<String>,
    /// Restrict to WINDOW: A..B, T~200ms; negative times count from now: -1h.. is the last hour
    #[arg(short, long, value_parser = WindowText::parse, allow_hyphen_values = true)]
    pub(crate) window: Option<WindowText>,
    /// Run the query on ENGINE: duckdb (local), or the address of a Spark master
    ///
    /// Spark: spark://HOST:7077, sc://HOST:15002, local[*], yarn, k8s://…
    #[arg(long, value_name = "ENGINE", default_value = "duckdb")]
    pub(crate) engine: String,
    /// Limit the memory of the query to SIZE
    #[arg(long, value_name = "SIZE")]
    pub(crate) memory: Option<String>,
    /// Run the query on N threads [default: one per CPU]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub(crate) threads: Option<u32>,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

const SQL: &str = "sql";
/// The cluster of hosts without another one.
const CLUSTER: &str = "default";
/// Help heading of a query's own parameters.
const HEADING: &str = "Query";

impl Subcommand for FleetCommand {
    fn augment_subcommands(command: Command) -> Command {
        let command = QUERIES
            .iter()
            .map(of_query)
            .fold(command, Command::subcommand);
        let statement = Arg::new("statement")
            .value_name("SQL")
            .required(true)
            .help("Statement to run; docs/fleet.md describes the tables");
        let sql = FleetQueryArgs::augment_args(Command::new(SQL).arg(statement));
        let sql = sql.about("Query the lake in SQL").long_about(None);
        command
            .subcommand(sql.after_help(PLACES))
            .subcommand(
                with::<FleetPushArgs>("push", "Push summaries of recordings to a lake")
                    .before_help(PUSH_EXAMPLES),
            )
            .subcommand(with::<FleetFindArgs>(
                "find",
                "Locate the recording of a result row, and print the command that explains it",
            ))
            .subcommand(with::<FleetFetchArgs>(
                "fetch",
                "Download a recording that was pushed with --whole",
            ))
            .subcommand(with::<FleetCompactArgs>(
                "compact",
                "Merge small files of a lake",
            ))
            .subcommand(with::<FleetExpireArgs>(
                "expire",
                "Delete the oldest days of a lake, by age or by total size",
            ))
            .subcommand(FleetKeepArgs::augment_args(Command::new("keep")).hide(true))
    }

    fn augment_subcommands_for_update(command: Command) -> Command {
        Self::augment_subcommands(command)
    }

    fn has_subcommand(name: &str) -> bool {
        ["push", "compact", "expire", "find", "fetch", "keep", SQL].contains(&name)
            || QUERIES.iter().any(|query| query.name == name)
    }
}

fn with<A: Args>(name: &'static str, about: &'static str) -> Command {
    A::augment_args(Command::new(name))
        .about(about)
        .long_about(None)
        .after_help(PLACES)
}

fn of_query(query: &'static TextQuery) -> Command {
    let about = capital(&query.about);
    let arguments = query.parameters.iter().map(of_parameter);
    let command = FleetQueryArgs::augment_args(Command::new(query.name));
    let command = arguments.fold(command, Command::arg);
    let long = format!("{about}\n\n{}", query.more);
    command
        .about(about)
        .long_about(long.trim_end().to_owned())
        .after_help(PLACES)
}

fn of_parameter(parameter: &'static Parameter) -> Arg {
    let name = parameter.name.as_str();
    let about = capital(&parameter.about);
    let argument = Arg::new(parameter.id.as_str())
        .long(parameter.flag.as_str())
        .help_heading(HEADING);
    if parameter.is_flag() {
        return argument.action(ArgAction::SetTrue).help(about);
    }
    let help = match &parameter.default {
        Some(default) => format!("{about} [default: {default}]"),
        None => about,
    };
    let argument = argument
        .value_name(parameter.value_name.as_str())
        .help(help);
    if name == "limit" {
        argument.short('n')
    } else {
        argument
    }
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| {
        first.to_uppercase().chain(letters).collect()
    })
}

impl FromArgMatches for FleetCommand {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let unknown = || Error::raw(ErrorKind::InvalidSubcommand, "unknown lake query");
        let (name, matches) = matches.subcommand().ok_or_else(unknown)?;
        Ok(match name {
            "push" => Self::Push(FleetPushArgs::from_arg_matches(matches)?),
            "compact" => Self::Compact(FleetCompactArgs::from_arg_matches(matches)?),
            "find" => Self::Find(FleetFindArgs::from_arg_matches(matches)?),
            "keep" => Self::Keep(FleetKeepArgs::from_arg_matches(matches)?),
            "fetch" => Self::Fetch(FleetFetchArgs::from_arg_matches(matches)?),
            "expire" => Self::Expire(FleetExpireArgs::from_arg_matches(matches)?),
            SQL => Self::Query(Box::new(FleetQuery {
                query: None,
                sql: matches.get_one::<String>("statement").cloned(),
                parameters: Map::new(),
                args: FleetQueryArgs::from_arg_matches(matches)?,
            })),
            name => {
                let query = QUERIES
                    .iter()
                    .find(|query| query.name == name)
                    .ok_or_else(unknown)?;
                Self::Query(Box::new(FleetQuery {
                    query: Some(name.to_owned()),
                    sql: None,
                    parameters: parameters(query, matches),
                    args: FleetQueryArgs::from_arg_matches(matches)?,
                }))
            }
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// The given parameters, as typed; the Python package validates them.
fn parameters(query: &TextQuery, matches: &ArgMatches) -> Map<String, Value> {
    let given = query.parameters.iter().filter_map(|parameter| {
        let id = parameter.id.as_str();
        let value = if parameter.is_flag() {
            matches.get_flag(id).then_some(Value::Bool(true))
        } else {
            matches.get_one::<String>(id).cloned().map(Value::String)
        };
        Some((parameter.name.clone(), value?))
    });
    given.collect()
}

#[derive(Debug, Clone, Args)]
pub(crate) struct FleetPushArgs {
    /// Recordings or traces to push, followed by the lake
    #[arg(required = true, num_args = 2.., value_names = ["RECORDING", "LAKE"])]
    pub(crate) paths: Vec<String>,
    /// Assign the hosts to cluster NAME
    #[arg(long, value_name = "NAME", default_value = CLUSTER)]
    pub(crate) cluster: String,
    /// Set the host name to NAME [default: the recorded one]
    #[arg(long, value_name = "NAME")]
    pub(crate) host: Option<String>,
    /// Label the host: rack=r7, service=shop, version=2.4.1; may be repeated
    #[arg(long, value_name = "NAME=VALUE", value_parser = parse_label)]
    pub(crate) label: Vec<(String, String)>,
    /// Also push the unaggregated tables of all operations and waits
    #[arg(long)]
    pub(crate) raw: bool,
    /// Also push the recording itself, compressed, for `fleet fetch`
    #[arg(long)]
    pub(crate) whole: bool,
    /// Push recordings even if the lake already contains them
    #[arg(long)]
    pub(crate) replace: bool,
    #[command(flatten)]
    pub(crate) redact: RedactArgs,
}

impl Default for FleetPushArgs {
    fn default() -> Self {
        Self {
            paths: Vec::new(),
            cluster: CLUSTER.to_owned(),
            host: None,
            label: Vec::new(),
            raw: false,
            whole: false,
            replace: false,
            redact: RedactArgs::default(),
        }
    }
}

/// What `record` pushes.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Fleet")]
pub(crate) struct PushArgs {
    /// Push a summary of the recording to LAKE (see `fleet push`)
    ///
    /// With --ring, each saved recording is pushed. If disk space runs out or --max-disk is reached,
    /// the oldest pushed recording is deleted.
    #[arg(long, value_name = "LAKE", conflicts_with = "no_import")]
    pub(crate) push: Option<String>,
    /// Label this host: rack=r7, service=shop, version=2.4.1; may be repeated
    #[arg(long, value_name = "NAME=VALUE", value_parser = parse_label, requires = "push")]
    pub(crate) label: Vec<(String, String)>,
    /// Assign this host to cluster NAME
    #[arg(
        long,
        value_name = "NAME",
        default_value = CLUSTER,
        requires = "push"
    )]
    pub(crate) cluster: String,
}

#[derive(Debug, Args)]
pub(crate) struct FleetCompactArgs {
    /// Lake to compact
    #[arg(value_name = "LAKE")]
    pub(crate) lake: String,
    /// Skip days with fewer than N unmerged files
    #[arg(long, value_name = "N", default_value_t = 8)]
    pub(crate) files: usize,
    /// Keep replaced files for DURATION, for queries in progress
    #[arg(long, value_name = "DURATION", default_value = "1h", value_parser = parse_duration)]
    pub(crate) grace: Ns,
}

#[derive(Debug, Args)]
pub(crate) struct FleetExpireArgs {
    /// Lake to delete from
    #[arg(value_name = "LAKE")]
    pub(crate) lake: String,
    /// Delete days that ended more than DURATION ago
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, required_unless_present = "max_size")]
    pub(crate) keep: Option<Ns>,
    /// Delete the oldest days until the lake is at most SIZE
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub(crate) max_size: Option<i64>,
    /// Show what would be deleted, without deleting it
    #[arg(long)]
    pub(crate) dry_run: bool,
}

/// Runs lake queries for a server.
#[derive(Debug, Args)]
pub(crate) struct FleetKeepArgs {
    #[arg(long)]
    pub(crate) lake: String,
    #[arg(long)]
    pub(crate) engine: String,
}

#[derive(Debug, Args)]
pub(crate) struct FleetFindArgs {
    /// Id of the recording, from the column `recording` of a result
    #[arg(value_name = "RECORDING")]
    pub(crate) recording: String,
    /// Search LAKE [default: $WHYSLOW_LAKE]
    #[arg(long, value_name = "LAKE")]
    pub(crate) lake: Option<String>,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

#[derive(Debug, Args)]
pub(crate) struct FleetFetchArgs {
    /// Id of the recording, from the column `recording` of a result
    #[arg(value_name = "RECORDING")]
    pub(crate) recording: String,
    /// Search LAKE [default: $WHYSLOW_LAKE]
    #[arg(long, value_name = "LAKE")]
    pub(crate) lake: Option<String>,
    /// Write to FILE [default: HOST-RECORDING.wsl.tar.zst]
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Replace an existing file
    #[arg(long)]
    pub(crate) force: bool,
}

/// Longest value of a label.
const VALUE_MAX: usize = 256;

/// `rack=r7`.
fn parse_label(text: &str) -> Result<(String, String), String> {
    let parts = text
        .split_once('=')
        .filter(|(name, value)| is_name(name) && !value.is_empty() && value.len() <= VALUE_MAX);
    let (name, value) =
        parts.ok_or_else(|| format!("`{text}` is not a label: write it like rack=r7"))?;
    Ok((name.to_owned(), value.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_a_name_and_a_value() {
        assert_eq!(parse_label("rack=r=7"), Ok(("rack".into(), "r=7".into())));
        for wrong in ["", "rack", "=r7", "rack=", "-x=1", "a b=1"] {
            assert!(parse_label(wrong).is_err(), "{wrong}");
        }
    }
}
