//! `pidstat` of sysstat 12.6: CPU, disk bytes and context switches by process or thread.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use clap::{Arg, Args, FromArgMatches};
use whyslow_base::failure::Failure;

use super::banner::banner;
use crate::front::activity::{Activity, Level, Sums, Task};
use crate::front::{Front, FrontArgs, Parts, Words, shown, with_args};
use crate::tool::{Call, Tool};

pub(crate) static TOOL: Tool = Tool {
    name: "pidstat",
    machine_name: None,
    about: "Processes and threads as pidstat of sysstat 12 shows them",
    args: |command| {
        let shape = "RECORDING [INTERVAL [COUNT]]";
        // Its -w are context switches.
        let without_short = |window: Arg| window.short(None::<char>);
        with_args::<PidstatArgs>(command, shape, NOTES).mut_arg("window", without_short)
    },
    run,
};

const NOTES: &str = "\
The window has no short flag here: --window A..B. Without an interval there is one report, of the
whole window; a process is the sum of its threads in every column. UID is - where the recording
does not tell it.

Where numbers differ from those of a live pidstat:
- kB_rd/s are the block requests that the process submitted to be read; kB_wr/s what its write
  calls moved to files (not below /proc, /sys, /dev; that a file lies on a tmpfs is not known),
  which the kernel counts in whole pages. kB_ccwr/s is what the kernel counts for the process, looked
  at once a second (of more than 300 processes some take turns) and when it ends; not for threads.
- iodelay is all uninterruptible sleep, in ticks of 10 ms: which sleeps waited for I/O is not
  recorded.
- %system has interrupts in it that the process was hit by; %guest is not recorded and shown as -.
- nvcswch/s counts the threads that lost the CPU though they could have run on.
Without events that tell a number it is -1.00 with -d, else -. What
threads did of which only the CPU is known stands below PID ?.";

#[derive(Debug, Clone, Args)]
struct PidstatArgs {
    #[command(flatten)]
    front: FrontArgs,
    /// Bytes to and from disks
    #[arg(short = 'd')]
    disk: bool,
    /// CPU (the default)
    #[arg(short = 'u')]
    cpu: bool,
    /// Context switches
    #[arg(short = 'w')]
    switches: bool,
    /// Only these processes
    #[arg(short = 'p', value_name = "PID", value_delimiter = ',')]
    pid: Vec<String>,
    /// Only tasks whose name contains this
    #[arg(short = 'C', value_name = "COMM")]
    comm: Option<String>,
    /// Also threads
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

/// Some columns of a report.
struct Report {
    header: &'static str,
    /// Whether the task belongs into it unless named.
    is_active: fn(&Sums) -> bool,
    cells: fn(&Sums, &About) -> String,
}

/// What a row is about beside its sums.
struct About {
    seconds: f64,
    /// Averages have no CPU.
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

/// Length of a clock tick, in which delays are shown.
const TICK: i64 = 10_000_000;

fn run(call: &Call<'_>) -> Result<(), Failure> {
    let args = PidstatArgs::from_arg_matches(call.matches)
        .map_err(|error| Failure::usage(error.to_string()))?;
    refuse(&args)?;
    let pids = pids(&args)?;
    let words = Words::without_names(&args.front.words)?;
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
        (args.memory, "-r", "page faults and sizes of processes"),
        (args.stack, "-s", "sizes of stacks"),
        (
            args.kernel_tables,
            "-v",
            "numbers of threads and descriptors",
        ),
        (args.policy, "-R", "scheduling policies"),
    ];
    match unknown.iter().find(|(asked, ..)| *asked) {
        Some((_, flag, what)) => Err(Failure::usage(format!(
            "{flag} cannot be answered: {what} are not recorded"
        ))
        .hint("there are -d (disk), -u (CPU) and -w (context switches)")),
        None => Ok(()),
    }
}

fn pids(args: &PidstatArgs) -> Result<Vec<i32>, Failure> {
    if args.pid.iter().any(|pid| pid == "ALL") {
        return Ok(Vec::new());
    }
    let parse = |text: &String| {
        text.parse().map_err(|_| {
            Failure::usage(format!("`{text}` is not the id of a process"))
                .hint("name processes by number, or ALL")
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
            // The first line of a report has the time at which its interval begins.
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
        all.extend(activity.everybody(Level::Process));
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
