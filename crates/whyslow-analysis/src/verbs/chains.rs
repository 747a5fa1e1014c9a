//! `locks chains`: chains of waiting threads. A wait for a lock leads to the lock's holder; if the
//! holder waited for a lock itself, its wait leads on, up to a thread that did not wait. A chain
//! that returns to a thread is a deadlock if none of its threads made progress. A lock that is
//! handed over while others queue for it is reported as a convoy, with its holds, longest first: no
//! single thread is the cause.

mod convoys;
mod span;

use std::ops::ControlFlow;

use rustc_hash::{FxHashMap, FxHashSet};
use whyslow_model::Ns;
use whyslow_model::answer::{AnswerColumn, AnswerTable, Measure, Value};
use whyslow_model::sort::IndexSort;

use crate::AnalysisError;
use crate::context::Context;
use crate::fold::in_order;
use crate::kinds::LOCKS;
use crate::query::Filter;
use span::Spans;

const CHAINS: usize = 10;
/// Maximum number of waits with a known holder, longest first.
const WAITS_MAX: usize = 200_000;
/// The holder's own wait explains a wait if it overlaps this share of it.
const SHARE: f64 = 0.2;
/// Maximum length of a chain.
const LINKS_MAX: usize = 64;

/// A wait with a known holder.
#[derive(Debug, Clone, Default)]
struct Wait {
    id: i64,
    ts: Ns,
    ts_end: Ns,
    /// Whether it was still waiting when the recording ended.
    lasts: bool,
    utid: i64,
    name: String,
    tid: Option<i64>,
    kind: String,
    /// Class or address, if known.
    lock: String,
    /// Distinguishes it from other locks of its kind and class: its address, or the class of the
    /// code that acquires it.
    which: String,
    function: Option<String>,
    holder: i64,
    holder_name: String,
    holder_tid: Option<i64>,
    held: Option<Ns>,
    doing: Option<String>,
    gap: Option<i64>,
    confidence: String,
    /// Whether it is selected by the query.
    is_selected: bool,
}

impl Wait {
    fn dur(&self) -> Ns {
        self.ts_end - self.ts
    }

    fn shared(&self, (begin, end): (Ns, Ns)) -> Ns {
        (self.ts_end.min(end) - self.ts.max(begin)).max(0)
    }
}

pub(crate) fn tables(context: &Context<'_>) -> Result<Vec<AnswerTable>, AnalysisError> {
    let mut waits = read(context)?;
    if waits.len() > WAITS_MAX {
        context.note(format!(
            "only the {WAITS_MAX} longest of {} waits with a known holder were followed",
            waits.len()
        ));
        waits.index_sort_by_ints(|wait| [-wait.dur(), wait.id, 0]);
        waits.truncate(WAITS_MAX);
    }
    waits.index_sort_by_ints(|wait| [wait.ts, wait.id, 0]);
    let finding = Finding::of(&waits);
    let mut chains = finding.chains();
    let found = chains.len();
    chains.truncate(context.limit(CHAINS));
    let mut table = AnswerTable::new("chains", "wait chains", columns());
    for (number, chain) in (1_i64..).zip(&chains) {
        finding.push(&mut table, number, chain);
    }
    if found > chains.len() && context.query.limit.is_none() {
        let more = found - chains.len();
        context.note(format!("{more} more chains not shown (-n 0 shows all)"));
    }
    if waits.is_empty() {
        context.note("wait chains unavailable: no wait has a known lock holder".into());
    }
    Ok([table]
        .into_iter()
        .chain(convoys::tables(context, &waits))
        .collect())
}

fn columns() -> Vec<AnswerColumn> {
    let column = AnswerColumn::new;
    vec![
        column("rank", "#", Measure::Count),
        column("comm", "thread", Measure::Text),
        column("tid", "tid", Measure::Count).priority(2),
        column("what", "waits for / runs", Measure::Text),
        column("ts_ns", "start", Measure::Time).priority(1),
        column("dur_ns", "duration", Measure::Duration),
        column("waiters", "other waiters", Measure::Count)
            .priority(3)
            .sparse(true),
        column("confidence", "confidence in holder", Measure::Text).priority(2),
        column("verdict", "verdict", Measure::Text).sparse(true),
        column("gap", "gap", Measure::Id).priority(5).sparse(true),
        column("id", "id", Measure::Id).priority(4),
    ]
}

/// A chain of waits, and how it ends.
struct Chain {
    links: Vec<usize>,
    end: End,
    /// Other threads that waited for the first link's lock at that time.
    waiters: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// The last holder did not wait for a lock.
    Holder,
    /// The waits are circular, and no thread made progress.
    Deadlock,
    /// It returns to a thread, but its threads made progress.
    Turns,
}

/// Kind, lock and holder.
type HolderKey<'w> = (&'w str, &'w str, i64);

struct Finding<'w> {
    waits: &'w [Wait],
    by_thread: FxHashMap<i64, Spans>,
    by_holder: FxHashMap<HolderKey<'w>, Spans>,
}

impl<'w> Finding<'w> {
    /// From waits in order of start.
    fn of(waits: &'w [Wait]) -> Self {
        let mut finding = Self {
            waits,
            by_thread: FxHashMap::default(),
            by_holder: FxHashMap::default(),
        };
        for (at, wait) in waits.iter().enumerate() {
            let of_thread = finding.by_thread.entry(wait.utid).or_default();
            of_thread.push(at, (wait.ts, wait.ts_end));
            let held = (wait.kind.as_str(), wait.which.as_str(), wait.holder);
            let of_holder = finding.by_holder.entry(held).or_default();
            of_holder.push(at, (wait.ts, wait.ts_end));
        }
        finding
    }

    /// Longest first; each wait is the head of at most one chain.
    fn chains(&self) -> Vec<Chain> {
        let mut order: Vec<usize> = (0..self.waits.len()).collect();
        order.retain(|at| self.waits[*at].is_selected);
        order.index_sort_by_ints(|at| [-self.waits[*at].dur(), self.waits[*at].id, 0]);
        let mut is_covered = vec![false; self.waits.len()];
        let mut chains = Vec::new();
        for at in order {
            if is_covered[at] {
                continue;
            }
            let (links, end) = self.follow(at);
            let head = &self.waits[at];
            let concurrent = self.concurrent(head);
            for other in links.iter().chain(&concurrent) {
                is_covered[*other] = true;
            }
            let threads = concurrent.iter().map(|other| self.waits[*other].utid);
            let waiters = threads.collect::<FxHashSet<i64>>().len();
            chains.push(Chain {
                links,
                end,
                waiters,
            });
        }
        // Longer chains are more informative; deadlocks come first.
        chains.index_sort_by_key(|chain| {
            let head = &self.waits[chain.links[0]];
            let is_dead = chain.end == End::Deadlock;
            (!is_dead, std::cmp::Reverse(head.dur()), head.id)
        });
        chains
    }

    /// From a wait to the wait of its holder, and so on.
    fn follow(&self, from: usize) -> (Vec<usize>, End) {
        let mut links = vec![from];
        let first = &self.waits[from];
        let mut span = (first.ts, first.ts_end);
        while links.len() < LINKS_MAX {
            let last = &self.waits[links[links.len() - 1]];
            let Some(next) = self.wait_of(last.holder, span) else {
                return (links, End::Holder);
            };
            if let Some(place) = links
                .iter()
                .position(|link| self.waits[*link].utid == last.holder)
            {
                let circle = &links[place..];
                let gets_on = circle.iter().any(|link| !self.waits[*link].lasts);
                return (links, if gets_on { End::Turns } else { End::Deadlock });
            }
            let wait = &self.waits[next];
            span = (span.0.max(wait.ts), span.1.min(wait.ts_end));
            links.push(next);
        }
        (links, End::Turns)
    }

    /// The wait of a thread that overlaps most with this time.
    fn wait_of(&self, utid: i64, span: (Ns, Ns)) -> Option<usize> {
        let own = self.by_thread.get(&utid)?.touching(span);
        let best = own.max_by_key(|at| (self.waits[*at].shared(span), std::cmp::Reverse(*at)))?;
        let shared = self.waits[best].shared(span);
        let is_enough = shared > 0 && shared as f64 >= SHARE * (span.1 - span.0) as f64;
        // Waits that appear in two consecutive dumps may have zero duration.
        let is_moment =
            span.0 == span.1 && self.waits[best].ts <= span.0 && span.0 <= self.waits[best].ts_end;
        (is_enough || is_moment).then_some(best)
    }

    /// Waits of others for that lock that overlap half of it, or include it if it is instantaneous.
    fn concurrent(&self, head: &Wait) -> Vec<usize> {
        let span = (head.ts, head.ts_end);
        let shares = |at: &usize| {
            let wait = &self.waits[*at];
            let shorter = wait.dur().min(head.dur());
            wait.utid != head.utid && wait.shared(span) * 2 >= shorter
        };
        let held = (head.kind.as_str(), head.which.as_str(), head.holder);
        let of_holder = self.by_holder.get(&held).into_iter();
        of_holder
            .flat_map(|spans| spans.touching(span))
            .filter(shares)
            .collect()
    }

    fn push(&self, table: &mut AnswerTable, number: i64, chain: &Chain) {
        for (place, link) in chain.links.iter().enumerate() {
            let wait = &self.waits[*link];
            let what = match &wait.function {
                Some(function) => format!("{} {} in {function}", wait.kind, wait.lock),
                None => format!("{} {}", wait.kind, wait.lock),
            };
            let is_first = place == 0;
            table.rows.push(vec![
                number.into(),
                wait.name.clone().into(),
                wait.tid.into(),
                what.into(),
                wait.ts.into(),
                wait.dur().into(),
                (is_first && chain.waiters > 0)
                    .then_some(chain.waiters as i64)
                    .into(),
                wait.confidence.clone().into(),
                is_first.then(|| self.verdict(chain)).into(),
                Value::Null,
                format!("lock:{}", wait.id).into(),
            ]);
        }
        let last = &self.waits[chain.links[chain.links.len() - 1]];
        let doing = match chain.end {
            End::Holder => last.doing.clone().unwrap_or_else(|| "unknown".to_owned()),
            _ => "waits itself (see above)".to_owned(),
        };
        table.rows.push(vec![
            number.into(),
            last.holder_name.clone().into(),
            last.holder_tid.into(),
            format!("holds the lock: {doing}").into(),
            Value::Null,
            last.held.into(),
            Value::Null,
            Value::Null,
            Value::Null,
            last.gap.map(|gap| format!("gap:{gap}")).into(),
            Value::Null,
        ]);
    }

    fn verdict(&self, chain: &Chain) -> String {
        let last = &self.waits[chain.links[chain.links.len() - 1]];
        let names = || {
            let from = chain
                .links
                .iter()
                .position(|link| self.waits[*link].utid == last.holder);
            let circle = &chain.links[from.unwrap_or(0)..];
            let names: Vec<&str> = circle
                .iter()
                .map(|link| self.waits[*link].name.as_str())
                .collect();
            names.join(", ")
        };
        match chain.end {
            End::Deadlock => format!("deadlock: {} wait for each other", names()),
            End::Turns => format!(
                "no deadlock: {} waited for each other in turn and made progress",
                names()
            ),
            End::Holder => format!("blocked by {}", last.holder_name),
        }
    }
}

/// Columns of a wait.
const INTS: [&str; 9] = [
    "id",
    "ts",
    "ts_end",
    "utid",
    "tid",
    "holder_utid",
    "holder_tid",
    "held",
    "holder_gap_id",
];
const TEXTS: [&str; 8] = [
    "comm",
    "kind",
    "lock",
    "object",
    "function",
    "holder_comm",
    "holder_function",
    "confidence",
];

/// Waits with a known holder that overlap the window: those that the query does not select are
/// needed to follow chains.
fn read(context: &Context<'_>) -> Result<Vec<Wait>, AnalysisError> {
    let selected = selected(context)?;
    let end = context.recording_end();
    // A sampler is late by an interval or two.
    let interval = context.names.sample_interval.unwrap_or(0);
    let near = end.saturating_sub(interval.saturating_mul(2));
    let mut pass = context.pass_in(&LOCKS, &[], &Filter::default(), context.selected())?;
    let ints = INTS.map(|name| pass.projection.need(name));
    let texts = TEXTS.map(|name| pass.projection.need(name));
    let mut verdicts = pass.selector.verdicts();
    let mut rows = Vec::new();
    let mut waits = Vec::new();
    in_order(
        context.tables,
        &pass.projection.scan(pass.selected),
        |batch| {
            pass.selector.select(&mut verdicts, batch, &mut rows)?;
            let ints = ints.iter().map(|column| column.ints(batch));
            let ints = ints.collect::<Result<Vec<_>, _>>()?;
            let texts = texts.iter().map(|column| column.texts(batch));
            let texts = texts.collect::<Result<Vec<_>, _>>()?;
            for row in rows.iter().copied() {
                let int = |at: usize| ints[at].get(row);
                let text = |at: usize| texts[at].get(row).map(str::to_owned);
                let (Some(id), Some(utid), Some(holder)) = (int(0), int(3), int(5)) else {
                    continue;
                };
                let (ts, ts_end) = (ints[1].at(row), int(2));
                let (lock, object, function) = (text(2), text(3), text(4));
                let which = which(lock.as_deref(), object.as_deref(), function.as_deref());
                waits.push(Wait {
                    id,
                    ts,
                    ts_end: ts_end.unwrap_or(end).max(ts),
                    lasts: ts_end.is_none_or(|ts_end| ts_end >= near),
                    utid,
                    name: text(0).unwrap_or_default(),
                    tid: int(4),
                    kind: text(1).unwrap_or_default(),
                    lock: object.or(lock).unwrap_or_default(),
                    which,
                    function,
                    holder,
                    holder_name: text(5).unwrap_or_default(),
                    holder_tid: int(6),
                    held: int(7),
                    doing: text(6),
                    gap: int(8),
                    confidence: text(7).unwrap_or_default(),
                    is_selected: selected.contains(&id),
                });
            }
            Ok(ControlFlow::Continue(()))
        },
    )?;
    Ok(waits)
}

/// A class has many locks: those with an address are distinguished by it, others by the class of
/// the code that acquires them.
fn which(lock: Option<&str>, object: Option<&str>, function: Option<&str>) -> String {
    let lock = lock.or(object).unwrap_or("");
    if object.is_some_and(|object| object != lock) {
        return lock.to_owned();
    }
    let class = function.and_then(|function| Some(function.rsplit_once('.')?.0));
    format!("{lock} {}", class.unwrap_or(""))
}

/// Waits that the query selects.
fn selected(context: &Context<'_>) -> Result<FxHashSet<i64>, AnalysisError> {
    let mut pass = context.pass_with_cut(&LOCKS, &[], &context.query.filter)?;
    let id = pass.projection.need("id");
    let mut verdicts = pass.selector.verdicts();
    let mut rows = Vec::new();
    let mut selected = FxHashSet::default();
    in_order(
        context.tables,
        &pass.projection.scan(pass.selected),
        |batch| {
            pass.selector.select(&mut verdicts, batch, &mut rows)?;
            let id = id.ints(batch)?;
            selected.extend(rows.iter().filter_map(|row| id.get(*row)));
            Ok(ControlFlow::Continue(()))
        },
    )?;
    Ok(selected)
}

#[cfg(test)]
mod tests;
