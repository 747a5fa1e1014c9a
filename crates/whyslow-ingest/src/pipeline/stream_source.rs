//! Files that are read sequentially in time order, and merged with the events of other sources.

use std::io;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use whyslow_model::Ns;
use whyslow_model::sort::IndexSort;

use super::account::{Account, LogEntry};
use super::{ImportError, written};
use crate::importers::blktrace::BlktraceSource;
use crate::importers::perf::{PerfError, PerfSource};
use crate::importers::streamed::{Item, Streamed};
use crate::importers::tracedat::{TraceDatError, TraceDatSource};

/// Receives an item, the bytes read so far, and the total.
type Taker<'t> = dyn FnMut(Item<'_>, (u64, u64)) -> ControlFlow<()> + 't;

/// Records of all files in time order.
#[derive(Default)]
pub(super) struct StreamQueue {
    files: Vec<Queued>,
    /// blktrace paths; those that belong to one run become one source.
    blktraces: Vec<(usize, PathBuf, Ns)>,
}

struct Queued {
    /// Label in the account.
    label: String,
    path: PathBuf,
    stream: Box<dyn Streamed>,
    next: Option<Ns>,
}

impl StreamQueue {
    pub(super) fn add_perf(
        &mut self,
        source: usize,
        path: &Path,
        shift: Ns,
    ) -> Result<(), ImportError> {
        let perf = PerfSource::open(path, written(path), shift).map_err(|error| match error {
            PerfError::Io(error) => read_error(path, error),
            PerfError::Format(reason) => ImportError::Perf {
                path: path.to_owned(),
                reason,
            },
        })?;
        self.add(format!("perf {}", source + 1), path, Box::new(perf))
    }

    pub(super) fn add_trace_dat(
        &mut self,
        source: usize,
        path: &Path,
        shift: Ns,
    ) -> Result<(), ImportError> {
        let opened = TraceDatSource::open(path, written(path), shift);
        let trace = opened.map_err(|error| match error {
            TraceDatError::Io(error) => read_error(path, error),
            error => ImportError::Malformed {
                path: path.to_owned(),
                reason: error.to_string(),
            },
        })?;
        self.add(format!("trace-cmd {}", source + 1), path, Box::new(trace))
    }

    /// Adds a file of one CPU, or a directory of such files; [`Self::seal`] groups the files of one
    /// run.
    pub(super) fn add_blktrace(&mut self, source: usize, path: &Path, shift: Ns) {
        self.blktraces.push((source, path.to_owned(), shift));
    }

    /// To be called after the last source.
    pub(super) fn seal(&mut self) -> Result<(), ImportError> {
        let paths = std::mem::take(&mut self.blktraces);
        let mut runs: Vec<(usize, PathBuf, Ns, Vec<PathBuf>)> = Vec::new();
        for (source, path, shift) in paths {
            let is_folder = path.is_dir();
            let folder = if is_folder {
                path.clone()
            } else {
                path.parent().map(Path::to_owned).unwrap_or_default()
            };
            let files = if is_folder {
                BlktraceSource::files_of(&path).map_err(|error| read_error(&path, error))?
            } else {
                vec![path]
            };
            let known = runs
                .iter_mut()
                .find(|run| run.1 == folder && run.2 == shift);
            match known {
                Some(run) => run.3.extend(files),
                None => runs.push((source, folder, shift, files)),
            }
        }
        for (source, folder, shift, mut files) in runs {
            files.index_sort();
            files.dedup();
            let newest = files.iter().filter_map(|path| written(path)).max();
            let opened = BlktraceSource::open(&files, newest, shift);
            let path = files.into_iter().next().unwrap_or(folder);
            let trace = opened.map_err(|(path, error)| read_error(&path, error))?;
            self.add(format!("blktrace {}", source + 1), &path, Box::new(trace))?;
        }
        Ok(())
    }

    pub(super) fn add(
        &mut self,
        label: String,
        path: &Path,
        stream: Box<dyn Streamed>,
    ) -> Result<(), ImportError> {
        let mut queued = Queued {
            label,
            path: path.to_owned(),
            stream,
            next: None,
        };
        queued.peek()?;
        self.files.push(queued);
        Ok(())
    }

    /// Whether there is an item before this time.
    #[inline]
    pub(super) fn is_due(&self, ts: Ns) -> bool {
        self.files
            .iter()
            .any(|queued| queued.next.is_some_and(|next| next < ts))
    }

    /// Passes on all items before this time, or all that remain.
    pub(super) fn until(
        &mut self,
        ts: Option<Ns>,
        take: &mut Taker<'_>,
    ) -> Result<ControlFlow<()>, ImportError> {
        loop {
            let nexts = self.files.iter().enumerate();
            let nexts = nexts.filter_map(|(number, queued)| Some((queued.next?, number)));
            let Some((next, number)) = nexts.min() else {
                return Ok(ControlFlow::Continue(()));
            };
            if ts.is_some_and(|ts| next >= ts) {
                return Ok(ControlFlow::Continue(()));
            }
            let queued = &mut self.files[number];
            let progress = queued.stream.progress();
            let mut flow = ControlFlow::Continue(());
            let read = queued.stream.next(&mut |item| {
                if flow.is_continue() {
                    flow = take(item, progress);
                }
            });
            read.map_err(|error| read_error(&queued.path, error))?;
            queued.peek()?;
            if flow.is_break() {
                return Ok(flow);
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

fn read_error(path: &Path, source: io::Error) -> ImportError {
    ImportError::Read {
        path: path.to_owned(),
        source,
    }
}

impl Queued {
    fn peek(&mut self) -> Result<(), ImportError> {
        let next = self.stream.next_ts();
        self.next = next.map_err(|error| read_error(&self.path, error))?;
        Ok(())
    }

    fn close_account(&self, account: &mut Account) {
        let summary = self.stream.summary();
        for (key, value) in &summary.facts {
            account.add_fact(&self.label, key, value);
        }
        for (name, count) in &summary.counts {
            account.add_events(&self.label, name, *count);
        }
        account.add_records(summary.records, summary.skipped);
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
