//! Formats numbers for sentences.

use whyslow_model::Ns;
use whyslow_model::text::long_duration;

/// `5.02 s`, `206 ms`, `41.3 µs`: three significant digits; from a minute on `9 h 33 min`.
pub(super) fn time(ns: f64) -> String {
    if let Some(text) = long_duration(ns as Ns) {
        return text;
    }
    let of = |value: f64, unit: &str| {
        let places = match value.abs() {
            far if far >= 99.95 => 0,
            far if far >= 9.995 => 1,
            _ => 2,
        };
        format!("{value:.places$} {unit}")
    };
    match ns.abs() {
        far if far >= 0.9995e9 => of(ns / 1e9, "s"),
        far if far >= 0.9995e6 => of(ns / 1e6, "ms"),
        far if far >= 0.9995e3 => of(ns / 1e3, "µs"),
        _ => format!("{ns:.0} ns"),
    }
}

/// A probability: `p 4e-7`, `p 0.013`.
pub(super) fn p(p: f64) -> String {
    if p < 1e-300 {
        "p < 1e-300".into()
    } else if p < 0.001 {
        format!("p {p:.0e}")
    } else if p < 0.1 {
        format!("p {p:.3}")
    } else {
        format!("p {p:.2}")
    }
}

/// A share: `6.0 %`.
pub(super) fn percent(share: f64) -> String {
    let percent = 100.0 * share;
    if percent >= 9.95 || percent == 0.0 {
        format!("{percent:.0} %")
    } else {
        format!("{percent:.1} %")
    }
}

/// Time since the start: `+12.3 s`.
pub(super) fn after(ts: Ns, begin: Ns) -> String {
    format!("+{}", time((ts - begin) as f64))
}

/// `1 request`, `2 requests`.
pub(super) fn count(count: u64, what: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {what}{plural}")
}

/// `a`, `a and b`, `a, b and c`; more than three are counted.
pub(super) fn list(names: &[String]) -> String {
    match names {
        [] => "none".into(),
        [one] => one.clone(),
        [first @ .., last] if names.len() <= 3 => format!("{} and {last}", first.join(", ")),
        [a, b, rest @ ..] => format!("{a}, {b} and {} more", rest.len()),
    }
}

/// The name at an index, or the index itself if it has none.
pub(super) fn name(names: &[String], place: u32) -> String {
    let known = names.get(place as usize);
    known.cloned().unwrap_or_else(|| format!("#{place}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_said_with_three_figures() {
        let found = [5.02e9, 206e6, 41.26e3, 999.9e6, 12.0, -3.5e6].map(time);
        assert_eq!(
            found,
            ["5.02 s", "206 ms", "41.3 µs", "1.00 s", "12 ns", "-3.50 ms"]
        );
        assert_eq!(
            [3.6e-7, 0.0126, 0.4, 0.0].map(p),
            ["p 4e-7", "p 0.013", "p 0.40", "p < 1e-300"]
        );
        assert_eq!(
            [0.06, 0.5, 0.0, 0.0996].map(percent),
            ["6.0 %", "50 %", "0 %", "10 %"]
        );
        let names = ["a", "b", "c", "d"].map(String::from);
        let lists = [0, 1, 2, 3, 4].map(|count| list(&names[..count]));
        assert_eq!(
            lists,
            ["none", "a", "a and b", "a, b and c", "a, b and 2 more"]
        );
        assert_eq!(
            (name(&names, 1), name(&names, 9)),
            ("b".into(), "#9".into())
        );
        assert_eq!(
            (count(1, "item"), count(2, "item")),
            ("1 item".into(), "2 items".into())
        );
        assert_eq!(after(1_500_000_000, 0), "+1.50 s");
        assert_eq!(after(207_200_000_000_000, 0), "+2 d 9 h 33 min");
    }
}
