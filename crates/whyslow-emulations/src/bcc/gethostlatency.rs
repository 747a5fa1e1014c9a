//! `gethostlatency`: DNS lookups by C library functions, in order of completion.

use clap::{Args, FromArgMatches};
use whyslow_analysis::{Filter, Kind};
use whyslow_base::failure::Failure;

use super::columns::fit;
use crate::front::{ByEnd, Front, FrontArgs, Positionals, with_args};
use crate::tool::{Call, Tool};

pub(crate) static TOOL: Tool = Tool {
    name: "gethostlatency",
    machine_name: None,
    about: "Show DNS lookups with their latency, like gethostlatency",
    args: |command| with_args::<GethostlatencyArgs>(command, "RECORDING", NOTES),
    run,
};

const NOTES: &str = "\
TIME is the end of the lookup. Lookups without a host name are omitted, as in gethostlatency. The
number of lookups that did not return during the recording is reported on standard error.";

#[derive(Debug, Clone, Args)]
struct GethostlatencyArgs {
    #[command(flatten)]
    front: FrontArgs,
    /// Show only process PID
    #[arg(short, long)]
    pid: Option<i32>,
}

fn run(call: &Call<'_>) -> Result<(), Failure> {
    let args = GethostlatencyArgs::from_arg_matches(call.matches)
        .map_err(|error| Failure::usage(error.to_string()))?;
    let words = Positionals::without_names(&args.front.words)?;
    if let Some(number) = words.numbers.first() {
        return Err(Failure::usage(format!("unexpected argument `{number}`"))
            .hint("select a window with -w"));
    }
    let front = Front::open(call, &args.front, words.recording.as_deref())?;
    front.put_first(&format!(
        "{:<8} {:<7} {:<16} {:<10} {}\n",
        "TIME", "PID", "COMM", "LATms", "HOST"
    ))?;
    let filter = Filter {
        pids: args.pid.into_iter().collect(),
        ..Filter::default()
    };
    let end = front.span().end;
    let mut unfinished = 0;
    let mut lines = ByEnd::default();
    front.each(Kind::Dns, filter, |row| {
        let Some(host) = row.text("host") else {
            return Ok(());
        };
        let times = (row.int("ts_ns"), row.int("ts_end_ns"), row.float("dur_ns"));
        let (Some(begin), Some(returned), Some(length)) = times else {
            unfinished += 1;
            return Ok(());
        };
        if returned > end {
            return Ok(());
        }
        let pid = row
            .int("pid")
            .map_or_else(|| "-".into(), |pid| pid.to_string());
        let line = format!(
            "{:<8} {pid:<7} {:<16} {:<10.3} {}\n",
            front.clock(returned),
            fit(row.text("comm").unwrap_or("?"), 16),
            length / 1e6,
            crate::front::shown(host),
        );
        for line in lines.take((begin, returned), line) {
            front.put(&line)?;
        }
        Ok(())
    })?;
    for line in lines.rest() {
        front.put(&line)?;
    }
    if unfinished > 0 {
        front.note_cut(format!(
            "{unfinished} lookups not shown: start or end not recorded"
        ));
    }
    front.finish()
}
