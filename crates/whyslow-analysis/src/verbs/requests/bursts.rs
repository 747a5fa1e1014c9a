//! `requests bursts`: clients that sent far more than usual, or whose requests failed far more often
//! than those of others. What is usual and what is chance: see `burst_test`.

use std::collections::BTreeMap;

use arrow_array::RecordBatch;
use whyslow_model::Ns;
use whyslow_model::answer::{AnswerColumn, AnswerTable, Measure, Value};

use super::burst_test::{
    CHANCE_MAX, Stretch, TIMES_MIN, chance_of_errors, chance_of_flood, densest, median,
};
use crate::AnalysisError;
use crate::context::Context;
use crate::filter::is_failure;
use crate::fold::Spot;
use crate::keys::{Key, KeyValue, label};
use crate::kinds::REQUESTS;
use crate::pass::Summing;
use crate::scan::{ColumnRef, Texts, per_word};
use crate::sweep::Parts;

const ROWS: usize = 20;
/// Parts of the time, unless an interval is asked for.
const PARTS: i64 = 200;
const PARTS_MAX: usize = 5_000;
/// Shorter parts make clusters of what comes together anyway.
const WIDTH_MIN: Ns = 10_000_000;
/// Fewer requests than these are no flood, fewer failures no burst.
const REQUESTS_MIN: u64 = 20;
const ERRORS_MIN: u64 = 5;
/// A flood that is less than so much of all requests of its time bothers nobody.
const SHARE_MIN: f64 = 0.3;

pub(crate) fn bursts(context: &Context<'_>, keys: &[Key]) -> Result<AnswerTable, AnalysisError> {
    let whole = context.span.length().max(1);
    let width = (whole + PARTS - 1) / PARTS;
    let parts = Parts {
        span: context.span,
        width: context.interval.unwrap_or(width.max(WIDTH_MIN)).min(whole),
    };
    if parts.count() > PARTS_MAX {
        return Err(AnalysisError::query(
            format!("more than {PARTS_MAX} intervals"),
            "ask for longer intervals, or a shorter window with -w",
        ));
    }
    let all = read(context, keys, parts)?;
    let total = Series::of(all.values().flatten(), parts.count());
    // Those of whom nothing is known are not one client.
    let known = all.iter().filter(|(group, counts)| {
        let is_known = group.iter().any(|value| *value != KeyValue::Null);
        let requests: u64 = counts.iter().map(|part| part.count.requests).sum();
        let errors: u64 = counts.iter().map(|part| part.count.errors).sum();
        is_known && (requests >= REQUESTS_MIN || errors >= ERRORS_MIN)
    });
    let known: Vec<_> = known.collect();
    let mut found: Vec<(&[KeyValue], Burst)> = Vec::new();
    for (group, counts) in &known {
        let series = Series::of(*counts, parts.count());
        let bursts = [
            series.flood(&total, known.len()),
            series.failing(&total, known.len()),
        ];
        let bursts = bursts.into_iter().flatten();
        found.extend(bursts.map(|burst| (group.as_slice(), burst)));
    }
    found.sort_by(|(group_a, a), (group_b, b)| {
        b.excess
            .total_cmp(&a.excess)
            .then_with(|| group_a.cmp(group_b))
    });
    let mut table = table(keys);
    for (group, burst) in found {
        let mut row = Vec::with_capacity(table.columns.len());
        for (key, value) in keys.iter().zip(group) {
            row.extend(key.cells(value, &context.names));
        }
        let who = label(keys, group, &context.names);
        burst.cells(parts, &who, &mut row);
        table.rows.push(row);
    }
    if known.is_empty() {
        context.note(format!(
            "nobody sent {REQUESTS_MIN} requests or failed {ERRORS_MIN} times, or it is not known who: \
             too few to tell of bursts"
        ));
    }
    context.finish(&mut table, context.limit(ROWS));
    Ok(table)
}

fn table(keys: &[Key]) -> AnswerTable {
    let column = AnswerColumn::new;
    let mut columns: Vec<_> = keys.iter().flat_map(|key| key.answer_columns()).collect();
    columns.extend([
        column("burst", "of", Measure::Text),
        column("ts_ns", "begin", Measure::Time),
        column("dur_ns", "length", Measure::Duration),
        column("count", "count", Measure::Count),
        column("of", "among", Measure::Count).priority(2),
        column("ratio", "share", Measure::Ratio),
        column("usual", "usual", Measure::Number).priority(3),
        column("times", "times the usual", Measure::Number).priority(2),
        column("chance", "chance", Measure::Number).priority(5),
        column("says", "says", Measure::Text).priority(1),
    ]);
    AnswerTable::new("bursts", "bursts", columns)
}

/// Requests and failures by part of the time.
struct Series {
    requests: Vec<u64>,
    errors: Vec<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Of {
    Requests,
    Errors,
}

struct Burst {
    of: Of,
    stretch: Stretch,
    count: u64,
    among: u64,
    /// Of requests how many a part are usual; of failures the share of others' requests that fail.
    usual: f64,
    /// How often that; none where nothing is usual.
    times: Option<f64>,
    chance: f64,
    /// Requests that would not have been, or not have failed.
    excess: f64,
}

impl Series {
    fn of<'p>(counts: impl IntoIterator<Item = &'p OfPart>, parts: usize) -> Self {
        let mut series = Self {
            requests: vec![0; parts],
            errors: vec![0; parts],
        };
        for OfPart { part, count } in counts {
            series.requests[*part] += count.requests;
            series.errors[*part] += count.errors;
        }
        series
    }

    fn count(&self) -> u64 {
        self.requests.iter().sum()
    }

    fn errors(&self) -> u64 {
        self.errors.iter().sum()
    }

    /// A stretch in which it sent far more than in the others.
    fn flood(&self, total: &Series, series: usize) -> Option<Burst> {
        let parts = self.requests.len();
        let even = vec![1; parts];
        let mean = self.count() as f64 / parts as f64;
        let rate = (TIMES_MIN * median(&self.requests)).max(mean);
        let stretch = densest(&self.requests, &even, rate)?;
        let (count, among) = (stretch.sum(&self.requests), stretch.sum(&total.requests));
        let inside = stretch.sum(&even);
        let rest = parts as u64 - inside;
        let usual = (rest > 0).then(|| (self.count() - count) as f64 / rest as f64)?;
        let times = (usual > 0.0).then(|| count as f64 / inside as f64 / usual);
        let chance = chance_of_flood(&self.requests, stretch, series);
        let is_one = count >= REQUESTS_MIN
            && count as f64 >= SHARE_MIN * among as f64
            && times.is_none_or(|times| times >= TIMES_MIN)
            && chance < CHANCE_MAX;
        is_one.then_some(Burst {
            of: Of::Requests,
            stretch,
            count,
            among,
            usual,
            times,
            chance,
            excess: count as f64 - usual * inside as f64,
        })
    }

    /// A stretch in which its requests failed far more often than elsewhere: at other times, and those
    /// of others at the same time.
    fn failing(&self, total: &Series, series: usize) -> Option<Burst> {
        let share = |failed: u64, all: u64| (failed + 1) as f64 / (all + 2) as f64;
        let own = self.errors() as f64 / self.count().max(1) as f64;
        let others = share(total.errors() - self.errors(), total.count() - self.count());
        let has_others = total.count() > self.count();
        let rate = if has_others {
            (TIMES_MIN * others).max(own / 2.0)
        } else {
            own / 2.0
        };
        let stretch = densest(&self.errors, &self.requests, rate.min(0.5))?;
        let (count, among) = (stretch.sum(&self.errors), stretch.sum(&self.requests));
        let (errors, requests) = (stretch.sum(&total.errors), stretch.sum(&total.requests));
        let elsewhere = share(total.errors() - count, total.count() - among);
        let then = if requests > among {
            share(errors - count, requests - among)
        } else {
            0.0
        };
        let usual = elsewhere.max(then);
        let chance = chance_of_errors((count, among), usual, (self.errors.len(), series));
        let times = count as f64 / among.max(1) as f64 / usual;
        let is_one = count >= ERRORS_MIN && chance < CHANCE_MAX;
        is_one.then_some(Burst {
            of: Of::Errors,
            stretch,
            count,
            among,
            usual,
            times: Some(times),
            chance,
            excess: count as f64 - usual * among as f64,
        })
    }
}

impl Burst {
    fn cells(&self, parts: Parts, who: &str, row: &mut Vec<Value>) {
        let begin = parts.begin(self.stretch.first);
        let end = parts.begin(self.stretch.last) + parts.length(self.stretch.last);
        let seconds = parts.width as f64 / 1e9;
        let (word, usual) = match self.of {
            Of::Requests => ("requests", self.usual / seconds),
            Of::Errors => ("errors", self.usual),
        };
        let ratio = self.count as f64 / self.among.max(1) as f64;
        row.extend([
            word.into(),
            begin.into(),
            (end - begin).into(),
            (self.count as i64).into(),
            (self.among as i64).into(),
            ratio.into(),
            usual.into(),
            self.times.into(),
            self.chance.min(1.0).into(),
            self.says(who, ratio, usual).into(),
        ]);
    }

    fn says(&self, who: &str, ratio: f64, usual: f64) -> String {
        let (count, among, percent) = (self.count, self.among, ratio * 100.0);
        match (self.of, self.times) {
            (Of::Requests, Some(times)) => format!(
                "{who} sent {percent:.0} % of {among} requests, {times:.1} times its usual {usual:.1} per s"
            ),
            (Of::Requests, None) => {
                format!("{who} sent {percent:.0} % of {among} requests, and none at other times")
            }
            (Of::Errors, _) => format!(
                "{count} of {among} requests of {who} failed; of others {:.1} % do",
                usual * 100.0
            ),
        }
    }
}

/// What came in a part of the time; most clients send in few.
struct OfPart {
    part: usize,
    count: Count,
}

/// Counts by group.
fn read(
    context: &Context<'_>,
    keys: &[Key],
    parts: Parts,
) -> Result<BTreeMap<Vec<KeyValue>, Vec<OfPart>>, AnalysisError> {
    let mut pass = context.pass(&REQUESTS, keys)?;
    pass.group_by_time(parts.span, parts.width);
    let counting = Counting(pass.projection.need("outcome"));
    let mut all: BTreeMap<Vec<KeyValue>, Vec<OfPart>> = BTreeMap::new();
    for (mut group, count) in pass.run(context.tables, &counting)? {
        if let Some(KeyValue::Int(begin)) = group.pop() {
            let part = parts.of(begin);
            all.entry(group).or_default().push(OfPart { part, count });
        }
    }
    Ok(all)
}

struct Counting(ColumnRef);

#[derive(Default)]
struct Count {
    requests: u64,
    errors: u64,
}

impl Summing for Counting {
    type Columns<'b> = (Texts<'b>, Vec<bool>);
    type Sum = Count;

    fn columns<'b>(
        &self,
        batch: &'b RecordBatch,
        _: Spot,
    ) -> Result<Self::Columns<'b>, AnalysisError> {
        let outcome = self.0.texts(batch)?;
        let is_failure = per_word(&outcome, is_failure);
        Ok((outcome, is_failure))
    }

    fn add(&self, sum: &mut Count, (outcome, is_failure): &Self::Columns<'_>, row: u32) {
        sum.requests += 1;
        sum.errors += u64::from(outcome.key(row).is_some_and(|word| is_failure[word]));
    }

    fn merge(&self, sum: &mut Count, other: Count) {
        sum.requests += other.requests;
        sum.errors += other.errors;
    }
}
