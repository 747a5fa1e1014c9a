//! Samples as slices within slices, frame by frame, and times without any: both below their threads.
//!
//! Neighbours with the same callers share their slices, so what is seen is how long a thread was in a
//! function, as far as samples tell. `PerfSample` was rejected: there each counts as one, and a sample that
//! stands for ten seconds of sleep would weigh as much as one of ten milliseconds.

use std::collections::BTreeMap;

use whyslow_analysis::{Filter, Kind};
use whyslow_model::{Ns, Window};
use whyslow_store::Tables;

use super::proto::{SLICE_BEGIN, SLICE_END, TrackEvent};
use super::slices::{Fact, Tracks, each, slice, uuid};
use super::writer::Writer;
use crate::ExportError;
use crate::stacks::Callsites;

const SAMPLE: [&str; 8] = [
    "ts_ns",
    "dur_ns",
    "comm",
    "pid",
    "tid",
    "kind",
    "state",
    "callsite_id",
];
/// Stacks of who left a CPU are no samples: time lines of scheduling tell of them.
const SAMPLED: [&str; 4] = ["sample", "wall", "execution", "native"];

/// Slices of a thread that have no end yet: their names, outermost first.
#[derive(Default)]
struct Open {
    names: Vec<u64>,
    end: Ns,
}

impl Open {
    /// Ends what is deeper than that.
    fn cut(
        &mut self,
        writer: &mut Writer<'_>,
        track: u64,
        (depth, at): (usize, Ns),
    ) -> Result<(), ExportError> {
        while self.names.len() > depth {
            self.names.pop();
            let ended = TrackEvent {
                r#type: Some(SLICE_END),
                track_uuid: Some(track),
                ..TrackEvent::default()
            };
            writer.event(at, ended)?;
        }
        Ok(())
    }
}

/// Writes what samplers saw; returns how many samples that were.
pub(super) fn samples(
    tables: &dyn Tables,
    window: Option<Window>,
    filter: &Filter,
    writer: &mut Writer<'_>,
) -> Result<u64, ExportError> {
    let callsites = Callsites::read(tables)?;
    let mut filter = filter.clone();
    if filter.ops.is_empty() {
        filter.ops = SAMPLED.map(str::to_owned).into();
    }
    let mut tracks = Tracks::default();
    let mut threads: BTreeMap<u64, Open> = BTreeMap::new();
    let asked = (Kind::Stacks, window, &filter);
    let count = each(tables, asked, &SAMPLE, &mut |row| {
        let [ts, dur, comm, pid, tid, kind, state, callsite] = SAMPLE;
        let Some(begin) = row.int(ts) else {
            return Ok(());
        };
        let thread = tracks.thread(writer, (row.int(pid), row.int(tid)), row.text(comm))?;
        let own = uuid(&["samples", &thread.to_string()]);
        let track = tracks.named(writer, "samples", (Some(thread), own))?;
        let said = row.text(state).or(row.text(kind)).unwrap_or("?");
        let stack = callsites.stack((row.int(callsite), None));
        let mut names = vec![writer.name(said)];
        let frames = stack
            .iter()
            .filter_map(|place| callsites.frames.get(*place));
        names.extend(frames.map(|frame| writer.name(&frame.name)));
        let open = threads.entry(track).or_default();
        let shared = if begin > open.end {
            0
        } else {
            let both = open.names.iter().zip(&names);
            both.take_while(|(a, b)| a == b).count()
        };
        // Of times that overlap the later sample is right from its begin on.
        let at = open.end.min(begin);
        open.cut(writer, track, (shared, at))?;
        for (depth, name) in (shared..).zip(&names[shared..]) {
            let category = writer.category(if depth == 0 { "sample" } else { "frame" });
            let begun = TrackEvent {
                r#type: Some(SLICE_BEGIN),
                category_iids: vec![category],
                name_iid: Some(*name),
                track_uuid: Some(track),
                ..TrackEvent::default()
            };
            writer.event(begin, begun)?;
        }
        open.names = names;
        open.end = begin.saturating_add(row.int(dur).unwrap_or(0).max(0));
        Ok(())
    })?;
    for (track, open) in &mut threads {
        let end = open.end;
        open.cut(writer, *track, (0, end))?;
    }
    Ok(count)
}

const GAP: [&str; 9] = [
    "ts_ns",
    "dur_ns",
    "comm",
    "pid",
    "tid",
    "class",
    "function",
    "before_function",
    "group_id",
];

/// Times without samples; what is inferred says so.
pub(super) fn gaps(
    tables: &dyn Tables,
    window: Option<Window>,
    filter: &Filter,
    writer: &mut Writer<'_>,
) -> Result<u64, ExportError> {
    let mut tracks = Tracks::default();
    each(tables, (Kind::Gaps, window, filter), &GAP, &mut |row| {
        let [ts, dur, comm, pid, tid, class, ended_in, before, group] = GAP;
        let Some(begin) = row.int(ts) else {
            return Ok(());
        };
        let class = row.text(class).unwrap_or("?");
        // Of a process that was stopped no thread has one.
        let parent = match row.int(tid) {
            None => None,
            known => Some(tracks.thread(writer, (row.int(pid), known), row.text(comm))?),
        };
        let own = uuid(&["not sampled", &parent.unwrap_or(0).to_string()]);
        let track = tracks.named(writer, "not sampled", (parent, own))?;
        let facts = [
            Fact::Text("ended_in", row.text(ended_in)),
            Fact::Text("before", row.text(before)),
            Fact::Number("group", row.int(group)),
        ];
        slice(
            writer,
            ("gap", said(class)),
            (track, begin, row.int(dur)),
            &facts,
        )
    })
}

/// A class of times without samples, for readers who do not know the classes.
pub(crate) fn said(class: &str) -> &str {
    match class {
        "kernel_wait" => "kernel wait (inferred)",
        "page_fault" => "page fault (inferred)",
        "sampler_late" => "sampler late",
        "cpu_starved" => "no CPU free",
        "process_stopped" => "process stopped",
        other => other,
    }
}
