//! Sampling interval of a profiler.

use std::collections::BTreeMap;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use whyslow_model::Ns;

use crate::profile::Point;

/// Default of async-profiler.
const WALL: Ns = 50_000_000;
/// Smaller batches are too short for an estimate.
const CREDITS_MIN: u32 = 5;
/// Minimum number of batches, or of intervals between samples, for an estimate.
const SEEN_MIN: usize = 20;
/// Samples closer than this come from queued signals.
const BURST: Ns = 1_000_000;

/// The interval and its source: `setting`, `samples` (estimated from their distances), `default`.
///
/// Settings are in the first chunk of a file only, which may be missing.
pub(super) fn find(
    settings: &BTreeMap<String, Arc<str>>,
    is_wall: bool,
    points: &[Point],
) -> (Option<Ns>, &'static str) {
    if let Some(interval) = from_settings(settings, is_wall) {
        return (Some(interval), "setting");
    }
    if !is_wall {
        return (None, "default");
    }
    let seen = in_batches(points).or_else(|| between(points));
    (
        Some(seen.unwrap_or(WALL)),
        if seen.is_some() { "samples" } else { "default" },
    )
}

fn from_settings(settings: &BTreeMap<String, Arc<str>>, is_wall: bool) -> Option<Ns> {
    let number = |name: &str| {
        let found = settings
            .iter()
            .find(|(of, _)| of.split_once('#').is_some_and(|(_, of)| of == name));
        found
            .and_then(|(_, value)| value.parse::<i64>().ok())
            .filter(|ns| *ns > 0)
    };
    let own = number("wall").filter(|_| is_wall);
    // `wall` applies to wall-clock samples next to another event, `interval` to the requested
    // event.
    own.or_else(|| number("interval"))
}

/// From batches of idle samples, each of which has a duration.
fn in_batches(points: &[Point]) -> Option<Ns> {
    let long = points
        .iter()
        .filter(|point| point.credits >= CREDITS_MIN && point.span > 0);
    middle(long.map(|point| point.span / i64::from(point.credits)), 0.5)
}

/// From intervals between the samples of a thread: gaps and a late sampler lengthen some, hardly
/// any are shorter.
fn between(points: &[Point]) -> Option<Ns> {
    let mut order: Vec<&Point> = points.iter().collect();
    order.sort_unstable_by_key(|point| point.ts);
    let mut last: FxHashMap<u32, Ns> = FxHashMap::default();
    let mut steps = Vec::new();
    for point in order {
        let before = last.insert(point.thread, point.ts.saturating_add(point.span));
        let step = before.map(|before| point.ts.saturating_sub(before));
        steps.extend(step.filter(|step| *step > BURST));
    }
    middle(steps.into_iter(), 0.25)
}

/// The quantile of the values.
fn middle(values: impl Iterator<Item = Ns>, share: f64) -> Option<Ns> {
    let mut values: Vec<Ns> = values.filter(|value| *value > 0).collect();
    if values.len() < SEEN_MIN {
        return None;
    }
    let at = (values.len() as f64 * share) as usize;
    Some(*values.select_nth_unstable(at).1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::{SampleKind, SampledState};

    const MS: Ns = 1_000_000;

    fn point(ts: Ns, thread: u32, credits: u32, span: Ns) -> Point {
        Point {
            ts,
            span,
            thread,
            stack: 0,
            credits,
            kind: SampleKind::Wall,
            state: SampledState::Running,
            is_assumed: false,
        }
    }

    fn settings(words: &[(&str, &str)]) -> BTreeMap<String, Arc<str>> {
        let pair = |(name, value): &(&str, &str)| (format!("x#{name}"), (*value).into());
        words.iter().map(pair).collect()
    }

    #[test]
    fn what_was_told_counts_first() {
        let both = settings(&[("interval", "5000000"), ("wall", "20000000")]);
        assert_eq!(find(&both, true, &[]), (Some(20 * MS), "setting"));
        assert_eq!(find(&both, false, &[]), (Some(5 * MS), "setting"));
        assert_eq!(find(&settings(&[]), true, &[]), (Some(WALL), "default"));
        assert_eq!(find(&settings(&[]), false, &[]).0, None);
    }

    #[test]
    fn batches_tell_and_else_what_lies_between_samples() {
        let none = settings(&[]);
        let batches: Vec<Point> = (0..30)
            .map(|number| point(number * 1_000 * MS, 1, 7, 7 * 10 * MS))
            .collect();
        assert_eq!(find(&none, true, &batches), (Some(10 * MS), "samples"));
        // Every tenth interval is a gap, and every eleventh sample follows it at once.
        let mut at = 0;
        let single: Vec<Point> = (0..200)
            .map(|number| {
                at += match number % 10 {
                    0 => 300 * MS,
                    1 => 10_000,
                    _ => 20 * MS,
                };
                point(at, 1, 1, 0)
            })
            .collect();
        assert_eq!(find(&none, true, &single), (Some(20 * MS), "samples"));
    }
}
