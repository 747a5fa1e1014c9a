//! Standard error: everything that is not data.

use std::io::Write;

/// Writes a line; a closed standard error is not a failure.
pub fn line(text: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{text}");
}

/// Writes text as it is, without a newline.
pub fn raw(text: &str) {
    let mut stderr = std::io::stderr().lock();
    let _ = stderr.write_all(text.as_bytes());
    let _ = stderr.flush();
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
    fn digits_are_grouped_by_thousands() {
        let check = |number: u64, want: &str| assert_eq!(grouped(number), want);
        check(0, "0");
        check(999, "999");
        check(1_000, "1,000");
        check(56_491, "56,491");
        check(1_234_567, "1,234,567");
    }
}
