//! From the declaration of a table to its Arrow and Parquet form.
//!
//! Text is dictionary-encoded in memory, and plain UTF-8 to every other reader of the files: the
//! Arrow schema is not embedded, so that each program chooses its own types.

use std::sync::Arc;

use arrow_schema::{DataType, Field, Schema, SchemaRef};
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::file::metadata::SortingColumn;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::schema::types::ColumnPath;
use whyslow_model::{Column, ColumnType, Shape, Table, Unit};

use crate::limits::{self, Limits};

/// Names the writer in every file; without build details, so that equal rows give equal bytes.
const CREATED_BY: &str = concat!("whyslow version ", env!("CARGO_PKG_VERSION"));

pub(crate) fn data_type(kind: ColumnType) -> DataType {
    match kind {
        ColumnType::I64 => DataType::Int64,
        ColumnType::I32 => DataType::Int32,
        ColumnType::F64 => DataType::Float64,
        ColumnType::Bool => DataType::Boolean,
        ColumnType::Utf8 => {
            DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8))
        }
    }
}

pub(crate) fn field(column: &Column) -> Field {
    Field::new(column.name, data_type(column.kind), column.nullable)
}

pub(crate) fn arrow_schema(table: &Table) -> SchemaRef {
    Arc::new(Schema::new(
        table.columns.iter().map(field).collect::<Vec<_>>(),
    ))
}

/// Columns that order the rows of a table.
pub(crate) fn key_columns(table: &Table) -> Vec<&'static str> {
    match table.shape {
        Shape::Interval | Shape::Point => vec!["ts", table.id],
        Shape::Entity => vec![table.id],
    }
}

/// Numbers that grow, or hardly repeat: a dictionary would only cost.
fn is_delta(table: &Table, column: &Column) -> bool {
    let integer = matches!(column.kind, ColumnType::I64 | ColumnType::I32);
    let running = matches!(column.unit, Unit::Time | Unit::Duration | Unit::Sectors)
        || column.name == table.id
        || (column.unit == Unit::Id && column.kind == ColumnType::I64);
    integer && running
}

/// Windows prune by both ends of intervals. Least and greatest text is worth nothing, as every row
/// group has nearly all names, and finding it compares strings row by row: half of all writing.
fn statistics(column: &Column) -> EnabledStatistics {
    match (column.name, column.kind) {
        ("ts" | "ts_end", _) => EnabledStatistics::Page,
        (_, ColumnType::Utf8) => EnabledStatistics::None,
        _ => EnabledStatistics::Chunk,
    }
}

pub(crate) fn writer_properties(table: &Table, limits: &Limits) -> WriterProperties {
    let level = ZstdLevel::try_new(limits::ZSTD_LEVEL).expect("a level zstd has");
    let sorting = key_columns(table)
        .into_iter()
        .filter_map(|name| table.column(name))
        .map(|(index, _)| SortingColumn {
            column_idx: index as i32,
            descending: false,
            nulls_first: false,
        })
        .collect();
    let mut properties = WriterProperties::builder()
        .set_created_by(CREATED_BY.to_owned())
        .set_compression(Compression::ZSTD(level))
        .set_max_row_group_row_count(None)
        .set_data_page_row_count_limit(limits.page_rows)
        .set_dictionary_page_size_limit(limits::DICTIONARY_BYTES)
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_sorting_columns(Some(sorting));
    for column in table.columns {
        let path = ColumnPath::from(column.name);
        if is_delta(table, column) {
            properties = properties
                .set_column_dictionary_enabled(path.clone(), false)
                .set_column_encoding(path.clone(), Encoding::DELTA_BINARY_PACKED);
        }
        properties = properties.set_column_statistics_enabled(path, statistics(column));
    }
    properties.build()
}
