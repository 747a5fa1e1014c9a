//! Text for people. Names come from the recorded machine and may be hostile: control characters,
//! terminal escape sequences and bidirectional formatting characters are escaped.

use std::borrow::Cow;
use std::fmt::Write as _;

use crate::Ns;

/// Characters that control a terminal, or that hide or reorder other characters.
pub fn is_hostile(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{00ad}' | '\u{061c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// Returns the text with hostile characters escaped; with `ascii`, all non-ASCII characters too.
pub fn shown(text: &str, ascii: bool) -> Cow<'_, str> {
    if text.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
        return Cow::Borrowed(text);
    }
    let harmless = |c: char| !is_hostile(c) && (c.is_ascii() || !ascii);
    if text.chars().all(harmless) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match c {
            c if harmless(c) => out.push(c),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if (c as u32) < 0x100 => {
                let _ = write!(out, "\\x{:02x}", c as u32);
            }
            c => {
                let _ = write!(out, "\\u{{{:x}}}", c as u32);
            }
        }
    }
    Cow::Owned(out)
}

/// Maximum length of the name of a host, a cluster or a label.
const NAME_MAX: usize = 128;

/// Whether the text is a valid name of a host or a cluster: letters, digits, `.`, `_` and `-`.
pub fn is_name(text: &str) -> bool {
    let is_mark = |byte: u8| matches!(byte, b'.' | b'_' | b'-');
    let is_inside = |byte: u8| byte.is_ascii_alphanumeric() || is_mark(byte);
    text.len() <= NAME_MAX
        && text
            .bytes()
            .next()
            .is_some_and(|byte| byte.is_ascii_alphanumeric())
        && text.bytes().all(is_inside)
}

/// A duration of a minute or more: `3 min 20 s`, `9 h 33 min`, `2 d 9 h 33 min`; `None` for
/// shorter ones, which need other units. Rounded to the last unit.
pub fn long_duration(ns: Ns) -> Option<String> {
    const SECOND: u64 = 1_000_000_000;
    const MINUTE: u64 = 60 * SECOND;
    const HOUR: u64 = 60 * MINUTE;
    const DAY: u64 = 24 * HOUR;
    let length = ns.unsigned_abs();
    if length < MINUTE {
        return None;
    }
    let step = if length < HOUR { SECOND } else { MINUTE };
    let mut rest = length.saturating_add(step / 2) / step * step;
    let units = [(DAY, "d"), (HOUR, "h"), (MINUTE, "min"), (SECOND, "s")];
    let mut text = String::from(if ns < 0 { "-" } else { "" });
    for (size, name) in units {
        let count = rest / size;
        rest %= size;
        if count > 0 {
            let gap = if text.len() > 1 { " " } else { "" };
            let _ = write!(text, "{gap}{count} {name}");
        }
    }
    Some(text)
}

/// A duration with three significant digits and the unit that suits it: `158 ms`.
pub fn duration(ns: Ns) -> String {
    if let Some(text) = long_duration(ns) {
        return text;
    }
    let value = ns as f64;
    let (value, unit) = match ns.abs() {
        0..1_000 => return format!("{ns} ns"),
        1_000..1_000_000 => (value / 1e3, "us"),
        1_000_000..1_000_000_000 => (value / 1e6, "ms"),
        _ => (value / 1e9, "s"),
    };
    let digits = match value.abs() {
        v if v < 9.995 => 2,
        v if v < 99.95 => 1,
        _ => 0,
    };
    format!("{value:.digits$} {unit}")
}

/// A number with thousands separators: `56,491`.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_characters_are_spelled_out() {
        let check = |text: &str, unicode: &str, ascii: &str| {
            assert_eq!(shown(text, false), unicode);
            assert_eq!(shown(text, true), ascii);
        };
        check("/var/log", "/var/log", "/var/log");
        check("a b", "a b", "a b");
        check("\u{1b}[31mred", "\\x1b[31mred", "\\x1b[31mred");
        check("a\nb\r\tc", "a\\nb\\r\\tc", "a\\nb\\r\\tc");
        check("\u{9b}2J", "\\x9b2J", "\\x9b2J");
        check("\u{7f}", "\\x7f", "\\x7f");
        check("txt.\u{202e}exe", "txt.\\u{202e}exe", "txt.\\u{202e}exe");
        check(
            "zero\u{200b}width",
            "zero\\u{200b}width",
            "zero\\u{200b}width",
        );
        check("grün", "grün", "gr\\xfcn");
        check("bad\u{fffd}", "bad\u{fffd}", "bad\\u{fffd}");
        check("日本", "日本", "\\u{65e5}\\u{672c}");
        check("\\x1b", "\\x1b", "\\x1b");
    }

    #[test]
    fn long_durations_are_in_days_hours_and_minutes() {
        let check = |seconds: f64, want: Option<&str>| {
            let got = long_duration((seconds * 1e9) as Ns);
            assert_eq!(got.as_deref(), want, "{seconds} s");
        };
        check(59.99, None);
        check(60.0, Some("1 min"));
        check(200.4, Some("3 min 20 s"));
        check(3600.0, Some("1 h"));
        check(34_380.0, Some("9 h 33 min"));
        check(207_200.0, Some("2 d 9 h 33 min"));
        check(-207_200.0, Some("-2 d 9 h 33 min"));
        check(86_400.0 + 20.0, Some("1 d"));
        check(3599.7, Some("1 h"));
        assert!(long_duration(Ns::MAX).is_some() && long_duration(Ns::MIN).is_some());
    }
}
