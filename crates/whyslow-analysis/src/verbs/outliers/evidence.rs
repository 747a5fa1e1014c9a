//! Evidence for the verdicts: each test with its statistics, and the strata of the devices that
//! deviate.

use std::collections::BTreeMap;

use whyslow_model::Ns;
use whyslow_model::answer::{AnswerColumn, AnswerTable, Measure, Value};

use super::Measured;
use super::figures::Where;
use super::verdict::{is_found, op_of};
use crate::facts;
use crate::outlier_baseline::{Compared, Comparison, Evidence, LEVEL, SHIFT_REQUESTS_MIN};
use whyslow_model::histogram::{bucket_bounds, middle};

/// One row per test: a device's requests of one operation.
pub(super) fn comparisons(
    measured: &BTreeMap<Where, Measured>,
    tests: usize,
    by_time: bool,
) -> AnswerTable {
    let title = "tests: requests of similar size and number in flight, compared with peers";
    let columns = vec![
        AnswerColumn::new("compared", "compared", Measure::Count),
        AnswerColumn::new("strata", "strata", Measure::Count).priority(4),
        AnswerColumn::new("peers", "peers", Measure::Count).priority(3),
        AnswerColumn::new("tail_over", "beyond p99", Measure::Count),
        AnswerColumn::new("tail_expected", "expected", Measure::Number).priority(2),
        AnswerColumn::new("relative_risk", "x tail", Measure::Number),
        AnswerColumn::new("tail_q", "tail q", Measure::Number),
        AnswerColumn::new("dispersion", "dispersion", Measure::Number).priority(6),
        AnswerColumn::new("median_ratio", "x median", Measure::Number),
        AnswerColumn::new("delta", "delta", Measure::Number).priority(1),
        AnswerColumn::new("shift_q", "median q", Measure::Number),
        AnswerColumn::new("demand", "demand", Measure::Number).priority(5),
        AnswerColumn::new("tail_more", "needed for tail", Measure::Count).priority(7),
        AnswerColumn::new("shift_more", "needed for median", Measure::Count).priority(8),
    ];
    let mut table = AnswerTable::new("comparisons", title, place_columns(by_time));
    table.columns.extend(columns);
    for (place, Measured { compared, .. }) in measured {
        for comparison in compared.by_op.iter().flatten() {
            if is_found(comparison) {
                table.outliers.push(table.rows.len());
            }
            let mut row = place_cells(place, comparison, by_time);
            row.extend(test_cells(compared, comparison, tests));
            table.rows.push(row);
        }
    }
    if tests > 0 {
        facts::push(&mut table, "tests", "tests", Measure::Count, tests as i64);
        facts::push(&mut table, "level", "level of q", Measure::Number, LEVEL);
    }
    table
}

fn test_cells(compared: &Compared, comparison: &Comparison, tests: usize) -> Vec<Value> {
    let (tail, shift) = (&comparison.tail, comparison.shift.as_ref());
    let enough = tail.enough(tests);
    let more = |enough: u64| enough.saturating_sub(tail.compared) as i64;
    vec![
        (tail.compared as i64).into(),
        (tail.evidence.len() as i64).into(),
        (comparison.peers as i64).into(),
        (tail.over as i64).into(),
        tail.expected.into(),
        tail.relative_risk().into(),
        tail.q.into(),
        tail.dispersion.into(),
        shift.map(|shift| shift.ratio).into(),
        shift.map(|shift| shift.delta).into(),
        shift.map(|shift| shift.q).into(),
        compared.demand.into(),
        enough.map(more).into(),
        more(SHIFT_REQUESTS_MIN).into(),
    ]
}

/// One row per stratum of a test that fired.
pub(super) fn strata(measured: &BTreeMap<Where, Measured>, by_time: bool) -> AnswerTable {
    let title = "strata of the devices that deviate, by size and number in flight";
    let duration = |name: &str, title: &str| AnswerColumn::new(name, title, Measure::Duration);
    let columns = vec![
        AnswerColumn::new("size_min_bytes", "from", Measure::Bytes),
        AnswerColumn::new("size_max_bytes", "to", Measure::Bytes),
        AnswerColumn::new("in_flight_min", "in flight", Measure::Count),
        AnswerColumn::new("in_flight_max", "to", Measure::Count),
        AnswerColumn::new("count", "count", Measure::Count),
        AnswerColumn::new("peers_count", "peers' count", Measure::Count),
        AnswerColumn::new("peers", "peers", Measure::Count).priority(2),
        duration("p50_ns", "p50"),
        duration("peers_p50_ns", "peers' p50"),
        duration("peers_p99_ns", "peers' p99"),
        AnswerColumn::new("over", "beyond", Measure::Count),
        AnswerColumn::new("expected", "expected", Measure::Number).priority(1),
    ];
    let mut table = AnswerTable::new("strata", title, place_columns(by_time));
    table.columns.extend(columns);
    for (place, Measured { compared, .. }) in measured {
        let found = compared.by_op.iter().flatten().filter(|one| is_found(one));
        for comparison in found {
            for evidence in &comparison.tail.evidence {
                let mut row = place_cells(place, comparison, by_time);
                row.extend(stratum_cells(evidence));
                table.rows.push(row);
            }
        }
    }
    table
}

fn stratum_cells(evidence: &Evidence) -> Vec<Value> {
    let bounded = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
    let (sizes, depths) = (evidence.stratum.sizes(), evidence.stratum.depths());
    let [own, peers] = evidence.middles.map(|bucket| bucket.map(middle));
    vec![
        bounded(sizes.0).into(),
        bounded(sizes.1).into(),
        bounded(depths.0).into(),
        bounded(depths.1).into(),
        bounded(evidence.own).into(),
        bounded(evidence.peers).into(),
        (evidence.devices as i64).into(),
        own.into(),
        peers.into(),
        // A request is only beyond the threshold if it is beyond the whole bucket.
        bucket_bounds(evidence.threshold).1.into(),
        bounded(evidence.over).into(),
        evidence.expected.into(),
    ]
}

fn place_columns(by_time: bool) -> Vec<AnswerColumn> {
    let time = by_time.then(|| AnswerColumn::new("ts_ns", "time", Measure::Time));
    let rest = [
        AnswerColumn::new("dev", "dev", Measure::Text),
        AnswerColumn::new("op", "op", Measure::Text),
    ];
    time.into_iter().chain(rest).collect()
}

fn place_cells(place: &Where, comparison: &Comparison, by_time: bool) -> Vec<Value> {
    let (begin, dev): (Ns, &str) = (place.0, &place.1);
    let mut cells: Vec<Value> = Vec::new();
    if by_time {
        cells.push(begin.into());
    }
    cells.extend([dev.into(), op_of(comparison).into()]);
    cells
}
