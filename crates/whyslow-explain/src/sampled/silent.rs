//! Threads without samples for a long time in the middle of a request, in profiles of one thread at
//! a time.
//!
//! rbspy and similar profilers sample the thread that last held the interpreter lock. A thread that
//! waits in a call has no samples until it returns: its last sample is in that call, and the next
//! one in one of its callers. An idle thread looks the same except for the function that it returns
//! to, which is a loop with few runs, whereas a request has many runs, most of them without such a
//! wait. So this is never more than an overlap (C).

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;
use whyslow_model::Ns;

use super::calls::{CallKind, Sample, Sampled, Stretch};

/// Minimum number of runs of a request function …
const RUNS_MIN: usize = 10;
/// … of which at most this share has such a wait.
const RARE: f64 = 1.0 / 3.0;
/// Maximum ratio of the summed sample durations to the profile's duration, if one thread is sampled
/// at a time.
const OVERLAP_MAX: f64 = 1.2;

/// Similar stretches, and the number of runs of the function that they are in.
pub(super) struct Alike {
    pub(super) stretches: Vec<Stretch>,
    /// Index in the stack of the function that the thread returned to.
    pub(super) back: usize,
    pub(super) runs: usize,
}

/// Whether the profiler sampled one of several threads at a time.
fn is_one_at_a_time(sampled: &Sampled) -> bool {
    if !sampled.is_of_runtime || sampled.threads.len() < 2 {
        return false;
    }
    let samples = &sampled.samples;
    let all: Ns = samples.iter().map(|sample| sample.end - sample.begin).sum();
    let begin = samples.iter().map(|sample| sample.begin).min();
    let end = samples.iter().map(|sample| sample.end).max();
    let span = end.unwrap_or(0).saturating_sub(begin.unwrap_or(0));
    all > 0 && all as f64 <= OVERLAP_MAX * span as f64
}

pub(super) fn find(sampled: &Sampled, min: Ns) -> Vec<Alike> {
    if !is_one_at_a_time(sampled) {
        return Vec::new();
    }
    let mut groups: BTreeMap<(&[String], usize), Vec<Stretch>> = BTreeMap::new();
    let same = |one: &Sample, other: &Sample| {
        one.utid == other.utid
            && sampled.stacks[&one.callsite].names == sampled.stacks[&other.callsite].names
    };
    let segments: Vec<&[Sample]> = sampled.samples.chunk_by(same).collect();
    for pair in segments.windows(2) {
        let (first, next) = (pair[0][0], pair[1][0]);
        let last = pair[0][pair[0].len() - 1];
        if first.utid != next.utid || next.end - first.begin < min {
            continue;
        }
        let stack = &sampled.stacks[&first.callsite];
        let Some(back) = back(sampled, &first, &next) else {
            continue;
        };
        let (place, call_kind) = match stack.call {
            Some((place, waits)) if place > back => (place, CallKind::Waits(waits)),
            _ => (back + 1, CallKind::Unnamed),
        };
        let stretch = Stretch {
            utid: first.utid,
            begin: first.begin,
            end: next.end,
            call_kind,
            place,
            callsite: first.callsite,
            samples: pair[0].len() as u64,
            silent: (next.end - last.end).max(0),
        };
        groups
            .entry((&stack.names, back))
            .or_default()
            .push(stretch);
    }
    let alike = groups.into_iter().map(|((names, back), stretches)| Alike {
        runs: runs(sampled, &names[..=back]),
        stretches,
        back,
    });
    let is_rare =
        |of: &Alike| of.runs >= RUNS_MIN && of.stretches.len() as f64 <= RARE * of.runs as f64;
    alike.filter(is_rare).collect()
}

/// The innermost function of the program that is in both samples; none if the first has no frame
/// below it.
fn back(sampled: &Sampled, first: &Sample, next: &Sample) -> Option<usize> {
    let (one, other) = (
        &sampled.stacks[&first.callsite],
        &sampled.stacks[&next.callsite],
    );
    let both = one.names.iter().zip(&other.names);
    let shared = both.take_while(|(one, other)| one == other).count();
    if shared == one.names.len() {
        return None;
    }
    (0..shared).rev().find(|place| !one.is_foreign[*place])
}

/// Number of runs through all of these functions, as far as samples show.
fn runs(sampled: &Sampled, prefix: &[String]) -> usize {
    let mut is_in: FxHashMap<i64, bool> = FxHashMap::default();
    let (mut before, mut count) = (None, 0);
    for sample in &sampled.samples {
        let stack = &sampled.stacks[&sample.callsite];
        let inside = *is_in
            .entry(sample.callsite)
            .or_insert_with(|| stack.names.starts_with(prefix));
        if inside && before != Some((sample.utid, true)) {
            count += 1;
        }
        before = Some((sample.utid, inside));
    }
    count
}
