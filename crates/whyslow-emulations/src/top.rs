//! `top` in its batch form.

mod host;

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;

use clap::{Args, FromArgMatches, ValueEnum};
use whyslow_analysis::{Filter, Kind};
use whyslow_base::failure::Failure;
use whyslow_model::Ns;

use self::host::Host;
use crate::cells::rows;
use crate::front::activity::{Activity, Level, Sums, Task, each_part};
use crate::front::words::seconds;
use crate::front::{CpuShares, Front, FrontArgs, Parts, Words, shown, with_args};
use crate::tool::{Call, Tool};

pub(crate) static TOOL: Tool = Tool {
    name: "top",
    machine_name: None,
    about: "Processes by their CPU time, as top -b shows them",
    args: |command| with_args::<TopArgs>(command, "RECORDING", NOTES),
    run,
};

const NOTES: &str = "\
Always in batch form. Without -d and -n there is one list, of the whole window. Times and states
are those at the end of the interval, %CPU is of the interval; TIME+ is the CPU time since the
begin of the window, as earlier time is not recorded. A process has the state and priority of its
first thread. Load, memory and sizes are those of the last look, once a second (of more than 300
processes some take turns), and - where the recording has none, as is st of %Cpu(s); wa is idle
time in which a thread slept uninterruptibly. Who ended in the interval is listed too, with
state -. With -H lines are threads.";

#[derive(Debug, Clone, Args)]
struct TopArgs {
    #[command(flatten)]
    front: FrontArgs,
    /// Batch form (always)
    #[arg(short, long)]
    batch: bool,
    /// Threads instead of processes
    #[arg(short = 'H', long)]
    threads: bool,
    /// Without those that used no CPU
    #[arg(short, long)]
    idle_toggle: bool,
    /// Lists at most
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(i64).range(1..))]
    iterations: Option<i64>,
    /// Length of the interval of a list [default with -n: 3 s]
    #[arg(short, long, value_name = "SEC")]
    delay: Option<String>,
    /// Order
    #[arg(short = 'o', long, value_name = "COLUMN", default_value = "%CPU")]
    sort_override: Sort,
    /// Only these processes
    #[arg(short, long, value_delimiter = ',')]
    pid: Vec<i32>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Sort {
    #[value(name = "%CPU", alias = "+%CPU")]
    Cpu,
    #[value(name = "TIME+", aliases = ["TIME", "+TIME+"])]
    Time,
    #[value(name = "PID", alias = "+PID")]
    Pid,
    #[value(name = "COMMAND", alias = "+COMMAND")]
    Command,
}

/// When a task lived; none is before or after the recording.
#[derive(Debug, Clone, Copy)]
struct Life {
    start: Option<Ns>,
    exit: Option<Ns>,
}

/// What is known of a task at the end of a part of time.
#[derive(Debug, Clone, Copy, Default)]
struct Moment {
    state: Option<char>,
    prio: Option<i64>,
}

fn run(call: &Call<'_>) -> Result<(), Failure> {
    let args = TopArgs::from_arg_matches(call.matches)
        .map_err(|error| Failure::usage(error.to_string()))?;
    let words = Words::without_names(&args.front.words)?;
    if let Some(number) = words.numbers.first() {
        return Err(Failure::usage(format!("`{number}` is one word too many"))
            .hint("-d SEC is the interval, -n N the number of lists"));
    }
    let delay = args.delay.as_deref().map(seconds).transpose()?;
    let delay = delay.or(args.iterations.map(|_| 3_000_000_000));
    let mut front = Front::open(call, &args.front, words.recording.as_deref())?;
    let parts = front.parts(delay, args.iterations)?;
    let mut activity = Activity::new(&front, parts, &args.pid)?;
    activity.count_cpu(&front)?;
    let cpus = CpuShares::of(&front, parts)?;
    let lives = lives(&front, &args, &activity)?;
    let moments = moments(&front, parts, &args, &activity)?;
    let host = Host::read(&front)?;
    let mut times: BTreeMap<Task, Ns> = BTreeMap::new();
    for (part, (cpu, moments)) in cpus.iter().zip(&moments).enumerate() {
        let list = List {
            args: &args,
            end: parts.end(part),
            seconds: parts.seconds(part).max(1e-9),
            activity: &activity,
            lives: &lives,
            moments,
            host: &host,
        };
        let sums = activity.of(Some(part), level(&args));
        for (task, sums) in &sums {
            *times.entry(*task).or_default() += sums.running;
        }
        let blank = if part == 0 && front.is_first() {
            ""
        } else {
            "\n"
        };
        let head = list.head(&front.clock(list.end), cpu);
        front.put(&format!("{blank}{head}{}", list.rows(&sums, &times)))?;
    }
    front.finish()
}

fn level(args: &TopArgs) -> Level {
    if args.threads {
        Level::Thread
    } else {
        Level::Process
    }
}

fn lives(
    front: &Front<'_>,
    args: &TopArgs,
    activity: &Activity,
) -> Result<BTreeMap<Task, Life>, Failure> {
    let answer = front.threads()?;
    let mut lives = BTreeMap::new();
    for row in rows(&answer, "threads") {
        let Some(mut task) = activity.task(&row) else {
            continue;
        };
        if !args.threads {
            task.tid = None;
        }
        let life = Life {
            start: row.int("start_ns"),
            exit: row.int("exit_ns"),
        };
        // A process lives as long as any of its threads.
        let both = lives.entry(task).or_insert(life);
        both.start = both.start.min(life.start);
        both.exit = match (both.exit, life.exit) {
            (Some(a), Some(b)) => Some(a.max(b)),
            _ => None,
        };
    }
    Ok(lives)
}

type Moments = HashMap<Task, Moment>;

/// States and priorities at the end of each part.
fn moments(
    front: &Front<'_>,
    parts: Parts,
    args: &TopArgs,
    activity: &Activity,
) -> Result<Vec<Moments>, Failure> {
    let mut found = vec![Moments::new(); parts.count()];
    let columns = ["ts_ns", "ts_end_ns", "state", "prio", "pid", "tid"];
    front.each_of(Kind::States, Filter::default(), &columns, |row| {
        let Some(mut who) = activity.task(row) else {
            return Ok(());
        };
        if !args.threads {
            if who.pid != who.tid {
                return Ok(());
            }
            who.tid = None;
        }
        let end = row.int("ts_end_ns").unwrap_or(Ns::MAX);
        each_part(row, front, parts, |part, _| {
            let moment = found[part].entry(who).or_default();
            moment.prio = row.int("prio").or(moment.prio);
            if end >= parts.end(part) {
                moment.state = row.text("state").and_then(letter);
            }
        });
        Ok(())
    })?;
    Ok(found)
}

fn letter(state: &str) -> Option<char> {
    Some(match state {
        "running" | "runnable" => 'R',
        "sleeping" => 'S',
        "uninterruptible" => 'D',
        "idle" => 'I',
        "stopped" => 'T',
        "traced" => 't',
        "dead" => 'Z',
        _ => return None,
    })
}

/// One list.
struct List<'l> {
    args: &'l TopArgs,
    end: Ns,
    seconds: f64,
    activity: &'l Activity,
    lives: &'l BTreeMap<Task, Life>,
    moments: &'l Moments,
    host: &'l Host,
}

impl List<'_> {
    fn is_alive(&self, task: &Task) -> bool {
        let life = self.lives.get(task);
        life.is_some_and(|life| {
            life.start.is_none_or(|start| start <= self.end)
                && life.exit.is_none_or(|exit| exit > self.end)
        })
    }

    fn state(&self, task: &Task) -> Option<char> {
        self.moments.get(task).and_then(|moment| moment.state)
    }

    fn head(&self, time: &str, cpu: &CpuShares) -> String {
        let alive: Vec<&Task> = self
            .lives
            .keys()
            .filter(|task| self.is_alive(task))
            .collect();
        let count = |letters: &[char]| {
            let states = alive.iter().filter_map(|task| self.state(task));
            states.filter(|state| letters.contains(state)).count()
        };
        let share = |share: Option<f64>| match share {
            Some(share) => format!("{share:5.1}"),
            None => format!("{:>5}", "-"),
        };
        let shares = [
            (cpu.user, "us"),
            (cpu.system, "sy"),
            (cpu.nice, "ni"),
            (cpu.idle, "id"),
            (cpu.iowait, "wa"),
            (cpu.hardirq, "hi"),
            (cpu.softirq, "si"),
            (cpu.steal, "st"),
        ];
        let shares = shares.map(|(value, name)| format!("{} {name}", share(value)));
        let title = if self.args.threads {
            "Threads"
        } else {
            "Tasks"
        };
        format!(
            "{}{title}: {:3} total, {:3} running, {:3} sleeping, {:3} stopped, {:3} zombie\n\
             %Cpu(s):{}\n{}\n",
            self.host.first_line(time, self.end),
            alive.len(),
            count(&['R']),
            count(&['S', 'D', 'I']),
            count(&['T', 't']),
            count(&['Z']),
            shares.join(","),
            self.host.memory(self.end),
        )
    }

    fn rows(&self, sums: &BTreeMap<Task, Sums>, times: &BTreeMap<Task, Ns>) -> String {
        let mut tasks: Vec<Task> = sums.keys().copied().collect();
        if !self.args.idle_toggle {
            let others = self.lives.keys().filter(|task| !sums.contains_key(task));
            tasks.extend(others.filter(|task| self.is_alive(task)));
        }
        let running = |task: &Task| sums.get(task).map_or(0, |sums| sums.running);
        let time = |task: &Task| times.get(task).copied().unwrap_or(0);
        let name = |task: &Task| self.activity.name(*task).to_owned();
        tasks.sort();
        match self.args.sort_override {
            Sort::Cpu => tasks.sort_by_key(|task| Reverse(running(task))),
            Sort::Time => tasks.sort_by_key(|task| Reverse(time(task))),
            Sort::Pid => tasks.reverse(),
            Sort::Command => tasks.sort_by_key(|task| Reverse(name(task))),
        }
        let mut text = format!(
            "{:>7} {:<8} {:>3} {:>3} {:>7} {:>6} {:>6} S {:>5} {:>5} {:>9} COMMAND\n",
            "PID", "USER", "PR", "NI", "VIRT", "RES", "SHR", "%CPU", "%MEM", "TIME+"
        );
        for task in tasks {
            let id = if self.args.threads {
                task.tid
            } else {
                task.pid
            };
            let id = id.map_or_else(|| "?".into(), |id| id.to_string());
            let moment = self.moments.get(&task).copied().unwrap_or_default();
            let (priority, nice) = priorities(moment.prio);
            let _ = writeln!(
                text,
                "{id:>7} {0:<8} {priority:>3} {nice:>3}{5} {1} {2:>5.1} {6:>5} {3:>9} {4}",
                shown(&self.host.user(task.pid)),
                moment.state.unwrap_or('-'),
                running(&task) as f64 / 1e7 / self.seconds,
                hundredths(time(&task)),
                shown(self.activity.name(task)),
                self.host.sizes(task.pid, self.end),
                self.host.share(task.pid, self.end),
            );
        }
        text
    }
}

/// PR and NI of a kernel priority: normal threads have 100 to 139, real-time ones less.
fn priorities(prio: Option<i64>) -> (String, String) {
    match prio {
        None => ("-".into(), "-".into()),
        Some(0) => ("rt".into(), "0".into()),
        Some(prio) if prio < 100 => ((prio - 100).to_string(), "0".into()),
        Some(prio) => ((prio - 100).to_string(), (prio - 120).to_string()),
    }
}

/// Minutes, seconds and hundredths.
fn hundredths(time: Ns) -> String {
    let hundredths = time / 10_000_000;
    let (minutes, rest) = (hundredths / 6000, hundredths % 6000);
    format!("{minutes}:{:02}.{:02}", rest / 100, rest % 100)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn priorities_are_those_of_top() {
        let check = |prio, pr: &str, ni: &str| {
            assert_eq!(priorities(prio), (pr.to_owned(), ni.to_owned()));
        };
        check(Some(120), "20", "0");
        check(Some(100), "0", "-20");
        check(Some(139), "39", "19");
        check(Some(49), "-51", "0");
        check(Some(0), "rt", "0");
        check(None, "-", "-");
    }

    #[test]
    fn times_are_minutes_and_hundredths() {
        assert_eq!(hundredths(61_239_000_000), "1:01.23");
    }
}
