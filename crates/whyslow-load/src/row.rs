//! The record of one request.

use std::sync::Arc;

use crate::line::Part;
use crate::target::Target;

/// One request from start to end. Times are ns since the start of the run, on one clock.
#[derive(Debug, Clone)]
pub struct Row {
    /// Number in order of start, from 0.
    pub seq: u64,
    /// Worker that made it, from 0.
    pub worker: u32,
    /// Scheduled start; `None` without a schedule.
    pub intended_ns: Option<u64>,
    /// Actual start: of the lookup, the connection or the request itself, whichever is first.
    pub start_ns: u64,
    /// When the last byte of the response arrived, or the request failed.
    pub end_ns: u64,
    /// How the time between is divided.
    pub phases: Phases,
    /// Where it was sent.
    pub target: Arc<Target>,
    /// Status of the response; `None` without a response.
    pub status: Option<u16>,
    /// `HTTP/1.1`, `HTTP/2`; `None` without a connection.
    pub protocol: Option<&'static str>,
    /// Bytes of plain HTTP including headers, also with TLS.
    pub bytes_sent: u64,
    /// Counted like `bytes_sent`.
    pub bytes_received: u64,
    /// `None` without a connection.
    pub connection: Option<Arc<Link>>,
    /// Whether an earlier request had used the connection.
    pub is_reused: bool,
    /// Trace id and span id that were sent; `None` if none were.
    pub trace: Option<(u128, u64)>,
    /// How it ended.
    pub outcome: Outcome,
    /// Reason of the failure, as text.
    pub error: Option<Box<str>>,
    /// The `Server-Timing` header of the response.
    pub server_timing: Option<Box<str>>,
}

impl Row {
    /// From the actual start to the end.
    pub fn total_ns(&self) -> u64 {
        self.end_ns.saturating_sub(self.start_ns)
    }

    /// From the intended start; the same as [`total_ns`](Self::total_ns) without a schedule.
    pub fn response_ns(&self) -> u64 {
        self.end_ns
            .saturating_sub(self.intended_ns.unwrap_or(self.start_ns))
    }
}

#[cfg(test)]
impl Row {
    /// A request without any result.
    pub(crate) fn blank(target: Arc<Target>) -> Self {
        Self {
            seq: 0,
            worker: 0,
            intended_ns: None,
            start_ns: 0,
            end_ns: 0,
            phases: Phases::default(),
            target,
            status: None,
            protocol: None,
            bytes_sent: 0,
            bytes_received: 0,
            connection: None,
            is_reused: false,
            trace: None,
            outcome: Outcome::Refused,
            error: None,
            server_timing: None,
        }
    }
}

/// A connection, as its requests refer to it.
#[derive(Debug)]
pub struct Link {
    /// Number in order of start, from 0.
    pub number: u64,
    /// Local address and port.
    pub local: String,
    /// Address and port of the server.
    pub peer: String,
    pub(crate) part: Part,
}

impl Link {
    pub(crate) fn new(number: u64, local: String, peer: String) -> Self {
        Self {
            number,
            part: Part::of_link(&local, &peer),
            local,
            peer,
        }
    }
}

/// Durations in ns; `None` for phases that were not reached or not needed. They add up to the
/// total.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Phases {
    /// DNS lookup of the host.
    pub resolve: Option<u64>,
    /// Establishing the TCP connection.
    pub connect: Option<u64>,
    /// TLS handshake.
    pub tls: Option<u64>,
    /// Writing the request.
    pub send: Option<u64>,
    /// From then to the first byte of the response.
    pub wait: Option<u64>,
    /// From then to the last byte of the response.
    pub receive: Option<u64>,
}

impl Phases {
    /// Names of the phases, as in column `request_phase.phase`.
    pub const NAMES: [&str; 6] = ["resolve", "connect", "tls", "send", "wait", "receive"];

    /// In the order of [`NAMES`](Self::NAMES).
    pub fn all(&self) -> [Option<u64>; 6] {
        [
            self.resolve,
            self.connect,
            self.tls,
            self.send,
            self.wait,
            self.receive,
        ]
    }
}

/// How a request ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Outcome {
    /// Response with a status below 400.
    Ok,
    /// Response with an error status: 400 and above.
    Error,
    /// The name has no address.
    Unresolved,
    /// The server refused the connection.
    Refused,
    /// No route to the server.
    Unreachable,
    /// The server or the network reset the connection.
    Reset,
    /// The server closed the connection before the end of the response.
    Closed,
    /// It took longer than [`Plan::timeout`](crate::Plan::timeout).
    Timeout,
    /// No TLS connection: the certificate has expired, is unknown or was issued for another host.
    Tls,
    /// The response is not HTTP.
    Protocol,
    /// Another error on the client side.
    Failed,
    /// In flight when the run was interrupted.
    Cut,
}

impl Outcome {
    /// As in column `request.outcome`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Error => "error",
            Self::Unresolved => "unresolved",
            Self::Refused => "refused",
            Self::Unreachable => "unreachable",
            Self::Reset => "reset",
            Self::Closed => "closed",
            Self::Timeout => "timeout",
            Self::Tls => "tls",
            Self::Protocol => "protocol",
            Self::Failed => "failed",
            Self::Cut => "cut",
        }
    }
}
