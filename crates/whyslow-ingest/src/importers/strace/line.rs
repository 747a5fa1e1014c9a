//! The prefix of a line: thread and time.

use whyslow_model::Ns;

/// Form of a timestamp: `-t` and its repetitions, `-r`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stamp {
    /// Since 1970 (`-ttt`).
    Epoch(Ns),
    /// Since midnight, in an unknown zone (`-t`, `-tt`).
    OfDay(Ns),
    /// Since the previous line (`-r`).
    SinceLast(Ns),
}

/// A line without its prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Head<'t> {
    pub(super) tid: Option<i32>,
    /// Printed with `-Y`.
    pub(super) comm: Option<&'t str>,
    pub(super) stamp: Option<Stamp>,
    pub(super) rest: &'t str,
}

const TID_MAX: i32 = 4 << 20;
const NS_PER_S: Ns = 1_000_000_000;

impl<'t> Head<'t> {
    pub(super) fn read(line: &'t str) -> Self {
        let (tid, comm, rest) = task(line.trim_start());
        let (stamp, rest) = stamp(rest.trim_start());
        // `-r` together with another timestamp: `1700000000.1 (+     0.000123) read(…`
        let rest = rest.trim_start();
        let rest = match rest
            .strip_prefix("(+")
            .and_then(|text| text.split_once(')'))
        {
            Some((_, after)) if stamp.is_some() => after.trim_start(),
            _ => rest,
        };
        let rest = rest
            .strip_prefix('[')
            .map_or(rest, |text| pointer(text, rest));
        Self {
            tid,
            comm,
            stamp,
            rest,
        }
    }
}

/// `[pid 12] `, `[pid 12<comm>] `, `12 `, `12<comm> `.
fn task(line: &str) -> (Option<i32>, Option<&str>, &str) {
    let bracketed = line.strip_prefix("[pid");
    let text = bracketed.map_or(line, str::trim_start);
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let none = (None, None, line);
    // Greater numbers are not thread ids (`PID_MAX_LIMIT`), but may be times.
    let Some(tid) = text[..digits].parse().ok().filter(|tid| *tid <= TID_MAX) else {
        return none;
    };
    let mut rest = &text[digits..];
    let mut comm = None;
    if let Some(named) = rest.strip_prefix('<') {
        // A name may contain any character, but strace escapes these.
        let Some((name, after)) = named.split_once('>') else {
            return none;
        };
        (comm, rest) = (Some(name), after);
    }
    if bracketed.is_some() {
        let Some(after) = rest.strip_prefix(']') else {
            return none;
        };
        rest = after;
    }
    // A number with decimals is a time.
    if rest.starts_with([' ', '\t']) {
        (Some(tid), comm, rest)
    } else {
        none
    }
}

fn stamp(text: &str) -> (Option<Stamp>, &str) {
    let end = text.find([' ', '\t']).unwrap_or(text.len());
    let (word, rest) = text.split_at(end);
    let found = if word.contains(':') {
        of_day(word).map(Stamp::OfDay)
    } else {
        seconds(word).map(|ns| {
            // An interval of more than a year is a time since 1970.
            if ns > 365 * 24 * 3600 * NS_PER_S {
                Stamp::Epoch(ns)
            } else {
                Stamp::SinceLast(ns)
            }
        })
    };
    match found {
        Some(stamp) => (Some(stamp), rest),
        None => (None, text),
    }
}

/// The instruction pointer of `-i`: `[00007f0e1c5a3e37] `.
fn pointer<'t>(text: &'t str, whole: &'t str) -> &'t str {
    match text.split_once("] ") {
        Some((digits, rest))
            if !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_hexdigit() || b == b'?') =>
        {
            rest.trim_start()
        }
        _ => whole,
    }
}

/// Seconds with decimals; without decimals only a time with colons is accepted.
pub(super) fn seconds(text: &str) -> Option<Ns> {
    let (whole, decimals) = text.split_once('.').unwrap_or((text, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !digits(whole) || !digits(decimals) || decimals.len() > 9 {
        return None;
    }
    let scale = 10_i64.pow(9 - decimals.len() as u32);
    let decimals = decimals.parse::<i64>().unwrap_or(0) * scale;
    let whole = whole.parse::<i64>().ok()?.checked_mul(NS_PER_S)?;
    whole.checked_add(decimals)
}

fn of_day(text: &str) -> Option<Ns> {
    let mut parts = text.splitn(3, ':');
    let mut whole = |limit: i64| {
        let part = parts.next()?;
        let number = part.parse::<i64>().ok()?;
        (part.len() == 2 && (0..limit).contains(&number)).then_some(number)
    };
    let (hours, minutes) = (whole(24)?, whole(60)?);
    let rest = seconds(parts.next()?).filter(|ns| *ns < 61 * NS_PER_S)?;
    Some((hours * 60 + minutes) * 60 * NS_PER_S + rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whose_and_when_is_read_in_every_form() {
        let check = |line: &str, tid, comm, stamp, rest: &str| {
            let want = Head {
                tid,
                comm,
                stamp,
                rest,
            };
            assert_eq!(Head::read(line), want, "{line}");
        };
        let epoch = Some(Stamp::Epoch(1_795_485_216_092_739_000));
        check("read(3", None, None, None, "read(3");
        check("12 read(3", Some(12), None, None, "read(3");
        check("1795485216.092739 read(3", None, None, epoch, "read(3");
        check("7 1795485216.092739 x(", Some(7), None, epoch, "x(");
        check(
            "[pid     7] 1795485216.092739 x(",
            Some(7),
            None,
            epoch,
            "x(",
        );
        check(
            "7<my app> 1795485216.092739 x(",
            Some(7),
            Some("my app"),
            epoch,
            "x(",
        );
        check("[pid 7<a>] x(", Some(7), Some("a"), None, "x(");
        let day = Stamp::OfDay((12 * 3600 + 34 * 60 + 56) * NS_PER_S + 789_000_000);
        check("12:34:56.789 x(", None, None, Some(day), "x(");
        check(
            "9 00:00:01 x(",
            Some(9),
            None,
            Some(Stamp::OfDay(NS_PER_S)),
            "x(",
        );
        let last = Some(Stamp::SinceLast(123_000));
        check("     0.000123 x(", None, None, last, "x(");
        check(
            "1795485216.092739 (+     0.000123) x(",
            None,
            None,
            epoch,
            "x(",
        );
        check("3 [00007f0e1c5a3e37] x(", Some(3), None, None, "x(");
        check("25:00:00 x(", None, None, None, "25:00:00 x(");
        check("[pid x] y(", None, None, None, "[pid x] y(");
        check("", None, None, None, "");
        let whole = Some(Stamp::Epoch(1_795_485_216 * NS_PER_S));
        check("1795485216 x(", None, None, whole, "x(");
        check("99999999999999 x(", None, None, None, "99999999999999 x(");
    }
}
