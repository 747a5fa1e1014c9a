//! HAR 1.2, what browsers and proxies save of their requests.
//!
//! Times of parts are ms, -1 where there was none; `connect` has the handshake of TLS in it, which is taken out.

use serde_json::Value;

use super::document::{Told, list, text};
use super::request::{Outcome, Request, Role, Times};
use super::values::{MILLISECOND, length_of, moment, span_id, trace_id};

pub(super) fn is_har(head: &str) -> bool {
    let begin: String = head
        .chars()
        .filter(|c| !c.is_whitespace())
        .take(400)
        .collect();
    // Others log values of `log`, too.
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

pub(super) fn take(document: &Value, told: &mut Told) {
    let Some(log) = document.get("log") else {
        return told.tell_bad("no log");
    };
    for (number, entry) in list(log, "entries").iter().enumerate() {
        match request(entry) {
            Some(request) => told.requests.push(request),
            None => told.tell_bad(&format!(
                "entry {} has no startedDateTime or request",
                number + 1
            )),
        }
    }
}

fn request(entry: &Value) -> Option<Request> {
    let ts = moment(text(entry, "startedDateTime"))?;
    let (asked, answer) = (entry.get("request")?, &entry["response"]);
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
        method: text(asked, "method").to_owned(),
        error: text(entry, "_error").to_owned(),
        connection: text(entry, "connection").parse().ok(),
        bytes_sent: sum(asked),
        bytes_received: sum(answer),
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
    request.set_url(text(asked, "url"));
    let protocol = text(answer, "httpVersion");
    request.set_protocol(if protocol.is_empty() {
        text(asked, "httpVersion")
    } else {
        protocol
    });
    let status = answer["status"]
        .as_i64()
        .and_then(|status| i32::try_from(status).ok());
    request.set_status(status.unwrap_or(0));
    if request.status.is_none() {
        request.outcome = Outcome::of_error(text(entry, "_error"));
    }
    text(entry, "serverIPAddress").clone_into(&mut request.peer);
    let mut headers = list(asked, "headers").iter();
    let parent = headers.find(|header| text(header, "name").eq_ignore_ascii_case("traceparent"));
    let mut parts = parent
        .map_or("", |header| text(header, "value"))
        .split('-')
        .skip(1);
    request.trace = parts.next().and_then(trace_id);
    request.span = parts.next().and_then(span_id);
    Some(request)
}

/// Headers and body; null where neither is known.
fn sum(of: &Value) -> Option<i64> {
    let sizes = ["headersSize", "bodySize"].map(|name| of[name].as_i64().filter(|size| *size >= 0));
    sizes.into_iter().flatten().reduce(i64::saturating_add)
}
