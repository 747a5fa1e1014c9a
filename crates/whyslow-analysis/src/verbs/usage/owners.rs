//! Bytes transferred by owners (processes, threads), by object class and on disks.

use arrow_array::RecordBatch;
use rustc_hash::FxHashMap;
use whyslow_model::answer::{AnswerColumn, AnswerTable, Measure, Value};
use whyslow_model::sort::IndexSort;

use super::tally::UsageSum;
use super::{ROWS, Wanted, begin_of, distinct};
use crate::AnalysisError;
use crate::context::Context;
use crate::facts;
use crate::fold::Spot;
use crate::keys::{Key, KeyValue};
use crate::kinds::BLOCK;
use crate::objects::Sort;
use crate::pass::{Groups, Summing, Unordered};
use crate::scan::{ColumnRef, Ints, per_row, per_word};

pub(super) fn by_owner(
    context: &Context<'_>,
    (name, title, keys): Wanted<'_>,
    groups: Unordered<UsageSum>,
) -> Result<AnswerTable, AnalysisError> {
    let blocks = block_bytes(context, keys)?;
    let has_blocks = blocks.is_some();
    let owners = owners(groups, blocks, keys.len());
    let by_time = context.interval.is_some();
    let mut table = AnswerTable::new(name, title, owner_columns(keys, by_time));
    facts::push(
        &mut table,
        "owners",
        "owners",
        Measure::Count,
        distinct(&owners, keys.len()) as i64,
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
        row.extend(begin_of(&group, keys));
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
    context.finish_blocks(&mut table, context.limit(ROWS));
    Ok(table)
}

/// The totals of each owner per interval, those with the most bytes first.
fn owners(
    groups: Unordered<UsageSum>,
    blocks: Option<Groups<BlockSum>>,
    keys: usize,
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
    owners.index_sort_by(|(group_a, a), (group_b, b)| {
        let total = |sum: &OwnerSum| {
            let blocks = sum.block.read + sum.block.written;
            (sum.all.bytes() + blocks, sum.all.weight())
        };
        let by_time = group_a[keys..].cmp(&group_b[keys..]);
        by_time
            .then_with(|| total(b).cmp(&total(a)))
            .then_with(|| group_a.cmp(group_b))
    });
    owners
}

fn owner_columns(keys: &[Key], by_time: bool) -> Vec<AnswerColumn> {
    let column = AnswerColumn::new;
    let mut columns = Vec::new();
    if by_time {
        columns.push(column("ts_ns", "time", Measure::Time));
    }
    columns.extend(keys.iter().flat_map(|key| key.answer_columns()));
    for (sort, priority) in Sort::ALL.into_iter().zip([0, 1, 3, 2]) {
        let name = sort.name();
        let bytes = |way: &str, short: &str| {
            let (key, title) = (format!("{name}_{way}_bytes"), format!("{name} {short}"));
            column(&key, &title, Measure::Bytes).priority(priority)
        };
        columns.extend([bytes("read", "rd"), bytes("write", "wr")]);
    }
    columns.extend([
        column("block_read_bytes", "disk rd", Measure::Bytes),
        column("block_write_bytes", "disk wr", Measure::Bytes),
        column("reads", "reads", Measure::Count).priority(4),
        column("writes", "writes", Measure::Count).priority(4),
        column("other_calls", "other calls", Measure::Count).priority(6),
        column("tracer", "tracer", Measure::Text).priority(7),
    ]);
    columns
}

/// Totals of an owner: for all objects, for each class, and on disks.
#[derive(Debug, Default)]
struct OwnerSum {
    all: UsageSum,
    read: [i64; 4],
    written: [i64; 4],
    block: BlockSum,
}

/// Bytes of block requests, by the same keys; `None` if requests do not have these keys or were not
/// recorded.
fn block_bytes(
    context: &Context<'_>,
    keys: &[Key],
) -> Result<Option<Groups<BlockSum>>, AnalysisError> {
    let filter = &context.query.filter;
    let of_calls_only = !filter.files.is_empty()
        || !filter.ops.is_empty()
        || !filter.names.is_empty()
        || filter.errors_only;
    if of_calls_only || !context.has("block_io") || !keys.iter().all(|key| key.is_owner()) {
        return Ok(None);
    }
    let mut pass = context.pass(&BLOCK, keys)?;
    if let Some(width) = context.interval {
        pass.group_by_time(context.span, width);
    }
    let blocks = Blocks {
        op: pass.projection.need("op"),
        layer: pass.projection.need("layer"),
        bytes: pass.projection.need("bytes"),
    };
    let mut groups = pass.run(context.tables, &blocks)?;
    groups.retain(|sum| sum.read + sum.written > 0);
    Ok(Some(groups))
}

struct Blocks {
    op: ColumnRef,
    layer: ColumnRef,
    bytes: ColumnRef,
}

/// Direction of a request, if its bytes count.
#[derive(Debug, Clone, Copy)]
enum Way {
    Read,
    Write,
    Neither,
}

#[derive(Debug, Default, Clone, Copy)]
struct BlockSum {
    read: i64,
    written: i64,
}

impl Summing for Blocks {
    type Columns<'b> = (Vec<Way>, Ints<'b>);
    type Sum = BlockSum;

    fn columns<'b>(
        &self,
        batch: &'b RecordBatch,
        _: Spot,
    ) -> Result<Self::Columns<'b>, AnalysisError> {
        let (op, layer) = (self.op.texts(batch)?, self.layer.texts(batch)?);
        let ways = per_word(&op, |op| match op {
            "read" => Way::Read,
            "write" => Way::Write,
            _ => Way::Neither,
        });
        let are_above = per_word(&layer, |layer| layer == "bio");
        let ways = per_row(&op, &ways, Way::Neither);
        let are_above = per_row(&layer, &are_above, false);
        let ways = ways.into_iter().zip(are_above);
        let ways = ways.map(|(way, is_above)| if is_above { Way::Neither } else { way });
        Ok((ways.collect(), self.bytes.ints(batch)?))
    }

    fn add(&self, sum: &mut BlockSum, (ways, bytes): &Self::Columns<'_>, row: u32) {
        match ways[row as usize] {
            Way::Read => sum.read += bytes.at(row),
            Way::Write => sum.written += bytes.at(row),
            Way::Neither => {}
        }
    }

    fn merge(&self, sum: &mut BlockSum, other: BlockSum) {
        sum.read += other.read;
        sum.written += other.written;
    }
}
