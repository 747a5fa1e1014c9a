//! perf.data files: read once, and let in between the events of other sources.

use std::collections::BTreeMap;
use std::io;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use whyslow_model::Ns;
use whyslow_model::stat::{self, Stat};

use super::account::{Account, LogEntry};
use super::{ImportError, written};
use crate::importers::perf::{Item, PerfError, PerfSource};

/// Takes an item, with the bytes that were read and all there are.
type Taker<'t> = dyn FnMut(Item<'_>, (u64, u64)) -> ControlFlow<()> + 't;

/// Records of all files in order of time.
#[derive(Default)]
pub(super) struct PerfQueue {
    files: Vec<Queued>,
}

struct Queued {
    source: usize,
    path: PathBuf,
    perf: PerfSource,
    next: Option<Ns>,
}

impl PerfQueue {
    pub(super) fn add(&mut self, source: usize, path: &Path, shift: Ns) -> Result<(), ImportError> {
        let perf = PerfSource::open(path, written(path), shift).map_err(|error| match error {
            PerfError::Io(error) => read_error(path, error),
            PerfError::Format(reason) => ImportError::Perf {
                path: path.to_owned(),
                reason,
            },
        })?;
        let mut queued = Queued {
            source,
            path: path.to_owned(),
            perf,
            next: None,
        };
        queued.look()?;
        self.files.push(queued);
        Ok(())
    }

    /// Whether anything comes before this time.
    #[inline]
    pub(super) fn is_due(&self, ts: Ns) -> bool {
        self.files
            .iter()
            .any(|queued| queued.next.is_some_and(|next| next < ts))
    }

    /// Gives all that comes before that time, or all that is left.
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
            let progress = queued.perf.progress();
            let mut flow = ControlFlow::Continue(());
            let read = queued.perf.next(&mut |item| {
                if flow.is_continue() {
                    flow = take(item, progress);
                }
            });
            read.map_err(|error| read_error(&queued.path, error))?;
            queued.look()?;
            if flow.is_break() {
                return Ok(flow);
            }
        }
    }

    /// What there was in them, once all was read.
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
    fn look(&mut self) -> Result<(), ImportError> {
        let next = self.perf.next_ts();
        self.next = next.map_err(|error| read_error(&self.path, error))?;
        Ok(())
    }

    fn close_account(&self, account: &mut Account) {
        let label = format!("perf {}", self.source + 1);
        for (key, value) in self.perf.facts() {
            account.add_fact(&label, key, &value);
        }
        let counts: BTreeMap<String, u64> = self.perf.counts();
        for (name, count) in &counts {
            account.add_events(&label, name, *count);
        }
        let lacks = self.perf.lacks();
        account.add_records(self.perf.records(), lacks.cut + lacks.strange);
        let (damaged, offset) = lacks.damaged;
        let place = LogEntry {
            source: Some(label),
            byte_offset: offset.map(|offset| offset as i64),
            ts: None,
            text: format!("{damaged} bytes"),
        };
        let mut note = |stat: &'static Stat, count: u64, examples: &[LogEntry]| {
            account.add_anomaly(stat, count, examples);
        };
        note(&stat::PERF_LOST_BYTES, damaged, &[place]);
        note(&stat::PERF_UNFINISHED, u64::from(lacks.is_unfinished), &[]);
        note(&stat::PERF_STRANGE, lacks.strange, &[]);
        note(&stat::PERF_CUT, lacks.cut, &[]);
        note(&stat::PERF_NO_FORMAT, lacks.without_format, &[]);
        note(&stat::PERF_UNNAMED, lacks.unnamed, &[]);
        note(&stat::PERF_THROTTLED, lacks.throttled, &[]);
        note(&stat::EVENT_NOT_USED, lacks.unused, &[]);
        let is_guessed = u64::from(!self.perf.is_clock_told);
        note(&stat::PERF_CLOCK_GUESSED, is_guessed, &[]);
    }
}
