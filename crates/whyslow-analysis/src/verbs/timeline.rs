//! `threads timeline`: a line of letters per thread, one letter for each part of the window: the
//! state in which the thread spent most of that part. Parts without data are blank; on a tie, the
//! state that comes first in [`LETTERS`] is shown, so that sleep does not hide short waits.
//!
//! If the states of a thread were not recorded, or stacks are selected, samples of a profile are
//! used: each represents the time since the previous one. Sampling gaps have letters of their own,
//! uninterruptible if no signal reached the thread.

use std::collections::{BTreeMap, BTreeSet};

use arrow_array::RecordBatch;
use whyslow_model::Ns;
use whyslow_model::answer::{AnswerColumn, AnswerTable, Measure, Value};
use whyslow_model::sort::IndexSort;

use crate::AnalysisError;
use crate::context::Context;
use crate::fold::Spot;
use crate::keys::{Key, KeyValue};
use crate::kinds::{GAPS, STACKS, STATES};
use crate::pass::Summing;
use crate::scan::{ColumnRef, Ints, Texts, per_word};
use crate::spec::Spec;
use crate::sweep::Parts;

const ROWS: usize = 20;
/// Default number of letters per line.
const PARTS: i64 = 60;
/// Maximum number of letters that a terminal can show; more indicate a wrong interval.
const PARTS_MAX: usize = 1000;

/// States and their letters; all others are `?`.
const LETTERS: [(&str, char); 7] = [
    ("running", 'R'),
    ("uninterruptible", 'D'),
    ("runnable", 'r'),
    ("stopped", 'T'),
    ("traced", 't'),
    ("sleeping", 'S'),
    (NOT_SAMPLED, '.'),
];
/// The first states, which are not idle.
const ACTIVE: usize = 5;
/// A gap due to the sampler rather than the thread.
const NOT_SAMPLED: &str = "not_sampled";

pub(crate) fn table(context: &Context<'_>, keys: &[Key]) -> Result<AnswerTable, AnalysisError> {
    let whole = context.span.length().max(1);
    let parts = Parts {
        span: context.span,
        width: context.interval.unwrap_or((whole + PARTS - 1) / PARTS),
    };
    if parts.count() > PARTS_MAX {
        return Err(AnalysisError::query(
            format!("cannot show more than {PARTS_MAX} letters per line"),
            "use a longer interval, or a shorter window with -w",
        ));
    }
    let mut groups: Vec<(Vec<KeyValue>, Line)> = lines(context, keys, parts)?.into_iter().collect();
    groups.index_sort_by(|(group_a, a), (group_b, b)| {
        let active = |line: &Line| line.total[..ACTIVE].iter().sum::<Ns>();
        let by_running = b.total[0].cmp(&a.total[0]);
        by_running
            .then_with(|| active(b).cmp(&active(a)))
            .then_with(|| group_a.cmp(group_b))
    });
    let column = AnswerColumn::new;
    let mut columns: Vec<_> = keys.iter().flat_map(|key| key.answer_columns()).collect();
    columns.extend([
        column("running_ns", "running", Measure::Duration).priority(1),
        column("states", "states", Measure::Text),
        column("reported_by", "reported by", Measure::Text)
            .priority(2)
            .sparse(true),
    ]);
    let mut table = AnswerTable::new("timeline", "states over time", columns);
    for (group, line) in groups {
        let mut row = Vec::with_capacity(table.columns.len());
        for (key, value) in keys.iter().zip(&group) {
            row.extend(key.cells(value, &context.names));
        }
        row.push(line.total[0].into());
        row.push(line.letters(parts.count()).into());
        row.push(line.reported_by().into());
        table.rows.push(row);
    }
    let width = AnswerColumn::new("part_ns", "time per letter", Measure::Duration);
    table
        .facts
        .push((String::new(), width, Value::Int(parts.width)));
    context.note(
        "R running, r waiting for a CPU, D uninterruptible sleep, S sleep, T stopped, t traced, \
         ? other; blank if unknown"
            .into(),
    );
    context.finish(&mut table, context.limit(ROWS));
    Ok(table)
}

/// Lines by group, from states if known, otherwise from samples.
fn lines(
    context: &Context<'_>,
    keys: &[Key],
    parts: Parts,
) -> Result<BTreeMap<Vec<KeyValue>, Line>, AnalysisError> {
    let filter = &context.query.filter;
    let mut found: BTreeMap<Vec<KeyValue>, Line> = BTreeMap::new();
    let mut recorded: BTreeSet<KeyValue> = BTreeSet::new();
    let read = |spec: &'static Spec, state| read(context, (spec, state), keys, parts);
    let mut take = |groups: Vec<(KeyValue, Vec<KeyValue>, Line)>, source: Source| {
        for (_, group, line) in groups {
            let ours = found.entry(group).or_default();
            ours.sources[source as usize] = true;
            ours.add(line);
        }
    };
    let known = [&STATES, &STACKS, &GAPS].into_iter();
    let known: Vec<&Spec> = known.filter(|spec| context.has(spec.table.name)).collect();
    // States have other operations than samples, and no stacks: filters on these exclude the other
    // tables.
    let (chosen, others): (Vec<&Spec>, Vec<&Spec>) = known
        .into_iter()
        .partition(|spec| spec.check(filter).is_ok());
    if let (true, Some(spec)) = (chosen.is_empty(), others.first()) {
        spec.check(filter)?;
    }
    let is_chosen = |spec: &Spec| chosen.iter().any(|of| of.table.name == spec.table.name);
    if is_chosen(&STATES) {
        let states = read(&STATES, "state")?;
        recorded.extend(states.iter().map(|(thread, ..)| thread.clone()));
        take(states, Source::States);
    }
    let mut by_samples = false;
    for (spec, state) in [(&STACKS, "state"), (&GAPS, "class")] {
        let has_keys = keys.iter().all(|key| key.columns(spec).is_some());
        if !is_chosen(spec) || !has_keys {
            continue;
        }
        let mut samples = read(spec, state)?;
        samples.retain(|(thread, ..)| *thread != KeyValue::Null && !recorded.contains(thread));
        by_samples |= !samples.is_empty();
        take(samples, Source::Samples);
    }
    if by_samples {
        context.note(
            "based on profile samples, each for the time since the previous one: R running or waiting for a \
             CPU, S asleep, D in a call that blocked signals (inferred), . not sampled for another reason"
                .into(),
        );
    }
    if filter.is_of_stacks() {
        context.note("times without matching stacks are blank".into());
    }
    Ok(found)
}

/// Data source of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Source {
    States,
    Samples,
}

/// Lines by thread and group.
fn read(
    context: &Context<'_>,
    (spec, state): (&'static Spec, &'static str),
    keys: &[Key],
    parts: Parts,
) -> Result<Vec<(KeyValue, Vec<KeyValue>, Line)>, AnalysisError> {
    let mut all = vec![Key::Thread];
    all.extend(keys);
    let mut pass = context.pass_with_cut(spec, &all, &context.query.filter)?;
    let lines = Lines {
        parts,
        recording_end: context.recording_end(),
        ts: pass.projection.need("ts"),
        ts_end: pass.projection.need("ts_end"),
        state: pass.projection.need(state),
    };
    let groups = pass.run(context.tables, &lines)?.into_iter();
    Ok(groups
        .map(|(mut group, line)| (group.remove(0), group, line))
        .collect())
}

/// Index of a state in [`LETTERS`]; gaps have classes.
fn place_of(state: &str) -> usize {
    let state = match state {
        "kernel_wait" | "page_fault" => "uninterruptible",
        "sampler_late" | "cpu_starved" | "process_stopped" => NOT_SAMPLED,
        state => state,
    };
    let shown = LETTERS.iter().position(|(name, _)| *name == state);
    shown.unwrap_or(LETTERS.len())
}

struct Lines {
    parts: Parts,
    recording_end: Ns,
    ts: ColumnRef,
    ts_end: ColumnRef,
    state: ColumnRef,
}

/// Time by state: [`LETTERS`], then others.
type Times = [Ns; LETTERS.len() + 1];

#[derive(Default)]
struct Line {
    parts: Vec<Times>,
    total: Times,
    /// By [`Source`].
    sources: [bool; 2],
}

impl Line {
    fn at(&mut self, part: usize) -> &mut Times {
        if self.parts.len() <= part {
            self.parts.resize(part + 1, Times::default());
        }
        &mut self.parts[part]
    }

    fn add(&mut self, other: Line) {
        for (part, times) in other.parts.iter().enumerate() {
            let ours = self.at(part);
            ours.iter_mut()
                .zip(times)
                .for_each(|(ours, more)| *ours += more);
        }
        let totals = self.total.iter_mut().zip(other.total);
        totals.for_each(|(ours, more)| *ours += more);
    }

    /// Reported unless it is states only.
    fn reported_by(&self) -> Option<&'static str> {
        match self.sources {
            [_, false] => None,
            [false, true] => Some("samples"),
            [true, true] => Some("states, samples"),
        }
    }

    fn letters(&self, count: usize) -> String {
        let letter = |part: usize| {
            let times = self.parts.get(part).copied().unwrap_or_default();
            let longest = times.iter().copied().max().unwrap_or(0);
            if longest == 0 {
                return ' ';
            }
            let place = times.iter().position(|time| *time == longest);
            place
                .and_then(|place| LETTERS.get(place))
                .map_or('?', |(_, letter)| *letter)
        };
        (0..count).map(letter).collect()
    }
}

impl Summing for Lines {
    type Columns<'b> = (Ints<'b>, Ints<'b>, Texts<'b>, Vec<usize>);
    type Sum = Line;

    fn columns<'b>(
        &self,
        batch: &'b RecordBatch,
        _: Spot,
    ) -> Result<Self::Columns<'b>, AnalysisError> {
        let state = self.state.texts(batch)?;
        let places = per_word(&state, place_of);
        Ok((
            self.ts.ints(batch)?,
            self.ts_end.ints(batch)?,
            state,
            places,
        ))
    }

    fn add(&self, line: &mut Line, (ts, ts_end, state, places): &Self::Columns<'_>, row: u32) {
        let end = ts_end.get(row).unwrap_or(self.recording_end);
        // On-CPU samples have no state.
        let place = state.key(row).map_or(0, |key| places[key]);
        for piece in self.parts.pieces(ts.at(row), end) {
            line.total[place] += piece.length;
            line.at(piece.part)[place] += piece.length;
        }
    }

    fn merge(&self, line: &mut Line, other: Line) {
        line.add(other);
    }
}
