//! Converts a line of an access log to a request.

use whyslow_model::Ns;

use super::field::{Clock as Written, Field, Upstream};
use super::format::{Format, Server};
use crate::importers::requests::request::{Outcome, Phase, Request, Role};
use crate::importers::requests::values::{self, SECOND, length};
use crate::importers::stamp::{self, Clock, SECOND_NS, Shift, Stamp};

/// Information missing from the lines.
#[derive(Debug, Default)]
pub(super) struct Lacks {
    pub(super) durations: u64,
    pub(super) coarse: u64,
    /// Lines whose request is malformed.
    pub(super) garbage: u64,
}

#[derive(Debug)]
pub(super) struct Reader {
    pub(super) format: Format,
    pub(super) clock: Clock,
    pub(super) shift: Shift,
    pub(super) lacks: Lacks,
}

/// Values collected from the fields of a line.
#[derive(Default)]
struct Line {
    request: Request,
    stamp: Option<(Stamp, bool)>,
    fraction: Option<Ns>,
    is_coarse: bool,
    length: Option<Ns>,
    first_byte: Option<Ns>,
    upstream: [Option<Ns>; 3],
    client_port: String,
    local_port: String,
    query: String,
    is_aborted: bool,
    is_garbage: bool,
}

impl Reader {
    pub(super) fn new(format: Format, shift: Shift) -> Self {
        Self {
            format,
            clock: Clock::default(),
            shift,
            lacks: Lacks::default(),
        }
    }

    /// Whether a line matches this format, judging by its fields.
    pub(super) fn fits(format: &Format, line: &str) -> bool {
        let mut fields = Line::default();
        let read = format.split(line, &mut |field, text| {
            let is_kept = match field {
                // In the notation of nginx.
                Field::Length(_) => text
                    .split_once('.')
                    .is_some_and(|(_, part)| part.len() == 3),
                Field::Status => text.len() == 3,
                Field::BytesSent => text == "-" || text.parse::<u64>().is_ok(),
                Field::Client => !text.is_empty() && !text.contains([' ', '"', '[']),
                _ => true,
            };
            is_kept.then_some(()).ok_or_else(String::new)?;
            fields.field(*field, text)
        });
        read.is_ok() && fields.stamp.is_some()
    }

    pub(super) fn read(&mut self, line: &str) -> Result<Request, String> {
        let mut fields = Line::default();
        self.format
            .split(line, &mut |field, text| fields.field(*field, text))?;
        let (stamp, is_begin) = fields.stamp.ok_or("no time")?;
        let at = self.clock.read(stamp).saturating_add(self.shift.by);
        let at = at.saturating_add(fields.fraction.unwrap_or(0));
        self.lacks.durations += u64::from(fields.length.is_none());
        self.lacks.coarse += u64::from(fields.is_coarse && fields.fraction.is_none());
        self.lacks.garbage += u64::from(fields.is_garbage);
        let mut request = fields.finish();
        request.source = match self.format.server {
            Server::Nginx => "nginx",
            Server::Apache => "apache",
            Server::Either => "access_log",
        };
        let length = request.dur.filter(|_| !is_begin);
        request.ts = at.saturating_sub(length.unwrap_or(0));
        Ok(request)
    }
}

impl Line {
    fn field(&mut self, field: Field, text: &str) -> Result<(), String> {
        // An absent value is a dash, or empty.
        let is_absent = matches!(text, "-" | "");
        let request = &mut self.request;
        match field {
            Field::Time(written, is_begin) => return self.time(written, is_begin, text),
            _ if is_absent => {}
            Field::Length(unit) => {
                let length = length(text, unit.ns());
                self.length = Some(length.ok_or_else(|| wrong(field, text))?);
            }
            Field::FirstByte(unit) => self.first_byte = length(text, unit.ns()),
            Field::Upstream(part) => self.upstream[part as usize] = sum(text),
            Field::Request => self.request_line(text),
            Field::Method => text.clone_into(&mut request.method),
            Field::Target => request.set_target(text),
            Field::Path => text.clone_into(&mut request.endpoint),
            Field::Query => text.clone_into(&mut self.query),
            Field::Protocol => request.set_protocol(text),
            Field::Status => {
                let status = text.parse().map_err(|_| wrong(field, text))?;
                request.set_status(status);
            }
            Field::BytesSent => {
                request.bytes_sent = Some(text.parse().map_err(|_| wrong(field, text))?);
            }
            Field::BytesReceived => {
                request.bytes_received = Some(text.parse().map_err(|_| wrong(field, text))?);
            }
            Field::Client => text.clone_into(&mut request.client),
            Field::ClientPort => text.clone_into(&mut self.client_port),
            Field::Local => text.clone_into(&mut request.local),
            Field::LocalPort => text.clone_into(&mut self.local_port),
            Field::Host => text.clone_into(&mut request.host),
            Field::Connection => request.connection = text.parse().ok(),
            Field::ConnectionRequests(first) => {
                let number: Option<i64> = text.parse().ok();
                request.is_reused = number.map(|number| number > first);
            }
            Field::Aborted => self.is_aborted = text == "X",
            Field::Pid => request.pid = text.parse().ok(),
            Field::TraceParent => trace_parent(text, request),
            Field::Other => {}
        }
        Ok(())
    }

    fn time(&mut self, written: Written, is_begin: bool, text: &str) -> Result<(), String> {
        let text = text.trim_matches(['[', ']']);
        let read = match written {
            Written::Common => common(text),
            Written::Iso => {
                let words: Vec<&str> = text.split_whitespace().take(3).collect();
                stamp::stamp(&words, None).map(|(stamp, _)| stamp)
            }
            Written::Since1970(unit) => since_1970(text, unit.ns()),
            Written::Fraction(unit) => {
                self.fraction = length(text, unit.ns());
                return Ok(());
            }
        };
        let read = read.ok_or_else(|| format!("invalid time {text:?}"))?;
        self.is_coarse = match written {
            Written::Since1970(unit) => unit.ns() >= SECOND && !text.contains('.'),
            _ => true,
        };
        self.stamp = Some((read, is_begin));
        Ok(())
    }

    /// `GET /path?query HTTP/1.1`, or arbitrary data.
    fn request_line(&mut self, text: &str) {
        let request = &mut self.request;
        let (method, rest) = text.split_once(' ').unwrap_or((text, ""));
        let (target, protocol) = rest.rsplit_once(' ').unwrap_or((rest, ""));
        let is_method = method.len() <= 20
            && !method.is_empty()
            && method
                .bytes()
                .all(|byte| byte.is_ascii_uppercase() || byte == b'-');
        if !is_method || target.is_empty() {
            self.is_garbage = true;
            request.outcome = Outcome::Protocol;
            text.clone_into(&mut request.target);
            return;
        }
        method.clone_into(&mut request.method);
        request.set_protocol(protocol);
        if target.contains("://") {
            request.set_url(target);
        } else {
            request.set_target(target);
        }
    }

    fn finish(self) -> Request {
        let mut request = self.request;
        request.dur = self.length;
        if !self.query.is_empty() {
            let query = self.query.trim_start_matches('?');
            request.target = format!("{}?{query}", request.endpoint);
        } else if request.target.is_empty() {
            request.target.clone_from(&request.endpoint);
        }
        request.peer = joined(&request.client, &self.client_port);
        request.local = joined(&request.local, &self.local_port);
        if self.is_garbage {
            request.outcome = Outcome::Protocol;
        }
        if self.is_aborted {
            request.outcome = Outcome::Closed;
        }
        if let Some(first) = self.first_byte {
            request.times.wait = Some(first);
            request.times.receive = request.dur.map(|dur| dur.saturating_sub(first).max(0));
        }
        let [connect, header, response] = self.upstream;
        if response.is_some() {
            request.role = Role::Proxy;
        }
        request.phases = upstream(connect, header, response);
        request
    }
}

fn wrong(field: Field, text: &str) -> String {
    let text: String = text.chars().take(40).collect();
    format!("invalid {}: {text:?}", field.name())
}

/// `address:port`; empty unless both are known.
fn joined(address: &str, port: &str) -> String {
    if address.is_empty() || port.is_empty() {
        return String::new();
    }
    if address.contains(':') {
        format!("[{address}]:{port}")
    } else {
        format!("{address}:{port}")
    }
}

/// nginx's durations of an upstream request count from the same start.
fn upstream(connect: Option<Ns>, header: Option<Ns>, response: Option<Ns>) -> Vec<Phase> {
    let mut before = 0;
    let parts = [
        ("upstream_connect", connect),
        ("upstream_wait", header),
        ("upstream_receive", response),
    ];
    // Without the header time, the rest is one phase.
    let parts = parts.into_iter().filter_map(|(name, until)| {
        let until = until?;
        let dur = until.saturating_sub(before).max(0);
        before = until;
        let name = match name {
            "upstream_receive" if header.is_none() => "upstream",
            name => name,
        };
        let (name, ts) = (name.into(), None);
        Some(Phase { name, ts, dur })
    });
    parts.collect()
}

/// `0.001`, or with several upstream servers `0.001, -, 0.002 : 0.003`.
fn sum(text: &str) -> Option<Ns> {
    let parts = text.split([',', ':', ' ']);
    let lengths = parts.filter_map(|part| length(part, SECOND));
    lengths.reduce(Ns::saturating_add)
}

fn since_1970(text: &str, unit: f64) -> Option<Stamp> {
    // A float is too imprecise for ns since 1970, or for us.
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let whole: Ns = whole.parse().ok()?;
    let whole = whole.checked_mul(unit as Ns)?;
    let fraction = length(&format!("0.{fraction}"), unit)?;
    Some(Stamp::Epoch(whole.checked_add(fraction)?))
}

/// `26/Nov/2026:12:57:18 +0000`.
fn common(text: &str) -> Option<Stamp> {
    const MONTHS: [&str; 12] = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ];
    let (date, rest) = text.split_once(':')?;
    let (time, zone) = rest.split_once(' ').unwrap_or((rest, ""));
    let mut parts = date.split('/');
    let (day, month, year) = (parts.next()?, parts.next()?, parts.next()?);
    let month = MONTHS.iter().position(|name| *name == month)? + 1;
    let day = stamp::date(&format!("{year}-{month:02}-{day}"), None)?;
    let at = day.saturating_add(stamp::time_of_day(time)?);
    match stamp::named_zone(zone) {
        Some(zone) => Some(Stamp::Epoch(at.saturating_sub(zone))),
        None if zone.is_empty() => Some(Stamp::Wall(at)),
        None => None,
    }
}

/// `00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01`: the span is that of the caller.
fn trace_parent(text: &str, request: &mut Request) {
    let mut parts = text.split('-').skip(1);
    let (Some(trace), Some(span)) = (parts.next(), parts.next()) else {
        return;
    };
    request.trace = values::trace_id(trace);
    request.parent_span = values::span_id(span);
}

const _: () = {
    assert!(Upstream::Connect as usize == 0 && Upstream::Response as usize == 2);
    assert!(SECOND_NS == 1_000_000_000);
};
