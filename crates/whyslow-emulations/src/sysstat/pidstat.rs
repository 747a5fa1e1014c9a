//! `pidstat` of sysstat 12.6: CPU, disk bytes and context switches by process or thread.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use clap::{Arg, Args, FromArgMatches};
use whyslow_base::failure::Failure;

use super::banner::banner;
use crate::front::activity::{Activity, Level, Sums, Task};
use crate::front::{Front, FrontArgs, Parts, Positionals, shown, with_args};
use crate::tool::{Call, Tool};

pub(crate) static TOOL: Tool = Tool {
    name: "pidstat",
    machine_name: None,
    about: "Show process and thread statistics, like pidstat of sysstat 12",
    args: |command| {
        let shape = "RECORDING [INTERVAL [COUNT]]";
        // -w selects context switches in pidstat.
        let without_short = |window: Arg| window.short(None::<char>);
        with_args::<PidstatArgs>(command, shape, NOTES).mut_arg("window", without_short)
    },
    run,
};

const NOTES: &str = "\
Select a window with --window A..B: -w selects context switches, as in pidstat. Without an interval
there is one report for the whole window. In every column a process is the sum of its threads. UID
is - if not recorded.

Differences from a live pidstat:
- kB_rd/s counts the block read requests that the process submitted, kB_wr/s the bytes that its
  write calls transferred to files (not below /proc, /sys, /dev; other files on tmpfs are included),
  which the kernel counts in whole pages. kB_ccwr/s is the kernel's counter of the process, sampled once a
  second (round-robin above 300 processes) and at its exit; not available for threads.
- iodelay is all uninterruptible sleep, in ticks of 10 ms: whether a sleep waited for I/O is not
  recorded.
- %system includes interrupts taken while the process was on CPU; %guest is not recorded and shown
  as -.
- nvcswch/s counts switches away from threads that were still runnable.
Values that were not recorded are -1.00 with -d, otherwise -. Activity of unidentified threads, of
which only the CPU is known, is shown under PID ?.";

#[derive(Debug, Clone, Args)]
struct PidstatArgs {
    #[command(flatten)]
    front: FrontArgs,
    /// Show disk I/O
    #[arg(short = 'd')]
    disk: bool,
    /// Show CPU usage (the default)
    #[arg(short = 'u')]
    cpu: bool,
    /// Show context switches
    #[arg(short = 'w')]
    switches: bool,
    /// Show only process PID
    #[arg(short = 'p', value_name = "PID", value_delimiter = ',')]
    pid: Vec<String>,
    /// Show only tasks whose name contains COMM
    #[arg(short = 'C', value_name = "COMM")]
    comm: Option<String>,
    /// Include threads
    #[arg(short = 't')]
    threads: bool,
    #[arg(short = 'r', hide = true)]
    memory: bool,
    #[arg(short = 's', hide = true)]
    stack: bool,
    #[arg(short = 'v', hide = true)]
    kernel_tables: bool,
    #[arg(short = 'R', hide = true)]
    policy: bool,
}

/// Columns of a report.
struct Report {
    header: &'static str,
    /// Whether the task is listed even if not named.
    is_active: fn(&Sums) -> bool,
    cells: fn(&Sums, &About) -> String,
}

/// Context of a row, in addition to its sums.
struct About {
    seconds: f64,
    /// Whether the row has a CPU; averages have none.
    is_average: bool,
    /// Which events the recording has.
    has: Has,
}

#[derive(Debug, Clone, Copy)]
struct Has {
    blocks: bool,
    calls: bool,
    switches: bool,
    counters: bool,
}

const CPU: Report = Report {
    header: "   %usr %system  %guest   %wait    %CPU   CPU",
    is_active: |sums| sums.running > 0,
    cells: |sums, about| {
        let share = |ns: Option<i64>| match ns.filter(|_| about.has.switches) {
            Some(ns) => format!("{:8.2}", ns as f64 / 1e7 / about.seconds),
            None => format!("{:>8}", "-"),
        };
        let cpu = sums.cpu.filter(|_| !about.is_average);
        let cpu = cpu.map_or_else(|| "-".into(), |(_, cpu)| cpu.to_string());
        let user = about.has.calls.then(|| sums.user.unwrap_or(0));
        format!(
            "{}{}{:>8}{}{}{cpu:>6}",
            share(user),
            share(user.map(|user| sums.running - user)),
            "-",
            share(Some(sums.waiting)),
            share(Some(sums.running)),
        )
    },
};

const DISK: Report = Report {
    header: "  kB_rd/s   kB_wr/s kB_ccwr/s iodelay",
    is_active: |sums| {
        sums.read > 0 || sums.written > 0 || sums.cancelled > 0 || sums.blocked >= TICK
    },
    cells: |sums, about| {
        let rate = |bytes: i64, known: bool| {
            if known {
                bytes as f64 / 1024.0 / about.seconds
            } else {
                -1.0
            }
        };
        let ticks = if about.has.switches {
            sums.blocked / TICK
        } else {
            -1
        };
        format!(
            "{:10.2}{:10.2}{:10.2}{ticks:8}",
            rate(sums.read, about.has.blocks),
            rate(sums.written, about.has.calls),
            rate(sums.cancelled, about.has.counters),
        )
    },
};

const SWITCHES: Report = Report {
    header: "  cswch/s nvcswch/s",
    is_active: |sums| sums.switches_voluntary + sums.switches_forced > 0,
    cells: |sums, about| {
        let rate = |count: i64| {
            if about.has.switches {
                format!("{:10.2}", count as f64 / about.seconds)
            } else {
                format!("{:>10}", "-")
            }
        };
        format!(
            "{}{}",
            rate(sums.switches_voluntary),
            rate(sums.switches_forced)
        )
    },
};

/// Clock tick, the unit of delays.
const TICK: i64 = 10_000_000;

fn run(call: &Call<'_>) -> Result<(), Failure> {
    let args = PidstatArgs::from_arg_matches(call.matches)
        .map_err(|error| Failure::usage(error.to_string()))?;
    refuse(&args)?;
    let pids = pids(&args)?;
    let words = Positionals::without_names(&args.front.words)?;
    let (interval, count) = words.interval()?;
    let mut front = Front::open(call, &args.front, words.recording.as_deref())?;
    let parts = front.parts(interval, count)?;
    let mut reports = Vec::new();
    if args.cpu || !(args.disk || args.switches) {
        reports.push(&CPU);
    }
    if args.disk {
        reports.push(&DISK);
    }
    if args.switches {
        reports.push(&SWITCHES);
    }
    let mut activity = Activity::new(&front, parts, &pids)?;
    if args.disk {
        activity.count_bytes(&front)?;
        activity.count_blocked(&front)?;
        activity.count_cancelled(&front)?;
    }
    if args.cpu || !(args.disk || args.switches) {
        activity.count_cpu(&front)?;
        activity.count_waiting(&front)?;
    }
    if args.cpu || args.switches || !args.disk {
        activity.count_slices(&front)?;
    }
    print(&front, parts, &args, &reports, &activity)?;
    front.finish()
}

fn refuse(args: &PidstatArgs) -> Result<(), Failure> {
    let unknown = [
        (args.memory, "-r", "page faults and process sizes"),
        (args.stack, "-s", "stack sizes"),
        (args.kernel_tables, "-v", "thread and descriptor counts"),
        (args.policy, "-R", "scheduling policies"),
    ];
    match unknown.iter().find(|(requested, ..)| *requested) {
        Some((_, flag, what)) => Err(Failure::usage(format!(
            "cannot use {flag}: {what} are not recorded"
        ))
        .hint("use -d (disk), -u (CPU) or -w (context switches)")),
        None => Ok(()),
    }
}

fn pids(args: &PidstatArgs) -> Result<Vec<i32>, Failure> {
    if args.pid.iter().any(|pid| pid == "ALL") {
        return Ok(Vec::new());
    }
    let parse = |text: &String| {
        text.parse().map_err(|_| {
            Failure::usage(format!("invalid process id `{text}`")).hint("use a number or ALL")
        })
    };
    args.pid.iter().map(parse).collect()
}

fn print(
    front: &Front<'_>,
    parts: Parts,
    args: &PidstatArgs,
    reports: &[&Report],
    activity: &Activity,
) -> Result<(), Failure> {
    front.put_first(&banner(front)?)?;
    let has = Has {
        blocks: front.has("block_io"),
        calls: front.has("syscall"),
        switches: front.has("sched_slice"),
        counters: front.has("counter"),
    };
    let each = (0..parts.count()).map(Some);
    for part in each.chain(parts.by_time.then_some(None)) {
        let about = About {
            seconds: part
                .map_or(parts.seconds_all(), |part| parts.seconds(part))
                .max(1e-9),
            is_average: part.is_none(),
            has,
        };
        let average = || "Average:".to_owned();
        let times = part.map_or_else(
            || (average(), average()),
            |part| (front.clock(parts.begin(part)), front.clock(parts.end(part))),
        );
        for report in reports {
            let mut text = String::from("\n");
            let ids = if args.threads {
                "      TGID       TID"
            } else {
                "       PID"
            };
            // The title line of a report has the start time of its interval.
            let first = format!("{:<8}", times.0);
            let _ = writeln!(text, "{first}      UID{ids} {}  Command", report.header);
            rows(&mut text, args, report, activity, (part, &times.1, &about));
            front.put(&text)?;
        }
    }
    Ok(())
}

fn rows(
    text: &mut String,
    args: &PidstatArgs,
    report: &Report,
    activity: &Activity,
    (part, time, about): (Option<usize>, &str, &About),
) {
    let processes = activity.of(part, Level::Process);
    let threads = if args.threads {
        activity.of(part, Level::Thread)
    } else {
        BTreeMap::default()
    };
    let is_named = !args.pid.is_empty() && !args.pid.iter().any(|pid| pid == "ALL");
    let shows = |task: Task, sums: &Sums| {
        let name = activity.name(task);
        let by_name = args.comm.as_deref().is_none_or(|part| name.contains(part));
        by_name && (is_named || (report.is_active)(sums))
    };
    let mut all: BTreeSet<Task> = processes.keys().copied().collect();
    if is_named {
        all.extend(activity.all_tasks(Level::Process));
    }
    let id = |id: Option<i64>| id.map_or_else(|| "?".into(), |id: i64| id.to_string());
    let user = |task: Task| {
        let user = activity.user(task.pid);
        user.map_or_else(|| "-".into(), |uid| uid.to_string())
    };
    let idle = Sums::default();
    for process in all {
        let sums = processes.get(&process).unwrap_or(&idle);
        let tid = if args.threads {
            format!("{:>10}", "-")
        } else {
            String::new()
        };
        if shows(process, sums) {
            let pid = id(process.pid);
            let name = shown(activity.name(process));
            let cells = (report.cells)(sums, about);
            let user = user(process);
            let _ = writeln!(text, "{time:<8}{user:>9}{pid:>10}{tid}{cells}  {name}");
        }
        let of_process = threads.iter().filter(|(task, _)| task.pid == process.pid);
        for (thread, sums) in of_process.filter(|(task, sums)| shows(**task, sums)) {
            let tid = id(thread.tid);
            let name = shown(activity.name(*thread));
            let cells = (report.cells)(sums, about);
            let _ = writeln!(
                text,
                "{time:<8}{:>9}{:>10}{tid:>10}{cells}  |__{name}",
                user(*thread),
                "-"
            );
        }
    }
}
