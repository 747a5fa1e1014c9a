//! Devices that deviate from their peers under the same load, by the tests of `block outliers`.

use whyslow_analysis::outliers::driver;
use whyslow_analysis::{AnalysisError, Kind, Query, Verb, evaluate};
use whyslow_model::Window;
use whyslow_model::answer::{AnswerTable, Value};
use whyslow_store::Tables;

use crate::report::{Actor, ActorKind, Observation, Thing};

/// Columns of a device that the observation includes.
const NUMBERS: [&str; 8] = [
    "count",
    "device_p50_ns",
    "device_p90_ns",
    "device_p99_ns",
    "device_max_ns",
    "in_flight_p50",
    "relative_risk",
    "median_ratio",
];

/// Devices that stand out, those that differ from one or two peers, and the requested ones whether they stand out or not.
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
    let devices: Vec<Row<'_>> = table
        .rows
        .iter()
        .map(|cells| Row { table, cells })
        .collect();
    let found = devices.iter().enumerate().filter_map(|(place, row)| {
        let about = if table.outliers.contains(&place) {
            About::StandsOut
        } else if let Some(difference) = difference(row, &devices) {
            About::Differs(difference)
        } else {
            let dev = row.text("dev")?;
            let is_requested = requested.iter().any(|name| name == dev);
            if !is_requested {
                return None;
            }
            About::Requested
        };
        observation(row, &about, answer.window, recording)
    });
    Ok(found.collect())
}

/// What is known about a device.
enum About {
    /// It deviates from its peers by a test.
    StandsOut,
    /// It has too few peers for a test, and is slower than these.
    Differs(String),
    /// It was queried.
    Requested,
}

/// With more peers there is a test.
const FEW_PEERS: usize = 2;
/// A difference between few devices is reported if each has at least this many requests, …
const FEW_REQUESTS: f64 = 30.0;
/// … one has a 90th percentile of at least this many times that of each peer …
const FEW_TIMES: f64 = 3.0;
/// … and of at least this, …
const FEW_NS: f64 = 5_000_000.0;
/// … and at most this many times as many requests in flight.
const FEW_IN_FLIGHT: f64 = 2.0;

/// How a device differs from one or two peers, which are too few to test which one is unusual.
fn difference(row: &Row<'_>, devices: &[Row<'_>]) -> Option<String> {
    let dev = row.text("dev")?;
    let peers: Vec<&Row<'_>> = devices
        .iter()
        .filter(|other| {
            other
                .text("dev")
                .is_some_and(|name| name != dev && driver(name) == driver(dev))
        })
        .filter(|other| other.number("count").unwrap_or(0.0) > 0.0)
        .collect();
    if peers.is_empty() || peers.len() > FEW_PEERS {
        return None;
    }
    let (p90, in_flight) = (row.number("device_p90_ns")?, row.number("in_flight_p50")?);
    let is_enough = |row: &Row<'_>| {
        row.number("count")
            .is_some_and(|count| count >= FEW_REQUESTS)
    };
    let is_slower = |peer: &&Row<'_>| {
        let (theirs, busy) = (peer.number("device_p90_ns"), peer.number("in_flight_p50"));
        is_enough(peer)
            && theirs.is_some_and(|theirs| p90 >= FEW_TIMES * theirs)
            && busy.is_some_and(|busy| in_flight <= FEW_IN_FLIGHT * busy.max(1.0))
    };
    if p90 < FEW_NS || !is_enough(row) || !peers.iter().all(is_slower) {
        return None;
    }
    let figures = |row: &Row<'_>| {
        format!(
            "{} (p50 {}, max {}, n = {:.0})",
            row.length("device_p90_ns"),
            row.length("device_p50_ns"),
            row.length("device_max_ns"),
            row.number("count").unwrap_or(0.0),
        )
    };
    let theirs = peers.iter().map(|peer| {
        let name = peer.text("dev").unwrap_or("?");
        format!("{} of {name}", figures(peer))
    });
    let theirs: Vec<String> = theirs.collect();
    Some(format!(
        "p90 {} against {}; {} disks are too few to test which one is unusual",
        figures(row),
        theirs.join(" and "),
        peers.len() + 1
    ))
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
    about: &About,
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
    let (kind, summary) = match about {
        About::StandsOut => (
            "misbehaving_disk",
            format!(
                "disk {dev} is slower than its peers at the same number of requests in flight: {figures}"
            ),
        ),
        About::Differs(difference) => (
            "device_differs",
            format!("disk {dev} may be slower than its peers (low confidence): {difference}"),
        ),
        // What was not tested may stand out.
        About::Requested if compared.starts_with("cannot compare") => {
            ("device", format!("disk {dev}: {figures}"))
        }
        About::Requested => (
            "device",
            format!("disk {dev} does not stand out: {figures}"),
        ),
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
        suggestions: match about {
            About::StandsOut => crate::advice::on(kind, kind),
            About::Differs(_) => crate::advice::on("misbehaving_disk", "misbehaving_disk"),
            About::Requested => Vec::new(),
        },
    })
}
