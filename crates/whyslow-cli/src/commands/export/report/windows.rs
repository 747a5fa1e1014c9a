//! Windows with the same arithmetic as the pages, so that both request the same addresses.

use whyslow_model::Ns;

/// ns since the start of the recording.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Span {
    pub(super) begin: f64,
    pub(super) end: f64,
}

impl Span {
    pub(super) fn of(begin: Ns, end: Ns, origin: Ns) -> Self {
        Self {
            begin: begin.saturating_sub(origin) as f64,
            end: end.saturating_sub(origin) as f64,
        }
    }

    /// With a margin before and after, within the recording.
    pub(super) fn with_margin(self, total: f64) -> Self {
        let margin = ((self.end - self.begin) * 0.15).max(1000.0);
        let (begin, end) = (self.begin - margin, self.end + margin);
        let size = (end - begin).max(10.0).min(total.max(10.0));
        let begin = begin.max(0.0).min((total - size).max(0.0));
        Self {
            begin: round(begin),
            end: round(begin + size),
        }
    }

    /// As in addresses: `+9.3s..+9.5s`.
    pub(super) fn text(self) -> String {
        format!("{}..{}", offset(self.begin), offset(self.end))
    }
}

/// Rounds to the nearest integer, halves up, as browsers do.
fn round(value: f64) -> f64 {
    (value + 0.5).floor()
}

pub(super) fn offset(ns: f64) -> String {
    let ns = round(ns) as i64;
    let (whole, fraction) = (ns / 1_000_000_000, ns % 1_000_000_000);
    let fraction = format!("{fraction:09}");
    match fraction.trim_end_matches('0') {
        "" => format!("+{whole}s"),
        digits => format!("+{whole}.{digits}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_are_written_as_the_pages_write_them() {
        let check = |begin: f64, end: f64, want: &str| assert_eq!(Span { begin, end }.text(), want);
        check(0.0, 1.0, "+0s..+0.000000001s");
        check(
            9_318_016_600.0,
            9_476_109_390.0,
            "+9.3180166s..+9.47610939s",
        );
        check(1e9, 2.5e9, "+1s..+2.5s");
    }

    #[test]
    fn a_margin_stays_within_the_recording() {
        let span = |begin, end| Span { begin, end };
        assert_eq!(
            span(1e6, 2e6).with_margin(1e9),
            span(850_000.0, 2_150_000.0)
        );
        assert_eq!(span(0.0, 1e6).with_margin(1e9), span(0.0, 1_300_000.0));
        assert_eq!(span(0.0, 1e9).with_margin(1e9), span(0.0, 1e9));
    }
}
