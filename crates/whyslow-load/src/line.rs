//! The spool line of a request, a JSON object.
//!
//! Formatted by hand, because a load writes tens of thousands of lines per second while it sends
//! requests. Parts that many lines share are formatted once, by serde.

use serde::Serialize;

use crate::row::{Link, Row};
use crate::target::Target;

/// A part of an object, with a comma before each of its keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Part(Box<str>);

impl Part {
    fn of(pairs: &[(&str, &str)]) -> Self {
        let pairs = pairs.iter();
        let texts: Vec<String> = pairs
            .map(|(key, value)| format!(",\"{key}\":{}", json(value)))
            .collect();
        Self(texts.concat().into())
    }

    pub(crate) fn of_target(method: &str, url: &str, endpoint: &str) -> Self {
        Self::of(&[("method", method), ("url", url), ("endpoint", endpoint)])
    }

    pub(crate) fn of_link(local: &str, peer: &str) -> Self {
        Self::of(&[("local", local), ("peer", peer)])
    }
}

/// A string can always be formatted.
fn json(value: &(impl Serialize + ?Sized)) -> String {
    serde_json::to_string(value).unwrap_or_else(|_| "null".to_owned())
}

/// Typical size of a line without the part of its target.
const LINE_BYTES: usize = 600;

/// Appends the line of a request.
pub(crate) fn put(lines: &mut Vec<u8>, row: &Row, begin_ns: i64) {
    let moment = |ns: u64| begin_ns.saturating_add(ns as i64);
    let link: Option<&Link> = row.connection.as_deref();
    let target: &Target = &row.target;
    lines.reserve(LINE_BYTES + target.part.0.len());
    let mut line = Line(lines);
    line.text("{\"seq\":");
    line.number(row.seq);
    line.pair(",\"worker\":", Some(row.worker));
    line.pair(",\"intended_ns\":", row.intended_ns.map(moment));
    line.pair(",\"start_ns\":", Some(moment(row.start_ns)));
    if row.is_reused && row.phases.connect.is_none() && row.phases.resolve.is_none() {
        // The common case.
        line.text(",\"resolve_ns\":null,\"connect_ns\":null,\"tls_ns\":null");
    } else {
        line.pair(",\"resolve_ns\":", row.phases.resolve);
        line.pair(",\"connect_ns\":", row.phases.connect);
        line.pair(",\"tls_ns\":", row.phases.tls);
    }
    line.pair(",\"send_ns\":", row.phases.send);
    line.pair(",\"wait_ns\":", row.phases.wait);
    line.pair(",\"receive_ns\":", row.phases.receive);
    line.pair(",\"total_ns\":", Some(row.total_ns()));
    line.text(&target.part.0);
    line.pair(",\"status\":", row.status);
    line.word(",\"protocol\":", row.protocol);
    line.pair(",\"bytes_sent\":", Some(row.bytes_sent));
    line.pair(",\"bytes_received\":", Some(row.bytes_received));
    line.pair(",\"connection\":", link.map(|link| link.number));
    line.text(if row.is_reused {
        ",\"reused\":true"
    } else {
        ",\"reused\":false"
    });
    line.text(link.map_or(",\"local\":null,\"peer\":null", |link| &link.part.0));
    match row.trace {
        Some((trace, span)) => {
            line.text(",\"trace_id\":\"");
            line.hexadecimal((trace >> 64) as u64);
            line.hexadecimal(trace as u64);
            line.text("\",\"span_id\":\"");
            line.hexadecimal(span);
            line.text("\"");
        }
        None => line.text(",\"trace_id\":null,\"span_id\":null"),
    }
    line.word(",\"outcome\":", Some(row.outcome.name()));
    if row.error.is_none() && row.server_timing.is_none() {
        line.text(",\"error\":null,\"server_timing\":null}\n");
    } else {
        line.any(",\"error\":", row.error.as_deref());
        line.any(",\"server_timing\":", row.server_timing.as_deref());
        line.text("}\n");
    }
}

struct Line<'l>(&'l mut Vec<u8>);

impl Line<'_> {
    fn text(&mut self, text: &str) {
        self.0.extend_from_slice(text.as_bytes());
    }

    fn number(&mut self, number: impl itoa::Integer) {
        self.text(itoa::Buffer::new().format(number));
    }

    fn pair(&mut self, key: &str, number: Option<impl itoa::Integer>) {
        self.text(key);
        match number {
            Some(number) => self.number(number),
            None => self.text("null"),
        }
    }

    /// A word of this program, which needs no escaping.
    fn word(&mut self, key: &str, word: Option<&'static str>) {
        self.text(key);
        match word {
            Some(word) => {
                self.text("\"");
                self.text(word);
                self.text("\"");
            }
            None => self.text("null"),
        }
    }

    /// A text from outside.
    fn any(&mut self, key: &str, text: Option<&str>) {
        self.text(key);
        match text {
            Some(text) => self.text(&json(text)),
            None => self.text("null"),
        }
    }

    fn hexadecimal(&mut self, number: u64) {
        self.0.extend_from_slice(&digits(number));
    }
}

/// Sixteen hexadecimal digits.
pub(crate) fn digits(number: u64) -> [u8; 16] {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut digits = [0; 16];
    for (byte, pair) in number
        .to_be_bytes()
        .into_iter()
        .zip(digits.chunks_exact_mut(2))
    {
        pair[0] = DIGITS[usize::from(byte >> 4)];
        pair[1] = DIGITS[usize::from(byte & 15)];
    }
    digits
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::{Value, json};

    use super::*;
    use crate::row::Phases;
    use crate::target::RequestTemplate;

    fn parsed(row: &Row) -> Value {
        let mut lines = b"before\n".to_vec();
        put(&mut lines, row, 1_000);
        let line = lines.strip_prefix(b"before\n").expect("what was there");
        assert_eq!(line.last(), Some(&b'\n'));
        serde_json::from_slice(line).expect("an object")
    }

    #[test]
    fn a_line_is_an_object_with_all_there_is() {
        let template = RequestTemplate::new(Some("PUT"), &[], None).expect("PUT");
        let target = template.target("http://a/%22?x=\\", 1).expect("a target");
        let mut row = Row {
            seq: 7,
            worker: 3,
            start_ns: 5,
            end_ns: 25,
            error: Some("a \"word\"\n\u{1}\u{e9}".into()),
            ..Row::blank(Arc::new(target))
        };
        let nothing = Value::Null;
        assert_eq!(
            parsed(&row),
            json!({
                "seq": 7, "worker": 3, "intended_ns": nothing, "start_ns": 1_005,
                "resolve_ns": nothing, "connect_ns": nothing, "tls_ns": nothing,
                "send_ns": nothing, "wait_ns": nothing, "receive_ns": nothing, "total_ns": 20,
                "method": "PUT", "url": "http://a/%22?x=\\", "endpoint": "/%22",
                "status": nothing, "protocol": nothing, "bytes_sent": 0, "bytes_received": 0,
                "connection": nothing, "reused": false, "local": nothing, "peer": nothing,
                "trace_id": nothing, "span_id": nothing, "outcome": "refused",
                "error": "a \"word\"\n\u{1}\u{e9}", "server_timing": nothing,
            })
        );
        let length = Some(u64::MAX);
        row.phases = Phases {
            resolve: Some(1),
            connect: Some(2),
            tls: Some(3),
            send: Some(4),
            wait: length,
            receive: Some(6),
        };
        (row.intended_ns, row.status, row.protocol) = (Some(4), Some(500), Some("HTTP/2"));
        (row.bytes_sent, row.bytes_received, row.is_reused) = (8, 9, true);
        row.connection = Some(Arc::new(Link::new(12, "[::1]:1".into(), "[::1]:2".into())));
        row.trace = Some((0xabc << 64 | 0xd, 0xe0));
        row.server_timing = Some("db;dur=\"5\"".into());
        let parsed = parsed(&row);
        for (key, expected) in [
            ("intended_ns", json!(1_004)),
            ("tls_ns", json!(3)),
            ("wait_ns", json!(u64::MAX)),
            ("receive_ns", json!(6)),
            ("status", json!(500)),
            ("protocol", json!("HTTP/2")),
            ("bytes_received", json!(9)),
            ("connection", json!(12)),
            ("reused", json!(true)),
            ("local", json!("[::1]:1")),
            ("peer", json!("[::1]:2")),
            ("trace_id", json!("0000000000000abc000000000000000d")),
            ("span_id", json!("00000000000000e0")),
            ("server_timing", json!("db;dur=\"5\"")),
        ] {
            assert_eq!(parsed[key], expected, "{key}");
        }
    }
}
