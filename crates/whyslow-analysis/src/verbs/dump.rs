//! `threads dump`: the stacks of all threads at a point in time, identical ones grouped, like a
//! thread dump.
//!
//! A thread's stack is that of the sample whose interval contains the time. If the thread had no
//! samples for longer, it is that of the next sample, because a thread that receives no signals
//! shows its call only when the call ends.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use whyslow_model::answer::{AnswerColumn, AnswerTable, Measure, Value};
use whyslow_model::row::Row;
use whyslow_model::sort::IndexSort;
use whyslow_model::tables::{LockWaitRow, RuntimeEventRow};
use whyslow_model::{Ns, Window};

use super::stacks::Frames;
use crate::AnalysisError;
use crate::context::Context;
use crate::facts;
use crate::fold::in_order;
use crate::kinds::{GAPS, STACKS, STATES};
use crate::scan::Projection;
use crate::spec::Spec;

const ROWS: usize = 0;

/// State of a thread at that time.
#[derive(Debug, Clone, Default)]
struct Known {
    name: String,
    tid: Option<i64>,
    state: Option<String>,
    /// Start of the state.
    since: Ns,
    callsite: Option<i64>,
    is_assumed: bool,
    is_gap: bool,
    /// Time of the dump that shows it, which applies to the whole interval of the sample.
    dumped: Option<Ns>,
    /// The recorder sampled the thread at that time.
    seen: Option<Seen>,
    waits_for: Option<String>,
    /// The holder of what it waits for.
    holder: Option<Holder>,
    held_by: Option<String>,
}

#[derive(Debug, Clone)]
struct Holder {
    utid: Option<i64>,
    name: String,
    confidence: String,
}

/// Maximum length of a chain.
const CHAIN_MAX: usize = 32;

/// From the holder to the holder of what that one waits for, and so on.
fn chains(threads: &mut BTreeMap<i64, Known>) -> bool {
    let holder = |utid: i64| threads.get(&utid).and_then(|known| known.holder.clone());
    let mut texts = Vec::new();
    let mut is_dead = false;
    for (utid, known) in threads.iter() {
        let Some(first) = &known.holder else { continue };
        let mut text = format!("{} ({} confidence)", first.name, first.confidence);
        let mut seen = vec![*utid];
        let mut at = first.utid;
        while let Some(next) = at.filter(|_| seen.len() < CHAIN_MAX) {
            if seen.contains(&next) {
                text.push_str(": deadlock");
                is_dead = true;
                break;
            }
            seen.push(next);
            let Some(held) = holder(next) else { break };
            text.extend([", waits for ", &held.name, " (", &held.confidence, ")"]);
            at = held.utid;
        }
        texts.push((*utid, text));
    }
    for (utid, text) in texts {
        if let Some(known) = threads.get_mut(&utid) {
            known.held_by = Some(text);
        }
    }
    is_dead
}

/// What the recorder saw of a thread, even if a profiler could not.
#[derive(Debug, Clone)]
struct Seen {
    state: Option<String>,
    since: Ns,
}

pub(crate) fn table(context: &Context<'_>) -> Result<AnswerTable, AnalysisError> {
    let at = context.query.at.unwrap_or(context.span.begin);
    let threads = known_at(context, at)?;
    let mut groups: BTreeMap<(Option<i64>, String), Vec<&Known>> = BTreeMap::new();
    for known in threads.values() {
        let state = known.state.clone().unwrap_or_else(|| "unknown".to_owned());
        groups
            .entry((known.callsite, state))
            .or_default()
            .push(known);
    }
    let mut groups: Vec<_> = groups.into_iter().collect();
    groups.index_sort_by(|((callsite_a, state_a), a), ((callsite_b, state_b), b)| {
        // Places with many threads first, because they indicate a problem.
        let by_count = b.len().cmp(&a.len());
        by_count.then_with(|| (callsite_a, state_a).cmp(&(callsite_b, state_b)))
    });
    let frames = Frames::read(context)?;
    let mut table = AnswerTable::new("dump", "threads", columns());
    facts::push(&mut table, "at_ns", "at", Measure::Time, at);
    facts::push(
        &mut table,
        "threads",
        "threads",
        Measure::Count,
        threads.len() as i64,
    );
    for (number, ((callsite, state), members)) in (1_i64..).zip(&groups) {
        let lines = callsite.map_or_else(Vec::new, |callsite| frames.stack(callsite));
        push(&mut table, (number, at), (state, members), lines);
    }
    if threads.values().any(|known| known.is_gap) {
        context.note(
            "threads without a sample at this time show the stack of the next sample: the call that \
             blocked signals"
                .into(),
        );
    }
    if threads.values().any(|known| known.is_assumed) {
        context.note(
            "assumed: the sampler reused the previous stack, because the thread had hardly run since"
                .into(),
        );
    }
    context.finish(&mut table, context.limit(ROWS));
    Ok(table)
}

/// State of each thread at a point in time.
fn known_at(context: &Context<'_>, at: Ns) -> Result<BTreeMap<i64, Known>, AnalysisError> {
    let mut threads: BTreeMap<i64, Known> = BTreeMap::new();
    samples(context, at, &mut threads)?;
    if context.has("sample_gap") {
        gaps(context, at, &mut threads)?;
    }
    // Direct observations take precedence over inferred ones.
    for known in threads.values_mut() {
        if let Some(seen) = &known.seen {
            known.state.clone_from(&seen.state);
            known.since = known.since.max(seen.since);
        }
    }
    if context.has("thread_state") {
        states(context, at, &mut threads)?;
    }
    if context.has("runtime_event") {
        waits(context, at, &mut threads)?;
    }
    if context.has("lock_wait") {
        holders(context, at, &mut threads)?;
        if chains(&mut threads) {
            context.note(
                "deadlock: these threads wait for each other, according to the known holders"
                    .into(),
            );
        }
    }
    Ok(threads)
}

fn columns() -> Vec<AnswerColumn> {
    let column = AnswerColumn::new;
    vec![
        column("rank", "#", Measure::Count),
        column("threads", "threads", Measure::Count),
        column("state", "state", Measure::Text),
        column("for_ns", "duration", Measure::Duration),
        column("function", "function and callers", Measure::Text),
        column("frame_kind", "frame kind", Measure::Text).priority(3),
        column("module", "module", Measure::Path).priority(4),
        column("names", "names", Measure::Text).priority(1),
        column("waits_for", "waits for", Measure::Text).priority(2),
        column("held_by", "held by", Measure::Text)
            .priority(1)
            .sparse(true),
    ]
}

fn push(
    table: &mut AnswerTable,
    (number, at): (i64, Ns),
    (state, members): (&str, &[&Known]),
    lines: Vec<[Value; 3]>,
) {
    let longest = members
        .iter()
        .map(|known| at.saturating_sub(known.since))
        .max();
    let list = |mut all: Vec<String>| {
        all.index_sort();
        Value::List(all.into_iter().map(Value::Text).collect())
    };
    let names = members.iter().map(|known| match known.tid {
        Some(tid) if known.name.is_empty() => tid.to_string(),
        Some(tid) => format!("{} {tid}", known.name),
        None => known.name.clone(),
    });
    let once = |of: &dyn Fn(&Known) -> Option<String>| {
        let mut all: Vec<String> = members.iter().filter_map(|known| of(known)).collect();
        all.index_sort();
        all.dedup();
        all
    };
    let waits = once(&|known| known.waits_for.clone());
    let held = once(&|known| known.held_by.clone());
    let mut figures = vec![
        Value::from(members.len() as i64),
        Value::Text(state.to_owned()),
        longest.into(),
    ];
    // Null without a holder, so that an empty column is hidden.
    let held = if held.is_empty() {
        Value::Null
    } else {
        list(held)
    };
    let mut ends = vec![list(names.collect()), list(waits), held];
    let nothing = [[Value::Text("no stack".into()), Value::Null, Value::Null]];
    let lines = if lines.is_empty() {
        nothing.to_vec()
    } else {
        lines
    };
    for line in lines {
        let mut row = vec![Value::from(number)];
        row.append(&mut figures);
        row.extend(line);
        row.append(&mut ends);
        table.rows.push(row);
        figures = vec![Value::Null; 3];
        ends = vec![Value::Null; 3];
    }
}

/// The point in time, and the window to read from a table.
fn moment(at: Ns) -> Window {
    Window::new(at, at.saturating_add(1))
}

fn samples(
    context: &Context<'_>,
    at: Ns,
    threads: &mut BTreeMap<i64, Known>,
) -> Result<(), AnalysisError> {
    let read = |spec: &'static Spec, state: &'static str, threads: &mut BTreeMap<i64, Known>| {
        each(context, (spec, state), at, &mut |row| {
            let known = threads.entry(row.utid).or_default();
            if row.is_own {
                known.seen = Some(Seen {
                    state: row.state.clone(),
                    since: row.ts,
                });
            }
            // If two samples meet there, the later one applies; it starts where the other ends.
            if known.callsite.is_some() && known.since > row.ts {
                return;
            }
            known.name = row.comm;
            known.tid = row.tid;
            known.callsite = row.callsite;
            known.since = row.ts;
            known.is_assumed = row.is_assumed;
            known.dumped = row.dumped;
            known.state = row.state.or_else(|| Some("running".to_owned()));
        })
    };
    read(&STACKS, "state", threads)
}

fn gaps(
    context: &Context<'_>,
    at: Ns,
    threads: &mut BTreeMap<i64, Known>,
) -> Result<(), AnalysisError> {
    each(context, (&GAPS, "class"), at, &mut |row| {
        let known = threads.entry(row.utid).or_default();
        known.name = row.comm;
        known.tid = row.tid;
        known.callsite = row.callsite;
        known.since = row.ts;
        known.is_gap = true;
        known.is_assumed = false;
        known.state = Some(match row.state.as_deref() {
            Some("kernel_wait" | "page_fault") => "uninterruptible (inferred)".to_owned(),
            _ => "not sampled".to_owned(),
        });
    })
}

/// Kernel data takes precedence.
fn states(
    context: &Context<'_>,
    at: Ns,
    threads: &mut BTreeMap<i64, Known>,
) -> Result<(), AnalysisError> {
    each(context, (&STATES, "state"), at, &mut |row| {
        if let Some(known) = threads.get_mut(&row.utid) {
            known.state = row.state;
            known.since = row.ts;
        }
    })
}

fn waits(
    context: &Context<'_>,
    at: Ns,
    threads: &mut BTreeMap<i64, Known>,
) -> Result<(), AnalysisError> {
    let mut projection = Projection::new(RuntimeEventRow::TABLE);
    let [ts, ts_end, utid] = ["ts", "ts_end", "utid"].map(|name| projection.need(name));
    let [kind, object, address] = ["kind", "object", "address"].map(|name| projection.need(name));
    in_order(
        context.tables,
        &projection.scan(Some(moment(at))),
        |batch| {
            let (ts, ts_end, utid) = (ts.ints(batch)?, ts_end.ints(batch)?, utid.ints(batch)?);
            let (kind, object, address) = (
                kind.texts(batch)?,
                object.texts(batch)?,
                address.texts(batch)?,
            );
            for row in 0..batch.num_rows() as u32 {
                let holds = ts.at(row) <= at && ts_end.get(row).is_none_or(|end| at < end);
                let known = utid.get(row).filter(|_| holds);
                let Some(known) = known.and_then(|utid| threads.get_mut(&utid)) else {
                    continue;
                };
                let object = object.get(row).unwrap_or_default();
                let what = match (kind.get(row).unwrap_or_default(), address.get(row)) {
                    (kind @ ("monitor_enter" | "park"), Some(address)) => {
                        format!("{kind} {object} <0x{address}>")
                    }
                    (kind, _) => format!("{kind} {object}").trim_end().to_owned(),
                };
                known.waits_for = Some(what);
            }
            Ok(ControlFlow::Continue(()))
        },
    )
}

/// The known holders of what they wait for.
fn holders(
    context: &Context<'_>,
    at: Ns,
    threads: &mut BTreeMap<i64, Known>,
) -> Result<(), AnalysisError> {
    let mut projection = Projection::new(LockWaitRow::TABLE);
    let [ts, ts_end, utid, tid] =
        ["ts", "ts_end", "utid", "holder_tid"].map(|name| projection.need(name));
    let holder = projection.need("holder_utid");
    let [kind, object, comm, confidence] =
        ["kind", "object", "holder_comm", "confidence"].map(|name| projection.need(name));
    let reported_by = projection.need("reported_by");
    // A dump is an instant, so a wait in it may have zero duration.
    let dumped = threads.values().filter_map(|known| known.dumped).max();
    let until = dumped.unwrap_or(at).max(at).saturating_add(1);
    in_order(
        context.tables,
        &projection.scan(Some(Window::new(at, until))),
        |batch| {
            let (ts, ts_end, utid) = (ts.ints(batch)?, ts_end.ints(batch)?, utid.ints(batch)?);
            let (tid, comm) = (tid.ints(batch)?, comm.texts(batch)?);
            let holder = holder.ints(batch)?;
            let (kind, object) = (kind.texts(batch)?, object.texts(batch)?);
            let confidence = confidence.texts(batch)?;
            let reported_by = reported_by.texts(batch)?;
            for row in 0..batch.num_rows() as u32 {
                let Some(known) = utid.get(row).and_then(|utid| threads.get_mut(&utid)) else {
                    continue;
                };
                let (ts, ts_end) = (ts.at(row), ts_end.get(row));
                let is_then = ts <= at && ts_end.is_none_or(|end| at < end);
                let is_of_dump = reported_by.get(row) == Some("dump")
                    && known.dumped.is_some_and(|dumped| {
                        ts <= dumped && ts_end.is_none_or(|end| dumped <= end)
                    });
                if !is_then && !is_of_dump {
                    continue;
                }
                if let (None, Some(kind), Some(object)) =
                    (&known.waits_for, kind.get(row), object.get(row))
                {
                    known.waits_for = Some(format!("{kind} {object}"));
                }
                if let (Some(comm), Some(confidence)) = (comm.get(row), confidence.get(row)) {
                    let tid = tid
                        .get(row)
                        .map_or_else(String::new, |tid| format!(" {tid}"));
                    known.holder = Some(Holder {
                        utid: holder.get(row),
                        name: format!("{comm}{tid}"),
                        confidence: confidence.to_owned(),
                    });
                }
            }
            Ok(ControlFlow::Continue(()))
        },
    )
}

/// A row that contains the time.
struct RowAtTime {
    utid: i64,
    ts: Ns,
    comm: String,
    tid: Option<i64>,
    state: Option<String>,
    callsite: Option<i64>,
    is_assumed: bool,
    is_own: bool,
    dumped: Option<Ns>,
}

fn each(
    context: &Context<'_>,
    (spec, state): (&'static Spec, &'static str),
    at: Ns,
    take: &mut dyn FnMut(RowAtTime),
) -> Result<(), AnalysisError> {
    // Tables without stacks only add to threads that were selected by their stacks.
    let filter = if spec.table.column("callsite_id").is_some() {
        context.query.filter.clone()
    } else {
        context.query.filter.without_stacks()
    };
    let mut pass = context.pass_in(spec, &[], &filter, Some(moment(at)))?;
    let projection = &mut pass.projection;
    let has = |name: &str| spec.table.column(name).is_some();
    let [ts, ts_end, utid, tid] = ["ts", "ts_end", "utid", "tid"].map(|name| projection.need(name));
    let [comm, state] = ["comm", state].map(|name| projection.need(name));
    let callsite = has("callsite_id").then(|| projection.need("callsite_id"));
    let credits = has("credits").then(|| projection.need("credits"));
    let sampler = has("sampler").then(|| projection.need("sampler"));
    let kind = has("sampler").then(|| projection.need("kind"));
    let mut verdicts = pass.selector.verdicts();
    let mut selected = Vec::new();
    in_order(
        context.tables,
        &pass.projection.scan(Some(moment(at))),
        |batch| {
            pass.selector.select(&mut verdicts, batch, &mut selected)?;
            let (ts, ts_end) = (ts.ints(batch)?, ts_end.ints(batch)?);
            let (utid, tid) = (utid.ints(batch)?, tid.ints(batch)?);
            let (comm, state) = (comm.texts(batch)?, state.texts(batch)?);
            let callsite = callsite.map(|column| column.ints(batch)).transpose()?;
            let credits = credits.map(|column| column.ints(batch)).transpose()?;
            let sampler = sampler.map(|column| column.texts(batch)).transpose()?;
            let kind = kind.map(|column| column.texts(batch)).transpose()?;
            for row in selected.iter().copied() {
                let own = sampler.as_ref().and_then(|column| column.get(row));
                let is_own = own == Some("recorder");
                let kind = kind.as_ref().and_then(|column| column.get(row));
                let ends = ts_end.get(row).unwrap_or(Ns::MAX);
                let Some(utid) = utid.get(row).filter(|_| ts.at(row) <= at && at < ends) else {
                    continue;
                };
                take(RowAtTime {
                    utid,
                    ts: ts.at(row),
                    comm: comm.get(row).unwrap_or_default().to_owned(),
                    tid: tid.get(row),
                    state: state.get(row).map(str::to_owned),
                    callsite: callsite.as_ref().and_then(|column| column.get(row)),
                    // The recorder detected that the thread has not run.
                    is_assumed: !is_own
                        && credits
                            .as_ref()
                            .and_then(|column| column.get(row))
                            .unwrap_or(1)
                            > 1,
                    is_own,
                    dumped: ts_end.get(row).filter(|_| kind == Some("dump")),
                });
            }
            Ok(ControlFlow::Continue(()))
        },
    )
}
