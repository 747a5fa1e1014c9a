use whyslow_model::Ns;

use super::fraction::scaled;

/// Units of a duration; of two where one is a suffix of the other, the longer name comes first.
const UNITS: &[(&str, Ns)] = &[
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000),
    ("μs", 1_000),
    ("ms", 1_000_000),
    ("sec", 1_000_000_000),
    ("s", 1_000_000_000),
    ("min", 60_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
    ("d", 86_400_000_000_000),
];

/// Parses a duration with its unit: `200us`, `1.5s`, `1m30s`.
pub fn parse_duration(text: &str) -> Result<Ns, String> {
    let text = text.trim();
    if text.is_empty() {
        return Err("missing duration".into());
    }
    if scaled(text, 1).is_some() {
        return Err(format!(
            "`{text}` has no unit: write {text}us, {text}ms or {text}s"
        ));
    }
    let mut total: Ns = 0;
    let mut rest = text;
    while !rest.is_empty() {
        let number_len = rest
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .unwrap_or(rest.len());
        let (number, tail) = rest.split_at(number_len);
        let unit_len = tail
            .find(|c: char| c.is_ascii_digit() || c == '.')
            .unwrap_or(tail.len());
        let (unit, tail) = tail.split_at(unit_len);
        let Some(&(_, scale)) = UNITS.iter().find(|(name, _)| *name == unit) else {
            return Err(format!(
                "`{text}` is not a duration: write it like 200us, 1.5ms or 2s \
                 (units: ns, us, ms, s, m, h, d)"
            ));
        };
        let part = scaled(number, scale)
            .ok_or_else(|| format!("`{text}` is not a duration, or it is too long"))?;
        total = total
            .checked_add(part)
            .ok_or_else(|| format!("`{text}` is too long: its ns do not fit 64 bits"))?;
        rest = tail;
    }
    Ok(total)
}

/// Parses an interval as sysstat and bcc do: a bare number is seconds.
pub fn parse_seconds_or_duration(text: &str) -> Result<Ns, String> {
    let ns = match scaled(text, 1_000_000_000) {
        Some(ns) => ns,
        None => parse_duration(text)?,
    };
    if ns == 0 {
        return Err("the interval must be longer than 0".into());
    }
    Ok(ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_length_needs_a_unit_and_keeps_every_digit() {
        let check = |text: &str, expected: Result<Ns, &str>| match (parse_duration(text), expected)
        {
            (Ok(ns), Ok(want)) => assert_eq!(ns, want, "{text}"),
            (Err(message), Err(part)) => assert!(message.contains(part), "{text}: {message}"),
            (got, want) => panic!("{text}: {got:?}, not {want:?}"),
        };
        check("1ns", Ok(1));
        check("200us", Ok(200_000));
        check("200µs", Ok(200_000));
        check("437ms", Ok(437_000_000));
        check("1.5s", Ok(1_500_000_000));
        check("0.000000001s", Ok(1));
        check("0.123456789123s", Ok(123_456_789));
        check(".5ms", Ok(500_000));
        check("2m", Ok(120_000_000_000));
        check("2min", Ok(120_000_000_000));
        check("1m30s", Ok(90_000_000_000));
        check("1h", Ok(3_600_000_000_000));
        check("1d", Ok(86_400_000_000_000));
        check("1.5h", Ok(5_400_000_000_000));
        check("0ms", Ok(0));
        check("200", Err("200us, 200ms or 200s"));
        check("0.5", Err("has no unit"));
        check("", Err("missing"));
        check("ms", Err("or it is too long"));
        check("5 parsecs", Err("units: ns"));
        check("-5ms", Err("not a duration"));
        check("1..2s", Err("or it is too long"));
        check("1e3ms", Err("not a duration"));
        check("99999999999999999999s", Err("or it is too long"));
        check("100000d100000d", Err("do not fit"));
    }

    #[test]
    fn an_interval_may_be_bare_seconds() {
        assert_eq!(parse_seconds_or_duration("1"), Ok(1_000_000_000));
        assert_eq!(parse_seconds_or_duration("0.1"), Ok(100_000_000));
        assert_eq!(parse_seconds_or_duration("100ms"), Ok(100_000_000));
        assert!(parse_seconds_or_duration("0").is_err());
        assert!(parse_seconds_or_duration("x").is_err());
    }
}
