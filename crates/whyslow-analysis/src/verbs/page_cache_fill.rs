//! Bytes read from files that were in the page cache, and page-cache fills.
//!
//! Pages that were filled for a read call were not in the cache, or were read ahead for later
//! calls. So the bytes read, minus those filled for reads, were certainly in the cache; the rest is
//! of both kinds. Reads that bypass the cache (`O_DIRECT`) fill nothing: if a file had such a
//! descriptor, the result is unknown. It is also unknown if pages were not recorded, or if the
//! query selects only some of the calls.

use arrow_array::RecordBatch;
use rustc_hash::{FxHashMap, FxHashSet};
use whyslow_model::answer::{AnswerColumn, Measure, Value};
use whyslow_model::syscall::Op;

use crate::AnalysisError;
use crate::context::Context;
use crate::fold::Spot;
use crate::keys::{Key, KeyValue};
use crate::kinds::{DESCRIPTORS, FILES, FILLS};
use crate::pass::{Pass, Summing};
use crate::query::Filter;
use crate::scan::{ColumnRef, Ints, Texts, per_word};

/// On x86 and on ARM: the value of one is `O_DIRECTORY` on the other, and directories are not read
/// this way.
const O_DIRECT: i64 = 0o40_000 | 0o200_000;

/// Classes of objects whose pages are in the cache.
const CACHED: [&str; 2] = ["file", "block"];

/// Sums of a group.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct FillSum {
    /// Bytes filled for read calls, for mappings, and for other causes.
    read: i64,
    pub(crate) mapped: i64,
    other: i64,
    /// Bytes that calls read from objects whose pages are in the cache.
    moved: i64,
    /// Some of them may have bypassed the cache.
    is_direct: bool,
}

impl FillSum {
    pub(crate) fn merge(&mut self, more: FillSum) {
        self.read += more.read;
        self.mapped += more.mapped;
        self.other += more.other;
        self.moved += more.moved;
        self.is_direct |= more.is_direct;
    }

    pub(crate) fn has_come(&self) -> bool {
        self.read + self.mapped + self.other > 0
    }
}

/// Cells of [`columns`]; all are null if the sum is unknown.
pub(crate) fn cells(sum: Option<&FillSum>) -> [Value; 3] {
    let cached = sum.filter(|sum| sum.moved > 0 && !sum.is_direct);
    [
        sum.map(|sum| sum.read + sum.mapped + sum.other).into(),
        sum.map(|sum| sum.mapped).into(),
        cached.map(|sum| (sum.moved - sum.read).max(0)).into(),
    ]
}

pub(crate) fn columns() -> [AnswerColumn; 3] {
    let column = AnswerColumn::new;
    [
        column("filled_bytes", "filled", Measure::Bytes).priority(2),
        column("mapped_fill_bytes", "filled by mappings", Measure::Bytes).priority(4),
        column("cached_bytes", "from cache", Measure::Bytes).priority(2),
    ]
}

pub(crate) type Fills = FxHashMap<Vec<KeyValue>, FillSum>;

/// By group, and by interval if the query has one; `None` if unknown.
pub(crate) fn of(context: &Context<'_>, keys: &[Key]) -> Result<Option<Fills>, AnalysisError> {
    let query = context.query;
    if !context.names.recorded.states(&["pages"]) {
        note_unknown(context);
        return Ok(None);
    }
    let is_known = keys.iter().all(|key| key.is_object() || key.is_owner());
    if !is_known || !is_of_all_calls(&query.filter) {
        context.note("page-cache fills are only known by file and thread".into());
        return Ok(None);
    }
    let mut fills = Fills::default();
    let mut pass = by_time(context, context.pass(&FILLS, keys)?);
    let came = Came {
        cause: pass.projection.need("cause"),
        bytes: pass.projection.need("bytes"),
    };
    for (group, sum) in pass.run(context.tables, &came)? {
        fills.entry(group).or_default().merge(sum);
    }
    let mut pass = by_time(context, context.pass(&FILES, keys)?);
    let [op, class, bytes] = ["op", "fd_class", "bytes"].map(|name| pass.projection.need(name));
    for (group, sum) in pass.run(context.tables, &Read { op, class, bytes })? {
        fills.entry(group).or_default().merge(sum);
    }
    // In any process: a descriptor may have been passed on.
    let objects: Vec<Key> = keys.iter().copied().filter(|key| key.is_object()).collect();
    let direct = direct(context, &objects)?;
    for (group, sum) in &mut fills {
        let values = keys.iter().zip(group).filter(|(key, _)| key.is_object());
        let object: Vec<KeyValue> = values.map(|(_, value)| value.clone()).collect();
        sum.is_direct = direct.contains(&object);
    }
    Ok(Some(fills))
}

/// Adds a caveat, if the query is about it.
fn note_unknown(context: &Context<'_>) {
    let sort = context.query.sort.as_ref();
    let names = columns().map(|column| column.name);
    if context.query.wide || sort.is_some_and(|sort| names.contains(&sort.column)) {
        context.note(
            "page cache hits unavailable: page faults not recorded (add `--what +pages`)".into(),
        );
    }
}

fn by_time(context: &Context<'_>, mut pass: Pass) -> Pass {
    if let Some(width) = context.interval {
        pass.group_by_time(context.span, width);
    }
    pass
}

/// Whether it excludes no calls for which pages may have been filled.
fn is_of_all_calls(filter: &Filter) -> bool {
    let given = filter.clone();
    let of_files = Filter {
        pids: given.pids,
        tids: given.tids,
        comms: given.comms,
        cgroups: given.cgroups,
        files: given.files,
        no_tracer: given.no_tracer,
        ..Filter::default()
    };
    *filter == of_files
}

/// Groups with a descriptor that bypasses the cache.
fn direct(context: &Context<'_>, keys: &[Key]) -> Result<FxHashSet<Vec<KeyValue>>, AnalysisError> {
    let filter = Filter {
        files: context.query.filter.files.clone(),
        ..Filter::default()
    };
    let mut pass = context.pass_of(&DESCRIPTORS, keys, &filter)?;
    let flags = Flags(pass.projection.need("flags"), O_DIRECT);
    let groups = pass.run(context.tables, &flags)?.into_iter();
    Ok(groups
        .filter(|(_, is)| *is)
        .map(|(group, _)| group)
        .collect())
}

struct Came {
    cause: ColumnRef,
    bytes: ColumnRef,
}

impl Summing for Came {
    type Columns<'b> = (Texts<'b>, Vec<Cause>, Ints<'b>);
    type Sum = FillSum;

    fn columns<'b>(
        &self,
        batch: &'b RecordBatch,
        _: Spot,
    ) -> Result<Self::Columns<'b>, AnalysisError> {
        let cause = self.cause.texts(batch)?;
        let causes = per_word(&cause, |cause| match cause {
            "read" => Cause::Read,
            "mapped" => Cause::Mapped,
            "write" => Cause::Write,
            _ => Cause::Other,
        });
        Ok((cause, causes, self.bytes.ints(batch)?))
    }

    fn add(&self, sum: &mut FillSum, (cause, causes, bytes): &Self::Columns<'_>, row: u32) {
        let Some(key) = cause.key(row) else { return };
        let bytes = bytes.at(row);
        match causes[key] {
            Cause::Read => sum.read += bytes,
            Cause::Mapped => sum.mapped += bytes,
            Cause::Other => sum.other += bytes,
            // Created by a write, not read.
            Cause::Write => {}
        }
    }

    fn merge(&self, sum: &mut FillSum, other: FillSum) {
        sum.merge(other);
    }
}

#[derive(Debug, Clone, Copy)]
enum Cause {
    Read,
    Mapped,
    Write,
    Other,
}

struct Read {
    op: ColumnRef,
    class: ColumnRef,
    bytes: ColumnRef,
}

impl Summing for Read {
    type Columns<'b> = (Texts<'b>, Vec<bool>, Texts<'b>, Vec<bool>, Ints<'b>);
    type Sum = FillSum;

    fn columns<'b>(
        &self,
        batch: &'b RecordBatch,
        _: Spot,
    ) -> Result<Self::Columns<'b>, AnalysisError> {
        let (op, class) = (self.op.texts(batch)?, self.class.texts(batch)?);
        let reads = per_word(&op, |op| {
            matches!(Op::by_name(op), Some(Op::Read | Op::ReadWrite))
        });
        let classes = per_word(&class, |class| CACHED.contains(&class));
        Ok((op, reads, class, classes, self.bytes.ints(batch)?))
    }

    fn add(
        &self,
        sum: &mut FillSum,
        (op, reads, class, classes, bytes): &Self::Columns<'_>,
        row: u32,
    ) {
        let is = |texts: &Texts<'_>, words: &[bool]| texts.key(row).is_some_and(|key| words[key]);
        if is(op, reads) && is(class, classes) {
            sum.moved += bytes.get(row).unwrap_or(0);
        }
    }

    fn merge(&self, sum: &mut FillSum, other: FillSum) {
        sum.merge(other);
    }
}

/// Whether any row has these flags.
struct Flags(ColumnRef, i64);

impl Summing for Flags {
    type Columns<'b> = Ints<'b>;
    type Sum = bool;

    fn columns<'b>(&self, batch: &'b RecordBatch, _: Spot) -> Result<Ints<'b>, AnalysisError> {
        self.0.ints(batch)
    }

    fn add(&self, sum: &mut bool, flags: &Ints<'_>, row: u32) {
        *sum |= flags.get(row).unwrap_or(0) & self.1 != 0;
    }

    fn merge(&self, sum: &mut bool, other: bool) {
        *sum |= other;
    }
}
