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
    let groups = sums_by(context, spec, wanted.map(|(_, _, keys)| keys))?;
    let mut failure = None;
    let mut groups = groups.into_iter();
    let tables = wanted.map(|wanted| {
        let groups = groups.next().unwrap_or_default();
        let made = if wanted.2.iter().any(|key| key.is_object()) {
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
    let groups = sums_by(context, spec, [keys])?.pop();
    Ok(groups.into_iter().flatten().collect())
}

fn sums_by<const N: usize>(
    context: &Context<'_>,
    spec: &'static Spec,
    by: [&[Key]; N],
) -> Result<Vec<Unordered<UsageSum>>, AnalysisError> {
    let mut pass = context.pass(spec, &[])?;
    let usage = Usage::new(&mut pass, Object::First);
    // The reasons why objects are unknown come along: mostly there are none to be read.
    let groupings: Vec<Grouping> = by
        .into_iter()
        .chain([[Key::Reason].as_slice()])
        .map(|keys| Grouping::new(spec, keys, Object::First, &mut pass.projection))
        .collect();
    let tallied = pass.run_by(context.tables, &usage, &groupings)?;
    let mut all: Vec<Unordered<UsageSum>> = tallied
        .into_iter()
        .map(|groups| usage.sums(groups))
        .collect();
    let reasons = all.pop().unwrap_or_default();
    if reasons.iter().any(|(_, sum)| sum.with_second > 0) {
        for (keys, groups) in by.into_iter().zip(&mut all) {
            *groups = with_second(context, spec, keys, std::mem::take(groups))?;
        }
    }
    if let Some(groups) = all.first() {
        let bytes = groups.iter().map(|(_, sum)| sum.bytes()).sum();
        note_unknown(context, reasons, bytes);
    }
    Ok(all)
}

fn with_second(
    context: &Context<'_>,
    spec: &'static Spec,
    keys: &[Key],
    groups: Unordered<UsageSum>,
) -> Result<Unordered<UsageSum>, AnalysisError> {
    let mut groups: Groups<UsageSum> = groups.into_iter().collect();
    let mut pass = if keys.iter().any(|key| key.is_object()) {
        context.pass_second(spec, keys)?
    } else {
        let mut pass = context.pass(spec, keys)?;
        pass.selector.only_read_write(&mut pass.projection);
        pass
    };
    let usage = Usage::new(&mut pass, Object::Second);
    let second = pass.run(context.tables, &usage)?.into_iter().collect();
    for (group, more) in usage.sums(second) {
        groups.entry(group).or_default().merge(more);
    }
    Ok(groups.into_iter().collect())
}

/// Tells how many of the bytes were moved on unknown objects, and why these are unknown.
fn note_unknown(context: &Context<'_>, mut reasons: Unordered<UsageSum>, bytes: i64) {
    let place = Sort::Unknown as usize;
    reasons.sort_by(|(a, _), (b, _)| a.cmp(b));
    let reasons = reasons.into_iter().filter_map(|(group, sum)| {
        let unknown = sum.read[place] + sum.written[place];
        let reason = match group.into_iter().next() {
            Some(KeyValue::Text(reason)) => reason,
            _ => "no reason recorded".into(),
        };
        (unknown > 0).then_some((reason, unknown))
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
    let mut blocks = block_bytes(context, keys)?;
    let mut owners: Vec<(Vec<KeyValue>, UsageSum, BlockSum)> = groups
        .into_iter()
        .map(|(group, sum)| {
            let block = blocks.as_mut().and_then(|blocks| blocks.remove(&group));
            (group, sum, block.unwrap_or_default())
        })
        .collect();
    let has_blocks = blocks.is_some();
    let only_blocks = blocks.into_iter().flatten();
    owners.extend(only_blocks.map(|(group, block)| (group, UsageSum::default(), block)));
    owners.sort_by(|(group_a, a, block_a), (group_b, b, block_b)| {
        let total = |sum: &UsageSum, block: &BlockSum| {
            (sum.bytes() + block.read + block.written, sum.weight())
        };
        total(b, block_b)
            .cmp(&total(a, block_a))
            .then_with(|| group_a.cmp(group_b))
    });

    let mut table = AnswerTable::new(name, title, owner_columns(keys));
    facts::push(
        &mut table,
        "owners",
        "owners",
        Measure::Count,
        owners.len() as i64,
    );
    for (group, sum, block) in owners {
        let mut row = Vec::with_capacity(table.columns.len());
        for (key, value) in keys.iter().zip(&group) {
            row.extend(key.cells(value, &context.names));
        }
        for sort in Sort::ALL {
            row.push(sum.read[sort as usize].into());
            row.push(sum.written[sort as usize].into());
        }
        let known = |bytes: i64| {
            if has_blocks {
                Value::Int(bytes)
            } else {
                Value::Null
            }
        };
        row.extend([known(block.read), known(block.written)]);
        row.extend([sum.reads.into(), sum.writes.into(), sum.others.into()]);
        row.push(context.names.is_tracer(keys, &group).into());
        table.rows.push(row);
    }
    context.finish(&mut table, context.limit(ROWS));
    Ok(table)
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
    let seconds = objects.iter().any(|(_, sum)| sum.with_second > 0);
    let roles = if seconds {
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
        row.push(sum.read.iter().sum::<i64>().into());
        row.push(sum.written.iter().sum::<i64>().into());
        row.extend([sum.reads.into(), sum.writes.into(), sum.others.into()]);
        row.push(Value::List(by.into_iter().map(Value::Text).collect()));
        table.rows.push(row);
    }
    context.finish(&mut table, limit);
    Ok(table)
}

/// Sums of what calls do with their first object, or of what they write to their second one.
struct Usage {
    object: Object,
    op: ColumnRef,
    /// Of the first object; the second one is known by its name only.
    class: ColumnRef,
    bytes: ColumnRef,
}

#[derive(Debug, Default, Clone)]
pub(crate) struct UsageSum {
    pub(crate) read: [i64; 4],
    pub(crate) written: [i64; 4],
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
        self.read.iter().chain(&self.written).sum()
    }

    /// Calls for ordering: one that reads and writes counts as two.
    fn weight(&self) -> i64 {
        self.reads + self.writes + self.others
    }

    fn merge(&mut self, other: UsageSum) {
        for sort in 0..Sort::ALL.len() {
            self.read[sort] += other.read[sort];
            self.written[sort] += other.written[sort];
        }
        self.reads += other.reads;
        self.writes += other.writes;
        self.others += other.others;
        self.calls += other.calls;
        self.with_second += other.with_second;
    }
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

/// Calls and bytes by way and sort. Nothing is decided per row: whether the next call reads or
/// writes cannot be foreseen, and a wrong guess costs more than all of the adding.
type Tally = [WayTally; 4];

/// What one row adds to lies together: with many groups, each touch of memory counts.
#[derive(Debug, Default, Clone, Copy)]
struct WayTally {
    calls: i64,
    /// By sort.
    bytes: [i64; 4],
}

/// What each row of a batch adds: to which part of a tally, and how many bytes.
struct UsageColumns {
    ways: Vec<u8>,
    sorts: Vec<u8>,
    bytes: Vec<i64>,
}

impl Usage {
    fn new(pass: &mut Pass, object: Object) -> Self {
        let projection = &mut pass.projection;
        Self {
            object,
            op: projection.need("op"),
            class: projection.need(match object {
                Object::First => "fd_class",
                Object::Second => "path2",
            }),
            bytes: projection.need("bytes"),
        }
    }

    fn sums(&self, groups: Unordered<Tally>) -> Unordered<UsageSum> {
        let sum = |tally: Tally| {
            let [reads, writes, both, others] = tally.map(|way| way.calls);
            let [read, written, moved, _] = tally.map(|way| way.bytes);
            if self.object == Object::Second {
                return UsageSum {
                    writes: reads + writes + both + others,
                    written: std::array::from_fn(|sort| {
                        tally.iter().map(|way| way.bytes[sort]).sum()
                    }),
                    ..UsageSum::default()
                };
            }
            UsageSum {
                read: std::array::from_fn(|sort| read[sort] + moved[sort]),
                written,
                reads: reads + both,
                writes,
                others,
                calls: reads + writes + both + others,
                with_second: both,
            }
        };
        let groups = groups.into_iter();
        groups.map(|(group, tally)| (group, sum(tally))).collect()
    }
}

impl Summing for Usage {
    type Columns<'b> = UsageColumns;
    type Sum = Tally;

    fn columns(&self, batch: &RecordBatch, _: Spot) -> Result<UsageColumns, AnalysisError> {
        let (op, class) = (self.op.texts(batch)?, self.class.texts(batch)?);
        let sort_of = |word: &str| match self.object {
            Object::First => Sort::of_class(Some(word)) as u8,
            Object::Second => Sort::of_name(Some(word)) as u8,
        };
        let bytes = self.bytes.ints(batch)?;
        let way_of = |word: &str| Way::of(Op::by_name(word)) as u8;
        Ok(UsageColumns {
            ways: per_row(&op, &per_word(&op, way_of), Way::Other as u8),
            sorts: per_row(&class, &per_word(&class, sort_of), Sort::Unknown as u8),
            bytes: (0..batch.num_rows() as u32)
                .map(|row| bytes.or_zero(row))
                .collect(),
        })
    }

    #[inline]
    fn add(&self, tally: &mut Tally, columns: &UsageColumns, row: u32) {
        let row = row as usize;
        let way = &mut tally[usize::from(columns.ways[row] % 4)];
        way.calls += 1;
        way.bytes[usize::from(columns.sorts[row] % 4)] += columns.bytes[row];
    }

    fn merge(&self, tally: &mut Tally, other: Tally) {
        for (way, more) in tally.iter_mut().zip(other) {
            way.calls += more.calls;
            for (bytes, more) in way.bytes.iter_mut().zip(more.bytes) {
                *bytes += more;
            }
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
