//! Results of a load as tables, for every output format.

use whyslow_model::Ns;
use whyslow_model::answer::{Answer, AnswerColumn, AnswerTable, Form, Measure, Value};
use whyslow_model::sort::IndexSort;

use crate::durations::{Durations, bounds_of_share, octave_of};
use crate::row::{Outcome, Phases, Row};
use crate::run::{Ended, Reason};
use crate::summary::{Group, Summary};
use crate::trend::{self, Stage};

/// Columns of the heat map.
const COLUMNS: u64 = 60;
/// Above this CPU utilization, a load thread is a bottleneck.
const BUSY_MIN: f64 = 0.9;
/// Maximum number of endpoints in a sentence.
const NAMED_MAX: usize = 5;
/// A request that starts later than this is late: the schedule needs more workers.
const LATE_NS: u64 = 1_000_000;

/// Which requests are listed individually.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum List {
    /// None: totals only.
    None,
    /// Slow and failed ones.
    Slow,
    /// Every request.
    All,
}

impl Summary {
    /// The result of a load that started at `begin_ns`, ns since the epoch.
    pub fn answer(&self, ended: &Ended, begin_ns: Ns, list: List) -> Answer {
        let report = Report {
            summary: self,
            ended,
            begin_ns,
            slow_ns: self.slow_ns().unwrap_or(u64::MAX),
        };
        let mut tables = Vec::new();
        if list != List::None {
            tables.push(report.requests(list));
        }
        tables.extend([report.lengths(), report.outcomes(), report.endpoints()]);
        if self.stages.len() > 1 {
            tables.push(report.sweep());
        }
        tables.extend([report.histogram(), report.heat()]);
        if self.count == 0 {
            tables.clear();
        }
        Answer {
            query: "load".to_owned(),
            window: Some((begin_ns, report.moment(ended.end_ns))),
            tables,
            caveats: report.caveats(list),
            ..Answer::default()
        }
    }
}

/// Input of the tables.
struct Report<'s> {
    summary: &'s Summary,
    ended: &'s Ended,
    begin_ns: Ns,
    slow_ns: u64,
}

impl Report<'_> {
    fn moment(&self, ns: u64) -> Ns {
        self.begin_ns.saturating_add(ns as i64)
    }

    /// One row per request, in order of their starts.
    fn requests(&self, list: List) -> AnswerTable {
        let has_schedule = self.summary.has_schedule();
        let mut table = AnswerTable::new("requests", "requests", request_columns(has_schedule));
        let is_listed = |row: &&Row| {
            list == List::All || row.total_ns() >= self.slow_ns || row.outcome != Outcome::Ok
        };
        let mut rows: Vec<&Row> = self.summary.rows.iter().filter(is_listed).collect();
        rows.index_sort_by_ints(|row| [row.start_ns as i64, row.seq as i64, 0]);
        for (at, row) in rows.into_iter().enumerate() {
            if row.total_ns() >= self.slow_ns {
                table.outliers.push(at);
            }
            table.rows.push(self.request(row, has_schedule));
        }
        table
    }

    fn request(&self, row: &Row, has_schedule: bool) -> Vec<Value> {
        let link = row.connection.as_deref();
        let length = |ns: u64| Value::Int(ns as i64);
        let mut cells = vec![
            self.moment(row.start_ns).into(),
            length(row.total_ns()),
            row.status.map(i64::from).into(),
            row.outcome.name().into(),
            row.target.method.as_str().into(),
            row.target.url.as_str().into(),
        ];
        if has_schedule {
            let intended_ns = row.intended_ns;
            cells.push(intended_ns.map(|ns| self.moment(ns)).into());
            cells.push(length(row.response_ns()));
        }
        let phases = row.phases.all();
        cells.extend(phases.map(|phase| phase.map_or(Value::Null, length)));
        cells.extend([
            row.protocol.into(),
            length(row.bytes_sent),
            length(row.bytes_received),
            i64::from(row.worker).into(),
            length(row.seq),
            link.map(|link| link.number as i64).into(),
            row.is_reused.into(),
            link.map(|link| link.local.as_str()).into(),
            link.map(|link| link.peer.as_str()).into(),
            row.trace.map(|(trace, _)| format!("{trace:032x}")).into(),
            row.server_timing.as_deref().into(),
            row.error.as_deref().into(),
        ]);
        cells
    }

    /// Durations of requests and their phases.
    fn lengths(&self) -> AnswerTable {
        let summary = self.summary;
        let mut columns = vec![AnswerColumn::new("of", "", Measure::Text)];
        columns.push(AnswerColumn::new("count", "count", Measure::Count));
        for (name, title) in PERCENTILES.map(|(name, title, _)| (name, title)) {
            columns.push(AnswerColumn::new(name, title, Measure::Duration));
        }
        let mut table = AnswerTable::new("latency", "latency", columns);
        let mut push = |name: &str, durations: &Durations| {
            if durations.count() > 0 {
                let mut cells = vec![name.into(), (durations.count() as i64).into()];
                cells.extend(PERCENTILES.map(|(_, _, share)| {
                    let length = durations.percentile(share);
                    length.map_or(Value::Null, |ns| (ns as i64).into())
                }));
                table.rows.push(cells);
            }
        };
        push("request", &summary.total);
        push("from intended start", &summary.response);
        push("start delay", &summary.late);
        for (name, durations) in Phases::NAMES.iter().zip(&summary.phases) {
            push(name, durations);
        }
        self.facts(&mut table);
        table
    }

    fn facts(&self, table: &mut AnswerTable) {
        let summary = self.summary;
        let seconds = self.loaded_ns() as f64 / 1e9;
        let slow: u64 = self
            .summary
            .endpoints
            .values()
            .map(|group| summary.slow_of(group))
            .sum();
        let mut fact = |name: &str, title: &str, measure, value: Value| {
            let column = AnswerColumn::new(name, title, measure);
            table.facts.push((name.to_owned(), column, value));
        };
        let count = |count: u64| Value::Int(count as i64);
        fact("requests", "requests", Measure::Count, count(summary.count));
        let rate = summary.count as f64 / seconds.max(1e-9);
        fact("rate", "rate", Measure::Rate, rate.into());
        fact(
            "slow_ns",
            "slow threshold",
            Measure::Duration,
            count(self.slow_ns),
        );
        fact("slow", "slow", Measure::Count, count(slow));
        let connections = summary.connections;
        fact(
            "connections",
            "connections",
            Measure::Count,
            count(connections),
        );
        fact("sent_bytes", "sent", Measure::Bytes, count(summary.bytes.0));
        fact(
            "received_bytes",
            "received",
            Measure::Bytes,
            count(summary.bytes.1),
        );
    }

    fn loaded_ns(&self) -> u64 {
        let stages = self.ended.stages.iter();
        stages
            .map(|stage| stage.end_ns.saturating_sub(stage.begin_ns))
            .sum()
    }

    fn outcomes(&self) -> AnswerTable {
        let columns = vec![
            AnswerColumn::new("outcome", "outcome", Measure::Text),
            AnswerColumn::new("status", "status", Measure::Id),
            AnswerColumn::new("count", "requests", Measure::Count),
            AnswerColumn::new("ratio", "share", Measure::Ratio),
            AnswerColumn::new("error", "first error", Measure::Text).sparse(true),
        ];
        let mut table = AnswerTable::new("outcomes", "outcomes", columns);
        for ((outcome, status), ending) in &self.summary.outcomes {
            table.rows.push(vec![
                outcome.name().into(),
                status.map(i64::from).into(),
                (ending.count as i64).into(),
                (ending.count as f64 / self.summary.count as f64).into(),
                ending.error.as_deref().into(),
            ]);
        }
        table
    }

    fn endpoints(&self) -> AnswerTable {
        let mut columns = vec![
            AnswerColumn::new("method", "method", Measure::Text),
            AnswerColumn::new("url", "url", Measure::Path),
        ];
        columns.extend(group_columns());
        let mut table =
            AnswerTable::new("endpoints", "endpoints by share of slow requests", columns);
        let mut groups: Vec<_> = self.summary.endpoints.iter().collect();
        groups.index_sort_by(|(_, a), (_, b)| {
            let share = |group| self.summary.slow_of(group) as f64 / group.total.count() as f64;
            share(b).total_cmp(&share(a))
        });
        for (key, group) in groups {
            let (method, url) = key.split_once(' ').unwrap_or_default();
            let mut cells: Vec<Value> = vec![method.into(), url.into()];
            cells.extend(self.group(group));
            table.rows.push(cells);
        }
        table
    }

    fn sweep(&self) -> AnswerTable {
        let mut columns = vec![
            AnswerColumn::new("threads", "threads", Measure::Count),
            AnswerColumn::new("rate", "rate", Measure::Rate),
        ];
        columns.extend(group_columns());
        let mut table = AnswerTable::new("sweep", "by number of threads", columns);
        for ((workers, group), stage) in self.summary.stages.iter().zip(&self.ended.stages) {
            let seconds = stage.end_ns.saturating_sub(stage.begin_ns) as f64 / 1e9;
            let mut cells: Vec<Value> = vec![
                i64::from(*workers).into(),
                (group.total.count() as f64 / seconds.max(1e-9)).into(),
            ];
            cells.extend(self.group(group));
            table.rows.push(cells);
        }
        if let Some(trend) = self.trend() {
            let column = AnswerColumn::new("trend", "trend", Measure::Text);
            table.facts.push(("trend".to_owned(), column, trend.into()));
        }
        table
    }

    fn trend(&self) -> Option<String> {
        let stage = |(threads, group): &(u32, Group)| Stage {
            threads: *threads,
            count: group.total.count(),
            slow: self.summary.slow_of(group),
        };
        let stages: Vec<Stage> = self.summary.stages.iter().map(stage).collect();
        trend::verdict(&stages)
    }

    fn group(&self, group: &Group) -> Vec<Value> {
        let (count, slow) = (group.total.count(), self.summary.slow_of(group));
        let bounds = bounds_of_share(slow, count);
        let length = |share| group.total.percentile(share).map(|ns| ns as i64).into();
        vec![
            (count as i64).into(),
            (group.failed as i64).into(),
            (slow as i64).into(),
            bounds.map(|_| slow as f64 / count as f64).into(),
            bounds.map(|(low, _)| low).into(),
            bounds.map(|(_, high)| high).into(),
            length(0.5),
            length(0.99),
            length(1.0),
        ]
    }

    fn histogram(&self) -> AnswerTable {
        let columns = vec![
            AnswerColumn::new("from_ns", "from", Measure::Duration),
            AnswerColumn::new("to_ns", "to", Measure::Duration),
            AnswerColumn::new("count", "requests", Measure::Count),
        ];
        let mut table = AnswerTable::new("histogram", "requests by latency", columns);
        table.form = Form::Histogram;
        let edge = |ns: u64| Value::Int(i64::try_from(ns).unwrap_or(i64::MAX));
        for (from, to, count) in self.shown().octaves() {
            let cells = vec![edge(from), edge(to), (count as i64).into()];
            table.rows.push(cells);
        }
        table
    }

    /// The latency that users would experience: with a schedule, it includes the start delay.
    fn shown(&self) -> &Durations {
        if self.summary.has_schedule() {
            &self.summary.response
        } else {
            &self.summary.total
        }
    }

    fn heat(&self) -> AnswerTable {
        let columns = vec![
            AnswerColumn::new("time_ns", "time", Measure::Time),
            AnswerColumn::new("from_ns", "from", Measure::Duration),
            AnswerColumn::new("to_ns", "to", Measure::Duration),
            AnswerColumn::new("count", "count", Measure::Count),
            AnswerColumn::new("intensity_ns", "intensity", Measure::Duration),
        ];
        let mut table = AnswerTable::new("heat", "requests by start and latency", columns);
        table.form = Form::HeatMap;
        let columns = self.ended.end_ns / self.summary.heat.width_ns + 1;
        let heat = self.summary.heat.coarser(columns.div_ceil(COLUMNS));
        for ((column, from), (count, sum)) in &heat.cells {
            let to = octave_of(*from).1;
            table.rows.push(vec![
                self.moment(column * heat.width_ns).into(),
                (*from as i64).into(),
                i64::try_from(to).unwrap_or(i64::MAX).into(),
                (*count as i64).into(),
                i64::try_from(*sum).unwrap_or(i64::MAX).into(),
            ]);
        }
        let width = AnswerColumn::new("width_ns", "column width", Measure::Duration);
        let width_ns = Value::Int(heat.width_ns as i64);
        table.facts.push(("width_ns".to_owned(), width, width_ns));
        table
    }

    fn caveats(&self, list: List) -> Vec<String> {
        let mut caveats = Vec::new();
        match self.ended.reason {
            Reason::Done => {}
            Reason::Interrupted => caveats.push("the load was interrupted".to_owned()),
            Reason::UntilSlow => {
                caveats.push("the load was stopped after a slow request (--until-slow)".to_owned());
            }
        }
        if self.summary.count == 0 {
            caveats.push("no request was sent".to_owned());
        }
        caveats.extend(self.never_slow());
        let late = self.summary.late.from(LATE_NS);
        if late > 0 {
            caveats.push(format!(
                "{late} requests started more than 1 ms late because all threads, or this machine, were busy; \
                 see their latency from the intended start"
            ));
        }
        if self.ended.busiest >= BUSY_MIN {
            caveats.push(format!(
                "a load thread was on CPU for {:.0} % of the time: it may be the bottleneck, and \
                 latencies include waits for it",
                100.0 * self.ended.busiest
            ));
        }
        let left_out = self.summary.left_out();
        if left_out > 0 && list != List::None {
            caveats.push(format!(
                "the list has the first {} requests; the other {left_out} are in the stored file",
                self.summary.rows.len()
            ));
        }
        if self.ended.unfollowed > 0 {
            caveats.push(format!(
                "{} redirects to other hosts were not followed",
                self.ended.unfollowed
            ));
        }
        caveats
    }

    /// Endpoints without a slow request, if others have some.
    fn never_slow(&self) -> Option<String> {
        let groups = &self.summary.endpoints;
        let is_never = |group| self.summary.slow_of(group) == 0;
        let never: Vec<_> = groups.iter().filter(|(_, g)| is_never(g)).collect();
        if never.is_empty() || never.len() == groups.len() {
            return None;
        }
        let named = never.iter().take(NAMED_MAX).map(|(endpoint, group)| {
            let count = group.total.count();
            let high = bounds_of_share(0, count).map_or(1.0, |(_, high)| high);
            format!(
                "{} ({count} requests, so at most {:.1} % slow)",
                endpoint.trim_start(),
                high * 100.0
            )
        });
        let named: Vec<String> = named.collect();
        let more = match never.len() - named.len() {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        Some(format!("never slow: {}{more}", named.join(", ")))
    }
}

const PERCENTILES: [(&str, &str, f64); 6] = [
    ("min_ns", "min", 0.0),
    ("p50_ns", "p50", 0.5),
    ("p90_ns", "p90", 0.9),
    ("p99_ns", "p99", 0.99),
    ("p999_ns", "p99.9", 0.999),
    ("max_ns", "max", 1.0),
];

fn request_columns(has_schedule: bool) -> Vec<AnswerColumn> {
    let column = AnswerColumn::new;
    let mut columns = vec![
        column("start_ns", "start", Measure::Time),
        column("total_ns", "total", Measure::Duration),
        column("status", "status", Measure::Id),
        column("outcome", "outcome", Measure::Text),
        column("method", "method", Measure::Text).priority(3),
        column("url", "url", Measure::Path).priority(1),
    ];
    if has_schedule {
        columns.push(column("intended_ns", "intended", Measure::Time).priority(5));
        columns.push(column("response_ns", "from intended", Measure::Duration));
    }
    for name in Phases::NAMES {
        let phase = column(&format!("{name}_ns"), name, Measure::Duration);
        columns.push(phase.priority(2).sparse(true));
    }
    columns.extend([
        column("protocol", "protocol", Measure::Text).priority(6),
        column("sent_bytes", "sent", Measure::Bytes).priority(8),
        column("received_bytes", "received", Measure::Bytes).priority(5),
        column("worker", "thread", Measure::Id).priority(4),
        column("seq", "number", Measure::Id).priority(4),
        column("connection", "conn", Measure::Id).priority(4),
        column("is_reused", "reused", Measure::Text).priority(4),
        column("local", "local", Measure::Text).priority(7),
        column("peer", "peer", Measure::Text).priority(8),
        column("trace_id", "trace", Measure::Text).priority(9),
        column("server_timing", "server timing", Measure::Text)
            .priority(7)
            .sparse(true),
        column("error", "error", Measure::Text).sparse(true),
    ]);
    columns
}

/// Columns of requests with a common property.
fn group_columns() -> [AnswerColumn; 9] {
    let column = AnswerColumn::new;
    [
        column("count", "requests", Measure::Count),
        column("failed", "failed", Measure::Count).priority(2),
        column("slow", "slow", Measure::Count),
        column("slow_ratio", "slow", Measure::Ratio),
        column("slow_ratio_low", "at least", Measure::Ratio).priority(3),
        column("slow_ratio_high", "at most", Measure::Ratio).priority(3),
        column("p50_ns", "p50", Measure::Duration).priority(1),
        column("p99_ns", "p99", Measure::Duration).priority(1),
        column("max_ns", "max", Measure::Duration).priority(1),
    ]
}
