use jiff::civil::{Date, DateTime, Time};
use whyslow_model::Ns;

use super::calendar::Calendar;
use super::duration::parse_duration;
use super::fraction::scaled;
use super::zone::Zone;

const SECOND: Ns = 1_000_000_000;

/// A point in time as written, not yet resolved against a recording.
#[derive(Debug, Clone, PartialEq)]
pub enum Moment {
    /// Exact: RFC 3339 with an offset, or a Unix timestamp.
    Absolute(Ns),
    /// A date and a time of day in the recording's zone.
    Civil(DateTime),
    /// A time of day; the date follows from the recording.
    TimeOfDay(Time),
    /// `+3.2s`: after the start of the recording.
    FromStart(Ns),
    /// `-5s`: before the end of the recording.
    FromEnd(Ns),
}

impl Moment {
    /// Parses a time as users type it.
    pub fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        if let Some(rest) = text.strip_prefix('+') {
            return parse_duration(rest).map(Moment::FromStart);
        }
        if let Some(rest) = text.strip_prefix('-') {
            return parse_duration(rest).map(Moment::FromEnd);
        }
        if let Some(ns) = text.strip_suffix("ns").and_then(parse_ns) {
            return Ok(Moment::Absolute(ns));
        }
        if let Some(ns) = parse_epoch(text) {
            return Ok(Moment::Absolute(ns));
        }
        if !text.contains('-')
            && let Some(time) = parse_time(text)
        {
            return Ok(Moment::TimeOfDay(time));
        }
        parse_dated(text).ok_or_else(|| {
            format!(
                "`{text}` is not a time: write it like 12:18:50.432, 2015-01-15 12:18:50, \
                 2015-01-15T12:18:50-05:00, 1421342330.432, +3.2s (after the start) or -5s (before the end)"
            )
        })
    }

    /// Resolves it against a recording. A time of day must occur on exactly one day of the
    /// recording, or is the first one after `after`.
    pub fn resolve(&self, calendar: &Calendar, after: Option<Ns>) -> Result<Ns, String> {
        let too_far = || "the time is outside the years 1677 to 2262".to_owned();
        match self {
            Moment::Absolute(ns) => Ok(*ns),
            Moment::Civil(civil) => calendar.zone.moment(*civil).ok_or_else(too_far),
            Moment::FromStart(ns) => calendar.begin.checked_add(*ns).ok_or_else(too_far),
            Moment::FromEnd(ns) => calendar.end.checked_sub(*ns).ok_or_else(too_far),
            Moment::TimeOfDay(time) => resolve_time_of_day(*time, calendar, after),
        }
    }
}

fn resolve_time_of_day(time: Time, calendar: &Calendar, after: Option<Ns>) -> Result<Ns, String> {
    let first = calendar.zone.civil(calendar.begin).date();
    let last = calendar.zone.civil(calendar.end).date();
    if let Some(after) = after {
        // The end of a window: the first such time of day after its start.
        let day = calendar.zone.civil(after).date();
        return days(day, day.tomorrow().unwrap_or(day))
            .filter_map(|date| calendar.zone.moment(date.to_datetime(time)))
            .find(|&ts| ts >= after)
            .ok_or_else(|| "the time is outside the years 1677 to 2262".to_owned());
    }
    let candidates: Vec<(Date, Ns)> = days(first, last)
        .filter_map(|date| Some((date, calendar.zone.moment(date.to_datetime(time))?)))
        .collect();
    let within = |slack: Ns| -> Vec<(Date, Ns)> {
        let reach = calendar.begin.saturating_sub(slack)..=calendar.end.saturating_add(slack);
        candidates
            .iter()
            .copied()
            .filter(|(_, ts)| reach.contains(ts))
            .collect()
    };
    // Recordings rarely start on a full second: accept `12:18:37` even if the first event is at
    // 12:18:37.2.
    let inside = match within(0) {
        none if none.is_empty() => within(SECOND),
        some => some,
    };
    match inside.as_slice() {
        [(_, ts)] => Ok(*ts),
        // Not in the recording: the query reports that, with the date that was assumed.
        [] => calendar
            .zone
            .moment(first.to_datetime(time))
            .ok_or_else(|| "the time is outside the years 1677 to 2262".to_owned()),
        several => Err(format!(
            "`{}` occurs on {} days of the recording: write the date too, one of {}",
            clock_text(time),
            several.len(),
            list_dates(several.iter().map(|(date, _)| *date)),
        )),
    }
}

/// Dates listed; the rest is only counted.
const DATES_SHOWN: usize = 8;

fn list_dates(dates: impl ExactSizeIterator<Item = Date>) -> String {
    let rest = dates.len().saturating_sub(DATES_SHOWN);
    let shown: Vec<String> = dates
        .take(DATES_SHOWN)
        .map(|date| date.to_string())
        .collect();
    if rest == 0 {
        shown.join(", ")
    } else {
        format!("{} … ({rest} more)", shown.join(", "))
    }
}

fn days(first: Date, last: Date) -> impl Iterator<Item = Date> {
    std::iter::successors(Some(first), |date| date.tomorrow().ok())
        .take_while(move |date| *date <= last)
}

fn clock_text(time: Time) -> String {
    format!(
        "{:02}:{:02}:{:02}",
        time.hour(),
        time.minute(),
        time.second()
    )
}

/// Nanoseconds since the epoch, of any number of digits, as programs write them.
fn parse_ns(digits: &str) -> Option<Ns> {
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| digits.parse().ok())?
}

/// Seconds, milliseconds, microseconds or nanoseconds since the epoch. The number of digits
/// determines the unit: each range spans over a century.
fn parse_epoch(text: &str) -> Option<Ns> {
    let whole = text.split('.').next()?;
    if !whole.bytes().all(|byte| byte.is_ascii_digit()) || whole.len() < 5 {
        return None;
    }
    let scale = match whole.len() {
        ..=11 => SECOND,
        12..=14 => SECOND / 1_000,
        15..=17 => SECOND / 1_000_000,
        _ => 1,
    };
    scaled(text, scale)
}

/// `HH:MM`, `HH:MM:SS`, with any number of decimals.
fn parse_time(text: &str) -> Option<Time> {
    let mut parts = text.split(':');
    let (hour, minute, second) = (parts.next()?, parts.next()?, parts.next().unwrap_or("0"));
    if parts.next().is_some() {
        return None;
    }
    let number = |part: &str| -> Option<i8> {
        let is_digits = part.bytes().all(|byte| byte.is_ascii_digit());
        (is_digits && (1..=2).contains(&part.len())).then(|| part.parse().ok())?
    };
    let whole = second.split('.').next()?;
    let ns = scaled(second, SECOND)?;
    let subsecond = i32::try_from(ns % SECOND).ok()?;
    Time::new(number(hour)?, number(minute)?, number(whole)?, subsecond).ok()
}

/// `YYYY-MM-DD`, optionally followed by a space or `T` and a time, and by an offset or `Z`.
fn parse_dated(text: &str) -> Option<Moment> {
    let (date, rest) = match text.find([' ', 'T', 't']) {
        Some(at) => (&text[..at], text[at + 1..].trim()),
        None => (text, "00:00"),
    };
    let mut parts = date.split('-');
    let (year, month, day) = (parts.next()?, parts.next()?, parts.next()?);
    if parts.next().is_some() || year.len() != 4 {
        return None;
    }
    let date = Date::new(year.parse().ok()?, month.parse().ok()?, day.parse().ok()?).ok()?;
    let (time, zone) = match rest.find(['Z', 'z', '+', '-']) {
        Some(at) if rest[at..].eq_ignore_ascii_case("z") => (&rest[..at], Some(Zone::utc())),
        Some(at) => (&rest[..at], Some(Zone::parse(&rest[at..]).ok()?)),
        None => (rest, None),
    };
    let civil = date.to_datetime(parse_time(time.trim())?);
    match zone {
        Some(zone) => zone.moment(civil).map(Moment::Absolute),
        None => Some(Moment::Civil(civil)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2015-01-15 12:18:37.216484041 .. 12:18:53.821580313 -05:00
    fn one_day() -> Calendar {
        Calendar {
            begin: 1_421_342_317_216_484_041,
            end: 1_421_342_333_821_580_313,
            zone: Zone::parse("-05:00").expect("an offset"),
        }
    }

    fn three_days() -> Calendar {
        let begin = one_day().begin;
        Calendar {
            end: begin + 2 * 86_400 * SECOND,
            ..one_day()
        }
    }

    #[test]
    fn every_way_to_write_a_time_means_the_same_ns() {
        let want = 1_421_342_330_432_950_815;
        for text in [
            "12:18:50.432950815",
            "12:18:50.43295081500000",
            "2015-01-15 12:18:50.432950815",
            "2015-01-15T12:18:50.432950815",
            "2015-01-15T12:18:50.432950815-05:00",
            "2015-01-15T17:18:50.432950815Z",
            "2015-01-15 18:18:50.432950815+0100",
            "1421342330.432950815",
            "1421342330432950815",
            "+13.216466774s",
            "-3.388629498s",
        ] {
            let moment = Moment::parse(text).expect(text);
            assert_eq!(moment.resolve(&one_day(), None), Ok(want), "{text}");
        }
    }

    #[test]
    fn numbers_since_the_epoch_tell_their_unit_by_size() {
        let check = |text: &str, ns: Ns| {
            assert_eq!(Moment::parse(text), Ok(Moment::Absolute(ns)), "{text}");
        };
        check("1421342330", 1_421_342_330 * SECOND);
        check("1421342330432", 1_421_342_330_432_000_000);
        check("1421342330432950", 1_421_342_330_432_950_000);
        check("1421342330432950815", 1_421_342_330_432_950_815);
        check("1421342330.5", 1_421_342_330_500_000_000);
        check("1421342330432950815ns", 1_421_342_330_432_950_815);
        check("5000ns", 5_000);
        check("0ns", 0);
    }

    #[test]
    fn what_is_no_time_is_an_error_with_examples() {
        for text in [
            "",
            "noon",
            "25:00:00",
            "12:60:00",
            "12",
            "12:18:50x",
            "2015-13-01 00:00:00",
            "2015-01-15 12",
            "+3.2",
            "-5",
            "1:2:3:4",
            "9999999999999999999999",
            "15-01-15 12:00:00",
            "12:18:50.4e3",
            "2015-01-15T12:18:50+99:99",
            "٣:٤٥:٠٠",
        ] {
            assert!(Moment::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_time_of_day_on_several_days_wants_the_date() {
        let moment = Moment::parse("12:18:50").expect("a time");
        let message = moment.resolve(&three_days(), None).expect_err("ambiguous");
        assert!(message.contains("2015-01-15, 2015-01-16"), "{message}");
        assert!(moment.resolve(&one_day(), None).is_ok());
    }

    #[test]
    fn a_time_of_day_only_one_day_has_needs_no_date() {
        let half_a_day = Calendar {
            end: three_days().begin + 86_400 * SECOND / 2,
            ..three_days()
        };
        let check = |text: &str, day: i8| {
            let moment = Moment::parse(text).expect(text);
            let ts = moment.resolve(&half_a_day, None).expect(text);
            assert_eq!(half_a_day.zone.civil(ts).date().day(), day, "{text}");
        };
        check("00:00", 16);
        check("12:18:38", 15);
        check("12:18:37", 15); // the recording starts 0.2 s later
        check("00:18:37.3", 16); // and ends 0.1 s earlier
    }

    #[test]
    fn the_end_of_a_window_is_the_next_such_time() {
        let calendar = three_days();
        let after = Moment::parse("2015-01-15 23:59:50")
            .and_then(|moment| moment.resolve(&calendar, None))
            .expect("a time");
        let end = Moment::parse("00:00:10").expect("a time");
        assert_eq!(end.resolve(&calendar, Some(after)), Ok(after + 20 * SECOND));
    }
}
