//! `threads gaps`: sampling gaps of a wall-clock profile, with their assumed cause. Significant
//! gaps are listed; gaps that are due to a late sampler or busy CPUs are only aggregated. Calls
//! whose gaps coincide more often than by chance are listed as pairs.

mod about;
mod pairs;

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use whyslow_model::Ns;
use whyslow_model::answer::{AnswerColumn, AnswerTable, Measure};
use whyslow_model::sort::IndexSort;

use self::about::{About, Seen};
use super::top::row_table;
use crate::AnalysisError;
use crate::context::Context;
use crate::facts;
use crate::fold::in_order;
use crate::kinds::GAPS;
use crate::rows::Cells;

const ROWS: usize = 40;
/// Classes that are caused by the program, rather than by the sampler.
const TELLING: [&str; 3] = ["kernel_wait", "page_fault", "process_stopped"];

pub(crate) fn tables(context: &Context<'_>) -> Result<Vec<AnswerTable>, AnalysisError> {
    let mut found = read(context)?;
    let pairs = pairs::table(context, &found.gaps);
    let limit = context.limit(ROWS);
    let count = found.gaps.iter().filter(|gap| gap.is_listed).count();
    found.gaps.retain(|gap| gap.is_listed);
    let about = About::read(context, &found.gaps)?;
    if context.query.sort.is_none() && count > limit {
        keep_longest(&mut found.gaps, limit);
    }
    let mut table = row_table(&GAPS, "gaps", GAPS.rows);
    table.columns.extend(about::columns());
    let lines = found.gaps.into_iter().map(|mut gap| {
        let mut cells = std::mem::take(&mut gap.cells);
        cells.extend(about.cells(&gap));
        cells
    });
    table.rows = lines.collect();
    context.finish(&mut table, limit);
    context.note_cut(&table, count);
    context.note(
        "kernel_wait and page_fault are inferred where there is no direct evidence: no signal reached the thread, \
         and the next sample shows the call; sampler_late: the sampler was late; cpu_starved: the CPUs were busy"
            .into(),
    );
    let summary = summary(context, &found.classes, found.lived_ns);
    Ok([table].into_iter().chain(pairs).chain([summary]).collect())
}

struct Found {
    gaps: Vec<Seen>,
    /// Number, sum and maximum of each class.
    classes: BTreeMap<String, (i64, Ns, Ns)>,
    /// Total time of all threads in the profile.
    lived_ns: Ns,
}

fn read(context: &Context<'_>) -> Result<Found, AnalysisError> {
    let filter = &context.query.filter;
    let mut pass = context.pass_with_cut(&GAPS, &[], filter)?;
    let cells = Cells::new(&GAPS, GAPS.fields, &context.names, &mut pass.projection);
    let [ts, ts_end, dur, utid] =
        ["ts", "ts_end", "dur", "utid"].map(|name| pass.projection.need(name));
    let [group, callsite, class, function] =
        ["group_id", "callsite_id", "class", "function"].map(|name| pass.projection.need(name));
    let is_selected = !filter.ops.is_empty();
    let mut verdicts = pass.selector.verdicts();
    let mut selected = Vec::new();
    let mut found = Found {
        gaps: Vec::new(),
        classes: BTreeMap::new(),
        lived_ns: about::lived(context)?,
    };
    in_order(
        context.tables,
        &pass.projection.scan(pass.selected),
        |batch| {
            pass.selector.select(&mut verdicts, batch, &mut selected)?;
            let (ts, ts_end, utid) = (ts.ints(batch)?, ts_end.ints(batch)?, utid.ints(batch)?);
            let (dur, group) = (dur.ints(batch)?, group.ints(batch)?);
            let (callsite, class) = (callsite.ints(batch)?, class.texts(batch)?);
            let function = function.texts(batch)?;
            for (row, cells) in selected.iter().copied().zip(cells.read(batch, &selected)?) {
                let dur = dur.get(row).unwrap_or(0);
                let class = class.get(row).unwrap_or_default();
                let sum = found.classes.entry(class.to_owned()).or_default();
                sum.0 += 1;
                sum.1 = sum.1.saturating_add(dur);
                sum.2 = sum.2.max(dur);
                found.gaps.push(Seen {
                    cells,
                    is_listed: is_selected || TELLING.contains(&class),
                    ts: ts.at(row),
                    ts_end: ts_end.get(row).unwrap_or_else(|| ts.at(row)),
                    utid: utid.get(row),
                    group: group.get(row),
                    callsite: callsite.get(row),
                    class: class.to_owned(),
                    function: function.get(row).map(str::to_owned),
                });
            }
            Ok(ControlFlow::Continue(()))
        },
    )?;
    Ok(found)
}

/// The longest ones, in time order.
fn keep_longest(gaps: &mut Vec<Seen>, limit: usize) {
    let mut order: Vec<usize> = (0..gaps.len()).collect();
    order.index_sort_by_ints(|at| [-gaps[*at].dur(), 0, 0]);
    order.truncate(limit);
    order.sort_unstable();
    let mut kept = order.into_iter().peekable();
    let mut at = 0;
    gaps.retain(|_| {
        at += 1;
        kept.next_if_eq(&(at - 1)).is_some()
    });
}

fn summary(
    context: &Context<'_>,
    classes: &BTreeMap<String, (i64, Ns, Ns)>,
    lived: Ns,
) -> AnswerTable {
    let column = AnswerColumn::new;
    let columns = vec![
        column("class", "class", Measure::Text),
        column("count", "count", Measure::Count),
        column("total_ns", "total", Measure::Duration),
        column("max_ns", "longest", Measure::Duration),
    ];
    let mut table = AnswerTable::new("classes", "by class", columns);
    let mut starved: Ns = 0;
    for (class, (count, total, max)) in classes {
        if !TELLING.contains(&class.as_str()) {
            starved = starved.saturating_add(*total);
        }
        let row = vec![
            class.as_str().into(),
            (*count).into(),
            (*total).into(),
            (*max).into(),
        ];
        table.rows.push(row);
    }
    if !context.query.filter.is_of_stacks() {
        let share = (lived > 0).then(|| starved as f64 / lived as f64);
        facts::push(
            &mut table,
            "starved_ratio",
            "sampler late or CPU starved",
            Measure::Ratio,
            share,
        );
    }
    table
}
