//! Devices that deviate from their peers under the same load, by the tests of `block outliers`.

use whyslow_analysis::{AnalysisError, Kind, Query, Verb, evaluate};
use whyslow_model::Window;
use whyslow_model::answer::{AnswerTable, Value};
use whyslow_store::Tables;

use crate::report::{Actor, ActorKind, Observation, Thing};

/// Columns of a device that the observation includes.
const NUMBERS: [&str; 7] = [
    "count",
    "device_p50_ns",
    "device_p99_ns",
    "device_max_ns",
    "in_flight_p50",
    "relative_risk",
    "median_ratio",
];

/// Devices that stand out, and the requested ones whether they stand out or not.
pub(crate) fn find(
    tables: &dyn Tables,
    window: Option<Window>,
    requested: &[String],
    recording: &str,
) -> Result<Vec<Observation>, AnalysisError> {
    let has_requests = tables.info().tables.get("block_io");
    if has_requests.is_none_or(|table| table.rows == 0) {
        return Ok(Vec::new());
    }
    let mut query = Query::new(Kind::Block, Verb::Outliers);
    query.window = window;
    query.limit = Some(0);
    let answer = evaluate(tables, &query)?;
    let Some(table) = answer.tables.iter().find(|table| table.name == "devices") else {
        return Ok(Vec::new());
    };
    let rows = table.rows.iter().enumerate();
    let found = rows.filter_map(|(place, cells)| {
        let row = Row { table, cells };
        let stands_out = table.outliers.contains(&place);
        let is_requested = row
            .text("dev")
            .is_some_and(|dev| requested.iter().any(|name| name == dev));
        (stands_out || is_requested)
            .then(|| observation(&row, stands_out, answer.window, recording))?
    });
    Ok(found.collect())
}

/// A device's row.
struct Row<'t> {
    table: &'t AnswerTable,
    cells: &'t [Value],
}

impl Row<'_> {
    fn cell(&self, name: &str) -> Option<&Value> {
        let mut columns = self.table.columns.iter();
        let place = columns.position(|column| column.name == name)?;
        self.cells.get(place)
    }

    fn number(&self, name: &str) -> Option<f64> {
        match self.cell(name)? {
            Value::Int(value) => Some(*value as f64),
            Value::Float(value) => Some(*value),
            _ => None,
        }
    }

    fn text(&self, name: &str) -> Option<&str> {
        match self.cell(name)? {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    fn length(&self, name: &str) -> String {
        let ns = self.number(name);
        ns.map_or_else(
            || "unknown".to_owned(),
            |ns| crate::sentence::length(ns as i64),
        )
    }
}

fn observation(
    row: &Row<'_>,
    stands_out: bool,
    window: Option<(i64, i64)>,
    recording: &str,
) -> Option<Observation> {
    let dev = row.text("dev")?;
    let compared = row.text("vs_peers").unwrap_or("cannot compare");
    let figures = format!(
        "{:.0} requests, p50 {}, p99 {}, max {}; {compared}",
        row.number("count").unwrap_or(0.0),
        row.length("device_p50_ns"),
        row.length("device_p99_ns"),
        row.length("device_max_ns"),
    );
    let summary = if stands_out {
        format!(
            "disk {dev} is slower than its peers at the same number of requests in flight: {figures}"
        )
    } else {
        format!("disk {dev} does not stand out: {figures}")
    };
    let kind = if stands_out {
        "misbehaving_disk"
    } else {
        "device"
    };
    let (begin_ns, end_ns) = window.unwrap_or_default();
    let numbers = NUMBERS.iter();
    Some(Observation {
        kind: kind.into(),
        culprit: Actor {
            kind: ActorKind::Device,
            name: dev.to_owned(),
            pid: None,
            tid: None,
            host: None,
        },
        object: Some(Thing {
            kind: "device".into(),
            name: dev.to_owned(),
        }),
        begin_ns,
        end_ns,
        summary,
        numbers: numbers
            .filter_map(|name| Some(((*name).to_owned(), row.number(name)?)))
            .collect(),
        evidence: Vec::new(),
        shown_by: Some(format!("whyslow block outliers {recording}")),
        suggestions: if stands_out {
            crate::advice::on(kind, kind)
        } else {
            Vec::new()
        },
    })
}
