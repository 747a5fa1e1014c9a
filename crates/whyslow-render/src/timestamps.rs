//! Timestamps as text: time of day in the recorded host's zone.

use std::fmt::Write as _;

use whyslow_model::Ns;

use crate::style::TextStyle;

const SECOND: Ns = 1_000_000_000;

/// Format of all timestamps of a column.
#[derive(Debug, Clone, Copy)]
pub(super) struct TimeForm {
    decimals: usize,
    with_date: bool,
}

impl TimeForm {
    /// Enough decimals for every value (0 or all 9, so that printed times can be pasted into `-w`),
    /// and the date if the values or the window span several days, or if no window shows the day.
    pub(super) fn fitting(values: &[Ns], window: Option<(Ns, Ns)>, style: &TextStyle) -> Self {
        let origin = style.rel.unwrap_or(0);
        let is_whole = values.iter().all(|ts| (ts - origin) % SECOND == 0);
        let mut days = values
            .iter()
            .copied()
            .chain(
                window
                    .into_iter()
                    .flat_map(|(begin, end)| [begin, end.saturating_sub(1)]),
            )
            .map(|ts| style.zone.civil(ts).date());
        let first = days.next();
        Self {
            decimals: if is_whole { 0 } else { 9 },
            with_date: window.is_none() || first.is_some_and(|first| days.any(|day| day != first)),
        }
    }

    pub(super) fn print(self, ts: Ns, style: &TextStyle) -> String {
        if let Some(origin) = style.rel {
            return relative(ts.saturating_sub(origin), self.decimals);
        }
        clock_face(ts, style, self.decimals, self.with_date)
    }
}

/// `12:18:50.432`, optionally with the date in front. Decimals are truncated, not rounded, so that
/// a time is never shown later than it was.
pub(super) fn clock_face(ts: Ns, style: &TextStyle, decimals: usize, with_date: bool) -> String {
    let civil = style.zone.civil(ts);
    let mut text = String::new();
    if with_date {
        let _ = write!(text, "{} ", civil.date());
    }
    let _ = write!(
        text,
        "{:02}:{:02}:{:02}",
        civil.hour(),
        civil.minute(),
        civil.second()
    );
    if decimals > 0 {
        let subsecond = format!("{:09}", civil.subsec_nanosecond());
        text.push('.');
        text.push_str(&subsecond[..decimals.min(9)]);
    }
    text
}

fn relative(ns: Ns, decimals: usize) -> String {
    let sign = if ns < 0 { '-' } else { '+' };
    let ns = ns.unsigned_abs();
    let second = SECOND as u64;
    let mut text = format!("{sign}{}", ns / second);
    if decimals > 0 {
        let _ = write!(text, ".{:09}", ns % second);
    }
    text.push('s');
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use whyslow_base::time::Zone;

    #[test]
    fn times_of_a_column_are_written_alike() {
        let montreal = TextStyle {
            zone: Zone::parse("America/Montreal").expect("bundled"),
            ..TextStyle::plain()
        };
        let t = 1_421_342_330_432_950_815;
        let check = |values: &[Ns], style: &TextStyle, want: &[&str]| {
            let form = TimeForm::fitting(values, Some((t, t + 1)), style);
            let got: Vec<String> = values.iter().map(|ts| form.print(*ts, style)).collect();
            assert_eq!(got, want);
        };
        check(&[t], &montreal, &["12:18:50.432950815"]);
        check(&[t], &TextStyle::plain(), &["17:18:50.432950815"]);
        check(&[t - t % SECOND], &montreal, &["12:18:50"]);
        let day = 86_400 * SECOND;
        check(
            &[t, t + day],
            &montreal,
            &[
                "2015-01-15 12:18:50.432950815",
                "2015-01-16 12:18:50.432950815",
            ],
        );
        let rel = TextStyle {
            rel: Some(t),
            ..TextStyle::plain()
        };
        check(
            &[t, t + 5, t - SECOND],
            &rel,
            &["+0.000000000s", "+0.000000005s", "-1.000000000s"],
        );
        check(&[t, t + SECOND], &rel, &["+0s", "+1s"]);
        // Nothing else shows the day.
        let form = TimeForm::fitting(&[t], None, &montreal);
        assert_eq!(form.print(t, &montreal), "2015-01-15 12:18:50.432950815");
    }
}
