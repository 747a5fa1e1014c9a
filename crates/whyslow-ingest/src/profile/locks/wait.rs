//! Lock waits: reported by the runtime, or inferred from samples.

use std::sync::Arc;

use whyslow_model::Ns;
use whyslow_model::sort::IndexSort;

use super::stacks::{Class, Stacks, Wanting, acquire};
use super::{LockKind, LockWait, WaitSource};
use crate::profile::gaps::Gaps;
use crate::profile::{NO_STACK, Point, Profile, RuntimeEvent, RuntimeKind, SampleKind};

/// A thread that does not get the lock when it is woken continues to wait within this time.
const AGAIN: Ns = 50_000;
/// Maximum distance between samples of one wait.
const NEAR: Ns = 200_000_000;

/// A wait, and the data that identifies its lock.
#[derive(Debug, Clone)]
pub(super) struct Found {
    pub(super) wait: LockWait,
    pub(super) class: Class,
    /// Previous owner of the lock, as reported by the runtime.
    pub(super) previous: Option<u32>,
    /// Probably several waits that cannot be distinguished.
    pub(super) is_merged: bool,
}

/// Waits of all threads, sorted by start.
pub(super) fn find(profile: &Profile, gaps: &Gaps, stacks: &Stacks) -> Vec<Found> {
    let mut found = reported(profile, stacks);
    let mut by_thread = vec![Vec::new(); profile.threads.len()];
    for one in &found {
        by_thread[one.wait.thread as usize].push((one.wait.ts, one.wait.ts_end));
    }
    let seen = seen(profile, gaps, stacks);
    found.extend(seen.into_iter().filter(|one| {
        // Skip sampled waits that the runtime reported, too.
        let reports = &by_thread[one.wait.thread as usize];
        let next = reports.partition_point(|(_, end)| *end <= one.wait.ts);
        reports
            .get(next)
            .is_none_or(|(ts, _)| *ts >= one.wait.ts_end)
    }));
    found.index_sort_by_ints(|one| [one.wait.ts, i64::from(one.wait.thread), one.wait.ts_end]);
    found
}

/// Waits reported by the runtime.
fn reported(profile: &Profile, stacks: &Stacks) -> Vec<Found> {
    let mut found: Vec<Found> = Vec::new();
    let mut last = vec![None; profile.threads.len()];
    for event in &profile.events {
        let Some(one) = of_event(profile, event, stacks) else {
            continue;
        };
        let last = &mut last[one.wait.thread as usize];
        if let Some(before) = last.and_then(|at: usize| found.get_mut(at))
            && before.wait.kind == LockKind::Library
            && before.wait.address == one.wait.address
            && before.wait.frame == one.wait.frame
            && one.wait.ts.saturating_sub(before.wait.ts_end) < AGAIN
        {
            before.wait.ts_end = before.wait.ts_end.max(one.wait.ts_end);
            continue;
        }
        *last = Some(found.len());
        found.push(one);
    }
    found
}

fn of_event(profile: &Profile, event: &RuntimeEvent, stacks: &Stacks) -> Option<Found> {
    let kind = match event.kind {
        RuntimeKind::MonitorEnter => LockKind::Monitor,
        RuntimeKind::Park if acquire(profile, event.stack).is_some() => LockKind::Library,
        RuntimeKind::NativeLock => LockKind::Pthread,
        _ => return None,
    };
    let first = || {
        let frame = *profile.stacks.get(event.stack as usize)?.first()?;
        Some((frame, stacks.class(frame)))
    };
    let wanting = stacks.wanting_by_event(profile, event.stack);
    let (frame, class) = wanting.or_else(first)?;
    let object = event.object.clone();
    Some(Found {
        wait: LockWait {
            ts: event.ts,
            ts_end: event.ts.saturating_add(event.dur),
            thread: event.thread?,
            kind,
            reported_by: WaitSource::Event,
            stack: event.stack,
            frame,
            address: event.address,
            object: object.unwrap_or_else(|| Arc::clone(stacks.name(class))),
            holder: None,
        },
        class,
        previous: event.owner,
        is_merged: false,
    })
}

/// A wait seen in samples, in progress.
#[derive(Clone, Copy)]
struct Open {
    wanting: Wanting,
    stack: u32,
    first: Ns,
    last: Ns,
    samples: u32,
    /// Longest time between two of its samples.
    missed: Ns,
}

/// Waits seen only in samples.
fn seen(profile: &Profile, gaps: &Gaps, stacks: &Stacks) -> Vec<Found> {
    let interval = profile.interval.unwrap_or(0).max(1);
    let mut open: Vec<Option<Open>> = vec![None; profile.threads.len()];
    // End of the last sample of each thread.
    let mut before: Vec<Option<Ns>> = vec![None; profile.threads.len()];
    let mut found = Vec::new();
    for (at, point) in profile.points.iter().enumerate() {
        let is_queued = gaps.is_queued.get(at).copied().unwrap_or(false);
        // A missing stack shows nothing.
        if point.kind != SampleKind::Wall || is_queued || point.stack == NO_STACK {
            continue;
        }
        let thread = point.thread as usize;
        let end = point.ts.saturating_add(point.span);
        let wanting = stacks.wanting(point.stack);
        let slot = &mut open[thread];
        match (slot.as_mut(), wanting) {
            (Some(waiting), Some(wanting)) if is_same(waiting, &wanting, point) => {
                waiting.missed = waiting.missed.max(point.ts.saturating_sub(waiting.last));
                waiting.last = end;
                waiting.samples = waiting.samples.saturating_add(point.credits);
            }
            _ => {
                if let Some(waiting) = slot.take() {
                    let until = half(waiting.last, Some(point.ts), interval);
                    found.extend(close(&waiting, until, point.thread, (interval, stacks)));
                }
                *slot = wanting.map(|wanting| Open {
                    wanting,
                    stack: point.stack,
                    first: before[thread].map_or(point.ts, |before| {
                        point.ts - (point.ts.saturating_sub(before)).clamp(0, interval) / 2
                    }),
                    last: end,
                    samples: point.credits,
                    missed: 0,
                });
            }
        }
        before[thread] = Some(end);
    }
    for (thread, waiting) in open.iter().enumerate() {
        if let Some(waiting) = waiting {
            let until = half(waiting.last, None, interval);
            found.extend(close(waiting, until, thread as u32, (interval, stacks)));
        }
    }
    found
}

fn is_same(waiting: &Open, wanting: &Wanting, point: &Point) -> bool {
    let is_near = point.ts.saturating_sub(waiting.last) < NEAR;
    // Another method of the class may request another one of its locks.
    is_near && waiting.wanting.frame == wanting.frame && waiting.wanting.kind == wanting.kind
}

/// Assumed end of a wait: the middle between its last sample and the next sample of the thread.
fn half(last: Ns, next: Option<Ns>, interval: Ns) -> Ns {
    let left = next.map_or(interval, |next| next.saturating_sub(last));
    last.saturating_add(left.clamp(0, interval) / 2)
}

fn close(
    waiting: &Open,
    until: Ns,
    thread: u32,
    (interval, stacks): (Ns, &Stacks),
) -> Option<Found> {
    // A single sample may show a thread that was stopped there by chance.
    if waiting.samples < 2 {
        return None;
    }
    let wanting = waiting.wanting;
    Some(Found {
        wait: LockWait {
            ts: waiting.first,
            ts_end: until,
            thread,
            kind: wanting.kind,
            reported_by: WaitSource::Samples,
            stack: waiting.stack,
            frame: wanting.frame,
            address: None,
            object: Arc::clone(stacks.name(wanting.class)),
            holder: None,
        },
        class: wanting.class,
        previous: None,
        is_merged: waiting.missed > interval.saturating_mul(3),
    })
}
