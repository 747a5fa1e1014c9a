//! Lock convoys: a waiter gets the lock and makes the next one wait.

use std::collections::{BTreeMap, BTreeSet};

use whyslow_model::Ns;
use whyslow_model::answer::{AnswerColumn, AnswerTable, Measure};
use whyslow_model::sort::IndexSort;

use super::Wait;
use crate::context::Context;

/// Waits that are further apart are unrelated.
const APART: Ns = 200_000_000;
const WAITS_MIN: usize = 3;
/// Minimum number of threads that both waited for and held the lock.
const HANDS_MIN: usize = 2;
const CONVOYS: usize = 5;
const HOLDS: usize = 5;

/// A lock during a time in which it always had waiters.
pub(super) struct Convoy<'w> {
    waits: Vec<&'w Wait>,
}

/// How long a thread held the lock, according to the longest wait for it.
struct Hold<'w> {
    wait: &'w Wait,
    held: Ns,
    times: i64,
}

impl Convoy<'_> {
    fn begin(&self) -> Ns {
        self.waits.iter().map(|wait| wait.ts).min().unwrap_or(0)
    }

    fn end(&self) -> Ns {
        self.waits.iter().map(|wait| wait.ts_end).max().unwrap_or(0)
    }

    fn total(&self) -> Ns {
        self.waits
            .iter()
            .fold(0, |sum, wait| sum.saturating_add(wait.dur()))
    }

    fn waiters(&self) -> BTreeSet<i64> {
        self.waits.iter().map(|wait| wait.utid).collect()
    }

    /// Longest first.
    fn holds(&self) -> Vec<Hold<'_>> {
        let mut by_holder: BTreeMap<i64, Hold<'_>> = BTreeMap::new();
        for wait in &self.waits {
            let held = wait.held.unwrap_or(0);
            let hold = by_holder.entry(wait.holder).or_insert(Hold {
                wait,
                held,
                times: 0,
            });
            hold.times += 1;
            if held > hold.held {
                hold.held = held;
                hold.wait = wait;
            }
        }
        let mut holds: Vec<Hold<'_>> = by_holder.into_values().collect();
        holds.index_sort_by_key(|hold| (std::cmp::Reverse(hold.held), hold.wait.holder));
        holds
    }

    fn is_one(&self) -> bool {
        let waiters = self.waiters();
        let holders: BTreeSet<i64> = self.waits.iter().map(|wait| wait.holder).collect();
        self.waits.len() >= WAITS_MIN && holders.intersection(&waiters).count() >= HANDS_MIN
    }
}

pub(super) fn tables(context: &Context<'_>, waits: &[Wait]) -> Vec<AnswerTable> {
    let mut convoys = found(waits);
    if convoys.is_empty() {
        return Vec::new();
    }
    convoys.index_sort_by_key(|convoy| (std::cmp::Reverse(convoy.total()), convoy.begin()));
    let more = convoys.len().saturating_sub(context.limit(CONVOYS));
    convoys.truncate(context.limit(CONVOYS));
    if more > 0 && context.query.limit.is_none() {
        context.note(format!(
            "{more} more lock convoys not shown (-n 0 shows all)"
        ));
    }
    let column = AnswerColumn::new;
    let columns = vec![
        column("rank", "#", Measure::Count),
        column("lock", "lock", Measure::Text),
        column("ts_ns", "start", Measure::Time),
        column("dur_ns", "duration", Measure::Duration),
        column("waits", "waits", Measure::Count),
        column("waiters", "threads", Measure::Count),
        column("total_ns", "waited", Measure::Duration),
    ];
    let mut table = AnswerTable::new("convoys", "lock convoys", columns);
    let columns = vec![
        column("rank", "#", Measure::Count),
        column("holder_comm", "held by", Measure::Text),
        column("holder_tid", "tid", Measure::Count).priority(1),
        column("held_ns", "held", Measure::Duration),
        column("waiters", "waiters", Measure::Count),
        column("holder_function", "holder function", Measure::Text),
    ];
    let mut holds = AnswerTable::new("holds", "longest holds in convoys", columns);
    for (number, convoy) in (1_i64..).zip(&convoys) {
        let first = convoy.waits[0];
        table.rows.push(vec![
            number.into(),
            format!("{} {}", first.kind, first.lock).into(),
            convoy.begin().into(),
            (convoy.end() - convoy.begin()).into(),
            (convoy.waits.len() as i64).into(),
            (convoy.waiters().len() as i64).into(),
            convoy.total().into(),
        ]);
        for hold in convoy.holds().into_iter().take(HOLDS) {
            holds.rows.push(vec![
                number.into(),
                hold.wait.holder_name.clone().into(),
                hold.wait.holder_tid.into(),
                hold.held.into(),
                hold.times.into(),
                hold.wait.doing.clone().into(),
            ]);
        }
    }
    vec![table, holds]
}

/// Waits for one lock that follow each other closely, in order of start.
pub(super) fn found(waits: &[Wait]) -> Vec<Convoy<'_>> {
    let mut by_lock: BTreeMap<(&str, &str), Vec<&Wait>> = BTreeMap::new();
    for wait in waits.iter().filter(|wait| wait.is_selected) {
        by_lock
            .entry((&wait.kind, &wait.which))
            .or_default()
            .push(wait);
    }
    let mut convoys = Vec::new();
    for waits in by_lock.into_values() {
        let mut reached = Ns::MIN;
        let mut of: Vec<&Wait> = Vec::new();
        for wait in waits {
            if wait.ts > reached.saturating_add(APART) {
                convoys.push(Convoy {
                    waits: std::mem::take(&mut of),
                });
            }
            reached = reached.max(wait.ts_end);
            of.push(wait);
        }
        convoys.push(Convoy { waits: of });
    }
    convoys.retain(Convoy::is_one);
    convoys
}
