//! The requests over the threshold, in order of time.

use std::ops::ControlFlow;

use whyslow_model::Ns;
use whyslow_model::answer::{AnswerTable, Measure};

use crate::context::Context;
use crate::kinds::BLOCK;
use crate::query::Filter;
use crate::verbs::{log, top};
use crate::{AnalysisError, facts, rows};

/// More than this are for those who ask for them.
const ROWS: usize = 100;

/// `over` is how many there are.
pub(super) fn table(
    context: &Context<'_>,
    threshold: Ns,
    over: i64,
) -> Result<AnswerTable, AnalysisError> {
    let limit = context.limit(ROWS);
    let title = format!("requests of at least {}", in_words(threshold));
    let mut table = top::row_table(&BLOCK, "requests", &title);
    let filter = Filter {
        dur_min: Some(threshold),
        ..context.question.filter.clone()
    };
    let mut take = |more: AnswerTable| {
        let before = table.rows.len();
        table.rows.extend(more.rows);
        let cut = more.cut.into_iter();
        table
            .cut
            .extend(cut.map(|(row, edge)| (row + before, edge)));
        ControlFlow::Continue(())
    };
    log::stream(context, &BLOCK, &filter, limit, &mut take)?;
    let shown = table.rows.len() as i64;
    if shown < over {
        context.note(format!(
            "only the first {shown} of {over} requests of at least {} are shown: -n 0 shows all, a \
             greater --min fewer",
            in_words(threshold)
        ));
    }
    facts::push(
        &mut table,
        "threshold_ns",
        "threshold",
        Measure::Duration,
        threshold,
    );
    if let Some(sort) = &context.question.sort {
        rows::sort(&mut table, sort);
    }
    Ok(table)
}

/// In the greatest unit of which it is a whole number.
pub(super) fn in_words(ns: Ns) -> String {
    let units = [(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us")];
    let found = units.iter().find(|(size, _)| ns > 0 && ns % size == 0);
    found.map_or_else(
        || format!("{ns} ns"),
        |(size, unit)| format!("{} {unit}", ns / size),
    )
}
