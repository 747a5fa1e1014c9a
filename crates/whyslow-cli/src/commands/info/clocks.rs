//! How well the clocks of a profile and of kernel events agree, if a recording has both.
//!
//! A thread in an uninterruptible wait gets the sampler's signal when the wait ends: the sample
//! that ends the sampling gap and the end of the wait are the same point in time on two clocks.

use std::collections::HashMap;
use std::ops::ControlFlow;

use whyslow_analysis::{AnalysisError, Filter, Kind, Query, Verb, each_row};
use whyslow_base::failure::Failure;
use whyslow_model::answer::{AnswerColumn, AnswerTable, Measure};
use whyslow_model::tables::SampleGapRow;
use whyslow_model::{Ns, Symbols};
use whyslow_store::{StoreError, Tables, rows};

/// Shorter waits may overlap with others.
const WAIT_MIN: Ns = 40_000_000;
/// Minimum overlap of gap and wait, as a share of the shorter one, to be the same wait.
const SHARED: f64 = 0.5;
/// Fewer pairs are not significant.
const PAIRS_MIN: usize = 3;

/// Waits of each thread, with start and end.
type Waits = HashMap<i64, Vec<(Ns, Ns)>>;

pub(super) fn table(tables: &dyn Tables) -> Result<Option<AnswerTable>, Failure> {
    let has = |name: &str| {
        let table = tables.info().tables.get(name);
        table.is_some_and(|table| table.rows > 0)
    };
    if !has("sample_gap") || !has("thread_state") {
        return Ok(None);
    }
    let facts = super::metadata(tables)?;
    let interval = facts.get("sample_interval_ns");
    let Some(interval) = interval.and_then(|interval| interval.parse().ok()) else {
        return Ok(None);
    };
    let mut late = late_by(&gaps(tables, interval)?, &waits(tables)?);
    let columns = vec![
        AnswerColumn::new("clocks", "clocks", Measure::Text),
        AnswerColumn::new("pairs", "common waits", Measure::Count),
        AnswerColumn::new("median_ns", "profile lag, median", Measure::Duration),
        AnswerColumn::new("low_ns", "p5", Measure::Duration),
        AnswerColumn::new("high_ns", "p95", Measure::Duration),
    ];
    let mut table = AnswerTable::new("clocks", "clock agreement", columns);
    late.sort_unstable();
    let at = |share: f64| late.get(((late.len() - 1) as f64 * share).round() as usize);
    let mut row = vec!["profile and kernel".into(), (late.len() as i64).into()];
    let is_known = late.len() >= PAIRS_MIN;
    row.extend(
        [0.5, 0.05, 0.95].map(|share| is_known.then(|| at(share).copied()).flatten().into()),
    );
    table.rows.push(row);
    Ok(Some(table))
}

/// Sampling gaps classified as kernel waits, up to the sample that ends them. That sample stands
/// for one interval, which is not part of the gap.
fn gaps(tables: &dyn Tables, interval: Ns) -> Result<Waits, StoreError> {
    let mut symbols = Symbols::new();
    let mut found = Waits::new();
    for row in rows::<SampleGapRow>(tables, &mut symbols)? {
        let is_wait = symbols.get(row.class) == "kernel_wait";
        if let (Some(tid), Some(end), true) = (row.tid, row.ts_end, is_wait) {
            let wait = (row.ts, end + interval);
            found.entry(i64::from(tid)).or_default().push(wait);
        }
    }
    Ok(found)
}

/// Uninterruptible waits in the kernel's events.
fn waits(tables: &dyn Tables) -> Result<Waits, AnalysisError> {
    let filter = Filter {
        ops: vec!["uninterruptible".into()],
        dur_min: Some(WAIT_MIN),
        ..Filter::default()
    };
    let query = Query {
        filter,
        ..Query::new(Kind::States, Verb::Log)
    };
    let mut found = Waits::new();
    each_row(tables, &query, &["ts_ns", "dur_ns", "tid"], &mut |row| {
        if let (Some(ts), Some(dur), Some(tid)) =
            (row.int("ts_ns"), row.int("dur_ns"), row.int("tid"))
        {
            found.entry(tid).or_default().push((ts, ts + dur));
        }
        ControlFlow::Continue(())
    })?;
    Ok(found)
}

/// How much later each wait ends in the profile.
fn late_by(gaps: &Waits, waits: &Waits) -> Vec<Ns> {
    let mut late = Vec::new();
    for (tid, gaps) in gaps {
        let Some(waits) = waits.get(tid) else {
            continue;
        };
        for gap in gaps {
            let shared = |wait: &&(Ns, Ns)| wait.1.min(gap.1) - wait.0.max(gap.0);
            let is_same = |wait: &&(Ns, Ns)| {
                let shorter = (wait.1 - wait.0).min(gap.1 - gap.0);
                shared(wait) as f64 >= SHARED * shorter as f64
            };
            // Of several waits in one gap, the last one ends it.
            let last = waits.iter().filter(is_same).max_by_key(|wait| wait.1);
            late.extend(last.map(|wait| gap.1 - wait.1));
        }
    }
    late
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_the_last_wait_counts() {
        let gaps = Waits::from([(1, vec![(0, 200), (300, 400)]), (2, vec![(0, 100)])]);
        let waits = Waits::from([(1, vec![(5, 90), (95, 198), (500, 600)])]);
        assert_eq!(late_by(&gaps, &waits), [2]);
    }
}
