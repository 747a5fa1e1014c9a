//! Caveats of an answer: what the recording does not contain, and unexpected components of the numbers.

use std::collections::BTreeMap;

use whyslow_model::answer::{AnswerTable, Value};
use whyslow_model::sort::IndexSort;

use crate::AnalysisError;
use crate::context::Context;
use crate::fold::Spot;
use crate::keys::{Key, KeyValue, label};
use crate::kinds::{BLOCK, MAPPINGS, SLICES, STATES, SYSCALLS};
use crate::pass::{Count, Summing};
use crate::query::{Filter, Kind, Verb};
use crate::scan::{ColumnRef, Ints, Texts};
use crate::spec::Spec;
use crate::topic_state::unavailable;

/// Caveats of an answer with tables.
pub(crate) fn about(
    context: &Context<'_>,
    spec: &Spec,
    tables: &[AnswerTable],
) -> Result<Vec<String>, AnalysisError> {
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
    caveats.extend(unfinished(spec, tables));
    caveats.extend(tracer(context, spec));
    if matches!(spec.kind, Kind::Io | Kind::Files) && matches!(verb, Verb::Usage | Verb::Tree) {
        caveats.extend(mapped(context)?);
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
fn unfinished(spec: &Spec, tables: &[AnswerTable]) -> Option<String> {
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
    (count > 0).then(|| {
        format!(
            "{count} {} started before the recording or were still in progress at its end: they are \
             counted, but have no duration",
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

/// Processes that access files through memory mappings. Code, which every process maps, is excluded:
/// executable mappings, and all mappings of files that have one.
fn mapped(context: &Context<'_>) -> Result<Option<String>, AnalysisError> {
    const NAMED: usize = 3;
    if !context.has(MAPPINGS.table.name) {
        return Ok(None);
    }
    let filter = Filter {
        pids: context.query.filter.pids.clone(),
        comms: context.query.filter.comms.clone(),
        files: context.query.filter.files.clone(),
        no_tracer: context.query.filter.no_tracer,
        ..Filter::default()
    };
    let mut pass = context.pass_of(&MAPPINGS, &[Key::Process, Key::File], &filter)?;
    let mappings = Mappings {
        bytes: pass.projection.need("bytes"),
        prot: pass.projection.need("prot"),
        path: pass.projection.need("path"),
    };
    let mut processes: BTreeMap<KeyValue, i64> = BTreeMap::new();
    for (group, sum) in pass.run(context.tables, &mappings)? {
        if let ([process, KeyValue::Text(_)], false) = (group.as_slice(), sum.executable) {
            *processes.entry(process.clone()).or_default() += sum.bytes;
        }
    }
    processes.retain(|_, bytes| *bytes > 0);
    if processes.is_empty() {
        return Ok(None);
    }
    let mut processes: Vec<_> = processes.into_iter().collect();
    processes.index_sort_by(|(process_a, a), (process_b, b)| {
        b.cmp(a).then_with(|| process_a.cmp(process_b))
    });
    let others = processes.len().saturating_sub(NAMED);
    let named = processes.iter().take(NAMED);
    let mut named: Vec<String> = named
        .map(|(process, bytes)| {
            format!(
                "{} ({bytes} B)",
                Key::Process.label(process, &context.names)
            )
        })
        .collect();
    if others > 0 {
        named.push(format!("{others} more"));
    }
    Ok(Some(format!(
        "files were mapped into memory by {}: reads and writes through mappings are not visible as \
         system calls",
        named.join(", ")
    )))
}

struct Mappings {
    bytes: ColumnRef,
    prot: ColumnRef,
    path: ColumnRef,
}

#[derive(Default)]
struct MappingSum {
    bytes: i64,
    executable: bool,
}

impl Summing for Mappings {
    type Columns<'b> = (Ints<'b>, Ints<'b>, Texts<'b>);
    type Sum = MappingSum;

    fn columns<'b>(
        &self,
        batch: &'b arrow_array::RecordBatch,
        _: Spot,
    ) -> Result<Self::Columns<'b>, AnalysisError> {
        let (bytes, prot) = (self.bytes.ints(batch)?, self.prot.ints(batch)?);
        Ok((bytes, prot, self.path.texts(batch)?))
    }

    fn add(&self, sum: &mut MappingSum, (bytes, prot, path): &Self::Columns<'_>, row: u32) {
        const PROT_EXEC: i64 = 4;
        let is_library = |path: &str| {
            path.ends_with(".so") || path.contains(".so.") || path.ends_with("/ld.so.cache")
        };
        sum.bytes += bytes.at(row);
        sum.executable |= prot.get(row).is_some_and(|prot| prot & PROT_EXEC != 0)
            || path.get(row).is_some_and(is_library);
    }

    fn merge(&self, sum: &mut MappingSum, other: MappingSum) {
        sum.bytes += other.bytes;
        sum.executable |= other.executable;
    }
}
