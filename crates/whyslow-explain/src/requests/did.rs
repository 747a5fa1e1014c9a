//! What the threads of a request did: its calls by kind and path pattern.
//!
//! A request that spends most of its time in hundreds of short calls has no long wait, and each of
//! these calls may have another cause. Their sum is a fact that needs no cause.

use std::ops::ControlFlow;

use rustc_hash::FxHashMap;
use whyslow_analysis::AnalysisError;
use whyslow_analysis::before_after::Request;
use whyslow_analysis::read::{Projection, in_order};
use whyslow_model::row::Row;
use whyslow_model::sort::IndexSort;
use whyslow_model::tables::SyscallRow;
use whyslow_model::{Ns, Window};

use super::findings::RequestExplainer;
use super::views::View;
use crate::detectors::template_of;
use crate::report::{Did, Finding};
use crate::sentence;
use crate::slow::has_usual_length;

/// Minimum share of the time …
const SHARE_MIN: f64 = 0.05;
/// … or number of bytes for calls to be listed.
const BYTES_MIN: i64 = 10 << 20;
/// Maximum number of kinds of calls that are listed.
const KINDS_MAX: usize = 6;
/// Maximum number of kinds of calls that are counted.
const COUNTED_MAX: usize = 10_000;
/// Share of the time from which calls of one kind are part of the verdict, …
const MOST: f64 = 0.5;
/// … if there are this many: a single long call is what the walk follows.
const MANY: u64 = 2;

#[derive(Debug, Default)]
struct Sum {
    count: u64,
    dur: Ns,
    bytes: Option<i64>,
    longest: (Ns, i64),
}

/// Adds the calls of the threads that served the request; without such threads, those of the walked
/// thread.
pub(super) fn add(
    explainer: &RequestExplainer<'_>,
    request: &Request,
    view: &View,
    finding: &mut Finding,
) -> Result<(), AnalysisError> {
    let served = explainer.threads.of(request).iter();
    let mut stretches: Vec<(i32, Ns, Ns)> =
        served.map(|one| (one.utid, one.begin, one.end)).collect();
    if stretches.is_empty() {
        stretches.push((view.utid, view.begin, view.end));
    }
    let length = request.dur.unwrap_or(view.end - view.begin).max(1);
    let sums = sums(explainer, &stretches)?;
    let mut did: Vec<Did> = sums
        .into_iter()
        .map(|((call, path), sum)| Did {
            call,
            path: (!path.is_empty()).then_some(path),
            count: sum.count,
            dur_ns: sum.dur,
            share: sum.dur as f64 / length as f64,
            bytes: sum.bytes,
            id: format!("op:{}", sum.longest.1),
        })
        .filter(|did| did.share >= SHARE_MIN || did.bytes.is_some_and(|bytes| bytes >= BYTES_MIN))
        .collect();
    did.index_sort_by(|a, b| {
        let by_time = b.dur_ns.cmp(&a.dur_ns);
        by_time.then_with(|| (&a.call, &a.path).cmp(&(&b.call, &b.path)))
    });
    did.truncate(KINDS_MAX);
    finding.did = did;
    if let Some(most) = most(finding) {
        let most = in_words(most);
        finding.verdict = finding.verdict.replace(
            "no single cause dominates",
            &format!("{most}; no single cause of them dominates"),
        );
    }
    Ok(())
}

/// Calls of one kind that take most of the time of a request without a culprit.
pub(crate) fn most(finding: &Finding) -> Option<&Did> {
    let first = finding.did.first()?;
    let is_most = first.share >= MOST && first.count >= MANY;
    (is_most && finding.culprit.is_none() && !finding.remote.is_usual).then_some(first)
}

/// `400 fsync(/srv/*.db) took 2.81 s of it (86 %)`.
pub(crate) fn in_words(did: &Did) -> String {
    let path = did.path.as_deref().unwrap_or("");
    format!(
        "{} {}({path}) took {} of it ({})",
        did.count,
        did.call,
        sentence::length(did.dur_ns),
        sentence::percent(did.share)
    )
}

fn sums(
    explainer: &RequestExplainer<'_>,
    stretches: &[(i32, Ns, Ns)],
) -> Result<FxHashMap<(String, String), Sum>, AnalysisError> {
    let mut found: FxHashMap<(String, String), Sum> = FxHashMap::default();
    let (Some(begin), Some(end)) = (
        stretches.iter().map(|one| one.1).min(),
        stretches.iter().map(|one| one.2).max(),
    ) else {
        return Ok(found);
    };
    let mut projection = Projection::new(SyscallRow::TABLE);
    let [id, ts, dur, utid, bytes] =
        ["id", "ts", "dur", "utid", "bytes"].map(|name| projection.need(name));
    let [name, class, path] = ["name", "fd_class", "path"].map(|name| projection.need(name));
    let window = Window::new(begin, end.saturating_add(1));
    in_order(explainer.tables, &projection.scan(Some(window)), |batch| {
        let (id, ts, dur) = (id.ints(batch)?, ts.ints(batch)?, dur.ints(batch)?);
        let (utid, bytes) = (utid.ints(batch)?, bytes.ints(batch)?);
        let (name, class, path) = (name.texts(batch)?, class.texts(batch)?, path.texts(batch)?);
        for row in 0..batch.num_rows() as u32 {
            let at = ts.at(row);
            let of = utid.get(row).map(|utid| utid as i32);
            let is_of = |one: &&(i32, Ns, Ns)| of == Some(one.0) && one.1 <= at && at < one.2;
            let (Some(stretch), Some(call)) = (stretches.iter().find(is_of), name.get(row)) else {
                continue;
            };
            if !has_usual_length(call, class.get(row), None) {
                continue;
            }
            let pattern = path.get(row).map(template_of).unwrap_or_default();
            let key = (call.to_owned(), pattern);
            if found.len() >= COUNTED_MAX && !found.contains_key(&key) {
                continue;
            }
            let dur = dur.get(row).unwrap_or(0).min(stretch.2 - at);
            let sum = found.entry(key).or_default();
            sum.count += 1;
            sum.dur += dur;
            sum.longest = sum.longest.max((dur, id.at(row)));
            if let Some(bytes) = bytes.get(row) {
                *sum.bytes.get_or_insert(0) += bytes;
            }
        }
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn did(share: f64, count: u64) -> Did {
        Did {
            call: "fsync".to_owned(),
            path: Some("/srv/*.db".to_owned()),
            count,
            dur_ns: (share * 3.25e9) as Ns,
            share,
            bytes: None,
            id: "op:1".to_owned(),
        }
    }

    #[test]
    fn many_calls_that_take_most_of_the_time_are_named() {
        let mut finding = Finding {
            did: vec![did(0.86, 400)],
            ..Finding::default()
        };
        let words = most(&finding).map(in_words);
        assert_eq!(
            words.as_deref(),
            Some("400 fsync(/srv/*.db) took 2.79 s of it (86 %)")
        );
        for (share, count) in [(0.4, 400), (0.86, 1)] {
            finding.did = vec![did(share, count)];
            assert_eq!(most(&finding), None, "{share} {count}");
        }
        // Then the cause is known.
        finding.did = vec![did(0.86, 400)];
        finding.culprit = Some(0);
        assert_eq!(most(&finding), None);
    }
}
