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
