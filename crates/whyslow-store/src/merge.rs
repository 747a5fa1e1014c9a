//! Merges the main file of a table and its late rows in key order.
//!
//! Late rows are either sparse, or many and dense. Passing on the slices between them would give
//! batches of a few rows with a dictionary that changes each time. So slices are collected into
//! full batches, and text of both sides uses one dictionary, built once per pair of row groups.

use std::ops::ControlFlow;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type};
use arrow_array::{
    Array, ArrayRef, DictionaryArray, Int32Array, Int64Array, RecordBatch, RecordBatchOptions,
    StringArray, make_array,
};
use arrow_data::transform::MutableArrayData;
use arrow_schema::{ArrowError, DataType, Schema, SchemaRef};
use rustc_hash::FxHashMap;

use crate::table_file::Projection;
use crate::{Scan, StoreError, Visit, limits};

/// The requested columns, followed by missing key columns.
pub(crate) fn with_keys(scan: &Scan, keys: &[&'static str]) -> Result<Projection, StoreError> {
    let mut columns = scan.columns.clone();
    for key in keys {
        if !columns.contains(key) {
            columns.push(key);
        }
    }
    Projection::new(scan.table, &columns)
}

/// Positions of the keys in the batches of both sides, and the number of requested columns.
pub(crate) struct Merged {
    schema: SchemaRef,
    keys: Vec<usize>,
}

impl Merged {
    pub(crate) fn new(keyed: &Projection, keys: &[&str], wanted: usize) -> Self {
        let place = |key: &&str| {
            let found = keyed.columns.iter().position(|column| column.name == *key);
            found.expect("the projection includes the keys")
        };
        let fields: Vec<_> = keyed.schema.fields().iter().take(wanted).cloned().collect();
        Self {
            schema: Arc::new(Schema::new(fields)),
            keys: keys.iter().map(place).collect(),
        }
    }

    fn batch(&self, columns: Vec<ArrayRef>, rows: usize) -> Result<RecordBatch, ArrowError> {
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &options)
    }
}

/// Visits the rows of both sorted sides in order; rows of `main` come first among equal keys.
pub(crate) fn merge(
    main: impl Iterator<Item = Result<RecordBatch, StoreError>>,
    long: impl Iterator<Item = Result<RecordBatch, StoreError>>,
    merged: &Merged,
    visit: &mut Visit<'_>,
) -> Result<(), StoreError> {
    let mut main = Side::new(main);
    let mut long = Side::new(long);
    let mut pending = Pending::new(merged);
    loop {
        if main.is_used_up() || long.is_used_up() || pending.rows >= limits::READ_BATCH_ROWS {
            if pending
                .flush(main.loaded.as_ref(), long.loaded.as_ref(), visit)?
                .is_break()
            {
                return Ok(());
            }
            main.load(&merged.keys)?;
            long.load(&merged.keys)?;
        }
        match (&mut main.loaded, &mut long.loaded) {
            (None, None) => return Ok(()),
            (Some(side), None) => pending.push(From::Main, side.take_rest()),
            (None, Some(side)) => pending.push(From::Long, side.take_rest()),
            (Some(first), Some(second)) => {
                let (a, b) = (first.key(first.at), second.key(second.at));
                if a <= b {
                    pending.push(From::Main, first.take_while(|key| key <= b));
                } else {
                    pending.push(From::Long, second.take_while(|key| key < a));
                }
            }
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum From {
    Main,
    Long,
}

struct Side<I> {
    batches: I,
    loaded: Option<Loaded>,
    ended: bool,
}

struct Loaded {
    batch: RecordBatch,
    ts: Option<Int64Array>,
    id: Ids,
    at: usize,
}

enum Ids {
    I32(Int32Array),
    I64(Int64Array),
}

impl<I: Iterator<Item = Result<RecordBatch, StoreError>>> Side<I> {
    fn new(batches: I) -> Self {
        Self {
            batches,
            loaded: None,
            ended: false,
        }
    }

    fn is_used_up(&self) -> bool {
        match &self.loaded {
            Some(loaded) => loaded.at == loaded.batch.num_rows(),
            None => !self.ended,
        }
    }

    fn load(&mut self, keys: &[usize]) -> Result<(), StoreError> {
        while self.is_used_up() {
            self.loaded = self
                .batches
                .next()
                .transpose()?
                .map(|batch| Loaded::new(batch, keys));
            self.ended = self.loaded.is_none();
        }
        Ok(())
    }
}

impl Loaded {
    fn new(batch: RecordBatch, keys: &[usize]) -> Self {
        let column = |index: &usize| batch.column(*index);
        let (ts, id) = match keys {
            [ts, id] => (
                Some(column(ts).as_primitive::<Int64Type>().clone()),
                column(id),
            ),
            [id] => (None, column(id)),
            _ => unreachable!("a key is an id, or a time and an id"),
        };
        let id = match id.data_type() {
            DataType::Int32 => Ids::I32(id.as_primitive::<Int32Type>().clone()),
            _ => Ids::I64(id.as_primitive::<Int64Type>().clone()),
        };
        Self {
            ts,
            id,
            at: 0,
            batch,
        }
    }

    fn key(&self, row: usize) -> (i64, i64) {
        let id = match &self.id {
            Ids::I32(ids) => i64::from(ids.value(row)),
            Ids::I64(ids) => ids.value(row),
        };
        (self.ts.as_ref().map_or(0, |ts| ts.value(row)), id)
    }

    fn take_rest(&mut self) -> std::ops::Range<usize> {
        let begin = std::mem::replace(&mut self.at, self.batch.num_rows());
        begin..self.at
    }

    /// Takes rows while their keys fulfil the same condition as the first one. The step size
    /// doubles first, because the next row of the other side may be near or far.
    fn take_while(&mut self, holds: impl Fn((i64, i64)) -> bool) -> std::ops::Range<usize> {
        let begin = self.at;
        let rows = self.batch.num_rows();
        let mut inside = begin;
        let mut step = 1;
        while inside + step < rows && holds(self.key(inside + step)) {
            inside += step;
            step *= 2;
        }
        let mut outside = rows.min(inside + step);
        while inside + 1 < outside {
            let middle = usize::midpoint(inside, outside);
            if holds(self.key(middle)) {
                inside = middle;
            } else {
                outside = middle;
            }
        }
        self.at = inside + 1;
        begin..self.at
    }
}

/// Slices of the two loaded batches, in order, that become one batch.
struct Pending<'m> {
    merged: &'m Merged,
    slices: Vec<(From, std::ops::Range<usize>)>,
    rows: usize,
    /// For each text column, the merged dictionary of the last pair.
    texts: Vec<Option<SharedText>>,
}

impl<'m> Pending<'m> {
    fn new(merged: &'m Merged) -> Self {
        Self {
            merged,
            slices: Vec::new(),
            rows: 0,
            texts: merged.schema.fields().iter().map(|_| None).collect(),
        }
    }

    fn push(&mut self, from: From, range: std::ops::Range<usize>) {
        self.rows += range.len();
        self.slices.push((from, range));
    }

    fn flush(
        &mut self,
        main: Option<&Loaded>,
        long: Option<&Loaded>,
        visit: &mut Visit<'_>,
    ) -> Result<ControlFlow<()>, StoreError> {
        if self.rows == 0 {
            return Ok(ControlFlow::Continue(()));
        }
        let batch = self
            .batch(main, long)
            .expect("both sides have the schema of the table");
        self.slices.clear();
        self.rows = 0;
        visit(&batch)
    }

    fn batch(
        &mut self,
        main: Option<&Loaded>,
        long: Option<&Loaded>,
    ) -> Result<RecordBatch, ArrowError> {
        let columns = (0..self.texts.len())
            .map(|index| {
                let column =
                    |side: Option<&Loaded>| side.map(|side| Arc::clone(side.batch.column(index)));
                match (&self.slices[..], column(main), column(long)) {
                    ([(From::Main, range)], Some(array), _)
                    | ([(From::Long, range)], _, Some(array)) => {
                        Ok(array.slice(range.start, range.len()))
                    }
                    (slices, Some(main), Some(long)) => {
                        mix(slices, &main, &long, &mut self.texts[index])
                    }
                    _ => unreachable!("slices refer to loaded batches"),
                }
            })
            .collect::<Result<Vec<_>, _>>()?;
        self.merged.batch(columns, self.rows)
    }
}

fn mix(
    slices: &[(From, std::ops::Range<usize>)],
    main: &ArrayRef,
    long: &ArrayRef,
    shared: &mut Option<SharedText>,
) -> Result<ArrayRef, ArrowError> {
    // Not `concat`, which can merge dictionaries of any type and brings 0.6 MB of code for that.
    let pick = |main: &dyn Array, long: &dyn Array| {
        let (main, long) = (main.to_data(), long.to_data());
        let rows = slices.iter().map(|(_, range)| range.len()).sum();
        let mut mixed = MutableArrayData::new(vec![&main, &long], false, rows);
        for (from, range) in slices {
            let side = match from {
                From::Main => 0,
                From::Long => 1,
            };
            mixed.try_extend(side, range.start, range.end)?;
        }
        Ok::<_, ArrowError>(make_array(mixed.freeze()))
    };
    let (Some(first), Some(second)) = (
        main.as_dictionary_opt::<Int32Type>(),
        long.as_dictionary_opt::<Int32Type>(),
    ) else {
        return pick(main, long);
    };
    let shared = match shared {
        Some(shared) if shared.is_of(first.values(), second.values()) => shared,
        stale => stale.insert(SharedText::new(first.values(), second.values())),
    };
    let renumbered: Int32Array = second
        .keys()
        .unary(|key| shared.long_keys.get(key as usize).copied().unwrap_or(0));
    let keys = pick(first.keys(), &renumbered)?;
    let keys = keys.as_primitive::<Int32Type>().clone();
    let values = Arc::clone(&shared.values);
    Ok(Arc::new(DictionaryArray::try_new(keys, values)?))
}

/// The distinct strings of two dictionaries: those of `main` keep their numbers.
struct SharedText {
    main: ArrayRef,
    long: ArrayRef,
    values: ArrayRef,
    long_keys: Vec<i32>,
}

impl SharedText {
    fn new(main: &ArrayRef, long: &ArrayRef) -> Self {
        let (first, second) = (main.as_string::<i32>(), long.as_string::<i32>());
        let mut numbers: FxHashMap<&str, i32> = FxHashMap::default();
        let mut texts: Vec<&str> = Vec::with_capacity(first.len());
        for text in first.iter().flatten() {
            numbers.entry(text).or_insert(texts.len() as i32);
            texts.push(text);
        }
        let long_keys = second
            .iter()
            .map(|text| {
                let text = text.unwrap_or("");
                *numbers.entry(text).or_insert_with(|| {
                    texts.push(text);
                    texts.len() as i32 - 1
                })
            })
            .collect();
        Self {
            main: Arc::clone(main),
            long: Arc::clone(long),
            values: Arc::new(StringArray::from(texts)),
            long_keys,
        }
    }

    fn is_of(&self, main: &ArrayRef, long: &ArrayRef) -> bool {
        Arc::ptr_eq(&self.main, main) && Arc::ptr_eq(&self.long, long)
    }
}
