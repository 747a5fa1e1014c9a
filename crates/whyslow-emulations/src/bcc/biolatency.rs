//! `biolatency`: disk I/O latency as power-of-two histograms.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use clap::{Args, FromArgMatches};
use whyslow_analysis::Kind;
use whyslow_base::failure::Failure;

use super::biosnoop::{of_disk, refuse_unknown};
use crate::front::{Front, FrontArgs, Positionals, shown, with_args};
use crate::tool::{Call, Tool};

pub(crate) static TOOL: Tool = Tool {
    name: "biolatency",
    machine_name: None,
    about: "Show disk I/O latency as histograms, like biolatency",
    args: |command| {
        let shape = "RECORDING [INTERVAL [COUNT]]";
        with_args::<BiolatencyArgs>(command, shape, NOTES)
    },
    run,
};

const NOTES: &str = "\
The latency is the time in the device, from issue to completion, truncated to microseconds
(milliseconds with -m). With -Q it starts at the first event of the request, which may be slightly
earlier than in biolatency. A request counts in the interval in which it completes. The number of
requests without a recorded issue or completion is reported on standard error. Requests of stacked
devices (device mapper, RAID) count as the requests of the underlying disks. Without an interval
there is one histogram for the whole window.";

#[derive(Debug, Clone, Args)]
struct BiolatencyArgs {
    #[command(flatten)]
    front: FrontArgs,
    /// Print a histogram per disk
    #[arg(short = 'D', long)]
    disks: bool,
    /// Print a histogram per set of request flags
    #[arg(short = 'F', long, conflicts_with = "disks")]
    flags: bool,
    /// Include the time queued in the operating system
    #[arg(short = 'Q', long)]
    queued: bool,
    /// Use milliseconds instead of microseconds
    #[arg(short, long)]
    milliseconds: bool,
    /// Print the time of day of each interval
    #[arg(short = 'T', long)]
    timestamp: bool,
    /// Show only disk DISK
    #[arg(short, long)]
    disk: Option<String>,
}

/// Counts by power of two.
type Slots = BTreeMap<u32, u64>;

/// Length of the longest bar.
const BAR: u64 = 40;

fn run(call: &Call<'_>) -> Result<(), Failure> {
    let args = BiolatencyArgs::from_arg_matches(call.matches)
        .map_err(|error| Failure::usage(error.to_string()))?;
    let words = Positionals::without_names(&args.front.words)?;
    let (interval, count) = words.interval()?;
    let mut front = Front::open(call, &args.front, words.recording.as_deref())?;
    refuse_unknown(&front, args.disk.as_deref())?;
    let parts = front.parts(interval, count)?;
    let column = if args.queued { "dur_ns" } else { "device_ns" };
    let (unit, title) = if args.milliseconds {
        (1_000_000, "msecs")
    } else {
        (1_000, "usecs")
    };
    let mut histograms: Vec<BTreeMap<String, Slots>> = vec![BTreeMap::new(); parts.count()];
    let mut unknown = 0;
    let columns = ["ts_end_ns", column, "dev", "rwbs", "layer"];
    let filter = of_disk(args.disk.as_deref());
    front.each_of(Kind::Block, filter, &columns, |row| {
        // Requests of a bio-based device appear again as requests of the disk below.
        if row.text("layer") == Some("bio") {
            return Ok(());
        }
        let Some(completed) = row.int("ts_end_ns") else {
            unknown += 1;
            return Ok(());
        };
        let Some(part) = parts.of(completed) else {
            return Ok(());
        };
        let Some(ns) = row.int(column) else {
            unknown += 1;
            return Ok(());
        };
        let name = match (args.disks, args.flags) {
            (true, _) => row.text("dev").unwrap_or("-").to_owned(),
            (_, true) => flags(row.text("rwbs").unwrap_or("")),
            _ => String::new(),
        };
        let slots = histograms[part].entry(name).or_default();
        *slots.entry(slot(ns / unit)).or_default() += 1;
        Ok(())
    })?;
    for (part, histograms) in histograms.iter().enumerate() {
        let mut text = String::from("\n");
        if args.timestamp {
            let _ = writeln!(text, "{}", front.clock(parts.end(part)));
        }
        for (name, slots) in histograms {
            if args.disks {
                let _ = writeln!(text, "disk = {}", shown(name));
            } else if args.flags {
                let _ = writeln!(text, "flags = {name}");
            }
            histogram(&mut text, title, slots);
        }
        front.put(&text)?;
    }
    if unknown > 0 {
        front.note_cut(format!(
            "{unknown} requests not counted: issue or completion not recorded"
        ));
    }
    front.finish()
}

/// Index of the highest set bit; 0 and 1 share the first slot.
fn slot(value: i64) -> u32 {
    u64::try_from(value).unwrap_or(0).max(1).ilog2()
}

fn histogram(text: &mut String, title: &str, slots: &Slots) {
    let most = slots.values().max().copied().unwrap_or(0).max(1);
    let last = slots.keys().max().copied().unwrap_or(0);
    let _ = writeln!(text, "     {title:<19} : count    distribution");
    for slot in 0..=last {
        let count = slots.get(&slot).copied().unwrap_or(0);
        let from = if slot == 0 { 0 } else { 1u64 << slot };
        let to = (1u128 << (slot + 1)) - 1;
        let stars = "*".repeat((u128::from(count) * u128::from(BAR) / u128::from(most)) as usize);
        let _ = writeln!(text, "{from:>10} -> {to:<10} : {count:<8} |{stars:<40}|");
    }
}

/// The kernel's letters for request flags as words joined by dashes, as in bcc.
fn flags(rwbs: &str) -> String {
    let mut words = Vec::new();
    let mut seen_operation = false;
    for letter in rwbs.chars() {
        let word = match letter {
            'R' => "Read",
            'W' => "Write",
            'D' => "Discard",
            'E' => "Secure-Erase",
            'N' => continue,
            // `F` before the operation is a preflush, after it forced unit access.
            'F' if seen_operation => "FUA",
            'F' => "Flush",
            'S' => "Sync",
            'M' => "Metadata",
            'A' => "ReadAhead",
            _ => continue,
        };
        seen_operation |= matches!(letter, 'R' | 'W' | 'D' | 'E');
        words.push(word);
    }
    // bcc prints attributes first, the operation last.
    words.sort_by_key(|word| matches!(*word, "Read" | "Write" | "Discard" | "Secure-Erase"));
    if words.is_empty() {
        return "Unknown".into();
    }
    words.join("-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_powers_of_two() {
        let slots = [0, 1, 2, 3, 4, 7, 8, 1023, 1024, -1].map(slot);
        assert_eq!(slots, [0, 0, 1, 1, 2, 2, 3, 9, 10, 0]);
    }

    #[test]
    fn bars_are_relative_to_the_longest() {
        let mut text = String::new();
        histogram(&mut text, "usecs", &Slots::from([(1, 3), (2, 10)]));
        let want = "     usecs               : count    distribution\n\
            \x20        0 -> 1          : 0        |                                        |\n\
            \x20        2 -> 3          : 3        |************                            |\n\
            \x20        4 -> 7          : 10       |****************************************|\n";
        assert_eq!(text, want);
    }

    #[test]
    fn flags_are_words() {
        let of = ["R", "WS", "WSM", "FWFSM", "RA", "D", "F", "", "WFS"].map(flags);
        let want = [
            "Read",
            "Sync-Write",
            "Sync-Metadata-Write",
            "Flush-FUA-Sync-Metadata-Write",
            "ReadAhead-Read",
            "Discard",
            "Flush",
            "Unknown",
            "FUA-Sync-Write",
        ];
        assert_eq!(of, want);
    }
}
