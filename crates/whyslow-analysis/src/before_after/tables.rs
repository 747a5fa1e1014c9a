//! The comparison as an answer: percentiles, shares, phases, and markers between the runs.

use std::collections::BTreeMap;

use whyslow_model::answer::{Answer, AnswerColumn, AnswerTable, Measure, Value};
use whyslow_model::sort::IndexSort;
use whyslow_model::tables::MarkerRow;
use whyslow_model::{Ns, Symbols, Window};
use whyslow_store::{Tables, rows};

use super::means::{Mean, REST, WHOLE};
use super::read::Requests;
use super::shares::Share;
use super::verdict::Difference;
use super::{Comparison, Latency, Side, Verdict, adjust, compare};
use crate::AnalysisError;

/// Maximum number of endpoints; of more, those with the most requests.
const KEYS_MAX: usize = 200;
/// If the mix of endpoints changes by more, the totals are not comparable.
const MIX_MAX: f64 = 0.05;
/// Maximum number of markers in the list.
const MARKS_MAX: usize = 100;
/// All requests together.
const ALL: &str = "all";

/// Options of the comparison.
#[derive(Debug, Clone, Copy)]
pub struct CompareOptions {
    /// Also compare each endpoint separately.
    pub by_endpoint: bool,
    /// Requests that take longer are slow, ns; by default, a limit is chosen from the durations.
    pub slow: Option<Ns>,
    /// Smaller changes of a percentile count as no difference.
    pub least: f64,
}

/// Answer and verdict.
#[derive(Debug)]
pub struct Compared {
    /// Tables with percentiles, shares and phases of both sides.
    pub answer: Answer,
    /// Verdict over all sets of requests that were compared.
    pub verdict: Verdict,
}

/// A named set of requests.
struct Row {
    name: String,
    sides: [Side; 2],
}

/// Compares requests before and after a change; each side is a recording and a window of it.
pub fn compare_requests(
    before: (&dyn Tables, Option<Window>),
    after: (&dyn Tables, Option<Window>),
    options: CompareOptions,
) -> Result<Compared, AnalysisError> {
    let requests = [
        Requests::read(before.0, before.1)?,
        Requests::read(after.0, after.1)?,
    ];
    for (side, word) in requests.iter().zip(["before", "after"]) {
        if side.rows.is_empty() {
            return Err(AnalysisError::Query {
                message: format!("the recording {word} the change has no requests"),
                hint: Some(
                    "create requests with `whyslow load URL`, or import an access log with `whyslow import`".into(),
                ),
            });
        }
    }
    let by_schedule = requests.iter().all(Requests::is_scheduled);
    let rows = sets(&requests, by_schedule, options.by_endpoint);
    let mut found: Vec<Comparison> = rows
        .iter()
        .map(|row| compare(&row.sides[0], &row.sides[1], options.slow))
        .collect();
    adjust(&mut found);
    let verdicts: Vec<Verdict> = found.iter().map(|one| one.verdict(options.least)).collect();
    let verdict = verdicts.iter().copied().fold(Verdict::TooFew, Verdict::and);
    let mut answer = Answer {
        query: "load diff".into(),
        ..Answer::default()
    };
    let names: Vec<&str> = rows.iter().map(|row| row.name.as_str()).collect();
    let mut percentiles = percentiles(&names, &found, options.least);
    fact(
        &mut percentiles,
        ("verdict", "verdict"),
        Measure::Text,
        verdict.words().into(),
    );
    for (side, (name, title)) in requests.iter().zip([
        ("requests_before", "requests before"),
        ("requests_after", "requests after"),
    ]) {
        fact(
            &mut percentiles,
            (name, title),
            Measure::Count,
            (side.rows.len() as i64).into(),
        );
    }
    answer.tables.push(percentiles);
    answer.tables.push(shares(&names, &found, options.slow));
    answer.tables.extend(phases(&names, &found, &requests));
    let marks = marks(before, after, &requests)?;
    if !marks.rows.is_empty() {
        answer.tables.push(marks);
    }
    answer.caveats = caveats(&requests, by_schedule, (verdict, &found));
    Ok(Compared { answer, verdict })
}

/// All requests, and those of each endpoint that both sides have.
fn sets(requests: &[Requests; 2], by_schedule: bool, by_endpoint: bool) -> Vec<Row> {
    let mut by_name: BTreeMap<&str, [Vec<Latency>; 2]> = BTreeMap::new();
    let mut all: [Vec<Latency>; 2] = Default::default();
    for (place, side) in requests.iter().enumerate() {
        for (key, latency) in side.latencies(by_schedule) {
            all[place].push(latency);
            if by_endpoint {
                by_name.entry(&side.keys[key as usize]).or_default()[place].push(latency);
            }
        }
    }
    let mut named: Vec<(&str, [Vec<Latency>; 2])> = by_name.into_iter().collect();
    named.retain(|(_, sides)| sides.iter().all(|side| !side.is_empty()));
    named.index_sort_by_key(|(name, sides)| {
        (std::cmp::Reverse(sides[0].len() + sides[1].len()), *name)
    });
    named.truncate(KEYS_MAX);
    let row = |(name, sides): (&str, [Vec<Latency>; 2])| Row {
        name: name.to_owned(),
        sides: sides.map(Side::of),
    };
    std::iter::once((ALL, all)).chain(named).map(row).collect()
}

fn column(name: &str, title: &str, measure: Measure) -> AnswerColumn {
    AnswerColumn::new(name, title, measure)
}

pub(super) fn fact(
    table: &mut AnswerTable,
    (name, title): (&str, &str),
    measure: Measure,
    value: Value,
) {
    let column = AnswerColumn::new(name, title, measure);
    table.facts.push((name.to_owned(), column, value));
}

/// `p50`, `p99.9`.
pub(super) fn percentile(quantile: f64) -> String {
    let percent = format!("{:.4}", quantile * 100.0);
    format!("p{}", percent.trim_end_matches('0').trim_end_matches('.'))
}

fn ns(value: Option<f64>) -> Value {
    value.map(|value| value.round() as i64).into()
}

fn percentiles(names: &[&str], found: &[Comparison], least: f64) -> AnswerTable {
    let columns = vec![
        column("endpoint", "endpoint", Measure::Text),
        column("figure", "figure", Measure::Text),
        column("before_ns", "before", Measure::Duration),
        column("after_ns", "after", Measure::Duration),
        column("change", "change", Measure::Ratio),
        column("change_low", "from", Measure::Ratio),
        column("change_high", "to (95 %)", Measure::Ratio),
        column("p_adjusted", "p", Measure::Number).priority(2),
        column("verdict", "verdict", Measure::Text),
        column("requests_needed", "requests to detect 10 %", Measure::Count).priority(1),
    ];
    let mut table = AnswerTable::new("percentiles", "percentiles", columns);
    for (name, one) in names.iter().zip(found) {
        for row in figures(one) {
            let verdict = Verdict::of(row.difference, least);
            if matches!(verdict, Verdict::Worse | Verdict::Better) {
                table.outliers.push(table.rows.len());
            }
            let Difference {
                change,
                interval,
                p,
            } = row.difference;
            table.rows.push(vec![
                (*name).into(),
                row.name.into(),
                ns(row.sides.map(|sides| sides.0)),
                ns(row.sides.map(|sides| sides.1)),
                change.into(),
                interval.map(|one| one.0).into(),
                interval.map(|one| one.1).into(),
                p.into(),
                row.is_tested.then_some(verdict.words()).into(),
                row.enough.map(|enough| enough.min(1 << 53) as i64).into(),
            ]);
        }
    }
    table
}

/// A row of the table of percentiles.
struct Figure {
    name: String,
    /// Before and after, ns.
    sides: Option<(f64, f64)>,
    difference: Difference,
    /// Extremes are shown but not tested: they are single requests.
    is_tested: bool,
    enough: Option<u64>,
}

/// Percentiles, mean, and extremes.
fn figures(one: &Comparison) -> Vec<Figure> {
    let quantiles = one.quantiles.iter().map(|quantile| Figure {
        name: percentile(quantile.share),
        sides: quantile.sides,
        difference: quantile.difference(),
        is_tested: true,
        enough: quantile.enough,
    });
    let mean = one.means.as_ref().map(|means| {
        let whole = &means.parts[WHOLE];
        Figure {
            name: "mean".into(),
            sides: Some((whole.before, whole.after)),
            difference: means.difference(),
            is_tested: true,
            enough: None,
        }
    });
    let extreme = |figure: &str, sides: (f64, f64)| Figure {
        name: figure.into(),
        sides: Some(sides),
        difference: Difference {
            change: Some(sides.1 / sides.0 - 1.0).filter(|change| change.is_finite()),
            ..Difference::default()
        },
        is_tested: false,
        enough: None,
    };
    let extremes = one.extremes.into_iter().flat_map(|[before, after]| {
        [
            extreme("min", (before.0, after.0)),
            extreme("max", (before.1, after.1)),
        ]
    });
    quantiles.chain(mean).chain(extremes).collect()
}

/// `slow` is the limit of the query; without one, limits were chosen.
fn shares(names: &[&str], found: &[Comparison], slow: Option<Ns>) -> AnswerTable {
    let columns = vec![
        column("endpoint", "endpoint", Measure::Text),
        column("figure", "figure", Measure::Text),
        column("limit_ns", "limit", Measure::Duration).sparse(true),
        column("before", "before", Measure::Ratio),
        column("after", "after", Measure::Ratio),
        column("difference", "difference", Measure::Ratio),
        column("difference_low", "from", Measure::Ratio),
        column("difference_high", "to (95 %)", Measure::Ratio),
        column("p_adjusted", "p", Measure::Number).priority(2),
        column("verdict", "verdict", Measure::Text),
    ];
    let title = if slow.is_none() && found.iter().any(|one| one.over.is_some()) {
        "shares of requests (limit chosen from the durations; set it with --slow)"
    } else {
        "shares of requests"
    };
    let mut table = AnswerTable::new("shares", title, columns);
    let row = |name: &str, figure: &str, limit: Option<Ns>, share: &Share| {
        let found = share.difference();
        vec![
            name.into(),
            figure.into(),
            limit.into(),
            share.before.into(),
            share.after.into(),
            found.change.into(),
            share.interval.map(|one| one.0).into(),
            share.interval.map(|one| one.1).into(),
            share.p.into(),
            Verdict::of(found, 0.0).words().into(),
        ]
    };
    for (name, one) in names.iter().zip(found) {
        if let Some((limit, over)) = &one.over {
            table.rows.push(row(name, "slow", Some(*limit), over));
        }
        table.rows.push(row(name, "failed", None, &one.failed));
    }
    table
}

/// The phases in which the means differ; `None` without phases.
fn phases(names: &[&str], found: &[Comparison], requests: &[Requests; 2]) -> Option<AnswerTable> {
    // Phase indexes are only comparable if both sides have the same phases.
    let [before, after] = requests;
    if before.phases.is_empty() || before.phases != after.phases {
        return None;
    }
    let columns = vec![
        column("endpoint", "endpoint", Measure::Text),
        column("phase", "phase", Measure::Text),
        column("mean_before_ns", "mean before", Measure::Duration),
        column("mean_after_ns", "mean after", Measure::Duration),
        column("difference_ns", "difference", Measure::Duration),
        column("difference_low_ns", "from", Measure::Duration),
        column("difference_high_ns", "to (95 %)", Measure::Duration),
        column("share", "share of difference", Measure::Ratio),
        column("median_before_ns", "median before", Measure::Duration).priority(1),
        column("median_after_ns", "median after", Measure::Duration).priority(1),
    ];
    let mut table = AnswerTable::new("phases", "difference of the means by phase", columns);
    for (name, one) in names.iter().zip(found) {
        let Some(means) = &one.means else {
            continue;
        };
        let whole = means.parts[WHOLE];
        let all = whole.after - whole.before;
        let mut row = |phase: &str, mean: &Mean| {
            if mean.before == 0.0 && mean.after == 0.0 {
                return;
            }
            let difference = mean.after - mean.before;
            table.rows.push(vec![
                (*name).into(),
                phase.into(),
                ns(Some(mean.before)),
                ns(Some(mean.after)),
                ns(Some(difference)),
                ns(Some(mean.interval.0)),
                ns(Some(mean.interval.1)),
                Some(difference / all)
                    .filter(|share| share.is_finite())
                    .into(),
                ns(Some(mean.medians.0)),
                ns(Some(mean.medians.1)),
            ]);
        };
        for (phase, mean) in before.phases.iter().zip(&means.parts) {
            row(phase, mean);
        }
        row("other", &means.parts[REST]);
        row("total", &whole);
    }
    Some(table)
}

/// Markers from the start of the first side to the end of the second.
fn marks(
    before: (&dyn Tables, Option<Window>),
    after: (&dyn Tables, Option<Window>),
    requests: &[Requests; 2],
) -> Result<AnswerTable, AnalysisError> {
    let moments = || {
        requests
            .iter()
            .flat_map(|side| &side.rows)
            .map(|row| row.ts)
    };
    let first = moments().min().unwrap_or(0);
    let last = moments().max().unwrap_or(0);
    let mut found: Vec<(Ns, String)> = Vec::new();
    for (tables, _) in [before, after] {
        let mut symbols = Symbols::new();
        for row in rows::<MarkerRow>(tables, &mut symbols)? {
            if (first..=last).contains(&row.ts) {
                let text = match symbols.get(row.text) {
                    "" => symbols.get(row.name),
                    text => text,
                };
                found.push((row.ts, text.to_owned()));
            }
        }
    }
    found.index_sort();
    found.dedup();
    found.truncate(MARKS_MAX);
    let columns = vec![
        column("ts_ns", "time", Measure::Time),
        column("text", "mark", Measure::Text),
    ];
    let mut table = AnswerTable::new("marks", "markers", columns);
    table.rows = found
        .into_iter()
        .map(|(ts, text)| vec![ts.into(), text.into()])
        .collect();
    Ok(table)
}

fn caveats(
    requests: &[Requests; 2],
    by_schedule: bool,
    (verdict, found): (Verdict, &[Comparison]),
) -> Vec<String> {
    let mut caveats = Vec::new();
    if by_schedule {
        caveats.push("durations are measured from the scheduled start of each request".to_owned());
    }
    for (side, word) in requests.iter().zip(["before", "after"]) {
        if side.left_out > 0 {
            caveats.push(format!(
                "the last {} requests {word} were not compared",
                side.left_out
            ));
        }
        let unended = side.rows.iter().filter(|row| row.dur.is_none()).count();
        if unended > 0 {
            caveats.push(format!(
                "{unended} requests {word} have no known end, and no duration"
            ));
        }
    }
    if requests[0].role != requests[1].role {
        caveats.push("one side was recorded by clients and the other by servers".to_owned());
    }
    if let Some((key, shares)) = mix(requests) {
        caveats.push(format!(
            "the mix of endpoints differs: {key} has {:.0} % of the requests before and {:.0} % after; `{ALL}` \
             is not comparable, use --by endpoint",
            shares.0 * 100.0,
            shares.1 * 100.0
        ));
    }
    let mut quantiles = found.iter().flat_map(|one| &one.quantiles);
    if quantiles.any(|quantile| quantile.is_of_ranks) {
        caveats.push(
            "few requests: their medians are compared by the ranks of the durations (Mann-Whitney \
             test), as if requests did not affect each other"
                .to_owned(),
        );
    }
    if !matches!(verdict, Verdict::Better | Verdict::Worse | Verdict::Mixed) {
        let median = found.first().and_then(|one| one.quantiles.first());
        if let Some(enough) = median.and_then(|one| one.enough) {
            let has = requests.iter().map(|side| side.rows.len() as u64).min();
            let has = has.unwrap_or(0);
            caveats.push(if has >= enough {
                format!("{enough} requests per side suffice to detect a shift of p50 by 10 %; there are {has}")
            } else {
                format!(
                    "too few requests to detect a shift of p50 by 10 %: {enough} per side are needed, \
                     there are {has}"
                )
            });
        }
    }
    caveats
}

/// The endpoint whose share of the requests changed most, if it changed much.
fn mix(requests: &[Requests; 2]) -> Option<(&str, (f64, f64))> {
    let mut shares: BTreeMap<&str, [f64; 2]> = BTreeMap::new();
    for (place, side) in requests.iter().enumerate() {
        let one = 1.0 / side.rows.len().max(1) as f64;
        for row in &side.rows {
            shares.entry(&side.keys[row.key as usize]).or_default()[place] += one;
        }
    }
    let moved = |shares: &[f64; 2]| (shares[1] - shares[0]).abs();
    let most = shares
        .into_iter()
        .max_by(|a, b| moved(&a.1).total_cmp(&moved(&b.1)));
    let (key, shares) = most.filter(|(_, shares)| moved(shares) > MIX_MAX)?;
    Some((key, (shares[0], shares[1])))
}
