//! Calls, requests and waits as slices, counters as counters, losses as instants.

use std::ops::ControlFlow;

use rustc_hash::{FxHashMap, FxHashSet, FxHasher};
use whyslow_analysis::read::{Projection, in_order};
use whyslow_analysis::{Filter, Kind, LogRow, Query, Verb, each_row};
use whyslow_model::row::Row as _;
use whyslow_model::tables::{CounterRow, LostEventsRow};
use whyslow_model::{Ns, Window};
use whyslow_store::Tables;

use super::proto::{
    COUNTER, CounterDescriptor, DebugAnnotation, INSTANT, SLICE_BEGIN, SLICE_END, ThreadDescriptor,
    TracePacket, TrackDescriptor, TrackEvent,
};
use super::writer::Writer;
use crate::ExportError;

/// The same track has the same id in every file.
pub(super) fn uuid(parts: &[&str]) -> u64 {
    use std::hash::{Hash, Hasher};
    let mut hasher = FxHasher::default();
    parts.hash(&mut hasher);
    // 0 is the id of the global track.
    hasher.finish() | 1
}

/// Tracks that have been described.
#[derive(Default)]
pub(super) struct Tracks(FxHashSet<u64>);

impl Tracks {
    fn describe(
        &mut self,
        writer: &mut Writer<'_>,
        descriptor: TrackDescriptor,
    ) -> Result<u64, ExportError> {
        let uuid = descriptor.uuid.unwrap_or_default();
        if self.0.insert(uuid) {
            writer.packet(&TracePacket {
                track_descriptor: Some(descriptor),
                ..TracePacket::default()
            })?;
        }
        Ok(uuid)
    }

    pub(super) fn named(
        &mut self,
        writer: &mut Writer<'_>,
        name: &str,
        (parent, uuid): (Option<u64>, u64),
    ) -> Result<u64, ExportError> {
        self.describe(
            writer,
            TrackDescriptor {
                uuid: Some(uuid),
                name: Some(name.to_owned()),
                parent_uuid: parent,
                ..TrackDescriptor::default()
            },
        )
    }

    pub(super) fn thread(
        &mut self,
        writer: &mut Writer<'_>,
        (pid, tid): (Option<i64>, Option<i64>),
        comm: Option<&str>,
    ) -> Result<u64, ExportError> {
        let tid = tid.unwrap_or(0);
        let pid = pid.unwrap_or(tid);
        let uuid = uuid(&["thread", &pid.to_string(), &tid.to_string()]);
        self.describe(
            writer,
            TrackDescriptor {
                uuid: Some(uuid),
                thread: Some(ThreadDescriptor {
                    pid: Some(pid as i32),
                    tid: Some(tid),
                    thread_name: comm.map(str::to_owned),
                }),
                ..TrackDescriptor::default()
            },
        )
    }
}

/// Annotations of a slice.
pub(super) enum Fact<'r> {
    Number(&'static str, Option<i64>),
    Text(&'static str, Option<&'r str>),
}

fn annotations(writer: &mut Writer<'_>, facts: &[Fact<'_>]) -> Vec<DebugAnnotation> {
    let mut list = Vec::new();
    for fact in facts {
        match fact {
            Fact::Number(key, Some(number)) => list.push(DebugAnnotation {
                name_iid: Some(writer.key(key)),
                int_value: Some(*number),
                string_value_iid: None,
            }),
            Fact::Text(key, Some(text)) => list.push(DebugAnnotation {
                name_iid: Some(writer.key(key)),
                int_value: None,
                string_value_iid: Some(writer.value(text)),
            }),
            _ => {}
        }
    }
    list
}

/// Writes a slice; a slice without an end extends to the end of the trace.
pub(super) fn slice(
    writer: &mut Writer<'_>,
    (category, name): (&str, &str),
    (track, begin, dur): (u64, Ns, Option<Ns>),
    facts: &[Fact<'_>],
) -> Result<(), ExportError> {
    let begun = TrackEvent {
        r#type: Some(SLICE_BEGIN),
        category_iids: vec![writer.category(category)],
        name_iid: Some(writer.name(name)),
        track_uuid: Some(track),
        debug_annotations: annotations(writer, facts),
        counter_value: None,
    };
    writer.event(begin, begun)?;
    let Some(dur) = dur else {
        return Ok(());
    };
    let ended = TrackEvent {
        r#type: Some(SLICE_END),
        track_uuid: Some(track),
        ..TrackEvent::default()
    };
    writer.event(begin.saturating_add(dur), ended)
}

/// Passes on rows of a kind's log until a write fails.
pub(super) fn each(
    tables: &dyn Tables,
    (kind, window, filter): (Kind, Option<Window>, &Filter),
    columns: &[&'static str],
    write: &mut dyn FnMut(&LogRow<'_>) -> Result<(), ExportError>,
) -> Result<u64, ExportError> {
    let query = Query {
        window,
        filter: filter.clone(),
        ..Query::new(kind, Verb::Log)
    };
    let (mut count, mut failed) = (0, None);
    each_row(tables, &query, columns, &mut |row| match write(row) {
        Ok(()) => {
            count += 1;
            ControlFlow::Continue(())
        }
        Err(error) => {
            failed = Some(error);
            ControlFlow::Break(())
        }
    })?;
    failed.map_or(Ok(count), Err)
}

const CALL: [&str; 10] = [
    "ts_ns",
    "dur_ns",
    "name",
    "comm",
    "pid",
    "tid",
    "path",
    "path2",
    "bytes_requested",
    "ret",
];

/// System calls, on the tracks of their threads.
pub(super) fn calls(
    tables: &dyn Tables,
    window: Option<Window>,
    filter: &Filter,
    writer: &mut Writer<'_>,
) -> Result<u64, ExportError> {
    let mut tracks = Tracks::default();
    each(
        tables,
        (Kind::Syscalls, window, filter),
        &CALL,
        &mut |row| {
            let [ts, dur, name, comm, pid, tid, path, path2, size, ret] = CALL;
            let Some(begin) = row.int(ts) else {
                return Ok(());
            };
            let track = tracks.thread(writer, (row.int(pid), row.int(tid)), row.text(comm))?;
            let facts = [
                Fact::Text("path", row.text(path)),
                Fact::Text("path2", row.text(path2)),
                Fact::Number("size", row.int(size)),
                Fact::Number("ret", row.int(ret)),
            ];
            let names = ("syscall", row.text(name).unwrap_or("?"));
            slice(writer, names, (track, begin, row.int(dur)), &facts)
        },
    )
}

const REQUEST: [&str; 11] = [
    "ts_ns",
    "dur_ns",
    "queue_ns",
    "device_ns",
    "dev",
    "op",
    "sector",
    "bytes",
    "comm",
    "pid",
    "tid",
];

/// Block requests. Requests in flight at the same time get separate tracks, because slices of a
/// track must not overlap.
pub(super) fn requests(
    tables: &dyn Tables,
    window: Option<Window>,
    filter: &Filter,
    writer: &mut Writer<'_>,
) -> Result<u64, ExportError> {
    let mut tracks = Tracks::default();
    let mut slots: FxHashMap<String, Vec<Ns>> = FxHashMap::default();
    each(
        tables,
        (Kind::Block, window, filter),
        &REQUEST,
        &mut |row| {
            let [
                ts,
                dur,
                queue,
                device,
                dev,
                op,
                sector,
                bytes,
                comm,
                pid,
                tid,
            ] = REQUEST;
            let Some(begin) = row.int(ts) else {
                return Ok(());
            };
            let name = row.text(dev).unwrap_or("?");
            let end = row
                .int(dur)
                .map_or(Ns::MAX, |dur| begin.saturating_add(dur));
            let of_device = slots.entry(name.to_owned()).or_default();
            let slot = of_device.iter().position(|until| *until <= begin);
            let slot = slot.unwrap_or_else(|| {
                of_device.push(Ns::MIN);
                of_device.len() - 1
            });
            of_device[slot] = end;
            let parent = tracks.named(writer, "block devices", (None, uuid(&["devices"])))?;
            let own = uuid(&["device", name, &slot.to_string()]);
            let track = tracks.named(writer, name, (Some(parent), own))?;
            let facts = [
                Fact::Number("bytes", row.int(bytes)),
                Fact::Number("sector", row.int(sector)),
                Fact::Number("queue_ns", row.int(queue)),
                Fact::Number("device_ns", row.int(device)),
                Fact::Text("comm", row.text(comm)),
                Fact::Number("pid", row.int(pid)),
                Fact::Number("tid", row.int(tid)),
            ];
            let names = ("block", row.text(op).unwrap_or("?"));
            slice(writer, names, (track, begin, row.int(dur)), &facts)
        },
    )
}

const WAIT: [&str; 14] = [
    "ts_ns",
    "dur_ns",
    "kind",
    "mode",
    "lock",
    "function",
    "comm",
    "pid",
    "tid",
    "object",
    "holder_comm",
    "holder_function",
    "confidence",
    "reported_by",
];

/// Lock waits, below the waiting threads.
pub(super) fn lock_waits(
    tables: &dyn Tables,
    window: Option<Window>,
    filter: &Filter,
    writer: &mut Writer<'_>,
) -> Result<u64, ExportError> {
    let mut tracks = Tracks::default();
    each(tables, (Kind::Locks, window, filter), &WAIT, &mut |row| {
        let [ts, dur, kind, mode, lock, function, comm, pid, tid, ..] = WAIT;
        let [.., object, holder, doing, confidence, reported_by] = WAIT;
        let Some(begin) = row.int(ts) else {
            return Ok(());
        };
        let thread = tracks.thread(writer, (row.int(pid), row.int(tid)), row.text(comm))?;
        let name = match row.text(reported_by) {
            Some(_) => "user-space locks",
            None => "kernel locks",
        };
        let own = uuid(&[name, &thread.to_string()]);
        let track = tracks.named(writer, name, (Some(thread), own))?;
        let facts = [
            Fact::Text("mode", row.text(mode)),
            Fact::Text("lock", row.text(lock)),
            Fact::Text("function", row.text(function)),
            Fact::Text("object", row.text(object)),
            Fact::Text("held_by", row.text(holder)),
            Fact::Text("holder_doing", row.text(doing)),
            Fact::Text("confidence", row.text(confidence)),
        ];
        let names = ("lock", row.text(kind).unwrap_or("?"));
        slice(writer, names, (track, begin, row.int(dur)), &facts)
    })
}

/// Counters of the machine and of processes.
pub(super) fn counters(
    tables: &dyn Tables,
    window: Option<Window>,
    writer: &mut Writer<'_>,
) -> Result<u64, ExportError> {
    let mut projection = Projection::new(CounterRow::TABLE);
    let [ts, value, pid] = ["ts", "value", "pid"].map(|name| projection.need(name));
    let [name, unit, comm, place] =
        ["name", "unit", "comm", "mount_point"].map(|name| projection.need(name));
    let mut tracks = Tracks::default();
    let (mut count, mut failed) = (0, None);
    in_order(tables, &projection.scan(window), |batch| {
        let (ts, value, pid) = (ts.ints(batch)?, value.ints(batch)?, pid.ints(batch)?);
        let (name, unit) = (name.texts(batch)?, unit.texts(batch)?);
        let (comm, place) = (comm.texts(batch)?, place.texts(batch)?);
        for row in 0..batch.num_rows() as u32 {
            if window.is_some_and(|window| !window.contains(ts.at(row))) {
                continue;
            }
            let mut title = name.get(row).unwrap_or("?").to_owned();
            if let Some(pid) = pid.get(row) {
                title = format!("{title} of {} {pid}", comm.get(row).unwrap_or("?"));
            }
            if let Some(place) = place.get(row) {
                title = format!("{title} of {place}");
            }
            let descriptor = TrackDescriptor {
                uuid: Some(uuid(&["counter", &title])),
                name: Some(title),
                counter: Some(CounterDescriptor {
                    unit_name: unit.get(row).map(str::to_owned),
                }),
                ..TrackDescriptor::default()
            };
            let event = |track| TrackEvent {
                r#type: Some(COUNTER),
                track_uuid: Some(track),
                counter_value: value.get(row),
                ..TrackEvent::default()
            };
            let written = tracks
                .describe(writer, descriptor)
                .and_then(|track| writer.event(ts.at(row), event(track)));
            if let Err(error) = written {
                failed = Some(error);
                return Ok(ControlFlow::Break(()));
            }
            count += 1;
        }
        Ok(ControlFlow::Continue(()))
    })?;
    failed.map_or(Ok(count), Err)
}

/// Ranges with lost events, as instants on their own track.
pub(super) fn losses(
    tables: &dyn Tables,
    window: Option<Window>,
    writer: &mut Writer<'_>,
) -> Result<u64, ExportError> {
    let mut symbols = whyslow_model::Symbols::new();
    let mut tracks = Tracks::default();
    let mut count = 0;
    for loss in whyslow_store::rows::<LostEventsRow>(tables, &mut symbols)? {
        if window.is_some_and(|window| !window.overlaps(loss.ts, loss.ts_end)) {
            continue;
        }
        let track = tracks.named(writer, "lost events", (None, uuid(&["lost"])))?;
        let name = writer.name("lost events");
        let facts = [
            Fact::Text("kind", Some(symbols.get(loss.kind))),
            Fact::Number("count", loss.count),
            Fact::Number("dur_ns", loss.dur),
        ];
        let event = TrackEvent {
            r#type: Some(INSTANT),
            name_iid: Some(name),
            track_uuid: Some(track),
            debug_annotations: annotations(writer, &facts),
            ..TrackEvent::default()
        };
        writer.event(loss.ts, event)?;
        count += 1;
    }
    Ok(count)
}
