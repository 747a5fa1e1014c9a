//! `usage`: bytes and operations by owner.
//!
//! By process (or any key): one row with the bytes of files, network, other and unknown objects,
//! and those of block requests, where the key exists there. By file: one row a file with everyone
//! who used it. Bytes of a call count whole, also where the window cuts it.
//!
//! A call that reads one object and writes another (`read_write`) counts once for each: it reads
//! the object of `fd`, and writes the one of `fd2`. Block requests of a bio-based device are left
//! out of a process's bytes, because the same bytes follow as requests of the disk below.

use arrow_array::RecordBatch;
use rustc_hash::FxHashMap;
use whyslow_model::answer::{AnswerColumn, AnswerTable, Measure, Value};
use whyslow_model::syscall::Op;

use super::sharers;
use crate::AnalysisError;
use crate::caveats;
use crate::context::Context;
use crate::facts;
use crate::fold::Spot;
use crate::grouping::{Grouping, Object};
use crate::keys::{Key, KeyValue};
use crate::kinds::{BLOCK, Spec};
use crate::objects::Sort;
use crate::pass::{Groups, Pass, Summing, Unordered};
use crate::query::Kind;
use crate::scan::{ColumnRef, Ints, Texts, per_row, per_word};

const ROWS: usize = 10;

/// Name, title and keys of a table.
pub(crate) type Wanted<'w> = (&'w str, &'w str, &'w [Key]);

/// Bytes and operations by owner.
pub(crate) fn table(
    context: &Context<'_>,
    spec: &'static Spec,
    wanted: Wanted<'_>,
) -> Result<AnswerTable, AnalysisError> {
    let [table] = tables(context, spec, [wanted])?;
    Ok(table)
}

/// Several of these tables, from one scan.
pub(crate) fn tables<const N: usize>(
    context: &Context<'_>,
    spec: &'static Spec,
    wanted: [Wanted<'_>; N],
) -> Result<[AnswerTable; N], AnalysisError> {
    let of_objects = |keys: &[Key]| keys.iter().any(|key| key.is_object());
    let by = wanted.map(|(_, _, keys)| By {
        keys,
        by_sort: !of_objects(keys),
    });
    let groups = sums_by(context, spec, by)?;
    let mut failure = None;
    let mut groups = groups.into_iter();
    let tables = wanted.map(|wanted| {
        let groups = groups.next().unwrap_or_default();
        let made = if of_objects(wanted.2) {
            by_object(context, spec, wanted, groups)
        } else {
            by_owner(context, wanted, groups)
        };
        made.unwrap_or_else(|error| {
            failure.get_or_insert(error);
            AnswerTable::new("", "", Vec::new())
        })
    });
    failure.map_or(Ok(tables), Err)
}

/// Sums by `keys`; where these name objects, what a call writes to its second object belongs there.
pub(crate) fn sums(
    context: &Context<'_>,
    spec: &'static Spec,
    keys: &[Key],
) -> Result<Groups<UsageSum>, AnalysisError> {
    let by_sort = false;
    let groups = sums_by(context, spec, [By { keys, by_sort }])?.pop();
    Ok(groups.into_iter().flatten().collect())
}

/// What sums are told apart by.
#[derive(Debug, Clone, Copy)]
struct By<'k> {
    keys: &'k [Key],
    /// Also by the sort of the object; groups then have its number as their last value.
    by_sort: bool,
}

impl By<'_> {
    /// Keys to scan by. The second object of a call is known by its name only.
    fn scanned(self, object: Object) -> Vec<Key> {
        let sort = match object {
            Object::First => Key::FdClass,
            Object::Second => Key::File,
        };
        let mut keys = self.keys.to_vec();
        keys.extend(self.by_sort.then_some(sort));
        keys
    }

    /// Sums of the groups that a scan by these keys found.
    fn sums(self, groups: Unordered<Tally>, object: Object) -> Unordered<UsageSum> {
        let sums = groups
            .into_iter()
            .map(|(group, tally)| (group, tally.sum(object)));
        if !self.by_sort {
            return sums.collect();
        }
        let mut sorted: FxHashMap<Vec<KeyValue>, UsageSum> = FxHashMap::default();
        for (mut group, sum) in sums {
            let word = match group.pop() {
                Some(KeyValue::Text(word)) => Some(word),
                _ => None,
            };
            let sort = match object {
                Object::First => Sort::of_class(word.as_deref()),
                Object::Second => Sort::of_name(word.as_deref()),
            };
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
    // The reasons why objects are unknown come along: mostly there are none to be read.
    let by_reason = By {
        keys: &[Key::Reason],
        by_sort: true,
    };
    let all_by = by.into_iter().chain([by_reason]);
    let groupings: Vec<Grouping> = all_by
        .clone()
        .map(|by| by.scanned(Object::First))
        .map(|keys| Grouping::new(spec, &keys, Object::First, &mut pass.projection))
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

/// Whether calls write to second objects. What is written to a file from elsewhere is not among the
/// calls on files, so that only looking for it tells.
fn may_have_second(spec: &Spec, groups: &Unordered<UsageSum>) -> bool {
    spec.kind == Kind::Files || groups.iter().any(|(_, sum)| sum.with_second > 0)
}

fn with_second(
    context: &Context<'_>,
    spec: &'static Spec,
    by: By<'_>,
    groups: Unordered<UsageSum>,
) -> Result<Unordered<UsageSum>, AnalysisError> {
    let mut groups: FxHashMap<Vec<KeyValue>, UsageSum> = groups.into_iter().collect();
    let keys = by.scanned(Object::Second);
    let mut pass = context.pass_second(spec, &keys)?;
    let usage = Usage::new(&mut pass);
    let second = pass.run(context.tables, &usage)?.into_iter().collect();
    for (group, more) in by.sums(second, Object::Second) {
        groups.entry(group).or_default().merge(more);
    }
    Ok(groups.into_iter().collect())
}

/// Tells how many of the bytes were moved on unknown objects, and why these are unknown.
fn note_unknown(context: &Context<'_>, mut reasons: Unordered<UsageSum>, bytes: i64) {
    let sort = KeyValue::Int(Sort::Unknown as i64);
    reasons.retain(|(group, sum)| group.last() == Some(&sort) && sum.bytes() > 0);
    reasons.sort_by(|(a, _), (b, _)| a.cmp(b));
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

fn by_owner(
    context: &Context<'_>,
    (name, title, keys): Wanted<'_>,
    groups: Unordered<UsageSum>,
) -> Result<AnswerTable, AnalysisError> {
    let blocks = block_bytes(context, keys)?;
    let has_blocks = blocks.is_some();
    let owners = owners(groups, blocks);
    let mut table = AnswerTable::new(name, title, owner_columns(keys));
    facts::push(
        &mut table,
        "owners",
        "owners",
        Measure::Count,
        owners.len() as i64,
    );
    for (
        group,
        OwnerSum {
            all,
            read,
            written,
            block,
        },
    ) in owners
    {
        let mut row = Vec::with_capacity(table.columns.len());
        for (key, value) in keys.iter().zip(&group) {
            row.extend(key.cells(value, &context.names));
        }
        for sort in Sort::ALL {
            row.push(read[sort as usize].into());
            row.push(written[sort as usize].into());
        }
        let known = |bytes: i64| {
            if has_blocks {
                Value::Int(bytes)
            } else {
                Value::Null
            }
        };
        row.extend([known(block.read), known(block.written)]);
        row.extend([all.reads.into(), all.writes.into(), all.others.into()]);
        row.push(context.names.is_tracer(keys, &group).into());
        table.rows.push(row);
    }
    context.finish(&mut table, context.limit(ROWS));
    Ok(table)
}

/// What each owner did, those that moved most first.
fn owners(
    groups: Unordered<UsageSum>,
    blocks: Option<Groups<BlockSum>>,
) -> Vec<(Vec<KeyValue>, OwnerSum)> {
    let mut by_owner: FxHashMap<Vec<KeyValue>, OwnerSum> = FxHashMap::default();
    for (mut group, sum) in groups {
        let sort = match group.pop() {
            Some(KeyValue::Int(sort)) => sort as usize,
            _ => Sort::Unknown as usize,
        };
        let owner = by_owner.entry(group).or_default();
        owner.read[sort] += sum.read;
        owner.written[sort] += sum.written;
        owner.all.merge(sum);
    }
    for (group, block) in blocks.into_iter().flatten() {
        by_owner.entry(group).or_default().block = block;
    }
    let mut owners: Vec<(Vec<KeyValue>, OwnerSum)> = by_owner.into_iter().collect();
    owners.sort_by(|(group_a, a), (group_b, b)| {
        let total = |sum: &OwnerSum| {
            let blocks = sum.block.read + sum.block.written;
            (sum.all.bytes() + blocks, sum.all.weight())
        };
        total(b).cmp(&total(a)).then_with(|| group_a.cmp(group_b))
    });
    owners
}

fn owner_columns(keys: &[Key]) -> Vec<AnswerColumn> {
    let column = AnswerColumn::new;
    let mut columns: Vec<_> = keys.iter().flat_map(|key| key.answer_columns()).collect();
    for (sort, priority) in Sort::ALL.into_iter().zip([0, 0, 3, 2]) {
        let name = sort.name();
        let bytes = |way: &str, short: &str| {
            let (key, title) = (format!("{name}_{way}_bytes"), format!("{name} {short}"));
            column(&key, &title, Measure::Bytes).priority(priority)
        };
        columns.extend([bytes("read", "read"), bytes("write", "write")]);
    }
    columns.extend([
        column("block_read_bytes", "disk read", Measure::Bytes),
        column("block_write_bytes", "disk write", Measure::Bytes),
        column("reads", "reads", Measure::Count).priority(4),
        column("writes", "writes", Measure::Count).priority(4),
        column("other_calls", "other calls", Measure::Count).priority(6),
        column("tracer", "tracer", Measure::Text).priority(7),
    ]);
    columns
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
    let column = AnswerColumn::new;
    let mut columns: Vec<_> = keys.iter().flat_map(|key| key.answer_columns()).collect();
    columns.extend([
        column("read_bytes", "read", Measure::Bytes),
        column("write_bytes", "written", Measure::Bytes),
        column("reads", "reads", Measure::Count).priority(3),
        column("writes", "writes", Measure::Count).priority(3),
        column("other_calls", "other calls", Measure::Count).priority(5),
        column("by", "by", Measure::Text).priority(1),
    ]);
    let mut table = AnswerTable::new(name, title, columns);
    facts::push(
        &mut table,
        "objects",
        "objects",
        Measure::Count,
        objects.len() as i64,
    );
    let limit = context.limit(ROWS);
    let order = |(group_a, a): &(Vec<KeyValue>, UsageSum), (group_b, b): &_| {
        let total = |sum: &UsageSum| (sum.bytes(), sum.weight());
        total(b).cmp(&total(a)).then_with(|| group_a.cmp(group_b))
    };
    if context.question.sort.is_none() && limit < objects.len() {
        objects.select_nth_unstable_by(limit, order);
        objects.truncate(limit);
    }
    objects.sort_unstable_by(order);
    let shown: Vec<&[KeyValue]> = objects.iter().map(|(group, _)| group.as_slice()).collect();
    let sharers = sharers::of(
        context,
        spec,
        (keys, &[Key::Process, Key::Fd]),
        roles,
        &shown,
    )?;
    for ((group, sum), by) in objects.iter().zip(sharers) {
        let mut row = Vec::with_capacity(table.columns.len());
        for (key, value) in keys.iter().zip(group) {
            row.extend(key.cells(value, &context.names));
        }
        row.extend([sum.read.into(), sum.written.into()]);
        row.extend([sum.reads.into(), sum.writes.into(), sum.others.into()]);
        row.push(Value::List(by.into_iter().map(Value::Text).collect()));
        table.rows.push(row);
    }
    context.finish(&mut table, limit);
    Ok(table)
}

/// Counts what calls do, and their bytes.
struct Usage {
    op: ColumnRef,
    bytes: ColumnRef,
}

#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct UsageSum {
    pub(crate) read: i64,
    pub(crate) written: i64,
    pub(crate) reads: i64,
    pub(crate) writes: i64,
    pub(crate) others: i64,
    /// Calls, each once.
    pub(crate) calls: i64,
    /// Those of them that have a second object.
    with_second: i64,
}

impl UsageSum {
    pub(crate) fn bytes(&self) -> i64 {
        self.read + self.written
    }

    /// Calls for ordering: one that reads and writes counts as two.
    fn weight(&self) -> i64 {
        self.reads + self.writes + self.others
    }

    fn merge(&mut self, other: UsageSum) {
        self.read += other.read;
        self.written += other.written;
        self.reads += other.reads;
        self.writes += other.writes;
        self.others += other.others;
        self.calls += other.calls;
        self.with_second += other.with_second;
    }
}

/// What an owner did: with objects of all sorts, of each sort, and on disks.
#[derive(Debug, Default)]
struct OwnerSum {
    all: UsageSum,
    read: [i64; 4],
    written: [i64; 4],
    block: BlockSum,
}

/// What a call does with its objects; the number is its place in a tally.
#[derive(Debug, Clone, Copy)]
enum Way {
    Read = 0,
    Write = 1,
    Both = 2,
    Other = 3,
}

impl Way {
    fn of(op: Option<Op>) -> Self {
        match op {
            Some(Op::Read) => Way::Read,
            Some(Op::Write) => Way::Write,
            Some(Op::ReadWrite) => Way::Both,
            _ => Way::Other,
        }
    }
}

/// Calls and bytes by way. Nothing is decided per row: whether the next call reads or writes cannot
/// be foreseen, and a wrong guess costs more than all of the adding. One line of the cache: with
/// many groups, each touch of memory counts.
#[derive(Debug, Default, Clone, Copy)]
#[repr(align(64))]
struct Tally([WayTally; 4]);

#[derive(Debug, Default, Clone, Copy)]
struct WayTally {
    calls: i64,
    bytes: i64,
}

impl Tally {
    /// What the calls did to their first object, or wrote to their second one.
    fn sum(self, object: Object) -> UsageSum {
        let [reads, writes, both, others] = self.0.map(|way| way.calls);
        let [read, written, moved, _] = self.0.map(|way| way.bytes);
        match object {
            Object::First => UsageSum {
                read: read + moved,
                written,
                reads: reads + both,
                writes,
                others,
                calls: reads + writes + both + others,
                with_second: both,
            },
            Object::Second => UsageSum {
                written: moved,
                writes: both,
                ..UsageSum::default()
            },
        }
    }
}

/// What each row of a batch adds: to which part of a tally, and how many bytes.
struct UsageColumns {
    ways: Vec<u8>,
    bytes: Vec<i64>,
}

impl Usage {
    fn new(pass: &mut Pass) -> Self {
        let projection = &mut pass.projection;
        Self {
            op: projection.need("op"),
            bytes: projection.need("bytes"),
        }
    }
}

impl Summing for Usage {
    type Columns<'b> = UsageColumns;
    type Sum = Tally;

    fn columns(&self, batch: &RecordBatch, _: Spot) -> Result<UsageColumns, AnalysisError> {
        let op = self.op.texts(batch)?;
        let bytes = self.bytes.ints(batch)?;
        let way_of = |word: &str| Way::of(Op::by_name(word)) as u8;
        Ok(UsageColumns {
            ways: per_row(&op, &per_word(&op, way_of), Way::Other as u8),
            bytes: (0..batch.num_rows() as u32)
                .map(|row| bytes.or_zero(row))
                .collect(),
        })
    }

    #[inline]
    fn add(&self, tally: &mut Tally, columns: &UsageColumns, row: u32) {
        let row = row as usize;
        let way = &mut tally.0[usize::from(columns.ways[row] % 4)];
        way.calls += 1;
        way.bytes += columns.bytes[row];
    }

    fn merge(&self, tally: &mut Tally, other: Tally) {
        for (way, more) in tally.0.iter_mut().zip(other.0) {
            way.calls += more.calls;
            way.bytes += more.bytes;
        }
    }
}

/// Bytes of requests, by the same keys; none where requests do not have these keys or nobody
/// recorded them.
fn block_bytes(
    context: &Context<'_>,
    keys: &[Key],
) -> Result<Option<Groups<BlockSum>>, AnalysisError> {
    let same = [Key::Comm, Key::Pid, Key::Tid, Key::Process, Key::Thread];
    let filter = &context.question.filter;
    let of_calls_only = !filter.files.is_empty() || !filter.ops.is_empty() || filter.errors_only;
    if of_calls_only || !context.has("block_io") || !keys.iter().all(|key| same.contains(key)) {
        return Ok(None);
    }
    let mut pass = context.pass(&BLOCK, keys)?;
    let blocks = Blocks {
        op: pass.projection.need("op"),
        layer: pass.projection.need("layer"),
        bytes: pass.projection.need("bytes"),
    };
    let mut groups = pass.run(context.tables, &blocks)?;
    groups.retain(|_, sum| sum.read + sum.written > 0);
    Ok(Some(groups))
}

struct Blocks {
    op: ColumnRef,
    layer: ColumnRef,
    bytes: ColumnRef,
}

#[derive(Debug, Default, Clone, Copy)]
struct BlockSum {
    read: i64,
    written: i64,
}

impl Summing for Blocks {
    type Columns<'b> = (Texts<'b>, Texts<'b>, Ints<'b>);
    type Sum = BlockSum;

    fn columns<'b>(
        &self,
        batch: &'b RecordBatch,
        _: Spot,
    ) -> Result<Self::Columns<'b>, AnalysisError> {
        Ok((
            self.op.texts(batch)?,
            self.layer.texts(batch)?,
            self.bytes.ints(batch)?,
        ))
    }

    fn add(&self, sum: &mut BlockSum, (op, layer, bytes): &Self::Columns<'_>, row: u32) {
        if layer.get(row) == Some("bio") {
            return;
        }
        match op.get(row) {
            Some("read") => sum.read += bytes.at(row),
            Some("write") => sum.written += bytes.at(row),
            _ => {}
        }
    }

    fn merge(&self, sum: &mut BlockSum, other: BlockSum) {
        sum.read += other.read;
        sum.written += other.written;
    }
}
