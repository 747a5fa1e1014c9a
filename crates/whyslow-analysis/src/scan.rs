//! Selects the columns of a table to read, and provides typed access to those of a batch.

use std::borrow::Cow;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type};
use arrow_array::{Array, ArrayRef, BooleanArray, RecordBatch, StringArray};
use arrow_buffer::NullBuffer;
use arrow_schema::DataType;
use whyslow_model::{Table, Window};
use whyslow_store::Scan;

use crate::AnalysisError;

/// The columns that a query needs from one table, each read once.
#[derive(Debug, Clone)]
pub struct Projection {
    table: &'static Table,
    columns: Vec<&'static str>,
}

impl Projection {
    /// Without columns; [`Projection::need`] adds them.
    pub fn new(table: &'static Table) -> Self {
        Self {
            table,
            columns: Vec::new(),
        }
    }

    /// Index of the column in the batches.
    pub fn need(&mut self, name: &'static str) -> ColumnRef {
        let place = self.columns.iter().position(|column| *column == name);
        let place = place.unwrap_or_else(|| {
            self.columns.push(name);
            self.columns.len() - 1
        });
        ColumnRef {
            table: self.table.name,
            name,
            place,
        }
    }

    /// Whether the table has the column.
    pub fn has(&self, name: &str) -> bool {
        self.table.column(name).is_some()
    }

    /// The scan for the store: these columns, of row groups and pages that may overlap the window.
    pub fn scan(&self, window: Option<Window>) -> Scan {
        Scan {
            table: self.table,
            columns: self.columns.clone(),
            window,
        }
    }
}

/// A column of a projection.
#[derive(Debug, Clone, Copy)]
pub struct ColumnRef {
    table: &'static str,
    name: &'static str,
    place: usize,
}

impl ColumnRef {
    /// Values of an integer column. Fails if the file has another type.
    pub fn ints(self, batch: &RecordBatch) -> Result<Ints<'_>, AnalysisError> {
        let array = self.array(batch)?;
        if let Some(array) = array.as_primitive_opt::<Int64Type>() {
            return Ok(Ints {
                values: IntSlice::I64(array.values()),
                nulls: nulls(array.nulls()),
            });
        }
        if let Some(array) = array.as_primitive_opt::<Int32Type>() {
            return Ok(Ints {
                values: IntSlice::I32(array.values()),
                nulls: nulls(array.nulls()),
            });
        }
        Err(self.wrong_type(array.data_type(), "Int32 or Int64"))
    }

    /// Values of a text column. Fails if the file has another type.
    pub fn texts(self, batch: &RecordBatch) -> Result<Texts<'_>, AnalysisError> {
        let array = self.array(batch)?;
        let wrong = || self.wrong_type(array.data_type(), "Dictionary(Int32, Utf8)");
        let array = array.as_dictionary_opt::<Int32Type>().ok_or_else(wrong)?;
        let values = array.values();
        Ok(Texts {
            keys: array.keys().values(),
            nulls: nulls(array.nulls()),
            words: values.as_string_opt::<i32>().ok_or_else(wrong)?,
            dictionary: values,
        })
    }

    /// Values of a boolean column. Fails if the file has another type.
    pub fn bools(self, batch: &RecordBatch) -> Result<&BooleanArray, AnalysisError> {
        let array = self.array(batch)?;
        array
            .as_boolean_opt()
            .ok_or_else(|| self.wrong_type(array.data_type(), "Boolean"))
    }

    fn array(self, batch: &RecordBatch) -> Result<&ArrayRef, AnalysisError> {
        if self.place < batch.num_columns() {
            Ok(batch.column(self.place))
        } else {
            Err(self.wrong_type(&DataType::Null, "a column"))
        }
    }

    fn wrong_type(self, found: &DataType, expected: &'static str) -> AnalysisError {
        AnalysisError::ColumnType {
            table: self.table,
            column: self.name,
            found: found.to_string(),
            expected,
        }
    }
}

fn nulls(nulls: Option<&NullBuffer>) -> Option<&NullBuffer> {
    nulls.filter(|nulls| nulls.null_count() > 0)
}

#[derive(Debug, Clone, Copy)]
enum IntSlice<'b> {
    I64(&'b [i64]),
    I32(&'b [i32]),
}

/// An integer column.
#[derive(Debug, Clone, Copy)]
pub struct Ints<'b> {
    values: IntSlice<'b>,
    nulls: Option<&'b NullBuffer>,
}

impl<'b> Ints<'b> {
    /// Value of a row of the batch; `None` for null.
    #[inline]
    pub fn get(&self, row: u32) -> Option<i64> {
        let row = row as usize;
        if self.nulls.is_some_and(|nulls| nulls.is_null(row)) {
            return None;
        }
        Some(match self.values {
            IntSlice::I64(values) => values[row],
            IntSlice::I32(values) => i64::from(values[row]),
        })
    }

    /// All values, with `none` in place of null.
    pub(crate) fn or(&self, none: i64) -> Cow<'b, [i64]> {
        match (self.values, self.nulls) {
            (IntSlice::I64(values), None) => Cow::Borrowed(values),
            (IntSlice::I32(values), None) => values.iter().map(|value| i64::from(*value)).collect(),
            (IntSlice::I64(values), Some(nulls)) => {
                let pairs = values.iter().zip(nulls);
                let value = |(value, is_valid): (&i64, bool)| if is_valid { *value } else { none };
                pairs.map(value).collect()
            }
            (IntSlice::I32(values), Some(nulls)) => {
                let pairs = values.iter().zip(nulls);
                let value = |(value, is_valid): (&i32, bool)| {
                    if is_valid { i64::from(*value) } else { none }
                };
                pairs.map(value).collect()
            }
        }
    }

    /// Value of a column that is never null (0 if it is).
    #[inline]
    pub fn at(&self, row: u32) -> i64 {
        self.or_zero(row)
    }

    /// 0 for null, without a branch: nulls are unpredictable.
    #[inline]
    pub fn or_zero(&self, row: u32) -> i64 {
        let row = row as usize;
        let value = match self.values {
            IntSlice::I64(values) => values[row],
            IntSlice::I32(values) => i64::from(values[row]),
        };
        match self.nulls {
            None => value,
            Some(nulls) => value & -i64::from(nulls.is_valid(row)),
        }
    }
}

/// A text column, as indexes into a dictionary.
#[derive(Debug, Clone, Copy)]
pub struct Texts<'b> {
    keys: &'b [i32],
    nulls: Option<&'b NullBuffer>,
    pub(crate) words: &'b StringArray,
    pub(crate) dictionary: &'b ArrayRef,
}

impl<'b> Texts<'b> {
    /// Dictionary index of the row.
    #[inline]
    pub fn key(&self, row: u32) -> Option<usize> {
        let row = row as usize;
        if self.nulls.is_some_and(|nulls| nulls.is_null(row)) {
            return None;
        }
        Some(self.keys[row] as usize)
    }

    /// Dictionary index of the row, 0 for null, and whether it has one: without a branch, because
    /// nulls are unpredictable.
    #[inline]
    pub(crate) fn key_or_zero(&self, row: u32) -> (usize, bool) {
        let row = row as usize;
        let is_valid = self.nulls.is_none_or(|nulls| nulls.is_valid(row));
        (self.keys[row] as usize * usize::from(is_valid), is_valid)
    }

    /// Whether any row may be null.
    pub(crate) fn have_nulls(&self) -> bool {
        self.nulls.is_some()
    }

    /// Whether all rows are null.
    pub(crate) fn are_null(&self) -> bool {
        self.nulls
            .is_some_and(|nulls| nulls.null_count() == self.keys.len())
    }

    /// Text of a row of the batch; `None` for null.
    pub fn get(&self, row: u32) -> Option<&'b str> {
        self.key(row).map(|key| self.words.value(key))
    }
}

/// A value computed for each word of a small dictionary.
pub(crate) fn per_word<T>(texts: &Texts<'_>, make: impl Fn(&str) -> T) -> Vec<T> {
    let words = texts.words;
    (0..words.len())
        .map(|word| make(words.value(word)))
        .collect()
}

/// The computed value of each row; `none` for null.
pub(crate) fn per_row<T: Copy>(texts: &Texts<'_>, made: &[T], none: T) -> Vec<T> {
    let get = |key: &i32| made.get(*key as usize).copied().unwrap_or(none);
    match texts.nulls {
        None => texts.keys.iter().map(get).collect(),
        Some(nulls) => texts
            .keys
            .iter()
            .zip(nulls)
            .map(|(key, valid)| if valid { get(key) } else { none })
            .collect(),
    }
}

/// A value computed for each word of a dictionary, kept while batches share the dictionary.
#[derive(Debug, Clone)]
pub struct PerWord<T> {
    dictionary: Option<ArrayRef>,
    made: Vec<T>,
}

impl<T: Clone> Default for PerWord<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: Clone> PerWord<T> {
    /// Without a dictionary.
    pub fn new() -> Self {
        Self {
            dictionary: None,
            made: Vec::new(),
        }
    }

    /// The values of the words, all `unset` if the dictionary has changed. Batches of a row group
    /// share the bytes of their dictionary, but not the array around them; the array kept here
    /// guarantees that no other one has the same address.
    pub fn of(&mut self, texts: &Texts<'_>, unset: T) -> &mut [T] {
        self.of_new(texts, unset).0
    }

    /// The same, and whether the dictionary has changed.
    pub(crate) fn of_new(&mut self, texts: &Texts<'_>, unset: T) -> (&mut [T], bool) {
        let place = |words: &StringArray| {
            let (bytes, ends) = (words.value_data().as_ptr(), words.value_offsets().as_ptr());
            (bytes, ends, words.len())
        };
        let before = self.dictionary.as_ref();
        let before = before.and_then(|dictionary| dictionary.as_string_opt::<i32>());
        let same = before.is_some_and(|before| place(before) == place(texts.words));
        if !same {
            self.dictionary = Some(texts.dictionary.clone());
            self.made.clear();
            self.made.resize(texts.words.len(), unset);
        }
        (&mut self.made, !same)
    }
}
