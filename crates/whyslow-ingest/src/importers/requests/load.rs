//! Output of `whyslow load`, written while it runs: one line of JSON per request, in order of end.
//!
//! The first line describes the load (`whyslow_load`, the version of the format, is 1), the last
//! one contains the end time and reason. If it is missing, the load was killed; all requests are
//! present except those in flight. Durations are in ns, and `*_ns` of `intended`, `start`, `begin`,
//! `end` are ns since 1970.

use std::collections::VecDeque;

use serde::Deserialize;
use serde_json::Value;
use whyslow_model::Ns;
use whyslow_model::stat::{self, Stat};

use super::lines::Parse;
use super::request::{Outcome, Phase, Request, Role, Times};
use super::values::{MILLISECOND, length, span_id, trace_id};

const VERSION: u64 = 1;
/// Maximum number of phases that a server may report for a request.
const PHASES_MAX: usize = 32;

/// Whether a file starts with the first line of a load.
pub(super) fn is_load(head: &str) -> bool {
    head.starts_with("{\"whyslow_load\":")
}

#[derive(Debug, Default)]
pub(super) struct Load {
    facts: Vec<(&'static str, String)>,
    is_begun: bool,
    is_ended: bool,
}

#[derive(Deserialize)]
struct Line<'a> {
    #[serde(default)]
    seq: Option<i64>,
    worker: Option<i32>,
    intended_ns: Option<Ns>,
    start_ns: Ns,
    #[serde(default)]
    queue_ns: Option<Ns>,
    resolve_ns: Option<Ns>,
    connect_ns: Option<Ns>,
    tls_ns: Option<Ns>,
    send_ns: Option<Ns>,
    wait_ns: Option<Ns>,
    receive_ns: Option<Ns>,
    total_ns: Option<Ns>,
    method: Option<String>,
    url: Option<String>,
    endpoint: Option<String>,
    status: Option<i32>,
    protocol: Option<String>,
    bytes_sent: Option<i64>,
    bytes_received: Option<i64>,
    connection: Option<i64>,
    reused: Option<bool>,
    local: Option<String>,
    peer: Option<String>,
    trace_id: Option<&'a str>,
    span_id: Option<&'a str>,
    outcome: Option<&'a str>,
    error: Option<String>,
    server_timing: Option<String>,
}

#[derive(Deserialize)]
struct Begin {
    whyslow_load: u64,
    host: Option<String>,
    zone: Option<String>,
    #[serde(default)]
    arguments: Vec<String>,
    model: Option<String>,
    threads: Option<Value>,
}

#[derive(Deserialize)]
struct End {
    #[serde(rename = "end_ns")]
    _end_ns: Ns,
    reason: Option<String>,
}

impl Parse for Load {
    fn line(&mut self, line: &str, found: &mut VecDeque<Request>) -> Result<bool, String> {
        if !self.is_begun {
            self.is_begun = true;
            return self.begin(line).map(|()| false);
        }
        if line.starts_with("{\"end_ns\":") {
            let end: End = serde_json::from_str(line).map_err(|error| error.to_string())?;
            self.facts
                .extend(end.reason.map(|reason| ("load_ended", reason)));
            self.is_ended = true;
            return Ok(false);
        }
        let line: Line<'_> = serde_json::from_str(line).map_err(|error| error.to_string())?;
        found.push_back(request(line));
        Ok(true)
    }

    fn remarks(&self) -> Vec<(&'static Stat, u64)> {
        vec![(&stat::REQUESTS_CUT, u64::from(!self.is_ended))]
    }

    fn facts(&self) -> Vec<(&'static str, String)> {
        self.facts.clone()
    }
}

impl Load {
    fn begin(&mut self, line: &str) -> Result<(), String> {
        let begin: Begin = serde_json::from_str(line).map_err(|error| error.to_string())?;
        if begin.whyslow_load != VERSION {
            return Err(format!(
                "unsupported load version {} (supported: {VERSION})",
                begin.whyslow_load
            ));
        }
        let threads = begin.threads.map(|threads| threads.to_string());
        let facts = [
            ("hostname", begin.host),
            ("zone", begin.zone),
            ("load_arguments", Some(begin.arguments.join(" "))),
            ("load_model", begin.model),
            ("load_threads", threads),
        ];
        let facts = facts.into_iter();
        self.facts = facts
            .filter_map(|(key, value)| Some((key, value?)))
            .collect();
        Ok(())
    }
}

fn request(line: Line<'_>) -> Request {
    let present = |ns: Option<Ns>| ns.filter(|ns| *ns >= 0);
    let mut request = Request {
        ts: line.start_ns,
        dur: present(line.total_ns),
        ts_intended: line.intended_ns,
        role: Role::Client,
        source: "load",
        method: line.method.unwrap_or_default(),
        status: line.status,
        error: line.error.unwrap_or_default(),
        connection: line.connection,
        is_reused: line.reused,
        local: line.local.unwrap_or_default(),
        peer: line.peer.unwrap_or_default(),
        worker: line.worker,
        seq: line.seq,
        bytes_sent: line.bytes_sent,
        bytes_received: line.bytes_received,
        times: Times {
            queue: present(line.queue_ns),
            resolve: present(line.resolve_ns),
            connect: present(line.connect_ns),
            tls: present(line.tls_ns),
            send: present(line.send_ns),
            wait: present(line.wait_ns),
            receive: present(line.receive_ns),
        },
        trace: line.trace_id.and_then(trace_id),
        span: line.span_id.and_then(span_id),
        ..Request::default()
    };
    request.set_url(&line.url.unwrap_or_default());
    request.set_protocol(&line.protocol.unwrap_or_default());
    if let Some(endpoint) = line.endpoint {
        request.endpoint = endpoint;
    }
    let named = line.outcome.and_then(Outcome::named);
    let of_status = line.status.map(Outcome::of_status);
    request.outcome = named.or(of_status).unwrap_or_default();
    request.phases = timings(line.server_timing.as_deref().unwrap_or_default());
    // They are part of the time in which the client waited.
    let begin = request.wait_start();
    if let Some(first) = request.phases.first_mut() {
        first.ts = Some(begin);
    }
    request
}

/// `db;dur=53, app;desc="x";dur=47.2` (Server-Timing): durations reported by the server in ms.
fn timings(header: &str) -> Vec<Phase> {
    let parts = header.split(',').take(PHASES_MAX).filter_map(|part| {
        let mut words = part.split(';').map(str::trim);
        let name = words.next().filter(|name| !name.is_empty())?;
        let dur = words.find_map(|word| word.strip_prefix("dur="))?;
        Some(Phase {
            name: format!("server {name}").into(),
            ts: None,
            dur: length(dur.trim_matches('"'), MILLISECOND)?,
        })
    });
    parts.collect()
}
