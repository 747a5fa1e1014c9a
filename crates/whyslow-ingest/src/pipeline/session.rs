//! An import in progress: passes the events of all sources to the trackers, in order.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};

use whyslow_model::event::{Event, Loss};
use whyslow_model::tables::{Collected, EmitAll};
use whyslow_model::{Ns, Symbols};
use whyslow_store::{RecordingWriter, StoreError};

use super::account::Account;
use super::profile_source::ProfileQueue;
use super::request_source::RequestQueue;
use super::stream_source::StreamQueue;
use super::text_source::{Entry, TextQueue};
use super::{AnomalyReport, ImportError, Progress, RecordCounts, Stage};
use crate::detect::SourceKind;
use crate::importers::streamed::Item;
use crate::limits;
use crate::sorter::Sorter;
use crate::trackers::Trackers;

/// Events between progress reports, for files without another measure of progress.
const PROGRESS_EVENTS: u64 = 1 << 16;

/// Destination of rows.
pub(super) trait RowSink: EmitAll {
    /// Called after each event: writes buffered rows that exceed the limit.
    fn flush_ready(&mut self, symbols: &Symbols) -> Result<(), StoreError>;
}

impl RowSink for RecordingWriter {
    #[inline]
    fn flush_ready(&mut self, symbols: &Symbols) -> Result<(), StoreError> {
        RecordingWriter::flush_ready(self, symbols)
    }
}

impl RowSink for Collected {
    fn flush_ready(&mut self, _: &Symbols) -> Result<(), StoreError> {
        Ok(())
    }
}

/// Sources that are merged between the events of traces.
type Queues = (TextQueue, ProfileQueue, StreamQueue, RequestQueue);

pub(super) struct Session<'o, S> {
    pub(super) account: Account,
    symbols: Symbols,
    trackers: Trackers,
    sink: S,
    sorter: Sorter,
    texts: TextQueue,
    profiles: ProfileQueue,
    streams: StreamQueue,
    requests: RequestQueue,
    cancel: &'o AtomicBool,
    progress: &'o mut dyn FnMut(Progress),
    events: u64,
    until_check: u32,
    failed: Option<ImportError>,
}

/// Result of an import after everything has been read.
pub(super) struct Outcome<S> {
    pub(super) sink: S,
    pub(super) symbols: Symbols,
    pub(super) host: Option<String>,
    pub(super) zone: Option<String>,
    pub(super) begin_ns: Ns,
    pub(super) end_ns: Ns,
    pub(super) source_kinds: Vec<String>,
    pub(super) records: RecordCounts,
    pub(super) anomalies: Vec<AnomalyReport>,
}

impl<'o, S: RowSink> Session<'o, S> {
    pub(super) fn new(
        sink: S,
        (texts, profiles, streams, requests): Queues,
        cancel: &'o AtomicBool,
        progress: &'o mut dyn FnMut(Progress),
    ) -> Session<'o, S> {
        let mut symbols = Symbols::new();
        let mut account = Account::default();
        texts.open_account(&mut account);
        profiles.open_account(&mut account);
        let mut trackers = Trackers::new(&mut symbols);
        trackers.expect_names(profiles.names());
        Session {
            account,
            trackers,
            symbols,
            sink,
            sorter: Sorter::default(),
            texts,
            profiles,
            streams,
            requests,
            cancel,
            progress,
            events: 0,
            until_check: limits::EVENTS_PER_CHECK,
            failed: None,
        }
    }

    pub(super) fn name_sources(&mut self, kinds: &[SourceKind]) {
        let is_requests = |kind: &SourceKind| matches!(kind, SourceKind::Requests(_));
        let has_both =
            |kind: &SourceKind| matches!(kind, SourceKind::Requests(form) if form.has_both_sides());
        let request_sources = kinds.iter().filter(|kind| is_requests(kind)).count();
        let has_traces = request_sources > 1 || kinds.iter().any(has_both);
        self.trackers.expect_requests(
            request_sources > 0 && request_sources < kinds.len(),
            has_traces,
        );
        let names = kinds.iter().map(|kind| kind.name().to_owned());
        self.account.source_kinds = names.collect();
    }

    /// The process that records, as reported by itself.
    pub(super) fn expect_recorder(&mut self, pid: i32) {
        self.trackers.expect_recorder(pid);
    }

    /// Handles the next event of a trace, after all earlier data of the other sources. `Break`
    /// means that the import has to stop: [`Self::finish`] returns the reason.
    #[inline]
    pub(super) fn event(&mut self, event: Event<'_>) -> ControlFlow<()> {
        // Streams come through here, too, and advance texts and profiles up to each of their
        // events: otherwise all events of a stream would be later than the last event of those.
        if self.streams.is_due(event.ts) {
            self.streams_until(Some(event.ts))?;
        }
        if self.texts.is_due(event.ts) {
            self.texts_until(Some(event.ts))?;
        }
        if self.profiles.is_due(event.ts) {
            self.profiles_until(Some(event.ts))?;
        }
        if self.requests.is_due(event.ts) {
            self.requests_until(Some(event.ts))?;
        }
        self.track(event)
    }

    /// Handles an event that started before the imported time range, without extending the range.
    pub(super) fn event_before(&mut self, event: Event<'_>) -> ControlFlow<()> {
        if self.sorter.has_begun() {
            // A source with an earlier start exists: the event takes its place in the sequence.
            return self.event(event);
        }
        self.dispatch(&event)
    }

    /// Declares a time range as covered, with or without events.
    pub(super) fn cover(&mut self, begin: Ns, end: Ns) {
        self.sorter.cover(begin, end);
    }

    pub(super) fn loss(&mut self, loss: &Loss<'_>) {
        self.trackers.loss(loss, &mut self.symbols, &mut self.sink);
    }

    pub(super) fn progress(&mut self, bytes_done: u64, bytes_total: u64) {
        (self.progress)(Progress {
            stage: Stage::Importing,
            bytes_done,
            bytes_total,
            events: self.events,
        });
    }

    /// Writes open intervals and the account.
    pub(super) fn finish(mut self) -> Result<Outcome<S>, ImportError> {
        if self.failed.is_none() {
            let _ = self.streams_until(None);
        }
        if self.failed.is_none() {
            let _ = self.texts_until(None);
        }
        if self.failed.is_none() {
            let _ = self.profiles_until(None);
        }
        if self.failed.is_none() {
            let _ = self.requests_until(None);
        }
        if let Some(error) = self.failed {
            return Err(error);
        }
        let (begin_ns, end_ns) = self.sorter.range();
        let (symbols, sink) = (&mut self.symbols, &mut self.sink);
        self.trackers.finish(end_ns, symbols, sink);
        self.streams.close_account(&mut self.account);
        self.requests.close_account(&mut self.account);
        self.account.add_late(self.sorter.late());
        self.account.add_tracked(self.trackers.anomalies());
        self.account.write(symbols, sink);
        sink.flush_ready(symbols)?;
        let account = self.account;
        Ok(Outcome {
            records: account.records(),
            anomalies: account.report(),
            host: account.host,
            zone: account.zone,
            source_kinds: account.source_kinds,
            sink: self.sink,
            symbols: self.symbols,
            begin_ns,
            end_ns,
        })
    }

    #[inline]
    fn track(&mut self, mut event: Event<'_>) -> ControlFlow<()> {
        event.ts = self.sorter.place(event.ts);
        self.dispatch(&event)
    }

    #[inline]
    fn dispatch(&mut self, event: &Event<'_>) -> ControlFlow<()> {
        self.events += 1;
        self.trackers
            .event(event, &mut self.symbols, &mut self.sink);
        self.after_item()
    }

    #[cold]
    fn check(&mut self) -> ControlFlow<()> {
        self.until_check = limits::EVENTS_PER_CHECK;
        if self.cancel.load(Ordering::Relaxed) {
            return self.fail(ImportError::Cancelled);
        }
        ControlFlow::Continue(())
    }

    #[cold]
    fn fail(&mut self, error: ImportError) -> ControlFlow<()> {
        self.failed = Some(error);
        ControlFlow::Break(())
    }

    #[cold]
    fn texts_until(&mut self, ts: Option<Ns>) -> ControlFlow<()> {
        // moved out while its lines are borrowed
        let mut texts = std::mem::take(&mut self.texts);
        let flow = texts.until(ts, &mut |entry| match entry {
            Entry::Event(event) => {
                if self.profiles.is_due(event.ts) {
                    self.profiles_until(Some(event.ts))?;
                }
                if self.requests.is_due(event.ts) {
                    self.requests_until(Some(event.ts))?;
                }
                self.track(event)
            }
            Entry::Loss(loss) => {
                self.loss(&loss);
                ControlFlow::Continue(())
            }
        });
        self.texts = texts;
        flow
    }

    #[cold]
    fn streams_until(&mut self, ts: Option<Ns>) -> ControlFlow<()> {
        let mut streams = std::mem::take(&mut self.streams);
        let flow = streams.until(ts, &mut |item, (done, all)| {
            if self.events.is_multiple_of(PROGRESS_EVENTS) {
                self.progress(done, all);
            }
            match item {
                // Earlier data of the other queues comes first; this queue is moved out meanwhile.
                Item::Event(event) => self.event(event),
                Item::Before(event) => self.event_before(event),
                Item::Loss(loss) => {
                    self.loss(&loss);
                    ControlFlow::Continue(())
                }
            }
        });
        self.streams = streams;
        flow.unwrap_or_else(|error| self.fail(error))
    }

    #[cold]
    fn profiles_until(&mut self, ts: Option<Ns>) -> ControlFlow<()> {
        let mut profiles = std::mem::take(&mut self.profiles);
        let flow = profiles.until(ts, &mut |source, item| {
            self.sorter.place(item.ts());
            self.sorter.reach(item.ts_end());
            self.events += 1;
            let (symbols, sink) = (&mut self.symbols, &mut self.sink);
            self.trackers.sampled(source, item, symbols, sink);
            self.after_item()
        });
        self.profiles = profiles;
        flow
    }

    #[cold]
    fn requests_until(&mut self, ts: Option<Ns>) -> ControlFlow<()> {
        let mut requests = std::mem::take(&mut self.requests);
        let flow = requests.until(ts, &mut |request, (done, all)| {
            if self.events.is_multiple_of(PROGRESS_EVENTS) {
                self.progress(done, all);
            }
            let end = request.ts.saturating_add(request.dur.unwrap_or(0));
            self.sorter.widen(request.ts, end);
            self.events += 1;
            let (symbols, sink) = (&mut self.symbols, &mut self.sink);
            self.trackers.request(request, symbols, sink);
            self.after_item()
        });
        self.requests = requests;
        flow.unwrap_or_else(|error| self.fail(error))
    }

    /// Housekeeping after each tracked item.
    #[inline]
    fn after_item(&mut self) -> ControlFlow<()> {
        if let Err(error) = self.sink.flush_ready(&self.symbols) {
            return self.fail(error.into());
        }
        self.until_check -= 1;
        if self.until_check == 0 {
            return self.check();
        }
        ControlFlow::Continue(())
    }
}

#[cfg(test)]
mod tests;
