//! What threads did in each part of time: CPU, waits, switches, bytes to and from disks.

use std::collections::{BTreeMap, HashMap, HashSet};

use whyslow_analysis::{Filter, Kind, Verb};
use whyslow_base::failure::Failure;
use whyslow_model::Ns;

use super::counters::{Counters, Whose};
use super::parts::Parts;
use super::session::Front;
use crate::cells::{Row, rows};

/// Kernel ids of a thread; those of a process name no thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Task {
    /// None where the recording does not tell the process.
    pub(crate) pid: Option<i64>,
    pub(crate) tid: Option<i64>,
}

#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Sums {
    /// Bytes of block requests it submitted to be read.
    pub(crate) read: i64,
    /// Bytes of its write calls on files.
    pub(crate) written: i64,
    /// Bytes it dirtied and took back before they were written; of processes only.
    pub(crate) cancelled: i64,
    /// Uninterruptible sleep.
    pub(crate) blocked: Ns,
    /// Time on a CPU.
    pub(crate) running: Ns,
    /// The part of it outside of system calls and interrupts, where known.
    pub(crate) user: Option<Ns>,
    /// Waits for a CPU.
    pub(crate) waiting: Ns,
    pub(crate) switches_voluntary: i64,
    pub(crate) switches_forced: i64,
    /// CPU it ran on last, and when.
    pub(crate) cpu: Option<(Ns, i64)>,
}

impl Sums {
    pub(crate) fn add(&mut self, other: &Self) {
        self.read += other.read;
        self.written += other.written;
        self.cancelled += other.cancelled;
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
pub(crate) struct Activity {
    parts: Parts,
    tasks: Vec<HashMap<Task, Sums>>,
    names: HashMap<Task, String>,
    users: HashMap<i64, i64>,
    /// What processes had dirtied and took back before it was written, per part of time.
    cancelled: Vec<HashMap<i64, i64>>,
    /// Processes that began in the recording.
    new: HashSet<i64>,
    /// Process of a thread, where only one has had a thread of this id.
    processes: HashMap<i64, Option<i64>>,
    /// Only these; all if there are none.
    pids: Vec<i64>,
    /// What is said about the bytes of threads.
    about_bytes: Vec<String>,
}

/// Threads, or processes as sums of theirs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Level {
    Thread,
    Process,
}

impl Activity {
    /// Nothing known yet; only these processes, or all.
    pub(crate) fn new(front: &Front<'_>, parts: Parts, pids: &[i32]) -> Result<Self, Failure> {
        let pids: Vec<i64> = pids.iter().map(|pid| i64::from(*pid)).collect();
        let answer = front.threads()?;
        let (mut names, mut users, mut new) = (HashMap::new(), HashMap::new(), HashSet::new());
        let mut processes: HashMap<i64, Option<i64>> = HashMap::new();
        for row in rows(&answer, "threads") {
            let name = row.text("comm").unwrap_or("?");
            if let (Some(pid), Some(uid)) = (row.int("pid"), row.int("uid")) {
                users.insert(pid, uid);
            }
            if let (Some(pid), Some(_)) = (row.int("pid"), row.int("start_ns"))
                && row.int("tid") == Some(pid)
            {
                new.insert(pid);
            }
            let task = Task {
                pid: row.int("pid"),
                tid: row.int("tid"),
            };
            if let Some(tid) = task.tid {
                let process = processes.entry(tid).or_insert(task.pid);
                *process = process.filter(|pid| Some(*pid) == task.pid);
            }
            if !pids.is_empty() && !task.pid.is_some_and(|pid| pids.contains(&pid)) {
                continue;
            }
            names.insert(task, name.to_owned());
            // A process is called as its first thread.
            let process = Task { tid: None, ..task };
            if task.pid == task.tid || !names.contains_key(&process) {
                names.insert(process, name.to_owned());
            }
        }
        Ok(Self {
            parts,
            tasks: vec![HashMap::new(); parts.count()],
            names,
            users,
            cancelled: vec![HashMap::new(); parts.count()],
            new,
            processes,
            pids,
            about_bytes: answer.caveats,
        })
    }

    /// Whose row it is, if it is wanted. A row from before the process was known says only the
    /// thread, which tells it as well.
    pub(crate) fn task(&self, row: &Row<'_>) -> Option<Task> {
        let tid = row.int("tid");
        let of_thread = || tid.and_then(|tid| self.processes.get(&tid).copied().flatten());
        let pid = row.int("pid").or_else(of_thread);
        let is_wanted = self.pids.is_empty() || pid.is_some_and(|pid| self.pids.contains(&pid));
        is_wanted.then_some(Task { pid, tid })
    }

    fn add(&mut self, part: usize, row: &Row<'_>, change: impl FnOnce(&mut Sums)) {
        if let Some(task) = self.task(row) {
            change(self.tasks[part].entry(task).or_default());
        }
    }

    /// Bytes as the kernel's accounting of tasks has them: reads where they reach a disk, by who
    /// submits them; writes where they enter the page cache, by who calls.
    pub(crate) fn count_bytes(&mut self, front: &Front<'_>) -> Result<(), Failure> {
        let parts = self.parts;
        for note in self.about_bytes.drain(..) {
            front.note(note);
        }
        let columns = ["ts_ns", "layer", "bytes", "pid", "tid"];
        front.each_of(Kind::Block, only(&["read"]), &columns, |row| {
            // What a bio-based device gets comes again as requests of the disk below.
            let is_request = row.text("layer") != Some("bio");
            if let Some(part) = row.int("ts_ns").and_then(|ts| parts.of(ts))
                && is_request
            {
                let bytes = row.int("bytes").unwrap_or(0);
                self.add(part, row, |sums| sums.read += bytes);
            }
            Ok(())
        })?;
        let columns = [
            "ts_end_ns",
            "op",
            "bytes",
            "fd_class",
            "path",
            "path2",
            "pid",
            "tid",
        ];
        let writes = only(&["write", "read_write"]);
        front.each_of(Kind::Io, writes, &columns, |row| {
            if let Some(part) = row.int("ts_end_ns").and_then(|ts| parts.of(ts))
                && writes_to_disk(row)
            {
                let bytes = row.int("bytes").unwrap_or(0);
                self.add(part, row, |sums| sums.written += bytes);
            }
            Ok(())
        })
    }

    /// What processes took back before it was written, as the kernel counts it for each.
    pub(crate) fn count_cancelled(&mut self, front: &Front<'_>) -> Result<(), Failure> {
        let counters = Counters::read(front, &["io_cancelled"])?;
        for whose in counters.all("io_cancelled") {
            let Whose::Process(pid) = *whose else {
                continue;
            };
            if !self.pids.is_empty() && !self.pids.contains(&pid) {
                continue;
            }
            let is_new = self.new.contains(&pid);
            for part in 0..self.parts.count() {
                let span = (self.parts.begin(part), self.parts.end(part));
                let bytes = counters.growth("io_cancelled", whose, span, is_new);
                if let Some(bytes) = bytes.filter(|bytes| *bytes > 0) {
                    self.cancelled[part].insert(pid, bytes);
                }
            }
        }
        Ok(())
    }

    /// The user of a process, by number.
    pub(crate) fn user(&self, pid: Option<i64>) -> Option<i64> {
        self.users.get(&pid?).copied()
    }

    pub(crate) fn count_blocked(&mut self, front: &Front<'_>) -> Result<(), Failure> {
        let parts = self.parts;
        let columns = ["ts_ns", "ts_end_ns", "pid", "tid"];
        front.each_of(Kind::States, only(&["uninterruptible"]), &columns, |row| {
            each_part(row, front, parts, |part, time| {
                self.add(part, row, |sums| sums.blocked += time);
            });
            Ok(())
        })
    }

    pub(crate) fn count_waiting(&mut self, front: &Front<'_>) -> Result<(), Failure> {
        let parts = self.parts;
        let columns = ["ts_ns", "ts_end_ns", "pid", "tid"];
        front.each_of(Kind::Sched, only(&[]), &columns, |row| {
            each_part(row, front, parts, |part, time| {
                self.add(part, row, |sums| sums.waiting += time);
            });
            Ok(())
        })
    }

    pub(crate) fn count_cpu(&mut self, front: &Front<'_>) -> Result<(), Failure> {
        let parts = self.parts;
        let answer = front.ask((Kind::Cpu, Verb::Usage), |question| {
            question.by = vec!["pid".into(), "tid".into()];
            question.interval = parts.interval();
        })?;
        for row in rows(&answer, "usage") {
            let part = row.int("ts_ns").map_or(Some(0), |ts| parts.of(ts));
            if let Some(part) = part {
                self.add(part, &row, |sums| {
                    sums.running += row.int("cpu_ns").unwrap_or(0);
                    if let Some(user) = row.int("user_ns") {
                        sums.user = Some(sums.user.unwrap_or(0) + user);
                    }
                });
            }
        }
        Ok(())
    }

    /// Switches away from a thread count when they happen; one that could have run on was forced.
    pub(crate) fn count_slices(&mut self, front: &Front<'_>) -> Result<(), Failure> {
        let parts = self.parts;
        let columns = ["ts_ns", "ts_end_ns", "cpu", "end_state", "pid", "tid"];
        front.each_of(Kind::Cpu, only(&[]), &columns, |row| {
            let begin = row.int("ts_ns").unwrap_or(parts.begin(0));
            let cpu = row.int("cpu");
            each_part(row, front, parts, |part, _| {
                let ran = begin.max(parts.begin(part));
                self.add(part, row, |sums| {
                    sums.cpu = sums.cpu.max(cpu.map(|cpu| (ran, cpu)));
                });
            });
            let Some(part) = row.int("ts_end_ns").and_then(|ts| parts.of(ts)) else {
                return Ok(());
            };
            match row.text("end_state") {
                Some("R" | "R+") => self.add(part, row, |sums| sums.switches_forced += 1),
                Some(_) => self.add(part, row, |sums| sums.switches_voluntary += 1),
                None => {}
            }
            Ok(())
        })
    }

    /// Sums of a part in order of ids; of all parts together if none is named.
    pub(crate) fn of(&self, part: Option<usize>, level: Level) -> BTreeMap<Task, Sums> {
        let parts = part.map_or(self.tasks.as_slice(), |part| &self.tasks[part..=part]);
        let mut found: BTreeMap<Task, Sums> = BTreeMap::new();
        for (task, sums) in parts.iter().flatten() {
            let task = match level {
                Level::Thread => *task,
                Level::Process => Task { tid: None, ..*task },
            };
            found.entry(task).or_default().add(sums);
        }
        if level == Level::Process {
            let cancelled = part.map_or(self.cancelled.as_slice(), |part| {
                &self.cancelled[part..=part]
            });
            for (pid, bytes) in cancelled.iter().flatten() {
                let task = Task {
                    pid: Some(*pid),
                    tid: None,
                };
                found.entry(task).or_default().cancelled += bytes;
            }
        }
        found
    }

    /// Everybody who lived inside the window, in order of ids.
    pub(crate) fn everybody(&self, level: Level) -> Vec<Task> {
        let is_wanted = |task: &&Task| task.tid.is_none() == (level == Level::Process);
        let mut tasks: Vec<Task> = self.names.keys().filter(is_wanted).copied().collect();
        tasks.sort_unstable();
        tasks
    }

    pub(crate) fn name(&self, task: Task) -> &str {
        self.names.get(&task).map_or("?", String::as_str)
    }
}

/// Rows of these classes.
fn only(ops: &[&str]) -> Filter {
    Filter {
        ops: ops.iter().map(|op| (*op).to_owned()).collect(),
        ..Filter::default()
    }
}

/// The time of a row inside each part; what has not ended goes on to the end of the recording.
pub(crate) fn each_part(
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
