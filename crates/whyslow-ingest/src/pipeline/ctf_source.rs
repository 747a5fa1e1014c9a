//! Common Trace Format traces as a source of events.

use std::ops::ControlFlow;
use std::path::Path;

use whyslow_model::event::{Loss, LossKind};
use whyslow_model::sort::IndexSort;
use whyslow_model::stat;

use super::ImportError;
use super::account::LogEntry;
use super::session::{RowSink, Session};
use crate::clock::ClockRelation;
use crate::importers::ctf::class::EnvironmentValue;
use crate::importers::ctf::consumer::{self, ClassRef, Consumer, Domain, Trace, Want};
use crate::importers::ctf::decoded::DecodedEvent;
use crate::importers::ctf::lttng::Mapper;
use crate::importers::ctf::reader::{CtfReader, Summary};
use crate::importers::tracepoint::topics::DeclaredTopics;

/// Reads all traces into the session.
pub(super) fn read<S: RowSink>(
    reader: &mut CtfReader,
    session: &mut Session<'_, S>,
) -> Result<(), ImportError> {
    check_hosts(reader.traces())?;
    for trace in reader.traces() {
        describe(trace, session);
    }
    let streams = reader.streams().iter().map(|stream| {
        let trace = &reader.traces()[stream.trace];
        let first = stream.paths.first().map_or(Path::new(""), |path| path);
        file_label(trace, first)
    });
    let mut import = CtfImport {
        streams: streams.collect(),
        mapper: Mapper::default(),
        text: String::new(),
        missing: 0,
        missing_examples: Vec::new(),
        session,
    };
    let summary = reader.read(&mut import)?;
    import.close(reader, &summary);
    Ok(())
}

struct CtfImport<'s, 'o, S> {
    /// Labels of the first files of the streams.
    streams: Vec<String>,
    mapper: Mapper,
    text: String,
    /// Events without a required field.
    missing: u64,
    missing_examples: Vec<(usize, LogEntry)>,
    session: &'s mut Session<'o, S>,
}

impl<S: RowSink> Consumer for CtfImport<'_, '_, S> {
    fn wants(&mut self, class: &ClassRef<'_>) -> Want {
        self.mapper.wants(class)
    }

    #[inline]
    fn event(&mut self, decoded: &DecodedEvent<'_>) -> ControlFlow<()> {
        let mut args = None;
        if let Some(event) = self.mapper.map(decoded, &mut self.text, &mut args) {
            self.session.event(event)
        } else {
            self.count_missing(decoded);
            ControlFlow::Continue(())
        }
    }

    fn lost(&mut self, loss: &consumer::Loss) {
        let (kind, count, ts_end) = match loss.what {
            consumer::LossKind::Events(count) => (LossKind::Events, count, loss.end),
            // from an earlier session of the tracer: nothing is missing in this recording
            consumer::LossKind::EventsBefore(count) => (LossKind::Events, count, loss.begin),
            consumer::LossKind::Packets(count) => (LossKind::Packets, count, loss.end),
            consumer::LossKind::Bytes(count) => (LossKind::Bytes, count, loss.end),
        };
        self.session.loss(&Loss {
            ts: loss.begin,
            ts_end: Some(ts_end.max(loss.begin)),
            cpu: loss.cpu,
            stream: self.streams.get(loss.stream).map_or("", String::as_str),
            kind,
            count: i64::try_from(count).ok(),
        });
    }

    fn progress(&mut self, progress: consumer::Progress) {
        self.session
            .progress(progress.bytes_done, progress.bytes_total);
    }
}

impl<S: RowSink> CtfImport<'_, '_, S> {
    #[cold]
    fn count_missing(&mut self, decoded: &DecodedEvent<'_>) {
        self.missing += 1;
        let mut examples = self.missing_examples.iter();
        let known = examples.any(|(class, _)| *class == decoded.class);
        if known || self.missing_examples.len() >= crate::limits::LOG_EXAMPLES_MAX {
            return;
        }
        let example = LogEntry {
            source: self.streams.get(decoded.stream).cloned(),
            byte_offset: Some(decoded.offset as i64),
            ts: Some(decoded.ts),
            text: String::new(),
        };
        self.missing_examples.push((decoded.class, example));
    }

    /// Adds the results to the account.
    fn close(self, reader: &CtfReader, summary: &Summary) {
        let account = &mut self.session.account;
        account.add_records(summary.events_read, summary.events_skipped + self.missing);
        let traces = reader.traces();
        let (mut unused, mut unused_names) = (0, Vec::new());
        for class in reader.classes() {
            let count = summary.events_by_class.get(class.index).copied();
            let (count, name) = (count.unwrap_or(0), &class.event.name);
            if count == 0 {
                continue;
            }
            account.add_events(&trace_label(traces, class.trace), name, count);
            if self.mapper.is_unused(class.index) {
                unused += count;
                unused_names.push(remark(format!("{name}: {count} events")));
            }
        }
        unused_names.index_sort_by(|a, b| a.text.cmp(&b.text));
        account.add_anomaly(&stat::EVENT_NOT_USED, unused, &unused_names);
        let missing = self.missing_examples.into_iter().map(|(class, example)| {
            let name = &reader.class(class).event.name;
            let text = format!("`{name}` without a required field");
            LogEntry { text, ..example }
        });
        let missing: Vec<LogEntry> = missing.collect();
        account.add_anomaly(&stat::EVENT_FIELD_MISSING, self.missing, &missing);
        for anomaly in &summary.anomalies {
            let trace = traces
                .iter()
                .find(|trace| anomaly.path.starts_with(&trace.path));
            let example = LogEntry {
                source: trace.map(|trace| file_label(trace, &anomaly.path)),
                byte_offset: Some(anomaly.byte_offset as i64),
                ts: None,
                text: anomaly.text.clone(),
            };
            account.add_anomaly(anomaly.stat, anomaly.count, &[example]);
        }
    }
}

fn remark(text: String) -> LogEntry {
    LogEntry {
        source: None,
        byte_offset: None,
        ts: None,
        text,
    }
}

/// Threads and CPUs are identified by number, so those of two machines cannot be distinguished.
fn check_hosts(traces: &[Trace]) -> Result<(), ImportError> {
    let mut hosts: Vec<String> = traces
        .iter()
        .filter(|trace| trace.domain != Domain::Unknown)
        .filter_map(|trace| trace.hostname().map(str::to_owned))
        .collect();
    hosts.index_sort();
    hosts.dedup();
    match hosts.len() {
        0 | 1 => Ok(()),
        _ => Err(ImportError::SeveralHosts { hosts }),
    }
}

fn describe<S: RowSink>(trace: &Trace, session: &mut Session<'_, S>) {
    let account = &mut session.account;
    if trace.domain != Domain::Unknown {
        "lttng".clone_into(&mut account.source_kinds[trace.source]);
    }
    let label = label(trace);
    for (key, value) in &trace.class.environment {
        match value {
            EnvironmentValue::Text(text) => account.add_fact(&label, key, text),
            EnvironmentValue::Integer(number) => {
                account.add_fact(&label, key, &number.to_string());
            }
        }
    }
    // Only events that were enabled are declared.
    if trace.domain != Domain::Unknown {
        let events = trace.class.streams.iter().flat_map(|stream| &stream.events);
        let events: Vec<&str> = events.map(|event| event.name.as_str()).collect();
        for (key, value) in DeclaredTopics::of(&events).facts() {
            account.add_fact(&label, key, &value);
        }
    }
    for clock in &trace.class.clocks {
        account.add_clock(&label, ClockRelation::of(clock, trace.shift_ns));
    }
}

/// Name of the trace in tables: its path within the source, independent of the location of the
/// source.
fn label(trace: &Trace) -> String {
    let place = match trace.layout.as_str() {
        "" => "trace",
        layout => layout,
    };
    match trace.source {
        0 => place.to_owned(),
        source => format!("{}:{place}", source + 1),
    }
}

/// The label of the first part of a rotated trace is used for all of them.
fn trace_label(traces: &[Trace], trace: &Trace) -> String {
    let first = traces
        .iter()
        .find(|other| other.identity == trace.identity)
        .unwrap_or(trace);
    label(first)
}

fn file_label(trace: &Trace, path: &Path) -> String {
    let file = path.strip_prefix(&trace.path).unwrap_or(path);
    format!("{}/{}", label(trace), file.display())
}
