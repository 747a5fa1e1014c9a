//! One Parquet file of a table: checked against the table's declaration, read by row group.

use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, ArrayRef, Int64Array, RecordBatch, RecordBatchOptions, new_null_array};
use arrow_buffer::ScalarBuffer;
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader,
    ParquetRecordBatchReaderBuilder, RowSelection,
};
use parquet::basic::Encoding;
use parquet::column::page::{Page, PageReader};
use parquet::errors::ParquetError;
use parquet::file::metadata::{ColumnChunkMetaData, PageIndexPolicy, ParquetMetaData};
use parquet::file::serialized_reader::SerializedPageReader;
use parquet::file::statistics::Statistics;
use whyslow_model::{Column, ColumnType, Shape, Table};

use crate::pread::PreadFile;
use crate::{StoreError, limits, renamed, schema};

/// Upper bound for the size of a dictionary page without entries.
const EMPTY_DICTIONARY_BYTES: i64 = 64;

#[derive(Debug)]
pub(crate) struct TableFile {
    path: PathBuf,
    table: &'static Table,
    file: PreadFile,
    metadata: ArrowReaderMetadata,
    /// Format version of the recording, which determines the names in the file.
    version: u32,
    ends_follow: bool,
}

impl TableFile {
    /// Reads the footer, and the page index if pages are to be skipped.
    pub(crate) fn open(
        path: PathBuf,
        table: &'static Table,
        file: PreadFile,
        (version, page_index): (u32, bool),
    ) -> Result<Self, StoreError> {
        let damaged = |error: &ParquetError| damaged(&path, table, error);
        let policy = if page_index {
            PageIndexPolicy::Optional
        } else {
            PageIndexPolicy::Skip
        };
        let options = ArrowReaderOptions::new()
            .with_skip_arrow_metadata(true)
            .with_encoding_stats_as_mask(true)
            .with_page_index_policy(policy);
        let plain = guarded(|| ArrowReaderMetadata::load(&file, options))
            .map_err(|error| damaged(&error))?;
        check_columns(plain.schema(), table, version)
            .map_err(|reason| damaged_because(&path, table, reason))?;
        let options = ArrowReaderOptions::new().with_schema(dictionary_schema(plain.schema()));
        let metadata = ArrowReaderMetadata::try_new(Arc::clone(plain.metadata()), options)
            .map_err(|error| damaged(&error))?;
        check_rows(metadata.metadata()).map_err(|reason| damaged_because(&path, table, reason))?;
        Ok(Self {
            path,
            table,
            file,
            metadata,
            version,
            ends_follow: false,
        })
    }

    /// Whether the ends of intervals equal start plus duration.
    pub(crate) fn with_ends(self, ends_follow: bool) -> Self {
        Self {
            ends_follow,
            ..self
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn table(&self) -> &'static Table {
        self.table
    }

    pub(crate) fn metadata(&self) -> &ParquetMetaData {
        self.metadata.metadata()
    }

    pub(crate) fn rows(&self) -> u64 {
        (0..self.row_groups())
            .map(|group| self.row_group_rows(group) as u64)
            .sum()
    }

    pub(crate) fn row_groups(&self) -> usize {
        self.metadata().num_row_groups()
    }

    pub(crate) fn row_group_rows(&self, group: usize) -> usize {
        self.metadata().row_group(group).num_rows() as usize
    }

    /// Index of a column in the file.
    pub(crate) fn leaf(&self, name: &str) -> Option<usize> {
        let (_, column) = self.table.column(name)?;
        let in_file = renamed::column_in_files(self.version, self.table.name, column.name);
        self.metadata.schema().index_of(in_file).ok()
    }

    /// Whether a chunk has only nulls. Decoding these as text is slower than anything else, since
    /// there is no dictionary to refer to, and text has no statistics for it.
    fn is_all_null(&self, group: usize, leaf: usize) -> Result<bool, ParquetError> {
        let rows = self.row_group_rows(group);
        let chunk = self.metadata().row_group(group).column(leaf);
        if let Some(nulls) = chunk.statistics().and_then(Statistics::null_count_opt) {
            return Ok(nulls == rows as u64);
        }
        let Some(dictionary_at) = chunk.dictionary_page_offset() else {
            return Ok(false);
        };
        let bytes = chunk.data_page_offset().saturating_sub(dictionary_at);
        if bytes > EMPTY_DICTIONARY_BYTES || !only_dictionary_pages(chunk) {
            return Ok(false);
        }
        let mut pages = SerializedPageReader::new(Arc::new(self.file.clone()), chunk, rows, None)?;
        let first = pages.get_next_page()?;
        Ok(matches!(
            first,
            Some(Page::DictionaryPage { num_values: 0, .. })
        ))
    }

    /// All words in the dictionaries of a text column; `None` if some page has plain words.
    pub(crate) fn words(&self, name: &str) -> Result<Option<Vec<String>>, StoreError> {
        let Some(leaf) = self.leaf(name) else {
            return Ok(Some(Vec::new()));
        };
        let mut words = Vec::new();
        for group in 0..self.row_groups() {
            let of_group = guarded(|| self.dictionary(group, leaf));
            match of_group.map_err(|error| damaged(&self.path, self.table, &error))? {
                Some(of_group) => words.extend(of_group),
                None => return Ok(None),
            }
        }
        let words = renamed::new_words(self.version, self.table, name, words);
        Ok(Some(words))
    }

    fn dictionary(&self, group: usize, leaf: usize) -> Result<Option<Vec<String>>, ParquetError> {
        let chunk = self.metadata().row_group(group).column(leaf);
        if chunk.dictionary_page_offset().is_none() || !only_dictionary_pages(chunk) {
            return Ok(None);
        }
        let rows = self.row_group_rows(group);
        let mut pages = SerializedPageReader::new(Arc::new(self.file.clone()), chunk, rows, None)?;
        let Some(Page::DictionaryPage { buf, .. }) = pages.get_next_page()? else {
            return Ok(None);
        };
        // Each word is preceded by its length.
        let cut = || ParquetError::EOF("a dictionary ends inside a word".to_owned());
        let (mut words, mut rest) = (Vec::new(), &*buf);
        while !rest.is_empty() {
            let (length, after) = rest.split_first_chunk().ok_or_else(cut)?;
            let length = u32::from_le_bytes(*length) as usize;
            let (word, after) = after.split_at_checked(length).ok_or_else(cut)?;
            words.push(String::from_utf8_lossy(word).into_owned());
            rest = after;
        }
        Ok(Some(words))
    }

    /// Reads the selected rows of one row group.
    pub(crate) fn read(
        &self,
        group: usize,
        selection: Option<RowSelection>,
        projection: &Arc<Projection>,
    ) -> Result<GroupReader<'_>, StoreError> {
        let damaged = |error: ParquetError| damaged(&self.path, self.table, &error);
        let sum = self.end_as_sum(group, projection);
        let mut leaves = Vec::with_capacity(projection.columns.len());
        for leaf in projection
            .columns
            .iter()
            .filter_map(|column| self.leaf(column.name))
        {
            if !self.is_all_null(group, leaf).map_err(damaged)? {
                leaves.push(leaf);
            }
        }
        if let Some(sum) = sum {
            leaves.retain(|leaf| *leaf != sum.end);
            leaves.push(sum.dur);
        }
        let mask = ProjectionMask::leaves(self.metadata.parquet_schema(), leaves);
        let mut builder = ParquetRecordBatchReaderBuilder::new_with_metadata(
            self.file.clone(),
            self.metadata.clone(),
        )
        .with_row_groups(vec![group])
        .with_projection(mask)
        .with_batch_size(limits::READ_BATCH_ROWS);
        if let Some(selection) = selection {
            builder = builder.with_row_selection(selection);
        }
        let reader = builder.build().map_err(damaged)?;
        Ok(GroupReader {
            file: self,
            reader,
            projection: Arc::clone(projection),
            unread: Unread {
                ends_are_sums: sum.is_some(),
                nulls: BTreeMap::new(),
            },
        })
    }

    /// Whether all ends of a row group's intervals equal start plus duration, and adding is less
    /// work than decoding the ends.
    fn end_as_sum(&self, group: usize, projection: &Projection) -> Option<Sum> {
        let wants = |name| projection.columns.iter().any(|column| column.name == name);
        if !wants("ts") || !wants("ts_end") {
            return None;
        }
        let sum = self.sum(group)?;
        (wants("dur") || self.is_less(group, sum)).then_some(sum)
    }

    /// The same if durations may also be requested, and starts are.
    pub(crate) fn has_ends_as_sums(&self, group: usize) -> bool {
        self.sum(group).is_some_and(|sum| self.is_less(group, sum))
    }

    fn sum(&self, group: usize) -> Option<Sum> {
        if self.table.shape != Shape::Interval || !self.ends_follow {
            return None;
        }
        let (dur, end) = (self.leaf("dur")?, self.leaf("ts_end")?);
        let group = self.metadata().row_group(group);
        let has_nulls = |leaf: usize| {
            let statistics = group.column(leaf).statistics();
            statistics.and_then(Statistics::null_count_opt) != Some(0)
        };
        (!has_nulls(dur) && !has_nulls(end)).then_some(Sum { dur, end })
    }

    fn is_less(&self, group: usize, Sum { dur, end }: Sum) -> bool {
        let group = self.metadata().row_group(group);
        let bytes = |leaf: usize| group.column(leaf).compressed_size();
        bytes(dur) < bytes(end)
    }
}

/// Positions of the columns for computing ends.
#[derive(Debug, Clone, Copy)]
struct Sum {
    dur: usize,
    end: usize,
}

/// Requested columns, in order.
#[derive(Debug)]
pub(crate) struct Projection {
    pub(crate) columns: Vec<&'static Column>,
    pub(crate) schema: SchemaRef,
}

impl Projection {
    pub(crate) fn new(table: &'static Table, names: &[&str]) -> Result<Self, StoreError> {
        let columns = names
            .iter()
            .map(|name| {
                let found = table.column(name).map(|(_, column)| column);
                found.ok_or_else(|| StoreError::NoColumn {
                    table: table.name.to_owned(),
                    column: (*name).to_owned(),
                })
            })
            .collect::<Result<Vec<_>, _>>()?;
        let fields: Vec<Field> = columns.iter().map(|column| schema::field(column)).collect();
        Ok(Self {
            columns,
            schema: Arc::new(Schema::new(fields)),
        })
    }

    /// A batch of these columns. A column that was not read, because it is missing (older files) or
    /// has only nulls, is null, except for ends that are computed.
    fn arrange(
        &self,
        batch: &RecordBatch,
        (table, version): (&Table, u32),
        unread: &mut Unread,
    ) -> Result<RecordBatch, ArrowError> {
        let rows = batch.num_rows();
        let in_file = |name| renamed::column_in_files(version, table.name, name);
        let arrays: Vec<ArrayRef> = self
            .columns
            .iter()
            .map(|column| match batch.column_by_name(in_file(column.name)) {
                Some(array) => renamed::with_new_words(version, table, column.name, array),
                None => unread.get(column, batch),
            })
            .collect();
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        RecordBatch::try_new_with_options(Arc::clone(&self.schema), arrays, &options)
    }
}

/// Ends of intervals with all starts and durations read.
pub(crate) fn ends_of(begins: &ArrayRef, lengths: &ArrayRef) -> Option<ArrayRef> {
    let numbers = |array: &'_ ArrayRef| -> Option<ScalarBuffer<i64>> {
        let numbers = array.as_primitive_opt::<Int64Type>()?;
        (numbers.null_count() == 0).then(|| numbers.values().clone())
    };
    let (begins, lengths) = (numbers(begins)?, numbers(lengths)?);
    let pairs = begins.iter().zip(&lengths);
    let ends = pairs.map(|(begin, length)| begin.wrapping_add(*length));
    Some(Arc::new(Int64Array::from_iter_values(ends)))
}

/// Columns that are not read.
struct Unread {
    ends_are_sums: bool,
    /// Created once for all batches.
    nulls: BTreeMap<&'static str, ArrayRef>,
}

impl Unread {
    fn get(&mut self, column: &'static Column, batch: &RecordBatch) -> ArrayRef {
        if self.ends_are_sums
            && column.name == "ts_end"
            && let (Some(begins), Some(lengths)) =
                (batch.column_by_name("ts"), batch.column_by_name("dur"))
            && let Some(ends) = ends_of(begins, lengths)
        {
            return ends;
        }
        let array = self.nulls.entry(column.name).or_insert_with(|| {
            let data_type = schema::data_type(column.kind);
            new_null_array(&data_type, limits::READ_BATCH_ROWS)
        });
        array.slice(0, batch.num_rows())
    }
}

/// Batches of one row group.
pub(crate) struct GroupReader<'f> {
    file: &'f TableFile,
    reader: ParquetRecordBatchReader,
    projection: Arc<Projection>,
    unread: Unread,
}

impl Iterator for GroupReader<'_> {
    type Item = Result<RecordBatch, StoreError>;

    fn next(&mut self) -> Option<Self::Item> {
        let reader = &mut self.reader;
        let decode = || reader.next().transpose().map_err(ParquetError::from);
        let batch = guarded(decode).transpose()?;
        let names = (self.file.table, self.file.version);
        let arranged =
            batch.and_then(|batch| Ok(self.projection.arrange(&batch, names, &mut self.unread)?));
        Some(arranged.map_err(|error| damaged(&self.file.path, self.file.table, &error)))
    }
}

/// Checksums protect the decoder from accidents, but a forged file has valid checksums; and the
/// decoder panics on some invalid content.
fn guarded<T>(decode: impl FnOnce() -> Result<T, ParquetError>) -> Result<T, ParquetError> {
    std::panic::catch_unwind(AssertUnwindSafe(decode))
        .unwrap_or_else(|_| Err(ParquetError::General("invalid content".to_owned())))
}

pub(crate) fn damaged_because(path: &Path, table: &Table, reason: String) -> StoreError {
    StoreError::Damaged {
        path: path.to_path_buf(),
        table: table.name.to_owned(),
        reason,
    }
}

fn damaged(path: &Path, table: &Table, error: &ParquetError) -> StoreError {
    damaged_because(path, table, error.to_string())
}

/// Text as dictionaries, everything else as in the file.
fn dictionary_schema(plain: &SchemaRef) -> SchemaRef {
    let fields: Vec<Field> = plain
        .fields()
        .iter()
        .map(|field| match field.data_type() {
            DataType::Utf8 => field
                .as_ref()
                .clone()
                .with_data_type(schema::data_type(ColumnType::Utf8)),
            _ => field.as_ref().clone(),
        })
        .collect();
    Arc::new(Schema::new(fields))
}

fn only_dictionary_pages(chunk: &ColumnChunkMetaData) -> bool {
    let encodings = chunk.page_encoding_stats_mask();
    encodings.is_some_and(|encodings| encodings.is_only(Encoding::RLE_DICTIONARY))
}

/// Unknown columns come from a newer program and are ignored; known columns must match the
/// declaration.
fn check_columns(plain: &SchemaRef, table: &Table, version: u32) -> Result<(), String> {
    for column in table.columns {
        let in_file = renamed::column_in_files(version, table.name, column.name);
        let Ok(field) = plain.field_with_name(in_file) else {
            if column.nullable {
                continue;
            }
            return Err(format!("missing column `{in_file}`"));
        };
        let expected = match column.kind {
            ColumnType::Utf8 => DataType::Utf8,
            kind => schema::data_type(kind),
        };
        if *field.data_type() != expected {
            return Err(format!(
                "column `{}` is {}, not {expected}",
                column.name,
                field.data_type()
            ));
        }
        if field.is_nullable() && !column.nullable {
            return Err(format!("column `{}` is nullable", column.name));
        }
    }
    Ok(())
}

fn check_rows(metadata: &ParquetMetaData) -> Result<(), String> {
    let mut rows = 0_i64;
    for group in metadata.row_groups() {
        let sum = rows.checked_add(group.num_rows());
        match sum {
            Some(sum) if group.num_rows() >= 0 => rows = sum,
            _ => return Err("invalid row counts of row groups".to_owned()),
        }
    }
    let stated = metadata.file_metadata().num_rows();
    if rows == stated {
        Ok(())
    } else {
        Err(format!(
            "its row groups have {rows} rows, its footer states {stated}"
        ))
    }
}
