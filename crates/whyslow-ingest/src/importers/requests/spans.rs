//! Trace spans: OTLP/JSON (also one value per line, as written by the collector), Jaeger's and
//! Zipkin's JSON.
//!
//! A server or client span is a request of that side. An internal span is a phase of the request
//! that it belongs to: that of the nearest such ancestor. Internal spans without one are counted,
//! not used.

use rustc_hash::FxHashMap;
use serde_json::Value;
use whyslow_model::Ns;
use whyslow_model::sort::IndexSort;

use super::document::{Contents, list, text};
use super::request::{Outcome, Phase, Request, Role};
use super::values::{span_id, trace_id};

// Attributes by purpose, the newest convention first.
const WORDS: [&str; 4] = [
    "error.message",
    "exception.message",
    "otel.status_description",
    "error.type",
];
const CLIENTS: [&str; 4] = [
    "client.address",
    "http.client_ip",
    "net.sock.peer.addr",
    "net.peer.ip",
];
const HOSTS: [&str; 4] = [
    "server.address",
    "http.host",
    "net.peer.name",
    "net.host.name",
];
const SYSTEMS: [&str; 4] = [
    "rpc.system",
    "db.system.name",
    "db.system",
    "messaging.system",
];

/// Maximum number of ancestors that are followed.
const DEPTH_MAX: usize = 64;

pub(super) fn is_otlp(head: &str) -> bool {
    starts_with(head, "{\"resourceSpans\":[")
}

pub(super) fn is_jaeger(head: &str) -> bool {
    starts_with(head, "{\"data\":[{\"traceID\":")
        || starts_with(head, "{\"data\":[{\"spans\":[{\"traceID\":")
}

/// A list of spans, whose keys are in any order.
pub(super) fn is_zipkin(head: &str) -> bool {
    (starts_with(head, "[{\"") || starts_with(head, "[[{\""))
        && head.contains("\"traceId\"")
        && head.contains("\"id\"")
        && (head.contains("\"localEndpoint\"") || head.contains("\"duration\""))
}

fn starts_with(head: &str, with: &str) -> bool {
    let mut begin = head.chars().filter(|c| !c.is_whitespace());
    with.chars().all(|c| begin.next() == Some(c))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Kind {
    #[default]
    Internal,
    Server,
    Client,
}

impl Kind {
    /// The consumer of a message serves the request of its producer.
    fn named(name: &str) -> Kind {
        let name = name.trim_start_matches("SPAN_KIND_");
        match name.to_ascii_lowercase().as_str() {
            "server" | "consumer" => Kind::Server,
            "client" | "producer" => Kind::Client,
            _ => Kind::Internal,
        }
    }
}

#[derive(Debug, Default)]
struct Span {
    trace: (i64, i64),
    id: i64,
    parent: Option<i64>,
    name: String,
    kind: Kind,
    ts: Ns,
    dur: Option<Ns>,
    is_error: bool,
    service: String,
    peer: String,
    about: FxHashMap<String, String>,
}

impl Span {
    /// The first of these attributes that is present; conventions have renamed some.
    fn about(&self, keys: &[&str]) -> &str {
        let found = keys.iter().find_map(|key| self.about.get(*key));
        found.map_or("", String::as_str)
    }
}

/// All spans of a file: a parent may follow its children.
#[derive(Debug, Default)]
pub(super) struct Spans {
    spans: Vec<Span>,
}

impl Spans {
    pub(super) fn otlp(&mut self, document: &Value, contents: &mut Contents) {
        for resource in list(document, "resourceSpans") {
            let service = attributes(list(&resource["resource"], "attributes"));
            let service = service.get("service.name").cloned().unwrap_or_default();
            let scopes = list(resource, "scopeSpans");
            let old = list(resource, "instrumentationLibrarySpans");
            for span in scopes
                .iter()
                .chain(old)
                .flat_map(|scope| list(scope, "spans"))
            {
                self.add(otlp(span, &service), contents);
            }
        }
    }

    pub(super) fn jaeger(&mut self, document: &Value, contents: &mut Contents) {
        for trace in list(document, "data") {
            for span in list(trace, "spans") {
                let process = &trace["processes"][text(span, "processID")];
                self.add(jaeger(span, text(process, "serviceName")), contents);
            }
        }
    }

    pub(super) fn zipkin(&mut self, document: &Value, contents: &mut Contents) {
        for item in document.as_array().into_iter().flatten() {
            // Several traces are nested lists.
            match item.as_array() {
                Some(trace) => trace
                    .iter()
                    .for_each(|span| self.add(zipkin(span), contents)),
                None => self.add(zipkin(item), contents),
            }
        }
    }

    fn add(&mut self, span: Option<Span>, contents: &mut Contents) {
        if let Some(span) = span {
            self.spans.push(span);
        } else {
            let number = self.spans.len() as u64 + contents.bad + 1;
            contents.add_bad(&format!("span {number} has no trace id, span id or start"));
        }
    }

    /// Converts the spans to requests once all were added.
    pub(super) fn finish(self, source: &'static str, contents: &mut Contents) {
        let key = |span: &Span| (span.trace, span.id);
        // In Zipkin, client and server may share a span id; children belong to the server.
        let mut places: FxHashMap<((i64, i64), i64), usize> = FxHashMap::default();
        for (place, span) in self.spans.iter().enumerate() {
            let known = places.entry(key(span)).or_insert(place);
            if span.kind == Kind::Server {
                *known = place;
            }
        }
        let mut phases: FxHashMap<usize, Vec<Phase>> = FxHashMap::default();
        for span in self.spans.iter().filter(|span| span.kind == Kind::Internal) {
            match (self.owner(span, &places), span.dur) {
                (Some(owner), Some(dur)) => {
                    let (name, ts) = (span.name.clone().into(), Some(span.ts));
                    phases
                        .entry(owner)
                        .or_default()
                        .push(Phase { name, ts, dur });
                    contents.phases += 1;
                }
                _ => contents.alone += 1,
            }
        }
        for (place, span) in self.spans.into_iter().enumerate() {
            if span.kind != Kind::Internal {
                let mut request = request(span, source);
                request.phases = phases.remove(&place).unwrap_or_default();
                request.phases.index_sort_by_key(|phase| phase.ts);
                contents.requests.push(request);
            }
        }
    }

    fn owner(&self, span: &Span, places: &FxHashMap<((i64, i64), i64), usize>) -> Option<usize> {
        let mut parent = span.parent;
        for _ in 0..DEPTH_MAX {
            let place = *places.get(&(span.trace, parent?))?;
            if self.spans[place].kind != Kind::Internal {
                return Some(place);
            }
            parent = self.spans[place].parent;
        }
        None
    }
}

fn request(span: Span, source: &'static str) -> Request {
    let mut request = Request {
        ts: span.ts,
        dur: span.dur,
        source,
        trace: Some(span.trace),
        span: Some(span.id),
        parent_span: span.parent,
        peer: span.peer.clone(),
        ..Request::default()
    };
    set_target(&span, &mut request);
    let status = span.about(&["http.response.status_code", "http.status_code"]);
    match status.parse() {
        Ok(status) => request.set_status(status),
        Err(_) => request.outcome = Outcome::Ok,
    }
    if span.is_error && request.outcome == Outcome::Ok {
        request.outcome = Outcome::Error;
    }
    span.about(&WORDS).clone_into(&mut request.error);
    if span.kind == Kind::Client {
        request.role = Role::Client;
        request.client.clone_from(&span.service);
    } else {
        span.about(&CLIENTS).clone_into(&mut request.client);
    }
    request
}

/// Adds target and protocol of the request.
fn set_target(span: &Span, request: &mut Request) {
    let method = span.about(&["http.request.method", "http.method"]);
    method.clone_into(&mut request.method);
    let url = span.about(&["url.full", "http.url"]);
    let path = span.about(&["url.path", "http.target"]);
    let query = span.about(&["url.query"]);
    if !url.is_empty() {
        request.set_url(url);
    } else if query.is_empty() {
        request.set_target(path);
    } else {
        request.set_target(&format!("{path}?{}", query.trim_start_matches('?')));
    }
    if request.host.is_empty() {
        span.about(&HOSTS).clone_into(&mut request.host);
    }
    let route = span.about(&["http.route", "rpc.method"]);
    if !route.is_empty() {
        route.clone_into(&mut request.endpoint);
    } else if request.endpoint.is_empty() {
        request.endpoint.clone_from(&span.name);
    }
    let system = span.about(&SYSTEMS);
    let version = span.about(&["network.protocol.version", "http.flavor"]);
    match (system, version) {
        ("", "") => {}
        ("", "2" | "2.0") => request.set_protocol("HTTP/2"),
        ("", version) => request.set_protocol(&format!("HTTP/{version}")),
        (system, _) => request.set_protocol(system),
    }
}

fn otlp(span: &Value, service: &str) -> Option<Span> {
    // 64-bit numbers are strings in this format.
    let number = |key: &str| -> Option<Ns> {
        let value = span.get(key)?;
        value.as_i64().or_else(|| value.as_str()?.parse().ok())
    };
    let ts = number("startTimeUnixNano")?;
    let kind = match &span["kind"] {
        Value::String(name) => Kind::named(name),
        kind => match kind.as_i64() {
            Some(2 | 5) => Kind::Server,
            Some(3 | 4) => Kind::Client,
            _ => Kind::Internal,
        },
    };
    let status = &span["status"];
    let mut about = attributes(list(span, "attributes"));
    if let Some(words) = status.get("message").and_then(Value::as_str) {
        about.insert("otel.status_description".to_owned(), words.to_owned());
    }
    let is_error =
        status["code"].as_i64() == Some(2) || text(status, "code") == "STATUS_CODE_ERROR";
    let end = number("endTimeUnixNano").filter(|end| *end >= ts);
    Some(Span {
        trace: trace_id(text(span, "traceId"))?,
        id: span_id(text(span, "spanId"))?,
        parent: span_id(text(span, "parentSpanId")),
        name: text(span, "name").to_owned(),
        kind,
        ts,
        dur: end.map(|end| end.saturating_sub(ts)),
        is_error,
        service: service.to_owned(),
        peer: String::new(),
        about,
    })
}

fn attributes(list: &[Value]) -> FxHashMap<String, String> {
    let pairs = list.iter().filter_map(|pair| {
        let value = pair["value"].as_object()?.values().next()?;
        Some((text(pair, "key").to_owned(), plain(value)?))
    });
    pairs.collect()
}

fn plain(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(_) | Value::Bool(_) => Some(value.to_string()),
        _ => None,
    }
}

fn micros(value: &Value) -> Option<Ns> {
    value.as_i64().filter(|us| *us >= 0)?.checked_mul(1000)
}

fn jaeger(span: &Value, service: &str) -> Option<Span> {
    let tags = list(span, "tags").iter();
    let about: FxHashMap<String, String> = tags
        .filter_map(|tag| Some((text(tag, "key").to_owned(), plain(&tag["value"])?)))
        .collect();
    let mut references = list(span, "references").iter();
    let parent = references.find(|reference| text(reference, "refType") == "CHILD_OF");
    let parent = parent.map_or(text(span, "parentSpanID"), |parent| text(parent, "spanID"));
    let kind = about
        .get("span.kind")
        .map_or(Kind::Internal, |kind| Kind::named(kind));
    Some(Span {
        trace: trace_id(text(span, "traceID"))?,
        id: span_id(text(span, "spanID"))?,
        parent: span_id(parent),
        name: text(span, "operationName").to_owned(),
        kind,
        ts: micros(&span["startTime"])?,
        dur: micros(&span["duration"]),
        is_error: about.get("error").is_some_and(|error| error == "true"),
        service: service.to_owned(),
        peer: String::new(),
        about,
    })
}

fn zipkin(span: &Value) -> Option<Span> {
    let tags = span["tags"].as_object().into_iter().flatten();
    let about: FxHashMap<String, String> = tags
        .filter_map(|(key, value)| Some((key.clone(), plain(value)?)))
        .collect();
    let other = &span["remoteEndpoint"];
    let address = Some(text(other, "ipv4")).filter(|text| !text.is_empty());
    let peer = address.zip(other["port"].as_i64());
    Some(Span {
        trace: trace_id(text(span, "traceId"))?,
        id: span_id(text(span, "id"))?,
        parent: span_id(text(span, "parentId")),
        name: text(span, "name").to_owned(),
        kind: Kind::named(text(span, "kind")),
        ts: micros(&span["timestamp"])?,
        dur: micros(&span["duration"]),
        is_error: about.contains_key("error"),
        service: text(&span["localEndpoint"], "serviceName").to_owned(),
        peer: peer.map_or(String::new(), |(address, port)| format!("{address}:{port}")),
        about,
    })
}
