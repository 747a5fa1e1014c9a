//! Whether a recording has events of a kind: not recorded, none happened, or how many.
//!
//! An empty table means either that nothing happened or that it was not recorded; the sources of
//! the recording decide ([`crate::recorded`]). Everything that shows a kind without rows uses the
//! functions here, so that all of it gives the same answer.

use std::ops::ControlFlow;

use whyslow_model::answer::AnswerTable;
use whyslow_model::topic_state::TopicState;
use whyslow_model::{Shape, Window};
use whyslow_store::Tables;

use crate::AnalysisError;
use crate::context::{Context, Included};
use crate::fold::in_order;
use crate::kinds::{PAGES, RECLAIM};
use crate::needs::Need;
use crate::pass::Count;
use crate::query::{Filter, Kind, Query, Verb};
use crate::recorded::{Coverage, RecordedTopics};
use crate::spec::Spec;

/// State of a kind in the recording. For an excerpt of a recording, the events in the excerpt.
pub fn topic_state(tables: &dyn Tables, kind: Kind) -> Result<TopicState, AnalysisError> {
    let topic = kind.topic();
    let main = topic.default.unwrap_or(topic.views[0].verb);
    let view = topic.views.iter().find(|view| view.verb == main);
    let spec = view.unwrap_or(&topic.views[0]).spec;
    let rows_of = |name: &str| tables.info().tables.get(name).map_or(0, |table| table.rows);
    let mut count = rows_of(spec.table.name);
    if spec.table.name == PAGES.table.name {
        count += rows_of(RECLAIM.table.name);
    }
    let recorded = RecordedTopics::read(tables)?;
    if count > 0 && !spec.only.is_empty() {
        let query = Query::new(kind, main);
        let context = Context::new(tables, &query)?;
        count = rows_in(&context, spec, None)?;
        if count == 0 {
            return none_happened(&context, spec);
        }
    }
    if count > 0 {
        return Ok(TopicState::Recorded(count));
    }
    let events = events_of(spec);
    Ok(if tables.info().rows_of_whole(spec.table.name) > 0 {
        none(events, "in this excerpt")
    } else if spec.table.name == PAGES.table.name {
        of_memory(&recorded)
    } else {
        without_rows(&recorded, spec.table.name, events)
    })
}

/// State of the events in a table that a view reads.
pub fn table_state(tables: &dyn Tables, table: &str) -> Result<TopicState, AnalysisError> {
    let rows = tables.info().rows_of_whole(table);
    if rows > 0 {
        return Ok(TopicState::Recorded(rows));
    }
    let recorded = RecordedTopics::read(tables)?;
    let events = Need::of(table).map_or("events", |need| need.events);
    Ok(without_rows(&recorded, table, events))
}

/// Whether events in this table would have been recorded: it has rows, or none happened.
pub fn is_recorded(tables: &dyn Tables, table: &str) -> Result<bool, AnalysisError> {
    Ok(table_state(tables, table)?.is_recorded())
}

/// State of the rows of a query if the recording cannot have any; `None` if it has some, or if none
/// happened.
pub(crate) fn missing(context: &Context<'_>, spec: &Spec) -> Option<TopicState> {
    // Either table has data about memory usage.
    let or_reclaim = spec.table.name == PAGES.table.name && context.has(RECLAIM.table.name);
    let by_samples = context.query.verb == Verb::Timeline && context.has("stack_sample");
    if context.has(spec.table.name) || or_reclaim || by_samples {
        return None;
    }
    let recorded = &context.names.recorded;
    let state = if spec.table.name == PAGES.table.name {
        of_memory(recorded)
    } else {
        without_rows(recorded, spec.table.name, events_of(spec))
    };
    (!state.is_recorded()).then_some(state)
}

/// State of the rows of an answer, in its window.
pub(crate) fn of_answer(
    context: &Context<'_>,
    spec: &'static Spec,
    tables: &[AnswerTable],
) -> Result<TopicState, AnalysisError> {
    let rows = context.tables.info().rows_of_whole(spec.table.name);
    let is_empty = tables.iter().all(|table| table.rows.is_empty());
    // Processors and threads do not happen at a time.
    if !is_empty || spec.table.shape == Shape::Entity {
        return Ok(TopicState::Recorded(rows));
    }
    match rows_in(context, spec, context.selected())? {
        0 => none_happened(context, spec),
        count => Ok(TopicState::Recorded(count)),
    }
}

/// State of the rows of a stream, which is needed before they are read.
pub(crate) fn of_stream(
    context: &Context<'_>,
    spec: &'static Spec,
) -> Result<TopicState, AnalysisError> {
    let rows = context.tables.info().rows_of_whole(spec.table.name);
    let is_whole = context.selected().is_none() && spec.only.is_empty();
    if rows > 0 && (is_whole || has_any(context, spec)?) {
        return Ok(TopicState::Recorded(rows));
    }
    none_happened(context, spec)
}

/// A caveat for a part of an answer without data; `None` if it has data, or if none happened.
pub(crate) fn unavailable(context: &Context<'_>, what: &str, table: &str) -> Option<String> {
    if context.has(table) {
        return None;
    }
    let need = Need::of(table)?;
    match without_rows(&context.names.recorded, table, need.events) {
        TopicState::NotRecorded { record_with, .. } => TopicState::NotRecorded {
            why: format!("{what} unavailable: {} not recorded", need.basis()),
            record_with,
        }
        .caveat(),
        TopicState::Unknown { why, record_with } => TopicState::Unknown {
            why: format!("{what} unavailable: {why}"),
            record_with,
        }
        .caveat(),
        TopicState::NoneHappened { .. } | TopicState::Recorded(_) => None,
    }
}

/// What the rows are called.
fn events_of(spec: &Spec) -> &'static str {
    match Need::of(spec.table.name) {
        _ if spec.kind == Kind::Io => "I/O operations",
        // A kind of some of the rows has its own name for them.
        Some(need) if spec.only.is_empty() => need.events,
        _ => spec.rows,
    }
}

/// Memory is known by pages, or by reclaim.
fn of_memory(recorded: &RecordedTopics) -> TopicState {
    let [pages, reclaim] =
        [&PAGES, &RECLAIM].map(|spec| without_rows(recorded, spec.table.name, events_of(spec)));
    if reclaim.is_recorded() {
        reclaim
    } else {
        pages
    }
}

/// State of a table without rows.
fn without_rows(recorded: &RecordedTopics, table: &str, events: &str) -> TopicState {
    let Some(need) = Need::of(table) else {
        return none(events, "");
    };
    let record_with = || need.record_with(recorded.recorder());
    let not_recorded = || TopicState::NotRecorded {
        why: format!("{} unavailable: {} not recorded", need.what, need.basis()),
        record_with: record_with(),
    };
    if need.topics.is_empty() {
        return not_recorded();
    }
    match recorded.coverage(need.topics) {
        Coverage::Whole => none(events, ""),
        Coverage::Part => TopicState::Unknown {
            why: format!(
                "cannot tell whether there were {events}: some of the events that show them were \
                 not recorded"
            ),
            record_with: None,
        },
        Coverage::None => not_recorded(),
        Coverage::Unstated(source) => unstated(events, &source, record_with()),
    }
}

fn unstated(events: &str, source: &str, record_with: Option<String>) -> TopicState {
    let source = match source {
        "" => "the recording".to_owned(),
        source => format!("the source `{source}`"),
    };
    TopicState::Unknown {
        why: format!("cannot tell whether {events} were recorded: {source} does not state it"),
        record_with,
    }
}

fn none(events: &str, place: &str) -> TopicState {
    let place = if place.is_empty() {
        String::new()
    } else {
        format!(" {place}")
    };
    TopicState::NoneHappened {
        why: format!("no {events}: recorded, none happened{place}"),
    }
}

/// State of a kind without rows in the window of the query. If its rows are some of a table, and
/// the recording has others only, the source may have been configured to record only those.
fn none_happened(context: &Context<'_>, spec: &'static Spec) -> Result<TopicState, AnalysisError> {
    let events = events_of(spec);
    let recorded = &context.names.recorded;
    if let Some(need) = Need::of(spec.table.name)
        && !spec.only.is_empty()
        && context.has(spec.table.name)
        && !recorded.states(need.topics)
        && rows_in(context, spec, None)? == 0
    {
        let with = need.record_with(recorded.recorder());
        return Ok(unstated(events, recorded.first_source(), with));
    }
    let is_part = context.selected().is_some();
    Ok(none(events, if is_part { "in this window" } else { "" }))
}

/// Number of rows in a window, whatever the filter of the query selects.
fn rows_in(
    context: &Context<'_>,
    spec: &'static Spec,
    window: Option<Window>,
) -> Result<u64, AnalysisError> {
    let pass = context.pass_including(Included::ALL, spec, &[], &Filter::default(), window)?;
    let counts = pass.run(context.tables, &Count)?;
    Ok(counts.into_values().sum())
}

/// Whether there is a row in the window of the query: reads no further than the first one.
fn has_any(context: &Context<'_>, spec: &'static Spec) -> Result<bool, AnalysisError> {
    let pass = context.pass_including(
        Included::ALL,
        spec,
        &[],
        &Filter::default(),
        context.selected(),
    )?;
    let mut verdicts = pass.selector.verdicts();
    let (mut rows, mut found) = (Vec::new(), false);
    in_order(
        context.tables,
        &pass.projection.scan(pass.selected),
        |batch| {
            pass.selector.select(&mut verdicts, batch, &mut rows)?;
            found |= !rows.is_empty();
            Ok(if found {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            })
        },
    )?;
    Ok(found)
}
