//! A request as a source tells it.

use std::borrow::Cow;

use whyslow_model::Ns;

/// Side that recorded it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Role {
    /// Sent it.
    Client,
    /// Received it.
    #[default]
    Server,
    /// Answers one by asking another.
    Proxy,
}

impl Role {
    /// As the column `request.role` has it.
    pub fn name(self) -> &'static str {
        match self {
            Role::Client => "client",
            Role::Server => "server",
            Role::Proxy => "proxy",
        }
    }
}

/// How it ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Outcome {
    /// The reply says that it went well.
    Ok,
    /// The answer says so.
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
    /// It took longer than the client waits.
    Timeout,
    /// The TLS handshake failed.
    Tls,
    /// The reply is not of the protocol.
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
    /// As the column `request.outcome` has it.
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

    /// The outcome of that [`Outcome::name`].
    pub fn named(name: &str) -> Option<Outcome> {
        OUTCOMES.into_iter().find(|outcome| outcome.name() == name)
    }

    /// What a status of HTTP says; nginx has 499 for clients that went away, and 0 for those that asked nothing.
    pub fn of_status(status: i32) -> Outcome {
        match status {
            0 | 499 => Outcome::Closed,
            100..400 => Outcome::Ok,
            400.. => Outcome::Error,
            _ => Outcome::Unknown,
        }
    }

    /// What a load generator says of a request without an answer.
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

/// Parts of a request that nearly all clients tell, in their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Times {
    /// Before any work on it began.
    pub queue: Option<Ns>,
    /// Lookup of the host's name.
    pub resolve: Option<Ns>,
    /// Establishing the connection.
    pub connect: Option<Ns>,
    /// TLS handshake.
    pub tls: Option<Ns>,
    /// Writing the request.
    pub send: Option<Ns>,
    /// From then to the first byte of the reply.
    pub wait: Option<Ns>,
    /// From then to the last byte of the reply.
    pub receive: Option<Ns>,
}

/// Another part of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Phase {
    /// Name of the phase, as the source has it.
    pub name: Cow<'static, str>,
    /// Begin; null where it follows the part before.
    pub ts: Option<Ns>,
    /// Length in ns.
    pub dur: Ns,
}

/// Columns are those of the table `request`, times in ns; what is not told is null or empty.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Request {
    /// When it began, ns since the epoch.
    pub ts: Ns,
    /// Length in ns.
    pub dur: Option<Ns>,
    /// When it should have begun, of load with a schedule.
    pub ts_intended: Option<Ns>,
    /// Side that recorded it.
    pub role: Role,
    /// As the column `request.source` has it: `load`, or the form of the file.
    pub source: &'static str,
    /// `HTTP/1.1`, `kafka`, …
    pub protocol: String,
    /// Request method.
    pub method: String,
    /// Host that was addressed.
    pub host: String,
    /// Path without its query, or name of the operation.
    pub endpoint: String,
    /// Path and query.
    pub target: String,
    /// Status of the reply.
    pub status: Option<i32>,
    /// How it ended.
    pub outcome: Outcome,
    /// What went wrong, in the words of the source.
    pub error: String,
    /// Address or name of the client.
    pub client: String,
    /// Number of the connection, unique in its source.
    pub connection: Option<i64>,
    /// Whether an earlier request had used the connection.
    pub is_reused: Option<bool>,
    /// Address and port of this side.
    pub local: String,
    /// Address and port of the other side.
    pub peer: String,
    /// Worker of the load.
    pub worker: Option<i32>,
    /// Number that the source gave it.
    pub seq: Option<i64>,
    /// Bytes that this side sent.
    pub bytes_sent: Option<i64>,
    /// Bytes that this side received.
    pub bytes_received: Option<i64>,
    /// Standard phases.
    pub times: Times,
    /// Two halves.
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
    /// Path and query; the endpoint is the path.
    pub(super) fn set_target(&mut self, target: &str) {
        let path = target.split(['?', '#']).next().unwrap_or_default();
        path.clone_into(&mut self.endpoint);
        target.clone_into(&mut self.target);
    }

    /// `https://host:8443/path?query`; one without a scheme is a path.
    pub(super) fn set_url(&mut self, url: &str) {
        let Some((_, rest)) = url.split_once("://") else {
            return self.set_target(url);
        };
        let at = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, target) = rest.split_at(at);
        // A name and password are nobody's business.
        let host = authority.rsplit('@').next().unwrap_or_default();
        host.clone_into(&mut self.host);
        self.set_target(if target.is_empty() { "/" } else { target });
    }

    /// The status, and what it says.
    pub(super) fn set_status(&mut self, status: i32) {
        self.status = (status > 0).then_some(status);
        self.outcome = Outcome::of_status(status);
    }

    /// `HTTP/2.0` is what it calls itself without a list of its parts.
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

    /// When the first byte of the answer was waited for, as far as parts are told.
    pub(super) fn begin_of_wait(&self) -> Ns {
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

    /// Bytes of its texts, for who holds many.
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
