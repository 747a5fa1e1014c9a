//! Standard error: everything that is not data.

use std::io::Write;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

/// Moves to the start of the line and clears it.
const CLEAR: &str = "\r\x1b[K";

/// The last line is a status, to be replaced by whatever follows.
static HAS_STATUS: AtomicBool = AtomicBool::new(false);

/// Writes a line; a closed standard error is not a failure.
pub fn line(text: &str) {
    let mut stderr = std::io::stderr().lock();
    let clear = if HAS_STATUS.swap(false, Ordering::Relaxed) {
        CLEAR
    } else {
        ""
    };
    let _ = writeln!(stderr, "{clear}{text}");
}

/// Replaces the status line of a terminal; an empty text removes it.
pub fn status(text: &str) {
    let had_status = HAS_STATUS.swap(!text.is_empty(), Ordering::Relaxed);
    if had_status || !text.is_empty() {
        raw(&format!("{CLEAR}{text}"));
    }
}

/// Writes text as it is, without a newline.
pub fn raw(text: &str) {
    let mut stderr = std::io::stderr().lock();
    let _ = stderr.write_all(text.as_bytes());
    let _ = stderr.flush();
}

/// A path in a message, shortened in the middle where it is wider than the terminal. Not for commands
/// to be pasted.
pub fn path(path: &Path) -> String {
    crate::paths::shown(path)
}

/// A number with thousands separators: `56,491`.
pub fn grouped(number: u64) -> String {
    whyslow_model::text::grouped(number)
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
