use clap::{Args, Subcommand, ValueEnum};
use whyslow_analysis::before_after::Assertion;
use whyslow_base::args::OutputArgs;
use whyslow_base::time::{WindowText, parse_duration};
use whyslow_model::Ns;

use crate::cli::query_args::WindowArgs;

/// Comparisons and checks of requests as a whole.
#[derive(Debug, Subcommand)]
pub(crate) enum LoadCommand {
    /// Compare requests before and after a change: what is slower or faster, and how certain
    Diff(Box<LoadDiffArgs>),
    /// Check assertions on requests; exit with status 4 if one fails
    Check(Box<LoadCheckArgs>),
}

#[derive(Debug, Args)]
pub(crate) struct LoadDiffArgs {
    /// Recording or trace with the requests before the change
    #[arg(value_name = "BEFORE")]
    pub(crate) before: String,
    /// Recording or trace with the requests after the change [default: BEFORE; needs --vs WINDOW]
    #[arg(value_name = "AFTER")]
    pub(crate) after: Option<String>,
    #[command(flatten)]
    pub(crate) window: WindowArgs,
    /// Use WINDOW of AFTER [default: the window of -w]
    #[arg(long = "vs", value_name = "WINDOW", value_parser = WindowText::parse, allow_hyphen_values = true)]
    pub(crate) versus: Option<WindowText>,
    /// Also compare each KEY separately
    #[arg(long, value_name = "KEY", value_delimiter = ',')]
    pub(crate) by: Vec<LoadKey>,
    /// Compare the share of requests that take longer than TIME [default: from the durations]
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub(crate) slow: Option<Ns>,
    /// Ignore changes of less than SHARE in a percentile
    #[arg(long, value_name = "SHARE", default_value = "2%", value_parser = parse_share)]
    pub(crate) least: f64,
    /// Exit with status 4 if ASSERTION does not hold after the change; may be repeated
    ///
    /// 'p99<50ms', 'over(1s)<0.1%', 'failed<1%'; also mean, max, count. For one endpoint:
    /// '/cart: p99<50ms'
    #[arg(long = "assert", value_name = "ASSERTION", value_parser = assertion)]
    pub(crate) assertions: Vec<Assertion>,
    /// Exit with status 4 if any comparison is worse
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
    /// Exit with status 4 if ASSERTION does not hold; may be repeated
    ///
    /// 'p99<50ms', 'over(1s)<0.1%', 'failed<1%'; also mean, max, count. For one endpoint:
    /// '/cart: p99<50ms'
    #[arg(long = "assert", value_name = "ASSERTION", required = true, value_parser = assertion)]
    pub(crate) assertions: Vec<Assertion>,
    /// Also check each KEY separately
    #[arg(long, value_name = "KEY", value_delimiter = ',')]
    pub(crate) by: Vec<LoadKey>,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// Keys to group requests by.
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
        .ok_or_else(|| format!("`{text}` is not a percentage: write it like 2%"))
}
