//! Activity of threads per interval: CPU, waits, switches, disk bytes.

use std::collections::{BTreeMap, HashMap, HashSet};

use whyslow_analysis::{Filter, Kind, Verb};
use whyslow_base::failure::Failure;
use whyslow_model::Ns;

use super::counters::{Counters, Owner};
use super::parts::Parts;
use super::session::Front;
use crate::cells::{Row, rows};

/// Kernel ids of a thread; those of a process have no thread id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Task {
    /// `None` if the recording does not contain the process.
    pub(crate) pid: Option<i64>,
    pub(crate) tid: Option<i64>,
}

#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Sums {
    /// Bytes of submitted block read requests.
    pub(crate) read: i64,
    /// Bytes of write calls on files.
    pub(crate) written: i64,
    /// Bytes dirtied and truncated before writeback; only for processes.
    pub(crate) cancelled: i64,
    /// Uninterruptible sleep.
    pub(crate) blocked: Ns,
    /// On-CPU time.
    pub(crate) running: Ns,
    /// The part of it outside of system calls and interrupts, if known.
    pub(crate) user: Option<Ns>,
    /// Run-queue latency.
    pub(crate) waiting: Ns,
    pub(crate) switches_voluntary: i64,
    pub(crate) switches_forced: i64,
    /// Last CPU, and when.
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

/// Sums per interval of the threads that did something.
pub(crate) struct Activity {
    parts: Parts,
    tasks: Vec<HashMap<Task, Sums>>,
    names: HashMap<Task, String>,
    users: HashMap<i64, i64>,
    /// Bytes that processes dirtied and truncated before writeback, per interval.
    cancelled: Vec<HashMap<i64, i64>>,
    /// Processes that started during the recording.
    new: HashSet<i64>,
    /// Process of a thread, if only one process has had a thread with this id.
    processes: HashMap<i64, Option<i64>>,
    /// Only these processes; all if empty.
    pids: Vec<i64>,
    /// Notes about byte counts of threads.
    about_bytes: Vec<String>,
}

/// Threads, or processes as sums of their threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Level {
    Thread,
    Process,
}

impl Activity {
    /// Without any activity yet; for these processes only, or for all.
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
            // A process is named after its first thread.
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
            about_bytes: answer.limitations().cloned().collect(),
        })
    }

    /// The task of a row, unless it is filtered out. Rows from before the process was known contain
    /// only the thread id, which identifies the process as well.
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

    /// Bytes as in the kernel's task I/O accounting: reads count where they are submitted to a
    /// disk, for the submitting thread; writes where they enter the page cache, for the calling
    /// thread.
    pub(crate) fn count_bytes(&mut self, front: &Front<'_>) -> Result<(), Failure> {
        let parts = self.parts;
        for note in self.about_bytes.drain(..) {
            front.note(note);
        }
        let columns = ["ts_ns", "layer", "bytes", "pid", "tid"];
        front.each_of(Kind::Block, only(&["read"]), &columns, |row| {
            // Requests of a bio-based device appear again as requests of the disk below.
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

    /// Cancelled write bytes as the kernel counts them per process.
    pub(crate) fn count_cancelled(&mut self, front: &Front<'_>) -> Result<(), Failure> {
        let counters = Counters::read(front, &["io_cancelled"])?;
        for owner in counters.all("io_cancelled") {
            let Owner::Process(pid) = *owner else {
                continue;
            };
            if !self.pids.is_empty() && !self.pids.contains(&pid) {
                continue;
            }
            let is_new = self.new.contains(&pid);
            for part in 0..self.parts.count() {
                let span = (self.parts.begin(part), self.parts.end(part));
                let bytes = counters.growth("io_cancelled", owner, span, is_new);
                if let Some(bytes) = bytes.filter(|bytes| *bytes > 0) {
                    self.cancelled[part].insert(pid, bytes);
                }
            }
        }
        Ok(())
    }

    /// The user id of a process.
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
        let answer = front.query((Kind::Cpu, Verb::Usage), |query| {
            query.by = vec!["pid".into(), "tid".into()];
            query.interval = parts.interval();
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

    /// Switches count for the thread that is switched out; if it was runnable, the switch was
    /// involuntary.
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

    /// Sums of an interval in order of ids; of all intervals if `part` is `None`.
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

    /// All tasks that lived during the window, in order of ids.
    pub(crate) fn all_tasks(&self, level: Level) -> Vec<Task> {
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

/// The overlap of a row with each interval; an unfinished row extends to the end of the recording.
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

/// Whether the target of a write is on a disk, judging by its path.
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
