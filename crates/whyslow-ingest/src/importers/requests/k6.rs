//! k6 (`--out json`, `--out csv`): one value per line; the values of a request are consecutive.
//!
//! `http_reqs` comes first; all of them have the time of the end of the request. `http_req_blocked`
//! is everything before sending, including the handshakes; `http_req_duration` is the rest. CSV
//! times are in whole seconds, unless `K6_CSV_TIME_FORMAT` is set.

use std::borrow::Cow;
use std::collections::VecDeque;

use serde::Deserialize;
use whyslow_model::Ns;
use whyslow_model::stat::{self, Stat};

use super::lines::Parse;
use super::request::{Outcome, Request, Role};
use super::values::{MILLISECOND, fields, length_of, timestamp};

pub(super) fn is_json(head: &str) -> bool {
    let line = head.lines().next().unwrap_or_default();
    line.starts_with("{\"type\":\"Metric\",\"data\":{")
        || line.starts_with("{\"metric\":\"") && line.contains("\"type\":\"Point\"")
}

pub(super) fn is_csv(head: &str) -> bool {
    head.starts_with("metric_name,timestamp,metric_value,")
}

/// A request whose values may be incomplete.
#[derive(Debug, Default)]
struct Open {
    request: Option<Request>,
    end: Ns,
    blocked: Ns,
    duration: Ns,
}

impl Open {
    fn value(&mut self, metric: &str, value: f64) -> bool {
        let Some(request) = &mut self.request else {
            return false;
        };
        let ns = length_of(value, MILLISECOND);
        // A zero duration means an existing connection was used.
        let done = ns.filter(|ns| *ns > 0);
        let times = &mut request.times;
        match metric {
            "http_req_duration" => self.duration = ns.unwrap_or(0),
            "http_req_blocked" => self.blocked = ns.unwrap_or(0),
            "http_req_connecting" => times.connect = done,
            "http_req_tls_handshaking" => times.tls = done,
            "http_req_sending" => times.send = ns,
            "http_req_waiting" => times.wait = ns,
            "http_req_receiving" => times.receive = ns,
            _ => return false,
        }
        true
    }

    fn close(&mut self, found: &mut VecDeque<Request>) {
        let open = std::mem::take(self);
        let Some(mut request) = open.request else {
            return;
        };
        let dur = open.blocked.saturating_add(open.duration);
        request.dur = Some(dur);
        request.ts = open.end.saturating_sub(dur);
        let times = &mut request.times;
        let handshakes = times
            .connect
            .unwrap_or(0)
            .saturating_add(times.tls.unwrap_or(0));
        times.queue = Some(open.blocked.saturating_sub(handshakes).max(0));
        let is_answered = request.status.is_some();
        request.is_reused = is_answered.then_some(times.connect.is_none());
        found.push_back(request);
    }
}

/// Tags of a request.
struct About<'a> {
    method: &'a str,
    url: &'a str,
    name: &'a str,
    protocol: &'a str,
    status: i32,
    error: &'a str,
}

fn begun(about: &About<'_>) -> Request {
    let mut request = Request {
        role: Role::Client,
        source: "k6",
        method: about.method.to_owned(),
        error: about.error.to_owned(),
        ..Request::default()
    };
    request.set_url(about.url);
    // A script may use one name for many URLs.
    if about.name != about.url && !about.name.is_empty() {
        about.name.clone_into(&mut request.endpoint);
    }
    request.set_protocol(about.protocol);
    request.set_status(about.status);
    if about.status == 0 {
        request.outcome = Outcome::of_error(about.error);
    }
    request
}

#[derive(Debug, Default)]
pub(super) struct Json {
    open: Open,
}

#[derive(Deserialize)]
struct Line {
    metric: String,
    #[serde(rename = "type")]
    kind: String,
    data: Point,
}

#[derive(Deserialize)]
struct Point {
    #[serde(default)]
    time: String,
    #[serde(default)]
    value: f64,
    #[serde(default)]
    tags: Option<Tags>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Tags {
    method: String,
    url: String,
    name: String,
    proto: String,
    status: String,
    error: String,
}

impl Parse for Json {
    fn line(&mut self, line: &str, found: &mut VecDeque<Request>) -> Result<bool, String> {
        let line: Line = serde_json::from_str(line).map_err(|error| error.to_string())?;
        if line.kind != "Point" || !line.metric.starts_with("http_req") {
            return Ok(false);
        }
        if line.metric != "http_reqs" {
            self.open.value(&line.metric, line.data.value);
            return Ok(false);
        }
        self.open.close(found);
        let tags = line.data.tags.unwrap_or_default();
        let end = timestamp(&line.data.time).ok_or("invalid time")?;
        let about = About {
            method: &tags.method,
            url: &tags.url,
            name: &tags.name,
            protocol: &tags.proto,
            status: tags.status.parse().unwrap_or(0),
            error: &tags.error,
        };
        self.open.request = Some(begun(&about));
        self.open.end = end;
        Ok(true)
    }

    fn end(&mut self, found: &mut VecDeque<Request>) {
        self.open.close(found);
    }

    fn remarks(&self) -> Vec<(&'static Stat, u64)> {
        Vec::new()
    }
}

#[derive(Debug, Default)]
pub(super) struct Csv {
    open: Open,
    columns: Vec<String>,
    /// Requests with times in whole seconds.
    coarse: u64,
}

/// `unix`, `unix_milli`, `unix_micro` and `unix_nano` are distinguished by magnitude.
fn time(text: &str) -> Option<Ns> {
    let Ok(number) = text.parse::<i64>() else {
        return timestamp(text);
    };
    let unit = match text.len() {
        0..=SECONDS_DIGITS_MAX => 1_000_000_000,
        12..=14 => 1_000_000,
        15..=17 => 1000,
        _ => 1,
    };
    number.checked_mul(unit)
}

/// In seconds, until the year 5138.
const SECONDS_DIGITS_MAX: usize = 11;

impl Parse for Csv {
    fn line(&mut self, line: &str, found: &mut VecDeque<Request>) -> Result<bool, String> {
        let fields = fields(line);
        if self.columns.is_empty() {
            self.columns = fields.into_iter().map(Cow::into_owned).collect();
            return Ok(false);
        }
        let text = |name: &str| {
            let at = self.columns.iter().position(|column| column == name);
            at.and_then(|at| fields.get(at))
                .map_or("", |field| &**field)
        };
        let metric = text("metric_name");
        if !metric.starts_with("http_req") {
            return Ok(false);
        }
        if metric != "http_reqs" {
            let value = text("metric_value");
            let value = value
                .parse()
                .map_err(|_| format!("{value:?} is not a number"))?;
            self.open.value(metric, value);
            return Ok(false);
        }
        let stamp = text("timestamp");
        let end = time(stamp).ok_or("invalid time")?;
        let is_coarse = stamp.len() <= SECONDS_DIGITS_MAX;
        let about = About {
            method: text("method"),
            url: text("url"),
            name: text("name"),
            protocol: text("proto"),
            status: text("status").parse().unwrap_or(0),
            error: text("error"),
        };
        let request = begun(&about);
        self.open.close(found);
        self.open.request = Some(request);
        self.open.end = end;
        self.coarse += u64::from(is_coarse);
        Ok(true)
    }

    fn end(&mut self, found: &mut VecDeque<Request>) {
        self.open.close(found);
    }

    fn remarks(&self) -> Vec<(&'static Stat, u64)> {
        vec![(&stat::REQUEST_TIME_COARSE, self.coarse)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_csv_are_known_by_their_size() {
        let at = 1_795_707_839_189_400_543;
        let check = |text: &str, ns: i64| assert_eq!(time(text), Some(ns), "{text}");
        check("1795707839", at - at % 1_000_000_000);
        check("1795707839189", at - at % 1_000_000);
        check("1795707839189400", at - at % 1000);
        check("1795707839189400543", at);
        check("2026-11-26T15:43:59.189400543Z", at);
        assert_eq!(time("then"), None);
    }
}
