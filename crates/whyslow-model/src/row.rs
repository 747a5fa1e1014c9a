//! What a table is: columns with types, units and documentation, and rows that can be put into it.
//!
//! A table is declared once with [`table!`](crate::table) in a file of [`tables`](crate::tables);
//! the writer, the reader, the documentation and the SQL views all follow that declaration.

use crate::{Ns, Sym};

/// Physical type of a column. Only signed integers: every Parquet reader knows these.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnType {
    I64,
    I32,
    F64,
    Bool,
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
    Bytes,
    /// 512-byte sectors, as the kernel counts them.
    Sectors,
    Count,
    /// An id that names a row of this or another table.
    Id,
}

#[derive(Debug, Clone, Copy)]
pub struct Column {
    pub name: &'static str,
    pub doc: &'static str,
    pub kind: ColumnType,
    pub nullable: bool,
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

#[derive(Debug)]
pub struct Table {
    pub name: &'static str,
    pub doc: &'static str,
    pub shape: Shape,
    /// Name of the column that orders rows of equal `ts`, and entities.
    pub id: &'static str,
    pub columns: &'static [Column],
}

impl Table {
    pub fn column(&self, name: &str) -> Option<(usize, &'static Column)> {
        self.columns
            .iter()
            .enumerate()
            .find(|(_, column)| column.name == name)
    }
}

/// Takes the cells of one row, column by column, in the order of [`Table::columns`].
pub trait Sink {
    fn i64(&mut self, column: usize, value: Option<i64>);
    fn i32(&mut self, column: usize, value: Option<i32>);
    fn f64(&mut self, column: usize, value: Option<f64>);
    fn bool(&mut self, column: usize, value: Option<bool>);
    fn sym(&mut self, column: usize, value: Option<Sym>);
}

/// Gives the cells of one row, the other way round of [`Sink`].
pub trait Feed {
    fn i64(&mut self, column: usize) -> Option<i64>;
    fn i32(&mut self, column: usize) -> Option<i32>;
    fn f64(&mut self, column: usize) -> Option<f64>;
    fn bool(&mut self, column: usize) -> Option<bool>;
    fn sym(&mut self, column: usize) -> Option<Sym>;
}

/// A value that a column can hold.
pub trait Cell: Copy {
    const KIND: ColumnType;
    const NULLABLE: bool;
    fn put<S: Sink + ?Sized>(self, column: usize, sink: &mut S);
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
    const TABLE: &'static Table;
    /// Sort key: (`ts`, id); (0, id) for entities.
    fn key(&self) -> (Ns, i64);
    /// Length of the interval; `None` for unfinished intervals, points and entities.
    fn length(&self) -> Option<Ns>;
    fn put<S: Sink + ?Sized>(&self, sink: &mut S);
    fn get<F: Feed + ?Sized>(feed: &mut F) -> Self;
}

/// Where trackers put finished rows. Implemented by the writer of a recording, by the tail of a
/// running one, and by tests.
pub trait Emit<R: Row> {
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
