//! Import statistics: numbers of records, anomalies, and properties that the sources report. These
//! rows do not come from events.

use std::collections::BTreeMap;

use whyslow_model::sort::IndexSort;
use whyslow_model::stat::{self, Severity, Stat};
use whyslow_model::tables::{ClockSnapshotRow, EmitAll, ImportLogRow, MetadataRow, TraceStatRow};
use whyslow_model::{Ns, Symbols};

use super::{AnomalyReport, RecordCounts};
use crate::clock::ClockRelation;
use crate::trackers::Anomalies;

/// An example of an anomaly, or a note.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LogEntry {
    /// File relative to the source.
    pub(super) source: Option<String>,
    pub(super) byte_offset: Option<i64>,
    pub(super) ts: Option<Ns>,
    pub(super) text: String,
}

#[derive(Debug)]
struct Noted {
    stat: &'static Stat,
    count: u64,
    examples: Vec<LogEntry>,
}

#[derive(Debug, Default)]
pub(super) struct Account {
    pub(super) host: Option<String>,
    pub(super) zone: Option<String>,
    /// By source index.
    pub(super) source_kinds: Vec<String>,
    /// Label of the source, key, value.
    facts: Vec<(String, String, String)>,
    clocks: Vec<(String, ClockRelation)>,
    /// Label of the source, and event name.
    events: BTreeMap<(String, String), u64>,
    noted: Vec<Noted>,
    read: u64,
    skipped: u64,
}

impl Account {
    pub(super) fn add_fact(&mut self, label: &str, key: &str, value: &str) {
        if key == "hostname" && self.host.is_none() {
            self.host = Some(value.to_owned());
        }
        if key == "zone" && self.zone.is_none() {
            self.zone = Some(value.to_owned());
        }
        if key == "trace_creation_datetime" && self.zone.is_none() {
            self.zone = crate::clock::zone_of_creation(value);
        }
        let fact = (label.to_owned(), key.to_owned(), value.to_owned());
        // Consecutive spools repeat it.
        if !self.facts.contains(&fact) {
            self.facts.push(fact);
        }
    }

    pub(super) fn add_clock(&mut self, label: &str, clock: ClockRelation) {
        self.clocks.push((label.to_owned(), clock));
    }

    pub(super) fn add_events(&mut self, label: &str, name: &str, count: u64) {
        let key = (label.to_owned(), name.to_owned());
        let known = self.events.entry(key).or_default();
        *known = known.saturating_add(count);
    }

    pub(super) fn add_records(&mut self, read: u64, skipped: u64) {
        // In profiles, a line can stand for many samples.
        self.read = self.read.saturating_add(read);
        self.skipped = self.skipped.saturating_add(skipped);
    }

    pub(super) fn add_anomaly(&mut self, stat: &'static Stat, count: u64, examples: &[LogEntry]) {
        if count == 0 {
            return;
        }
        let known = self
            .noted
            .iter_mut()
            .find(|noted| std::ptr::eq(noted.stat, stat));
        match known {
            Some(noted) => {
                noted.count = noted.count.saturating_add(count);
                noted.examples.extend_from_slice(examples);
            }
            None => self.noted.push(Noted {
                stat,
                count,
                examples: examples.to_vec(),
            }),
        }
    }

    pub(super) fn add_late(&mut self, (count, distance_ns): (u64, Ns)) {
        let text = format!("by at most {distance_ns} ns");
        let example = LogEntry {
            source: None,
            byte_offset: None,
            ts: None,
            text,
        };
        self.add_anomaly(&stat::TIME_CLAMPED, count, &[example]);
    }

    pub(super) fn add_tracked(&mut self, anomalies: &Anomalies) {
        for anomaly in anomalies.iter() {
            let example = LogEntry {
                source: None,
                byte_offset: None,
                ts: anomaly.ts_first,
                text: anomalies.text(anomaly.stat).unwrap_or_default().to_owned(),
            };
            self.add_anomaly(anomaly.stat, anomaly.count, &[example]);
        }
    }

    pub(super) fn records(&self) -> RecordCounts {
        RecordCounts {
            read: self.read,
            accepted: self.read - self.skipped,
            skipped: self.skipped,
        }
    }

    pub(super) fn report(&self) -> Vec<AnomalyReport> {
        self.sorted()
            .into_iter()
            .map(|noted| AnomalyReport {
                name: noted.stat.name,
                severity: noted.stat.severity,
                doc: noted.stat.doc,
                count: noted.count,
                text: noted.examples.first().map_or(String::new(), LogEntry::line),
            })
            .collect()
    }

    /// Rows of `metadata`, `clock_snapshot`, `trace_stat` and `import_log`.
    pub(super) fn write<S: EmitAll>(&self, symbols: &mut Symbols, sink: &mut S) {
        for (id, (label, key, value)) in self.facts.iter().enumerate() {
            sink.emit(MetadataRow {
                id: id as i64,
                source: Some(symbols.intern(label)),
                key: symbols.intern(key),
                value: symbols.intern(value),
            });
        }
        for (id, (label, clock)) in self.clocks.iter().enumerate() {
            sink.emit(ClockSnapshotRow {
                id: id as i64,
                source: symbols.intern(label),
                clock: symbols.intern(&clock.clock),
                frequency: clock.frequency,
                value: clock.value,
                ts: clock.ts,
                shift_ns: clock.shift_ns,
            });
        }
        self.write_stats(symbols, sink);
        self.write_log(symbols, sink);
    }

    fn write_stats<S: EmitAll>(&self, symbols: &mut Symbols, sink: &mut S) {
        let mut id = 0;
        let mut stat = |kind, name: &str, severity: Severity, source: Option<&str>, count| {
            sink.emit(TraceStatRow {
                id,
                kind: symbols.intern(kind),
                name: symbols.intern(name),
                severity: symbols.intern(severity.name()),
                source: source.map(|source| symbols.intern(source)),
                count: i64::try_from(count).unwrap_or(i64::MAX),
            });
            id += 1;
        };
        let records = self.records();
        let totals = [
            ("records_read", records.read),
            ("records_accepted", records.accepted),
            ("records_skipped", records.skipped),
        ];
        for (name, count) in totals {
            stat("total", name, Severity::Info, None, count);
        }
        for noted in self.sorted() {
            let Stat { name, severity, .. } = noted.stat;
            stat("anomaly", name, *severity, None, noted.count);
        }
        for ((label, name), count) in &self.events {
            stat("event", name, Severity::Info, Some(label), *count);
        }
    }

    fn write_log<S: EmitAll>(&self, symbols: &mut Symbols, sink: &mut S) {
        let mut id = 0;
        for noted in self.sorted() {
            for example in &noted.examples {
                let text = if example.text.is_empty() {
                    format!("{} times: {}", noted.count, noted.stat.doc)
                } else {
                    example.text.clone()
                };
                sink.emit(ImportLogRow {
                    id,
                    severity: symbols.intern(noted.stat.severity.name()),
                    name: symbols.intern(noted.stat.name),
                    source: example.source.as_deref().map(|path| symbols.intern(path)),
                    byte_offset: example.byte_offset,
                    ts: example.ts,
                    text: symbols.intern(&text),
                });
                id += 1;
            }
        }
    }

    fn sorted(&self) -> Vec<&Noted> {
        let mut noted: Vec<&Noted> = self.noted.iter().collect();
        noted.index_sort_by_key(|noted| (std::cmp::Reverse(noted.stat.severity), noted.stat.name));
        noted
    }
}

impl LogEntry {
    fn line(&self) -> String {
        let place = match (&self.source, self.byte_offset) {
            (Some(source), Some(offset)) => format!("{source} at byte {offset}"),
            (Some(source), None) => source.clone(),
            _ => String::new(),
        };
        match (place.is_empty(), self.text.is_empty()) {
            (false, false) => format!("{place}: {}", self.text),
            (false, true) => place,
            _ => self.text.clone(),
        }
    }
}
