//! `differs`: properties that are more, or less, frequent in the selected operations than in
//! others.
//!
//! Each value of each key gives a two-by-two table: with or without it, selected or not. Fisher's
//! exact test gives the p value of the difference, and the Benjamini-Hochberg correction accounts
//! for the number of values. Bursts are not independent, so rows are sorted by the size of the
//! difference, not by its significance; the answer points this out.

use std::collections::BTreeMap;

use arrow_array::RecordBatch;
use whyslow_model::answer::{AnswerColumn, AnswerTable, Measure, Value};
use whyslow_model::sort::IndexSort;
use whyslow_model::{Ns, Window};

use crate::AnalysisError;
use crate::context::Context;
use crate::fold::Spot;
use crate::grouping::{Grouping, Object};
use crate::keys::{Key, KeyValue};
use crate::pass::{Pass, Summing};
use crate::query::Filter;
use crate::scan::{ColumnRef, Ints};
use crate::spec::Spec;
use crate::statistics::{adjusted, hypergeometric_tail};

/// Keys of one family often have the same values; the first one represents all.
const FAMILIES: [&[Key]; 6] = [
    &[
        Key::Process,
        Key::Thread,
        Key::Comm,
        Key::Container,
        Key::Cgroup,
        Key::User,
        Key::MountNs,
    ],
    &[Key::Waker],
    &[Key::Op, Key::Name, Key::State, Key::Cause, Key::Kind],
    &[Key::File, Key::Dir, Key::Pattern, Key::FdClass],
    &[
        Key::Dev,
        Key::Part,
        Key::Lock,
        Key::Host,
        Key::Peer,
        Key::Function,
        Key::Module,
    ],
    &[
        Key::Cpu,
        Key::Prio,
        Key::Errno,
        Key::Result,
        Key::Outcome,
        Key::Mode,
    ],
];
/// Significance level of differences.
const LEVEL: f64 = 0.05;
/// Smaller differences of shares are not useful, however significant.
const DIFFERENCE_MIN: f64 = 0.01;
const ROWS: usize = 20;

/// Number of rows, and their total duration.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Sum {
    count: i64,
    dur: Ns,
}

struct Counting {
    dur: ColumnRef,
}

impl Summing for Counting {
    type Columns<'b> = Ints<'b>;
    type Sum = Sum;

    fn columns<'b>(&self, batch: &'b RecordBatch, _: Spot) -> Result<Ints<'b>, AnalysisError> {
        self.dur.ints(batch)
    }

    fn add(&self, sum: &mut Sum, dur: &Ints<'_>, row: u32) {
        sum.count += 1;
        sum.dur = sum.dur.saturating_add(dur.get(row).unwrap_or(0));
    }

    fn merge(&self, sum: &mut Sum, other: Sum) {
        sum.count += other.count;
        sum.dur = sum.dur.saturating_add(other.dur);
    }
}

/// Counts by each key, and of all rows.
struct Counts {
    all: Sum,
    by_key: Vec<BTreeMap<Vec<KeyValue>, Sum>>,
}

struct Difference {
    key: Key,
    value: KeyValue,
    inside: Sum,
    others: i64,
    p: f64,
}

pub(crate) fn table(
    context: &Context<'_>,
    spec: &'static Spec,
    by: &[Key],
) -> Result<AnswerTable, AnalysisError> {
    let keys = keys(spec, by);
    let inside = inside(context, spec, &keys)?;
    let others = others(context, spec, &keys, &inside)?;
    let totals = (inside.all.count, others.all.count);
    let title = title(spec, totals);
    let mut table = AnswerTable::new("differs", &title, columns());
    if totals.0 == 0 || totals.1 == 0 {
        let side = if totals.0 == 0 {
            "selected"
        } else {
            "to compare with"
        };
        context.note(format!("no {} {side}", spec.rows));
        return Ok(table);
    }
    let mut found = differences(&keys, &inside, &others);
    let tested = found.len();
    let q = adjusted(&found.iter().map(|one| one.p).collect::<Vec<_>>());
    let share = |one: &Difference| {
        let inside = one.inside.count as f64 / totals.0 as f64;
        (inside, one.others as f64 / totals.1 as f64)
    };
    let distance = |one: &Difference| {
        let (inside, others) = share(one);
        (inside - others).abs()
    };
    let mut numbered: Vec<(Difference, f64)> = found.drain(..).zip(q).collect();
    numbered.retain(|(one, q)| *q <= LEVEL && distance(one) >= DIFFERENCE_MIN);
    numbered.index_sort_by(|(a, _), (b, _)| {
        let by_distance = distance(b).total_cmp(&distance(a));
        by_distance.then_with(|| a.value.cmp(&b.value))
    });
    for (one, q) in &distinct(numbered) {
        let (inside, others) = share(one);
        table.rows.push(vec![
            one.key.name().into(),
            one.key.label(&one.value, &context.names).into(),
            one.inside.count.into(),
            inside.into(),
            one.others.into(),
            others.into(),
            (inside - others).into(),
            one.inside.dur.into(),
            Value::from(*q),
        ]);
    }
    context.note(format!(
        "{title}: {tested} values were compared; differences of 1 % or more are shown, at a false \
         discovery rate of {LEVEL}. Operations of a burst are not independent, so rows are sorted \
         by difference, not by significance; a difference is a lead, not a cause"
    ));
    context.finish(&mut table, context.limit(ROWS));
    Ok(table)
}

fn title(spec: &Spec, (inside, others): (i64, i64)) -> String {
    format!("{inside} {} against {others} others", spec.rows)
}

/// The requested keys, else all that the rows have, each family's in order.
fn keys(spec: &Spec, by: &[Key]) -> Vec<Key> {
    if !by.is_empty() {
        return by.to_vec();
    }
    let all = FAMILIES.iter().flat_map(|family| family.iter().copied());
    all.filter(|key| key.columns(spec).is_some()).collect()
}

fn inside(
    context: &Context<'_>,
    spec: &'static Spec,
    keys: &[Key],
) -> Result<Counts, AnalysisError> {
    let pass = context.pass(spec, &[])?;
    counted(context, spec, keys, pass)
}

/// The same query for another window; otherwise, the rest of the recording.
fn others(
    context: &Context<'_>,
    spec: &'static Spec,
    keys: &[Key],
    inside: &Counts,
) -> Result<Counts, AnalysisError> {
    let query = context.query;
    if let Some(baseline) = query.baseline {
        if let Some(window) = context.selected()
            && overlap(window, baseline)
        {
            return Err(AnalysisError::query(
                "the two windows overlap",
                "use a window before or after: -w A..B --vs C..D",
            ));
        }
        let pass = context.pass_in(spec, &[], &query.filter, Some(baseline))?;
        return counted(context, spec, keys, pass);
    }
    let all = Filter {
        dur_min: None,
        dur_max: None,
        errors_only: false,
        ..query.filter.clone()
    };
    if context.selected().is_none() && all == query.filter {
        return Err(AnalysisError::query(
            format!(
                "all {} are selected, so there is nothing to compare them with",
                spec.rows
            ),
            "select some with -w WINDOW, --min 100ms or --errors, or compare with another window: --vs WINDOW",
        ));
    }
    if context.tables.info().cut.is_some() {
        context.note("the comparison only covers this slice of a recording".into());
    }
    let pass = context.pass_in(spec, &[], &all, None)?;
    let mut whole = counted(context, spec, keys, pass)?;
    whole.all.count -= inside.all.count;
    for (whole, inside) in whole.by_key.iter_mut().zip(&inside.by_key) {
        for (value, sum) in inside {
            if let Some(all) = whole.get_mut(value) {
                all.count -= sum.count;
            }
        }
    }
    Ok(whole)
}

fn overlap(a: Window, b: Window) -> bool {
    a.begin < b.end && b.begin < a.end
}

fn counted(
    context: &Context<'_>,
    spec: &'static Spec,
    keys: &[Key],
    mut pass: Pass,
) -> Result<Counts, AnalysisError> {
    let grouping = |keys: &[Key], pass: &mut Pass| {
        let of = (keys, Object::First);
        Grouping::new(spec, of, &context.names, &mut pass.projection)
    };
    let mut groupings = vec![grouping(&[], &mut pass)];
    for key in keys {
        groupings.push(grouping(&[*key], &mut pass));
    }
    let counting = Counting {
        dur: pass.projection.need("dur"),
    };
    let mut counts = pass
        .run_by(context.tables, &counting, &groupings)?
        .into_iter();
    let all = counts.next().and_then(|all| all.into_iter().next());
    Ok(Counts {
        all: all.map(|(_, sum)| sum).unwrap_or_default(),
        by_key: counts.map(|groups| groups.into_iter().collect()).collect(),
    })
}

fn differences(keys: &[Key], inside: &Counts, others: &Counts) -> Vec<Difference> {
    let (n, rest) = (inside.all.count, others.all.count);
    let nothing = BTreeMap::new();
    let mut found = Vec::new();
    for (number, key) in keys.iter().enumerate() {
        let ours = inside.by_key.get(number).unwrap_or(&nothing);
        let theirs = others.by_key.get(number).unwrap_or(&nothing);
        let only_theirs = theirs.keys().filter(|value| !ours.contains_key(*value));
        for value in ours.keys().chain(only_theirs) {
            let sum = ours.get(value).copied().unwrap_or_default();
            let there = theirs.get(value).map_or(0, |sum| sum.count);
            if let (Some(KeyValue::Null), true) | (None, _) = (value.first(), value.len() == 1) {
                continue;
            }
            found.push(Difference {
                key: *key,
                value: value[0].clone(),
                inside: sum,
                others: there,
                p: chance((sum.count, n), (there, rest)),
            });
        }
    }
    found
}

/// Two-sided p value of a difference between two shares.
fn chance((k, n): (i64, i64), (other, rest): (i64, i64)) -> f64 {
    let [k, n, other, rest] = [k, n, other, rest].map(|count| count.max(0) as u64);
    let (marked, all) = (k + other, n + rest);
    // The smaller tail is the one on the side of the difference.
    let is_more = u128::from(k) * u128::from(all) >= u128::from(marked) * u128::from(n);
    let tail = if is_more {
        hypergeometric_tail(k, n, marked, all)
    } else {
        hypergeometric_tail(n - k, n, all - marked, all)
    };
    (2.0 * tail).min(1.0)
}

/// Of values of one family that occur in the same operations, the first.
fn distinct(found: Vec<(Difference, f64)>) -> Vec<(Difference, f64)> {
    let family = |key: Key| FAMILIES.iter().position(|family| family.contains(&key));
    let rank = |key: Key| {
        let all = FAMILIES.iter().flat_map(|family| family.iter());
        all.into_iter().position(|known| *known == key)
    };
    let same = |a: &Difference, b: &Difference| {
        family(a.key) == family(b.key) && (a.inside, a.others) == (b.inside, b.others)
    };
    let mut kept: Vec<(Difference, f64)> = Vec::new();
    for (one, q) in found {
        match kept
            .iter_mut()
            .find(|(known, _)| same(known, &one) && known.key != one.key)
        {
            Some(known) if rank(one.key) < rank(known.0.key) => *known = (one, q),
            Some(_) => {}
            None => kept.push((one, q)),
        }
    }
    kept
}

fn columns() -> Vec<AnswerColumn> {
    let column = AnswerColumn::new;
    vec![
        column("key", "key", Measure::Text),
        column("value", "value", Measure::Path),
        column("count", "count", Measure::Count),
        column("share", "share", Measure::Ratio),
        column("others", "others", Measure::Count).priority(2),
        column("others_share", "others' share", Measure::Ratio),
        column("difference", "difference", Measure::Ratio).priority(1),
        column("total_ns", "time", Measure::Duration).priority(1),
        column("q", "q", Measure::Number).priority(3),
    ]
}

#[cfg(test)]
mod tests {
    use super::chance;

    /// Fisher's tea: four of four cups, 1/70 one-sided.
    #[test]
    fn the_lady_who_tasted_tea() {
        assert!((chance((4, 4), (0, 4)) - 2.0 / 70.0).abs() < 1e-12);
        assert!((chance((0, 4), (4, 4)) - 2.0 / 70.0).abs() < 1e-12);
        assert!((chance((2, 4), (2, 4)) - 1.0).abs() < 1e-12);
    }

    #[test]
    fn nothing_marked_is_no_evidence() {
        assert!((chance((0, 10), (0, 10)) - 1.0).abs() < 1e-12);
        assert!((chance((10, 10), (10, 10)) - 1.0).abs() < 1e-12);
    }
}
