//! Counts system calls by process, kind and path pattern.

use std::ops::ControlFlow;

use rustc_hash::FxHashMap;
use whyslow_analysis::read::{PerWord, Projection, Uncertain, in_order};
use whyslow_analysis::{AnalysisError, Recorder};
use whyslow_model::row::Row;
use whyslow_model::sort::IndexSort;
use whyslow_model::tables::{ProcessRow, SyscallRow};
use whyslow_model::{Ns, Window};
use whyslow_store::Tables;

use super::template;

/// Maximum number of patterns; further paths are counted without a pattern.
const PATTERNS_MAX: usize = 100_000;

/// Marks a path without a computed pattern.
const UNKNOWN: u32 = u32::MAX;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum What {
    Write,
    Sync,
    Metadata,
    Read,
}

/// Numbers for one kind of call by one process on paths of one pattern.
#[derive(Debug, Clone, Default)]
pub(crate) struct Sum {
    pub(crate) calls: u64,
    pub(crate) failed: u64,
    pub(crate) bytes: i64,
    pub(crate) time: Ns,
    pub(crate) first: Ns,
    pub(crate) last: Ns,
    /// Bytes by thread id; number of calls for kinds that transfer none.
    pub(crate) threads: FxHashMap<i32, i64>,
    pub(crate) longest: (Ns, i64),
}

impl Sum {
    /// The thread with the largest amount.
    pub(crate) fn thread(&self) -> Option<i32> {
        let most = self
            .threads
            .iter()
            .max_by_key(|(tid, amount)| (**amount, -**tid));
        most.map(|(tid, _)| *tid)
    }

    pub(crate) fn seconds(&self) -> f64 {
        super::seconds((self.last - self.first).max(1))
    }
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Process {
    pub(crate) pid: Option<i32>,
    pub(crate) comm: String,
    pub(crate) is_tracer: bool,
}

#[derive(Debug, Default)]
pub(crate) struct Counted {
    pub(crate) sums: FxHashMap<(i32, What, u32), Sum>,
    pub(crate) processes: FxHashMap<i32, Process>,
    patterns: Vec<String>,
    pattern_of: FxHashMap<String, u32>,
    numbers: FxHashMap<String, u32>,
}

impl Counted {
    pub(crate) fn pattern(&self, number: u32) -> &str {
        &self.patterns[number as usize]
    }

    pub(crate) fn process(&self, upid: i32) -> Process {
        self.processes.get(&upid).cloned().unwrap_or_default()
    }

    /// Sums by descending bytes, without those of the tracer.
    pub(crate) fn of(&self, what: What) -> Vec<(i32, u32, &Sum)> {
        let sums = self.sums.iter();
        let mut found: Vec<(i32, u32, &Sum)> = sums
            .filter(|((upid, kind, _), _)| *kind == what && !self.process(*upid).is_tracer)
            .map(|((upid, _, pattern), sum)| (*upid, *pattern, sum))
            .collect();
        found.index_sort_by_key(|(upid, pattern, sum)| {
            (std::cmp::Reverse(sum.bytes), *upid, *pattern)
        });
        found
    }

    fn number(&mut self, path: &str) -> u32 {
        if let Some(number) = self.pattern_of.get(path) {
            return *number;
        }
        let template = if self.patterns.len() < PATTERNS_MAX {
            template::of_path(path)
        } else {
            "…".to_owned()
        };
        let next = self.patterns.len() as u32;
        let number = *self.numbers.entry(template.clone()).or_insert(next);
        if number == next {
            self.patterns.push(template);
        }
        // Most paths recur, but millions may occur once.
        if self.pattern_of.len() < PATTERNS_MAX {
            self.pattern_of.insert(path.to_owned(), number);
        }
        number
    }

    pub(crate) fn read(tables: &dyn Tables, window: Option<Window>) -> Result<Self, AnalysisError> {
        let mut counted = Self {
            processes: processes(tables)?,
            ..Self::default()
        };
        let mut known = PerWord::new();
        let mut projection = Projection::new(SyscallRow::TABLE);
        let [ts, dur, id, upid, tid, bytes, errno] =
            ["ts", "dur", "id", "upid", "tid", "bytes", "errno"].map(|name| projection.need(name));
        let [name, op, path, class] =
            ["name", "op", "path", "fd_class"].map(|name| projection.need(name));
        let uncertain = Uncertain::new(tables, SyscallRow::TABLE, &mut projection)?;
        in_order(tables, &projection.scan(window), |batch| {
            let (ts, dur, id) = (ts.ints(batch)?, dur.ints(batch)?, id.ints(batch)?);
            let (upid, tid) = (upid.ints(batch)?, tid.ints(batch)?);
            let (bytes, errno) = (bytes.ints(batch)?, errno.ints(batch)?);
            let (name, op) = (name.texts(batch)?, op.texts(batch)?);
            let (path, class) = (path.texts(batch)?, class.texts(batch)?);
            let uncertain = uncertain.of(batch)?;
            let numbers = known.of(&path, UNKNOWN);
            for row in 0..batch.num_rows() as u32 {
                let begin = ts.at(row);
                if window.is_some_and(|window| !window.contains(begin)) {
                    continue;
                }
                let (Some(upid), Some(call)) = (upid.get(row), name.get(row)) else {
                    continue;
                };
                let Some(what) = what(call, op.get(row), class.get(row)) else {
                    continue;
                };
                let pattern = match path.key(row) {
                    None => counted.number(""),
                    Some(word) if numbers[word] != UNKNOWN => numbers[word],
                    Some(word) => {
                        numbers[word] = counted.number(path.get(row).unwrap_or(""));
                        numbers[word]
                    }
                };
                let sum = counted
                    .sums
                    .entry((upid as i32, what, pattern))
                    .or_default();
                if sum.calls == 0 {
                    sum.first = begin;
                }
                let moved = bytes.get(row).unwrap_or(0);
                let length = dur.get(row).filter(|_| !uncertain.has(row)).unwrap_or(0);
                sum.calls += 1;
                sum.failed += u64::from(errno.get(row).is_some());
                sum.bytes += moved;
                sum.time += length;
                sum.last = begin + length;
                sum.longest = sum.longest.max((length, id.at(row)));
                let thread = sum.threads.entry(tid.or_zero(row) as i32).or_default();
                *thread += if what == What::Write || what == What::Read {
                    moved
                } else {
                    1
                };
            }
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(counted)
    }
}

fn what(call: &str, op: Option<&str>, class: Option<&str>) -> Option<What> {
    match (call, op) {
        ("sync" | "syncfs" | "fsync" | "fdatasync" | "msync" | "sync_file_range", _) => {
            Some(What::Sync)
        }
        (_, Some("write")) if class == Some("file") => Some(What::Write),
        (_, Some("read" | "read_write")) if class == Some("file") => Some(What::Read),
        (
            "stat" | "lstat" | "newfstatat" | "statx" | "access" | "faccessat" | "faccessat2"
            | "readlink" | "readlinkat" | "open" | "openat" | "openat2" | "unlink" | "unlinkat"
            | "mkdir" | "mkdirat" | "rmdir" | "rename" | "renameat" | "renameat2" | "getdents"
            | "getdents64",
            _,
        ) => Some(What::Metadata),
        _ => None,
    }
}

fn processes(tables: &dyn Tables) -> Result<FxHashMap<i32, Process>, AnalysisError> {
    let recorder = Recorder::of(tables)?;
    let mut projection = Projection::new(ProcessRow::TABLE);
    let [upid, pid] = ["upid", "pid"].map(|name| projection.need(name));
    let (comm, tracer) = (projection.need("comm"), projection.need("is_tracer"));
    let mut found = FxHashMap::default();
    in_order(tables, &projection.scan(None), |batch| {
        let (upid, pid) = (upid.ints(batch)?, pid.ints(batch)?);
        let (comm, tracer) = (comm.texts(batch)?, tracer.bools(batch)?);
        for (row, is_tracer) in tracer.iter().enumerate() {
            let row = row as u32;
            let process = Process {
                pid: pid.get(row).map(|pid| pid as i32),
                comm: comm.get(row).unwrap_or("").to_owned(),
                is_tracer: is_tracer == Some(true)
                    || comm.get(row).is_some_and(|comm| recorder.is_by_name(comm)),
            };
            found.insert(upid.at(row) as i32, process);
        }
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(found)
}
