//! `biosnoop`: block requests in order of completion.

use std::collections::BTreeSet;

use clap::{Args, FromArgMatches};
use whyslow_analysis::{DeviceRef, Filter, Kind, Verb};
use whyslow_base::failure::Failure;
use whyslow_model::Ns;

use super::columns::fit;
use crate::cells::{Row, rows};
use crate::front::positionals::seconds;
use crate::front::{ByEnd, Front, FrontArgs, Positionals, with_args};
use crate::tool::{Call, Tool};

pub(crate) static TOOL: Tool = Tool {
    name: "biosnoop",
    machine_name: None,
    about: "Show block requests with their latency, like biosnoop",
    args: |command| with_args::<BiosnoopArgs>(command, "RECORDING [SECONDS]", NOTES),
    run,
};

const NOTES: &str = "\
TIME(s) counts from the first request shown. COMM and PID are the submitting thread and process. T:
R read, W write, D discard, F flush, - other. LAT(ms) is the time in the device, from issue to
completion; QUE(ms) is the time before that, from the first event of the request. Unrecorded values
are shown as -. The number of requests without a recorded completion is reported on standard error.";

#[derive(Debug, Clone, Args)]
struct BiosnoopArgs {
    #[command(flatten)]
    front: FrontArgs,
    /// Include the time queued in the operating system
    #[arg(short = 'Q', long)]
    queued: bool,
    /// Show only disk DISK
    #[arg(short, long)]
    disk: Option<String>,
}

/// A completed request.
struct Done {
    completed: Ns,
    rest: String,
}

fn run(call: &Call<'_>) -> Result<(), Failure> {
    let args = BiosnoopArgs::from_arg_matches(call.matches)
        .map_err(|error| Failure::usage(error.to_string()))?;
    let words = Positionals::without_names(&args.front.words)?;
    let length = words.number()?.map(seconds).transpose()?;
    let mut front = Front::open(call, &args.front, words.recording.as_deref())?;
    refuse_unknown(&front, args.disk.as_deref())?;
    if let Some(length) = length {
        front.shorten(length);
    }
    let queue = if args.queued { "QUE(ms) " } else { "" };
    front.put_first(&format!(
        "{:<11} {:<14} {:<7} {:<9} {:<1} {:<10} {:<7} {queue}{:>7}\n",
        "TIME(s)", "COMM", "PID", "DISK", "T", "SECTOR", "BYTES", "LAT(ms)"
    ))?;
    let filter = of_disk(args.disk.as_deref());
    let end = front.span().end;
    let mut unfinished = 0;
    let mut requests = ByEnd::default();
    let print = |done: &Done| {
        let since = front.since_first(done.completed);
        front.put(&format!("{:<11.6} {}", since as f64 / 1e9, done.rest))
    };
    front.each(Kind::Block, filter, |row| {
        let (Some(begin), Some(completed)) = (row.int("ts_ns"), row.int("ts_end_ns")) else {
            unfinished += 1;
            return Ok(());
        };
        if completed > end {
            return Ok(());
        }
        let rest = rest(&args, row);
        for done in requests.take((begin, completed), Done { completed, rest }) {
            print(&done)?;
        }
        Ok(())
    })?;
    for done in requests.rest() {
        print(&done)?;
    }
    if unfinished > 0 {
        front.note_cut(format!(
            "{unfinished} requests not shown: completion not recorded"
        ));
    }
    front.finish()
}

/// Filter for requests of one disk, or of all.
pub(super) fn of_disk(disk: Option<&str>) -> Filter {
    let bare = |disk: &str| disk.strip_prefix("/dev/").unwrap_or(disk).to_owned();
    Filter {
        devices: disk
            .map(|disk| DeviceRef::Name(bare(disk)))
            .into_iter()
            .collect(),
        ..Filter::default()
    }
}

/// A disk without any request in the whole recording is most likely misspelled.
pub(super) fn refuse_unknown(front: &Front<'_>, disk: Option<&str>) -> Result<(), Failure> {
    let Some(disk) = disk else {
        return Ok(());
    };
    let name = disk.strip_prefix("/dev/").unwrap_or(disk);
    if front.is_on_this_machine(name) {
        return Ok(());
    }
    let mut known = BTreeSet::new();
    for key in ["dev", "part"] {
        let answer = front.query_whole((Kind::Block, Verb::Stats), |query| {
            query.by = vec![key.into()];
        })?;
        let rows = rows(&answer, "stats");
        known.extend(
            rows.iter()
                .filter_map(|row| row.text(key).map(str::to_owned)),
        );
    }
    if known.contains(name) {
        return Ok(());
    }
    let known: Vec<&str> = known.iter().map(String::as_str).collect();
    let hint = match known.as_slice() {
        [] => "this recording has no block requests".to_owned(),
        known => format!("disks in this recording: {}", known.join(", ")),
    };
    Err(Failure::usage(format!(
        "cannot select disk `{disk}`: this recording has no requests to it"
    ))
    .hint(hint))
}

fn rest(args: &BiosnoopArgs, row: &Row<'_>) -> String {
    let number = |column: &str| {
        let number = row.int(column);
        number.map_or_else(|| "-".into(), |number| number.to_string())
    };
    let ms = |column: &str| {
        let ns = row.float(column);
        ns.map_or_else(|| "-".into(), |ns| format!("{:.3}", ns / 1e6))
    };
    let queue = if args.queued {
        format!("{:>7} ", ms("queue_ns"))
    } else {
        String::new()
    };
    let letter = match row.text("op") {
        Some("read") => "R",
        Some("write") => "W",
        Some("discard") => "D",
        Some("flush") => "F",
        _ => "-",
    };
    format!(
        "{:<14} {:<7} {:<9} {letter} {:<10} {:<7} {queue}{:>7}\n",
        fit(row.text("comm").unwrap_or("-"), 14),
        number("pid"),
        fit(row.text("dev").unwrap_or("-"), 32),
        number("sector"),
        number("bytes"),
        ms("device_ns"),
    )
}
