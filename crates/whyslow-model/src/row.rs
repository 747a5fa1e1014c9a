//! Tables: columns with types, units and documentation, and rows that can be stored in them.
//!
//! A table is declared once with [`table!`](crate::table) in a file of [`tables`](crate::tables).
//! The writer, the reader, the documentation and the SQL views follow that declaration.

use crate::{Ns, Sym};

/// Physical type of a column. Integers are signed only: every Parquet reader supports these.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnType {
    /// Parquet `INT64`.
    I64,
    /// Parquet `INT32`.
    I32,
    /// Parquet `DOUBLE`.
    F64,
    /// Parquet `BOOLEAN`.
    Bool,
    /// Parquet `BYTE_ARRAY` with UTF-8; a [`Sym`] in memory.
    Utf8,
}

/// Unit of the values of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// No unit: names, flags, codes.
    None,
    /// A point in time, ns since the Unix epoch.
    Time,
    /// A duration, ns.
    Duration,
    /// Bytes.
    Bytes,
    /// 512-byte sectors, as the kernel counts them.
    Sectors,
    /// Things, operations, pages.
    Count,
    /// An id that refers to a row of this or another table.
    Id,
}

/// Declaration of a column.
#[derive(Debug, Clone, Copy)]
pub struct Column {
    /// Lower snake case with the unit last (`device_ns`), except for `ts`, `dur` and `ts_end`,
    /// whose units are fixed.
    pub name: &'static str,
    /// Meaning, in Markdown, for `docs/format.md`.
    pub doc: &'static str,
    /// Physical type.
    pub kind: ColumnType,
    /// Whether it may be null; a column added within a format version has to be nullable.
    pub nullable: bool,
    /// Unit of the values.
    pub unit: Unit,
}

/// How the rows of a table relate to time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// `ts`, `dur`, `ts_end`; sorted by (`ts`, id).
    Interval,
    /// `ts` only; sorted by (`ts`, id).
    Point,
    /// Objects rather than events; sorted by id.
    Entity,
}

/// Declaration of a table, created by [`table!`](crate::table).
#[derive(Debug)]
pub struct Table {
    /// Name of the table and of its files.
    pub name: &'static str,
    /// Meaning of one row, in Markdown.
    pub doc: &'static str,
    /// How its rows relate to time.
    pub shape: Shape,
    /// Name of the column that orders rows of equal `ts`, and entities.
    pub id: &'static str,
    /// Columns, in the order in which rows put and get their cells.
    pub columns: &'static [Column],
}

impl Table {
    /// Finds a column by name. Returns its index in [`Table::columns`], too.
    pub fn column(&self, name: &str) -> Option<(usize, &'static Column)> {
        self.columns
            .iter()
            .enumerate()
            .find(|(_, column)| column.name == name)
    }
}

/// Receives the cells of one row, column by column, in the order of [`Table::columns`].
pub trait Sink {
    /// Receives a cell of a column of [`ColumnType::I64`].
    fn i64(&mut self, column: usize, value: Option<i64>);
    /// Receives a cell of a column of [`ColumnType::I32`].
    fn i32(&mut self, column: usize, value: Option<i32>);
    /// Receives a cell of a column of [`ColumnType::F64`].
    fn f64(&mut self, column: usize, value: Option<f64>);
    /// Receives a cell of a column of [`ColumnType::Bool`].
    fn bool(&mut self, column: usize, value: Option<bool>);
    /// Receives a cell of a column of [`ColumnType::Utf8`].
    fn sym(&mut self, column: usize, value: Option<Sym>);
}

/// Supplies the cells of one row; the counterpart of [`Sink`].
pub trait Feed {
    /// The cell of a column of [`ColumnType::I64`]; `None` for null.
    fn i64(&mut self, column: usize) -> Option<i64>;
    /// The cell of a column of [`ColumnType::I32`]; `None` for null.
    fn i32(&mut self, column: usize) -> Option<i32>;
    /// The cell of a column of [`ColumnType::F64`]; `None` for null.
    fn f64(&mut self, column: usize) -> Option<f64>;
    /// The cell of a column of [`ColumnType::Bool`]; `None` for null.
    fn bool(&mut self, column: usize) -> Option<bool>;
    /// The cell of a column of [`ColumnType::Utf8`]; `None` for null.
    fn sym(&mut self, column: usize) -> Option<Sym>;
}

/// A value that a column can hold.
pub trait Cell: Copy {
    /// Type of the column.
    const KIND: ColumnType;
    /// Whether the column may be null: true for `Option`.
    const NULLABLE: bool;
    /// Puts the value into the column.
    fn put<S: Sink + ?Sized>(self, column: usize, sink: &mut S);
    /// Reads the value from the column. Panics on null unless the type is `Option`.
    fn get<F: Feed + ?Sized>(column: usize, feed: &mut F) -> Self;
}

macro_rules! cell {
    ($rust:ty, $kind:ident, $method:ident) => {
        impl Cell for $rust {
            const KIND: ColumnType = ColumnType::$kind;
            const NULLABLE: bool = false;
            #[inline(always)]
            fn put<S: Sink + ?Sized>(self, column: usize, sink: &mut S) {
                sink.$method(column, Some(self));
            }
            fn get<F: Feed + ?Sized>(column: usize, feed: &mut F) -> Self {
                feed.$method(column)
                    .expect("a non-nullable column has a value in every row")
            }
        }
        impl Cell for Option<$rust> {
            const KIND: ColumnType = ColumnType::$kind;
            const NULLABLE: bool = true;
            #[inline(always)]
            fn put<S: Sink + ?Sized>(self, column: usize, sink: &mut S) {
                sink.$method(column, self);
            }
            fn get<F: Feed + ?Sized>(column: usize, feed: &mut F) -> Self {
                feed.$method(column)
            }
        }
    };
}
cell!(i64, I64, i64);
cell!(i32, I32, i32);
cell!(f64, F64, f64);
cell!(bool, Bool, bool);
cell!(Sym, Utf8, sym);

/// One row of one table.
pub trait Row: Copy + Send + std::fmt::Debug + 'static {
    /// Declaration of its table.
    const TABLE: &'static Table;
    /// Sort key: (`ts`, id); (0, id) for entities.
    fn key(&self) -> (Ns, i64);
    /// Duration of the interval; `None` for unfinished intervals, points and entities.
    fn length(&self) -> Option<Ns>;
    /// Puts all cells, in the order of the columns.
    fn put<S: Sink + ?Sized>(&self, sink: &mut S);
    /// Builds a row from all cells, in the order of the columns.
    fn get<F: Feed + ?Sized>(feed: &mut F) -> Self;
}

/// Destination of finished rows. Implemented by the writer of a recording, by the tail of a running
/// one, and by tests.
pub trait Emit<R: Row> {
    /// Accepts a finished row. Rows arrive in any order; the receiver sorts by [`Row::key`].
    fn emit(&mut self, row: R);
}

#[doc(hidden)]
#[macro_export]
macro_rules! column_unit {
    () => {
        $crate::Unit::None
    };
    ($unit:ident) => {
        $crate::Unit::$unit
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! row_key {
    (Interval, $self:ident, $id:ident) => {
        ($self.ts, i64::from($self.$id))
    };
    (Point, $self:ident, $id:ident) => {
        ($self.ts, i64::from($self.$id))
    };
    (Entity, $self:ident, $id:ident) => {
        (0, i64::from($self.$id))
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! row_length {
    (Interval, $self:ident) => {
        $self.dur
    };
    ($shape:ident, $self:ident) => {
        None
    };
}

/// Declares a table: its row struct, columns, units and documentation in one place.
#[macro_export]
macro_rules! table {
    (
        $(#[doc = $tdoc:literal])+
        $row:ident = $name:literal, $shape:ident by $id:ident {
            $( $(#[doc = $cdoc:literal])+ $field:ident : $ty:ty $([$unit:ident])? ),+ $(,)?
        }
    ) => {
        $(#[doc = $tdoc])+
        #[derive(Debug, Clone, Copy, Default, PartialEq)]
        pub struct $row { $( $(#[doc = $cdoc])+ pub $field: $ty ),+ }

        impl $crate::Row for $row {
            const TABLE: &'static $crate::Table = &$crate::Table {
                name: $name,
                doc: concat!($($tdoc),+),
                shape: $crate::Shape::$shape,
                id: stringify!($id),
                columns: &[ $( $crate::Column {
                    name: stringify!($field),
                    doc: concat!($($cdoc),+),
                    kind: <$ty as $crate::row::Cell>::KIND,
                    nullable: <$ty as $crate::row::Cell>::NULLABLE,
                    unit: $crate::column_unit!($($unit)?),
                } ),+ ],
            };
            fn key(&self) -> ($crate::Ns, i64) { $crate::row_key!($shape, self, $id) }
            fn length(&self) -> Option<$crate::Ns> { $crate::row_length!($shape, self) }
            fn put<S: $crate::Sink + ?Sized>(&self, sink: &mut S) {
                let mut column = 0;
                $( $crate::row::Cell::put(self.$field, column, sink); column += 1; )+
                let _ = column;
            }
            fn get<F: $crate::Feed + ?Sized>(feed: &mut F) -> Self {
                let mut columns = 0..;
                let mut next = || columns.next().expect("a table has few columns");
                Self { $( $field: $crate::row::Cell::get(next(), feed) ),+ }
            }
        }
    };
}
