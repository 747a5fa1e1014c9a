//! What of the bytes read of files was in the page cache, and what came into it meanwhile.
//!
//! Pages that came for a call that read the file were not in the cache, or were read ahead for calls
//! to come. So what calls read, less what came for them, was in the cache for certain: the rest is of
//! both kinds. Reads that go past the cache (`O_DIRECT`) have nothing come: where somebody had such a
//! descriptor of a file, nobody can tell. Nor is anything told where pages were not recorded, or the
//! question is about some of the calls only.

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

/// On x86 and on ARM: the one of the other means `O_DIRECTORY`, and nobody reads directories so.
const O_DIRECT: i64 = 0o40_000 | 0o200_000;

/// Classes of objects whose pages are in the cache.
const CACHED: [&str; 2] = ["file", "block"];

/// Of a group.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct FillSum {
    /// Bytes that came for calls that read, for mappings, and for others.
    read: i64,
    pub(crate) mapped: i64,
    other: i64,
    /// Bytes that calls read of objects whose pages are in the cache.
    moved: i64,
    /// Some of that may have gone past it.
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

/// Cells of [`columns`]; of a sum that is not known none has a value.
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

/// By group, and by interval where the question asks for one; nothing where it cannot be told.
pub(crate) fn of(context: &Context<'_>, keys: &[Key]) -> Result<Option<Fills>, AnalysisError> {
    let question = context.question;
    let is_recorded = context.names.topics.iter().any(|topic| topic == "pages");
    if !is_recorded {
        note_unknown(context);
        return Ok(None);
    }
    let is_told = keys.iter().all(|key| key.is_object() || key.is_owner());
    if !is_told || !is_of_all_calls(&question.filter) {
        context.note("what came into the page cache is known by file and thread only".into());
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
    // Whoever has it: the descriptor may be handed on.
    let objects: Vec<Key> = keys.iter().copied().filter(|key| key.is_object()).collect();
    let direct = direct(context, &objects)?;
    for (group, sum) in &mut fills {
        let values = keys.iter().zip(group).filter(|(key, _)| key.is_object());
        let object: Vec<KeyValue> = values.map(|(_, value)| value.clone()).collect();
        sum.is_direct = direct.contains(&object);
    }
    Ok(Some(fills))
}

/// Says that nothing is known, to those who want to know it.
fn note_unknown(context: &Context<'_>) {
    let sort = context.question.sort.as_ref();
    let names = columns().map(|column| column.name);
    if context.question.wide || sort.is_some_and(|sort| names.contains(&sort.column)) {
        context.note(
            "cannot tell what was served from the page cache: this needs `record --what` with `pages`"
                .into(),
        );
    }
}

fn by_time(context: &Context<'_>, mut pass: Pass) -> Pass {
    if let Some(width) = context.interval {
        pass.group_by_time(context.span, width);
    }
    pass
}

/// Whether it picks no calls that pages may have come for.
fn is_of_all_calls(filter: &Filter) -> bool {
    let asked = filter.clone();
    let of_files = Filter {
        pids: asked.pids,
        tids: asked.tids,
        comms: asked.comms,
        cgroups: asked.cgroups,
        files: asked.files,
        no_tracer: asked.no_tracer,
        ..Filter::default()
    };
    *filter == of_files
}

/// Groups with a descriptor that reads go past the cache by.
fn direct(context: &Context<'_>, keys: &[Key]) -> Result<FxHashSet<Vec<KeyValue>>, AnalysisError> {
    let filter = Filter {
        files: context.question.filter.files.clone(),
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
            // Made by whoever writes, and not read.
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

/// Whether any has these.
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
