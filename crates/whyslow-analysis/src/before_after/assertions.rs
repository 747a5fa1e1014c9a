//! Assertions about requests, for scripts that stop if they fail: `p99<50ms`, `failed<1%`.

use std::collections::BTreeMap;

use whyslow_model::answer::{AnswerColumn, AnswerTable, Measure, Value};
use whyslow_model::{Ns, Window};
use whyslow_store::Tables;

use super::quantiles::at;
use super::read::Requests;
use super::tables::fact;
use crate::AnalysisError;

/// The statistic of an assertion.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Figure {
    Percentile(f64),
    Mean,
    Max,
    /// Share of the requests that take longer, ns.
    Over(Ns),
    Failed,
    Count,
}

/// A single assertion.
#[derive(Debug, Clone, PartialEq)]
pub struct Assertion {
    text: String,
    /// All endpoints if `None`.
    endpoint: Option<String>,
    figure: Figure,
    is_below: bool,
    /// In ns, as a share or as a count.
    limit: f64,
}

/// The result of an assertion.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// The assertion as written.
    pub assertion: String,
    /// Endpoint that it applies to; `all` for all requests.
    pub endpoint: String,
    /// In the unit of the statistic; `None` with too few requests.
    pub value: Option<f64>,
    /// Right side of the comparison, in the same unit.
    pub limit: f64,
    /// Number of requests that the value is based on.
    pub requests: u64,
    /// `false` if the value is unknown.
    pub holds: bool,
    measure: Measure,
}

impl Assertion {
    /// Parses `[ENDPOINT: ]FIGURE<VALUE`, where FIGURE is p50, p99.9, mean, max, over(TIME), failed
    /// or count; `duration` parses a duration into ns.
    pub fn parse(
        text: &str,
        duration: impl Fn(&str) -> Result<Ns, String>,
    ) -> Result<Self, String> {
        let wrong = |why: &str| {
            format!(
                "cannot parse assertion `{text}`: {why}; examples: p99<50ms, over(1s)<0.1%, failed<1%"
            )
        };
        let place = text
            .rfind(['<', '>'])
            .ok_or_else(|| wrong("it has no < or >"))?;
        let (left, right) = (text[..place].trim(), text[place + 1..].trim());
        let limit = right.strip_prefix('=').unwrap_or(right).trim();
        let (endpoint, figure) = match left.rsplit_once(": ") {
            Some((endpoint, figure)) => (Some(endpoint.trim().to_owned()), figure.trim()),
            None => (None, left),
        };
        let figure =
            figure_of(figure, &duration).ok_or_else(|| wrong("its statistic is unknown"))?;
        let limit = match figure {
            Figure::Percentile(_) | Figure::Mean | Figure::Max => {
                duration(limit).map_err(|error| wrong(&error))? as f64
            }
            Figure::Over(_) | Figure::Failed => {
                let percent = limit.strip_suffix('%').map(str::trim);
                let number = percent.unwrap_or(limit).parse::<f64>();
                let number = number.map_err(|_| wrong("its share is not a number"))?;
                number / if percent.is_some() { 100.0 } else { 1.0 }
            }
            Figure::Count => limit
                .parse()
                .map_err(|_| wrong("its count is not a number"))?,
        };
        if !limit.is_finite() {
            return Err(wrong("its limit is not a number"));
        }
        Ok(Self {
            text: text.to_owned(),
            endpoint,
            figure,
            is_below: text.as_bytes()[place] == b'<',
            limit,
        })
    }

    fn evaluate(&self, endpoint: &str, requests: &Set) -> Outcome {
        let value = requests.value(self.figure);
        let holds = value.is_some_and(|value| {
            if self.is_below {
                value <= self.limit
            } else {
                value >= self.limit
            }
        });
        Outcome {
            assertion: self.text.clone(),
            endpoint: endpoint.to_owned(),
            value,
            limit: self.limit,
            requests: requests.count,
            holds,
            measure: match self.figure {
                Figure::Percentile(_) | Figure::Mean | Figure::Max => Measure::Duration,
                Figure::Over(_) | Figure::Failed => Measure::Ratio,
                Figure::Count => Measure::Count,
            },
        }
    }
}

fn figure_of(text: &str, duration: impl Fn(&str) -> Result<Ns, String>) -> Option<Figure> {
    if let Some(percent) = text
        .strip_prefix('p')
        .and_then(|text| text.parse::<f64>().ok())
    {
        return (percent > 0.0 && percent < 100.0).then_some(Figure::Percentile(percent / 100.0));
    }
    let over = text
        .strip_prefix("over(")
        .and_then(|text| text.strip_suffix(')'));
    if let Some(limit) = over {
        return duration(limit).ok().map(Figure::Over);
    }
    match text {
        "mean" => Some(Figure::Mean),
        "max" => Some(Figure::Max),
        "failed" => Some(Figure::Failed),
        "count" => Some(Figure::Count),
        _ => None,
    }
}

/// Requests of an endpoint, or all requests.
#[derive(Debug, Default)]
struct Set {
    /// In ns, sorted.
    lengths: Vec<f64>,
    count: u64,
    failed: u64,
}

impl Set {
    fn value(&self, figure: Figure) -> Option<f64> {
        let count = self.lengths.len() as f64;
        if figure == Figure::Count {
            return Some(self.count as f64);
        }
        if figure == Figure::Failed {
            return (self.count > 0).then(|| self.failed as f64 / self.count as f64);
        }
        if self.lengths.is_empty() {
            return None;
        }
        match figure {
            // With a hundred requests, the maximum is not the p99.9.
            Figure::Percentile(share) => {
                (count * (1.0 - share) >= 1.0).then(|| at(&self.lengths, share))
            }
            Figure::Mean => Some(self.lengths.iter().sum::<f64>() / count),
            Figure::Max => self.lengths.last().copied(),
            Figure::Over(limit) => {
                let below = self.lengths.partition_point(|one| *one <= limit as f64);
                Some((self.lengths.len() - below) as f64 / count)
            }
            Figure::Failed | Figure::Count => None,
        }
    }
}

/// Checks the requests of a recording, and those of each endpoint if `by_endpoint`.
pub fn check(
    tables: &dyn Tables,
    window: Option<Window>,
    assertions: &[Assertion],
    by_endpoint: bool,
) -> Result<Vec<Outcome>, AnalysisError> {
    let requests = Requests::read(tables, window)?;
    let mut all = Set::default();
    let mut by_name: BTreeMap<&str, Set> = BTreeMap::new();
    for (key, latency) in requests.latencies(requests.is_scheduled()) {
        let of_key = by_name.entry(&requests.keys[key as usize]).or_default();
        for set in [&mut all, of_key] {
            set.count += 1;
            set.failed += u64::from(latency.failed);
            set.lengths.extend(latency.dur.map(|dur| dur as f64));
        }
    }
    for set in by_name.values_mut().chain([&mut all]) {
        set.lengths.sort_unstable_by(f64::total_cmp);
    }
    let mut outcomes = Vec::new();
    for assertion in assertions {
        if let Some(endpoint) = &assertion.endpoint {
            let is_meant =
                |name: &str| name == endpoint || name.rsplit(' ').next() == Some(endpoint);
            let mut found = by_name.iter().filter(|(name, _)| is_meant(name)).peekable();
            if found.peek().is_none() {
                outcomes.push(assertion.evaluate(endpoint, &Set::default()));
            }
            outcomes.extend(found.map(|(name, set)| assertion.evaluate(name, set)));
        } else {
            outcomes.push(assertion.evaluate("all", &all));
            if by_endpoint {
                outcomes.extend(
                    by_name
                        .iter()
                        .map(|(name, set)| assertion.evaluate(name, set)),
                );
            }
        }
    }
    Ok(outcomes)
}

/// The outcomes as a table, with durations and shares in separate columns.
pub fn check_table(outcomes: &[Outcome]) -> AnswerTable {
    let columns = vec![
        AnswerColumn::new("assertion", "assertion", Measure::Text),
        AnswerColumn::new("endpoint", "endpoint", Measure::Text),
        AnswerColumn::new("requests", "requests", Measure::Count),
        AnswerColumn::new("value_ns", "value", Measure::Duration).sparse(true),
        AnswerColumn::new("share", "share", Measure::Ratio).sparse(true),
        AnswerColumn::new("holds", "holds", Measure::Text),
    ];
    let mut table = AnswerTable::new("assertions", "assertions", columns);
    for outcome in outcomes {
        let value = |measure: Measure| outcome.value.filter(|_| outcome.measure == measure);
        let holds = match (outcome.holds, outcome.value) {
            (true, _) => "yes",
            (false, Some(_)) => "no",
            (false, None) => "unknown: too few requests",
        };
        if !outcome.holds {
            table.outliers.push(table.rows.len());
        }
        table.rows.push(vec![
            outcome.assertion.as_str().into(),
            outcome.endpoint.as_str().into(),
            (outcome.requests as i64).into(),
            value(Measure::Duration).map(|ns| ns.round() as i64).into(),
            value(Measure::Ratio).into(),
            holds.into(),
        ]);
    }
    let failed = outcomes.iter().filter(|one| !one.holds).count();
    fact(
        &mut table,
        ("failed", "failed"),
        Measure::Count,
        Value::Int(failed as i64),
    );
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(text: &str) -> Result<Ns, String> {
        let number = text
            .strip_suffix("ms")
            .and_then(|text| text.parse::<Ns>().ok());
        number
            .map(|ms| ms * 1_000_000)
            .ok_or_else(|| format!("`{text}` is no time"))
    }

    #[test]
    fn assertions_are_read_as_they_are_written() {
        for (text, endpoint, figure, limit) in [
            ("p99<50ms", None, Figure::Percentile(0.99), 5e7),
            ("p99.9 <= 50ms", None, Figure::Percentile(0.999), 5e7),
            ("failed<1%", None, Figure::Failed, 0.01),
            (
                "over(1000ms)<0.001",
                None,
                Figure::Over(1_000_000_000),
                0.001,
            ),
            ("count>100", None, Figure::Count, 100.0),
            ("GET /a: max<7ms", Some("GET /a"), Figure::Max, 7e6),
        ] {
            let found = Assertion::parse(text, ms).expect(text);
            assert_eq!(found.endpoint.as_deref(), endpoint, "{text}");
            match (found.figure, figure) {
                (Figure::Percentile(a), Figure::Percentile(b)) => assert!((a - b).abs() < 1e-12),
                (a, b) => assert_eq!(a, b, "{text}"),
            }
            assert!(
                (found.limit - limit).abs() <= 1e-9 * limit,
                "{text}: {}",
                found.limit
            );
        }
        for text in [
            "",
            "p99",
            "p99<",
            "p100<1ms",
            "p0<1ms",
            "q9<1ms",
            "failed<x",
            "failed<nan",
            "p5<1",
        ] {
            assert!(Assertion::parse(text, ms).is_err(), "{text}");
        }
    }
}
