//! `threads list --by pool`: groups of threads, the share of their time at work, and how many were
//! at work concurrently. It shows whether all threads of a pool are busy.
//!
//! A thread is at work if it runs or waits for a CPU (busy), or waits uninterruptibly or for a lock
//! (blocked). Recorded thread states determine this; otherwise samples do, and sampling gaps that
//! are waits in the kernel.
//!
//! Concurrency is measured at [`MOMENTS`] points of each part of the window, one bit each. So
//! memory is bounded, the order of rows is irrelevant, and times that two tables cover count once.

use std::collections::BTreeMap;

use arrow_array::RecordBatch;
use rustc_hash::{FxHashMap, FxHashSet};
use whyslow_model::Ns;
use whyslow_model::answer::{AnswerColumn, AnswerTable, Measure, Value};
use whyslow_model::sort::IndexSort;

use crate::AnalysisError;
use crate::context::Context;
use crate::facts;
use crate::fold::Spot;
use crate::keys::{Key, KeyValue};
use crate::kinds::{GAPS, LOCKS, STACKS, STATES, THREADS};
use crate::pass::Summing;
use crate::query::Filter;
use crate::scan::{ColumnRef, Ints, Texts, per_word};
use crate::spec::Spec;
use crate::sweep::Parts;

const ROWS: usize = 40;
/// Letters per line.
const PARTS: i64 = 40;
/// Points per part: bits of a word.
const MOMENTS: i64 = 64;

/// Activity of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Doing {
    Busy,
    Blocked,
    Idle,
}

/// Points of a part at which the state is known, the thread is busy, and it is at work.
#[derive(Debug, Clone, Copy, Default)]
struct Moments {
    known: u64,
    busy: u64,
    at_work: u64,
}

#[derive(Debug, Default)]
struct Work {
    busy_ns: Ns,
    known_ns: Ns,
    parts: Vec<Moments>,
}

impl Work {
    fn at(&mut self, part: usize) -> &mut Moments {
        if self.parts.len() <= part {
            self.parts.resize(part + 1, Moments::default());
        }
        &mut self.parts[part]
    }

    fn add(&mut self, other: Work) {
        self.busy_ns = self.busy_ns.saturating_add(other.busy_ns);
        self.known_ns = self.known_ns.saturating_add(other.known_ns);
        for (part, more) in other.parts.iter().enumerate() {
            let ours = self.at(part);
            ours.known |= more.known;
            ours.busy |= more.busy;
            ours.at_work |= more.at_work;
        }
    }
}

/// Groups of threads: by key, and by thread within a group.
type Groups = BTreeMap<Vec<KeyValue>, FxHashMap<i64, Work>>;

pub(crate) fn table(context: &Context<'_>, keys: &[Key]) -> Result<AnswerTable, AnalysisError> {
    let whole = context.span.length().max(1);
    let parts = Parts {
        span: context.span,
        width: (whole + PARTS - 1) / PARTS,
    };
    let groups = groups(context, keys, parts)?;
    let mut lines: Vec<(Vec<KeyValue>, Line)> = groups
        .into_iter()
        .map(|(group, threads)| (group, Line::of(&threads, parts)))
        .collect();
    lines.index_sort_by(|(group_a, a), (group_b, b)| {
        let by_work = b.work_moments.cmp(&a.work_moments);
        by_work
            .then_with(|| b.threads.cmp(&a.threads))
            .then_with(|| group_a.cmp(group_b))
    });
    let mut table = AnswerTable::new("pools", "thread pools", columns(keys));
    for (group, line) in lines {
        let mut row = Vec::with_capacity(table.columns.len());
        for (key, value) in keys.iter().zip(&group) {
            row.extend(key.cells(value, &context.names));
        }
        row.extend(line.cells());
        table.rows.push(row);
    }
    facts::push(
        &mut table,
        "part_ns",
        "time per letter",
        Measure::Duration,
        parts.width,
    );
    context.note(
        "busy: running or waiting for a CPU; at work: busy, in uninterruptible sleep or waiting for a \
         lock. Over time: . no thread at work, 1 to 9 tenths of the threads, # all, blank if unknown"
            .into(),
    );
    context.finish(&mut table, context.limit(ROWS));
    Ok(table)
}

fn columns(keys: &[Key]) -> Vec<AnswerColumn> {
    let column = AnswerColumn::new;
    let mut columns: Vec<_> = keys.iter().flat_map(|key| key.answer_columns()).collect();
    columns.extend([
        column("threads", "threads", Measure::Count),
        column("busy_ratio", "% busy", Measure::Ratio),
        column("work_ratio", "% at work", Measure::Ratio),
        column("busy_max", "max busy", Measure::Count).priority(2),
        column("work_max", "max at work", Measure::Count),
        column("busy_ns", "busy", Measure::Duration).priority(3),
        column("work", "at work over time", Measure::Text).priority(1),
    ]);
    columns
}

/// The data of a group.
struct Line {
    threads: usize,
    busy_ns: Ns,
    known_ns: Ns,
    known_moments: u64,
    work_moments: u64,
    busy_max: i64,
    work_max: i64,
    letters: String,
}

impl Line {
    fn of(threads: &FxHashMap<i64, Work>, parts: Parts) -> Self {
        let mut line = Self {
            threads: threads.len(),
            busy_ns: threads.values().map(|work| work.busy_ns).sum(),
            known_ns: threads.values().map(|work| work.known_ns).sum(),
            known_moments: 0,
            work_moments: 0,
            busy_max: 0,
            work_max: 0,
            letters: String::new(),
        };
        for part in 0..parts.count() {
            let moments: Vec<Moments> = threads
                .values()
                .filter_map(|work| work.parts.get(part).copied())
                .collect();
            let count = |of: &dyn Fn(&Moments) -> u64| -> u64 {
                moments
                    .iter()
                    .map(|one| u64::from(of(one).count_ones()))
                    .sum()
            };
            let (known, at_work) = (count(&|one| one.known), count(&|one| one.at_work));
            line.known_moments += known;
            line.work_moments += at_work;
            line.busy_max = line.busy_max.max(most(&moments, |one| one.busy));
            line.work_max = line.work_max.max(most(&moments, |one| one.at_work));
            line.letters.push(letter(at_work, known));
        }
        line
    }

    fn cells(self) -> [Value; 7] {
        let share = |part: f64, whole: f64| Value::from((whole > 0.0).then(|| part / whole));
        [
            (self.threads as i64).into(),
            share(self.busy_ns as f64, self.known_ns as f64),
            share(self.work_moments as f64, self.known_moments as f64),
            self.busy_max.into(),
            self.work_max.into(),
            self.busy_ns.into(),
            self.letters.into(),
        ]
    }
}

/// The maximum number of threads that have the same bit.
fn most(moments: &[Moments], of: impl Fn(&Moments) -> u64) -> i64 {
    let at = |bit: i64| moments.iter().filter(|one| of(one) >> bit & 1 == 1).count() as i64;
    (0..MOMENTS).map(at).max().unwrap_or(0)
}

fn letter(at_work: u64, known: u64) -> char {
    const TENTHS: [char; 10] = ['1', '1', '2', '3', '4', '5', '6', '7', '8', '9'];
    match (at_work, known) {
        (_, 0) => ' ',
        (0, _) => '.',
        _ if at_work >= known => '#',
        _ => TENTHS[(at_work * 10 / known) as usize],
    }
}

fn groups(context: &Context<'_>, keys: &[Key], parts: Parts) -> Result<Groups, AnalysisError> {
    let filter = &context.query.filter;
    let plain = filter.without_stacks();
    let mut groups = Groups::new();
    if !filter.is_of_stacks() {
        all_threads(context, keys, &mut groups)?;
    }
    let mut reading = Reading {
        context,
        keys,
        parts,
        groups: &mut groups,
        recorded: FxHashSet::default(),
    };
    // Patterns select stacks, which states do not have.
    if context.has("thread_state") && !filter.is_of_stacks() {
        reading.states(&plain)?;
    }
    if context.has("stack_sample") {
        reading.samples(&STACKS, "state", &|state| match state {
            "running" | "runnable" => Doing::Busy,
            "uninterruptible" => Doing::Blocked,
            _ => Doing::Idle,
        })?;
    }
    if context.has("sample_gap") {
        reading.samples(&GAPS, "class", &|class| match class {
            "kernel_wait" | "page_fault" => Doing::Blocked,
            _ => Doing::Idle,
        })?;
    }
    if context.has("lock_wait") {
        reading.locks()?;
    }
    Ok(groups)
}

/// Includes those without any other data.
fn all_threads(
    context: &Context<'_>,
    keys: &[Key],
    groups: &mut Groups,
) -> Result<(), AnalysisError> {
    let mut all = vec![Key::Thread];
    all.extend(keys);
    let filter = &context.query.filter;
    let mut pass = context.pass_in(&THREADS, &all, filter, None)?;
    let lives = Lives {
        begin: pass.projection.need("ts_start"),
        end: pass.projection.need("ts_exit"),
    };
    for (mut group, (begin, end)) in pass.run(context.tables, &lives)? {
        let lived = context.selected().is_none_or(|window| {
            begin.is_none_or(|begin| begin < window.end) && end.is_none_or(|end| end > window.begin)
        });
        if let (true, KeyValue::Int(utid)) = (lived, group.remove(0)) {
            groups.entry(group).or_default().entry(utid).or_default();
        }
    }
    Ok(())
}

/// Lifetime of a thread.
struct Lives {
    begin: ColumnRef,
    end: ColumnRef,
}

impl Summing for Lives {
    type Columns<'b> = [Ints<'b>; 2];
    type Sum = (Option<Ns>, Option<Ns>);

    fn columns<'b>(&self, batch: &'b RecordBatch, _: Spot) -> Result<[Ints<'b>; 2], AnalysisError> {
        Ok([self.begin.ints(batch)?, self.end.ints(batch)?])
    }

    fn add(&self, sum: &mut Self::Sum, [begin, end]: &[Ints<'_>; 2], row: u32) {
        *sum = (begin.get(row), end.get(row));
    }

    fn merge(&self, sum: &mut Self::Sum, other: Self::Sum) {
        *sum = (sum.0.or(other.0), sum.1.or(other.1));
    }
}

struct Reading<'r, 'q> {
    context: &'r Context<'q>,
    keys: &'r [Key],
    parts: Parts,
    groups: &'r mut Groups,
    /// Threads whose states were recorded.
    recorded: FxHashSet<i64>,
}

impl Reading<'_, '_> {
    fn states(&mut self, filter: &Filter) -> Result<(), AnalysisError> {
        let doing = |state: &str| match state {
            "running" | "runnable" => Doing::Busy,
            "uninterruptible" => Doing::Blocked,
            _ => Doing::Idle,
        };
        let found = self.read((&STATES, Some("state")), filter, &doing)?;
        self.recorded.extend(found.iter().map(|(utid, ..)| *utid));
        self.take(found);
        Ok(())
    }

    /// For threads whose states are unknown.
    fn samples(
        &mut self,
        spec: &'static Spec,
        state: &'static str,
        doing: &(dyn Fn(&str) -> Doing + Sync),
    ) -> Result<(), AnalysisError> {
        let filter = &self.context.query.filter;
        let mut found = self.read((spec, Some(state)), filter, doing)?;
        found.retain(|(utid, ..)| !self.recorded.contains(utid));
        if !found.is_empty() {
            self.context.note(
                "threads without recorded states are shown by profile samples, in which running may include \
                 waiting for a CPU"
                    .into(),
            );
        }
        self.take(found);
        Ok(())
    }

    /// Lock waits do not change the known times, they only classify them.
    fn locks(&mut self) -> Result<(), AnalysisError> {
        let filter = &self.context.query.filter;
        let mut found = self.read((&LOCKS, None), filter, &|_| Doing::Blocked)?;
        for (_, _, work) in &mut found {
            work.known_ns = 0;
            for part in &mut work.parts {
                part.known = 0;
            }
        }
        self.take(found);
        Ok(())
    }

    fn take(&mut self, found: Vec<(i64, Vec<KeyValue>, Work)>) {
        for (utid, group, work) in found {
            let threads = self.groups.entry(group).or_default();
            threads.entry(utid).or_default().add(work);
        }
    }

    /// By thread and group.
    fn read(
        &self,
        (spec, state): (&'static Spec, Option<&'static str>),
        filter: &Filter,
        doing: &(dyn Fn(&str) -> Doing + Sync),
    ) -> Result<Vec<(i64, Vec<KeyValue>, Work)>, AnalysisError> {
        let mut all = vec![Key::Thread];
        all.extend(self.keys);
        let mut pass = self.context.pass_with_cut(spec, &all, filter)?;
        let reads = Reads {
            parts: self.parts,
            recording_end: self.context.recording_end(),
            ts: pass.projection.need("ts"),
            ts_end: pass.projection.need("ts_end"),
            state: state.map(|state| pass.projection.need(state)),
            doing,
        };
        let groups = pass.run(self.context.tables, &reads)?;
        let of_thread = |(mut group, work): (Vec<KeyValue>, Work)| match group.remove(0) {
            KeyValue::Int(utid) => Some((utid, group, work)),
            _ => None,
        };
        Ok(groups.into_iter().filter_map(of_thread).collect())
    }
}

struct Reads<'d> {
    parts: Parts,
    recording_end: Ns,
    ts: ColumnRef,
    ts_end: ColumnRef,
    state: Option<ColumnRef>,
    doing: &'d (dyn Fn(&str) -> Doing + Sync),
}

impl Reads<'_> {
    /// Bits of the points of a part that are in this interval.
    fn bits(&self, part: usize, begin: Ns, length: Ns) -> u64 {
        let from = i128::from(begin - self.parts.begin(part));
        let to = from + i128::from(length);
        let width = i128::from(self.parts.width.max(1));
        // The points are in the middle of 64 equal pieces of the part.
        let before = |at: i128| {
            let number = (at * i128::from(MOMENTS) * 2 + width - 1).div_euclid(width * 2);
            number.clamp(0, i128::from(MOMENTS)) as u32
        };
        let below = |number: u32| 1_u64.checked_shl(number).map_or(u64::MAX, |bit| bit - 1);
        below(before(to)) & !below(before(from))
    }
}

impl Summing for Reads<'_> {
    type Columns<'b> = (Ints<'b>, Ints<'b>, Option<(Texts<'b>, Vec<Doing>)>);
    type Sum = Work;

    fn columns<'b>(
        &self,
        batch: &'b RecordBatch,
        _: Spot,
    ) -> Result<Self::Columns<'b>, AnalysisError> {
        let state = self.state.map(|state| state.texts(batch)).transpose()?;
        let state = state.map(|state| {
            let doing = per_word(&state, self.doing);
            (state, doing)
        });
        Ok((self.ts.ints(batch)?, self.ts_end.ints(batch)?, state))
    }

    fn add(&self, work: &mut Work, (ts, ts_end, state): &Self::Columns<'_>, row: u32) {
        let end = ts_end.get(row).unwrap_or(self.recording_end);
        let doing = match state {
            None => Doing::Blocked,
            // On-CPU samples have no state.
            Some((state, doing)) => state.key(row).map_or(Doing::Busy, |key| doing[key]),
        };
        for piece in self.parts.pieces(ts.at(row), end) {
            if piece.length <= 0 {
                continue;
            }
            let bits = self.bits(piece.part, piece.begin, piece.length);
            work.known_ns = work.known_ns.saturating_add(piece.length);
            let moments = work.at(piece.part);
            moments.known |= bits;
            if doing != Doing::Idle {
                moments.at_work |= bits;
            }
            if doing == Doing::Busy {
                moments.busy |= bits;
                work.busy_ns = work.busy_ns.saturating_add(piece.length);
            }
        }
    }

    fn merge(&self, work: &mut Work, other: Work) {
        work.add(other);
    }
}

#[cfg(test)]
mod tests {
    use whyslow_model::Window;

    use super::*;

    #[test]
    fn each_moment_is_in_one_of_the_pieces_of_a_time() {
        let parts = Parts {
            span: Window::new(1_000, 2_000),
            width: 500,
        };
        let names: [ColumnRef; 2] = {
            let mut projection = crate::scan::Projection::new(STATES.table);
            ["ts", "ts_end"].map(|name| projection.need(name))
        };
        let reads = Reads {
            parts,
            recording_end: 2_000,
            ts: names[0],
            ts_end: names[1],
            state: None,
            doing: &|_| Doing::Busy,
        };
        for cut in 0..=500 {
            let (first, second) = (
                reads.bits(1, 1_500, cut),
                reads.bits(1, 1_500 + cut, 500 - cut),
            );
            assert_eq!(first & second, 0, "{cut}");
            assert_eq!(first | second, u64::MAX, "{cut}");
            let share = i64::from(first.count_ones()) * 500 / MOMENTS;
            assert!((share - cut).abs() <= 8, "{cut}: {share}");
        }
        assert_eq!(reads.bits(0, 1_000, 0), 0);
    }

    #[test]
    fn letters_are_tenths() {
        let all: Vec<char> = (0..=10).map(|tenths| letter(tenths, 10)).collect();
        assert_eq!(all.iter().collect::<String>(), ".123456789#");
        assert_eq!((letter(1, 1000), letter(0, 0)), ('1', ' '));
    }
}
