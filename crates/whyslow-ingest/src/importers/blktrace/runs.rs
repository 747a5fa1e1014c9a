//! Merges the records of many files by time.
//!
//! The file of one CPU is in order; a file written through a pipe or concatenated consists of
//! ordered runs. Each file is scanned once, which finds these runs, damaged parts, and the offset
//! of the clock. Then the runs are merged; each is opened when its first record is due.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashSet};
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use whyslow_model::sort::IndexSort;

use super::record::{RECORD_BYTES, Record, act, note, order_of};
use crate::importers::bytes::Bytes;

const SCAN_BYTES: usize = 1 << 18;
/// Maximum number of runs; everything after that belongs to the last one, in any order.
const RUNS_MAX: usize = 1 << 16;
/// Buffer space for all open runs, and for one of them.
const BUFFER_BYTES_MAX: usize = 256 << 20;
const BUFFER_BYTES_EACH: std::ops::RangeInclusive<usize> = 4 << 10..=64 << 10;

struct Input {
    file: File,
    is_big_endian: bool,
}

/// A part of a file in time order.
#[derive(Debug, Clone, Copy)]
struct Run {
    file: usize,
    begin: u64,
    end: u64,
    first: u64,
}

/// Result of scanning the files.
#[derive(Debug, Default)]
pub(super) struct Scanned {
    /// Offset from the clock of the records to wall-clock time.
    pub(super) offset: Option<i64>,
    pub(super) last: u64,
    /// Devices that requests were issued to.
    pub(super) issued: HashSet<u32>,
    pub(super) lost_bytes: u64,
    pub(super) lost_at: Option<u64>,
    pub(super) bytes: u64,
    offset_at: u64,
}

#[derive(Default)]
pub(super) struct Runs {
    inputs: Vec<Input>,
    /// Runs that are not open, the latest first.
    waiting: Vec<Run>,
    open: Vec<Cursor>,
    /// Indices of closed cursors.
    free: Vec<usize>,
    heap: BinaryHeap<Reverse<(u64, usize, u64, usize)>>,
    buffer_bytes: usize,
    pub(super) bytes_read: u64,
}

struct Cursor {
    run: Run,
    /// File offset of `buffer`, and position of the next record in it.
    at: u64,
    buffer: Vec<u8>,
    next: usize,
    record: Record,
}

impl Runs {
    /// Scans all files; an error comes with the path of its file.
    pub(super) fn open(paths: &[PathBuf]) -> Result<(Self, Scanned), (PathBuf, io::Error)> {
        let mut scanned = Scanned::default();
        let (mut inputs, mut runs) = (Vec::new(), Vec::new());
        for path in paths {
            let read = Self::scan(path, (inputs.len(), &mut runs), &mut scanned);
            inputs.push(read.map_err(|error| (path.clone(), error))?);
        }
        runs.index_sort_by_key(|run| Reverse((run.first, run.file, run.begin)));
        let buffer_bytes = (BUFFER_BYTES_MAX / runs.len().max(1))
            .clamp(*BUFFER_BYTES_EACH.start(), *BUFFER_BYTES_EACH.end());
        let runs = Self {
            inputs,
            waiting: runs,
            open: Vec::new(),
            free: Vec::new(),
            heap: BinaryHeap::new(),
            buffer_bytes,
            bytes_read: 0,
        };
        Ok((runs, scanned))
    }

    fn scan(
        path: &Path,
        (number, runs): (usize, &mut Vec<Run>),
        scanned: &mut Scanned,
    ) -> io::Result<Input> {
        let file = File::open(path)?;
        let mut scan = Scan {
            from: BufReader::with_capacity(SCAN_BYTES, file.try_clone()?),
            buffer: Vec::new(),
            next: 0,
            at: 0,
        };
        scan.fill(RECORD_BYTES)?;
        let is_big_endian = order_of(scan.rest()).unwrap_or(false);
        let mut run: Option<(Run, u64)> = None;
        loop {
            scan.fill(RECORD_BYTES)?;
            let record = Record::parse(scan.rest(), is_big_endian);
            let size = record.map_or(RECORD_BYTES, |record| record.size());
            scan.fill(size)?;
            let (begin, left) = (scan.place(), scan.rest().len());
            let Some(record) = record.filter(|_| left >= size) else {
                if left == 0 {
                    break;
                }
                if runs.len() < RUNS_MAX {
                    runs.extend(run.take().map(|(run, _)| run));
                }
                scanned.lost_bytes += 1;
                scanned.lost_at.get_or_insert(begin);
                scan.next += 1;
                continue;
            };
            scanned.add(&record, &scan.rest()[RECORD_BYTES..size], is_big_endian);
            let end = begin + size as u64;
            let is_last = runs.len() >= RUNS_MAX;
            match &mut run {
                Some((run, last)) if record.time >= *last || is_last => {
                    run.end = end;
                    *last = record.time;
                }
                _ => {
                    runs.extend(run.take().map(|(run, _)| run));
                    let first = record.time;
                    let file = number;
                    run = Some((
                        Run {
                            file,
                            begin,
                            end,
                            first,
                        },
                        first,
                    ));
                }
            }
            scan.next += size;
        }
        scanned.bytes += scan.place();
        runs.extend(run.map(|(run, _)| run));
        Ok(Input {
            file,
            is_big_endian,
        })
    }

    /// Timestamp of the next record.
    pub(super) fn next_time(&mut self) -> io::Result<Option<u64>> {
        self.open_due()?;
        Ok(self.heap.peek().map(|Reverse((time, ..))| *time))
    }

    /// Passes on the next record with the bytes after it and the byte order.
    pub(super) fn next(&mut self, take: &mut dyn FnMut(&Record, &[u8], bool)) -> io::Result<bool> {
        self.open_due()?;
        let Some(Reverse((_, _, _, place))) = self.heap.pop() else {
            return Ok(false);
        };
        let cursor = &mut self.open[place];
        let input = &self.inputs[cursor.run.file];
        let size = cursor.record.size();
        let behind = &cursor.buffer[cursor.next + RECORD_BYTES..cursor.next + size];
        take(&cursor.record, behind, input.is_big_endian);
        cursor.next += size;
        self.bytes_read += size as u64;
        if cursor.advance(input, self.buffer_bytes)? {
            self.heap.push(cursor.key(place));
        } else {
            cursor.buffer = Vec::new();
            self.free.push(place);
        }
        Ok(true)
    }

    /// Opens the runs that start before the next record of the open ones.
    fn open_due(&mut self) -> io::Result<()> {
        while let Some(run) = self.waiting.last() {
            if let Some(Reverse((time, ..))) = self.heap.peek()
                && *time < run.first
            {
                break;
            }
            let Some(run) = self.waiting.pop() else { break };
            let mut cursor = Cursor {
                run,
                at: run.begin,
                buffer: Vec::new(),
                next: 0,
                record: Record::default(),
            };
            if !cursor.advance(&self.inputs[run.file], self.buffer_bytes)? {
                continue;
            }
            let place = if let Some(place) = self.free.pop() {
                self.open[place] = cursor;
                place
            } else {
                self.open.push(cursor);
                self.open.len() - 1
            };
            self.heap.push(self.open[place].key(place));
        }
        Ok(())
    }
}

impl Cursor {
    /// By time, then by position in the files.
    fn key(&self, place: usize) -> Reverse<(u64, usize, u64, usize)> {
        let at = self.at + self.next as u64;
        Reverse((self.record.time, self.run.file, at, place))
    }

    /// Reads the record at `next`, or the first valid one after it; false at the end.
    fn advance(&mut self, input: &Input, buffer_bytes: usize) -> io::Result<bool> {
        while self.fill(&input.file, RECORD_BYTES, buffer_bytes)? {
            if let Some(record) = Record::parse(&self.buffer[self.next..], input.is_big_endian)
                && self.fill(&input.file, record.size(), buffer_bytes)?
            {
                self.record = record;
                return Ok(true);
            }
            self.next += 1;
        }
        Ok(false)
    }

    /// Fills the buffer with at least `wanted` bytes; false if fewer are left.
    fn fill(&mut self, file: &File, wanted: usize, buffer_bytes: usize) -> io::Result<bool> {
        if self.buffer.len() - self.next >= wanted {
            return Ok(true);
        }
        self.at += self.next as u64;
        self.buffer.drain(..self.next);
        self.next = 0;
        let left = self.run.end - self.at;
        let size = usize::try_from(left)
            .unwrap_or(usize::MAX)
            .min(wanted.max(buffer_bytes));
        let had = self.buffer.len();
        if size <= had {
            return Ok(had >= wanted);
        }
        self.buffer.resize(size, 0);
        // The file may have been truncated since the scan.
        let mut filled = had;
        while filled < size {
            match file.read_at(&mut self.buffer[filled..], self.at + filled as u64) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.buffer.truncate(filled);
        Ok(filled >= wanted)
    }
}

/// Sequential scan of one file.
struct Scan {
    from: BufReader<File>,
    buffer: Vec<u8>,
    next: usize,
    /// File offset of the buffer.
    at: u64,
}

impl Scan {
    fn rest(&self) -> &[u8] {
        &self.buffer[self.next..]
    }

    fn place(&self) -> u64 {
        self.at + self.next as u64
    }

    /// Fills the buffer with at least `wanted` bytes, or all that are left.
    fn fill(&mut self, wanted: usize) -> io::Result<()> {
        if self.buffer.len() - self.next >= wanted {
            return Ok(());
        }
        self.at += self.next as u64;
        self.buffer.drain(..self.next);
        self.next = 0;
        let count = (SCAN_BYTES.max(wanted) - self.buffer.len()) as u64;
        self.from
            .by_ref()
            .take(count)
            .read_to_end(&mut self.buffer)?;
        Ok(())
    }
}

impl Scanned {
    fn add(&mut self, record: &Record, behind: &[u8], is_big_endian: bool) {
        self.last = self.last.max(record.time);
        if !record.is_note() {
            if record.act() == act::ISSUE {
                self.issued.insert(record.device);
            }
            return;
        }
        let is_first = self.offset.is_none() || record.time < self.offset_at;
        if record.act() == note::TIMESTAMP && is_first {
            let mut bytes = Bytes::new(record.payload(behind), is_big_endian);
            if let (Some(seconds), Some(ns)) = (bytes.u32(), bytes.u32()) {
                let wall = i64::from(seconds) * 1_000_000_000 + i64::from(ns);
                let time = i64::try_from(record.time).unwrap_or(i64::MAX);
                self.offset = Some(wall.saturating_sub(time));
                self.offset_at = record.time;
            }
        }
    }
}
