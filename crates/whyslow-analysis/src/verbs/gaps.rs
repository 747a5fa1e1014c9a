//! `threads gaps`: times in which a wall-clock sampler got no sample of a thread, and what they are taken for.
//! Those that mean something are listed; what a late sampler or a busy machine makes is summed up alone.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use whyslow_model::Ns;
use whyslow_model::answer::{AnswerColumn, AnswerTable, Measure};

use super::top::row_table;
use crate::AnalysisError;
use crate::context::Context;
use crate::fold::in_order;
use crate::kinds::GAPS;
use crate::rows::Cells;

const ROWS: usize = 40;
/// Classes that tell of the program, rather than of the sampler.
const TELLING: [&str; 3] = ["kernel_wait", "page_fault", "process_stopped"];

pub(crate) fn tables(context: &Context<'_>) -> Result<Vec<AnswerTable>, AnalysisError> {
    let filter = &context.question.filter;
    let mut pass = context.pass_with_cut(&GAPS, &[], filter)?;
    let cells = Cells::new(&GAPS, GAPS.fields, &context.names, &mut pass.projection);
    let [dur, class] = ["dur", "class"].map(|name| pass.projection.need(name));
    let is_asked = !filter.ops.is_empty();
    let mut verdicts = pass.selector.verdicts();
    let mut selected = Vec::new();
    let mut rows = Vec::new();
    let mut classes: BTreeMap<String, (i64, Ns, Ns)> = BTreeMap::new();
    in_order(
        context.tables,
        &pass.projection.scan(pass.selected),
        |batch| {
            pass.selector.select(&mut verdicts, batch, &mut selected)?;
            let (dur, class) = (dur.ints(batch)?, class.texts(batch)?);
            for (row, cells) in selected.iter().copied().zip(cells.read(batch, &selected)?) {
                let (dur, class) = (
                    dur.get(row).unwrap_or(0),
                    class.get(row).unwrap_or_default(),
                );
                let sum = classes.entry(class.to_owned()).or_default();
                sum.0 += 1;
                sum.1 = sum.1.saturating_add(dur);
                sum.2 = sum.2.max(dur);
                if is_asked || TELLING.contains(&class) {
                    rows.push((dur, cells));
                }
            }
            Ok(ControlFlow::Continue(()))
        },
    )?;
    let limit = context.limit(ROWS);
    let found = rows.len();
    let mut table = row_table(&GAPS, "gaps", GAPS.rows);
    if context.question.sort.is_none() && found > limit {
        // The longest, in order of time.
        let mut order: Vec<usize> = (0..found).collect();
        order.sort_by_key(|at| std::cmp::Reverse(rows[*at].0));
        order.truncate(limit);
        order.sort_unstable();
        let mut kept = order.into_iter().peekable();
        let mut at = 0;
        rows.retain(|_| {
            at += 1;
            kept.next_if_eq(&(at - 1)).is_some()
        });
    }
    table.rows = rows.into_iter().map(|(_, cells)| cells).collect();
    context.finish(&mut table, limit);
    context.note_cut(&table, found);
    context.note(
        "kernel_wait and page_fault are inferred: no signal reached the thread, and the sample after \
         shows the call; sampler_late and cpu_starved tell of the sampler and of busy CPUs"
            .into(),
    );
    Ok(vec![table, summary(&classes)])
}

fn summary(classes: &BTreeMap<String, (i64, Ns, Ns)>) -> AnswerTable {
    let column = AnswerColumn::new;
    let columns = vec![
        column("class", "class", Measure::Text),
        column("count", "count", Measure::Count),
        column("total_ns", "total", Measure::Duration),
        column("max_ns", "longest", Measure::Duration),
    ];
    let mut table = AnswerTable::new("classes", "by class", columns);
    for (class, (count, total, max)) in classes {
        let row = vec![
            class.as_str().into(),
            (*count).into(),
            (*total).into(),
            (*max).into(),
        ];
        table.rows.push(row);
    }
    table
}
