use super::fraction::scaled;

/// Parses a number of bytes: `4096`, `8k` and `8KiB` (8 × 1024), `8kB` (8 × 1000).
pub fn parse_size(text: &str) -> Result<i64, String> {
    let text = text.trim();
    let number_len = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(number_len);
    let scale = unit_scale(unit.trim_start())
        .ok_or_else(|| format!("`{text}` is not a size: write it like 4096, 8k, 1.5MiB or 8kB"))?;
    scaled(number, scale).ok_or_else(|| format!("`{text}` is not a size, or it is too large"))
}

fn unit_scale(unit: &str) -> Option<i64> {
    const LETTERS: &str = "kmgt";
    let lower = unit.to_ascii_lowercase();
    let mut chars = lower.chars();
    let Some(letter) = chars.next() else {
        return Some(1);
    };
    if letter == 'b' && chars.as_str().is_empty() {
        return Some(1);
    }
    let power = LETTERS.find(letter)? as u32 + 1;
    match chars.as_str() {
        "" | "i" | "ib" => 1024_i64.checked_pow(power),
        "b" => 1000_i64.checked_pow(power),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bare_letter_is_binary_and_kb_is_decimal() {
        let check = |text: &str, expected: Option<i64>| {
            assert_eq!(parse_size(text).ok(), expected, "{text}");
        };
        check("0", Some(0));
        check("4096", Some(4096));
        check("512B", Some(512));
        check("8k", Some(8192));
        check("8K", Some(8192));
        check("8KiB", Some(8192));
        check("8 KiB", Some(8192));
        check("8kB", Some(8000));
        check("1.5M", Some(1_572_864));
        check("2G", Some(2_147_483_648));
        check("1TB", Some(1_000_000_000_000));
        check("", None);
        check("k", None);
        check("8kk", None);
        check("8x", None);
        check("-8k", None);
        check("9999999T", None);
    }
}
