use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::{Offset, TimeZone};
use whyslow_model::Ns;

/// The zone in which times are parsed and printed.
#[derive(Debug, Clone)]
pub struct Zone {
    zone: TimeZone,
    /// Whether the recording or the user specified it. Otherwise it is UTC as a fallback.
    pub known: bool,
}

impl Zone {
    /// UTC.
    pub fn utc() -> Self {
        Self {
            zone: TimeZone::UTC,
            known: true,
        }
    }

    /// UTC because the recording does not contain the zone of its host.
    pub fn unknown() -> Self {
        Self {
            zone: TimeZone::UTC,
            known: false,
        }
    }

    /// The zone of this machine and user.
    pub fn local() -> Self {
        Self {
            zone: TimeZone::system(),
            known: true,
        }
    }

    /// Parses `Europe/Berlin`, `+01:00`, `+0100`, `UTC`, `local`.
    pub fn parse(text: &str) -> Result<Self, String> {
        let zone = match text {
            "utc" | "UTC" | "Z" | "GMT" => TimeZone::UTC,
            "local" => return Ok(Self::local()),
            _ => match parse_offset(text) {
                Some(seconds) => TimeZone::fixed(
                    Offset::from_seconds(seconds)
                        .map_err(|_| format!("`{text}` is not a UTC offset: it is out of range"))?,
                ),
                None => TimeZone::get(text).map_err(|_| {
                    format!(
                        "`{text}` is not a time zone: write it like Europe/Berlin, +01:00, UTC or local"
                    )
                })?,
            },
        };
        Ok(Self { zone, known: true })
    }

    /// Date and time of day at a point in time. Years outside jiff's range (-9999 to 9999) cannot
    /// occur: i64 ns since 1970 end in 2262.
    pub fn civil(&self, ts: Ns) -> DateTime {
        self.zone.to_datetime(timestamp(ts))
    }

    /// UTC offset at a point in time: `+01:00`.
    pub fn offset(&self, ts: Ns) -> String {
        let seconds = self.zone.to_offset(timestamp(ts)).seconds();
        let sign = if seconds < 0 { '-' } else { '+' };
        let seconds = seconds.unsigned_abs();
        format!("{sign}{:02}:{:02}", seconds / 3600, seconds / 60 % 60)
    }

    /// The point in time of a date and time of day; the earlier one if a clock change yields two.
    pub fn moment(&self, civil: DateTime) -> Option<Ns> {
        let timestamp = self.zone.to_timestamp(civil).ok()?;
        i64::try_from(timestamp.as_nanosecond()).ok()
    }
}

fn timestamp(ts: Ns) -> Timestamp {
    Timestamp::from_nanosecond(i128::from(ts)).expect("64-bit ns lie inside jiff's range")
}

/// `+HH`, `+HHMM`, `+HH:MM` as seconds east of UTC.
fn parse_offset(text: &str) -> Option<i32> {
    let (sign, digits) = match text.split_at_checked(1)? {
        ("+", digits) => (1, digits),
        ("-", digits) => (-1, digits),
        _ => return None,
    };
    let (hours, minutes) = match digits.split_once(':') {
        Some(parts) => parts,
        None if digits.len() == 4 && digits.is_ascii() => digits.split_at(2),
        None => (digits, "0"),
    };
    let number = |part: &str| -> Option<i32> {
        let is_digits = !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        (is_digits && part.len() <= 2).then(|| part.parse().ok())?
    };
    let (hours, minutes) = (number(hours)?, number(minutes)?);
    (minutes < 60).then_some(sign * (hours * 3600 + minutes * 60))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zones_are_names_or_offsets() {
        let check = |text: &str, offset: Option<&str>| {
            let got = Zone::parse(text).ok().map(|zone| zone.offset(0));
            assert_eq!(got.as_deref(), offset, "{text}");
        };
        check("UTC", Some("+00:00"));
        check("+01:00", Some("+01:00"));
        check("-0530", Some("-05:30"));
        check("+2", Some("+02:00"));
        check("Europe/Berlin", Some("+01:00"));
        check("America/Montreal", Some("-05:00"));
        check("Mars/Olympus", None);
        check("+99:00", None);
        check("+01:60", None);
        check("", None);
    }

    #[test]
    fn the_offset_follows_the_season() {
        let zone = Zone::parse("America/New_York").expect("bundled");
        assert_eq!(zone.offset(1_421_342_317_000_000_000), "-05:00");
        assert_eq!(zone.offset(1_437_000_000_000_000_000), "-04:00");
        assert!(zone.civil(i64::MAX).year() == 2262 && zone.civil(i64::MIN).year() == 1677);
    }
}
