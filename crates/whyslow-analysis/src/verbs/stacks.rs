//! Stacks with the time spent in each, as caller trees: total durations, even if the window cuts
//! them. Rows of a stack have its number; the first row has its statistics.

use arrow_array::RecordBatch;
use whyslow_model::Ns;
use whyslow_model::answer::{AnswerColumn, AnswerTable, Measure, Value};
use whyslow_model::row::Row;
use whyslow_model::sort::IndexSort;
use whyslow_model::tables::{CallsiteRow, FrameRow};

use crate::AnalysisError;
use crate::context::Context;
use crate::fold::{Spot, in_order};
use crate::keys::{Key, KeyValue};
use crate::pass::Summing;
use crate::scan::{ColumnRef, Ints, Projection};
use crate::spec::Spec;

const STACKS: usize = 10;
/// Maximum number of frames: a longer stack is circular.
const DEPTH_MAX: usize = 1024;

/// Sort columns, the default first.
const FIGURES: [&str; 3] = ["total_ns", "count", "max_ns"];

pub(crate) fn table(
    context: &Context<'_>,
    spec: &'static Spec,
    keys: &[Key],
) -> Result<AnswerTable, AnalysisError> {
    let mut all = keys.to_vec();
    all.push(Key::Stack);
    let mut pass = context.pass(spec, &all)?;
    let times = Times(pass.projection.need("dur"));
    let mut groups: Vec<(Vec<KeyValue>, Time)> =
        pass.run(context.tables, &times)?.into_iter().collect();
    let figure = figure(context)?;
    let sort = context.query.sort.as_ref();
    let is_ascending = sort.is_some_and(|sort| sort.ascending);
    groups.index_sort_by(|(group_a, a), (group_b, b)| {
        let by_figure = b.figures()[figure].cmp(&a.figures()[figure]);
        let by_figure = if is_ascending {
            by_figure.reverse()
        } else {
            by_figure
        };
        by_figure.then_with(|| group_a.cmp(group_b))
    });
    let more = groups.len().saturating_sub(context.limit(STACKS));
    groups.truncate(context.limit(STACKS));
    if more > 0 && context.query.limit.is_none() {
        context.note(format!("{more} more stacks not shown (-n 0 shows all)"));
    }
    let frames = Frames::read(context)?;
    let mut table = AnswerTable::new("stacks", "stacks", columns(keys));
    for (number, (group, time)) in (1..).zip(groups) {
        push(context, &mut table, (number, keys), (&group, time), &frames);
    }
    Ok(table)
}

fn push(
    context: &Context<'_>,
    table: &mut AnswerTable,
    (number, keys): (i64, &[Key]),
    (group, time): (&[KeyValue], Time),
    frames: &Frames,
) {
    let stack = match group.last() {
        Some(KeyValue::Int(callsite)) => frames.stack(*callsite),
        _ => Vec::new(),
    };
    let unknown = [[Value::Text("no stack".into()), Value::Null, Value::Null]];
    let lines = if stack.is_empty() {
        unknown.to_vec()
    } else {
        stack
    };
    for (place, line) in lines.into_iter().enumerate() {
        let is_first = place == 0;
        let mut row = vec![number.into()];
        for (key, value) in keys.iter().zip(group) {
            let cells = key.cells(value, &context.names);
            row.extend(
                cells
                    .into_iter()
                    .map(|cell| if is_first { cell } else { Value::Null }),
            );
        }
        let figures = time.figures();
        row.extend(figures.map(|figure| is_first.then_some(figure).into()));
        row.extend(line);
        table.rows.push(row);
    }
}

fn columns(keys: &[Key]) -> Vec<AnswerColumn> {
    let column = AnswerColumn::new;
    let mut columns = vec![column("rank", "#", Measure::Count)];
    columns.extend(keys.iter().flat_map(|key| key.answer_columns()));
    columns.extend([
        column(FIGURES[0], "total", Measure::Duration),
        column(FIGURES[1], "count", Measure::Count),
        column(FIGURES[2], "max", Measure::Duration).priority(1),
        column("function", "function and callers", Measure::Text),
        column("frame_kind", "frame kind", Measure::Text).priority(2),
        column("module", "module", Measure::Path).priority(3),
    ]);
    columns
}

fn figure(context: &Context<'_>) -> Result<usize, AnalysisError> {
    let Some(sort) = &context.query.sort else {
        return Ok(0);
    };
    let place = FIGURES.iter().position(|figure| {
        *figure == sort.column || figure.strip_suffix("_ns") == Some(sort.column.as_str())
    });
    place.ok_or_else(|| {
        AnalysisError::query(
            format!("cannot sort stacks by `{}`", sort.column),
            format!("use one of {}", FIGURES.join(", ")),
        )
    })
}

#[derive(Debug, Clone, Copy, Default)]
struct Time {
    total: Ns,
    count: i64,
    max: Ns,
}

impl Time {
    fn figures(&self) -> [i64; 3] {
        [self.total, self.count, self.max]
    }
}

struct Times(ColumnRef);

impl Summing for Times {
    type Columns<'b> = Ints<'b>;
    type Sum = Time;

    fn columns<'b>(&self, batch: &'b RecordBatch, _: Spot) -> Result<Ints<'b>, AnalysisError> {
        self.0.ints(batch)
    }

    fn add(&self, sum: &mut Time, dur: &Ints<'_>, row: u32) {
        let dur = dur.get(row).unwrap_or(0);
        sum.total = sum.total.saturating_add(dur);
        sum.count += 1;
        sum.max = sum.max.max(dur);
    }

    fn merge(&self, sum: &mut Time, other: Time) {
        sum.total = sum.total.saturating_add(other.total);
        sum.count += other.count;
        sum.max = sum.max.max(other.max);
    }
}

/// Frames and their callers, by id.
pub(super) struct Frames {
    /// Caller and frame.
    callsites: Vec<(Option<usize>, usize)>,
    /// For display: function, kind, module.
    frames: Vec<[Value; 3]>,
}

impl Frames {
    pub(super) fn read(context: &Context<'_>) -> Result<Self, AnalysisError> {
        let mut found = Self {
            callsites: Vec::new(),
            frames: Vec::new(),
        };
        let place = |id: i64| usize::try_from(id).ok();
        let mut projection = Projection::new(CallsiteRow::TABLE);
        let [id, parent, frame] = ["id", "parent_id", "frame_id"].map(|name| projection.need(name));
        in_order(context.tables, &projection.scan(None), |batch| {
            let (id, parent) = (id.ints(batch)?, parent.ints(batch)?);
            let frame = frame.ints(batch)?;
            for row in 0..batch.num_rows() as u32 {
                // Ids are consecutive; gaps are not filled.
                if place(id.at(row)) == Some(found.callsites.len()) {
                    let frame = place(frame.at(row)).unwrap_or(usize::MAX);
                    let parent = parent.get(row).and_then(place);
                    found.callsites.push((parent, frame));
                }
            }
            Ok(std::ops::ControlFlow::Continue(()))
        })?;
        let mut projection = Projection::new(FrameRow::TABLE);
        let [function, kind, module] =
            ["function", "kind", "module"].map(|name| projection.need(name));
        let [offset, address] = ["function_offset", "address"].map(|name| projection.need(name));
        in_order(context.tables, &projection.scan(None), |batch| {
            let (function, kind) = (function.texts(batch)?, kind.texts(batch)?);
            let (module, offset) = (module.texts(batch)?, offset.ints(batch)?);
            let address = address.ints(batch)?;
            for row in 0..batch.num_rows() as u32 {
                let module = module.get(row);
                let name = match (function.get(row), module, offset.get(row)) {
                    (Some(function), ..) => function.to_owned(),
                    (None, Some(module), Some(offset)) => {
                        let file = module.rsplit('/').next().unwrap_or(module);
                        format!("{file}+0x{offset:x}")
                    }
                    _ => format!("0x{:x}", address.at(row)),
                };
                found
                    .frames
                    .push([name.into(), kind.get(row).into(), module.into()]);
            }
            Ok(std::ops::ControlFlow::Continue(()))
        })?;
        Ok(found)
    }

    /// The frames of a stack, innermost first.
    pub(super) fn stack(&self, callsite: i64) -> Vec<[Value; 3]> {
        let mut lines = Vec::new();
        let mut next = usize::try_from(callsite).ok();
        while let Some((parent, frame)) = next.and_then(|place| self.callsites.get(place)) {
            if lines.len() >= DEPTH_MAX {
                break;
            }
            lines.extend(self.frames.get(*frame).cloned());
            next = *parent;
        }
        lines
    }
}
