//! Lake tables: rows are declared once; their columns, documentation and Parquet files are derived
//! from the declaration.
//!
//! They differ from the tables of a recording: rows have no ids that other rows refer to, texts are
//! stored in their rows (each has few distinct values), and every row names its recording and host.

use std::sync::Arc;

use arrow_array::{
    ArrayRef, BooleanArray, Float64Array, Int32Array, Int64Array, RecordBatch, StringArray,
};
use arrow_schema::{Field, Schema, SchemaRef};
use whyslow_model::{Column, ColumnType};

/// Declaration of a lake table.
#[derive(Debug)]
pub struct LakeTable {
    /// Name, and directory below `v1/`.
    pub name: &'static str,
    /// Meaning of one row, in Markdown, for `docs/fleet.md`.
    pub doc: &'static str,
    /// Columns in file order.
    pub columns: &'static [Column],
    /// Columns that the rows of a file are sorted by, most significant first.
    pub sorted_by: &'static [&'static str],
}

impl LakeTable {
    /// Arrow schema of the table.
    pub fn schema(&self) -> SchemaRef {
        let fields = self.columns.iter().map(|column| {
            let kind = match column.kind {
                ColumnType::I64 => arrow_schema::DataType::Int64,
                ColumnType::I32 => arrow_schema::DataType::Int32,
                ColumnType::F64 => arrow_schema::DataType::Float64,
                ColumnType::Bool => arrow_schema::DataType::Boolean,
                ColumnType::Utf8 => arrow_schema::DataType::Utf8,
            };
            Field::new(column.name, kind, column.nullable)
        });
        Arc::new(Schema::new(fields.collect::<Vec<_>>()))
    }
}

/// A row of a lake table.
pub trait LakeRow: Sized {
    /// Declaration of the row's table.
    const TABLE: &'static LakeTable;
    /// All rows, in the given order.
    fn batch(rows: &[Self]) -> RecordBatch;
}

/// A cell type.
pub(crate) trait LakeCell: Sized {
    const KIND: ColumnType;
    const NULLABLE: bool;
    fn array<'c>(cells: impl Iterator<Item = &'c Self>) -> ArrayRef
    where
        Self: 'c;
}

macro_rules! cell {
    ($rust:ty, $kind:ident, $array:ident, $read:expr) => {
        impl LakeCell for $rust {
            const KIND: ColumnType = ColumnType::$kind;
            const NULLABLE: bool = false;
            fn array<'c>(cells: impl Iterator<Item = &'c Self>) -> ArrayRef {
                let read: for<'a> fn(&'a $rust) -> _ = $read;
                Arc::new(cells.map(|cell| Some(read(cell))).collect::<$array>())
            }
        }
        impl LakeCell for Option<$rust> {
            const KIND: ColumnType = ColumnType::$kind;
            const NULLABLE: bool = true;
            fn array<'c>(cells: impl Iterator<Item = &'c Self>) -> ArrayRef {
                let read: for<'a> fn(&'a $rust) -> _ = $read;
                Arc::new(
                    cells
                        .map(|cell| cell.as_ref().map(read))
                        .collect::<$array>(),
                )
            }
        }
    };
}
cell!(i64, I64, Int64Array, |value| *value);
cell!(i32, I32, Int32Array, |value| *value);
cell!(f64, F64, Float64Array, |value| *value);
cell!(bool, Bool, BooleanArray, |value| *value);

impl LakeCell for String {
    const KIND: ColumnType = ColumnType::Utf8;
    const NULLABLE: bool = false;
    fn array<'c>(cells: impl Iterator<Item = &'c Self>) -> ArrayRef {
        Arc::new(cells.map(Some).collect::<StringArray>())
    }
}

impl LakeCell for Option<String> {
    const KIND: ColumnType = ColumnType::Utf8;
    const NULLABLE: bool = true;
    fn array<'c>(cells: impl Iterator<Item = &'c Self>) -> ArrayRef {
        Arc::new(cells.map(Option::as_ref).collect::<StringArray>())
    }
}

/// Declares a lake table: its row struct, columns, units and documentation in one place.
macro_rules! lake_table {
    (
        $(#[doc = $tdoc:literal])+
        $row:ident = $name:literal, sorted by [$($key:ident),+] {
            $( $(#[doc = $cdoc:literal])+ $field:ident : $ty:ty $([$unit:ident])? ),+ $(,)?
        }
    ) => {
        $(#[doc = $tdoc])+
        #[derive(Debug, Clone, PartialEq)]
        pub struct $row { $( $(#[doc = $cdoc])+ pub $field: $ty ),+ }

        impl $crate::columns::LakeRow for $row {
            const TABLE: &'static $crate::columns::LakeTable = &$crate::columns::LakeTable {
                name: $name,
                doc: concat!($($tdoc),+),
                sorted_by: &[$(stringify!($key)),+],
                columns: &[ $( whyslow_model::Column {
                    name: stringify!($field),
                    doc: concat!($($cdoc),+),
                    kind: <$ty as $crate::columns::LakeCell>::KIND,
                    nullable: <$ty as $crate::columns::LakeCell>::NULLABLE,
                    unit: whyslow_model::column_unit!($($unit)?),
                } ),+ ],
            };
            fn batch(rows: &[Self]) -> arrow_array::RecordBatch {
                let arrays = vec![ $(
                    <$ty as $crate::columns::LakeCell>::array(rows.iter().map(|row| &row.$field))
                ),+ ];
                arrow_array::RecordBatch::try_new(Self::TABLE.schema(), arrays)
                    .expect("every column has one cell per row")
            }
        }
    };
}
pub(crate) use lake_table;
