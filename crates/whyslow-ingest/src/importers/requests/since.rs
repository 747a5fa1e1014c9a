//! What load generators list that count time from the begin of the load: hey (`-o csv`), oha (`--output-format csv`).
//!
//! They write it when the load ends, so the end of the last request is when the file was written. Seconds with their
//! fraction; neither lists requests without an answer.

use std::collections::VecDeque;

use whyslow_model::Ns;
use whyslow_model::stat::{self, Stat};

use super::generators::answered;
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
pub(super) enum Whose {
    Hey,
    Oha,
}

#[derive(Debug)]
pub(super) struct Since {
    whose: Whose,
    clock: Clock,
    shift: Shift,
    /// Of the last request so far; lines are not in order of end.
    end: Ns,
    requests: u64,
}

impl Since {
    pub(super) fn new(whose: Whose, shift: Shift) -> Self {
        Self {
            whose,
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
        let mut request = match self.whose {
            Whose::Hey => hey(&texts),
            Whose::Oha => oha(&texts),
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
        return Err("not eight columns".to_owned());
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

/// The delay of the answer is from the begin on, with the lookup and the handshakes in it.
fn oha(fields: &[&str]) -> Result<Request, String> {
    let [begin, resolved, connected, answered, dur, bytes, status] = *fields else {
        return Err("not seven columns".to_owned());
    };
    let mut request = timed("oha", (begin, dur), status)?;
    let (dialed, resolve, connect) = dialed(resolved, connected);
    let answered = seconds(answered)?;
    let rest = request.dur.unwrap_or(0).saturating_sub(answered);
    request.times = Times {
        resolve,
        connect,
        wait: Some(answered.saturating_sub(dialed).max(0)),
        receive: Some(rest.max(0)),
        ..Times::default()
    };
    request.is_reused = Some(dialed == 0);
    request.bytes_received = bytes.parse().ok();
    Ok(request)
}

fn seconds(text: &str) -> Result<Ns, String> {
    length(text, SECOND).ok_or_else(|| format!("{text:?} is no length"))
}

/// Begin, from that of the load, and length.
fn timed(
    source: &'static str,
    (begin, dur): (&str, &str),
    status: &str,
) -> Result<Request, String> {
    let status = status
        .parse()
        .map_err(|_| format!("{status:?} is no status"))?;
    Ok(answered(
        source,
        (seconds(begin)?, seconds(dur)?),
        status,
        "",
    ))
}

/// All that came before the request was sent, and its parts: one that took no time was not made.
fn dialed(resolved: &str, connected: &str) -> (Ns, Option<Ns>, Option<Ns>) {
    let resolve = length(resolved, SECOND).unwrap_or(0);
    let dialed = length(connected, SECOND).unwrap_or(0).max(resolve);
    let made = |ns: Ns| (ns > 0).then_some(ns);
    (dialed, made(resolve), made(dialed - resolve))
}
