//! `top` in batch mode.

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
use crate::front::positionals::seconds;
use crate::front::{CpuShares, Front, FrontArgs, Parts, Positionals, shown, with_args};
use crate::tool::{Call, Tool};

pub(crate) static TOOL: Tool = Tool {
    name: "top",
    machine_name: None,
    about: "Show processes by CPU time, like top -b",
    args: |command| with_args::<TopArgs>(command, "RECORDING", NOTES),
    run,
};

const NOTES: &str = "\
Always in batch mode. Without -d and -n there is one list for the whole window. Times and states are
those at the end of the interval, %CPU covers the interval; TIME+ is the CPU time since the start of
the window, as earlier time is not recorded. A process has the state and priority of its first
thread. Load, memory and sizes are from the last sample, taken once a second (round-robin above 300
processes); unrecorded values, including st of %Cpu(s), are shown as -. wa is idle time
while a thread was in uninterruptible sleep. Processes that ended in the interval are listed with
state -. With -H each line is a thread.";

#[derive(Debug, Clone, Args)]
struct TopArgs {
    #[command(flatten)]
    front: FrontArgs,
    /// Use batch mode (always in effect)
    #[arg(short, long)]
    batch: bool,
    /// Show threads instead of processes
    #[arg(short = 'H', long)]
    threads: bool,
    /// Omit processes or threads that used no CPU
    #[arg(short, long)]
    idle_toggle: bool,
    /// Print at most N lists
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(i64).range(1..))]
    iterations: Option<i64>,
    /// Print a list every SEC seconds [default with -n: 3]
    #[arg(short, long, value_name = "SEC")]
    delay: Option<String>,
    /// Sort by COLUMN
    #[arg(short = 'o', long, value_name = "COLUMN", default_value = "%CPU")]
    sort_override: Sort,
    /// Show only process PID
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

/// Lifetime of a task; `None` is before or after the recording.
#[derive(Debug, Clone, Copy)]
struct Life {
    start: Option<Ns>,
    exit: Option<Ns>,
}

/// State of a task at the end of an interval.
#[derive(Debug, Clone, Copy, Default)]
struct TaskState {
    state: Option<char>,
    prio: Option<i64>,
}

fn run(call: &Call<'_>) -> Result<(), Failure> {
    let args = TopArgs::from_arg_matches(call.matches)
        .map_err(|error| Failure::usage(error.to_string()))?;
    let words = Positionals::without_names(&args.front.words)?;
    if let Some(number) = words.numbers.first() {
        return Err(Failure::usage(format!("unexpected argument `{number}`"))
            .hint("set the interval with -d SEC and the number of lists with -n N"));
    }
    let delay = args.delay.as_deref().map(seconds).transpose()?;
    let delay = delay.or(args.iterations.map(|_| 3_000_000_000));
    let mut front = Front::open(call, &args.front, words.recording.as_deref())?;
    let parts = front.parts(delay, args.iterations)?;
    let mut activity = Activity::new(&front, parts, &args.pid)?;
    activity.count_cpu(&front)?;
    let cpus = CpuShares::of(&front, parts)?;
    let lives = lives(&front, &args, &activity)?;
    let task_states = task_states(&front, parts, &args, &activity)?;
    let host = Host::read(&front)?;
    let mut times: BTreeMap<Task, Ns> = BTreeMap::new();
    for (part, (cpu, task_states)) in cpus.iter().zip(&task_states).enumerate() {
        let list = List {
            args: &args,
            end: parts.end(part),
            seconds: parts.seconds(part).max(1e-9),
            activity: &activity,
            lives: &lives,
            task_states,
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

type TaskStates = HashMap<Task, TaskState>;

/// States and priorities at the end of each interval.
fn task_states(
    front: &Front<'_>,
    parts: Parts,
    args: &TopArgs,
    activity: &Activity,
) -> Result<Vec<TaskStates>, Failure> {
    let mut found = vec![TaskStates::new(); parts.count()];
    let columns = ["ts_ns", "ts_end_ns", "state", "prio", "pid", "tid"];
    front.each_of(Kind::States, Filter::default(), &columns, |row| {
        let Some(mut task) = activity.task(row) else {
            return Ok(());
        };
        if !args.threads {
            if task.pid != task.tid {
                return Ok(());
            }
            task.tid = None;
        }
        let end = row.int("ts_end_ns").unwrap_or(Ns::MAX);
        each_part(row, front, parts, |part, _| {
            let task_state = found[part].entry(task).or_default();
            task_state.prio = row.int("prio").or(task_state.prio);
            if end >= parts.end(part) {
                task_state.state = row.text("state").and_then(letter);
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
    task_states: &'l TaskStates,
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
        self.task_states
            .get(task)
            .and_then(|task_state| task_state.state)
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
            let task_state = self.task_states.get(&task).copied().unwrap_or_default();
            let (priority, nice) = priorities(task_state.prio);
            let _ = writeln!(
                text,
                "{id:>7} {0:<8} {priority:>3} {nice:>3}{5} {1} {2:>5.1} {6:>5} {3:>9} {4}",
                shown(&self.host.user(task.pid)),
                task_state.state.unwrap_or('-'),
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

/// PR and NI of a kernel priority: normal threads have 100 to 139, real-time threads less.
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
