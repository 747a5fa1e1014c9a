//! What threads did in each part of time: CPU, waits, switches, bytes to and from disks.

use std::collections::{BTreeMap, HashMap};

use whyslow_analysis::{Filter, Kind, Verb};
use whyslow_model::Ns;

use super::{Front, Parts, of_processes};
use crate::failure::Failure;
use crate::tools::asked::{Row, rows};

/// Kernel ids of a thread; those of a process name no thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(in crate::tools) struct Task {
    /// None where the recording does not tell the process.
    pub(in crate::tools) pid: Option<i64>,
    pub(in crate::tools) tid: Option<i64>,
}

#[derive(Debug, Clone, Copy, Default)]
pub(in crate::tools) struct Sums {
    /// Bytes of block requests it submitted to be read.
    pub(in crate::tools) read: i64,
    /// Bytes of its write calls on files.
    pub(in crate::tools) written: i64,
    /// Uninterruptible sleep.
    pub(in crate::tools) blocked: Ns,
    /// Time on a CPU.
    pub(in crate::tools) running: Ns,
    /// The part of it outside of system calls and interrupts, where known.
    pub(in crate::tools) user: Option<Ns>,
    /// Waits for a CPU.
    pub(in crate::tools) waiting: Ns,
    pub(in crate::tools) switches_voluntary: i64,
    pub(in crate::tools) switches_forced: i64,
    /// CPU it ran on last, and when.
    pub(in crate::tools) cpu: Option<(Ns, i64)>,
}

impl Sums {
    pub(in crate::tools) fn add(&mut self, other: &Self) {
        self.read += other.read;
        self.written += other.written;
        self.blocked += other.blocked;
        self.running += other.running;
        self.user = match (self.user, other.user) {
            (Some(a), Some(b)) => Some(a + b),
            (a, b) => a.or(b),
        };
        self.waiting += other.waiting;
        self.switches_voluntary += other.switches_voluntary;
        self.switches_forced += other.switches_forced;
        self.cpu = self.cpu.max(other.cpu);
    }
}

/// Sums of the threads that did something, per part of time.
pub(in crate::tools) struct Activity {
    parts: Parts,
    tasks: Vec<BTreeMap<Task, Sums>>,
    names: HashMap<Task, String>,
    pids: Vec<i32>,
}

/// Threads, or processes as sums of theirs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::tools) enum Level {
    Thread,
    Process,
}

impl Activity {
    /// Nothing known yet; only these processes, or all.
    pub(in crate::tools) fn new(
        front: &Front<'_>,
        parts: Parts,
        pids: &[i32],
    ) -> Result<Self, Failure> {
        let answer = front.ask((Kind::Threads, Verb::List), |question| {
            question.filter = of_processes(pids);
        })?;
        let mut names = HashMap::new();
        for row in rows(&answer, "threads") {
            let name = row.text("comm").unwrap_or("?");
            let task = task(&row);
            names.insert(task, name.to_owned());
            // A process is called as its first thread.
            let process = Task { tid: None, ..task };
            if task.pid == task.tid || !names.contains_key(&process) {
                names.insert(process, name.to_owned());
            }
        }
        Ok(Self {
            parts,
            tasks: vec![BTreeMap::new(); parts.count()],
            names,
            pids: pids.to_vec(),
        })
    }

    fn filter(&self, ops: &[&str]) -> Filter {
        Filter {
            ops: ops.iter().map(|op| (*op).to_owned()).collect(),
            ..of_processes(&self.pids)
        }
    }

    fn at(&mut self, part: usize, row: &Row<'_>) -> &mut Sums {
        self.tasks[part].entry(task(row)).or_default()
    }

    /// Bytes as the kernel's accounting of tasks has them: reads where they reach a disk, by who
    /// submits them; writes where they enter the page cache, by who calls.
    pub(in crate::tools) fn count_bytes(&mut self, front: &Front<'_>) -> Result<(), Failure> {
        let parts = self.parts;
        front.each(Kind::Block, self.filter(&["read"]), |row| {
            // What a bio-based device gets comes again as requests of the disk below.
            let is_request = row.text("layer") != Some("bio");
            if let Some(part) = row.int("ts_ns").and_then(|ts| parts.of(ts))
                && is_request
            {
                self.at(part, row).read += row.int("bytes").unwrap_or(0);
            }
            Ok(())
        })?;
        front.each(Kind::Io, self.filter(&["write", "read_write"]), |row| {
            if let Some(part) = row.int("ts_end_ns").and_then(|ts| parts.of(ts))
                && writes_to_disk(row)
            {
                self.at(part, row).written += row.int("bytes").unwrap_or(0);
            }
            Ok(())
        })
    }

    pub(in crate::tools) fn count_blocked(&mut self, front: &Front<'_>) -> Result<(), Failure> {
        let parts = self.parts;
        let filter = self.filter(&["uninterruptible"]);
        front.each(Kind::States, filter, |row| {
            each_part(row, front, parts, |part, time| {
                self.at(part, row).blocked += time;
            });
            Ok(())
        })
    }

    pub(in crate::tools) fn count_waiting(&mut self, front: &Front<'_>) -> Result<(), Failure> {
        let parts = self.parts;
        front.each(Kind::Sched, self.filter(&[]), |row| {
            each_part(row, front, parts, |part, time| {
                self.at(part, row).waiting += time;
            });
            Ok(())
        })
    }

    pub(in crate::tools) fn count_cpu(&mut self, front: &Front<'_>) -> Result<(), Failure> {
        let parts = self.parts;
        let answer = front.ask((Kind::Cpu, Verb::Usage), |question| {
            question.by = vec!["pid".into(), "tid".into()];
            question.filter = of_processes(&self.pids);
            question.interval = parts.interval();
        })?;
        for row in rows(&answer, "usage") {
            let part = row.int("ts_ns").map_or(Some(0), |ts| parts.of(ts));
            if let Some(part) = part {
                let sums = self.at(part, &row);
                sums.running += row.int("cpu_ns").unwrap_or(0);
                if let Some(user) = row.int("user_ns") {
                    sums.user = Some(sums.user.unwrap_or(0) + user);
                }
            }
        }
        Ok(())
    }

    /// Switches away from a thread count when they happen; one that could have run on was forced.
    pub(in crate::tools) fn count_slices(&mut self, front: &Front<'_>) -> Result<(), Failure> {
        let parts = self.parts;
        front.each(Kind::Cpu, self.filter(&[]), |row| {
            let begin = row.int("ts_ns").unwrap_or(parts.begin(0));
            let cpu = row.int("cpu");
            each_part(row, front, parts, |part, _| {
                let ran = begin.max(parts.begin(part));
                let sums = self.at(part, row);
                sums.cpu = sums.cpu.max(cpu.map(|cpu| (ran, cpu)));
            });
            let Some(part) = row.int("ts_end_ns").and_then(|ts| parts.of(ts)) else {
                return Ok(());
            };
            match row.text("end_state") {
                Some("R" | "R+") => self.at(part, row).switches_forced += 1,
                Some(_) => self.at(part, row).switches_voluntary += 1,
                None => {}
            }
            Ok(())
        })
    }

    /// Sums of a part in order of ids; of all parts together if none is named.
    pub(in crate::tools) fn of(&self, part: Option<usize>, level: Level) -> BTreeMap<Task, Sums> {
        let parts = part.map_or(self.tasks.as_slice(), |part| &self.tasks[part..=part]);
        let mut found: BTreeMap<Task, Sums> = BTreeMap::new();
        for (task, sums) in parts.iter().flatten() {
            let task = match level {
                Level::Thread => *task,
                Level::Process => Task { tid: None, ..*task },
            };
            found.entry(task).or_default().add(sums);
        }
        found
    }

    /// Everybody who lived inside the window, in order of ids.
    pub(in crate::tools) fn everybody(&self, level: Level) -> Vec<Task> {
        let is_wanted = |task: &&Task| task.tid.is_none() == (level == Level::Process);
        let mut tasks: Vec<Task> = self.names.keys().filter(is_wanted).copied().collect();
        tasks.sort_unstable();
        tasks
    }

    pub(in crate::tools) fn name(&self, task: Task) -> &str {
        self.names.get(&task).map_or("?", String::as_str)
    }
}

pub(in crate::tools) fn task(row: &Row<'_>) -> Task {
    Task {
        pid: row.int("pid"),
        tid: row.int("tid"),
    }
}

/// The time of a row inside each part; what has not ended goes on to the end of the recording.
pub(in crate::tools) fn each_part(
    row: &Row<'_>,
    front: &Front<'_>,
    parts: Parts,
    each: impl FnMut(usize, Ns),
) {
    if let Some(begin) = row.int("ts_ns") {
        let end = row.int("ts_end_ns").unwrap_or(front.calendar.end);
        parts.spread(begin, end, each);
    }
}

/// Whether what a call writes lies on a disk, as far as its path tells.
fn writes_to_disk(row: &Row<'_>) -> bool {
    let (is_file, path) = match row.text("op") {
        Some("read_write") => (
            row.text("path2").is_some_and(|path| path.starts_with('/')),
            row.text("path2"),
        ),
        _ => (row.text("fd_class") == Some("file"), row.text("path")),
    };
    let in_memory = |path: &str| {
        ["/proc/", "/sys/", "/dev/"]
            .iter()
            .any(|folder| path.starts_with(folder))
    };
    is_file && !path.is_some_and(in_memory)
}
