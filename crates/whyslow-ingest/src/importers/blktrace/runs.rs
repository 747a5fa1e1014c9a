//! Records of many files in order of time.
//!
//! A file of one CPU is in order; one that was written to a pipe or put together has stretches that are. Each
//! file is read through once, which finds these stretches, what is damaged, and the relation of the clocks; then
//! the stretches are merged, each opened when its time has come.

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
/// Stretches that are told apart; what comes behind belongs to the last one, in whatever order.
const RUNS_MAX: usize = 1 << 16;
/// Room for stretches that are open at a time, and for one of them.
const ROOM_BYTES: usize = 256 << 20;
const ROOM_EACH: std::ops::RangeInclusive<usize> = 4 << 10..=64 << 10;

struct Input {
    file: File,
    is_big_endian: bool,
}

/// A stretch of a file in order of time.
#[derive(Debug, Clone, Copy)]
struct Run {
    file: usize,
    begin: u64,
    end: u64,
    first: u64,
}

/// What a look through the files found.
#[derive(Debug, Default)]
pub(super) struct Scanned {
    /// From the clock of the records to that of the calendar.
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
    /// Those that are not open, the latest first.
    waiting: Vec<Run>,
    open: Vec<Cursor>,
    /// Places of closed ones.
    free: Vec<usize>,
    heap: BinaryHeap<Reverse<(u64, usize, u64, usize)>>,
    room: usize,
    pub(super) bytes_read: u64,
}

struct Cursor {
    run: Run,
    /// What of the file lies in `held`, and where the next record begins in it.
    at: u64,
    held: Vec<u8>,
    next: usize,
    record: Record,
}

impl Runs {
    /// Reads all files through; an error comes with the file it is about.
    pub(super) fn open(paths: &[PathBuf]) -> Result<(Self, Scanned), (PathBuf, io::Error)> {
        let mut scanned = Scanned::default();
        let (mut inputs, mut runs) = (Vec::new(), Vec::new());
        for path in paths {
            let read = Self::scan(path, (inputs.len(), &mut runs), &mut scanned);
            inputs.push(read.map_err(|error| (path.clone(), error))?);
        }
        runs.index_sort_by_key(|run| Reverse((run.first, run.file, run.begin)));
        let room = (ROOM_BYTES / runs.len().max(1)).clamp(*ROOM_EACH.start(), *ROOM_EACH.end());
        let runs = Self {
            inputs,
            waiting: runs,
            open: Vec::new(),
            free: Vec::new(),
            heap: BinaryHeap::new(),
            room,
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
            held: Vec::new(),
            next: 0,
            at: 0,
        };
        scan.hold(RECORD_BYTES)?;
        let is_big_endian = order_of(scan.rest()).unwrap_or(false);
        let mut run: Option<(Run, u64)> = None;
        loop {
            scan.hold(RECORD_BYTES)?;
            let record = Record::parse(scan.rest(), is_big_endian);
            let size = record.map_or(RECORD_BYTES, |record| record.size());
            scan.hold(size)?;
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
            scanned.look(&record, &scan.rest()[RECORD_BYTES..size], is_big_endian);
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

    /// When the next record was written.
    pub(super) fn next_time(&mut self) -> io::Result<Option<u64>> {
        self.open_due()?;
        Ok(self.heap.peek().map(|Reverse((time, ..))| *time))
    }

    /// Hands on the next record with what stands behind it, and the order of its bytes.
    pub(super) fn next(&mut self, take: &mut dyn FnMut(&Record, &[u8], bool)) -> io::Result<bool> {
        self.open_due()?;
        let Some(Reverse((_, _, _, place))) = self.heap.pop() else {
            return Ok(false);
        };
        let cursor = &mut self.open[place];
        let input = &self.inputs[cursor.run.file];
        let size = cursor.record.size();
        let behind = &cursor.held[cursor.next + RECORD_BYTES..cursor.next + size];
        take(&cursor.record, behind, input.is_big_endian);
        cursor.next += size;
        self.bytes_read += size as u64;
        if cursor.look(input, self.room)? {
            self.heap.push(cursor.key(place));
        } else {
            cursor.held = Vec::new();
            self.free.push(place);
        }
        Ok(true)
    }

    /// Opens those that begin before the next record of the others.
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
                held: Vec::new(),
                next: 0,
                record: Record::default(),
            };
            if !cursor.look(&self.inputs[run.file], self.room)? {
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
    /// By time, then as they lie in the files.
    fn key(&self, place: usize) -> Reverse<(u64, usize, u64, usize)> {
        let at = self.at + self.next as u64;
        Reverse((self.record.time, self.run.file, at, place))
    }

    /// Reads the record at `next`, or the first that is one behind it; false at the end.
    fn look(&mut self, input: &Input, room: usize) -> io::Result<bool> {
        while self.hold(&input.file, RECORD_BYTES, room)? {
            if let Some(record) = Record::parse(&self.held[self.next..], input.is_big_endian)
                && self.hold(&input.file, record.size(), room)?
            {
                self.record = record;
                return Ok(true);
            }
            self.next += 1;
        }
        Ok(false)
    }

    /// Makes so many bytes be there; false if there are not so many.
    fn hold(&mut self, file: &File, wanted: usize, room: usize) -> io::Result<bool> {
        if self.held.len() - self.next >= wanted {
            return Ok(true);
        }
        self.at += self.next as u64;
        self.held.drain(..self.next);
        self.next = 0;
        let left = self.run.end - self.at;
        let size = usize::try_from(left)
            .unwrap_or(usize::MAX)
            .min(wanted.max(room));
        let had = self.held.len();
        if size <= had {
            return Ok(had >= wanted);
        }
        self.held.resize(size, 0);
        // The file may have become shorter since it was looked through.
        let mut filled = had;
        while filled < size {
            match file.read_at(&mut self.held[filled..], self.at + filled as u64) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.held.truncate(filled);
        Ok(filled >= wanted)
    }
}

/// A file from begin to end.
struct Scan {
    from: BufReader<File>,
    held: Vec<u8>,
    next: usize,
    /// Place in the file of what is held.
    at: u64,
}

impl Scan {
    fn rest(&self) -> &[u8] {
        &self.held[self.next..]
    }

    fn place(&self) -> u64 {
        self.at + self.next as u64
    }

    /// Holds so many bytes, or all that are left.
    fn hold(&mut self, wanted: usize) -> io::Result<()> {
        if self.held.len() - self.next >= wanted {
            return Ok(());
        }
        self.at += self.next as u64;
        self.held.drain(..self.next);
        self.next = 0;
        let count = (SCAN_BYTES.max(wanted) - self.held.len()) as u64;
        self.from.by_ref().take(count).read_to_end(&mut self.held)?;
        Ok(())
    }
}

impl Scanned {
    fn look(&mut self, record: &Record, behind: &[u8], is_big_endian: bool) {
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
