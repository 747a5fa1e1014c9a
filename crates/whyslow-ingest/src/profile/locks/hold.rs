//! Finds the holder of a lock during each wait for it.

use rustc_hash::FxHashMap;
use whyslow_model::Ns;
use whyslow_model::sort::IndexSort;

use super::evidence::{Evidence, Presence};
use super::stacks::{Class, Stacks, is_in};
use super::wait::Found;
use super::{Confidence, Holder, LockWait, WaitSource};
use crate::profile::gaps::Gaps;
use crate::profile::{NO_STACK, Profile};

/// If stacks show a holder for less than this fraction of a time, the owner reported by the runtime
/// is used for the rest.
const SHOWN_MIN: f64 = 0.3;
/// Average number of threads in code that only one thread can be in: above this, there are several
/// locks, or none.
const CROWDED: f64 = 1.2;
/// A holder that covers at least this fraction of a wait is likely without other evidence; one that
/// covers at least the next fraction, with other evidence.
const COVERED: f64 = 0.8;
const COVERED_WITH_SIGN: f64 = 0.5;
const COVERED_MIN: f64 = 0.1;
/// Minimum for waits known only from samples. Consecutive waits look like a single one in samples.
/// Below this fraction, one in seven holders was wrong (two runs of `workloads/jvm/profiles.sh`);
/// above it, one in sixty.
const COVERED_MIN_SAMPLED: f64 = 0.42;
/// Minimum lead over the second-longest holder, as a fraction of the wait and in intervals.
const AHEAD: f64 = 0.1;
const AHEAD_INTERVALS: i64 = 2;

/// Identifies a lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Key {
    Address(u64),
    Class(Class),
}

/// A thread that got a lock after waiting for it.
#[derive(Debug, Clone, Copy)]
struct Got {
    at: Ns,
    thread: u32,
    /// Previous owner.
    previous: Option<u32>,
    is_reported: bool,
}

/// Evidence for one thread as the holder during a wait.
#[derive(Debug, Clone, Copy, Default)]
struct Claim {
    held: Ns,
    /// Part of that time in the method that the waiting thread wanted to enter.
    same: Ns,
    /// Part of that time that is shown by its stacks.
    shown: Ns,
    /// The runtime reported that it got the lock.
    is_reported: bool,
}

pub(super) fn find(
    profile: &Profile,
    gaps: &Gaps,
    stacks: &Stacks,
    found: Vec<Found>,
) -> Vec<LockWait> {
    let evidence = Evidence::of(profile, gaps, stacks, &found);
    let mut locks: FxHashMap<Key, Vec<usize>> = FxHashMap::default();
    for (at, one) in found.iter().enumerate() {
        let key = match one.wait.address {
            Some(address) => Key::Address(address),
            None => Key::Class(one.class),
        };
        locks.entry(key).or_default().push(at);
    }
    let mut holders = vec![None; found.len()];
    for of in locks.values() {
        let lock = Lock::of(&found, of, &evidence, profile);
        // Presences that may still last; waits are sorted by start.
        let (mut lasting, mut next) = (Vec::<Presence>::new(), 0);
        for at in of {
            let one = &found[*at];
            lasting.retain(|presence| presence.to > one.wait.ts);
            while let Some(presence) = lock.presences.get(next)
                && presence.from <= one.wait.ts
            {
                lasting.push(*presence);
                next += 1;
            }
            holders[*at] = lock.holder(one, &lasting, next);
        }
    }
    let with = found
        .into_iter()
        .zip(holders)
        .map(|(one, holder)| LockWait { holder, ..one.wait });
    with.collect()
}

/// Removes overlaps if two kinds of evidence show one thread at the same time.
fn once(mut within: Vec<Presence>) -> Vec<Presence> {
    within.index_sort_by_ints(|one| [i64::from(one.thread), one.from, -one.to]);
    let mut last: Option<(u32, Ns)> = None;
    within.retain_mut(|one| {
        if let Some((thread, until)) = last
            && thread == one.thread
        {
            one.from = one.from.max(until);
        }
        let is_left = one.from < one.to;
        if is_left {
            last = Some((one.thread, one.to));
        }
        is_left
    });
    within
}

struct Lock<'p> {
    profile: &'p Profile,
    interval: Ns,
    /// Acquisitions of the lock, in time order.
    got: Vec<Got>,
    presences: Vec<Presence>,
}

impl<'p> Lock<'p> {
    fn of(found: &[Found], of: &[usize], evidence: &Evidence, profile: &'p Profile) -> Self {
        let mut classes: Vec<Class> = of.iter().map(|at| found[*at].class).collect();
        classes.sort_unstable();
        classes.dedup();
        let got = of.iter().map(|at| {
            let one = &found[*at];
            Got {
                at: one.wait.ts_end,
                thread: one.wait.thread,
                previous: one.previous,
                is_reported: one.wait.reported_by == WaitSource::Event,
            }
        });
        let mut got: Vec<Got> = got.collect();
        got.index_sort_by_ints(|got| [got.at, i64::from(got.thread), 0]);
        Self {
            profile,
            interval: profile.interval.unwrap_or(0),
            got,
            presences: evidence.among(&classes),
        }
    }

    fn holder(&self, one: &Found, lasting: &[Presence], next: usize) -> Option<Holder> {
        let wait = &one.wait;
        let (from, to) = (wait.ts, wait.ts_end);
        let len = to - from;
        if len <= 0 {
            return None;
        }
        let later = self.presences[next..].iter();
        let within = lasting
            .iter()
            .chain(later.take_while(|presence| presence.from < to))
            .filter(|presence| presence.thread != wait.thread)
            .map(|presence| Presence {
                from: presence.from.max(from),
                to: presence.to.min(to),
                ..*presence
            });
        let within = once(within.collect());
        let mut claims: FxHashMap<u32, Claim> = FxHashMap::default();
        let crowded = self.weigh(one, &within, &mut claims);
        let mut order: Vec<(u32, Claim)> = claims.into_iter().collect();
        let weight = |claim: &Claim| claim.held + if crowded { claim.same } else { 0 };
        order.index_sort_by_key(|(thread, claim)| (std::cmp::Reverse(weight(claim)), *thread));
        let (thread, best) = *order.first()?;
        let covered = best.held as f64 / len as f64;
        let covered_min = match wait.reported_by {
            WaitSource::Samples => COVERED_MIN_SAMPLED,
            _ => COVERED_MIN,
        };
        if covered < covered_min {
            return None;
        }
        let second = order.get(1).map_or(0, |(_, claim)| claim.held);
        let ahead = (self.interval * AHEAD_INTERVALS).max((len as f64 * AHEAD) as Ns);
        let is_ahead = best.held - second >= ahead;
        let is_same = best.same * 2 >= best.held;
        let has_sign = is_same || best.is_reported;
        // A thread that releases an uncontended lock is not always reported as the previous owner.
        let is_shown = best.shown * 2 >= best.held;
        let confidence = if crowded || !is_ahead || !is_shown || one.is_merged {
            Confidence::Low
        } else if wait.address.is_some() && best.is_reported && covered >= COVERED_WITH_SIGN {
            Confidence::High
        } else if covered >= COVERED || has_sign && covered >= COVERED_WITH_SIGN {
            Confidence::Medium
        } else {
            Confidence::Low
        };
        let (stack, gap) = Self::doing(thread, &within);
        Some(Holder {
            thread,
            held: best.held,
            confidence,
            stack,
            gap,
        })
    }

    /// Distributes the wait among possible holders. Returns whether several seem to hold it at
    /// once.
    fn weigh(&self, one: &Found, within: &[Presence], claims: &mut FxHashMap<u32, Claim>) -> bool {
        let (from, to) = (one.wait.ts, one.wait.ts_end);
        let first = self.got.partition_point(|got| got.at <= from);
        // Each acquisition by another thread ends a part of the wait.
        let mut ends = self.got[first..]
            .iter()
            .take_while(|got| got.at < to)
            .copied()
            .collect::<Vec<Got>>();
        ends.push(Got {
            at: to,
            thread: one.wait.thread,
            previous: one.previous,
            is_reported: one.wait.reported_by == WaitSource::Event,
        });
        let mut owner = first.checked_sub(1).map(|at| self.got[at]);
        let mut begin = from;
        let (mut shown_all, mut crowd) = (0, 0);
        for end in ends {
            let len = end.at - begin;
            if len > 0 {
                let mut shown = 0;
                for presence in within {
                    let overlap = presence.to.min(end.at) - presence.from.max(begin);
                    if overlap <= 0 {
                        continue;
                    }
                    shown += overlap;
                    let claim = claims.entry(presence.thread).or_default();
                    claim.held += overlap;
                    claim.shown += overlap;
                    if is_in(self.profile, presence.stack, one.wait.frame) {
                        claim.same += overlap;
                    }
                    claim.is_reported |= end.previous == Some(presence.thread)
                        || owner
                            .is_some_and(|got| got.is_reported && got.thread == presence.thread);
                }
                shown_all += shown.min(len);
                crowd += shown;
                let reported = owner.filter(|got| got.is_reported).map(|got| got.thread);
                let reported = end
                    .previous
                    .or(reported)
                    .filter(|of| *of != one.wait.thread);
                if let Some(thread) = reported
                    && (shown as f64) < SHOWN_MIN * len as f64
                {
                    let claim = claims.entry(thread).or_default();
                    claim.held += len - shown;
                    claim.is_reported = true;
                    shown_all += len - shown;
                }
            }
            begin = end.at;
            owner = Some(end);
        }
        crowd as f64 > CROWDED * shown_all.max(1) as f64
    }

    /// Activity of the holder for most of that time.
    fn doing(thread: u32, within: &[Presence]) -> (u32, Option<u32>) {
        let mut stacks: FxHashMap<u32, Ns> = FxHashMap::default();
        let mut gap: Option<(Ns, u32)> = None;
        for presence in within.iter().filter(|presence| presence.thread == thread) {
            let len = presence.to - presence.from;
            *stacks.entry(presence.stack).or_default() += len;
            if let Some(number) = presence.gap {
                gap = gap.max(Some((len, number)));
            }
        }
        let longest = stacks
            .into_iter()
            .max_by_key(|(stack, len)| (*len, std::cmp::Reverse(*stack)));
        (
            longest.map_or(NO_STACK, |(stack, _)| stack),
            gap.map(|(_, number)| number),
        )
    }
}
