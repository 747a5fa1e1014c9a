use std::path::Path;

use clap::Args;
use whyslow_base::args::OutputArgs;
use whyslow_base::time::{WindowText, parse_duration};
use whyslow_model::Ns;

use super::ask::WindowArgs;

pub(crate) const EXAMPLES: &str = "\
Examples:
  whyslow explain web.wsl                      what was slow, and who did it
  whyslow explain web.wsl -w op:17             why that call took so long
  whyslow explain web.wsl --request 17         why that request took so long
  whyslow explain web.wsl -w 12:18:50+2s -t 31517
  whyslow explain web.wsl --slow 'open>100ms'  all opens of more than 100 ms
  whyslow explain web.json                     a profile of py-spy, a JVM …
  whyslow explain web.wsl --vs yesterday.wsl   what is different from then
  whyslow explain web.wsl --across db.wsl      and what the host did that was waited for
  whyslow explain web.wsl -d sdy               whether that disk is slow or busy
  whyslow explain web.wsl --format md          for the ticket";

#[derive(Debug, Args)]
pub(crate) struct ExplainArgs {
    /// Recording or trace [default: @last]
    #[arg(value_name = "RECORDING")]
    pub(crate) recording: Option<String>,
    #[command(flatten)]
    pub(crate) window: WindowArgs,
    /// One request, by its id
    #[arg(long, value_name = "ID", conflicts_with_all = ["window", "begin", "end", "pid", "tid", "dev", "slow"])]
    pub(crate) request: Option<i64>,
    /// Processes
    #[arg(short, long, value_name = "PID", value_delimiter = ',')]
    pub(crate) pid: Vec<i32>,
    /// Threads; with a window, all that they did in it
    #[arg(short, long, value_name = "TID", value_delimiter = ',')]
    pub(crate) tid: Vec<i32>,
    /// Block devices: how they compare with their peers
    #[arg(short, long, value_name = "DEV", value_delimiter = ',')]
    pub(crate) dev: Vec<String>,
    /// Calls of a name or class that took longer: `open>100ms`; several with `|`
    #[arg(long, value_name = "CALL>TIME", value_parser = SlowCalls::parse)]
    pub(crate) slow: Option<SlowCalls>,
    /// Compare with another window, another recording, or both (given twice): what is slower than there,
    /// and what the time goes to that it does not go to there
    #[arg(
        long = "vs",
        value_name = "WINDOW|RECORDING",
        value_parser = Versus::parse,
        allow_hyphen_values = true,
        conflicts_with = "dev"
    )]
    pub(crate) versus: Vec<Versus>,
    /// Recordings of other hosts, made at the same time: where a story waits for a request to one of them, it
    /// goes on there, by connection or trace, however far their clocks are apart; several with commas, or
    /// given again
    #[arg(
        long,
        value_name = "RECORDING",
        value_delimiter = ',',
        conflicts_with = "dev"
    )]
    pub(crate) across: Vec<String>,
    /// Stories at most; 0 for all
    #[arg(short = 'n', long, value_name = "N")]
    pub(crate) limit: Option<usize>,
    /// What a mechanism is, how it is recognised and what helps; `list` names all
    #[arg(long, value_name = "MECHANISM", exclusive = true)]
    pub(crate) why: Option<String>,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// What to compare with.
#[derive(Debug, Clone)]
pub(crate) enum Versus {
    Recording(String),
    Window(WindowText),
}

impl Versus {
    fn parse(text: &str) -> Result<Self, String> {
        let is_named = text.starts_with('@') || text.trim_end_matches('/').ends_with(".wsl");
        if is_named || Path::new(text).exists() {
            return Ok(Self::Recording(text.to_owned()));
        }
        WindowText::parse(text).map(Self::Window).map_err(|error| {
            format!("there is no recording `{text}`, and it is no window: {error}")
        })
    }
}

/// Calls, and how long they have to take.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SlowCalls {
    pub(crate) calls: Vec<String>,
    pub(crate) min: Ns,
}

impl SlowCalls {
    fn parse(text: &str) -> Result<Self, String> {
        let mut found = Self {
            calls: Vec::new(),
            min: Ns::MAX,
        };
        for word in text.split('|') {
            let (call, min) = word.split_once('>').ok_or_else(|| {
                format!("`{word}` is no call and time: write it as in `open>100ms`")
            })?;
            let call = call.trim();
            if call.is_empty() {
                return Err(format!("`{word}` names no call"));
            }
            found.calls.push(call.to_owned());
            // One limit for all: the least, so that nothing that is asked for is missing.
            found.min = found.min.min(parse_duration(min.trim())?);
        }
        Ok(found)
    }
}
