//! Request logs: read sequentially, sorted by start time, and merged with the events of other
//! sources.
//!
//! A request is logged when it ends, so a long one follows others that started later. The requests
//! of a file are buffered for sorting, up to a limit. A request is too late only if a very large
//! number of others started and ended in the meantime; it is kept, with an id that is out of order,
//! and counted.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use whyslow_model::Ns;
use whyslow_model::stat;

use super::account::{Account, LogEntry};
use super::{ImportError, written};
use crate::importers::requests::{self, Form, ReadOptions, Request, RequestReader, RequestsError};
use crate::limits;

/// Receives a request, the bytes read so far, and the total.
type Taker<'t> = dyn FnMut(&Request, (u64, u64)) -> ControlFlow<()> + 't;

#[derive(Default)]
pub(super) struct RequestQueue {
    files: Vec<Queued>,
}

struct Queued {
    label: String,
    path: PathBuf,
    reader: Box<dyn RequestReader>,
    shift: Ns,
    pending: BinaryHeap<Reverse<Pending>>,
    pending_bytes: usize,
    read: u64,
    is_done: bool,
    /// Start of the last request passed on.
    last: Ns,
    late: u64,
}

/// Sorted by start, then by position in the file.
struct Pending {
    key: (Ns, u64),
    request: Request,
}

impl PartialEq for Pending {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}

impl Eq for Pending {}

impl PartialOrd for Pending {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Pending {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.key.cmp(&other.key)
    }
}

impl RequestQueue {
    pub(super) fn add(
        &mut self,
        (source, form): (usize, Form),
        path: &Path,
        (shift, format): (Ns, Option<&str>),
    ) -> Result<(), ImportError> {
        let options = ReadOptions {
            written: written(path),
            format,
        };
        let reader = requests::open(form, path, options).map_err(|error| match error {
            RequestsError::Io(source) => ImportError::Read {
                path: path.to_owned(),
                source,
            },
            RequestsError::Format(reason) => ImportError::Malformed {
                path: path.to_owned(),
                reason,
            },
        })?;
        let mut queued = Queued {
            label: format!("{} {}", form.name(), source + 1),
            path: path.to_owned(),
            reader,
            shift,
            pending: BinaryHeap::new(),
            pending_bytes: 0,
            read: 0,
            is_done: false,
            last: Ns::MIN,
            late: 0,
        };
        queued.fill()?;
        self.files.push(queued);
        Ok(())
    }

    /// Whether a request starts before this time.
    #[inline]
    pub(super) fn is_due(&self, ts: Ns) -> bool {
        let nexts = self.files.iter().filter_map(Queued::next_ts);
        nexts.min().is_some_and(|next| next < ts)
    }

    /// Passes on all requests that start before this time, or all that remain.
    pub(super) fn until(
        &mut self,
        ts: Option<Ns>,
        take: &mut Taker<'_>,
    ) -> Result<ControlFlow<()>, ImportError> {
        loop {
            let nexts = self.files.iter().enumerate();
            let nexts = nexts.filter_map(|(number, queued)| Some((queued.next_ts()?, number)));
            let Some((next, number)) = nexts.min() else {
                return Ok(ControlFlow::Continue(()));
            };
            if ts.is_some_and(|ts| next >= ts) {
                return Ok(ControlFlow::Continue(()));
            }
            let queued = &mut self.files[number];
            let progress = queued.reader.progress();
            if let Some(request) = queued.pop()?
                && take(&request, progress).is_break()
            {
                return Ok(ControlFlow::Break(()));
            }
        }
    }

    /// Adds the statistics of the files, after all were read.
    pub(super) fn close_account(&self, account: &mut Account) {
        for queued in &self.files {
            queued.close_account(account);
        }
    }
}

impl Queued {
    fn next_ts(&self) -> Option<Ns> {
        self.pending.peek().map(|Reverse(pending)| pending.key.0)
    }

    fn fill(&mut self) -> Result<(), ImportError> {
        while !self.is_done
            && self.pending.len() < limits::REQUESTS_PENDING_MAX
            && self.pending_bytes < limits::REQUESTS_PENDING_BYTES_MAX
        {
            let next = self.reader.next().map_err(|source| ImportError::Read {
                path: self.path.clone(),
                source,
            })?;
            let Some(mut request) = next else {
                self.is_done = true;
                return Ok(());
            };
            self.shifted(&mut request);
            self.pending_bytes += request.text_bytes();
            self.pending.push(Reverse(Pending {
                key: (request.ts, self.read),
                request,
            }));
            self.read += 1;
        }
        Ok(())
    }

    fn shifted(&self, request: &mut Request) {
        let by = self.shift;
        request.ts = request.ts.saturating_add(by);
        request.ts_intended = request.ts_intended.map(|ts| ts.saturating_add(by));
        for phase in &mut request.phases {
            phase.ts = phase.ts.map(|ts| ts.saturating_add(by));
        }
    }

    fn pop(&mut self) -> Result<Option<Request>, ImportError> {
        let popped = self.pending.pop();
        if let Some(Reverse(pending)) = &popped {
            self.pending_bytes -= pending.request.text_bytes();
            self.late += u64::from(pending.request.ts < self.last);
            self.last = self.last.max(pending.request.ts);
        }
        self.fill()?;
        Ok(popped.map(|Reverse(pending)| pending.request))
    }

    fn close_account(&self, account: &mut Account) {
        let summary = self.reader.summary();
        for (key, value) in &summary.facts {
            account.add_fact(&self.label, key, value);
        }
        for (name, count) in &summary.counts {
            account.add_events(&self.label, name, *count);
        }
        account.add_records(summary.records, summary.skipped);
        account.add_anomaly(&stat::REQUEST_LATE, self.late, &[]);
        for note in summary.notes {
            let place = LogEntry {
                source: Some(self.label.clone()),
                byte_offset: note.offset.map(|offset| offset as i64),
                ts: None,
                text: note.text,
            };
            let is_placed = place.byte_offset.is_some() || !place.text.is_empty();
            let examples = if is_placed { &[place][..] } else { &[] };
            account.add_anomaly(note.stat, note.count, examples);
        }
    }
}
