//! Fetches single rows: a scan of few columns finds them, and they are read completely afterwards,
//! so that a scan over millions of rows never reads the columns of the ten rows that it shows.

use arrow_array::{Array, RecordBatch};
use rustc_hash::FxHashMap;
use whyslow_model::answer::Value;
use whyslow_model::tables::CUT_UNCERTAIN;
use whyslow_model::{Ns, Window};

use crate::AnalysisError;
use crate::arguments::Arguments;
use crate::context::Context;
use crate::fold::{Spot, fold_spots};
use crate::keys::{Key, KeyValue, unknown_object};
use crate::scan::{ColumnRef, Projection};
use crate::spec::{Cell, Field, Spec, WokenBy};
use crate::threads::Names;
use whyslow_model::errno;

/// Number of a row in table order, and its position in the scan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pub(crate) ts: Ns,
    pub(crate) id: i64,
    pub(crate) spot: Spot,
}

/// A formatted row, and the edges that cut it.
#[derive(Debug, Clone)]
pub(crate) struct Shown {
    pub(crate) cells: Vec<Value>,
    pub(crate) cut: Option<&'static str>,
}

/// The cells of a kind's rows in a projection.
pub(crate) struct Cells<'s> {
    spec: &'s Spec,
    names: &'s Names,
    bound: Vec<BoundCell>,
}

enum BoundCell {
    Int(ColumnRef),
    Text(ColumnRef),
    Bool(ColumnRef),
    Thread(ColumnRef),
    Object {
        path: ColumnRef,
        reason: ColumnRef,
    },
    Arguments(Box<Arguments>),
    Errno(ColumnRef),
    Id(ColumnRef),
    IdOf(&'static str, ColumnRef),
    /// What woke a thread, if it was one of these causes: a row of another kind.
    WokenBy {
        by: WokenBy,
        cause: ColumnRef,
        id: ColumnRef,
    },
}

impl<'s> Cells<'s> {
    pub(crate) fn new(
        spec: &'s Spec,
        fields: &[Field],
        names: &'s Names,
        projection: &mut Projection,
    ) -> Self {
        let mut bind = |cell: Cell| match cell {
            Cell::Int(name) => BoundCell::Int(projection.need(name)),
            Cell::Text(name) => BoundCell::Text(projection.need(name)),
            Cell::Bool(name) => BoundCell::Bool(projection.need(name)),
            Cell::Thread(name) => BoundCell::Thread(projection.need(name)),
            Cell::Errno(name) => BoundCell::Errno(projection.need(name)),
            Cell::Object => BoundCell::Object {
                path: projection.need("path"),
                reason: projection.need("unknown_reason"),
            },
            Cell::Arguments => {
                BoundCell::Arguments(Box::new(Arguments::new(names.machine, projection)))
            }
            Cell::Id => BoundCell::Id(projection.need("id")),
            Cell::IdOf(prefix, name) => BoundCell::IdOf(prefix, projection.need(name)),
            Cell::WokenBy(by) => BoundCell::WokenBy {
                by,
                cause: projection.need("wake_cause"),
                id: projection.need("wake_cause_id"),
            },
        };
        let bound = fields.iter().map(|field| bind(field.cell)).collect();
        Self { spec, names, bound }
    }

    /// Cells of these rows of a batch.
    pub(crate) fn read(
        &self,
        batch: &RecordBatch,
        rows: &[u32],
    ) -> Result<impl Iterator<Item = Vec<Value>>, AnalysisError> {
        let by_column = self
            .bound
            .iter()
            .map(|cell| Ok(self.column(cell, batch, rows)?.into_iter()))
            .collect::<Result<Vec<_>, AnalysisError>>();
        let mut columns = by_column?;
        Ok(rows
            .iter()
            .map(move |_| {
                let next = |column: &mut std::vec::IntoIter<Value>| column.next();
                columns.iter_mut().filter_map(next).collect()
            })
            .collect::<Vec<_>>()
            .into_iter())
    }

    fn column(
        &self,
        cell: &BoundCell,
        batch: &RecordBatch,
        rows: &[u32],
    ) -> Result<Vec<Value>, AnalysisError> {
        let rows = rows.iter().copied();
        Ok(match cell {
            BoundCell::Int(column) => {
                let column = column.ints(batch)?;
                rows.map(|row| column.get(row).into()).collect()
            }
            BoundCell::Text(column) => {
                let column = column.texts(batch)?;
                rows.map(|row| column.get(row).into()).collect()
            }
            BoundCell::Bool(column) => {
                let column = column.bools(batch)?;
                let known = |row: usize| (!column.is_null(row)).then(|| column.value(row));
                rows.map(|row| known(row as usize).into()).collect()
            }
            BoundCell::Thread(column) => {
                let column = column.ints(batch)?;
                let label = |utid| Key::Thread.label(&KeyValue::Int(utid), self.names);
                rows.map(|row| column.get(row).map(label).into()).collect()
            }
            BoundCell::Errno(column) => {
                let column = column.ints(batch)?;
                let name = |number: i64| (number != 0).then(|| errno::name(number));
                rows.map(|row| column.get(row).and_then(name).into())
                    .collect()
            }
            BoundCell::Object { path, reason } => {
                let (path, reason) = (path.texts(batch)?, reason.texts(batch)?);
                rows.map(|row| match (path.get(row), reason.get(row)) {
                    (Some(path), _) => path.into(),
                    (None, Some(reason)) => unknown_object(reason).into(),
                    (None, None) => Value::Null,
                })
                .collect()
            }
            BoundCell::Arguments(arguments) => {
                let texts = arguments.read(batch, rows)?;
                texts.into_iter().map(Value::from).collect()
            }
            BoundCell::WokenBy { by, cause, id } => {
                let (cause, id) = (cause.texts(batch)?, id.ints(batch)?);
                let name = |row: u32| {
                    cause.get(row).filter(|cause| by.causes.contains(cause))?;
                    Some(format!("{}:{}", by.id_prefix, id.get(row)?))
                };
                rows.map(|row| name(row).into()).collect()
            }
            BoundCell::IdOf(prefix, column) => {
                let column = column.ints(batch)?;
                let shown = |id: i64| format!("{prefix}:{id}");
                rows.map(|row| column.get(row).map(shown).into()).collect()
            }
            BoundCell::Id(column) => {
                let column = column.ints(batch)?;
                let prefix = self.spec.id_prefix;
                rows.map(|row| format!("{prefix}:{}", column.at(row)).into())
                    .collect()
            }
        })
    }
}

/// Rows of a kind, and the edges that cut them.
pub(crate) struct RowReader<'s> {
    window: Option<Window>,
    ts: ColumnRef,
    /// `None` for events without duration.
    ts_end: Option<ColumnRef>,
    recorded: Recorded,
    cells: Cells<'s>,
}

/// How a table marks rows that the recording cut.
#[derive(Debug, Clone, Copy)]
enum Recorded {
    Column(ColumnRef),
    NoEnd,
    Never,
}

impl<'s> RowReader<'s> {
    pub(crate) fn new(
        spec: &'s Spec,
        context: &'s Context<'_>,
        projection: &mut Projection,
    ) -> Self {
        let ends = spec.table.column("ts_end");
        Self {
            window: context.query.window,
            ts: projection.need("ts"),
            ts_end: ends.map(|_| projection.need("ts_end")),
            recorded: match spec.table.column("cut") {
                Some(_) => Recorded::Column(projection.need("cut")),
                None if spec.lasting => Recorded::Never,
                None => Recorded::NoEnd,
            },
            cells: Cells::new(spec, spec.fields, &context.names, projection),
        }
    }

    /// Builds these rows of a batch and passes them on.
    pub(crate) fn read(
        &self,
        batch: &RecordBatch,
        rows: &[u32],
        mut each: impl FnMut(Shown),
    ) -> Result<(), AnalysisError> {
        let ts = self.ts.ints(batch)?;
        let ts_end = self.ts_end.map(|column| column.ints(batch)).transpose()?;
        let column = match self.recorded {
            Recorded::Column(column) => Some(column.texts(batch)?),
            Recorded::NoEnd | Recorded::Never => None,
        };
        for (row, cells) in rows.iter().copied().zip(self.cells.read(batch, rows)?) {
            let interval = (ts.at(row), ts_end.and_then(|ts_end| ts_end.get(row)));
            let recorded = match self.recorded {
                Recorded::Column(_) => column.and_then(|cut| cut.get(row)),
                Recorded::NoEnd => interval.1.is_none().then_some("end"),
                Recorded::Never => None,
            };
            let cut = cut_of(recorded, interval, self.window);
            each(Shown { cells, cut });
        }
        Ok(())
    }
}

/// The edges that cut a row: those of the recording, according to its `cut` column, and those of
/// the window. The mark of an uncertain row takes precedence.
pub(crate) fn cut_of(
    recorded: Option<&str>,
    (ts, ts_end): (Ns, Option<Ns>),
    window: Option<Window>,
) -> Option<&'static str> {
    if recorded == Some(CUT_UNCERTAIN) {
        return Some(CUT_UNCERTAIN);
    }
    let begins_before = window.is_some_and(|window| ts < window.begin);
    let ends_after = window.is_some_and(|window| ts_end.is_some_and(|end| end > window.end));
    let begin = begins_before || recorded == Some("begin");
    let end = ends_after || recorded == Some("end");
    match (begin, end) {
        (true, true) => Some("both"),
        (true, false) => Some("begin"),
        (false, true) => Some("end"),
        (false, false) => None,
    }
}

/// The complete rows at these places, which are from a scan of the query's window.
pub(crate) fn fetch(
    context: &Context<'_>,
    spec: &'static Spec,
    places: &[Place],
) -> Result<FxHashMap<Spot, Shown>, AnalysisError> {
    let mut projection = Projection::new(spec.table);
    let reader = RowReader::new(spec, context, &mut projection);
    at_places(context, &projection, places, |batch, rows, shown| {
        reader.read(batch, rows, |row| shown.push(row))
    })
}

/// Only these fields of the rows at these places.
pub(crate) fn fetch_fields(
    context: &Context<'_>,
    spec: &'static Spec,
    fields: &[Field],
    places: &[Place],
) -> Result<FxHashMap<Spot, Vec<Value>>, AnalysisError> {
    let mut projection = Projection::new(spec.table);
    let cells = Cells::new(spec, fields, &context.names, &mut projection);
    at_places(context, &projection, places, |batch, rows, shown| {
        shown.extend(cells.read(batch, rows)?);
        Ok(())
    })
}

fn at_places<T: Send>(
    context: &Context<'_>,
    projection: &Projection,
    places: &[Place],
    read: impl Fn(&RecordBatch, &[u32], &mut Vec<T>) -> Result<(), AnalysisError> + Sync,
) -> Result<FxHashMap<Spot, T>, AnalysisError> {
    let mut spots: Vec<Spot> = places.iter().map(|place| place.spot).collect();
    spots.sort_unstable();
    spots.dedup();
    let each = |found: &mut Vec<(Spot, T)>, batch: &RecordBatch, spots: &[Spot]| {
        let rows: Vec<u32> = (0..spots.len() as u32).collect();
        let mut shown = Vec::with_capacity(rows.len());
        read(batch, &rows, &mut shown)?;
        found.extend(spots.iter().copied().zip(shown));
        Ok(())
    };
    let scan = projection.scan(context.selected());
    let merge = |found: &mut Vec<_>, mut more| found.append(&mut more);
    let found = fold_spots(context.tables, &scan, &spots, Vec::new, each, merge)?;
    Ok(found.into_iter().collect())
}
