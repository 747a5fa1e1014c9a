use clap::{Args, Subcommand};
use whyslow_model::Ns;

use super::RedactArgs;
use crate::time::{parse_duration, parse_size};

pub(super) const EXAMPLES: &str = "\
Examples:
  whyslow fleet push web.wsl s3://traces/lake         what it comes to, in kilobytes
  whyslow fleet push *.wsl /mnt/lake --label rack=r7 --label version=2.4.1
  whyslow fleet compact s3://traces/lake              many small files become few
  whyslow fleet expire s3://traces/lake --keep 30d";

const PUSH_EXAMPLES: &str = "\
Examples:
  whyslow fleet push web.wsl s3://traces/lake
  whyslow fleet push *.wsl gs://traces/lake --cluster eu-1 --label service=shop
  whyslow fleet push web.wsl /mnt/lake --raw          with its tables, for SQL of your own
  whyslow fleet push web.wsl s3://traces/lake --redact --redact-key key";

const PLACES: &str = "\
A lake is a folder or a place in an object store: s3://BUCKET/PATH, gs://BUCKET/PATH, az://CONTAINER/PATH, \
file:///PATH. Credentials come from the environment (AWS_ACCESS_KEY_ID, AWS_ENDPOINT_URL, \
GOOGLE_APPLICATION_CREDENTIALS, AZURE_STORAGE_ACCOUNT_NAME, …) or from the role of the machine. \
docs/fleet.md tells what lies where.";

#[derive(Debug, Subcommand)]
pub(crate) enum FleetCommand {
    /// Put what recordings come to into a lake
    #[command(before_help = PUSH_EXAMPLES, after_help = PLACES)]
    Push(FleetPushArgs),
    /// Put the many small files of a lake together
    #[command(after_help = PLACES)]
    Compact(FleetCompactArgs),
    /// Delete what is too old or too much, by whole days
    #[command(after_help = PLACES)]
    Expire(FleetExpireArgs),
}

#[derive(Debug, Args)]
pub(crate) struct FleetPushArgs {
    /// Recordings or traces, and the lake at last
    #[arg(required = true, num_args = 2.., value_names = ["RECORDING", "LAKE"])]
    pub(crate) paths: Vec<String>,
    /// Cluster that their hosts belong to
    #[arg(long, value_name = "NAME", default_value = "default")]
    pub(crate) cluster: String,
    /// Host, where it is not the recorded one
    #[arg(long, value_name = "NAME")]
    pub(crate) host: Option<String>,
    /// What the host belongs to: rack=r7, service=shop, version=2.4.1; may be repeated
    #[arg(long, value_name = "NAME=VALUE", value_parser = parse_label)]
    pub(crate) label: Vec<(String, String)>,
    /// Also the tables as they are, of everything that has a begin and an end
    #[arg(long)]
    pub(crate) raw: bool,
    /// Send it also if it is there
    #[arg(long)]
    pub(crate) replace: bool,
    #[command(flatten)]
    pub(crate) redact: RedactArgs,
}

#[derive(Debug, Args)]
pub(crate) struct FleetCompactArgs {
    #[arg(value_name = "LAKE")]
    pub(crate) lake: String,
    /// Leave days with fewer files of their own as they are
    #[arg(long, value_name = "N", default_value_t = 8)]
    pub(crate) files: usize,
    /// Keep files that are read no more for so long, for questions under way
    #[arg(long, value_name = "DURATION", default_value = "1h", value_parser = parse_duration)]
    pub(crate) grace: Ns,
}

#[derive(Debug, Args)]
pub(crate) struct FleetExpireArgs {
    #[arg(value_name = "LAKE")]
    pub(crate) lake: String,
    /// Delete days that ended longer ago
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, required_unless_present = "max_size")]
    pub(crate) keep: Option<Ns>,
    /// Delete the oldest days until so much is left
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub(crate) max_size: Option<i64>,
    /// Say what would go, and delete nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}

/// Longest value of a label.
const VALUE_MAX: usize = 256;

/// `rack=r7`.
fn parse_label(text: &str) -> Result<(String, String), String> {
    let parts = text.split_once('=').filter(|(name, value)| {
        whyslow_fleet::lake::is_name(name) && !value.is_empty() && value.len() <= VALUE_MAX
    });
    let (name, value) =
        parts.ok_or_else(|| format!("`{text}` is no label: write it like rack=r7"))?;
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
