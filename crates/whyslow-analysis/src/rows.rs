//! Single rows: those found by a scan of few columns are fetched whole afterwards, so that a scan
//! over millions never reads the columns of the ten rows it shows.

use std::cmp::Ordering;
use std::ops::ControlFlow;

use arrow_array::{Array, RecordBatch};
use rustc_hash::FxHashMap;
use whyslow_model::answer::{AnswerTable, Value};
use whyslow_model::{Ns, Shape, Table, Window, tables};
use whyslow_store::Tables;

use crate::AnalysisError;
use crate::arguments::Arguments;
use crate::context::Context;
use crate::fold::{Spot, fold_spots, in_order};
use crate::keys::{Key, KeyValue, unknown_object};
use crate::kinds::{BLOCK, Cell, Field, PACKETS, Spec};
use crate::query::Sort;
use crate::scan::{ColumnRef, Projection};
use crate::threads::Names;
use whyslow_model::errno;

/// Which row it is, in the order of the table, and where it was met.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pub(crate) ts: Ns,
    pub(crate) id: i64,
    pub(crate) spot: Spot,
}

/// A row ready to be shown, and whether an edge cuts it.
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
    /// What woke a thread, if it was one of these causes: a row of the kind.
    WokenBy {
        causes: [&'static str; 2],
        kind: &'static Spec,
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
            Cell::WokenByRequest => woken_by(["block_io", "worker"], &BLOCK, projection),
            Cell::WokenByPacket => woken_by(["packet", "received"], &PACKETS, projection),
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
            BoundCell::WokenBy {
                causes,
                kind,
                cause,
                id,
            } => {
                let (cause, id) = (cause.texts(batch)?, id.ints(batch)?);
                let name = |row: u32| {
                    cause.get(row).filter(|cause| causes.contains(cause))?;
                    Some(format!("{}:{}", kind.id_prefix, id.get(row)?))
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

fn woken_by(
    causes: [&'static str; 2],
    kind: &'static Spec,
    projection: &mut Projection,
) -> BoundCell {
    BoundCell::WokenBy {
        causes,
        kind,
        cause: projection.need("wake_cause"),
        id: projection.need("wake_cause_id"),
    }
}

/// Rows of a kind, and the edges that cut them.
pub(crate) struct RowReader<'s> {
    window: Option<Window>,
    ts: ColumnRef,
    /// None for what happens at a moment.
    ts_end: Option<ColumnRef>,
    recorded: Recorded,
    cells: Cells<'s>,
}

/// How a table tells that the recording cut a row.
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
            window: context.question.window,
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

    /// Makes these rows of a batch and hands them on.
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

/// Which edges cut a row: those of the recording, as its `cut` column says, and those of the window.
pub(crate) fn cut_of(
    recorded: Option<&str>,
    (ts, ts_end): (Ns, Option<Ns>),
    window: Option<Window>,
) -> Option<&'static str> {
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

/// The rows at these places, whole. The places are of a scan of the question's window.
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

/// Table and interval of an operation given by id.
pub fn interval_of(
    tables: &dyn Tables,
    table: &str,
    id: i64,
) -> Result<(&'static str, Window), AnalysisError> {
    let known = tables::by_name(table)
        .filter(|table| table.shape == Shape::Interval)
        .ok_or_else(|| {
            AnalysisError::query(
                format!("`{table}` is not a table of operations"),
                "give the id as an answer prints it, such as `op:17`",
            )
        })?;
    let found = match near(tables, known, id)? {
        Some(found) => Some(found),
        None => find(tables, known, id, None)?.found,
    };
    let (begin, end) = found.ok_or_else(|| {
        AnalysisError::query(
            format!("the recording has no operation {id} in table `{table}`"),
            "ids are those of this recording's `top` and `log`",
        )
    })?;
    let end = end.unwrap_or(tables.info().whole().end);
    // A window is open at its end, an operation is not: one that begins as this one ends touches it
    // only by the clock's resolution and is left out; one of no length keeps its moment.
    Ok((known.name, Window::new(begin, end.max(begin + 1))))
}

/// Begin and end of an operation.
type Ends = (Ns, Option<Ns>);

/// What a look at some rows found.
#[derive(Default)]
struct Looked {
    /// The row before the moment looked at: id and begin.
    before: Option<(i64, Ns)>,
    found: Option<Ends>,
}

/// Looks for a row where it is if ids ascend with time, as they do in most tables: between two moments
/// whose ids are known, as far from each as its own id from theirs. A few looks at some pages each
/// take the place of reading the whole table; none if that is small.
fn near(
    tables: &dyn Tables,
    table: &'static Table,
    id: i64,
) -> Result<Option<Ends>, AnalysisError> {
    const LOOKS: usize = 6;
    const ROWS_MIN: u64 = 100_000;
    let info = tables.info();
    let (rows, whole) = (info.rows_of_whole(table.name), info.whole());
    if rows < ROWS_MIN {
        return Ok(None);
    }
    let (mut low, mut high) = ((0, whole.begin), (rows as i64, whole.end));
    for _ in 0..LOOKS {
        if !(low.0..=high.0).contains(&id) || low.0 == high.0 {
            break;
        }
        let share = (id - low.0) as f64 / (high.0 - low.0) as f64;
        let at = low.1 + ((high.1 - low.1) as f64 * share) as Ns;
        let looked = find(tables, table, id, Some(at))?;
        if looked.found.is_some() {
            return Ok(looked.found);
        }
        match looked.before {
            Some(seen) if seen.0 < id && seen > low => low = seen,
            Some(seen) if seen.0 > id && seen < high => high = seen,
            _ => break,
        }
    }
    Ok(None)
}

/// Looks for a row by its id among all, or in the pages that have some of a moment.
fn find(
    tables: &dyn Tables,
    table: &'static Table,
    id: i64,
    at: Option<Ns>,
) -> Result<Looked, AnalysisError> {
    let mut projection = Projection::new(table);
    let [ids, ts, ts_end] = ["id", "ts", "ts_end"].map(|name| projection.need(name));
    let mut looked = Looked::default();
    let window = at.map(|at| Window::new(at, at + 1));
    in_order(tables, &projection.scan(window), |batch| {
        let (ids, ts) = (ids.ints(batch)?, ts.ints(batch)?);
        for row in 0..batch.num_rows() as u32 {
            if ids.at(row) == id {
                looked.found = Some((ts.at(row), ts_end.ints(batch)?.get(row)));
                return Ok(ControlFlow::Break(()));
            }
            if at.is_some_and(|at| ts.at(row) <= at) {
                looked.before = Some((ids.at(row), ts.at(row)));
            }
        }
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(looked)
}

/// Orders the rows of a table by one of its columns, nulls last, equal rows as they stood.
/// A table that has no such column keeps its order.
pub(crate) fn sort(table: &mut AnswerTable, sort: &Sort) {
    let Some(place) = place_of_column(table, sort) else {
        return;
    };
    let mut order: Vec<usize> = (0..table.rows.len()).collect();
    order.sort_by(|a, b| {
        let (a, b) = (&table.rows[*a][place], &table.rows[*b][place]);
        match (a, b) {
            (Value::Null, Value::Null) => Ordering::Equal,
            (Value::Null, _) => Ordering::Greater,
            (_, Value::Null) => Ordering::Less,
            _ if sort.ascending => compare(a, b),
            _ => compare(b, a),
        }
    });
    let mut rows: Vec<Option<Vec<Value>>> = table.rows.drain(..).map(Some).collect();
    table.rows = order.iter().filter_map(|row| rows[*row].take()).collect();
    let mut place_of = vec![0; order.len()];
    order
        .iter()
        .enumerate()
        .for_each(|(new, old)| place_of[*old] = new);
    table
        .outliers
        .iter_mut()
        .for_each(|row| *row = place_of[*row]);
    table.outliers.sort_unstable();
    table
        .cut
        .iter_mut()
        .for_each(|(row, _)| *row = place_of[*row]);
    table.cut.sort_unstable();
}

/// Refuses a column that no table of the answer has.
pub(crate) fn check_sort(tables: &[AnswerTable], sort: Option<&Sort>) -> Result<(), AnalysisError> {
    let Some(sort) = sort else {
        return Ok(());
    };
    if tables.is_empty()
        || tables
            .iter()
            .any(|table| place_of_column(table, sort).is_some())
    {
        return Ok(());
    }
    let mut names = Vec::new();
    for column in tables.iter().flat_map(|table| &table.columns) {
        if !names.contains(&column.name.as_str()) {
            names.push(&column.name);
        }
    }
    Err(AnalysisError::query(
        format!("no column `{}` to sort by", sort.column),
        format!("it has {}", names.join(", ")),
    ))
}

fn place_of_column(table: &AnswerTable, sort: &Sort) -> Option<usize> {
    let wanted = sort.column.as_str();
    table
        .columns
        .iter()
        .position(|column| column.name == wanted || column.title == wanted)
}

/// Whether there were more rows.
pub(crate) fn truncate(table: &mut AnswerTable, limit: usize) -> bool {
    let more = table.rows.len() > limit;
    table.rows.truncate(limit);
    table.outliers.retain(|row| *row < limit);
    table.cut.retain(|(row, _)| *row < limit);
    more
}

/// Leaves so many rows of each run with the same first cell.
pub(crate) fn truncate_blocks(table: &mut AnswerTable, limit: usize) {
    let mut count = 0;
    let mut kept = Vec::with_capacity(table.rows.len());
    for (number, row) in table.rows.iter().enumerate() {
        let is_next = number > 0 && table.rows[number - 1].first() == row.first();
        count = if is_next { count + 1 } else { 1 };
        kept.push(count <= limit);
    }
    let mut place = 0;
    let places: Vec<Option<usize>> = kept
        .iter()
        .map(|kept| {
            place += usize::from(*kept);
            kept.then(|| place - 1)
        })
        .collect();
    let mut kept = kept.into_iter();
    table.rows.retain(|_| kept.next().unwrap_or(false));
    table.outliers = table
        .outliers
        .iter()
        .filter_map(|row| places[*row])
        .collect();
    let cut = table.cut.iter();
    table.cut = cut
        .filter_map(|(row, edge)| Some((places[*row]?, *edge)))
        .collect();
}

fn compare(a: &Value, b: &Value) -> Ordering {
    match (a, b) {
        (Value::Int(a), Value::Int(b)) => a.cmp(b),
        (Value::Float(a), Value::Float(b)) => a.total_cmp(b),
        (Value::Int(a), Value::Float(b)) => (*a as f64).total_cmp(b),
        (Value::Float(a), Value::Int(b)) => a.total_cmp(&(*b as f64)),
        (Value::Text(a), Value::Text(b)) => a.cmp(b),
        (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
        (Value::List(a), Value::List(b)) => a.len().cmp(&b.len()),
        _ => rank(a).cmp(&rank(b)),
    }
}

fn rank(value: &Value) -> u8 {
    match value {
        Value::Null => 0,
        Value::Bool(_) => 1,
        Value::Int(_) | Value::Float(_) => 2,
        Value::Text(_) => 3,
        Value::List(_) => 4,
    }
}
