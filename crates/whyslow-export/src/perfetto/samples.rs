//! Samples as nested slices, frame by frame, and sampling gaps: both below their threads.
//!
//! Consecutive samples with the same callers share slices, so the length of a slice is the time in
//! a function, as far as samples show it. `PerfSample` is no alternative: each one counts as one
//! sample, so a sample that stands for ten seconds of sleep would weigh as much as one of ten
//! milliseconds.

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
/// Off-CPU stacks are not samples: scheduling timelines show them.
const SAMPLED: [&str; 4] = ["sample", "wall", "execution", "native"];

/// Open slices of a thread: their names, outermost first.
#[derive(Default)]
struct Open {
    names: Vec<u64>,
    end: Ns,
}

impl Open {
    /// Ends the slices below `depth`.
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

/// Writes samples; returns their number.
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
    let query = (Kind::Stacks, window, &filter);
    let count = each(tables, query, &SAMPLE, &mut |row| {
        let [ts, dur, comm, pid, tid, kind, state, callsite] = SAMPLE;
        let Some(begin) = row.int(ts) else {
            return Ok(());
        };
        let thread = tracks.thread(writer, (row.int(pid), row.int(tid)), row.text(comm))?;
        let own = uuid(&["samples", &thread.to_string()]);
        let track = tracks.named(writer, "samples", (Some(thread), own))?;
        let label = row.text(state).or(row.text(kind)).unwrap_or("?");
        let stack = callsites.stack((row.int(callsite), None));
        let mut names = vec![writer.name(label)];
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
        // Where samples overlap, the later one takes over at its start.
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

/// Writes sampling gaps; inferred ones are marked.
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
        // A gap of a whole process has no thread.
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
            ("gap", gap_label(class)),
            (track, begin, row.int(dur)),
            &facts,
        )
    })
}

/// Label of a class of sampling gaps.
pub(crate) fn gap_label(class: &str) -> &str {
    match class {
        "kernel_wait" => "kernel wait (inferred)",
        "page_fault" => "page fault (inferred)",
        "sampler_late" => "sampler late",
        "cpu_starved" => "no CPU free",
        "process_stopped" => "process stopped",
        other => other,
    }
}
