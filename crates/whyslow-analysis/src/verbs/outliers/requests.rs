//! The requests over the threshold, in time order.

use std::collections::BTreeMap;

use whyslow_model::Ns;
use whyslow_model::answer::{AnswerTable, Measure};

use super::figures::{Figures, Where};
use crate::context::Context;
use crate::kinds::BLOCK;
use crate::rows::Place;
use crate::verbs::top;
use crate::{AnalysisError, arrange, facts, rows};

/// Maximum number of rows by default.
const ROWS: usize = 100;

/// Maximum number of requests that are shown.
pub(super) fn limit(context: &Context<'_>) -> usize {
    context.limit(ROWS)
}

pub(super) fn table(
    context: &Context<'_>,
    threshold: Ns,
    figures: &BTreeMap<Where, Figures>,
) -> Result<AnswerTable, AnalysisError> {
    let title = format!("requests of at least {}", in_words(threshold));
    let mut table = top::row_table(&BLOCK, "requests", &title);
    let first = figures.values().flat_map(|figures| figures.first.places());
    let mut places: Vec<Place> = first.collect();
    places.sort_unstable();
    places.truncate(limit(context));
    let mut found = rows::fetch(context, &BLOCK, &places)?;
    for shown in places.iter().filter_map(|place| found.remove(&place.spot)) {
        top::push(&mut table, shown);
    }
    let over: i64 = figures.values().map(|figures| figures.over).sum();
    let shown = table.rows.len() as i64;
    if shown < over {
        context.note(format!(
            "only the first {shown} of {over} requests of at least {} are shown (-n 0 shows all, a \
             higher --min fewer)",
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
    if let Some(sort) = &context.query.sort {
        arrange::sort(&mut table, sort);
    }
    Ok(table)
}

/// In the largest unit of which it is a whole number.
pub(super) fn in_words(ns: Ns) -> String {
    let units = [(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us")];
    let found = units.iter().find(|(size, _)| ns > 0 && ns % size == 0);
    found.map_or_else(
        || format!("{ns} ns"),
        |(size, unit)| format!("{} {unit}", ns / size),
    )
}
