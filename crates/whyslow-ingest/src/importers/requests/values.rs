//! Numbers and durations in the notation of logs.

use std::borrow::Cow;

use whyslow_model::Ns;

use crate::importers::stamp;

/// A duration with fraction, in units of `unit_ns`: `0.005` for seconds, `12.5` for ms. None if it
/// is negative (usually meaning absent), not a number, or out of range.
pub(super) fn length(text: &str, unit_ns: f64) -> Option<Ns> {
    let value: f64 = text.parse().ok()?;
    length_of(value, unit_ns)
}

pub(super) fn length_of(value: f64, unit_ns: f64) -> Option<Ns> {
    let ns = (value * unit_ns).round();
    (0.0..9.0e18).contains(&ns).then_some(ns as Ns)
}

pub(super) const SECOND: f64 = 1e9;
pub(super) const MILLISECOND: f64 = 1e6;

/// A trace id of up to 32 hexadecimal digits.
pub(super) fn trace_id(text: &str) -> Option<(i64, i64)> {
    let is_hex = text.bytes().all(|byte| byte.is_ascii_hexdigit());
    if !is_hex || text.is_empty() || text.len() > 32 {
        return None;
    }
    let whole = u128::from_str_radix(text, 16).ok()?;
    (whole != 0).then_some(((whole >> 64) as i64, whole as i64))
}

/// A span id of up to 16 hexadecimal digits.
pub(super) fn span_id(text: &str) -> Option<i64> {
    let (high, low) = trace_id(text)?;
    (high == 0).then_some(low)
}

/// Fields of a CSV line; quoted fields may contain commas, and `""` is a quote.
pub(in crate::importers) fn fields(line: &str) -> Vec<Cow<'_, str>> {
    let mut fields = Vec::new();
    let mut rest = line;
    loop {
        let Some(quoted) = rest.strip_prefix('"') else {
            let end = rest.find(',').unwrap_or(rest.len());
            fields.push(Cow::Borrowed(&rest[..end]));
            match rest.get(end + 1..) {
                Some(more) => rest = more,
                None => return fields,
            }
            continue;
        };
        let mut text = String::new();
        let mut inner = quoted;
        loop {
            let end = inner.find('"').unwrap_or(inner.len());
            text.push_str(&inner[..end]);
            inner = inner.get(end + 1..).unwrap_or_default();
            match inner.strip_prefix('"') {
                Some(more) => {
                    text.push('"');
                    inner = more;
                }
                None => break,
            }
        }
        fields.push(Cow::Owned(text));
        match inner.find(',') {
            Some(end) => rest = &inner[end + 1..],
            None => return fields,
        }
    }
}

/// `2026-11-26T12:57:18.123456789+01:00`, including its zone.
pub(in crate::importers) fn timestamp(text: &str) -> Option<Ns> {
    let zone = text.rfind(['Z', '+', '-'])?;
    let (time, zone) = text.split_at(zone);
    let (whole, fraction) = time.split_once('.').unwrap_or((time, ""));
    let whole = format!("{whole}{zone}");
    let (stamp::Stamp::Epoch(at), _) = stamp::stamp(&[whole.as_str()], None)? else {
        return None;
    };
    let fraction = length(&format!("0.{fraction}0"), SECOND)?;
    at.checked_add(fraction)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_may_be_quoted() {
        assert_eq!(fields("a,,\"b,\"\"c\"\"\",d"), ["a", "", "b,\"c\"", "d"]);
        assert_eq!(fields(""), [""]);
        assert_eq!(fields("\"a"), ["a"]);
        assert_eq!(fields("a,"), ["a", ""]);
    }

    #[test]
    fn moments_have_fractions_and_zones() {
        let at = 1_795_697_838_250_000_000;
        assert_eq!(timestamp("2026-11-26T12:57:18.25Z"), Some(at));
        assert_eq!(timestamp("2026-11-26T13:57:18.25+01:00"), Some(at));
        assert_eq!(timestamp("2026-11-26T12:57:18Z"), Some(at - 250_000_000));
        assert_eq!(timestamp("2026-11-26"), None);
        assert_eq!(timestamp("é"), None);
    }

    #[test]
    fn lengths_and_ids_are_numbers_or_nothing() {
        assert_eq!(length("0.005", SECOND), Some(5_000_000));
        assert_eq!(length("12.5", MILLISECOND), Some(12_500_000));
        for none in ["-", "", "-1", "1e99", "NaN", "inf", "x"] {
            assert_eq!(length(none, SECOND), None, "{none}");
        }
        let trace = "ffffffffffffffff0000000000000001";
        assert_eq!(trace_id(trace), Some((-1, 1)));
        assert_eq!(trace_id("00"), None);
        assert_eq!(trace_id("+1"), None);
        assert_eq!(span_id("10"), Some(16));
        assert_eq!(span_id(trace), None);
    }
}
