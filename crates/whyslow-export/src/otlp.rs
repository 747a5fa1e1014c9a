//! OpenTelemetry spans: long operations with the waits of their threads, in the JSON of the OTLP
//! file exporter, one request per line.
//!
//! <https://opentelemetry.io/docs/specs/otel/protocol/file-exporter/>; attributes have the names of
//! the semantic conventions, or names that start with `whyslow.`.

use std::collections::BTreeMap;
use std::io::Write;
use std::ops::ControlFlow;

use rustc_hash::FxHashMap;
use serde_json::{Value, json};
use whyslow_analysis::{Filter, Kind, LogRow};
use whyslow_model::{Ns, Window};
use whyslow_store::Tables;

use crate::ExportError;
use crate::logged::each_logged;

/// Default minimum duration: shorter operations have no wait worth a span.
const SPAN_MIN: Ns = 1_000_000;
/// Maximum number of operations, which are kept in memory until their waits are known.
const OPERATIONS_MAX: usize = 100_000;
/// Shorter waits are noise.
const WAIT_MIN: Ns = 10_000;

/// Numbers of spans.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Spans {
    /// Spans of operations: the parents.
    pub operations: u64,
    /// Spans of waits: the children.
    pub waits: u64,
    /// Whether the maximum number of operations was exceeded.
    pub is_cut: bool,
}

struct Operation {
    begin: Ns,
    end: Ns,
    name: String,
    path: Option<String>,
    ret: Option<i64>,
    tid: i64,
    comm: String,
    waits: Vec<Wait>,
}

struct Wait {
    begin: Ns,
    end: Ns,
    name: String,
    facts: Vec<(&'static str, Value)>,
}

type Processes = BTreeMap<(i64, String), Vec<Operation>>;

/// Writes the long operations of a window and a filter, by process.
pub fn write_otlp(
    tables: &dyn Tables,
    window: Option<Window>,
    filter: &Filter,
    out: &mut dyn Write,
) -> Result<Spans, ExportError> {
    let mut spans = Spans::default();
    let mut found = operations(tables, window, filter, &mut spans)?;
    states(tables, window, &mut found)?;
    requests(tables, window, &mut found)?;
    let mut processes = Processes::new();
    for ((pid, _), operations) in found {
        for operation in operations {
            let of = (pid, operation.comm.clone());
            processes.entry(of).or_default().push(operation);
        }
    }
    for ((pid, comm), operations) in &processes {
        let mut json_spans = Vec::new();
        for operation in operations {
            spans.operations += 1;
            spans.waits += operation.waits.len() as u64;
            json_spans.extend(operation.spans(*pid));
        }
        let request = json!({"resourceSpans": [{
            "resource": {"attributes": resource(tables, *pid, comm)},
            "scopeSpans": [{
                "scope": {"name": "whyslow", "version": env!("CARGO_PKG_VERSION")},
                "spans": json_spans,
            }],
        }]});
        serde_json::to_writer(&mut *out, &request)?;
        out.write_all(b"\n").map_err(ExportError::Write)?;
    }
    Ok(spans)
}

fn resource(tables: &dyn Tables, pid: i64, comm: &str) -> Vec<Value> {
    let mut attributes = vec![
        attribute("service.name", &json!(comm)),
        attribute("process.executable.name", &json!(comm)),
        attribute("process.pid", &json!(pid)),
        attribute("os.type", &json!("linux")),
    ];
    if let Some(host) = &tables.info().host {
        attributes.push(attribute("host.name", &json!(host)));
    }
    attributes
}

/// Integers are strings in the JSON of protocol buffers.
fn attribute(key: &str, value: &Value) -> Value {
    let value = match value {
        Value::Number(number) => json!({"intValue": number.to_string()}),
        Value::Bool(yes) => json!({"boolValue": yes}),
        Value::String(text) => json!({"stringValue": text}),
        other => json!({"stringValue": other.to_string()}),
    };
    json!({"key": key, "value": value})
}

/// Operations by process and thread, in start order.
type Found = FxHashMap<(i64, i64), Vec<Operation>>;

fn operations(
    tables: &dyn Tables,
    window: Option<Window>,
    filter: &Filter,
    spans: &mut Spans,
) -> Result<Found, ExportError> {
    let filter = Filter {
        dur_min: Some(filter.dur_min.unwrap_or(SPAN_MIN)),
        ..filter.clone()
    };
    let columns = [
        "ts_ns", "dur_ns", "name", "comm", "pid", "tid", "path", "ret",
    ];
    let [ts, dur, name, comm, pid, tid, path, ret] = columns;
    let mut found = Found::default();
    let mut left = OPERATIONS_MAX;
    each_logged(
        tables,
        ("syscall", Kind::Syscalls, window, &filter),
        &columns,
        &mut |row| {
            // Operations without a recorded end have no duration.
            let (Some(begin), Some(dur)) = (row.int(ts), row.int(dur)) else {
                return ControlFlow::Continue(());
            };
            if left == 0 {
                spans.is_cut = true;
                return ControlFlow::Break(());
            }
            left -= 1;
            let of = (row.int(pid).unwrap_or(0), row.int(tid).unwrap_or(0));
            found.entry(of).or_default().push(Operation {
                begin,
                end: begin.saturating_add(dur),
                name: row.text(name).unwrap_or("?").to_owned(),
                path: row.text(path).map(str::to_owned),
                ret: row.int(ret),
                tid: of.1,
                comm: row.text(comm).unwrap_or("?").to_owned(),
                waits: Vec::new(),
            });
            ControlFlow::Continue(())
        },
    )?;
    Ok(found)
}

/// Off-CPU times of threads, below the operation of the thread.
fn states(
    tables: &dyn Tables,
    window: Option<Window>,
    found: &mut Found,
) -> Result<(), ExportError> {
    let columns = ["ts_ns", "dur_ns", "state", "reason", "pid", "tid"];
    let [ts, dur, state, reason, pid, tid] = columns;
    let filter = Filter {
        dur_min: Some(WAIT_MIN),
        ..Filter::default()
    };
    each_logged(
        tables,
        ("thread_state", Kind::States, window, &filter),
        &columns,
        &mut |row| {
            let state = row.text(state).unwrap_or("?");
            if state == "running" {
                return ControlFlow::Continue(());
            }
            let facts = row
                .text(reason)
                .map(|reason| ("whyslow.reason", json!(reason)));
            add(found, row, [ts, dur, pid, tid], &|begin, end| Wait {
                begin,
                end,
                name: state.to_owned(),
                facts: facts.clone().into_iter().collect(),
            });
            ControlFlow::Continue(())
        },
    )?;
    Ok(())
}

/// Block requests of threads, below the operation of the thread.
fn requests(
    tables: &dyn Tables,
    window: Option<Window>,
    found: &mut Found,
) -> Result<(), ExportError> {
    let columns = ["ts_ns", "dur_ns", "op", "dev", "bytes", "pid", "tid"];
    let [ts, dur, op, dev, bytes, pid, tid] = columns;
    each_logged(
        tables,
        ("block_io", Kind::Block, window, &Filter::default()),
        &columns,
        &mut |row| {
            let mut facts = Vec::new();
            facts.extend(row.text(dev).map(|dev| ("system.device", json!(dev))));
            facts.extend(row.int(bytes).map(|bytes| ("whyslow.bytes", json!(bytes))));
            let name = format!("block {}", row.text(op).unwrap_or("?"));
            add(found, row, [ts, dur, pid, tid], &|begin, end| Wait {
                begin,
                end,
                name: name.clone(),
                facts: facts.clone(),
            });
            ControlFlow::Continue(())
        },
    )?;
    Ok(())
}

/// Adds a wait to each overlapping operation of its thread, clipped to it.
fn add(
    found: &mut Found,
    row: &LogRow<'_>,
    [ts, dur, pid, tid]: [&'static str; 4],
    wait: &dyn Fn(Ns, Ns) -> Wait,
) {
    let (Some(begin), Some(dur)) = (row.int(ts), row.int(dur)) else {
        return;
    };
    let of = (row.int(pid).unwrap_or(0), row.int(tid).unwrap_or(0));
    let Some(operations) = found.get_mut(&of) else {
        return;
    };
    let end = begin.saturating_add(dur);
    // A thread is in one call at a time.
    let first = operations.partition_point(|operation| operation.end <= begin);
    for operation in operations[first..]
        .iter_mut()
        .take_while(|one| one.begin < end)
    {
        let (begin, end) = (begin.max(operation.begin), end.min(operation.end));
        operation.waits.push(wait(begin, end));
    }
}

impl Operation {
    /// Its span, followed by the spans of its waits.
    fn spans(&self, pid: i64) -> Vec<Value> {
        // The same recording gives the same ids.
        let own = format!("{pid} {} {} {}", self.tid, self.begin, self.name);
        let trace = number(&own, 32);
        let span = number(&format!("{own} call"), 16);
        let mut attributes = vec![
            attribute("thread.id", &json!(self.tid)),
            attribute("thread.name", &json!(self.comm)),
        ];
        attributes.extend(
            self.path
                .iter()
                .map(|path| attribute("file.path", &json!(path))),
        );
        attributes.extend(self.ret.map(|ret| attribute("whyslow.result", &json!(ret))));
        let status = if self.ret.is_some_and(|ret| ret < 0) {
            2
        } else {
            0
        };
        let mut spans = vec![json!({
            "traceId": trace,
            "spanId": span,
            "name": self.name,
            "kind": 1,
            "startTimeUnixNano": self.begin.to_string(),
            "endTimeUnixNano": self.end.to_string(),
            "attributes": attributes,
            "status": {"code": status},
        })];
        spans.extend(self.waits.iter().enumerate().map(|(at, wait)| {
            let facts = wait.facts.iter();
            let facts: Vec<Value> = facts.map(|(key, value)| attribute(key, value)).collect();
            json!({
                "traceId": trace,
                "spanId": number(&format!("{own} {at}"), 16),
                "parentSpanId": span,
                "name": wait.name,
                "kind": 1,
                "startTimeUnixNano": wait.begin.to_string(),
                "endTimeUnixNano": wait.end.to_string(),
                "attributes": facts,
            })
        }));
        spans
    }
}

/// A hash with this number of hexadecimal digits; never all zeros, which would be an invalid id.
fn number(text: &str, digits: usize) -> String {
    blake3::hash(text.as_bytes()).to_hex()[..digits].to_owned()
}
