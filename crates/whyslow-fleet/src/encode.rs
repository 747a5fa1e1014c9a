//! Encodes lake rows as Parquet and decodes them.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, RecordBatch, StringArray};
use arrow_schema::Field;
use bytes::Bytes;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::metadata::SortingColumn;
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterPropertiesBuilder};
use parquet::schema::types::ColumnPath;

use crate::columns::{LakeRow, LakeTable};

/// Small enough that a query for one kind skips most of a compacted file, large enough to compress
/// well.
const ROW_GROUP_ROWS: usize = 128 * 1024;
/// Rows of a page, the unit that a filter on host or minute can skip.
const PAGE_ROWS: usize = 8 * 1024;
const ZSTD: i32 = 3;
const DICTIONARY_BYTES: usize = 4 << 20;

/// A column that versions before commit version 2 wrote under another name and with other words.
/// The Python package has the same list (`contract.py`).
struct Renamed {
    table: &'static str,
    old: &'static str,
    new: &'static str,
    /// Old and new words.
    words: &'static [(&'static str, &'static str)],
}

const RENAMED: [Renamed; 1] = [Renamed {
    table: "finding",
    old: "told_by",
    new: "source",
    words: &[("story", "finding"), ("finding", "observation")],
}];

/// Writer properties of lake objects; `sorted_by` has the indexes of the sort columns.
pub(crate) fn properties(sorted_by: Vec<i32>) -> WriterPropertiesBuilder {
    let level = ZstdLevel::try_new(ZSTD).unwrap_or_default();
    let sorting = sorted_by.into_iter().map(|column_idx| SortingColumn {
        column_idx,
        descending: false,
        nulls_first: false,
    });
    WriterProperties::builder()
        .set_compression(Compression::ZSTD(level))
        .set_statistics_enabled(EnabledStatistics::Page)
        .set_max_row_group_row_count(Some(ROW_GROUP_ROWS))
        .set_data_page_row_count_limit(PAGE_ROWS)
        .set_dictionary_page_size_limit(DICTIONARY_BYTES)
        .set_sorting_columns(Some(sorting.collect()))
        .set_created_by(format!("whyslow {}", env!("CARGO_PKG_VERSION")))
}

/// Delta encoding for time columns: neighbouring values are close, and a dictionary would not pay
/// off.
pub(crate) fn as_times(
    mut properties: WriterPropertiesBuilder,
    names: &[&str],
) -> WriterPropertiesBuilder {
    for name in names {
        let column = ColumnPath::from(*name);
        properties = properties
            .set_column_dictionary_enabled(column.clone(), false)
            .set_column_encoding(column, Encoding::DELTA_BINARY_PACKED);
    }
    properties
}

fn properties_of(table: &LakeTable) -> WriterProperties {
    let place = |name: &&str| table.columns.iter().position(|column| column.name == *name);
    let sorted_by = table.sorted_by.iter().filter_map(place);
    let sorted_by = sorted_by.map(|place| place as i32).collect();
    let times = ["dur", "dur_total_ns", "dur_min_ns", "dur_max_ns", "ts_end"];
    let times: Vec<&str> = times
        .into_iter()
        .filter(|name| table.columns.iter().any(|column| column.name == *name))
        .collect();
    as_times(properties(sorted_by), &times).build()
}

/// A file with all of these rows, which are already sorted.
pub(crate) fn encode<R: LakeRow>(rows: &[R]) -> Result<Bytes, ParquetError> {
    encode_batch(R::TABLE, &R::batch(rows))
}

pub(crate) fn encode_batch(table: &LakeTable, batch: &RecordBatch) -> Result<Bytes, ParquetError> {
    let mut file = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut file, table.schema(), Some(properties_of(table)))?;
    writer.write(batch)?;
    writer.close()?;
    Ok(file.into())
}

/// All rows of a file, with the columns that the table has today. Columns and words that were
/// renamed since are translated, and nullable columns that an older version did not write are read
/// as nulls.
pub(crate) fn decode(table: &LakeTable, file: Bytes) -> Result<Vec<RecordBatch>, ParquetError> {
    // The decoder panics in places on malformed content.
    let decode = AssertUnwindSafe(|| decoded(table, file));
    std::panic::catch_unwind(decode)
        .unwrap_or_else(|_| Err(ParquetError::General("the content is malformed".to_owned())))
}

fn decoded(table: &LakeTable, file: Bytes) -> Result<Vec<RecordBatch>, ParquetError> {
    let schema = table.schema();
    let reader = ParquetRecordBatchReaderBuilder::try_new(file)?.build()?;
    let arrange = |batch: RecordBatch| {
        let rows = batch.num_rows();
        let column = |field: &Arc<Field>| match batch.column_by_name(field.name()) {
            Some(array) if array.data_type() == field.data_type() => Some(Arc::clone(array)),
            Some(_) => None,
            None if field.is_nullable() => {
                Some(arrow_array::new_null_array(field.data_type(), rows))
            }
            None => renamed(table, field.name(), &batch),
        };
        let columns = schema.fields().iter().map(|field| {
            column(field).ok_or_else(|| {
                ParquetError::General(format!(
                    "column `{}` is missing or has another type",
                    field.name()
                ))
            })
        });
        let columns = columns.collect::<Result<Vec<_>, _>>()?;
        Ok(RecordBatch::try_new(Arc::clone(&schema), columns)?)
    };
    reader
        .map(|batch| batch.map_err(ParquetError::from).and_then(arrange))
        .collect()
}

/// A column that the file has under its former name, with the words of today.
fn renamed(table: &LakeTable, column: &str, batch: &RecordBatch) -> Option<ArrayRef> {
    let is_it = |one: &&Renamed| one.table == table.name && one.new == column;
    let found = RENAMED.iter().find(is_it)?;
    let words = batch
        .column_by_name(found.old)?
        .as_string_opt::<i32>()
        .filter(|words| words.null_count() == 0)?;
    let new_word = |word: &'_ str| -> String {
        let pair = found.words.iter().find(|(old, _)| *old == word);
        pair.map_or(word, |(_, new)| new).to_owned()
    };
    let words: StringArray = words.iter().flatten().map(new_word).map(Some).collect();
    Some(Arc::new(words))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tables::{FindingRow, LabelRow};

    #[test]
    fn findings_of_former_versions_have_the_names_of_today() {
        let texts = |words: &[&str]| Arc::new(StringArray::from(words.to_vec())) as ArrayRef;
        let former = texts(&["story", "finding", "pattern"]);
        let batch = RecordBatch::try_from_iter([("told_by", former)]).unwrap();
        let found = renamed(FindingRow::TABLE, "source", &batch).unwrap();
        assert_eq!(*found, *texts(&["finding", "observation", "pattern"]));
        assert!(renamed(FindingRow::TABLE, "target", &batch).is_none());
        assert!(renamed(LabelRow::TABLE, "source", &batch).is_none());
    }

    fn labels() -> Vec<LabelRow> {
        (0..3)
            .map(|number| LabelRow {
                recording: format!("R{number}"),
                host: "a'b\n".into(),
                name: "rack".into(),
                value: format!("r{number}"),
            })
            .collect()
    }

    #[test]
    fn what_is_written_is_read_again_and_equal_rows_are_equal_files() {
        let file = encode(&labels()).unwrap();
        assert_eq!(encode(&labels()).unwrap(), file);
        let batches = decode(LabelRow::TABLE, file).unwrap();
        assert_eq!(batches, [LabelRow::batch(&labels())]);
    }

    #[test]
    fn a_file_of_another_table_or_no_file_is_refused() {
        let file = encode(&labels()).unwrap();
        let error = decode(crate::tables::RollupRow::TABLE, file.clone()).unwrap_err();
        assert!(error.to_string().contains("`ts`"), "{error}");
        let cut = file.slice(..file.len() - 3);
        assert!(decode(LabelRow::TABLE, cut).is_err());
    }
}
