use clap::{Args, Subcommand, ValueEnum};
use whyslow_analysis::before_after::Assertion;
use whyslow_base::args::OutputArgs;
use whyslow_base::time::{WindowText, parse_duration};
use whyslow_model::Ns;

use crate::cli::ask::WindowArgs;

/// What is asked of requests as a whole.
#[derive(Debug, Subcommand)]
pub(crate) enum LoadCommand {
    /// Whether requests are slower or faster than before, which, by how much, and how sure that is
    Diff(Box<LoadDiffArgs>),
    /// Whether requests keep to what is asserted; exit code 4 if they do not
    Check(Box<LoadCheckArgs>),
}

#[derive(Debug, Args)]
pub(crate) struct LoadDiffArgs {
    /// Recording or trace with the requests before the change
    #[arg(value_name = "BEFORE")]
    pub(crate) before: String,
    /// The same after it [default: another window of the first, with --vs]
    #[arg(value_name = "AFTER")]
    pub(crate) after: Option<String>,
    #[command(flatten)]
    pub(crate) window: WindowArgs,
    /// Window of what came after, where it is another one
    #[arg(long = "vs", value_name = "WINDOW", value_parser = WindowText::parse, allow_hyphen_values = true)]
    pub(crate) versus: Option<WindowText>,
    /// Each of these by itself, too
    #[arg(long, value_name = "KEY", value_delimiter = ',')]
    pub(crate) by: Vec<LoadKey>,
    /// Also the share of requests that take longer
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub(crate) slow: Option<Ns>,
    /// Changes of a percentile by less are no difference
    #[arg(long, value_name = "SHARE", default_value = "2%", value_parser = parse_share)]
    pub(crate) least: f64,
    /// What has to hold after the change: p99<50ms, over(1s)<0.1%, failed<1%, mean, max, count; of one
    /// endpoint as in '/cart: p99<50ms'; may be repeated. Exit code 4 if one does not
    #[arg(long = "assert", value_name = "ASSERTION", value_parser = assertion)]
    pub(crate) assertions: Vec<Assertion>,
    /// Exit with 4 if something is worse
    #[arg(long)]
    pub(crate) fail_if_worse: bool,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

#[derive(Debug, Args)]
pub(crate) struct LoadCheckArgs {
    /// Recording or trace [default: @last]
    #[arg(value_name = "RECORDING")]
    pub(crate) recording: Option<String>,
    #[command(flatten)]
    pub(crate) window: WindowArgs,
    /// What has to hold: p99<50ms, over(1s)<0.1%, failed<1%, mean, max, count; of one endpoint as in
    /// '/cart: p99<50ms'; may be repeated
    #[arg(long = "assert", value_name = "ASSERTION", required = true, value_parser = assertion)]
    pub(crate) assertions: Vec<Assertion>,
    /// Of each of these by itself, too
    #[arg(long, value_name = "KEY", value_delimiter = ',')]
    pub(crate) by: Vec<LoadKey>,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// What requests are told apart by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LoadKey {
    Endpoint,
}

fn assertion(text: &str) -> Result<Assertion, String> {
    Assertion::parse(text, parse_duration)
}

/// `2%` or `0.02`.
fn parse_share(text: &str) -> Result<f64, String> {
    let percent = text.strip_suffix('%');
    let number = percent.unwrap_or(text).trim().parse::<f64>();
    let share = number.map(|number| {
        if percent.is_some() {
            number / 100.0
        } else {
            number
        }
    });
    share
        .ok()
        .filter(|share| (0.0..=1.0).contains(share))
        .ok_or_else(|| format!("`{text}` is not a share: write it like 2%"))
}
