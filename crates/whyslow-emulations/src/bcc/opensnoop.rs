//! `opensnoop`: open calls with their results, in order of completion.

use clap::{Args, FromArgMatches};
use whyslow_analysis::{Filter, Kind};
use whyslow_base::failure::Failure;
use whyslow_model::Ns;

use super::columns::{fit, path};
use crate::cells::Row;
use crate::front::positionals::seconds;
use crate::front::{ByEnd, Front, FrontArgs, Positionals, with_args};
use crate::tool::{Call, Tool};

pub(crate) static TOOL: Tool = Tool {
    name: "opensnoop",
    machine_name: None,
    about: "Show open calls with process and result, like opensnoop",
    args: |command| with_args::<OpensnoopArgs>(command, "RECORDING", NOTES),
    run,
};

const NOTES: &str = "\
Shows open, openat, openat2 and creat. PATH is the full path if the directory of a relative path is
known from the recording; opensnoop prints the path as passed to the call. The number of calls that
did not return during the recording is reported on standard error.";

#[derive(Debug, Clone, Args)]
struct OpensnoopArgs {
    #[command(flatten)]
    front: FrontArgs,
    /// Print the time of day at which the call returned
    #[arg(short = 'T', long)]
    timestamp: bool,
    /// Print the user id (always -: not recorded)
    #[arg(short = 'U', long)]
    print_uid: bool,
    /// Show only failed opens
    #[arg(short = 'x', long)]
    failed: bool,
    /// Show only process PID
    #[arg(short, long)]
    pid: Option<i32>,
    /// Show only thread TID
    #[arg(short, long)]
    tid: Option<i32>,
    /// Show only threads whose name contains NAME
    #[arg(short, long)]
    name: Option<String>,
    /// Print the flags of the call in octal
    #[arg(short, long)]
    extended_fields: bool,
    /// Show only the first SEC seconds of the window
    #[arg(short, long, value_name = "SEC")]
    duration: Option<String>,
    #[arg(short, long, hide = true)]
    uid: Option<String>,
}

const CALLS: [&str; 4] = ["open", "openat", "openat2", "creat"];
/// Implied flags of creat: O_CREAT, O_WRONLY, O_TRUNC.
const CREAT_FLAGS: i64 = 0o1101;

fn run(call: &Call<'_>) -> Result<(), Failure> {
    let args = OpensnoopArgs::from_arg_matches(call.matches)
        .map_err(|error| Failure::usage(error.to_string()))?;
    if args.uid.is_some() {
        return Err(
            Failure::usage("cannot filter by --uid: user ids are not recorded")
                .hint("filter with -p PID, -t TID or -n NAME"),
        );
    }
    let words = Positionals::without_names(&args.front.words)?;
    if let Some(number) = words.numbers.first() {
        return Err(Failure::usage(format!("unexpected argument `{number}`"))
            .hint("set the duration with -d SEC"));
    }
    let mut front = Front::open(call, &args.front, words.recording.as_deref())?;
    if let Some(text) = &args.duration {
        front.shorten(seconds(text)?);
    }
    front.put_first(&header(&args))?;
    let filter = Filter {
        pids: args.pid.into_iter().collect(),
        tids: args.tid.into_iter().collect(),
        ops: CALLS.map(String::from).to_vec(),
        errors_only: args.failed,
        ..Filter::default()
    };
    let end = front.span().end;
    let mut unfinished = 0;
    let mut lines = ByEnd::default();
    front.each(Kind::Syscalls, filter, |row| {
        // The class `open` also contains socket and pipe calls, which opensnoop does not show.
        let is_open = row.text("name").is_some_and(|name| CALLS.contains(&name));
        let comm = row.text("comm").unwrap_or("?");
        if !is_open
            || args
                .name
                .as_deref()
                .is_some_and(|part| !comm.contains(part))
        {
            return Ok(());
        }
        let times = (row.int("ts_ns"), row.int("ts_end_ns"), row.int("ret"));
        let (Some(begin), Some(returned), Some(ret)) = times else {
            unfinished += 1;
            return Ok(());
        };
        if returned > end {
            return Ok(());
        }
        let line = line(&args, &front, row, (returned, ret));
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
            "{unfinished} opens not shown: start or end not recorded"
        ));
    }
    front.finish()
}

fn header(args: &OpensnoopArgs) -> String {
    let time = if args.timestamp { "TIME     " } else { "" };
    let uid = if args.print_uid { "UID     " } else { "" };
    let flags = if args.extended_fields {
        "FLAGS    "
    } else {
        ""
    };
    format!(
        "{time}{uid}{:<6} {:<16} {:>3} {:>3} {flags}PATH\n",
        "PID", "COMM", "FD", "ERR"
    )
}

fn line(
    args: &OpensnoopArgs,
    front: &Front<'_>,
    row: &Row<'_>,
    (returned, ret): (Ns, i64),
) -> String {
    let time = if args.timestamp {
        format!("{} ", front.clock(returned))
    } else {
        String::new()
    };
    let uid = if args.print_uid { "-       " } else { "" };
    let flags = if args.extended_fields {
        let flags = match row.text("name") {
            Some("creat") => Some(CREAT_FLAGS),
            _ => row.int("flags"),
        };
        flags.map_or_else(|| format!("{:<9}", "-"), |flags| format!("{flags:08o} "))
    } else {
        String::new()
    };
    let pid = row
        .int("pid")
        .map_or_else(|| "-".into(), |pid| pid.to_string());
    let (fd, error) = if ret < 0 { (-1, -ret) } else { (ret, 0) };
    format!(
        "{time}{uid}{pid:<6} {:<16} {fd:>3} {error:>3} {flags}{}\n",
        fit(row.text("comm").unwrap_or("?"), 16),
        path(row, "path"),
    )
}
