//! Timestamps in the output of live tools: time of day, with a date, with a zone, since 1970, since
//! the start of the tool.
//!
//! Few of them are complete. A missing date is taken from the banner, else from the file's
//! modification time. A missing zone is guessed: a tool that runs interactively writes its last
//! line at about the modification time of its file, so the difference between the two, in whole
//! quarters of an hour, is the zone. Where the two are unrelated, times are taken as UTC.

mod dates;

use whyslow_model::Ns;

pub(crate) use dates::{DateOrder, date};

pub(crate) const SECOND_NS: Ns = 1_000_000_000;
pub(crate) const DAY_NS: Ns = 24 * 3600 * SECOND_NS;
const QUARTER_NS: Ns = 900 * SECOND_NS;
/// Zones are between -12 and +14 hours.
const QUARTERS_MAX: Ns = 14 * 4;
/// The last line may be older than the file, and slightly younger because of rounding.
const WRITTEN_LATER_MAX: Ns = 60 * SECOND_NS;
const WRITTEN_BEFORE_MAX: Ns = 2 * SECOND_NS;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stamp {
    /// Since 1970, UTC.
    Epoch(Ns),
    /// Local time since 1970, in an unknown zone.
    Wall(Ns),
    OfDay(Ns),
    /// Since an unknown zero.
    Since(Ns),
}

/// Converts the stamps of one file to times that do not wrap at midnight.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Clock {
    /// Date of the banner, as ns since 1970.
    date: Option<Ns>,
    last: Option<Ns>,
    days: Ns,
    is_whole: bool,
    is_of_day: bool,
    is_since: bool,
}

/// Offset to add to all times, and whether it is certain.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Shift {
    pub(crate) by: Ns,
    /// The zone or the zero was guessed.
    pub(crate) is_guessed: bool,
}

impl Clock {
    /// Sets the date of a banner: it applies to all following times of day.
    pub(crate) fn set_date(&mut self, date: Ns) {
        self.date = Some(date);
        self.days = 0;
        self.last = None;
    }

    /// The day starts again: the following lines are of the same day.
    pub(crate) fn restart(&mut self) {
        self.days = 0;
        self.last = None;
    }

    /// Whether some stamp was complete in itself.
    pub(crate) fn is_whole(&self) -> bool {
        self.is_whole
    }

    pub(crate) fn read(&mut self, stamp: Stamp) -> Ns {
        let at = match stamp {
            Stamp::Epoch(at) => {
                self.is_whole = true;
                at
            }
            Stamp::Wall(at) => at,
            Stamp::Since(at) => {
                self.is_since = true;
                at
            }
            Stamp::OfDay(at) => {
                self.is_of_day = true;
                let base = self.date.unwrap_or(0);
                let mut at = base.saturating_add(self.days).saturating_add(at);
                // Lines may be slightly out of order; a step of half a day back is midnight.
                if self
                    .last
                    .is_some_and(|last| at < last.saturating_sub(DAY_NS / 2))
                {
                    self.days = self.days.saturating_add(DAY_NS);
                    at = at.saturating_add(DAY_NS);
                }
                at
            }
        };
        self.last = Some(at);
        at
    }

    /// After the last line: offset of the file's clock from UTC.
    pub(crate) fn shift(&self, written: Option<Ns>) -> Shift {
        let Some(last) = self.last.filter(|_| !self.is_whole) else {
            return Shift::default();
        };
        let Some(written) = written else {
            return Shift {
                by: 0,
                is_guessed: true,
            };
        };
        let behind = written.saturating_sub(last);
        let by = if self.is_since {
            behind
        } else {
            let zone = zone_of(behind, self.is_of_day && self.date.is_none());
            zone.unwrap_or_else(|| {
                // Without a date: the last such time before the file was written.
                let is_undated = self.is_of_day && self.date.is_none();
                let days = behind.div_euclid(DAY_NS).saturating_mul(DAY_NS);
                if is_undated { days } else { 0 }
            })
        };
        Shift {
            by,
            is_guessed: true,
        }
    }
}

/// The difference in whole quarters of an hour, if it is close to one.
fn zone_of(behind: Ns, is_undated: bool) -> Option<Ns> {
    let zone = behind
        .saturating_add(WRITTEN_BEFORE_MAX)
        .div_euclid(QUARTER_NS);
    let rest = behind.saturating_sub(zone.saturating_mul(QUARTER_NS));
    let is_near = (-WRITTEN_BEFORE_MAX..=WRITTEN_LATER_MAX).contains(&rest);
    let is_zone = is_undated || zone.abs() <= QUARTERS_MAX;
    (is_near && is_zone).then(|| zone.saturating_mul(QUARTER_NS))
}

/// `02:03:04`, `02:03:04.567`.
pub(crate) fn time_of_day(text: &str) -> Option<Ns> {
    let (whole, fraction) = text.split_once(['.', ',']).unwrap_or((text, ""));
    let mut parts = whole.split(':');
    let mut part = |max: Ns| -> Option<Ns> {
        let text = parts.next().filter(|text| text.len() == 2)?;
        text.bytes()
            .all(|byte| byte.is_ascii_digit())
            .then_some(())?;
        text.parse().ok().filter(|value| *value <= max)
    };
    let (hours, minutes, seconds) = (part(23)?, part(59)?, part(60)?);
    let seconds = hours * 3600 + minutes * 60 + seconds;
    parts
        .next()
        .is_none()
        .then_some(seconds * SECOND_NS + parts_of_second(fraction)?)
}

fn parts_of_second(fraction: &str) -> Option<Ns> {
    let digits = fraction.get(..fraction.len().min(9))?;
    if fraction.is_empty() {
        return Some(0);
    }
    let number: Ns = fraction
        .bytes()
        .all(|byte| byte.is_ascii_digit())
        .then(|| digits.parse().ok())??;
    Some(number * 10_i64.pow(9 - digits.len() as u32))
}

/// The stamp at the start of `words`, and the number of words it takes.
pub(crate) fn stamp(words: &[&str], order: Option<DateOrder>) -> Option<(Stamp, usize)> {
    let first = words.first()?;
    if let Some((day, time)) = first.split_once('T') {
        let day = date(day, order)?;
        let zone = time.get(8..).unwrap_or_default();
        let at = day.saturating_add(time_of_day(time.get(..8)?)?);
        return Some((
            match zone_ns(zone) {
                Some(zone) => Stamp::Epoch(at.saturating_sub(zone)),
                None if zone.is_empty() => Stamp::Wall(at),
                None => return None,
            },
            1,
        ));
    }
    if let Some(day) = date(first, order) {
        let (time, taken) = half(words.get(1..)?)?;
        let zone = words.get(1 + taken).and_then(|word| named_zone(word));
        let at = day.saturating_add(time);
        return Some(match zone {
            Some(zone) => (Stamp::Epoch(at.saturating_sub(zone)), 2 + taken),
            None => (Stamp::Wall(at), 1 + taken),
        });
    }
    if first.len() >= 9 && first.bytes().all(|byte| byte.is_ascii_digit()) {
        let seconds: Ns = first.parse().ok()?;
        return Some((Stamp::Epoch(seconds.checked_mul(SECOND_NS)?), 1));
    }
    let (time, taken) = half(words)?;
    Some((Stamp::OfDay(time), taken))
}

/// A time of day, possibly of a 12-hour clock.
fn half(words: &[&str]) -> Option<(Ns, usize)> {
    const HALF: Ns = DAY_NS / 2;
    let time = time_of_day(words.first()?)?;
    let half = words.get(1).copied().unwrap_or_default();
    Some(if ["AM", "am", "a.m."].contains(&half) {
        (time % HALF, 2)
    } else if ["PM", "pm", "p.m."].contains(&half) {
        (time % HALF + HALF, 2)
    } else {
        (time, 1)
    })
}

/// A zone name with an unambiguous meaning.
pub(crate) fn named_zone(word: &str) -> Option<Ns> {
    match word {
        "UTC" | "GMT" | "Z" => Some(0),
        word if word.starts_with(['+', '-']) => zone_ns(word),
        _ => None,
    }
}

/// `+0100`, `+01:00`, `-03`, `Z`.
fn zone_ns(text: &str) -> Option<Ns> {
    if text == "Z" {
        return Some(0);
    }
    let sign = match text.as_bytes().first()? {
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    let digits: String = text[1..].chars().filter(|c| *c != ':').collect();
    let number: Ns = digits
        .bytes()
        .all(|byte| byte.is_ascii_digit())
        .then(|| digits.parse().ok())??;
    let minutes = match digits.len() {
        2 => number * 60,
        4 => number / 100 * 60 + number % 100,
        _ => return None,
    };
    Some(sign * minutes * 60 * SECOND_NS)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: Ns = 1_795_564_800 * SECOND_NS; // 2026-11-25

    #[test]
    fn stamps_of_all_forms_are_one_moment() {
        let at = DAY + 7384 * SECOND_NS; // 02:03:04
        let check = |text: &str, expected: Option<(Stamp, usize)>| {
            let words: Vec<&str> = text.split_whitespace().collect();
            assert_eq!(stamp(&words, None), expected, "{text}");
        };
        check("2026-11-25T02:03:04+0000", Some((Stamp::Epoch(at), 1)));
        check("2026-11-25T03:03:04+01:00", Some((Stamp::Epoch(at), 1)));
        check("2026-11-24T23:03:04-0300", Some((Stamp::Epoch(at), 1)));
        check("2026-11-25T02:03:04Z", Some((Stamp::Epoch(at), 1)));
        check("2026-11-25 02:03:04 UTC", Some((Stamp::Epoch(at), 3)));
        check("2026-11-25 02:03:04", Some((Stamp::Wall(at), 2)));
        check("11/25/26 02:03:04", Some((Stamp::Wall(at), 2)));
        check("11/25/2026 02:03:04 AM", Some((Stamp::Wall(at), 3)));
        check("25/11/2026 02:03:04", Some((Stamp::Wall(at), 2)));
        check("25.11.2026 02:03:04", Some((Stamp::Wall(at), 2)));
        check("1795572184", Some((Stamp::Epoch(at), 1)));
        let of_day = Stamp::OfDay(at - DAY);
        check("02:03:04 all", Some((of_day, 1)));
        check("12:03:04 AM", Some((Stamp::OfDay(184 * SECOND_NS), 2)));
        check("12:00:00 PM", Some((Stamp::OfDay(DAY_NS / 2), 2)));
        check(
            "02:03:04.5",
            Some((Stamp::OfDay(at - DAY + SECOND_NS / 2), 1)),
        );
        for bad in [
            "",
            "2:3:4",
            "25:00:00",
            "vda",
            "1.5",
            "2026-13-01 00:00:00",
            "é",
            "Té",
        ] {
            check(bad, None);
        }
    }

    #[test]
    fn a_zone_is_what_a_file_was_written_later() {
        let shift = |of_day: Ns, date: Option<Ns>, written: Ns| {
            let mut clock = Clock::default();
            if let Some(date) = date {
                clock.set_date(date);
            }
            clock.read(Stamp::OfDay(of_day * SECOND_NS));
            clock.shift(Some(written * SECOND_NS)).by / SECOND_NS
        };
        let day = DAY / SECOND_NS;
        // Written two seconds after the last line, in a zone two hours east.
        assert_eq!(shift(50_000, Some(DAY), day + 50_002 - 7200), -7200);
        assert_eq!(shift(50_000, Some(DAY), day + 50_002), 0);
        // The modification time of a file copied much later is of no use.
        assert_eq!(shift(50_000, Some(DAY), day + 50_300 + 86_400 * 9), 0);
        // Without a date: the last possible day.
        assert_eq!(shift(50_000, None, day + 50_002), day);
        assert_eq!(shift(50_000, None, day + 50_400), day);
        assert_eq!(shift(50_000, None, day + 49_600), day - 86_400);
    }

    #[test]
    fn half_a_day_back_is_midnight() {
        let mut clock = Clock::default();
        clock.set_date(DAY);
        let late = clock.read(Stamp::OfDay(DAY_NS - SECOND_NS));
        assert_eq!(clock.read(Stamp::OfDay(SECOND_NS)), late + 2 * SECOND_NS);
        assert_eq!(clock.read(Stamp::OfDay(0)), late + SECOND_NS);
        assert_eq!(
            clock.shift(None),
            Shift {
                by: 0,
                is_guessed: true
            }
        );
    }
}
