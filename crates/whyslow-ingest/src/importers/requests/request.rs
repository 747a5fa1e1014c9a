//! A request as recorded by a source.

use std::borrow::Cow;

use whyslow_model::Ns;

/// Side that recorded the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Role {
    /// Sent it.
    Client,
    /// Received it.
    #[default]
    Server,
    /// Received it, and sent a request of its own to answer it.
    Proxy,
}

impl Role {
    /// Value of the column `request.role`.
    pub fn name(self) -> &'static str {
        match self {
            Role::Client => "client",
            Role::Server => "server",
            Role::Proxy => "proxy",
        }
    }
}

/// How the request ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Outcome {
    /// The reply indicates success.
    Ok,
    /// The reply indicates an error.
    Error,
    /// The host name has no address.
    Unresolved,
    /// The connection was refused.
    Refused,
    /// No route to the host.
    Unreachable,
    /// The connection was reset.
    Reset,
    /// The connection was closed before the end of the reply.
    Closed,
    /// The client's timeout expired.
    Timeout,
    /// The TLS handshake failed.
    Tls,
    /// The reply violates the protocol.
    Protocol,
    /// Something else went wrong.
    Failed,
    /// The client was stopped.
    Cut,
    /// The source does not report it.
    #[default]
    Unknown,
}

const OUTCOMES: [Outcome; 13] = [
    Outcome::Ok,
    Outcome::Error,
    Outcome::Unresolved,
    Outcome::Refused,
    Outcome::Unreachable,
    Outcome::Reset,
    Outcome::Closed,
    Outcome::Timeout,
    Outcome::Tls,
    Outcome::Protocol,
    Outcome::Failed,
    Outcome::Cut,
    Outcome::Unknown,
];

impl Outcome {
    /// Value of the column `request.outcome`.
    pub fn name(self) -> &'static str {
        match self {
            Outcome::Ok => "ok",
            Outcome::Error => "error",
            Outcome::Unresolved => "unresolved",
            Outcome::Refused => "refused",
            Outcome::Unreachable => "unreachable",
            Outcome::Reset => "reset",
            Outcome::Closed => "closed",
            Outcome::Timeout => "timeout",
            Outcome::Tls => "tls",
            Outcome::Protocol => "protocol",
            Outcome::Failed => "failed",
            Outcome::Cut => "cut",
            Outcome::Unknown => "unknown",
        }
    }

    /// The outcome with this [`Outcome::name`].
    pub fn named(name: &str) -> Option<Outcome> {
        OUTCOMES.into_iter().find(|outcome| outcome.name() == name)
    }

    /// Outcome of an HTTP status; nginx logs 499 for clients that disconnected, and 0 for those
    /// that sent no request.
    pub fn of_status(status: i32) -> Outcome {
        match status {
            0 | 499 => Outcome::Closed,
            100..400 => Outcome::Ok,
            400.. => Outcome::Error,
            _ => Outcome::Unknown,
        }
    }

    /// Outcome of a load generator's error without a reply.
    pub fn of_error(text: &str) -> Outcome {
        const WORDS: [(&str, Outcome); 14] = [
            ("no such host", Outcome::Unresolved),
            ("name resolution", Outcome::Unresolved),
            ("lookup ", Outcome::Unresolved),
            ("connection refused", Outcome::Refused),
            ("unreachable", Outcome::Unreachable),
            ("no route to host", Outcome::Unreachable),
            ("reset by peer", Outcome::Reset),
            ("broken pipe", Outcome::Reset),
            ("timeout", Outcome::Timeout),
            ("timed out", Outcome::Timeout),
            ("deadline exceeded", Outcome::Timeout),
            ("x509", Outcome::Tls),
            ("tls", Outcome::Tls),
            ("eof", Outcome::Closed),
        ];
        let text = text.to_ascii_lowercase();
        let known = WORDS.iter().find(|(word, _)| text.contains(word));
        known.map_or(Outcome::Failed, |(_, outcome)| *outcome)
    }
}

/// Phases of a request that nearly all clients report, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Times {
    /// Before any work on it started.
    pub queue: Option<Ns>,
    /// DNS lookup of the host name.
    pub resolve: Option<Ns>,
    /// Establishing the connection.
    pub connect: Option<Ns>,
    /// TLS handshake.
    pub tls: Option<Ns>,
    /// Writing the request.
    pub send: Option<Ns>,
    /// Until the first byte of the reply.
    pub wait: Option<Ns>,
    /// Until the last byte of the reply.
    pub receive: Option<Ns>,
}

/// Another phase of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Phase {
    /// Name of the phase in the source.
    pub name: Cow<'static, str>,
    /// Start; null if it follows the previous phase.
    pub ts: Option<Ns>,
    /// Duration in ns.
    pub dur: Ns,
}

/// Fields are those of the table `request`, times in ns; unreported values are null or empty.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Request {
    /// Start, ns since the epoch.
    pub ts: Ns,
    /// Duration in ns.
    pub dur: Option<Ns>,
    /// Scheduled start, for load with a schedule.
    pub ts_intended: Option<Ns>,
    /// Side that recorded it.
    pub role: Role,
    /// Value of the column `request.source`: `load`, or the format of the file.
    pub source: &'static str,
    /// `HTTP/1.1`, `kafka`, …
    pub protocol: String,
    /// Request method.
    pub method: String,
    /// Requested host.
    pub host: String,
    /// Path without its query, or name of the operation.
    pub endpoint: String,
    /// Path and query.
    pub target: String,
    /// Status of the reply.
    pub status: Option<i32>,
    /// How the request ended.
    pub outcome: Outcome,
    /// Error text of the source.
    pub error: String,
    /// Address or name of the client.
    pub client: String,
    /// Number of the connection, unique in its source.
    pub connection: Option<i64>,
    /// Whether an earlier request had used the connection.
    pub is_reused: Option<bool>,
    /// Local address and port.
    pub local: String,
    /// Remote address and port.
    pub peer: String,
    /// Worker of the load generator.
    pub worker: Option<i32>,
    /// Sequence number in the source.
    pub seq: Option<i64>,
    /// Bytes sent by this side.
    pub bytes_sent: Option<i64>,
    /// Bytes received by this side.
    pub bytes_received: Option<i64>,
    /// Standard phases.
    pub times: Times,
    /// High and low half of the trace id.
    pub trace: Option<(i64, i64)>,
    /// Span id in the trace.
    pub span: Option<i64>,
    /// Span id of the request that caused it.
    pub parent_span: Option<i64>,
    /// Kernel process id of this side.
    pub pid: Option<i32>,
    /// Kernel thread id of this side.
    pub tid: Option<i32>,
    /// Phases beyond the standard ones.
    pub phases: Vec<Phase>,
}

impl Request {
    /// Sets path and query; the endpoint is the path.
    pub(super) fn set_target(&mut self, target: &str) {
        let path = target.split(['?', '#']).next().unwrap_or_default();
        path.clone_into(&mut self.endpoint);
        target.clone_into(&mut self.target);
    }

    /// `https://host:8443/path?query`; a text without a scheme is a path.
    pub(super) fn set_url(&mut self, url: &str) {
        let Some((_, rest)) = url.split_once("://") else {
            return self.set_target(url);
        };
        let at = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, target) = rest.split_at(at);
        // User name and password are not stored.
        let host = authority.rsplit('@').next().unwrap_or_default();
        host.clone_into(&mut self.host);
        self.set_target(if target.is_empty() { "/" } else { target });
    }

    /// Sets the status and the resulting outcome.
    pub(super) fn set_status(&mut self, status: i32) {
        self.status = (status > 0).then_some(status);
        self.outcome = Outcome::of_status(status);
    }

    /// Normalises the spelling of the protocol version.
    pub(super) fn set_protocol(&mut self, protocol: &str) {
        let protocol = match protocol {
            "HTTP/2.0" | "h2" | "http/2.0" => "HTTP/2",
            "HTTP/3.0" | "h3" => "HTTP/3",
            "http/1.1" => "HTTP/1.1",
            "-" => "",
            other => other,
        };
        protocol.clone_into(&mut self.protocol);
    }

    /// Start of the wait for the first byte of the reply, as far as phases are reported.
    pub(super) fn wait_start(&self) -> Ns {
        let times = &self.times;
        let before = [
            times.queue,
            times.resolve,
            times.connect,
            times.tls,
            times.send,
        ];
        let before = before.into_iter().flatten();
        before.fold(self.ts, Ns::saturating_add)
    }

    /// Bytes of its texts, for memory limits.
    pub fn text_bytes(&self) -> usize {
        let texts = [
            &self.protocol,
            &self.method,
            &self.host,
            &self.endpoint,
            &self.target,
            &self.error,
            &self.client,
            &self.local,
            &self.peer,
        ];
        let phases = self.phases.iter();
        let phases = phases.map(|phase| size_of::<Phase>() + phase.name.len());
        texts.iter().map(|text| text.len()).sum::<usize>() + phases.sum::<usize>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_taken_apart() {
        let check = |url: &str, expected: [&str; 3]| {
            let mut request = Request::default();
            request.set_url(url);
            let seen = [&request.host, &request.target, &request.endpoint];
            assert_eq!(seen, expected.each_ref(), "{url}");
        };
        check("http://a:81/b/c?d=/e#f", ["a:81", "/b/c?d=/e#f", "/b/c"]);
        check("https://u:p@a", ["a", "/", "/"]);
        check("http://[::1]:80?x", ["[::1]:80", "?x", ""]);
        check("/only?a", ["", "/only?a", "/only"]);
        check("", ["", "", ""]);
    }

    #[test]
    fn outcomes_have_names_of_their_own() {
        for outcome in OUTCOMES {
            assert_eq!(Outcome::named(outcome.name()), Some(outcome));
        }
        assert_eq!(Outcome::of_status(204), Outcome::Ok);
        assert_eq!(Outcome::of_status(503), Outcome::Error);
        assert_eq!(Outcome::of_status(-1), Outcome::Unknown);
        let refused = "dial tcp 127.0.0.1:1: connect: connection refused";
        assert_eq!(Outcome::of_error(refused), Outcome::Refused);
        assert_eq!(Outcome::of_error("strange"), Outcome::Failed);
    }
}
