mod compared;

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use whyslow_base::args::OutputArgs;
use whyslow_base::time::parse_duration;

pub(crate) use compared::{LoadCheckArgs, LoadCommand, LoadDiffArgs};

pub(crate) const EXAMPLES: &str = "\
Examples:
  whyslow load http://localhost:8080/ --threads 20 --each 10      20 at a time, 200 in total
  whyslow load http://localhost:8080/ --rate 200/s --for 30s      open loop: 200/s, whatever the latency
  whyslow load --urls urls.txt --threads 5 --for 1m --list slow   many URLs, list only slow requests
  whyslow load http://localhost:8080/ --total 5000 --until-slow 1s
  whyslow load http://localhost:8080/ --sweep threads=1,5,20,200 --total 500
  whyslow load https://localhost/ --insecure --new-conn --each 20 --json
  whyslow load localhost:8080/new -X POST -H 'Content-Type: application/json' --body '{}'
  whyslow load diff before.wsl after.wsl             did the change help?
  whyslow load diff before.wsl after.wsl --by endpoint --slow 1s
  whyslow load check web.wsl --assert 'p99<50ms' --assert 'failed<1%'";

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
// `-o` names a recording here, as in `record`; results go to standard output.
#[command(mut_arg("output", |arg| arg
    .value_name("NAME.wsl|NAME.ndjson")
    .help("Write every request to a recording, or as lines to a file [default: load-DATE-TIME.ndjson]")))]
pub(crate) struct LoadArgs {
    #[command(subcommand)]
    pub(crate) command: Option<LoadCommand>,
    /// URLs to request, in turn
    #[arg(value_name = "URL", required_unless_present = "urls")]
    pub(crate) addresses: Vec<String>,
    /// Read URLs from FILE, one per line, with an optional weight in front (`10 http://…`)
    #[arg(long, value_name = "FILE")]
    pub(crate) urls: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) amount: AmountArgs,
    #[command(flatten)]
    pub(crate) request: RequestArgs,
    /// Count requests longer than DURATION as slow [default: --until-slow, else 5 × the median]
    #[arg(long, value_name = "DURATION", value_parser = parse_length)]
    pub(crate) slow: Option<Duration>,
    /// List WHICH requests [default: all up to 1,000, else slow; machine-readable formats list all]
    #[arg(long, value_name = "WHICH")]
    pub(crate) list: Option<ListArg>,
    /// Skip the confirmation of more than 100 requests per second, or at once, to other machines
    #[arg(short = 'y', long)]
    pub(crate) yes: bool,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// How many requests, and when.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "How many and when")]
pub(crate) struct AmountArgs {
    /// Use N threads, each with one request at a time [default: 1; with --rate, 100]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=20_000))]
    pub(crate) threads: Option<u32>,
    /// Send M requests per thread
    #[arg(long, value_name = "M", conflicts_with = "rate")]
    pub(crate) each: Option<u64>,
    /// Send M requests in total
    #[arg(long, value_name = "M", conflicts_with = "rate")]
    pub(crate) total: Option<u64>,
    /// Start no new requests after DURATION
    #[arg(long = "for", value_name = "DURATION", value_parser = parse_length)]
    pub(crate) length: Option<Duration>,
    /// Start requests at a fixed rate, whatever the latency (open loop; needs --for)
    #[arg(long, value_name = "200/s", value_parser = parse_rate, requires = "length", conflicts_with = "pause")]
    pub(crate) rate: Option<f64>,
    /// Pause each thread for DURATION between two requests
    #[arg(long, value_name = "DURATION", value_parser = parse_length)]
    pub(crate) pause: Option<Duration>,
    /// Stop when a request takes at least DURATION
    #[arg(long, value_name = "DURATION", value_parser = parse_length)]
    pub(crate) until_slow: Option<Duration>,
    /// Repeat the load with each number of threads in the list
    #[arg(long, value_name = "threads=1,5,20", value_parser = SweepArg::parse, conflicts_with_all = ["threads", "rate"])]
    pub(crate) sweep: Option<SweepArg>,
}

/// The requests to send.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Requests")]
pub(crate) struct RequestArgs {
    /// Send requests with METHOD [default: GET; with a body, POST]
    #[arg(short = 'X', long, value_name = "METHOD")]
    pub(crate) method: Option<String>,
    /// Send HEADER, as `Name: value`; may be repeated
    #[arg(short = 'H', long = "header", value_name = "HEADER")]
    pub(crate) headers: Vec<String>,
    /// Send TEXT as the body of each request
    #[arg(long, value_name = "TEXT", conflicts_with = "body_file")]
    pub(crate) body: Option<String>,
    /// Send the content of FILE as the body of each request
    #[arg(long, value_name = "FILE")]
    pub(crate) body_file: Option<PathBuf>,
    /// Fail requests after DURATION, from the DNS lookup to the end of the response
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = parse_length)]
    pub(crate) timeout: Duration,
    /// Keep one connection per thread and server [default]
    #[arg(long, conflicts_with = "new_conn")]
    pub(crate) keepalive: bool,
    /// Look up the host name and connect anew for each request
    #[arg(long)]
    pub(crate) new_conn: bool,
    /// Use only HTTP/1.1 [default: with TLS, what the server prefers]
    #[arg(long, conflicts_with = "http2")]
    pub(crate) http1: bool,
    /// Use only HTTP/2, even without TLS
    #[arg(long)]
    pub(crate) http2: bool,
    /// Accept any TLS certificate
    #[arg(long, conflicts_with = "ca_file")]
    pub(crate) insecure: bool,
    /// Trust the certificate authorities in FILE (PEM) instead of those of the system
    #[arg(long, value_name = "FILE")]
    pub(crate) ca_file: Option<PathBuf>,
    /// Follow redirects to the hosts of the given URLs; each counts as another request
    #[arg(long)]
    pub(crate) follow: bool,
    /// Send no `traceparent` header
    #[arg(long)]
    pub(crate) no_trace_context: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ListArg {
    None,
    /// Slow and failed requests
    Slow,
    All,
}

/// `threads=1,5,20`
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SweepArg(pub(crate) Vec<u32>);

impl SweepArg {
    fn parse(text: &str) -> Result<Self, String> {
        let numbers = text
            .strip_prefix("threads=")
            .ok_or("write it like threads=1,5,20")?;
        let read = |word: &str| match word.trim().parse() {
            Ok(number @ 1..=20_000) => Ok(number),
            _ => Err(format!(
                "`{word}` is not a number of threads from 1 to 20000"
            )),
        };
        numbers
            .split(',')
            .map(read)
            .collect::<Result<_, _>>()
            .map(Self)
    }
}

fn parse_length(text: &str) -> Result<Duration, String> {
    match u64::try_from(parse_duration(text)?) {
        Ok(ns) if ns > 0 => Ok(Duration::from_nanos(ns)),
        _ => Err("the duration must be longer than 0".to_owned()),
    }
}

/// Requests per second: `200/s`, `30/min`.
fn parse_rate(text: &str) -> Result<f64, String> {
    let wrong = || format!("`{text}` is not a rate: write it like 200/s or 30/min");
    let (number, unit) = text.split_once('/').ok_or_else(wrong)?;
    let seconds = match unit.trim() {
        "s" | "sec" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        _ => return Err(wrong()),
    };
    let number: f64 = number.trim().parse().map_err(|_| wrong())?;
    let is_possible = number.is_finite() && number > 0.0 && number / seconds <= 1e7;
    is_possible.then_some(number / seconds).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_has_a_unit_and_a_sweep_a_name() {
        assert_eq!(parse_rate("200/s"), Ok(200.0));
        assert_eq!(parse_rate("30/min"), Ok(0.5));
        for wrong in ["200", "/s", "0/s", "-1/s", "inf/s", "1e9/s", "1/week"] {
            assert!(parse_rate(wrong).is_err(), "{wrong}");
        }
        assert_eq!(SweepArg::parse("threads=1,5"), Ok(SweepArg(vec![1, 5])));
        for wrong in ["1,5", "threads=", "threads=0", "threads=1,,2", "rate=1"] {
            assert!(SweepArg::parse(wrong).is_err(), "{wrong}");
        }
    }
}
