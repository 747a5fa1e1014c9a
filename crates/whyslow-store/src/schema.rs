//! Converts the declaration of a table to Arrow and Parquet schemas.
//!
//! Text is dictionary-encoded in memory, and plain UTF-8 to other readers of the files: the Arrow
//! schema is not embedded, so that each program chooses its own types.

use std::sync::Arc;

use arrow_schema::{DataType, Field, Schema, SchemaRef};
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::metadata::SortingColumn;
use parquet::file::properties::WriterProperties;
use whyslow_model::{Column, ColumnType, Shape, Table, Unit};

use crate::limits;

/// The writer in every file; without build details, so that equal rows give equal bytes.
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

/// Numbers that increase, or hardly repeat: a dictionary would only add cost.
pub(crate) fn is_delta(table: &Table, column: &Column) -> bool {
    let integer = matches!(column.kind, ColumnType::I64 | ColumnType::I32);
    let running = matches!(column.unit, Unit::Time | Unit::Duration | Unit::Sectors)
        || column.name == table.id
        || (column.unit == Unit::Id && column.kind == ColumnType::I64);
    integer && running
}

/// Windows prune by both ends of intervals.
pub(crate) fn has_page_bounds(column: &Column) -> bool {
    matches!(column.name, "ts" | "ts_end")
}

pub(crate) fn compression() -> Compression {
    Compression::ZSTD(ZstdLevel::try_new(limits::ZSTD_LEVEL).expect("a valid level"))
}

/// Properties of the whole file for the footer.
pub(crate) fn writer_properties(table: &Table) -> WriterProperties {
    let sorting = key_columns(table)
        .into_iter()
        .filter_map(|name| table.column(name))
        .map(|(index, _)| SortingColumn {
            column_idx: index as i32,
            descending: false,
            nulls_first: false,
        })
        .collect();
    WriterProperties::builder()
        .set_created_by(CREATED_BY.to_owned())
        .set_sorting_columns(Some(sorting))
        .build()
}
