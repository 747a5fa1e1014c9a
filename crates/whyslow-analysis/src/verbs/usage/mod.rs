//! `usage`: bytes and operations by owner.
//!
//! By process (or any key): one row with the bytes of files, network, other and unknown objects,
//! and those of block requests if they have the key. By file: one row per file with its users.
//! Bytes of a call count completely, even if the window cuts the call. By interval, a call counts
//! in the interval in which it starts, as in `stats`; one that started before the window counts in
//! the first interval.
//!
//! A call that reads one object and writes another (`read_write`) counts once for each: it reads
//! the object of `fd`, and writes that of `fd2`. Block requests of a bio-based device are not
//! included in a process's bytes, because the same bytes follow as requests of the underlying disk.

mod owners;
mod tally;

use rustc_hash::{FxHashMap, FxHashSet};
use whyslow_model::Ns;
use whyslow_model::answer::{AnswerColumn, AnswerTable, Measure, Value};
use whyslow_model::sort::IndexSort;

pub(crate) use self::tally::UsageSum;

use self::tally::{Tally, Usage};
use super::page_cache_fill::{self, FillSum, Fills};
use super::sharers;
use crate::AnalysisError;
use crate::caveats;
use crate::context::Context;
use crate::facts;
use crate::grouping::{Grouping, Object, TimeKey};
use crate::keys::{Key, KeyValue};
use crate::kinds::FILLS;
use crate::objects::Sort;
use crate::pass::Unordered;
use crate::query::Kind;
use crate::scan::Projection;
use crate::spec::Spec;

const ROWS: usize = 10;

/// Name, title and keys of a table.
pub(crate) type Wanted<'w> = (&'w str, &'w str, &'w [Key]);

/// Bytes and operations by owner.
pub(crate) fn table(
    context: &Context<'_>,
    spec: &'static Spec,
    wanted: Wanted<'_>,
) -> Result<AnswerTable, AnalysisError> {
    let table = tables(context, spec, [wanted])?.pop();
    Ok(table.unwrap_or_else(|| AnswerTable::new(wanted.0, wanted.1, Vec::new())))
}

/// Several of these tables, from one scan.
pub(crate) fn tables<const N: usize>(
    context: &Context<'_>,
    spec: &'static Spec,
    wanted: [Wanted<'_>; N],
) -> Result<Vec<AnswerTable>, AnalysisError> {
    let of_objects = |keys: &[Key]| keys.iter().any(|key| key.is_object());
    let by = wanted.map(|(_, _, keys)| By {
        keys,
        of_sorts: !of_objects(keys),
        interval: context.interval,
    });
    let groups = sums_by(context, spec, by)?;
    let wanted = wanted.into_iter().zip(groups).collect();
    context.each(wanted, |context, (wanted, groups)| {
        if of_objects(wanted.2) {
            by_object(context, spec, wanted, groups)
        } else {
            owners::by_owner(context, wanted, groups)
        }
    })
}

/// Sums by `keys`; if these identify objects, bytes written to a call's second object count there.
pub(crate) fn sums(
    context: &Context<'_>,
    spec: &'static Spec,
    keys: &[Key],
) -> Result<Unordered<UsageSum>, AnalysisError> {
    let by = By {
        keys,
        of_sorts: false,
        interval: None,
    };
    let groups = sums_by(context, spec, [by])?.pop();
    Ok(groups.unwrap_or_default())
}

/// The grouping of sums.
#[derive(Debug, Clone, Copy)]
struct By<'k> {
    keys: &'k [Key],
    /// Also by object class; its number is then the last value of a group.
    of_sorts: bool,
    /// Also by interval; its start then follows the keys of a group.
    interval: Option<Ns>,
}

impl By<'_> {
    /// Keys to scan by. The second object of a call is only known by name.
    fn scanned(self, object: Object) -> Vec<Key> {
        let sort = match object {
            Object::First => Key::FdClass,
            Object::Second => Key::File,
        };
        let mut keys = self.keys.to_vec();
        keys.extend(self.of_sorts.then_some(sort));
        keys
    }

    fn grouping(
        self,
        context: &Context<'_>,
        spec: &Spec,
        object: Object,
        projection: &mut Projection,
    ) -> Grouping {
        let mut grouping = Grouping::new(
            spec,
            (&self.scanned(object), object),
            &context.names,
            projection,
        );
        if let Some(width) = self.interval {
            grouping.push_time(TimeKey {
                column: projection.need("ts"),
                span: context.span,
                width,
            });
        }
        grouping
    }

    /// Sums of the groups from a scan by these keys.
    fn sums(self, groups: Unordered<Tally>, object: Object) -> Unordered<UsageSum> {
        let sums = groups
            .into_iter()
            .map(|(group, tally)| (group, tally.sum(object)));
        if !self.of_sorts {
            return sums.collect();
        }
        let mut sorted: FxHashMap<Vec<KeyValue>, UsageSum> = FxHashMap::default();
        for (mut group, sum) in sums {
            let time = self.interval.and_then(|_| group.pop());
            let word = match group.pop() {
                Some(KeyValue::Text(word)) => Some(word),
                _ => None,
            };
            let sort = match object {
                Object::First => Sort::of_class(word.as_deref()),
                Object::Second => Sort::of_name(word.as_deref()),
            };
            group.extend(time);
            group.push(KeyValue::Int(sort as i64));
            sorted.entry(group).or_default().merge(sum);
        }
        sorted.into_iter().collect()
    }
}

fn sums_by<const N: usize>(
    context: &Context<'_>,
    spec: &'static Spec,
    by: [By<'_>; N],
) -> Result<Vec<Unordered<UsageSum>>, AnalysisError> {
    let mut pass = context.pass(spec, &[])?;
    let usage = Usage::new(&mut pass);
    // The reasons for unknown objects are included: usually there are none.
    let by_reason = By {
        keys: &[Key::Reason],
        of_sorts: true,
        interval: None,
    };
    let all_by = by.into_iter().chain([by_reason]);
    let groupings: Vec<Grouping> = all_by
        .clone()
        .map(|by| by.grouping(context, spec, Object::First, &mut pass.projection))
        .collect();
    let tallied = pass.run_by(context.tables, &usage, &groupings)?;
    let mut all: Vec<Unordered<UsageSum>> = all_by
        .zip(tallied)
        .map(|(by, groups)| by.sums(groups, Object::First))
        .collect();
    let reasons = all.pop().unwrap_or_default();
    if may_have_second(spec, &reasons) {
        for (by, groups) in by.into_iter().zip(&mut all) {
            *groups = with_second(context, spec, by, std::mem::take(groups))?;
        }
    }
    if let Some(groups) = all.first() {
        let bytes = groups.iter().map(|(_, sum)| sum.bytes()).sum();
        note_unknown(context, reasons, bytes);
    }
    Ok(all)
}

/// Whether calls write to second objects. Writes to a file from another object are not among the
/// calls on files, so the second objects must be scanned.
fn may_have_second(spec: &Spec, groups: &Unordered<UsageSum>) -> bool {
    spec.hooks.second.is_some() || groups.iter().any(|(_, sum)| sum.with_second > 0)
}

fn with_second(
    context: &Context<'_>,
    spec: &'static Spec,
    by: By<'_>,
    groups: Unordered<UsageSum>,
) -> Result<Unordered<UsageSum>, AnalysisError> {
    let mut groups: FxHashMap<Vec<KeyValue>, UsageSum> = groups.into_iter().collect();
    let mut pass = context.pass_second(spec, &[])?;
    pass.grouping = by.grouping(context, spec, Object::Second, &mut pass.projection);
    let usage = Usage::new(&mut pass);
    let second = pass.run(context.tables, &usage)?.into_iter().collect();
    for (group, more) in by.sums(second, Object::Second) {
        groups.entry(group).or_default().merge(more);
    }
    Ok(groups.into_iter().collect())
}

/// Adds a caveat about bytes transferred to or from unknown objects, with the reasons.
fn note_unknown(context: &Context<'_>, mut reasons: Unordered<UsageSum>, bytes: i64) {
    let sort = KeyValue::Int(Sort::Unknown as i64);
    reasons.retain(|(group, sum)| group.last() == Some(&sort) && sum.bytes() > 0);
    reasons.index_sort_by(|(a, _), (b, _)| a.cmp(b));
    let reasons = reasons.into_iter().map(|(group, sum)| {
        let reason = match group.into_iter().next() {
            Some(KeyValue::Text(reason)) => reason,
            _ => "no reason recorded".into(),
        };
        (reason, sum.bytes())
    });
    if let Some(caveat) = caveats::unknown_objects(reasons.collect(), bytes) {
        context.note(caveat);
    }
}

fn by_object(
    context: &Context<'_>,
    spec: &'static Spec,
    (name, title, keys): Wanted<'_>,
    mut objects: Unordered<UsageSum>,
) -> Result<AnswerTable, AnalysisError> {
    let roles = if may_have_second(spec, &objects) {
        [Object::First, Object::Second].as_slice()
    } else {
        &[Object::First]
    };
    let by_time = context.interval.is_some();
    let is_of_files = spec.kind == Kind::Files;
    let mut table = AnswerTable::new(name, title, object_columns(keys, by_time, is_of_files));
    let fills = add_fills(context, keys, is_of_files, &mut objects)?;
    facts::push(
        &mut table,
        "objects",
        "objects",
        Measure::Count,
        distinct(&objects, keys.len()) as i64,
    );
    let limit = context.limit(ROWS);
    let order = |(group_a, a): &(Vec<KeyValue>, UsageSum),
                 (group_b, b): &(Vec<KeyValue>, UsageSum)| {
        let mapped =
            |group: &Vec<KeyValue>| fill_of(fills.as_ref(), group).map_or(0, |sum| sum.mapped);
        let total = |group, sum: &UsageSum| (sum.bytes() + mapped(group), sum.weight());
        let by_time = group_a[keys.len()..].cmp(&group_b[keys.len()..]);
        by_time
            .then_with(|| total(group_b, b).cmp(&total(group_a, a)))
            .then_with(|| group_a.cmp(group_b))
    };
    let is_sorted = context.query.sort.is_some();
    let found = objects.len();
    if !is_sorted && !by_time && limit < objects.len() {
        objects.select_nth_unstable_by(limit, order);
        objects.truncate(limit);
    }
    objects.sort_unstable_by(order);
    if !is_sorted && by_time {
        keep_of_each_interval(&mut objects, keys.len(), limit);
    }
    let shown: Vec<&[KeyValue]> = objects.iter().map(|(group, _)| group.as_slice()).collect();
    let used_by = used_by(context, spec, (keys, fills.is_some()), roles, &shown)?;
    for ((group, sum), by) in objects.iter().zip(used_by) {
        let mut row = Vec::with_capacity(table.columns.len());
        row.extend(begin_of(group, keys));
        for (key, value) in keys.iter().zip(group) {
            row.extend(key.cells(value, &context.names));
        }
        row.extend([sum.read.into(), sum.written.into()]);
        if is_of_files {
            let known = fills.as_ref().map(|_| FillSum::default());
            let fill = fill_of(fills.as_ref(), group).or(known);
            row.extend(page_cache_fill::cells(fill.as_ref()));
        }
        row.extend([sum.reads.into(), sum.writes.into(), sum.others.into()]);
        row.push(Value::List(by.into_iter().map(Value::Text).collect()));
        table.rows.push(row);
    }
    context.finish_blocks(&mut table, limit);
    context.note_cut(&table, found);
    Ok(table)
}

/// Users of each group; if it was only mapped, those with page-cache fills.
fn used_by(
    context: &Context<'_>,
    spec: &'static Spec,
    (keys, has_fills): (&[Key], bool),
    roles: &[Object],
    shown: &[&[KeyValue]],
) -> Result<Vec<Vec<String>>, AnalysisError> {
    let users = (keys, [Key::Process, Key::Fd].as_slice());
    let mut used_by = sharers::of(context, spec, users, roles, shown)?;
    for (by, group) in used_by.iter_mut().zip(shown) {
        if by.is_empty() && has_fills {
            let users = (keys, [Key::Process].as_slice());
            *by = sharers::of(context, &FILLS, users, &[Object::First], &[group])?.concat();
        }
    }
    Ok(used_by)
}

/// Adds page-cache fills, including objects that have nothing else.
fn add_fills(
    context: &Context<'_>,
    keys: &[Key],
    is_of_files: bool,
    objects: &mut Unordered<UsageSum>,
) -> Result<Option<Fills>, AnalysisError> {
    if !is_of_files {
        return Ok(None);
    }
    let fills = page_cache_fill::of(context, keys)?;
    let known: FxHashSet<&[KeyValue]> = objects.iter().map(|(group, _)| &group[..]).collect();
    let mut more: Vec<_> = fills
        .iter()
        .flatten()
        .filter(|(group, sum)| sum.has_come() && !known.contains(&group[..]))
        .map(|(group, _)| (group.clone(), UsageSum::default()))
        .collect();
    objects.append(&mut more);
    Ok(fills)
}

fn fill_of(fills: Option<&Fills>, group: &[KeyValue]) -> Option<FillSum> {
    fills?.get(group).copied()
}

fn object_columns(keys: &[Key], by_time: bool, is_of_files: bool) -> Vec<AnswerColumn> {
    let column = AnswerColumn::new;
    let mut columns = Vec::new();
    if by_time {
        columns.push(column("ts_ns", "time", Measure::Time));
    }
    columns.extend(keys.iter().flat_map(|key| key.answer_columns()));
    columns.extend([
        column("read_bytes", "read", Measure::Bytes),
        column("write_bytes", "written", Measure::Bytes),
    ]);
    if is_of_files {
        columns.extend(page_cache_fill::columns());
    }
    columns.extend([
        column("reads", "reads", Measure::Count).priority(3),
        column("writes", "writes", Measure::Count).priority(3),
        column("other_calls", "other calls", Measure::Count).priority(5),
        column("by", "by", Measure::Text).priority(1),
    ]);
    columns
}

/// The start of a group's interval, if there are intervals.
fn begin_of(group: &[KeyValue], keys: &[Key]) -> Option<Value> {
    match group.get(keys.len()) {
        Some(KeyValue::Int(begin)) => Some((*begin).into()),
        _ => None,
    }
}

/// Number of groups that differ in their keys.
fn distinct<S>(groups: &Unordered<S>, keys: usize) -> usize {
    let of_keys = groups.iter().map(|(group, _)| group.get(..keys));
    of_keys.collect::<FxHashSet<_>>().len()
}

/// Truncates each run of groups of one interval.
fn keep_of_each_interval<S>(groups: &mut Unordered<S>, keys: usize, limit: usize) {
    let (mut last, mut count) = (None, 0);
    groups.retain(|(group, _)| {
        let time = group.get(keys).cloned();
        count = if time == last { count + 1 } else { 1 };
        last = time;
        count <= limit
    });
}
