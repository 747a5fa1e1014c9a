//! Numbers and lengths of time as logs write them.

use whyslow_model::Ns;

/// A length with its fraction, in units of so many ns: `0.005` of seconds, `12.5` of ms. None if it is negative
/// (that is how most say that there was none), no number, or beyond all times.
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

/// 32 hexadecimal digits, or fewer: a number of a trace.
pub(super) fn trace_id(text: &str) -> Option<(i64, i64)> {
    let is_hex = text.bytes().all(|byte| byte.is_ascii_hexdigit());
    if !is_hex || text.is_empty() || text.len() > 32 {
        return None;
    }
    let whole = u128::from_str_radix(text, 16).ok()?;
    (whole != 0).then_some(((whole >> 64) as i64, whole as i64))
}

/// 16 hexadecimal digits, or fewer: a number of a span.
pub(super) fn span_id(text: &str) -> Option<i64> {
    let (high, low) = trace_id(text)?;
    (high == 0).then_some(low)
}

#[cfg(test)]
mod tests {
    use super::*;

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
