//! Timestamps as text: time of day in the recorded host's zone.

use std::fmt::Write as _;

use whyslow_base::time::Zone;
use whyslow_model::Ns;
use whyslow_model::text::long_duration;

use crate::style::TextStyle;

const SECOND: Ns = 1_000_000_000;
/// Decimals of the seconds of times in headers and sentences.
const MOMENT_DECIMALS: usize = 3;

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

/// A point in time beside others of a window: the date is part of it unless it is on the day on
/// which the window starts.
pub(super) fn beside(ts: Ns, window_begin: Ns, style: &TextStyle, decimals: usize) -> String {
    let is_other_day = style.zone.civil(ts).date() != style.zone.civil(window_begin).date();
    clock_face(ts, style, decimals, is_other_day)
}

/// The same for sentences: `12:18:50.432`, `2015-01-17 12:18:50.432`.
pub fn moment(ts: Ns, window_begin: Ns, zone: &Zone) -> String {
    let style = TextStyle::of_zone(zone.clone());
    beside(ts, window_begin, &style, MOMENT_DECIMALS)
}

/// Start and end of a window: `2015-01-15 12:18:37.216 .. 12:18:53.821 -05:00`; of several days, the
/// end has its date, too, and its offset if that changed.
pub(super) fn range((begin, end): (Ns, Ns), style: &TextStyle) -> String {
    let [first, last] = [begin, end].map(|ts| style.zone.offset(ts));
    let first_offset = if first == last {
        String::new()
    } else {
        format!(" {first}")
    };
    format!(
        "{}{first_offset} .. {} {last}",
        clock_face(begin, style, MOMENT_DECIMALS, true),
        beside(end, begin, style, MOMENT_DECIMALS),
    )
}

/// Length of a window: `16.605 s`, `2 d 9 h 33 min`.
pub(super) fn length(ns: Ns) -> String {
    long_duration(ns).unwrap_or_else(|| format!("{:.3} s", ns as f64 / 1e9))
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

    #[test]
    fn another_day_than_that_of_the_start_has_its_date() {
        let zone = Zone::parse("America/Montreal").expect("bundled");
        let begin = 1_421_342_330_432_950_815;
        assert_eq!(moment(begin + 5 * SECOND, begin, &zone), "12:18:55.432");
        let later = begin + 207_200 * SECOND;
        assert_eq!(moment(later, begin, &zone), "2015-01-17 21:52:10.432");
        // The day depends on the zone.
        let evening = begin + 6 * 3600 * SECOND;
        assert_eq!(moment(evening, begin, &zone), "18:18:50.432");
        assert_eq!(moment(evening, begin, &Zone::utc()), "23:18:50.432");
        let night = evening + 3600 * SECOND;
        assert_eq!(moment(night, begin, &zone), "19:18:50.432");
        assert_eq!(
            moment(night, begin, &Zone::utc()),
            "2015-01-16 00:18:50.432"
        );
        let style = TextStyle::of_zone(zone);
        assert_eq!(
            range((begin, begin + SECOND), &style),
            "2015-01-15 12:18:50.432 .. 12:18:51.432 -05:00"
        );
        assert_eq!(
            range((begin, later), &style),
            "2015-01-15 12:18:50.432 .. 2015-01-17 21:52:10.432 -05:00"
        );
        // The clock changed in March.
        let summer = begin + 90 * 86_400 * SECOND;
        assert_eq!(
            range((begin, summer), &style),
            "2015-01-15 12:18:50.432 -05:00 .. 2015-04-15 13:18:50.432 -04:00"
        );
        assert_eq!(length(16_605_000_000), "16.605 s");
        assert_eq!(length(207_200 * SECOND), "2 d 9 h 33 min");
    }

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
