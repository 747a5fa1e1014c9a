//! `iotop` in batch mode.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use clap::{Args, FromArgMatches};
use whyslow_analysis::{Filter, Kind};
use whyslow_base::failure::Failure;

use crate::front::activity::{Activity, Level, Sums, Task};
use crate::front::positionals::seconds;
use crate::front::{Front, FrontArgs, Parts, Positionals, shown, with_args};
use crate::tool::{Call, Tool};

pub(crate) static TOOL: Tool = Tool {
    name: "iotop",
    machine_name: None,
    about: "Show threads by disk I/O, like iotop -b",
    args: |command| with_args::<IotopArgs>(command, "RECORDING", NOTES),
    run,
};

const NOTES: &str = "\
Always in batch mode. Without -d and -n there is one list for the whole window.

DISK READ counts the bytes of block read requests that a thread submitted, DISK WRITE the bytes that
its write calls transferred to files (not below /proc, /sys, /dev). Total is their sum, Current is
what the disks completed. IO is uninterruptible sleep: whether a sleep waited for I/O is not
recorded. PRIO, USER and SWAPIN are not recorded. Unrecorded values are shown as -. Order: bytes
transferred, then IO, then id.";

#[derive(Debug, Clone, Args)]
struct IotopArgs {
    #[command(flatten)]
    front: FrontArgs,
    /// Use batch mode (always in effect)
    #[arg(short, long)]
    batch: bool,
    /// Show only threads (with -P: processes) that did I/O
    #[arg(short, long)]
    only: bool,
    /// Show processes instead of threads
    #[arg(short = 'P', long)]
    processes: bool,
    /// Print at most N lists
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(i64).range(1..))]
    iter: Option<i64>,
    /// Print a list every SEC seconds [default with -n: 1]
    #[arg(short, long, value_name = "SEC")]
    delay: Option<String>,
    /// Show only process PID
    #[arg(short, long, value_delimiter = ',')]
    pid: Vec<i32>,
    /// Show I/O since the start of the window instead of per second
    #[arg(short, long)]
    accumulated: bool,
    /// Use kilobytes instead of human-readable units
    #[arg(short, long)]
    kilobytes: bool,
    /// Print the time of day on each line
    #[arg(short, long)]
    time: bool,
}

fn run(call: &Call<'_>) -> Result<(), Failure> {
    let args = IotopArgs::from_arg_matches(call.matches)
        .map_err(|error| Failure::usage(error.to_string()))?;
    let words = Positionals::without_names(&args.front.words)?;
    if let Some(number) = words.numbers.first() {
        return Err(Failure::usage(format!("unexpected argument `{number}`"))
            .hint("set the interval with -d SEC and the number of lists with -n N"));
    }
    let delay = args.delay.as_deref().map(seconds).transpose()?;
    let delay = delay.or(args.iter.map(|_| 1_000_000_000));
    let mut front = Front::open(call, &args.front, words.recording.as_deref())?;
    let parts = front.parts(delay, args.iter)?;
    let mut activity = Activity::new(&front, parts, &args.pid)?;
    activity.count_bytes(&front)?;
    activity.count_blocked(&front)?;
    let disks = disks(&front, parts)?;
    let known = Known {
        blocks: front.has("block_io"),
        calls: front.has("syscall"),
    };
    let mut whole = BTreeMap::new();
    for (part, current) in disks.iter().enumerate() {
        let now = activity.of(Some(part), level(&args));
        if args.accumulated {
            accumulate(&mut whole, &now);
        }
        let seconds = parts.seconds(part).max(1e-9);
        let shown = if args.accumulated {
            let since = (parts.end(part) - parts.begin(0)) as f64 / 1e9;
            (&whole, since.max(1e-9))
        } else {
            (&now, seconds)
        };
        let mut text = head(&args, known, (&now, seconds), *current);
        text += &rows(&args, known, &activity, shown);
        if args.time {
            let time = front.clock(parts.end(part));
            let lines = text.lines().map(|line| format!("{time} {line}\n"));
            front.put(&lines.collect::<String>())?;
        } else {
            front.put(&text)?;
        }
    }
    front.finish()
}

/// Bytes read and written by requests completed in each interval.
fn disks(front: &Front<'_>, parts: Parts) -> Result<Vec<(i64, i64)>, Failure> {
    let mut disks = vec![(0, 0); parts.count()];
    let columns = ["ts_end_ns", "layer", "op", "bytes"];
    front.each_of(Kind::Block, Filter::default(), &columns, |row| {
        let part = row.int("ts_end_ns").and_then(|ts| parts.of(ts));
        if let Some(part) = part
            && row.text("layer") != Some("bio")
        {
            let bytes = row.int("bytes").unwrap_or(0);
            match row.text("op") {
                Some("read") => disks[part].0 += bytes,
                Some("write") => disks[part].1 += bytes,
                _ => {}
            }
        }
        Ok(())
    })?;
    Ok(disks)
}

const HEADER: &str = "  TID  PRIO  USER     DISK READ  DISK WRITE  SWAPIN      IO    COMMAND\n";

/// Which disk traffic was recorded; the rest is unknown, not zero.
#[derive(Debug, Clone, Copy)]
struct Known {
    blocks: bool,
    calls: bool,
}

type ByTask = BTreeMap<Task, Sums>;

fn level(args: &IotopArgs) -> Level {
    if args.processes {
        Level::Process
    } else {
        Level::Thread
    }
}

/// Adds an interval to the sum of the earlier ones.
fn accumulate(whole: &mut ByTask, part: &ByTask) {
    for (task, more) in part {
        whole.entry(*task).or_default().add(more);
    }
}

/// The summary lines of the machine and the column titles.
fn head(
    args: &IotopArgs,
    known: Known,
    (now, seconds): (&ByTask, f64),
    (read, written): (i64, i64),
) -> String {
    let total = |bytes: fn(&Sums) -> i64| now.values().map(bytes).sum::<i64>();
    let rate = |bytes: i64, is_known: bool| {
        if is_known {
            amount(bytes as f64 / seconds, args.kilobytes, "/s")
        } else {
            format!("{:>11}", "-")
        }
    };
    let titles = if args.processes {
        HEADER.replacen("TID", "PID", 1)
    } else {
        HEADER.to_owned()
    };
    format!(
        "  Total DISK READ: {} |   Total DISK WRITE: {}\n\
         Current DISK READ: {} | Current DISK WRITE: {}\n{titles}",
        rate(total(|sums| sums.read), known.blocks),
        rate(total(|sums| sums.written), known.calls),
        rate(read, known.blocks),
        rate(written, known.blocks),
    )
}

/// A line per task, from sums over `seconds`.
fn rows(
    args: &IotopArgs,
    known: Known,
    activity: &Activity,
    (sums, seconds): (&ByTask, f64),
) -> String {
    let mut sums = sums.clone();
    if !args.only {
        for task in activity.all_tasks(level(args)) {
            sums.entry(task).or_default();
        }
    }
    let moved = |bytes: i64, is_known: bool| match (is_known, args.accumulated) {
        (false, _) => "-".into(),
        (true, true) => amount(bytes as f64, args.kilobytes, ""),
        (true, false) => amount(bytes as f64 / seconds, args.kilobytes, "/s"),
    };
    let mut text = String::new();
    for (task, sums) in in_order(sums, args.only) {
        let id = if args.processes { task.pid } else { task.tid };
        let id = id.map_or_else(|| "?".into(), |id| id.to_string());
        let blocked = sums.blocked as f64 / 1e7 / seconds;
        let _ = writeln!(
            text,
            "{id:>5} {:>4} {:<8} {:>11} {:>11} {:>7} {:>7} {}",
            "-",
            "-",
            moved(sums.read, known.blocks),
            moved(sums.written, known.calls),
            "-",
            format!("{blocked:.2} %"),
            shown(activity.name(task)),
        );
    }
    text
}

/// Most bytes first, then longest blocked.
fn in_order(sums: ByTask, only_active: bool) -> Vec<(Task, Sums)> {
    let does_io = |sums: &Sums| sums.read + sums.written > 0 || sums.blocked > 0;
    let mut rows: Vec<(Task, Sums)> = sums.into_iter().collect();
    rows.retain(|(_, sums)| !only_active || does_io(sums));
    rows.sort_by_key(|(task, sums)| {
        let moved = sums.read + sums.written;
        (std::cmp::Reverse((moved, sums.blocked)), *task)
    });
    rows
}

/// Bytes with a suitable unit: `12.34 K/s`.
fn amount(bytes: f64, in_kilobytes: bool, suffix: &str) -> String {
    const UNITS: [&str; 5] = ["B", "K", "M", "G", "T"];
    let (mut value, mut unit) = (bytes, 0);
    if in_kilobytes {
        (value, unit) = (bytes / 1024.0, 1);
    } else {
        while value >= 1000.0 && unit + 1 < UNITS.len() {
            value /= 1024.0;
            unit += 1;
        }
    }
    format!("{value:7.2} {}{suffix}", UNITS[unit])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_have_fitting_units() {
        let check = |bytes: f64, kilobytes: bool, want: &str| {
            assert_eq!(amount(bytes, kilobytes, "/s"), want);
        };
        check(0.0, false, "   0.00 B/s");
        check(999.0, false, " 999.00 B/s");
        check(1024.0, false, "   1.00 K/s");
        check(1024.0 * 1024.0, false, "   1.00 M/s");
        check(512.0, true, "   0.50 K/s");
        check(1e30, false, "909494701772928256.00 T/s");
    }
}
