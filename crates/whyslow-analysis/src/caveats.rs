//! Caveats of an answer: what the recording does not contain, and unexpected components of the numbers.

use whyslow_model::answer::{AnswerTable, Value};
use whyslow_model::sort::IndexSort;

use crate::AnalysisError;
use crate::context::Context;
use crate::keys::label;
use crate::kinds::{BLOCK, SLICES, STATES, SYSCALLS};
use crate::mapped;
use crate::pass::Count;
use crate::query::{Kind, Verb};
use crate::spec::Spec;
use crate::topic_state::unavailable;
use crate::uncertain;

/// Caveats of an answer with tables.
pub(crate) fn about(
    context: &Context<'_>,
    spec: &'static Spec,
    tables: &[AnswerTable],
) -> Result<Vec<String>, AnalysisError> {
    if uncertain::are_left_out(context, spec)? {
        uncertain::note(context, spec)?;
    }
    let mut caveats = context.take_notes();
    let verb = context.query.verb;
    let is_list = spec.kind == Kind::Threads && context.query.by.is_empty();
    if is_list {
        caveats.extend(unavailable(context, "CPU times", SLICES.table.name));
        caveats.extend(unavailable(context, "thread I/O", SYSCALLS.table.name));
    }
    let of_waits = matches!(
        (spec.kind, verb),
        (Kind::Sched | Kind::States | Kind::Use, _) | (_, Verb::States | Verb::Timeline)
    );
    if of_waits && !context.has("wakeup") && context.has(STATES.table.name) {
        caveats.push(
            "run-queue latency incomplete: wakeups not recorded (sched_wakeup); only waits after preemption \
             are shown, other run-queue waits count as sleep"
                .into(),
        );
    }
    if spec.kind == Kind::Io && verb == Verb::Usage {
        caveats.extend(unavailable(context, "disk I/O", BLOCK.table.name));
    }
    if context.has(spec.table.name) && !context.has("thread") {
        caveats.push("threads unavailable: the source does not identify the running thread".into());
    }
    caveats.extend(unfinished(context, spec, tables));
    caveats.extend(tracer(context, spec));
    if matches!(spec.kind, Kind::Io | Kind::Files) && matches!(verb, Verb::Usage | Verb::Tree) {
        caveats.extend(mapped::caveats(context)?);
    }
    Ok(caveats)
}

/// Adds a caveat if rows of several sides are combined: one event may have two rows.
pub(crate) fn note_sides(context: &Context<'_>, spec: &'static Spec) -> Result<(), AnalysisError> {
    let Some(sides) = spec.hooks.sides else {
        return Ok(());
    };
    let query = context.query;
    let name = sides.key.name();
    let are_apart = match query.verb {
        Verb::Stats | Verb::Hist | Verb::Top => {
            query.by.is_empty() || query.by.iter().any(|by| by == name)
        }
        Verb::Heat | Verb::Differs | Verb::Bursts => false,
        _ => true,
    };
    let is_chosen = query.filter.values.iter().any(|one| one.key == name);
    if are_apart || is_chosen {
        return Ok(());
    }
    let keys = [sides.key];
    let found = context.pass(spec, &keys)?.run(context.tables, &Count)?;
    if found.len() > 1 {
        let names = found.keys().map(|side| label(&keys, side, &context.names));
        context.note((sides.caveat)(&names.collect::<Vec<_>>()));
    }
    Ok(())
}

/// Operations that are counted but have no duration.
fn unfinished(context: &Context<'_>, spec: &Spec, tables: &[AnswerTable]) -> Option<String> {
    let table = tables.first()?;
    let place = table
        .columns
        .iter()
        .position(|column| column.name == "unfinished")?;
    let count: i64 = table
        .rows
        .iter()
        .filter_map(|row| match row.get(place) {
            Some(Value::Int(count)) => Some(*count),
            _ => None,
        })
        .sum();
    let or_lost = if context.lost_ends.overlaps(context.selected()) {
        ", or events were lost in between"
    } else {
        ""
    };
    (count > 0).then(|| {
        format!(
            "{count} {} started before the recording or were still in progress at its end{or_lost}: \
             they are counted, but have no duration",
            spec.rows
        )
    })
}

fn tracer(context: &Context<'_>, spec: &Spec) -> Option<String> {
    let names = context.names.tracer_names();
    let concerned = spec.kind != Kind::Threads && context.query.verb != Verb::Log;
    // The system calls of our own recorder are not recorded.
    let may_have_rows = !context.names.has_recorder
        || matches!(
            spec.kind,
            Kind::Sched | Kind::States | Kind::Cpu | Kind::Block | Kind::Locks
        );
    let is_noted = concerned && may_have_rows && !names.is_empty();
    (is_noted && !context.query.filter.no_tracer).then(|| {
        if context.leaves_recorder_out() {
            return format!(
                "the recorder is excluded: {} (select it with --pid)",
                names.join(", ")
            );
        }
        format!(
            "the processes of the tracer are included: {} (exclude them with --no-tracer)",
            names.join(", ")
        )
    })
}

/// Bytes transferred to or from unknown objects, with the reasons.
pub(crate) fn unknown_objects(mut reasons: Vec<(Box<str>, i64)>, bytes: i64) -> Option<String> {
    let unknown: i64 = reasons.iter().map(|(_, bytes)| bytes).sum();
    if unknown == 0 || bytes == 0 {
        return None;
    }
    reasons.index_sort_by_key(|(_, bytes)| std::cmp::Reverse(*bytes));
    let reasons: Vec<String> = reasons
        .into_iter()
        .map(|(reason, bytes)| format!("{reason} ({bytes} B)"))
        .collect();
    let share = unknown as f64 / bytes as f64 * 100.0;
    Some(format!(
        "{share:.1} % of the bytes were transferred to or from unknown objects: {}",
        reasons.join(", ")
    ))
}
