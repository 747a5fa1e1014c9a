//! A request in flight: what is known of it so far, so that it can be reported at any time.

use std::rc::Rc;
use std::sync::Arc;

use crate::clock::Clock;
use crate::row::{Link, Outcome, Phases, Row};
use crate::stream::Marks;
use crate::target::Target;

/// What a request is currently doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Nothing was started.
    Begin,
    Resolve,
    Connect,
    Tls,
    /// The request itself, from its first byte to the last byte of the response.
    Exchange,
}

#[derive(Debug)]
pub(crate) struct InFlight {
    pub(crate) seq: u64,
    pub(crate) worker: u32,
    pub(crate) intended_ns: Option<u64>,
    pub(crate) start_ns: u64,
    pub(crate) target: Arc<Target>,
    pub(crate) trace: Option<(u128, u64)>,
    pub(crate) link: Option<Arc<Link>>,
    pub(crate) marks: Option<Rc<Marks>>,
    pub(crate) is_reused: bool,
    pub(crate) protocol: Option<&'static str>,
    pub(crate) status: Option<u16>,
    pub(crate) server_timing: Option<Box<str>>,
    stage: Stage,
    stage_begin_ns: u64,
    phases: Phases,
}

impl InFlight {
    pub(crate) fn new(seq: u64, worker: u32, start_ns: u64, target: Arc<Target>) -> Self {
        Self {
            seq,
            worker,
            intended_ns: None,
            start_ns,
            target,
            trace: None,
            link: None,
            marks: None,
            is_reused: false,
            protocol: None,
            status: None,
            server_timing: None,
            stage: Stage::Begin,
            stage_begin_ns: start_ns,
            phases: Phases::default(),
        }
    }

    /// The previous stage ends where the next begins.
    pub(crate) fn enter(&mut self, stage: Stage, clock: Clock) {
        // The short time before is counted as part of the next stage.
        if self.stage != Stage::Begin {
            self.leave(clock.now_ns());
        }
        self.stage = stage;
    }

    /// Discards a failed attempt.
    pub(crate) fn restart(&mut self) {
        self.stage = Stage::Begin;
        (self.link, self.marks) = (None, None);
        (self.is_reused, self.protocol) = (false, None);
    }

    fn leave(&mut self, now_ns: u64) {
        let begin = self.stage_begin_ns;
        let length = Some(now_ns.saturating_sub(begin));
        match self.stage {
            Stage::Begin => return,
            Stage::Resolve => self.phases.resolve = length,
            Stage::Connect => self.phases.connect = length,
            Stage::Tls => self.phases.tls = length,
            Stage::Exchange => self.split(begin, now_ns),
        }
        self.stage_begin_ns = now_ns;
    }

    /// Splits the exchange where the request had been sent and where the response began.
    fn split(&mut self, begin: u64, end: u64) {
        let Some(marks) = &self.marks else {
            return;
        };
        let known = |ns: u64| (ns > 0).then_some(ns.clamp(begin, end));
        let first_read = known(marks.first_read_ns.get());
        let Some(sent) = known(marks.last_write_ns.get()) else {
            self.phases.send = Some(end - begin);
            return;
        };
        let answered = first_read.unwrap_or(end);
        // Some servers respond before they have received the whole request.
        let sent = sent.min(answered);
        self.phases.send = Some(sent - begin);
        self.phases.wait = Some(answered - sent);
        self.phases.receive = first_read.map(|first| end - first);
    }

    /// What was missing when the time ran out, for the message.
    pub(crate) fn awaited(&self) -> &'static str {
        let is_answered = self
            .marks
            .as_ref()
            .is_some_and(|marks| marks.first_read_ns.get() > 0);
        match self.stage {
            Stage::Begin | Stage::Connect => "no connection",
            Stage::Resolve => "no address for the name",
            Stage::Tls => "no TLS connection",
            Stage::Exchange if is_answered => "no complete response",
            Stage::Exchange => "no response",
        }
    }

    pub(crate) fn end(mut self, now_ns: u64, outcome: Outcome, error: Option<String>) -> Row {
        self.leave(now_ns);
        let bytes = self.marks.as_ref().map_or((0, 0), |marks| {
            (marks.sent_bytes.get(), marks.received_bytes.get())
        });
        Row {
            seq: self.seq,
            worker: self.worker,
            intended_ns: self.intended_ns,
            start_ns: self.start_ns,
            end_ns: now_ns,
            phases: self.phases,
            target: self.target,
            status: self.status,
            protocol: self.protocol,
            bytes_sent: bytes.0,
            bytes_received: bytes.1,
            connection: self.link,
            is_reused: self.is_reused,
            trace: self.trace,
            outcome,
            error: error.map(String::into_boxed_str),
            server_timing: self.server_timing,
        }
    }
}
