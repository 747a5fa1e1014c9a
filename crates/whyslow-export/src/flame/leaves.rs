//! Calls for which the share of samples differs from the share of time: calls that block signals
//! have few samples, calls that the sampler can interrupt have many.

use std::collections::BTreeMap;

use whyslow_model::Ns;
use whyslow_model::sort::IndexSort;
use whyslow_model::text::shown;

use super::{FlameGraph, ROOT};
use crate::stacks::FrameKind;

/// Minimum ratio of the shares to be reported.
const TIMES: f64 = 2.0;
/// Smaller shares on both sides are not reported. It is small because the time of a program with
/// many threads is mostly that of threads without work.
const SHARE_MIN: f64 = 0.002;
const NOTES_MAX: usize = 5;

/// Time by innermost function; gaps count for the call they ended in.
fn leaves(graph: &FlameGraph) -> BTreeMap<&str, Ns> {
    let mut sums: BTreeMap<&str, Ns> = BTreeMap::new();
    for node in graph.nodes.iter().skip(1).filter(|node| node.self_ns > 0) {
        let mut at = node;
        while graph.frames[at.frame].kind == FrameKind::Mark && at.parent != ROOT {
            at = &graph.nodes[at.parent];
        }
        let frame = &graph.frames[at.frame];
        if matches!(frame.kind, FrameKind::Mark | FrameKind::Thread) {
            continue;
        }
        let sum = sums.entry(frame.name.as_str()).or_default();
        *sum = sum.saturating_add(node.self_ns);
    }
    sums
}

/// Sentences about calls whose shares of time and of samples differ by more than a factor of two.
pub fn compare(time: &FlameGraph, samples: &FlameGraph) -> Vec<String> {
    let share = |sums: &BTreeMap<&str, Ns>, name: &str, whole: Ns| {
        sums.get(name).copied().unwrap_or(0) as f64 / whole.max(1) as f64
    };
    let (of_time, of_samples) = (leaves(time), leaves(samples));
    let names: Vec<&str> = of_time
        .keys()
        .chain(
            of_samples
                .keys()
                .filter(|name| !of_time.contains_key(*name)),
        )
        .copied()
        .collect();
    let mut found: Vec<(f64, f64, &str)> = names
        .into_iter()
        .map(|name| {
            let time = share(&of_time, name, time.total_ns());
            (time, share(&of_samples, name, samples.total_ns()), name)
        })
        .filter(|(time, samples, _)| {
            let (less, more) = (time.min(*samples), time.max(*samples));
            more >= SHARE_MIN && more > TIMES * less
        })
        .collect();
    found.index_sort_by(|a, b| {
        let far = |one: &(f64, f64, &str)| (one.0 - one.1).abs();
        far(b).total_cmp(&far(a)).then_with(|| a.2.cmp(b.2))
    });
    found.truncate(NOTES_MAX);
    let notes = found.into_iter().map(|(time, samples, name)| {
        format!(
            "{}: {:.2} % of samples, {:.2} % of time",
            shown(name, false),
            samples * 100.0,
            time * 100.0
        )
    });
    notes.collect()
}
