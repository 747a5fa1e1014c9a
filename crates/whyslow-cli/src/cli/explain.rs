use std::path::Path;

use clap::Args;
use whyslow_base::args::OutputArgs;
use whyslow_base::time::{WindowText, parse_duration};
use whyslow_model::Ns;

use super::query_args::WindowArgs;

pub(crate) const EXAMPLES: &str = "\
Examples:
  whyslow explain web.wsl                      what was slow, why, and the culprit
  whyslow explain web.wsl -w op:17             why system call 17 was slow
  whyslow explain web.wsl --request 17         why request 17 was slow
  sudo whyslow explain @flight                 save what the flight recorder keeps, and explain it
  whyslow explain web.wsl --last 5m            only the last five minutes
  whyslow explain web.wsl -c mysqld            only threads named mysqld
  whyslow explain web.wsl -w 12:18:50+2s -t 31517
  whyslow explain web.wsl --slow 'open>100ms'  all opens that took more than 100 ms
  whyslow explain web.json                     a profile of py-spy, a JVM, …
  whyslow explain web.wsl --vs yesterday.wsl   what is slower than yesterday
  whyslow explain web.wsl --across db.wsl      continue on the host that requests waited for
  whyslow explain web.wsl -d sdy               whether disk sdy is slow or busy
  whyslow explain web.wsl --format md          Markdown for a ticket

Exit status: 0 if something was found, or nothing was slow; 3 if the recording cannot show what was
slow, because system calls were not recorded, none happened, or too many events were lost. The first
line of the output states the reason; JSON has it in `judged` and `reasons`.";

#[derive(Debug, Args)]
pub(crate) struct ExplainArgs {
    /// Recording or trace [default: @last], or @flight for what the flight recorder keeps
    ///
    /// @flight makes the running flight recorder (`whyslow record --ring`) save what it keeps, prints
    /// the name of the new recording, and explains it; @flight:PID selects one of several recorders.
    /// The event that triggered a save is explained first; if the save was requested, the slowest
    /// request.
    #[arg(value_name = "RECORDING")]
    pub(crate) recording: Option<String>,
    #[command(flatten)]
    pub(crate) window: WindowArgs,
    /// Explain request ID
    #[arg(long, value_name = "ID", conflicts_with_all = ["window", "begin", "end", "last", "pid", "tid", "comm", "dev", "slow"])]
    pub(crate) request: Option<i64>,
    /// Explain only threads of process PID
    #[arg(short, long, value_name = "PID", value_delimiter = ',')]
    pub(crate) pid: Vec<i32>,
    /// Explain only thread TID; with a window, account for all its time in the window
    #[arg(short, long, value_name = "TID", value_delimiter = ',')]
    pub(crate) tid: Vec<i32>,
    /// Explain only threads with a name matching GLOB
    #[arg(
        short,
        long,
        visible_alias = "procname",
        value_name = "GLOB",
        value_delimiter = ','
    )]
    pub(crate) comm: Vec<String>,
    /// List the system calls that waited for call OP (op:ID), and the sum of their waits
    #[arg(long, value_name = "OP", conflicts_with_all = ["window", "begin", "end", "last", "pid", "tid", "comm", "dev", "slow", "request", "versus", "across"])]
    pub(crate) victims: Option<String>,
    /// Compare block device DEV with similar devices
    #[arg(short, long, value_name = "DEV", value_delimiter = ',')]
    pub(crate) dev: Vec<String>,
    /// Explain system calls CALL (name or class) that last longer than TIME: 'open>100ms'
    ///
    /// Separate several with |: 'open>100ms|fsync>100ms'. The smallest TIME applies to all of them.
    #[arg(long, value_name = "CALL>TIME", value_parser = SlowCalls::parse)]
    pub(crate) slow: Option<SlowCalls>,
    /// Show what is slower than in another window or recording, and where the additional time goes
    ///
    /// Give a recording and a window to compare with that window of that recording:
    /// --vs yesterday.wsl --vs 12:10+1m
    #[arg(
        long = "vs",
        value_name = "WINDOW|RECORDING",
        value_parser = Versus::parse,
        allow_hyphen_values = true,
        conflicts_with = "dev"
    )]
    pub(crate) versus: Vec<Versus>,
    /// Follow requests into RECORDING of another host, made at the same time; may be repeated
    ///
    /// If a finding waits for a request to that host, it continues there. Requests are matched by
    /// connection or trace id, so the clocks of the hosts need not agree.
    #[arg(
        long,
        value_name = "RECORDING",
        value_delimiter = ',',
        conflicts_with = "dev"
    )]
    pub(crate) across: Vec<String>,
    /// Show at most N findings; 0 shows all [default: 5]
    #[arg(short = 'n', long, value_name = "N")]
    pub(crate) limit: Option<usize>,
    /// Describe MECHANISM: how it is recognised and what helps; `list` lists all
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
        WindowText::parse(text)
            .map(Self::Window)
            .map_err(|error| format!("`{text}` is neither a recording nor a window: {error}"))
    }
}

/// System calls, and the minimum duration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SlowCalls {
    pub(crate) calls: Vec<String>,
    pub(crate) min: Ns,
}

impl SlowCalls {
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let mut found = Self {
            calls: Vec::new(),
            min: Ns::MAX,
        };
        for term in text.split('|') {
            let (call, min) = term
                .split_once('>')
                .ok_or_else(|| format!("`{term}` is not CALL>TIME: write it like open>100ms"))?;
            let call = call.trim();
            if call.is_empty() {
                return Err(format!("`{term}` names no system call"));
            }
            found.calls.push(call.to_owned());
            // One limit for all calls: the minimum, so that no requested call is missing.
            found.min = found.min.min(parse_duration(min.trim())?);
        }
        Ok(found)
    }
}
