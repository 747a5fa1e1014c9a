//! `requests threads`: one request as a waterfall: its phases, the threads that had it, and their
//! states. For a client's request, it includes the data from its server.
//!
//! A line of letters covers the time from the start to the end of the request; each letter is the
//! state with the most time in its part, on a tie the one that comes first in [`LETTERS`].

use std::ops::ControlFlow;
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};
use whyslow_model::answer::{AnswerColumn, AnswerTable, Measure, Value};
use whyslow_model::sort::IndexSort;
use whyslow_model::{Ns, Window};

use super::stretches::{self, ByThread, Stretch};
use super::{Request, chosen};
use crate::AnalysisError;
use crate::context::Context;
use crate::facts;
use crate::fold::in_order;
use crate::keys::{Key, KeyValue};
use crate::kinds::{PHASES, STATES, SYSCALLS};
use crate::query::Filter;

const PARTS: usize = 60;
const WAITS: usize = 30;
/// A request with more threads is passed around in a loop.
const STRETCHES_MAX: usize = 1_000;

/// States and their letters; all others are `?`.
const LETTERS: [(&str, char); 7] = [
    ("running", 'R'),
    ("uninterruptible", 'D'),
    ("runnable", 'r'),
    ("stopped", 'T'),
    ("traced", 't'),
    ("sleeping", 'S'),
    ("", '?'),
];
/// States with a column of their own: index in [`LETTERS`], and the column.
const STATE_COLUMNS: [(usize, &str, &str); 4] = [
    (0, "running_ns", "running"),
    (2, "runnable_ns", "runnable"),
    (1, "uninterruptible_ns", "uninterruptible"),
    (5, "sleeping_ns", "sleeping"),
];

pub(crate) fn threads(context: &Context<'_>) -> Result<Vec<AnswerTable>, AnalysisError> {
    let Some(request) = chosen(context)? else {
        return Ok(vec![phase_table(), thread_table(), wait_table()]);
    };
    let ids: FxHashSet<i64> = [Some(request.id), request.server]
        .into_iter()
        .flatten()
        .collect();
    let window = request.window(context);
    let phases = phases(context, &request, &ids)?;
    let mut stretches = stretches::read(context, Some(&ids))?;
    if stretches.len() > STRETCHES_MAX {
        context.note(format!(
            "the request was handed over {} times: only the first {STRETCHES_MAX} are shown",
            stretches.len()
        ));
        stretches.truncate(STRETCHES_MAX);
    }
    if let (true, Some(utid)) = (stretches.is_empty(), request.utid) {
        context.note(
            "other threads of the request unavailable: only the one that started it is known"
                .into(),
        );
        stretches.push(of_request(context, &request, utid));
    }
    let mut lines = vec![Line::default(); stretches.len()];
    let limit = context.limit(WAITS);
    let mut waits = states(context, &stretches, &mut lines, (window, limit))?;
    name_calls(context, &stretches, &mut waits)?;
    let mut shown = thread_table();
    facts::push(
        &mut shown,
        "request",
        "request",
        Measure::Id,
        format!("request:{}", request.id),
    );
    facts::push(
        &mut shown,
        "description",
        "description",
        Measure::Text,
        request.title.as_str(),
    );
    facts::push(
        &mut shown,
        "part_ns",
        "time per letter",
        Measure::Duration,
        width(window),
    );
    for (stretch, line) in stretches.iter().zip(&lines) {
        shown.rows.push(thread_cells(context, stretch, line));
    }
    let mut wait_rows = wait_table();
    waits.index_sort_by_ints(|wait| [wait.ts, wait.stretch as i64, 0]);
    for wait in waits {
        wait_rows
            .rows
            .push(wait.cells(context, &stretches[wait.stretch]));
    }
    context.note(
        "R running, r waiting for a CPU, D uninterruptible sleep, S sleep, T stopped, t traced, \
         ? other; blank if the thread did not have the request, or its state is unknown"
            .into(),
    );
    Ok(vec![phases, shown, wait_rows])
}

/// The thread that started a request, if no others are known.
fn of_request(context: &Context<'_>, request: &Request, utid: i64) -> Stretch {
    let name = context.names.thread(utid);
    let window = request.window(context);
    Stretch {
        request: request.id,
        utid,
        ts: window.begin,
        ts_end: window.end,
        received_by: None,
        from_utid: None,
        is_shared: false,
        tid: name.map(|name| name.tid),
        comm: name.and_then(|name| name.comm.as_deref()).map(Arc::from),
    }
}

/// At least 1 ns.
fn width(window: Window) -> Ns {
    let parts = PARTS as i64;
    ((window.length() + parts - 1) / parts).max(1)
}

/// Time by state and part.
#[derive(Clone)]
struct Line {
    parts: [[Ns; LETTERS.len()]; PARTS],
    total: [Ns; LETTERS.len()],
}

impl Default for Line {
    fn default() -> Self {
        Self {
            parts: [[0; LETTERS.len()]; PARTS],
            total: [0; LETTERS.len()],
        }
    }
}

impl Line {
    fn add(&mut self, state: usize, (ts, ts_end): (Ns, Ns), window: Window) {
        self.total[state] += ts_end - ts;
        let width = width(window);
        let place = |ts: Ns| ((ts - window.begin).max(0) / width).min(PARTS as i64 - 1) as usize;
        for part in place(ts)..=place(ts_end.max(ts + 1) - 1) {
            let begin = window.begin + part as i64 * width;
            let inside = ts_end.min(begin + width) - ts.max(begin);
            self.parts[part][state] += inside.max(0);
        }
    }

    fn letters(&self) -> String {
        let letter = |part: &[Ns; LETTERS.len()]| {
            let states = part.iter().zip(LETTERS).rev();
            let most = states.max_by_key(|(time, _)| **time);
            most.filter(|(time, _)| **time > 0)
                .map_or(' ', |(_, (_, letter))| letter)
        };
        self.parts.iter().map(letter).collect()
    }
}

/// An interval in one state.
#[derive(Debug, Clone)]
struct Wait {
    stretch: usize,
    ts: Ns,
    dur: Ns,
    state: String,
    waker: Option<i64>,
    call: Option<String>,
}

impl Wait {
    fn cells(&self, context: &Context<'_>, stretch: &Stretch) -> Vec<Value> {
        vec![
            self.ts.into(),
            self.dur.into(),
            stretch.comm.as_deref().into(),
            stretch.tid.into(),
            self.state.as_str().into(),
            self.call.clone().into(),
            self.waker.map(|utid| thread_label(context, utid)).into(),
        ]
    }
}

/// Adds the states of threads in their stretches to the lines; returns the longest off-CPU
/// intervals.
fn states(
    context: &Context<'_>,
    stretches: &[Stretch],
    lines: &mut [Line],
    (window, limit): (Window, usize),
) -> Result<Vec<Wait>, AnalysisError> {
    let by_thread = ByThread::new(stretches);
    let mut waits: Vec<Wait> = Vec::new();
    let Some(hull) = by_thread.hull().filter(|_| context.has(STATES.table.name)) else {
        return Ok(waits);
    };
    let mut pass = context.pass_in(&STATES, &[], &Filter::default(), Some(hull))?;
    let [utid, ts, ts_end, waker] =
        ["utid", "ts", "ts_end", "waker_utid"].map(|name| pass.projection.need(name));
    let state = pass.projection.need("state");
    let whole_end = context.recording_end();
    in_order(context.tables, &pass.projection.scan(Some(hull)), |batch| {
        let [utid, ts, ts_end] = [utid.ints(batch)?, ts.ints(batch)?, ts_end.ints(batch)?];
        let (waker, state) = (waker.ints(batch)?, state.texts(batch)?);
        for row in 0..batch.num_rows() as u32 {
            let (Some(utid), Some(state)) = (utid.get(row), state.get(row)) else {
                continue;
            };
            let (ts, ts_end) = (ts.at(row), ts_end.get(row).unwrap_or(whole_end));
            let known = LETTERS.iter().position(|(name, _)| *name == state);
            let letter = known.unwrap_or(LETTERS.len() - 1);
            for stretch in by_thread.overlapping(utid, (ts, ts_end)) {
                let of = &stretches[stretch];
                let (ts, ts_end) = clipped(context, (ts.max(of.ts), ts_end.min(of.ts_end)));
                if ts > ts_end {
                    continue;
                }
                lines[stretch].add(letter, (ts, ts_end), window);
                if state != "running" {
                    waits.push(Wait {
                        stretch,
                        ts,
                        dur: ts_end - ts,
                        state: state.to_owned(),
                        waker: waker.get(row),
                        call: None,
                    });
                }
            }
        }
        if waits.len() > limit.saturating_mul(4).max(1 << 12) {
            keep_longest(&mut waits, limit);
        }
        Ok(ControlFlow::Continue(()))
    })?;
    let found = waits.len();
    keep_longest(&mut waits, limit);
    if found > waits.len() && context.query.limit.is_none() {
        context.note(format!(
            "only the {limit} longest off-CPU intervals are listed (-n 0 shows all)"
        ));
    }
    Ok(waits)
}

/// Clips to the window of the query: a slice of a recording has no earlier data.
fn clipped(context: &Context<'_>, (ts, ts_end): (Ns, Ns)) -> (Ns, Ns) {
    let span = context.span;
    (ts.max(span.begin), ts_end.min(span.end))
}

fn keep_longest(waits: &mut Vec<Wait>, limit: usize) {
    waits.index_sort_by_ints(|wait| [-wait.dur, wait.ts, wait.stretch as i64]);
    waits.truncate(limit);
}

/// Finds the system call in which a thread waited.
fn name_calls(
    context: &Context<'_>,
    stretches: &[Stretch],
    waits: &mut [Wait],
) -> Result<(), AnalysisError> {
    let begin = waits.iter().map(|wait| wait.ts).min();
    let end = waits.iter().map(|wait| wait.ts + wait.dur).max();
    let (Some(begin), Some(end)) = (begin, end) else {
        return Ok(());
    };
    let mut by_thread: FxHashMap<i64, Vec<usize>> = FxHashMap::default();
    waits.index_sort_by_ints(|wait| [wait.ts, wait.stretch as i64, 0]);
    for (place, wait) in waits.iter().enumerate() {
        let utid = stretches[wait.stretch].utid;
        by_thread.entry(utid).or_default().push(place);
    }
    let window = Window::new(begin, end.max(begin + 1));
    let mut pass = context.pass_in(&SYSCALLS, &[], &Filter::default(), Some(window))?;
    let [utid, ts, ts_end] = ["utid", "ts", "ts_end"].map(|name| pass.projection.need(name));
    let [name, path] = ["name", "path"].map(|name| pass.projection.need(name));
    in_order(
        context.tables,
        &pass.projection.scan(Some(window)),
        |batch| {
            let [utid, ts, ts_end] = [utid.ints(batch)?, ts.ints(batch)?, ts_end.ints(batch)?];
            let (name, path) = (name.texts(batch)?, path.texts(batch)?);
            for row in 0..batch.num_rows() as u32 {
                let of_thread = utid.get(row).and_then(|utid| by_thread.get(&utid));
                let Some(of_thread) = of_thread else { continue };
                let (ts, ts_end) = (ts.at(row), ts_end.get(row).unwrap_or(Ns::MAX));
                let first = of_thread.partition_point(|place| waits[*place].ts < ts);
                for place in &of_thread[first..] {
                    let wait = &mut waits[*place];
                    if wait.ts >= ts_end {
                        break;
                    }
                    let words = [name.get(row), path.get(row)].into_iter().flatten();
                    wait.call = Some(words.collect::<Vec<_>>().join(" "));
                }
            }
            Ok(ControlFlow::Continue(()))
        },
    )
}

/// Phases of the request, and of the same request at the server.
fn phases(
    context: &Context<'_>,
    request: &Request,
    ids: &FxHashSet<i64>,
) -> Result<AnswerTable, AnalysisError> {
    let mut table = phase_table();
    if !context.has(PHASES.table.name) {
        return Ok(table);
    }
    let window = request.window(context);
    let mut pass = context.pass_in(&PHASES, &[], &Filter::default(), None)?;
    pass.selector
        .only_among("request", ids.clone(), &mut pass.projection);
    let [of, ts, dur] = ["request", "ts", "dur"].map(|name| pass.projection.need(name));
    let phase = pass.projection.need("phase");
    let (mut verdicts, mut rows) = (pass.selector.verdicts(), Vec::new());
    in_order(context.tables, &pass.projection.scan(None), |batch| {
        pass.selector.select(&mut verdicts, batch, &mut rows)?;
        let [of, ts, dur] = [of.ints(batch)?, ts.ints(batch)?, dur.ints(batch)?];
        let phase = phase.texts(batch)?;
        table.rows.extend(rows.iter().copied().map(|row| {
            let dur = dur.get(row);
            let end = dur.map_or(window.end, |dur| ts.at(row) + dur);
            vec![
                format!("request:{}", of.at(row)).into(),
                ts.at(row).into(),
                dur.into(),
                phase.get(row).into(),
                bar(window, (ts.at(row), end)).into(),
            ]
        }));
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(table)
}

/// A line in which an interval is marked; a short one still has a mark.
fn bar(window: Window, (ts, ts_end): (Ns, Ns)) -> String {
    let width = width(window);
    let place = |ts: Ns| ((ts - window.begin).max(0) / width).min(PARTS as i64 - 1);
    let marked = place(ts)..=place(ts_end.max(ts + 1) - 1);
    let mark = |part| if marked.contains(&part) { '=' } else { ' ' };
    (0..PARTS as i64).map(mark).collect()
}

fn thread_label(context: &Context<'_>, utid: i64) -> String {
    Key::Thread.label(&KeyValue::Int(utid), &context.names)
}

fn thread_cells(context: &Context<'_>, stretch: &Stretch, line: &Line) -> Vec<Value> {
    let from = stretch.from_utid.map(|utid| thread_label(context, utid));
    let length = stretch.ts_end - stretch.ts;
    let (begin, end) = clipped(context, (stretch.ts, stretch.ts_end));
    let mut row: Vec<Value> = vec![
        format!("request:{}", stretch.request).into(),
        stretch.ts.into(),
        length.into(),
        stretch.comm.as_deref().into(),
        stretch.tid.into(),
        stretch.received_by.as_deref().into(),
        from.into(),
        line.letters().into(),
    ];
    row.extend(STATE_COLUMNS.map(|(state, _, _)| Value::Int(line.total[state])));
    let known: Ns = line.total.iter().sum();
    row.push((end - begin - known).max(0).into());
    row.push(stretch.is_shared.into());
    row
}

fn phase_table() -> AnswerTable {
    let column = AnswerColumn::new;
    let columns = vec![
        column("request", "request", Measure::Id).priority(4),
        column("ts_ns", "start", Measure::Time).priority(2),
        column("dur_ns", "duration", Measure::Duration),
        column("phase", "phase", Measure::Text),
        column("bar", "timeline", Measure::Text).priority(1),
    ];
    AnswerTable::new("phases", "phases", columns)
}

fn thread_table() -> AnswerTable {
    let column = AnswerColumn::new;
    let mut columns = vec![
        column("request", "request", Measure::Id).priority(6),
        column("ts_ns", "start", Measure::Time).priority(3),
        column("dur_ns", "duration", Measure::Duration),
        column("comm", "thread", Measure::Text),
        column("tid", "tid", Measure::Count),
        column("received_by", "received by", Measure::Text),
        column("from", "from", Measure::Text)
            .priority(4)
            .sparse(true),
        column("states", "states", Measure::Text).priority(1),
    ];
    let state_columns =
        STATE_COLUMNS.map(|(_, name, title)| column(name, title, Measure::Duration).priority(2));
    columns.extend(state_columns);
    columns.extend([
        column("unknown_ns", "unknown", Measure::Duration).priority(5),
        column("is_shared", "shared", Measure::Text).priority(7),
    ]);
    AnswerTable::new("threads", "threads", columns)
}

fn wait_table() -> AnswerTable {
    let column = AnswerColumn::new;
    let columns = vec![
        column("ts_ns", "start", Measure::Time),
        column("dur_ns", "duration", Measure::Duration),
        column("comm", "thread", Measure::Text),
        column("tid", "tid", Measure::Count),
        column("state", "state", Measure::Text),
        column("call", "call", Measure::Path).priority(1),
        column("woken_by", "woken by", Measure::Text)
            .priority(3)
            .sparse(true),
    ];
    AnswerTable::new("waits", "off-CPU intervals", columns)
}
