//! Request logs of Kafka brokers (`kafka.request.logger` at DEBUG): one line per request, written
//! when its response was sent.
//!
//! `Completed request:{…}` is JSON since Kafka 2.8; before, it is the header as text, the request,
//! and its times after `;`. The times of the phases are in ms and add up to the total: in the
//! request queue, in the handler, waiting for other brokers or for data, throttled by a quota, in
//! the response queue, sending.

use std::collections::VecDeque;

use serde_json::Value;
use whyslow_model::Ns;
use whyslow_model::stat::{self, Stat};

use super::lines::Parse;
use super::request::{Outcome, Phase, Request};
use super::values::{MILLISECOND, length, length_of};
use crate::importers::stamp::{self, Clock, Shift, Stamp};

const COMPLETED: &str = "Completed request:";
/// The broker's names, with suffix `Ms` in JSON, and the names used here.
const TIMES: [(&str, &str); 6] = [
    ("requestQueueTime", "request_queue"),
    ("localTime", "local"),
    ("remoteTime", "remote"),
    ("throttleTime", "throttle"),
    ("responseQueueTime", "response_queue"),
    ("sendTime", "response_send"),
];

pub(super) fn is_log(head: &str) -> bool {
    let mut lines = head.lines().take(8);
    lines.any(|line| line.starts_with('[') && line.contains(COMPLETED))
}

#[derive(Debug)]
pub(super) struct Kafka {
    clock: Clock,
    shift: Shift,
    requests: u64,
}

impl Kafka {
    pub(super) fn new(shift: Shift) -> Self {
        Self {
            clock: Clock::default(),
            shift,
            requests: 0,
        }
    }
}

impl Parse for Kafka {
    fn line(&mut self, line: &str, found: &mut VecDeque<Request>) -> Result<bool, String> {
        // Other loggers write to the same file.
        let Some((before, rest)) = line.split_once(COMPLETED) else {
            return Ok(false);
        };
        let stamp = stamped(before).ok_or("missing timestamp")?;
        let mut request = if rest.starts_with('{') {
            json(rest)
        } else {
            words(rest)
        }?;
        let end = self.clock.read(stamp).saturating_add(self.shift.by);
        request.ts = end.saturating_sub(request.dur.unwrap_or(0));
        request.times.queue = request.phases.first().map(|phase| phase.dur);
        self.requests += 1;
        found.push_back(request);
        Ok(true)
    }

    fn clock(&self) -> Option<&Clock> {
        Some(&self.clock)
    }

    fn remarks(&self) -> Vec<(&'static Stat, u64)> {
        let is_guessed = self.shift.is_guessed && self.requests > 0;
        vec![(&stat::REQUEST_ZONE_GUESSED, u64::from(is_guessed))]
    }
}

/// `[2026-11-26 12:57:18,123] DEBUG `.
fn stamped(before: &str) -> Option<Stamp> {
    let inner = before.strip_prefix('[')?.split(']').next()?;
    let words: Vec<&str> = inner.split_whitespace().take(3).collect();
    stamp::stamp(&words, None).map(|(stamp, _)| stamp)
}

fn broker(total: Option<Ns>, phases: Vec<Phase>) -> Request {
    Request {
        dur: total,
        source: "kafka",
        protocol: "kafka".to_owned(),
        phases,
        ..Request::default()
    }
}

/// `127.0.0.1:9092-127.0.0.1:43210-5`: local address, remote address, number of connections between
/// them before.
fn connection(text: &str, request: &mut Request) {
    let mut parts = text.rsplitn(2, '-').skip(1);
    let sides = parts.next().unwrap_or_default();
    if let Some((local, peer)) = sides.split_once('-') {
        local.clone_into(&mut request.local);
        peer.clone_into(&mut request.peer);
    }
}

fn json(text: &str) -> Result<Request, String> {
    // The logger's name follows.
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<Value>();
    let parsed = values.next().ok_or("missing JSON")?;
    let parsed = parsed.map_err(|error| error.to_string())?;
    let ms = |name: &str| {
        let value = parsed.get(format!("{name}Ms"))?.as_f64()?;
        length_of(value, MILLISECOND)
    };
    let phases = TIMES.iter().filter_map(|(name, phase)| {
        let (name, ts, dur) = ((*phase).into(), None, ms(name)?);
        Some(Phase { name, ts, dur })
    });
    let mut request = broker(ms("totalTime"), phases.collect());
    let header = &parsed["requestHeader"];
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    request.endpoint = text(&header["requestApiKeyName"]);
    request.client = text(&header["clientId"]);
    request.seq = header["correlationId"].as_i64();
    connection(
        parsed["connection"].as_str().unwrap_or_default(),
        &mut request,
    );
    request.outcome = Outcome::Ok;
    if let Some(code) = error_code(&parsed["response"], 0) {
        request.outcome = Outcome::Error;
        request.error = format!("error {code}");
    }
    if request.endpoint.is_empty() {
        return Err("missing `requestApiKeyName`".to_owned());
    }
    Ok(request)
}

/// The first error code of a partition or of the response.
fn error_code(value: &Value, depth: u32) -> Option<i64> {
    const DEPTH_MAX: u32 = 16;
    if depth > DEPTH_MAX {
        return None;
    }
    match value {
        Value::Object(map) => map.iter().find_map(|(key, value)| match value.as_i64() {
            Some(code) => (key == "errorCode" && code != 0).then_some(code),
            None => error_code(value, depth + 1),
        }),
        Value::Array(values) => values.iter().find_map(|value| error_code(value, depth + 1)),
        _ => None,
    }
}

/// `RequestHeader(apiKey=FETCH, …, clientId=a, correlationId=7) -- {…} from connection A-B-0;totalTime:1.5,…`.
fn words(text: &str) -> Result<Request, String> {
    let (about, rest) = text
        .rsplit_once(" from connection ")
        .ok_or("no connection")?;
    let (of, times) = rest.split_once(';').ok_or("missing times")?;
    let ms = |name: &str| {
        let mut parts = times.split([',', ' ']);
        let value = parts.find_map(|part| part.strip_prefix(name)?.strip_prefix(':'))?;
        length(value, MILLISECOND)
    };
    let phases = TIMES.iter().filter_map(|(name, phase)| {
        let (name, ts, dur) = ((*phase).into(), None, ms(name)?);
        Some(Phase { name, ts, dur })
    });
    let mut request = broker(ms("totalTime"), phases.collect());
    let header = about.split(" -- ").next().unwrap_or_default();
    let field = |name: &str| {
        let (_, value) = header.split_once(&format!("{name}="))?;
        value.split([',', ')', '}']).next()
    };
    // Older versions print `Name: FetchRequest; …; ClientId: a;`.
    let old = |name: &str| {
        let (_, value) = about.split_once(&format!("{name}: "))?;
        value.split(';').next()
    };
    let endpoint = field("apiKey").or_else(|| old("Name")).ok_or("no apiKey")?;
    endpoint.clone_into(&mut request.endpoint);
    let client = field("clientId").or_else(|| old("ClientId"));
    client.unwrap_or_default().clone_into(&mut request.client);
    let number = field("correlationId").or_else(|| old("CorrelationId"));
    request.seq = number.and_then(|number| number.parse().ok());
    connection(of, &mut request);
    Ok(request)
}
