//! `gethostlatency`: lookups of host names by functions of the C library, in order of their ends.

use clap::{Args, FromArgMatches};
use whyslow_analysis::{Filter, Kind};
use whyslow_base::failure::Failure;

use super::columns::fit;
use crate::front::{ByEnd, Front, FrontArgs, Words, with_args};
use crate::tool::{Call, Tool};

pub(crate) static TOOL: Tool = Tool {
    name: "gethostlatency",
    machine_name: None,
    about: "Lookups of host names and how long they took, as gethostlatency shows them",
    args: |command| with_args::<GethostlatencyArgs>(command, "RECORDING", NOTES),
    run,
};

const NOTES: &str = "\
TIME is when the lookup ended. Calls without a name are left out, as there; those that had not
returned when the recording ended are counted on standard error.";

#[derive(Debug, Clone, Args)]
struct GethostlatencyArgs {
    #[command(flatten)]
    front: FrontArgs,
    /// Only of this process
    #[arg(short, long)]
    pid: Option<i32>,
}

fn run(call: &Call<'_>) -> Result<(), Failure> {
    let args = GethostlatencyArgs::from_arg_matches(call.matches)
        .map_err(|error| Failure::usage(error.to_string()))?;
    let words = Words::without_names(&args.front.words)?;
    if let Some(number) = words.numbers.first() {
        return Err(Failure::usage(format!("`{number}` is one word too many"))
            .hint("there is one recording; -w names a window"));
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
            "{unfinished} lookups are not shown: begin or end was not recorded"
        ));
    }
    front.finish()
}
