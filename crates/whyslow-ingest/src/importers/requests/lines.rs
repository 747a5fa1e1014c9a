//! Line-based files of any size.

use std::cell::Cell;
use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, BufRead, Read};
use std::path::Path;
use std::rc::Rc;

use whyslow_model::Ns;
use whyslow_model::stat::{self, Stat};

use super::{Request, RequestReader, input};
use crate::importers::stamp::{Clock, Shift};
use crate::importers::streamed::{Note, Summary};
use crate::limits;

/// Parser of a line-based format.
pub(super) trait Parse {
    /// Adds requests to `found`; true if the line is a record, not a header or other text.
    fn line(&mut self, line: &str, found: &mut VecDeque<Request>) -> Result<bool, String>;

    /// No more lines follow.
    fn end(&mut self, _found: &mut VecDeque<Request>) {}

    /// The clock of its timestamps, if they may lack a zone.
    fn clock(&self) -> Option<&Clock> {
        None
    }

    /// Anomalies of the whole file.
    fn remarks(&self) -> Vec<(&'static Stat, u64)>;

    fn facts(&self) -> Vec<(&'static str, String)> {
        Vec::new()
    }
}

/// Number of bytes read, independent of the reader.
pub(super) struct Counted {
    read: Rc<Cell<u64>>,
    all: u64,
}

pub(super) struct Counting {
    file: File,
    read: Rc<Cell<u64>>,
}

impl Counted {
    pub(super) fn of(file: File) -> io::Result<(Counted, Counting)> {
        let all = file.metadata()?.len();
        let read = Rc::<Cell<u64>>::default();
        let counting = Counting {
            file,
            read: Rc::clone(&read),
        };
        Ok((Counted { read, all }, counting))
    }
}

impl Read for Counting {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read(buffer)?;
        self.read.set(self.read.get() + count as u64);
        Ok(count)
    }
}

pub(super) struct Lines {
    input: Box<dyn BufRead>,
    counted: Option<Counted>,
    parse: Box<dyn Parse>,
    found: VecDeque<Request>,
    line: Vec<u8>,
    offset: u64,
    number: u64,
    is_done: bool,
    requests: u64,
    records: u64,
    bad: u64,
    examples: Vec<Note>,
    broken: Option<Note>,
}

impl Lines {
    pub(super) fn open(path: &Path, parse: Box<dyn Parse>) -> io::Result<Lines> {
        let (counted, input) = input(path)?;
        let mut lines = Lines::new(input, parse);
        lines.counted = Some(counted);
        Ok(lines)
    }

    pub(super) fn new(input: Box<dyn BufRead>, parse: Box<dyn Parse>) -> Lines {
        Lines {
            input,
            counted: None,
            parse,
            found: VecDeque::new(),
            line: Vec::new(),
            offset: 0,
            number: 0,
            is_done: false,
            requests: 0,
            records: 0,
            bad: 0,
            examples: Vec::new(),
            broken: None,
        }
    }

    /// Offset of the file's clock from UTC, derived from its last line.
    pub(super) fn shift(mut self, written: Option<Ns>) -> io::Result<Shift> {
        while self.next()?.is_some() {
            let is_whole = self.parse.clock().is_none_or(Clock::is_whole);
            if is_whole {
                return Ok(Shift::default());
            }
        }
        let clock = self.parse.clock();
        Ok(clock.map_or(Shift::default(), |clock| clock.shift(written)))
    }

    /// Reads and parses a line; false at the end.
    fn read(&mut self) -> io::Result<bool> {
        self.line.clear();
        let limit = limits::REQUEST_LINE_BYTES_MAX;
        let read = (&mut self.input)
            .take(limit)
            .read_until(b'\n', &mut self.line);
        let length = match read {
            Ok(length) => length as u64,
            // The part before the damage of a compressed file is used.
            Err(error) if is_damage(&error) => {
                self.broken = Some(Note::new(&stat::REQUESTS_CUT, 1).at(
                    Some(self.offset),
                    format!("the compressed file is truncated or damaged here: {error}"),
                ));
                return Ok(false);
            }
            Err(error) => return Err(error),
        };
        if length == 0 {
            return Ok(false);
        }
        self.number += 1;
        let offset = self.offset;
        self.offset += length;
        if length == limit && self.line.last() != Some(&b'\n') {
            self.skip_line()?;
            self.add_bad(offset, &format!("longer than {limit} bytes"));
            return Ok(true);
        }
        let text = String::from_utf8_lossy(&self.line);
        let text = text.trim_end_matches(['\n', '\r']);
        if text.trim().is_empty() {
            return Ok(true);
        }
        match self.parse.line(text, &mut self.found) {
            Ok(is_record) => self.records += u64::from(is_record),
            Err(what) => self.add_bad(offset, &what),
        }
        Ok(true)
    }

    /// Skips the rest of an overlong line.
    fn skip_line(&mut self) -> io::Result<()> {
        loop {
            let buffer = self.input.fill_buf()?;
            if buffer.is_empty() {
                return Ok(());
            }
            let end = memchr::memchr(b'\n', buffer);
            let count = end.map_or(buffer.len(), |end| end + 1);
            self.input.consume(count);
            self.offset += count as u64;
            if end.is_some() {
                return Ok(());
            }
        }
    }

    fn add_bad(&mut self, offset: u64, what: &str) {
        self.records += 1;
        self.bad += 1;
        if self.examples.len() < limits::LOG_EXAMPLES_MAX {
            let text = format!("line {}: {what}", self.number);
            let note = Note::new(&stat::REQUEST_LINE_BAD, 1);
            self.examples.push(note.at(Some(offset), text));
        }
    }
}

fn is_damage(error: &io::Error) -> bool {
    use io::ErrorKind::{InvalidData, InvalidInput, UnexpectedEof};
    matches!(error.kind(), InvalidData | InvalidInput | UnexpectedEof)
}

impl RequestReader for Lines {
    fn next(&mut self) -> io::Result<Option<Request>> {
        while self.found.is_empty() && !self.is_done {
            if !self.read()? {
                self.is_done = true;
                self.parse.end(&mut self.found);
            }
        }
        let next = self.found.pop_front();
        self.requests += u64::from(next.is_some());
        Ok(next)
    }

    fn progress(&self) -> (u64, u64) {
        let counted = self.counted.as_ref();
        counted.map_or((self.offset, self.offset), |counted| {
            (counted.read.get(), counted.all)
        })
    }

    fn summary(&self) -> Summary {
        let remarks = self.parse.remarks().into_iter();
        let mut notes: Vec<Note> = remarks
            .map(|(stat, count)| Note::new(stat, count))
            .collect();
        let shown = self.examples.len() as u64;
        notes.extend(self.examples.iter().cloned());
        notes.push(Note::new(&stat::REQUEST_LINE_BAD, self.bad - shown));
        notes.extend(self.broken.clone());
        Summary {
            facts: self.parse.facts(),
            counts: [("request".to_owned(), self.requests)].into(),
            records: self.records,
            skipped: self.bad,
            notes,
        }
    }
}
