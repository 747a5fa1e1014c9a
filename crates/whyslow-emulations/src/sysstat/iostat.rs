//! `iostat` of sysstat 12.6, and the columns of sysstat 11.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use clap::{Args, FromArgMatches, ValueEnum};
use whyslow_base::failure::Failure;

use super::banner::banner;
use super::disks::{self, Sums, Way};
use crate::front::{CpuShares, Front, FrontArgs, Positionals, shown, with_args};
use crate::tool::{Call, Tool};

pub(crate) static TOOL: Tool = Tool {
    name: "iostat",
    machine_name: None,
    about: "Show CPU and disk statistics, like iostat of sysstat 12",
    args: |command| {
        let shape = "RECORDING [DEV…] [INTERVAL [COUNT]]";
        with_args::<IostatArgs>(command, shape, NOTES)
    },
    run,
};

const NOTES: &str = "\
Without an interval there is one report for the whole window. kB are 1024 bytes.

Differences from a live iostat:
- Figures come from events, not from counters sampled at clock ticks: %util is the exact share of
  time with a request in flight, aqu-sz the exact mean number of requests in flight. A request
  is in flight from its first event (queued, allocated or issued), slightly earlier than in the
  kernel's counters.
- A request counts in the interval in which it completes. If its completion was not recorded, it
  counts only in aqu-sz and %util.
- rrqm/s and wrqm/s count I/Os merged into the completed requests.
- %system includes interrupts, as in iostat; %iowait is idle time while a thread was in
  uninterruptible sleep; %steal is not recorded and shown as -.
- svctm (--layout 11) is busy time divided by requests, as in sysstat 11. It is unreliable: a device
  that processes several requests at once has no service time in this sense.";

#[derive(Debug, Clone, Args)]
struct IostatArgs {
    #[command(flatten)]
    front: FrontArgs,
    /// Show only CPUs
    #[arg(short = 'c')]
    cpu: bool,
    /// Show only devices
    #[arg(short = 'd')]
    device: bool,
    /// Show extended statistics
    #[arg(short = 'x')]
    extended: bool,
    /// Print short (narrow) reports
    #[arg(short = 's')]
    narrow: bool,
    /// Use kilobytes (the default)
    #[arg(short = 'k', conflicts_with = "megabytes")]
    kilobytes: bool,
    /// Use megabytes
    #[arg(short = 'm')]
    megabytes: bool,
    /// Omit the report since boot (always in effect)
    #[arg(short = 'y')]
    no_first: bool,
    /// Print the time of each report
    #[arg(short = 't')]
    time: bool,
    /// Omit devices without activity in the interval
    #[arg(short = 'z')]
    no_idle: bool,
    /// Include partitions
    #[arg(short = 'p')]
    partitions: bool,
    /// Use the columns of -x from sysstat VERSION
    #[arg(long, value_name = "VERSION", default_value = "12")]
    layout: Layout,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Layout {
    /// Columns of sysstat 12
    #[value(name = "12")]
    Twelve,
    /// Columns of sysstat 11, with svctm
    #[value(name = "11")]
    Eleven,
}

/// A device in an interval of `seconds`.
struct Device<'s> {
    sums: &'s Sums,
    seconds: f64,
    /// Bytes per unit.
    unit: f64,
}

/// A column: title (`#` stands for the unit), width, decimals, value.
struct Column(&'static str, usize, usize, fn(&Device<'_>) -> f64);

impl Device<'_> {
    fn rate(&self, amount: i64) -> f64 {
        ratio(amount as f64, self.seconds)
    }

    fn bytes_rate(&self, bytes: i64) -> f64 {
        ratio(bytes as f64 / self.unit, self.seconds)
    }
}

fn ratio(amount: f64, whole: f64) -> f64 {
    if whole > 0.0 { amount / whole } else { 0.0 }
}

/// Percentage of merged I/Os.
fn merged(way: &Way) -> f64 {
    100.0 * ratio(way.merges as f64, (way.merges + way.requests) as f64)
}

/// Milliseconds from start to completion.
fn wait(way: &Way) -> f64 {
    ratio(way.ticks as f64 / 1e6, way.requests as f64)
}

/// Kilobytes per request, in any unit mode.
fn size(way: &Way) -> f64 {
    ratio(way.bytes as f64 / 1024.0, way.requests as f64)
}

/// Sum of all transfers.
fn all(sums: &Sums) -> Way {
    let ways = [&sums.read, &sums.write, &sums.discard];
    Way {
        requests: sums.transfers(),
        bytes: ways.iter().map(|way| way.bytes).sum(),
        merges: ways.iter().map(|way| way.merges).sum(),
        ticks: ways.iter().map(|way| way.ticks).sum(),
    }
}

const fn queue(width: usize) -> Column {
    Column("aqu-sz", width, 2, |device| {
        ratio(device.sums.in_flight as f64 / 1e9, device.seconds)
    })
}

const UTIL: Column = Column("%util", 7, 2, |device| {
    100.0 * ratio(device.sums.busy as f64 / 1e9, device.seconds)
});
const TPS: Column = Column("tps", 9, 2, |device| device.rate(device.sums.transfers()));

const PLAIN: &[Column] = &[
    TPS,
    Column("#_read/s", 13, 2, |d| d.bytes_rate(d.sums.read.bytes)),
    Column("#_wrtn/s", 13, 2, |d| d.bytes_rate(d.sums.write.bytes)),
    Column("#_dscd/s", 13, 2, |d| d.bytes_rate(d.sums.discard.bytes)),
    Column("#_read", 11, 0, |d| {
        (d.sums.read.bytes as f64 / d.unit).trunc()
    }),
    Column("#_wrtn", 11, 0, |d| {
        (d.sums.write.bytes as f64 / d.unit).trunc()
    }),
    Column("#_dscd", 11, 0, |d| {
        (d.sums.discard.bytes as f64 / d.unit).trunc()
    }),
];

const PLAIN_NARROW: &[Column] = &[
    TPS,
    Column("#_read/s", 13, 2, |d| d.bytes_rate(d.sums.read.bytes)),
    Column("#_w+d/s", 13, 2, |d| {
        d.bytes_rate(d.sums.write.bytes + d.sums.discard.bytes)
    }),
    Column("#_read", 11, 0, |d| {
        (d.sums.read.bytes as f64 / d.unit).trunc()
    }),
    Column("#_w+d", 11, 0, |d| {
        let bytes = d.sums.write.bytes + d.sums.discard.bytes;
        (bytes as f64 / d.unit).trunc()
    }),
];

const EXTENDED: &[Column] = &[
    Column("r/s", 8, 2, |d| d.rate(d.sums.read.requests)),
    Column("r#/s", 10, 2, |d| d.bytes_rate(d.sums.read.bytes)),
    Column("rrqm/s", 9, 2, |d| d.rate(d.sums.read.merges)),
    Column("%rrqm", 7, 2, |d| merged(&d.sums.read)),
    Column("r_await", 8, 2, |d| wait(&d.sums.read)),
    Column("rareq-sz", 9, 2, |d| size(&d.sums.read)),
    Column("w/s", 8, 2, |d| d.rate(d.sums.write.requests)),
    Column("w#/s", 10, 2, |d| d.bytes_rate(d.sums.write.bytes)),
    Column("wrqm/s", 9, 2, |d| d.rate(d.sums.write.merges)),
    Column("%wrqm", 7, 2, |d| merged(&d.sums.write)),
    Column("w_await", 8, 2, |d| wait(&d.sums.write)),
    Column("wareq-sz", 9, 2, |d| size(&d.sums.write)),
    Column("d/s", 8, 2, |d| d.rate(d.sums.discard.requests)),
    Column("d#/s", 10, 2, |d| d.bytes_rate(d.sums.discard.bytes)),
    Column("drqm/s", 9, 2, |d| d.rate(d.sums.discard.merges)),
    Column("%drqm", 7, 2, |d| merged(&d.sums.discard)),
    Column("d_await", 8, 2, |d| wait(&d.sums.discard)),
    Column("dareq-sz", 9, 2, |d| size(&d.sums.discard)),
    Column("f/s", 8, 2, |d| d.rate(d.sums.flush.requests)),
    Column("f_await", 8, 2, |d| wait(&d.sums.flush)),
    queue(8),
    UTIL,
];

const EXTENDED_NARROW: &[Column] = &[
    TPS,
    Column("#/s", 10, 2, |d| d.bytes_rate(all(d.sums).bytes)),
    Column("rqm/s", 9, 2, |d| d.rate(all(d.sums).merges)),
    Column("await", 8, 2, |d| wait(&all(d.sums))),
    Column("areq-sz", 9, 2, |d| size(&all(d.sums))),
    queue(8),
    UTIL,
];

const EXTENDED_11: &[Column] = &[
    Column("r/s", 8, 2, |d| d.rate(d.sums.read.requests)),
    Column("w/s", 8, 2, |d| d.rate(d.sums.write.requests)),
    Column("r#/s", 10, 2, |d| d.bytes_rate(d.sums.read.bytes)),
    Column("w#/s", 10, 2, |d| d.bytes_rate(d.sums.write.bytes)),
    Column("rrqm/s", 9, 2, |d| d.rate(d.sums.read.merges)),
    Column("wrqm/s", 9, 2, |d| d.rate(d.sums.write.merges)),
    Column("%rrqm", 7, 2, |d| merged(&d.sums.read)),
    Column("%wrqm", 7, 2, |d| merged(&d.sums.write)),
    Column("r_await", 8, 2, |d| wait(&d.sums.read)),
    Column("w_await", 8, 2, |d| wait(&d.sums.write)),
    queue(7),
    Column("rareq-sz", 9, 2, |d| size(&d.sums.read)),
    Column("wareq-sz", 9, 2, |d| size(&d.sums.write)),
    Column("svctm", 7, 2, |d| {
        ratio(d.sums.busy as f64 / 1e6, d.sums.transfers() as f64)
    }),
    UTIL,
];

fn run(call: &Call<'_>) -> Result<(), Failure> {
    let args = IostatArgs::from_arg_matches(call.matches)
        .map_err(|error| Failure::usage(error.to_string()))?;
    refuse(&args)?;
    let mut words = Positionals::sort(&args.front.words);
    let (interval, count) = words.interval()?;
    let mut names = std::mem::take(&mut words.names);
    names.retain(|name| name != "ALL");
    let mut front = Front::open(call, &args.front, words.recording.as_deref())?;
    let parts = front.parts(interval, count)?;
    let shows_cpus = args.cpu || !args.device;
    let shows_devices = args.device || !args.cpu;
    let cpus = if shows_cpus {
        CpuShares::of(&front, parts)?
    } else {
        Vec::new()
    };
    let devices = if shows_devices {
        let found = disks::by_name(&front, parts, args.partitions)?;
        chosen(&front, found, &names, args.partitions)?
    } else {
        BTreeMap::new()
    };
    front.put_first(&format!("{}\n", banner(&front)?))?;
    for part in 0..parts.count() {
        let mut text = String::new();
        if args.time {
            let _ = writeln!(text, "{}", front.stamp(parts.end(part)));
        }
        if let Some(cpu) = cpus.get(part) {
            cpus_text(&front, &mut text, cpu);
        }
        if shows_devices {
            devices_text(&mut text, &args, &devices, (part, parts.seconds(part)));
        }
        text.push('\n');
        front.put(&text)?;
    }
    front.finish()
}

/// Rejects options that have no effect.
fn refuse(args: &IostatArgs) -> Result<(), Failure> {
    if args.layout == Layout::Twelve {
        return Ok(());
    }
    if !args.extended {
        return Err(
            Failure::usage("cannot use --layout 11 without -x").hint("add -x, or omit --layout")
        );
    }
    if args.narrow {
        return Err(Failure::usage(
            "cannot combine -s and --layout 11: sysstat 11 has no narrow reports",
        )
        .hint("omit one of them"));
    }
    Ok(())
}

/// The named devices, or all; with `-p`, their partitions too.
fn chosen(
    front: &Front<'_>,
    mut found: BTreeMap<String, Vec<Sums>>,
    names: &[String],
    with_partitions: bool,
) -> Result<BTreeMap<String, Vec<Sums>>, Failure> {
    let bare = |name: &String| name.strip_prefix("/dev/").unwrap_or(name).to_owned();
    let names: Vec<String> = names.iter().map(bare).collect();
    for name in &names {
        if front.is_on_this_machine(name) {
            found
                .entry(name.clone())
                .or_insert_with(|| vec![Sums::default()]);
        }
        if !found.contains_key(name) {
            let known: Vec<&str> = found.keys().map(String::as_str).collect();
            let known = if known.is_empty() {
                "this recording has no block requests".to_owned()
            } else {
                format!("devices in this recording: {}", known.join(", "))
            };
            return Err(Failure::usage(format!(
                "cannot use `{name}`: it is neither a recording nor a device"
            ))
            .hint(known));
        }
    }
    found.retain(|name, _| {
        names.is_empty()
            || names
                .iter()
                .any(|disk| name == disk || (with_partitions && is_partition(name, disk)))
    });
    Ok(found)
}

/// Whether the name is that of a partition in the kernel's scheme: `sda1`, or with a `p` after a
/// digit, `loop1p1`.
fn is_partition(name: &str, disk: &str) -> bool {
    let Some(rest) = name.strip_prefix(disk) else {
        return false;
    };
    let number = if disk.ends_with(|last: char| last.is_ascii_digit()) {
        rest.strip_prefix('p')
    } else {
        Some(rest)
    };
    number.is_some_and(|number| {
        !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
    })
}

fn cpus_text(front: &Front<'_>, text: &mut String, cpu: &CpuShares) {
    text.push_str("avg-cpu:  %user   %nice %system %iowait  %steal   %idle\n       ");
    if cpu.system.is_some() && cpu.hardirq.is_none() {
        front.note("interrupts not recorded: %system excludes them");
    }
    let irqs = cpu.hardirq.unwrap_or(0.0) + cpu.softirq.unwrap_or(0.0);
    let system = cpu.system.map(|system| system + irqs);
    for value in [cpu.user, cpu.nice, system, cpu.iowait, cpu.steal, cpu.idle] {
        match value {
            Some(value) => {
                let _ = write!(text, "{value:8.2}");
            }
            None => {
                let _ = write!(text, "{:>8}", "-");
            }
        }
    }
    text.push_str("\n\n");
}

fn devices_text(
    text: &mut String,
    args: &IostatArgs,
    devices: &BTreeMap<String, Vec<Sums>>,
    (part, seconds): (usize, f64),
) {
    let columns = match (args.extended, args.narrow, args.layout) {
        (true, _, Layout::Eleven) => EXTENDED_11,
        (true, true, Layout::Twelve) => EXTENDED_NARROW,
        (true, false, Layout::Twelve) => EXTENDED,
        (false, true, _) => PLAIN_NARROW,
        (false, false, _) => PLAIN,
    };
    let (unit, name) = if args.megabytes {
        (1024.0 * 1024.0, "MB")
    } else {
        (1024.0, "kB")
    };
    let _ = write!(text, "{:<13}", "Device");
    for Column(title, width, ..) in columns {
        let _ = write!(text, "{:>width$}", title.replace('#', name));
    }
    text.push('\n');
    for (name, sums) in devices {
        let Some(sums) = sums.get(part) else { continue };
        if args.no_idle && sums.is_idle() {
            continue;
        }
        let device = Device {
            sums,
            seconds,
            unit,
        };
        let _ = write!(text, "{:<13}", shown(name));
        for Column(_, width, decimals, value) in columns {
            let value = value(&device);
            // Columns stay separated however large their numbers are.
            let digits = format!("{value:.decimals$}");
            let _ = write!(text, " {digits:>width$}", width = width - 1);
        }
        text.push('\n');
    }
    text.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partitions_are_told_from_other_disks() {
        let check = |name: &str, disk: &str, want: bool| {
            assert_eq!(is_partition(name, disk), want, "{name} of {disk}");
        };
        check("sda1", "sda", true);
        check("sda12", "sda", true);
        check("sda", "sda", false);
        check("sdaa1", "sda", false);
        check("sdap1", "sda", false);
        check("sdb1", "sda", false);
        check("loop1p1", "loop1", true);
        check("loop10", "loop1", false);
        check("loop10p1", "loop1", false);
        check("nvme0n1p2", "nvme0n1", true);
        check("nvme0n12", "nvme0n1", false);
        check("nvme0n1p", "nvme0n1", false);
    }
}
