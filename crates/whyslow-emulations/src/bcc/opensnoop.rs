//! `opensnoop`: open calls with their results, in order of their ends.

use clap::{Args, FromArgMatches};
use whyslow_analysis::{Filter, Kind};
use whyslow_base::failure::Failure;
use whyslow_model::Ns;

use super::columns::{fit, path};
use crate::cells::Row;
use crate::front::words::seconds;
use crate::front::{ByEnd, Front, FrontArgs, Words, with_args};
use crate::tool::{Call, Tool};

pub(crate) static TOOL: Tool = Tool {
    name: "opensnoop",
    machine_name: None,
    about: "Files opened, by whom, and whether that failed, as opensnoop shows them",
    args: |command| with_args::<OpensnoopArgs>(command, "RECORDING", NOTES),
    run,
};

const NOTES: &str = "\
open, openat, openat2 and creat. PATH is the whole path, where the recording tells the directory
that a relative one begins in; opensnoop prints what the call was given. Calls that had not
returned when the recording ended are counted on standard error.";

#[derive(Debug, Clone, Args)]
struct OpensnoopArgs {
    #[command(flatten)]
    front: FrontArgs,
    /// With the time of day at which the call returned
    #[arg(short = 'T', long)]
    timestamp: bool,
    /// With the user (not recorded: -)
    #[arg(short = 'U', long)]
    print_uid: bool,
    /// Only failed ones
    #[arg(short = 'x', long)]
    failed: bool,
    /// Only of this process
    #[arg(short, long)]
    pid: Option<i32>,
    /// Only of this thread
    #[arg(short, long)]
    tid: Option<i32>,
    /// Only of threads whose name contains this
    #[arg(short, long)]
    name: Option<String>,
    /// With the flags of the call, octal
    #[arg(short, long)]
    extended_fields: bool,
    /// Only the first so many seconds of the window
    #[arg(short, long, value_name = "SEC")]
    duration: Option<String>,
    #[arg(short, long, hide = true)]
    uid: Option<String>,
}

const CALLS: [&str; 4] = ["open", "openat", "openat2", "creat"];
/// Flags that creat stands for: O_CREAT, O_WRONLY, O_TRUNC.
const CREAT_FLAGS: i64 = 0o1101;

fn run(call: &Call<'_>) -> Result<(), Failure> {
    let args = OpensnoopArgs::from_arg_matches(call.matches)
        .map_err(|error| Failure::usage(error.to_string()))?;
    if args.uid.is_some() {
        return Err(
            Failure::usage("--uid cannot be answered: users are not recorded")
                .hint("filter with -p PID, -t TID or -n NAME"),
        );
    }
    let words = Words::without_names(&args.front.words)?;
    if let Some(number) = words.numbers.first() {
        return Err(Failure::usage(format!("`{number}` is one word too many"))
            .hint("there is one recording; -d SEC is a duration"));
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
        // `open` is a class of calls too, of which sockets and pipes are not wanted.
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
            "{unfinished} opens are not shown: begin or end was not recorded"
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
