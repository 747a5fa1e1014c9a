//! Request lists of load generators with times since the start of the load: hey (`-o csv`), oha
//! (`--output-format csv`).
//!
//! They write the list at the end of the load, so the end of the last request is the modification
//! time of the file. Times are seconds with a fraction; requests without a reply are not listed.

use std::collections::VecDeque;

use whyslow_model::Ns;
use whyslow_model::stat::{self, Stat};

use super::generators::client_request;
use super::lines::Parse;
use super::request::{Request, Times};
use super::values::{SECOND, fields, length};
use crate::importers::stamp::{Clock, Shift, Stamp};

const HEY: &str =
    "response-time,DNS+dialup,DNS,Request-write,Response-delay,Response-read,status-code,offset";
const OHA: &str = "request-start,DNS,DNS+dialup,Response-delay,request-duration,bytes,status";

pub(super) fn is_hey(head: &str) -> bool {
    head.starts_with(HEY)
}

pub(super) fn is_oha(head: &str) -> bool {
    head.starts_with(OHA)
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Generator {
    Hey,
    Oha,
}

#[derive(Debug)]
pub(super) struct Since {
    generator: Generator,
    clock: Clock,
    shift: Shift,
    /// End of the last request so far; lines are not in order of end.
    end: Ns,
    requests: u64,
}

impl Since {
    pub(super) fn new(generator: Generator, shift: Shift) -> Self {
        Self {
            generator,
            clock: Clock::default(),
            shift,
            end: 0,
            requests: 0,
        }
    }
}

impl Parse for Since {
    fn line(&mut self, line: &str, found: &mut VecDeque<Request>) -> Result<bool, String> {
        if line == HEY || line == OHA {
            return Ok(false);
        }
        let fields = fields(line);
        let texts: Vec<&str> = fields.iter().map(|field| &**field).collect();
        let mut request = match self.generator {
            Generator::Hey => hey(&texts),
            Generator::Oha => oha(&texts),
        }?;
        let end = request.ts.saturating_add(request.dur.unwrap_or(0));
        self.end = self.end.max(end);
        self.clock.read(Stamp::Since(self.end));
        request.ts = request.ts.saturating_add(self.shift.by);
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

fn hey(fields: &[&str]) -> Result<Request, String> {
    let [dur, connected, resolved, send, wait, receive, status, begin] = *fields else {
        return Err("expected eight columns".to_owned());
    };
    let mut request = timed("hey", (begin, dur), status)?;
    let (dialed, resolve, connect) = dialed(resolved, connected);
    request.times = Times {
        resolve,
        connect,
        send: seconds(send).ok(),
        wait: seconds(wait).ok(),
        receive: seconds(receive).ok(),
        ..Times::default()
    };
    request.is_reused = Some(dialed == 0);
    Ok(request)
}

/// The response delay counts from the start, and includes DNS lookup and handshakes.
fn oha(fields: &[&str]) -> Result<Request, String> {
    let [begin, resolved, connected, delay, dur, bytes, status] = *fields else {
        return Err("expected seven columns".to_owned());
    };
    let mut request = timed("oha", (begin, dur), status)?;
    let (dialed, resolve, connect) = dialed(resolved, connected);
    let delay = seconds(delay)?;
    let rest = request.dur.unwrap_or(0).saturating_sub(delay);
    request.times = Times {
        resolve,
        connect,
        wait: Some(delay.saturating_sub(dialed).max(0)),
        receive: Some(rest.max(0)),
        ..Times::default()
    };
    request.is_reused = Some(dialed == 0);
    request.bytes_received = bytes.parse().ok();
    Ok(request)
}

fn seconds(text: &str) -> Result<Ns, String> {
    length(text, SECOND).ok_or_else(|| format!("invalid duration {text:?}"))
}

/// Start, relative to that of the load, and duration.
fn timed(
    source: &'static str,
    (begin, dur): (&str, &str),
    status: &str,
) -> Result<Request, String> {
    let status = status
        .parse()
        .map_err(|_| format!("invalid status {status:?}"))?;
    Ok(client_request(
        source,
        (seconds(begin)?, seconds(dur)?),
        status,
        "",
    ))
}

/// Time before sending, and its phases: those of zero duration did not occur.
fn dialed(resolved: &str, connected: &str) -> (Ns, Option<Ns>, Option<Ns>) {
    let resolve = length(resolved, SECOND).unwrap_or(0);
    let dialed = length(connected, SECOND).unwrap_or(0).max(resolve);
    let nonzero = |ns: Ns| (ns > 0).then_some(ns);
    (dialed, nonzero(resolve), nonzero(dialed - resolve))
}
