//! `threads timeline`: a line of letters a thread, one for each part of the window: the state in
//! which the thread spent most of that part. Parts in which nothing was known of it are blank; of
//! states of equal length the one that comes first in [`LETTERS`] is shown, so that short waits do
//! not hide behind sleep.

use arrow_array::RecordBatch;
use whyslow_model::Ns;
use whyslow_model::answer::{AnswerColumn, AnswerTable, Measure, Value};

use crate::AnalysisError;
use crate::context::Context;
use crate::fold::Spot;
use crate::keys::{Key, KeyValue};
use crate::kinds::STATES;
use crate::pass::Summing;
use crate::scan::{ColumnRef, Ints, Texts, per_word};
use crate::sweep::Parts;

const ROWS: usize = 20;
/// Letters of a line, unless an interval is asked for.
const PARTS: i64 = 60;
/// What a terminal can show; an interval that makes more is a slip.
const PARTS_MAX: usize = 1000;

/// States and their letters; everything else is `?`.
const LETTERS: [(&str, char); 6] = [
    ("running", 'R'),
    ("uninterruptible", 'D'),
    ("runnable", 'r'),
    ("stopped", 'T'),
    ("traced", 't'),
    ("sleeping", 'S'),
];

pub(crate) fn table(context: &Context<'_>, keys: &[Key]) -> Result<AnswerTable, AnalysisError> {
    let whole = context.span.length().max(1);
    let parts = Parts {
        span: context.span,
        width: context.interval.unwrap_or((whole + PARTS - 1) / PARTS),
    };
    if parts.count() > PARTS_MAX {
        return Err(AnalysisError::query(
            format!("more than {PARTS_MAX} letters a line"),
            "ask for longer intervals, or a shorter window with -w",
        ));
    }
    let mut pass = context.pass_with_cut(&STATES, keys, &context.question.filter)?;
    let lines = Lines {
        parts,
        recording_end: context.recording_end(),
        ts: pass.projection.need("ts"),
        ts_end: pass.projection.need("ts_end"),
        state: pass.projection.need("state"),
    };
    let mut groups: Vec<(Vec<KeyValue>, Line)> =
        pass.run(context.tables, &lines)?.into_iter().collect();
    groups.sort_by(|(group_a, a), (group_b, b)| {
        let active = |line: &Line| line.total[..LETTERS.len() - 1].iter().sum::<Ns>();
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
    ]);
    let mut table = AnswerTable::new("timeline", "states over time", columns);
    for (group, line) in groups {
        let mut row = Vec::with_capacity(table.columns.len());
        for (key, value) in keys.iter().zip(&group) {
            row.extend(key.cells(value, &context.names));
        }
        row.push(line.total[0].into());
        row.push(line.letters(parts.count()).into());
        table.rows.push(row);
    }
    let width = AnswerColumn::new("part_ns", "a letter is", Measure::Duration);
    table
        .facts
        .push((String::new(), width, Value::Int(parts.width)));
    context.note(
        "R running, r waiting for a CPU, D uninterruptible sleep, S sleep, T stopped, t traced, \
         ? anything else; blank where nothing is known"
            .into(),
    );
    context.finish(&mut table, context.limit(ROWS));
    Ok(table)
}

struct Lines {
    parts: Parts,
    recording_end: Ns,
    ts: ColumnRef,
    ts_end: ColumnRef,
    state: ColumnRef,
}

/// Time by state, [`LETTERS`] and then others.
type Times = [Ns; LETTERS.len() + 1];

#[derive(Default)]
struct Line {
    parts: Vec<Times>,
    total: Times,
}

impl Line {
    fn at(&mut self, part: usize) -> &mut Times {
        if self.parts.len() <= part {
            self.parts.resize(part + 1, Times::default());
        }
        &mut self.parts[part]
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
        let places = per_word(&state, |state| {
            let shown = LETTERS.iter().position(|(name, _)| *name == state);
            shown.unwrap_or(LETTERS.len())
        });
        Ok((
            self.ts.ints(batch)?,
            self.ts_end.ints(batch)?,
            state,
            places,
        ))
    }

    fn add(&self, line: &mut Line, (ts, ts_end, state, places): &Self::Columns<'_>, row: u32) {
        let end = ts_end.get(row).unwrap_or(self.recording_end);
        let place = state.key(row).map_or(LETTERS.len(), |key| places[key]);
        for piece in self.parts.pieces(ts.at(row), end) {
            line.total[place] += piece.length;
            line.at(piece.part)[place] += piece.length;
        }
    }

    fn merge(&self, line: &mut Line, other: Line) {
        for (part, times) in other.parts.iter().enumerate() {
            let ours = line.at(part);
            ours.iter_mut()
                .zip(times)
                .for_each(|(ours, more)| *ours += more);
        }
        let totals = line.total.iter_mut().zip(other.total);
        totals.for_each(|(ours, more)| *ours += more);
    }
}
