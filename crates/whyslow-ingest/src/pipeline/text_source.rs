//! Text sources: held in memory, sorted, and merged with the events of traces.

use std::collections::BTreeMap;
use std::fs;
use std::ops::ControlFlow;
use std::path::Path;

use whyslow_model::Ns;
use whyslow_model::event::{Event, Loss};
use whyslow_model::sort::IndexSort;
use whyslow_model::stat::{self, Stat};

use super::ImportError;
use super::account::{Account, LogEntry};
use super::written;
use crate::importers::Bad;
use crate::importers::blkparse;
use crate::importers::ftrace;
use crate::importers::markers;
use crate::importers::snoops;
use crate::importers::strace::{self, Origin};
use crate::importers::sysstat;
use crate::importers::text::{self, EventBuffers, Item, LINE_BYTES_MAX, Line};
use crate::limits;

/// Content of a line.
pub(super) enum Entry<'a> {
    Event(Event<'a>),
    Loss(Loss<'a>),
}

/// Lines of all text sources in time order.
#[derive(Default)]
pub(super) struct TextQueue {
    texts: Vec<Text>,
    /// Sorted by time; lines with equal times stay in order.
    places: Vec<Place>,
    next: usize,
    line: Line,
    /// Synthetic thread ids assigned so far, over all files.
    made: snoops::MadeUp,
    /// strace logs without thread ids.
    unnamed: i32,
}

struct Text {
    content: String,
    shift_ns: Ns,
    source: usize,
    facts: Vec<(String, String)>,
    counts: BTreeMap<String, u64>,
    bad: Vec<LogEntry>,
    bad_count: u64,
    bad_stat: &'static Stat,
    /// Anomalies of the whole file.
    remarks: Vec<(&'static Stat, u64)>,
    kind: &'static str,
}

/// Reads the whole file. Invalid UTF-8 cannot occur in our own lines or in strace logs, which
/// escape names.
fn read(path: &Path) -> Result<String, ImportError> {
    let failed = |source| ImportError::Read {
        path: path.to_owned(),
        source,
    };
    let bytes = fs::metadata(path).map_err(failed)?.len();
    let limit = limits::TEXT_BYTES_MAX;
    if bytes > limit {
        return Err(ImportError::TextTooLarge {
            path: path.to_owned(),
            bytes,
            limit,
        });
    }
    let content = fs::read(path).map_err(failed)?;
    Ok(match String::from_utf8(content) {
        Ok(content) => content,
        Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
    })
}

#[derive(Debug, Clone, Copy)]
struct Place {
    ts: Ns,
    text: usize,
    begin: usize,
    end: usize,
}

impl TextQueue {
    pub(super) fn add(
        &mut self,
        source: usize,
        path: &Path,
        shift_ns: Ns,
    ) -> Result<(), ImportError> {
        let content = read(path)?;
        self.index(Text::new(("text", source), content, shift_ns));
        Ok(())
    }

    /// Adds an strace log, translated to text lines.
    pub(super) fn add_strace(
        &mut self,
        source: usize,
        path: &Path,
        shift_ns: Ns,
    ) -> Result<(), ImportError> {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let tid = name.rsplit('.').next().and_then(|end| end.parse().ok());
        let origin = Origin {
            tid,
            written: written(path),
            unnamed: self.unnamed,
        };
        let log = strace::translate(&read(path)?, origin, limits::LOG_EXAMPLES_MAX);
        self.unnamed += i32::from(log.lacks.threads > 0);
        let mut text = Text::new(("strace", source), log.text, shift_ns);
        text.record_bad(&stat::STRACE_LINE_BAD, log.bad_count, log.bad);
        text.remarks = vec![
            (&stat::STRACE_LINE_NOT_USED, log.unused),
            (&stat::STRACE_NO_DURATIONS, log.lacks.durations),
            (&stat::STRACE_NO_THREADS, log.lacks.threads),
            (&stat::STRACE_NO_DATES, log.lacks.dates),
        ];
        self.index(text);
        Ok(())
    }

    /// Adds tracepoints printed by another tool.
    pub(super) fn add_ftrace(
        &mut self,
        source: usize,
        path: &Path,
        shift_ns: Ns,
    ) -> Result<(), ImportError> {
        let trace = ftrace::translate(&read(path)?, written(path), limits::LOG_EXAMPLES_MAX);
        let mut text = Text::new(("ftrace", source), trace.text, shift_ns);
        text.record_bad(&stat::FTRACE_LINE_BAD, trace.bad_count, trace.bad);
        text.remarks = vec![
            (&stat::EVENT_NOT_USED, trace.unused.values().sum()),
            (&stat::FTRACE_CLOCK_GUESSED, u64::from(trace.events > 0)),
        ];
        text.counts = trace.unused;
        self.index(text);
        Ok(())
    }

    /// Adds block requests printed by blkparse.
    pub(super) fn add_blkparse(
        &mut self,
        source: usize,
        path: &Path,
        shift_ns: Ns,
    ) -> Result<(), ImportError> {
        let log = blkparse::translate(&read(path)?, written(path), limits::LOG_EXAMPLES_MAX);
        let mut text = Text::new(("blkparse", source), log.text, shift_ns);
        text.record_bad(&stat::BLKPARSE_LINE_BAD, log.bad_count, log.bad);
        text.remarks = vec![
            (&stat::EVENT_NOT_USED, log.unused.values().sum()),
            (&stat::BLKPARSE_CLOCK_GUESSED, u64::from(log.events > 0)),
        ];
        text.counts = log.unused;
        self.index(text);
        Ok(())
    }

    /// Adds markers of user actions.
    pub(super) fn add_markers(
        &mut self,
        source: usize,
        path: &Path,
        shift_ns: Ns,
    ) -> Result<(), ImportError> {
        let list = markers::translate(&read(path)?, limits::LOG_EXAMPLES_MAX);
        let mut text = Text::new(("markers", source), list.text, shift_ns);
        text.record_bad(&stat::MARKER_LINE_BAD, list.bad_count, list.bad);
        self.index(text);
        Ok(())
    }

    /// Adds counters printed by sysstat, vmstat or top.
    pub(super) fn add_report(
        &mut self,
        (source, form): (usize, sysstat::Form),
        path: &Path,
        shift_ns: Ns,
    ) -> Result<(), ImportError> {
        let report =
            sysstat::translate(form, &read(path)?, written(path), limits::LOG_EXAMPLES_MAX);
        if report.rows == 0 && report.untimed > 0 {
            return Err(ImportError::Report {
                path: path.to_owned(),
                reason: "its rows have no timestamps (use `iostat -t` or `vmstat -t`)",
            });
        }
        let mut text = Text::new(("report", source), report.text, shift_ns);
        text.record_bad(&stat::REPORT_LINE_BAD, report.bad_count, report.bad);
        text.remarks = vec![
            (&stat::REPORT_SINCE_BOOT, report.since_boot),
            (&stat::REPORT_SUMS, report.sums),
            (&stat::REPORT_NO_TIMES, report.untimed),
            (&stat::REPORT_UNREADABLE, report.unreadable),
            (&stat::REPORT_ZONE_GUESSED, report.zones),
            (&stat::REPORT_DATES_GUESSED, report.dates),
        ];
        self.index(text);
        Ok(())
    }

    /// Adds events printed by a tool of bcc, libbpf-tools or bpftrace.
    pub(super) fn add_snoop(
        &mut self,
        source: usize,
        path: &Path,
        shift_ns: Ns,
    ) -> Result<(), ImportError> {
        let log = snoops::translate(
            &read(path)?,
            written(path),
            self.made,
            limits::LOG_EXAMPLES_MAX,
        );
        self.made = log.made;
        if log.rows == 0 && log.untimed > 0 {
            return Err(ImportError::Report {
                path: path.to_owned(),
                reason: "its lines have no timestamps (most of these tools print them with -T or -t)",
            });
        }
        let mut text = Text::new((log.tool, source), log.text, shift_ns);
        text.record_bad(&stat::SNOOP_LINE_BAD, log.bad_count, log.bad);
        text.remarks = vec![
            (&stat::SNOOP_STATUS_LINE, log.status_lines),
            (&stat::SNOOP_NO_THREADS, log.no_thread),
            (&stat::SNOOP_NO_TIMES, log.untimed),
            (&stat::SNOOP_CLOCK_GUESSED, log.zones),
        ];
        self.index(text);
        Ok(())
    }

    fn index(&mut self, mut text: Text) {
        text.index(self.texts.len(), &mut self.line, &mut self.places);
        self.texts.push(text);
        self.places.index_sort_by_ints(|place| [place.ts, 0, 0]);
    }

    pub(super) fn open_account(&self, account: &mut Account) {
        for text in &self.texts {
            let label = text.label();
            for (key, value) in &text.facts {
                account.add_fact(&label, key, value);
            }
            for (name, count) in &text.counts {
                account.add_events(&label, name, *count);
            }
            let accepted: u64 = text.counts.values().sum();
            account.add_records(accepted + text.bad_count, text.bad_count);
            account.add_anomaly(text.bad_stat, text.bad_count, &text.bad);
            for (remark, count) in &text.remarks {
                account.add_anomaly(remark, *count, &[]);
            }
        }
    }

    /// Whether there is a line before this time.
    #[inline]
    pub(super) fn is_due(&self, ts: Ns) -> bool {
        self.places
            .get(self.next)
            .is_some_and(|place| place.ts < ts)
    }

    /// Passes on all lines before this time, or all that remain.
    pub(super) fn until(
        &mut self,
        ts: Option<Ns>,
        take: &mut dyn FnMut(Entry<'_>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        while let Some(&place) = self.places.get(self.next) {
            if ts.is_some_and(|ts| place.ts >= ts) {
                break;
            }
            self.next += 1;
            let text = &self.texts[place.text];
            let line = &text.content[place.begin..place.end];
            let mut room = EventBuffers::default();
            match text::parse(line, &mut self.line, &mut room) {
                Ok(Item::Event { event, .. }) => {
                    let ts = place.ts;
                    let body = event.body.shifted(text.shift_ns);
                    take(Entry::Event(Event { ts, body, ..event }))?;
                }
                Ok(Item::Loss(loss)) => {
                    let ts_end = loss.ts_end.map(|end| end.saturating_add(text.shift_ns));
                    let ts = place.ts;
                    take(Entry::Loss(Loss { ts, ts_end, ..loss }))?;
                }
                // only lines of these kinds were indexed
                _ => {}
            }
        }
        ControlFlow::Continue(())
    }
}

impl Text {
    fn new((kind, source): (&'static str, usize), content: String, shift_ns: Ns) -> Self {
        Self {
            content,
            shift_ns,
            source,
            facts: Vec::new(),
            counts: BTreeMap::new(),
            bad: Vec::new(),
            bad_count: 0,
            bad_stat: &stat::TEXT_LINE_BAD,
            remarks: Vec::new(),
            kind,
        }
    }

    fn label(&self) -> String {
        format!("{} {}", self.kind, self.source + 1)
    }

    /// Records invalid lines of the log: count, and examples.
    fn record_bad(&mut self, stat: &'static Stat, count: u64, examples: Vec<Bad>) {
        let to_entry = |bad: Bad| self.bad_line(bad.line, bad.offset, &bad.what);
        self.bad = examples.into_iter().map(to_entry).collect();
        (self.bad_stat, self.bad_count) = (stat, count);
    }

    fn bad_line(&self, number: usize, begin: usize, what: &str) -> LogEntry {
        LogEntry {
            source: Some(self.label()),
            byte_offset: Some(begin as i64),
            ts: None,
            text: format!("line {number}: {what}"),
        }
    }

    fn index(&mut self, index: usize, line: &mut Line, places: &mut Vec<Place>) {
        let mut begin = 0;
        let content = std::mem::take(&mut self.content);
        for (number, text) in content.split_inclusive('\n').enumerate() {
            let end = begin + text.len();
            let mut room = EventBuffers::default();
            let parsed = if text.len() > LINE_BYTES_MAX {
                Err(format!("line exceeds {LINE_BYTES_MAX} bytes"))
            } else {
                text::parse(text, line, &mut room)
            };
            let ts = match parsed {
                Ok(Item::Nothing) => None,
                Ok(Item::Metadata { key, value }) => {
                    let value = String::from_utf8_lossy(value).into_owned();
                    self.facts.push((key.to_owned(), value));
                    None
                }
                Ok(Item::Event { name, event }) => {
                    *self.counts.entry(name.to_owned()).or_default() += 1;
                    Some(event.ts)
                }
                Ok(Item::Loss(loss)) => Some(loss.ts),
                Err(what) => {
                    self.count_bad(number + 1, begin, &what);
                    None
                }
            };
            if let Some(ts) = ts {
                places.push(Place {
                    ts: ts.saturating_add(self.shift_ns),
                    text: index,
                    begin,
                    end,
                });
            }
            begin = end;
        }
        self.content = content;
    }

    fn count_bad(&mut self, number: usize, begin: usize, what: &str) {
        self.bad_count += 1;
        if self.bad.len() < limits::LOG_EXAMPLES_MAX {
            let entry = self.bad_line(number, begin, what);
            self.bad.push(entry);
        }
    }
}
