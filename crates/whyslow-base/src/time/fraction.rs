//! Decimal numbers scaled to integers exactly, with any number of digits: 3.2 s is 3,200,000,000
//! ns. Floats would lose the last digits of a Unix timestamp in ns.

/// Decimals that can matter: a day has fewer than 10^14 ns.
const DECIMALS: usize = 20;

/// `digits[.digits]` times `scale`, truncated (not rounded) to an integer.
pub(super) fn scaled(text: &str, scale: i64) -> Option<i64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let is_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    if (whole.is_empty() && fraction.is_empty()) || !is_digits(whole) || !is_digits(fraction) {
        return None;
    }
    let number = |digits: &str| match digits {
        "" => Some(0_i128),
        digits => digits.parse().ok(),
    };
    let fraction = &fraction[..fraction.len().min(DECIMALS)];
    let below_one = number(fraction)? * i128::from(scale) / 10_i128.pow(fraction.len() as u32);
    let value = number(whole)?
        .checked_mul(i128::from(scale))?
        .checked_add(below_one)?;
    i64::try_from(value).ok()
}
