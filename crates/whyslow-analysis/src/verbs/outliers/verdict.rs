//! What is said of a device against its peers.

use std::cmp::Reverse;

use whyslow_model::answer::{AnswerColumn, Measure, Value};

use crate::kinds::BLOCK;
use crate::peers::{Compared, Comparison, DEVICES_MIN, Lacking, REQUESTS_MIN};

/// Less than this share of requests compared is said.
const SHARE_MIN: f64 = 0.5;

/// Columns of a device that is compared, after those of its own figures.
pub(super) fn columns() -> [AnswerColumn; 10] {
    let column = |name: &str, title: &str, measure| AnswerColumn::new(name, title, measure);
    let detail = |name: &str, title: &str, measure| column(name, title, measure).priority(9);
    [
        column("vs_peers", "against its peers", Measure::Text),
        detail("outlier", "outlier", Measure::Text),
        detail("compared", "compared", Measure::Count),
        detail("compared_op", "op", Measure::Text),
        detail("tail_over", "beyond p99", Measure::Count),
        column("relative_risk", "x tail", Measure::Number).priority(7),
        detail("tail_p", "p of tail", Measure::Number),
        column("median_ratio", "x median", Measure::Number).priority(6),
        detail("delta", "delta", Measure::Number),
        detail("shift_p", "p of median", Measure::Number),
    ]
}

/// Whether the device is an outlier, and the cells of [`columns`].
pub(super) fn cells(compared: &Compared, in_flight: Option<i64>) -> (bool, Vec<Value>) {
    let comparisons = compared.by_op.as_deref().unwrap_or_default();
    let is_outlier = comparisons.iter().any(is_found);
    let mut cells = vec![
        words(compared, in_flight).into(),
        is_outlier.into(),
        (compared.matched as i64).into(),
    ];
    let Some(most_telling) = most_telling(comparisons) else {
        cells.resize(columns().len(), Value::Null);
        return (is_outlier, cells);
    };
    let (tail, shift) = (&most_telling.tail, most_telling.shift.as_ref());
    cells.extend([
        op_of(most_telling).into(),
        (tail.over as i64).into(),
        tail.relative_risk().into(),
        tail.q.into(),
        shift.map(|shift| shift.ratio).into(),
        shift.map(|shift| shift.delta).into(),
        shift.map(|shift| shift.q).into(),
    ]);
    (is_outlier, cells)
}

fn is_found(comparison: &Comparison) -> bool {
    comparison.tail_fires() || comparison.shift_fires()
}

fn op_of(comparison: &Comparison) -> &'static str {
    let op = BLOCK.classes.get(usize::from(comparison.op));
    op.copied().unwrap_or("other")
}

/// Requests of this operation.
fn requests_of(comparison: &Comparison) -> String {
    match op_of(comparison) {
        "flush" => "flushes".into(),
        "other" => "other requests".into(),
        op => format!("{op}s"),
    }
}

/// The operation that makes it an outlier, by the clearest test; else that of most requests.
fn most_telling(comparisons: &[Comparison]) -> Option<&Comparison> {
    let level = |one: &Comparison| {
        let shift = one.shift.as_ref().map_or(1.0, |shift| shift.q);
        one.tail.q.min(shift)
    };
    let found = comparisons.iter().filter(|one| is_found(one));
    let clearest = found.min_by(|a, b| level(a).total_cmp(&level(b)));
    clearest.or_else(|| {
        let most = |one: &&Comparison| (one.tail.compared, Reverse(one.op));
        comparisons.iter().max_by_key(most)
    })
}

fn words(compared: &Compared, in_flight: Option<i64>) -> String {
    let comparisons = match &compared.by_op {
        Ok(comparisons) => comparisons,
        Err(lacking) => {
            return format!("cannot compare: {}", reason(*lacking, compared, in_flight));
        }
    };
    let found = comparisons.iter().flat_map(findings);
    let found: Vec<String> = found.collect();
    if !found.is_empty() {
        return found.join("; ");
    }
    let excused = comparisons.iter().find_map(|one| excuse(one, compared));
    let part = compared.matched as f64 / compared.requests as f64;
    match excused {
        Some(excuse) => excuse,
        None if part < SHARE_MIN => format!(
            "as its peers where they were as busy ({} of {} requests)",
            compared.matched, compared.requests
        ),
        None => "as its peers".into(),
    }
}

fn findings(comparison: &Comparison) -> Vec<String> {
    let requests = requests_of(comparison);
    let tail = &comparison.tail;
    let mut found = Vec::new();
    if comparison.tail_fires() {
        found.push(format!(
            "slow {requests}: {:.0} % beyond its peers' p99 ({} of {})",
            100.0 * tail.over as f64 / tail.compared as f64,
            tail.over,
            tail.compared
        ));
    }
    if let Some(shift) = &comparison.shift
        && comparison.shift_fires()
    {
        found.push(format!(
            "{requests} take {:.1} times as long throughout",
            shift.ratio
        ));
    }
    found
}

/// Why what was found is not held against the device.
fn excuse(comparison: &Comparison, compared: &Compared) -> Option<String> {
    let (requests, tail) = (requests_of(comparison), &comparison.tail);
    if comparison.is_excused() {
        return Some(format!(
            "cannot tell slow from busy: slower {requests}, but asked for {:.1} times as much",
            compared.demand
        ));
    }
    let is_burst = tail.stands_out() && tail.dispersion > 1.0 && !tail.fires();
    is_burst.then(|| {
        format!(
            "slow {requests} came in bursts: {} of {} beyond its peers' p99 count as {:.0}",
            tail.over,
            tail.compared,
            (tail.over as f64 / tail.dispersion).floor()
        )
    })
}

fn reason(lacking: Lacking, compared: &Compared, in_flight: Option<i64>) -> String {
    match lacking {
        Lacking::Requests(0) => "no times from issue to completion".into(),
        Lacking::Requests(requests) => {
            format!("{requests} requests, {REQUESTS_MIN} are needed")
        }
        Lacking::Devices(devices) => {
            format!("{devices} such devices with requests, {DEVICES_MIN} are needed")
        }
        Lacking::LikeRequests => "its peers had too few requests like its own".into(),
        Lacking::LikeDepth => {
            let in_flight = in_flight.unwrap_or_default();
            format!(
                "no peer was as busy ({in_flight} in flight, asked for {:.1} times as much)",
                compared.demand
            )
        }
    }
}
