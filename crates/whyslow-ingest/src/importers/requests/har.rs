//! HAR 1.2, as saved by browsers and proxies.
//!
//! Durations of phases are in ms, -1 if absent; `connect` includes the TLS handshake, which is
//! subtracted.

use serde_json::Value;

use super::document::{Contents, list, text};
use super::request::{Outcome, Request, Role, Times};
use super::values::{MILLISECOND, length_of, span_id, timestamp, trace_id};

pub(super) fn is_har(head: &str) -> bool {
    let begin: String = head
        .chars()
        .filter(|c| !c.is_whitespace())
        .take(400)
        .collect();
    // Other programs log values with `log`, too.
    let Some(inner) = begin.strip_prefix("{\"log\":{") else {
        return false;
    };
    let firsts = [
        "\"version\":",
        "\"creator\":{",
        "\"browser\":{",
        "\"pages\":[",
        "\"entries\":[",
        "\"comment\":",
    ];
    firsts.iter().any(|key| inner.starts_with(key))
        && (inner.contains("\"creator\":{") || inner.contains("\"entries\":["))
}

pub(super) fn take(document: &Value, contents: &mut Contents) {
    let Some(log) = document.get("log") else {
        return contents.add_bad("missing `log`");
    };
    for (number, entry) in list(log, "entries").iter().enumerate() {
        match request(entry) {
            Some(request) => contents.requests.push(request),
            None => contents.add_bad(&format!(
                "entry {} has no `startedDateTime` or `request`",
                number + 1
            )),
        }
    }
}

fn request(entry: &Value) -> Option<Request> {
    let ts = timestamp(text(entry, "startedDateTime"))?;
    let (sent, received) = (entry.get("request")?, &entry["response"]);
    let timings = &entry["timings"];
    let part = |name: &str| length_of(timings.get(name)?.as_f64()?, MILLISECOND);
    let (connect, tls) = (part("connect"), part("ssl"));
    let mut request = Request {
        ts,
        dur: entry["time"]
            .as_f64()
            .and_then(|ms| length_of(ms, MILLISECOND)),
        role: Role::Client,
        source: "har",
        method: text(sent, "method").to_owned(),
        error: text(entry, "_error").to_owned(),
        connection: text(entry, "connection").parse().ok(),
        bytes_sent: sum(sent),
        bytes_received: sum(received),
        times: Times {
            queue: part("blocked"),
            resolve: part("dns"),
            connect: connect.map(|ns| ns.saturating_sub(tls.unwrap_or(0)).max(0)),
            tls,
            send: part("send"),
            wait: part("wait"),
            receive: part("receive"),
        },
        ..Request::default()
    };
    request.is_reused = Some(connect.is_none());
    request.set_url(text(sent, "url"));
    let protocol = text(received, "httpVersion");
    request.set_protocol(if protocol.is_empty() {
        text(sent, "httpVersion")
    } else {
        protocol
    });
    let status = received["status"]
        .as_i64()
        .and_then(|status| i32::try_from(status).ok());
    request.set_status(status.unwrap_or(0));
    if request.status.is_none() {
        request.outcome = Outcome::of_error(text(entry, "_error"));
    }
    text(entry, "serverIPAddress").clone_into(&mut request.peer);
    let mut headers = list(sent, "headers").iter();
    let parent = headers.find(|header| text(header, "name").eq_ignore_ascii_case("traceparent"));
    let mut parts = parent
        .map_or("", |header| text(header, "value"))
        .split('-')
        .skip(1);
    request.trace = parts.next().and_then(trace_id);
    request.span = parts.next().and_then(span_id);
    Some(request)
}

/// Headers and body; null if neither is known.
fn sum(of: &Value) -> Option<i64> {
    let sizes = ["headersSize", "bodySize"].map(|name| of[name].as_i64().filter(|size| *size >= 0));
    sizes.into_iter().flatten().reduce(i64::saturating_add)
}
