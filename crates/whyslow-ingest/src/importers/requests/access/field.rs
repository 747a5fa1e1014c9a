//! Fields of access logs.

/// Unit of a duration or a timestamp.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unit {
    Seconds,
    Milliseconds,
    Microseconds,
}

impl Unit {
    pub(super) fn ns(self) -> f64 {
        match self {
            Unit::Seconds => 1e9,
            Unit::Milliseconds => 1e6,
            Unit::Microseconds => 1e3,
        }
    }
}

/// Format of a timestamp.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Clock {
    /// `26/Nov/2026:12:57:18 +0000`, with or without brackets.
    Common,
    /// `2026-11-26T12:57:18+00:00`.
    Iso,
    Since1970(Unit),
    /// Fraction after the whole second.
    Fraction(Unit),
}

/// Phases of a proxy's upstream request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Upstream {
    Connect,
    Header,
    Response,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Field {
    /// True for the start of the request, false for its end.
    Time(Clock, bool),
    Length(Unit),
    FirstByte(Unit),
    Upstream(Upstream),
    Request,
    Method,
    /// Path and query.
    Target,
    Path,
    Query,
    Protocol,
    Status,
    BytesSent,
    BytesReceived,
    Client,
    ClientPort,
    Local,
    LocalPort,
    Host,
    Connection,
    /// Number of requests on the connection so far: the value is the number of the first request.
    ConnectionRequests(i64),
    /// `X` if the client disconnected.
    Aborted,
    Pid,
    TraceParent,
    Other,
}

impl Field {
    pub(super) fn is_time(self) -> bool {
        matches!(self, Field::Time(clock, _) if !matches!(clock, Clock::Fraction(_)))
    }

    /// May contain several values.
    pub(super) fn is_list(self) -> bool {
        matches!(self, Field::Upstream(_))
    }

    /// For messages.
    pub(super) fn name(self) -> &'static str {
        match self {
            Field::Time(..) => "time",
            Field::Length(_) => "length",
            Field::FirstByte(_) => "first_byte",
            Field::Upstream(Upstream::Connect) => "upstream_connect",
            Field::Upstream(Upstream::Header) => "upstream_header",
            Field::Upstream(Upstream::Response) => "upstream_response",
            Field::Request => "request",
            Field::Method => "method",
            Field::Target => "target",
            Field::Path => "path",
            Field::Query => "query",
            Field::Protocol => "protocol",
            Field::Status => "status",
            Field::BytesSent => "bytes_sent",
            Field::BytesReceived => "bytes_received",
            Field::Client => "client",
            Field::ClientPort => "client_port",
            Field::Local => "local",
            Field::LocalPort => "local_port",
            Field::Host => "host",
            Field::Connection => "connection",
            Field::ConnectionRequests(_) => "connection_requests",
            Field::Aborted => "aborted",
            Field::Pid => "pid",
            Field::TraceParent => "traceparent",
            Field::Other => "other",
        }
    }
}

/// `remote_addr …`, `{remote_addr}…`: the text after `$`.
pub(super) fn nginx_field(text: &str) -> Option<(Field, &str)> {
    let (name, rest) = if let Some(inner) = text.strip_prefix('{') {
        inner.split_once('}')?
    } else {
        let end = text.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        text.split_at(end.unwrap_or(text.len()))
    };
    let field = match name {
        "" => return None,
        // nginx writes the line at the end of the request.
        "time_local" => Field::Time(Clock::Common, false),
        "time_iso8601" => Field::Time(Clock::Iso, false),
        "msec" => Field::Time(Clock::Since1970(Unit::Seconds), false),
        "request_time" => Field::Length(Unit::Seconds),
        "upstream_connect_time" => Field::Upstream(Upstream::Connect),
        "upstream_header_time" => Field::Upstream(Upstream::Header),
        "upstream_response_time" => Field::Upstream(Upstream::Response),
        "request" => Field::Request,
        "request_method" => Field::Method,
        "request_uri" => Field::Target,
        "uri" | "document_uri" => Field::Path,
        "args" | "query_string" => Field::Query,
        "server_protocol" => Field::Protocol,
        "status" => Field::Status,
        "bytes_sent" | "body_bytes_sent" => Field::BytesSent,
        "request_length" => Field::BytesReceived,
        "remote_addr" => Field::Client,
        "remote_port" => Field::ClientPort,
        "server_addr" => Field::Local,
        "server_port" => Field::LocalPort,
        "host" | "http_host" => Field::Host,
        "connection" => Field::Connection,
        "connection_requests" => Field::ConnectionRequests(1),
        "pid" => Field::Pid,
        "http_traceparent" => Field::TraceParent,
        _ => Field::Other,
    };
    Some((field, rest))
}

/// `>s …`, `{User-Agent}i …`: the text after `%`.
pub(super) fn apache_field(text: &str) -> Option<(Field, &str)> {
    // `%!200,304{Referer}i`, `%<s`: conditions, and the original or final request.
    let text = text.trim_start_matches(|c: char| c.is_ascii_digit() || "!,<>".contains(c));
    let (of, text) = match text.strip_prefix('{') {
        Some(inner) => {
            let (of, rest) = inner.split_once('}')?;
            (of, rest)
        }
        None => ("", text),
    };
    if let Some(rest) = text.strip_prefix("^FB") {
        return Some((Field::FirstByte(Unit::Microseconds), rest));
    }
    if let Some(rest) = text.strip_prefix("^ti").or(text.strip_prefix("^to")) {
        return Some((Field::Other, rest));
    }
    let sign = text.chars().next().filter(char::is_ascii_alphabetic)?;
    let field = match (sign, of) {
        ('t', of) => apache_time(of)?,
        ('D', _) | ('T', "us") => Field::Length(Unit::Microseconds),
        ('T', "ms") => Field::Length(Unit::Milliseconds),
        ('T', _) => Field::Length(Unit::Seconds),
        ('r', _) => Field::Request,
        ('m', _) => Field::Method,
        ('U', _) => Field::Path,
        ('q', _) => Field::Query,
        ('H', _) => Field::Protocol,
        ('s', _) => Field::Status,
        ('b' | 'B' | 'O', _) => Field::BytesSent,
        ('I', _) => Field::BytesReceived,
        ('h' | 'a', "" | "c") => Field::Client,
        ('A', _) => Field::Local,
        ('p', "remote") => Field::ClientPort,
        // The other variants print the configured port, which a port mapping may change.
        ('p', "local") => Field::LocalPort,
        ('v' | 'V', _) => Field::Host,
        ('k', _) => Field::ConnectionRequests(0),
        ('X', _) => Field::Aborted,
        ('P', "" | "pid") => Field::Pid,
        ('i', of) if of.eq_ignore_ascii_case("traceparent") => Field::TraceParent,
        ('i', of) if of.eq_ignore_ascii_case("host") => Field::Host,
        _ => Field::Other,
    };
    Some((field, &text[1..]))
}

/// Apache uses the start of the request unless the format selects its end.
fn apache_time(of: &str) -> Option<Field> {
    let (is_begin, of) = match of.split_once(':') {
        Some(("begin", of)) => (true, of),
        Some(("end", of)) => (false, of),
        _ => (true, of),
    };
    let clock = match of {
        "" => Clock::Common,
        "sec" => Clock::Since1970(Unit::Seconds),
        "msec" => Clock::Since1970(Unit::Milliseconds),
        "usec" => Clock::Since1970(Unit::Microseconds),
        "msec_frac" => Clock::Fraction(Unit::Milliseconds),
        "usec_frac" => Clock::Fraction(Unit::Microseconds),
        "%s" => Clock::Since1970(Unit::Seconds),
        // strftime formats; others would need a parser of their own.
        "%d/%b/%Y:%H:%M:%S %z" => Clock::Common,
        "%Y-%m-%dT%H:%M:%S%z" | "%FT%T%z" | "%Y-%m-%d %H:%M:%S %z" | "%F %T %z" => Clock::Iso,
        "%d/%b/%Y:%H:%M:%S" => Clock::Common,
        "%Y-%m-%dT%H:%M:%S" | "%FT%T" | "%Y-%m-%d %H:%M:%S" | "%F %T" => Clock::Iso,
        _ => return None,
    };
    Some(Field::Time(clock, is_begin))
}
