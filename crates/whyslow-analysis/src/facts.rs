//! Facts shown with a table: what was measured, and statistics of a distribution.

use whyslow_model::answer::{AnswerColumn, AnswerTable, Measure, Value};

use crate::context::Context;
use crate::query::{DeviceRef, Filter};
use whyslow_model::histogram::Histogram;

pub(crate) fn push(
    table: &mut AnswerTable,
    name: &str,
    title: &str,
    measure: Measure,
    value: impl Into<Value>,
) {
    let column = AnswerColumn::new(name, title, measure);
    table.facts.push((name.to_owned(), column, value.into()));
}

/// Filters and measured time. The prefix distinguishes two series of a table.
pub(crate) fn measured(
    context: &Context<'_>,
    filter: &Filter,
    prefix: &str,
    table: &mut AnswerTable,
) {
    let (name, title) = named(prefix, "filter");
    push(
        table,
        &name,
        &title,
        Measure::Text,
        describe(context, filter),
    );
    if table.facts.iter().all(|(name, _, _)| name != "measured_ns") {
        let length = context.span.length();
        push(table, "measured_ns", "measured", Measure::Duration, length);
    }
}

pub(crate) fn distribution(histogram: &Histogram, prefix: &str, table: &mut AnswerTable) {
    let mut fact = |name: &str, value: Value| {
        let measure = if name == "count" {
            Measure::Count
        } else {
            Measure::Duration
        };
        let (mut key, title) = named(prefix, name);
        if measure == Measure::Duration {
            key.push_str("_ns");
        }
        push(table, &key, &title, measure, value);
    };
    let sums = histogram.sums();
    fact("count", (histogram.count() as i64).into());
    fact("min", sums.min().into());
    let percentiles = histogram.percentiles([500, 900, 990, 999]);
    for (name, value) in ["p50", "p90", "p99", "p999"].into_iter().zip(percentiles) {
        fact(name, value.into());
    }
    fact("max", sums.max().into());
    fact("avg", sums.mean().into());
    fact("stdev", sums.stdev().into());
    fact("total", sums.sum().into());
}

fn named(prefix: &str, name: &str) -> (String, String) {
    if prefix.is_empty() {
        (name.to_owned(), name.to_owned())
    } else {
        (format!("{prefix} {name}"), format!("{prefix} {name}"))
    }
}

impl std::fmt::Display for DeviceRef {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            DeviceRef::Name(name) => f.write_str(name),
            DeviceRef::Number { major, minor } => write!(f, "{major}:{minor}"),
        }
    }
}

/// The filter as text, devices with name and number; empty if everything passes.
fn describe(context: &Context<'_>, filter: &Filter) -> String {
    let mut words = Vec::new();
    let mut list = |name: &str, values: Vec<String>| {
        if !values.is_empty() {
            words.push(format!("{name} {}", values.join(",")));
        }
    };
    let numbers = |values: &[i32]| values.iter().map(ToString::to_string).collect();
    list("pid", numbers(&filter.pids));
    list("tid", numbers(&filter.tids));
    list("comm", filter.comms.clone());
    list("threads", filter.threads.clone());
    list("match", filter.frames.clone());
    list("reject", filter.frames_not.clone());
    list("cgroup", filter.cgroups.clone());
    let devices = filter.devices.iter();
    list(
        "dev",
        devices.map(|device| context.names.device(device)).collect(),
    );
    list("file", filter.files.clone());
    list("op", filter.ops.clone());
    list("name", filter.names.clone());
    list("cpu", numbers(&filter.cpus));
    for values in &filter.values {
        list(values.key, values.values.clone());
    }
    let mut bound = |name: &str, value: Option<i64>, unit: &str| {
        words.extend(value.map(|value| format!("{name} {value} {unit}")));
    };
    bound("size", filter.size, "B");
    bound("size >=", filter.size_min, "B");
    bound("size <=", filter.size_max, "B");
    bound("duration >=", filter.dur_min, "ns");
    bound("duration <=", filter.dur_max, "ns");
    if filter.errors_only {
        words.push("errors only".into());
    }
    if filter.no_tracer {
        words.push("without the tracer".into());
    }
    words.join(", ")
}
