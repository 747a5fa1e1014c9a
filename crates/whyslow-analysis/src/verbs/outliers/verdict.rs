//! The verdict on a device compared with its peers.

use std::cmp::Reverse;

use whyslow_model::answer::{AnswerColumn, Measure, Value};

use crate::kinds::BLOCK;
use crate::outlier_baseline::{
    Compared, Comparison, DEVICES_MIN, Lacking, PEER_REQUESTS_MIN, PEERS_MIN, REQUESTS_MIN,
    SHIFT_REQUESTS_MIN,
};

/// A smaller share of compared requests is reported.
const SHARE_MIN: f64 = 0.5;

/// Columns of a compared device, after those of its statistics.
pub(super) fn columns() -> [AnswerColumn; 4] {
    let column = |name: &str, title: &str, measure| AnswerColumn::new(name, title, measure);
    [
        column("vs_peers", "compared with peers", Measure::Text),
        column("compared", "compared", Measure::Count).priority(9),
        column("relative_risk", "x tail", Measure::Number).priority(7),
        column("median_ratio", "x median", Measure::Number).priority(6),
    ]
}

/// Whether the device is an outlier, and the cells of [`columns`]; `tests` is the number of tests
/// of the answer.
pub(super) fn cells(
    compared: &Compared,
    in_flight: Option<i64>,
    tests: usize,
) -> (bool, Vec<Value>) {
    let comparisons = compared.by_op.as_deref().unwrap_or_default();
    let most_telling = most_telling(comparisons);
    let shift = most_telling.and_then(|one| one.shift.as_ref());
    let cells = vec![
        words(compared, in_flight, tests).into(),
        (compared.matched as i64).into(),
        most_telling.map(|one| one.tail.relative_risk()).into(),
        shift.map(|shift| shift.ratio).into(),
    ];
    (comparisons.iter().any(is_found), cells)
}

pub(super) fn is_found(comparison: &Comparison) -> bool {
    comparison.tail_fires() || comparison.shift_fires()
}

pub(super) fn op_of(comparison: &Comparison) -> &'static str {
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

/// The operation that makes it an outlier, by the most significant test; otherwise the one with the
/// most requests.
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

fn words(compared: &Compared, in_flight: Option<i64>, tests: usize) -> String {
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
    if let Some(excuse) = comparisons.iter().find_map(|one| excuse(one, compared)) {
        return excuse;
    }
    let part = compared.matched as f64 / compared.requests as f64;
    let inconclusive = comparisons
        .iter()
        .filter_map(|one| inconclusive(one, tests));
    let inconclusive: Vec<String> = inconclusive.collect();
    let words = match inconclusive.len() {
        0 => "like its peers".into(),
        few if few < comparisons.len() => format!("like its peers; {}", inconclusive.join("; ")),
        _ => inconclusive.join("; "),
    };
    if part < SHARE_MIN {
        return format!(
            "only {} of {} requests are comparable with peers under the same load: {words}",
            compared.matched, compared.requests
        );
    }
    words
}

/// What a comparison without findings had too few requests for.
fn inconclusive(comparison: &Comparison, tests: usize) -> Option<String> {
    let (requests, compared) = (requests_of(comparison), comparison.tail.compared);
    let Some(enough) = comparison.tail.enough(tests) else {
        return Some(format!(
            "inconclusive for {requests}: its peers have too few of them for {tests} tests"
        ));
    };
    if compared < enough {
        return Some(format!(
            "inconclusive for {compared} {requests}: {} more are needed to detect one slow in five",
            enough - compared
        ));
    }
    let more = SHIFT_REQUESTS_MIN.saturating_sub(compared);
    (more > 0)
        .then(|| format!("no slow tail of {requests}: {more} more are needed to detect a shift"))
}

/// A significance level of suitable precision.
fn level(q: f64) -> String {
    if q < f64::MIN_POSITIVE {
        "q < 1e-307".into()
    } else if q < 0.001 {
        format!("q {q:.0e}")
    } else {
        format!("q {q:.3}")
    }
}

fn findings(comparison: &Comparison) -> Vec<String> {
    let requests = requests_of(comparison);
    let tail = &comparison.tail;
    let mut found = Vec::new();
    if comparison.tail_fires() {
        found.push(format!(
            "slow {requests}: {:.0} % beyond its peers' p99 ({} of {}, {})",
            100.0 * tail.over as f64 / tail.compared as f64,
            tail.over,
            tail.compared,
            level(tail.q)
        ));
    }
    if let Some(shift) = &comparison.shift
        && comparison.shift_fires()
    {
        found.push(format!(
            "{requests} take {:.1} times as long throughout ({})",
            shift.ratio,
            level(shift.q)
        ));
    }
    found
}

/// Why a finding is not held against the device.
fn excuse(comparison: &Comparison, compared: &Compared) -> Option<String> {
    let (requests, tail) = (requests_of(comparison), &comparison.tail);
    if comparison.is_excused() {
        return Some(format!(
            "slow or busy: {requests} are slower, but demand is {:.1} times that of its peers",
            compared.demand
        ));
    }
    let is_burst = tail.stands_out() && tail.dispersion > 1.0 && !tail.fires();
    is_burst.then(|| {
        format!(
            "slow {requests} came in bursts: {} of {} beyond its peers' p99 count as {:.0} independent ones",
            tail.over,
            tail.compared,
            (tail.over as f64 / tail.dispersion).floor()
        )
    })
}

fn reason(lacking: Lacking, compared: &Compared, in_flight: Option<i64>) -> String {
    match lacking {
        Lacking::Requests(0) => "no request has a known device time".into(),
        Lacking::Requests(requests) => {
            format!("{requests} requests, {REQUESTS_MIN} are needed")
        }
        Lacking::Devices(devices) => {
            format!("only {devices} devices of its driver, {DEVICES_MIN} are needed")
        }
        Lacking::LikeRequests(like)
            if like.requests < PEER_REQUESTS_MIN || like.devices < PEERS_MIN =>
        {
            format!(
                "its peers have {} requests comparable with its commonest ones, on {} devices; \
                 {PEER_REQUESTS_MIN} on {PEERS_MIN} are needed",
                like.requests, like.devices
            )
        }
        Lacking::LikeRequests(_) => {
            format!("fewer than {REQUESTS_MIN} of its requests are comparable with its peers'")
        }
        Lacking::LikeDepth => {
            let in_flight = in_flight.unwrap_or_default();
            format!(
                "no peer is as busy ({in_flight} in flight, {:.1} times the demand)",
                compared.demand
            )
        }
    }
}
