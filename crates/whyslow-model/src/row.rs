//! What a table is: columns with types, units and documentation, and rows that can be put into it.
//!
//! A table is declared once with [`table!`](crate::table) in a file of [`tables`](crate::tables);
//! the writer, the reader, the documentation and the SQL views all follow that declaration.

use crate::{Ns, Sym};

/// Physical type of a column. Only signed integers: every Parquet reader knows these.
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

/// What the numbers of a column count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// No unit: names, flags, codes.
    None,
    /// A point in time, ns since the Unix epoch.
    Time,
    /// A length of time, ns.
    Duration,
    /// Bytes.
    Bytes,
    /// 512-byte sectors, as the kernel counts them.
    Sectors,
    /// Things, operations, pages.
    Count,
    /// An id that names a row of this or another table.
    Id,
}

/// Declaration of a column.
#[derive(Debug, Clone, Copy)]
pub struct Column {
    /// Lower snake case; unit last (`device_ns`), unless the table meaning of `ts`, `dur`, `ts_end`
    /// says it.
    pub name: &'static str,
    /// Meaning, in Markdown, for `docs/format.md`.
    pub doc: &'static str,
    /// Physical type.
    pub kind: ColumnType,
    /// Whether it may be null; a column that is added within a format version has to be.
    pub nullable: bool,
    /// What its numbers count.
    pub unit: Unit,
}

/// How the rows of a table lie in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// `ts`, `dur`, `ts_end`; sorted by (`ts`, id).
    Interval,
    /// `ts` only; sorted by (`ts`, id).
    Point,
    /// Things rather than events; sorted by id.
    Entity,
}

/// Declaration of a table, made by [`table!`](crate::table).
#[derive(Debug)]
pub struct Table {
    /// Name, also of its files.
    pub name: &'static str,
    /// Meaning of one row, in Markdown.
    pub doc: &'static str,
    /// How its rows lie in time.
    pub shape: Shape,
    /// Name of the column that orders rows of equal `ts`, and entities.
    pub id: &'static str,
    /// Columns, in the order in which rows put and get their cells.
    pub columns: &'static [Column],
}

impl Table {
    /// A column by its name, and its place in [`Table::columns`].
    pub fn column(&self, name: &str) -> Option<(usize, &'static Column)> {
        self.columns
            .iter()
            .enumerate()
            .find(|(_, column)| column.name == name)
    }
}

/// Takes the cells of one row, column by column, in the order of [`Table::columns`].
pub trait Sink {
    /// Takes a cell of a column of [`ColumnType::I64`].
    fn i64(&mut self, column: usize, value: Option<i64>);
    /// Takes a cell of a column of [`ColumnType::I32`].
    fn i32(&mut self, column: usize, value: Option<i32>);
    /// Takes a cell of a column of [`ColumnType::F64`].
    fn f64(&mut self, column: usize, value: Option<f64>);
    /// Takes a cell of a column of [`ColumnType::Bool`].
    fn bool(&mut self, column: usize, value: Option<bool>);
    /// Takes a cell of a column of [`ColumnType::Utf8`].
    fn sym(&mut self, column: usize, value: Option<Sym>);
}

/// Gives the cells of one row, the other way round of [`Sink`].
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
    /// Puts the value into that column.
    fn put<S: Sink + ?Sized>(self, column: usize, sink: &mut S);
    /// Reads the value from that column. Panics on null where the type is no `Option`.
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
                    .expect("a column that is never null has a value in every row")
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
    /// Length of the interval; `None` for unfinished intervals, points and entities.
    fn length(&self) -> Option<Ns>;
    /// Puts all cells, in the order of the columns.
    fn put<S: Sink + ?Sized>(&self, sink: &mut S);
    /// Makes a row of all cells, in the order of the columns.
    fn get<F: Feed + ?Sized>(feed: &mut F) -> Self;
}

/// Where trackers put finished rows. Implemented by the writer of a recording, by the tail of a
/// running one, and by tests.
pub trait Emit<R: Row> {
    /// Takes a finished row. Rows come in any order; the receiver sorts by [`Row::key`].
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
                let mut next = || columns.next().expect("columns are few");
                Self { $( $field: $crate::row::Cell::get(next(), feed) ),+ }
            }
        }
    };
}
