//! Devices that deviate from their peers under the same load, by the tests of `block outliers`.

use whyslow_analysis::{AnalysisError, Kind, Question, Verb, ask};
use whyslow_model::Window;
use whyslow_model::answer::{AnswerTable, Value};
use whyslow_store::Tables;

use crate::report::{Actor, ActorKind, Finding, Thing};

/// Numbers of a device that are handed on.
const NUMBERS: [&str; 7] = [
    "count",
    "device_p50_ns",
    "device_p99_ns",
    "device_max_ns",
    "in_flight_p50",
    "relative_risk",
    "median_ratio",
];

/// Those that stand out; of devices asked for by name also what the tests say where they do not.
pub(crate) fn find(
    tables: &dyn Tables,
    window: Option<Window>,
    asked: &[String],
    recording: &str,
) -> Result<Vec<Finding>, AnalysisError> {
    let has_requests = tables.info().tables.get("block_io");
    if has_requests.is_none_or(|table| table.rows == 0) {
        return Ok(Vec::new());
    }
    let mut question = Question::new(Kind::Block, Verb::Outliers);
    question.window = window;
    question.limit = Some(0);
    let answer = ask(tables, &question)?;
    let Some(table) = answer.tables.iter().find(|table| table.name == "devices") else {
        return Ok(Vec::new());
    };
    let cell = |row: &[Value], name: &str| {
        let place = table.columns.iter().position(|column| column.name == name);
        place.and_then(|place| row.get(place)).cloned()
    };
    let rows = table.rows.iter().enumerate();
    let found = rows.filter_map(|(place, row)| {
        let Some(Value::Text(dev)) = cell(row, "dev") else {
            return None;
        };
        let stands_out = table.outliers.contains(&place);
        (stands_out || asked.contains(&dev))
            .then(|| tell(&dev, stands_out, (table, row), answer.window, recording))
    });
    Ok(found.collect())
}

fn tell(
    dev: &str,
    stands_out: bool,
    (table, row): (&AnswerTable, &[Value]),
    window: Option<(i64, i64)>,
    recording: &str,
) -> Finding {
    let cell = |name: &str| {
        let place = table.columns.iter().position(|column| column.name == name);
        place.and_then(|place| row.get(place))
    };
    let number = |name: &str| match cell(name) {
        Some(Value::Int(value)) => Some(*value as f64),
        Some(Value::Float(value)) => Some(*value),
        _ => None,
    };
    let length = |name: &str| {
        number(name).map_or_else(|| "unknown".to_owned(), |ns| crate::say::length(ns as i64))
    };
    let compared = match cell("vs_peers") {
        Some(Value::Text(text)) => text.as_str(),
        _ => "cannot compare",
    };
    let count = number("count").unwrap_or(0.0);
    let figures = format!(
        "{count:.0} requests, half within {}, 99 % within {}, the longest {}; {compared}",
        length("device_p50_ns"),
        length("device_p99_ns"),
        length("device_max_ns"),
    );
    let says = if stands_out {
        format!(
            "disk {dev} misbehaves, compared with its peers at the same number of requests in flight: {figures}"
        )
    } else {
        format!("disk {dev} does not stand out: {figures}")
    };
    let advice =
        "look at its health (smartctl, nvme smart-log), its link and its controller; replace it";
    let (begin_ns, end_ns) = window.unwrap_or_default();
    Finding {
        kind: if stands_out {
            "misbehaving_disk"
        } else {
            "device"
        }
        .into(),
        culprit: Actor {
            kind: ActorKind::Device,
            name: dev.to_owned(),
            pid: None,
            tid: None,
        },
        object: Some(Thing {
            kind: "device".into(),
            name: dev.to_owned(),
        }),
        begin_ns,
        end_ns,
        says,
        numbers: NUMBERS
            .iter()
            .filter_map(|name| Some(((*name).to_owned(), number(name)?)))
            .collect(),
        evidence: Vec::new(),
        shown_by: Some(format!("whyslow block outliers {recording}")),
        suggestions: if stands_out {
            vec![advice.to_owned()]
        } else {
            Vec::new()
        },
    }
}
