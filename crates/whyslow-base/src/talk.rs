//! Standard error: everything that is not data.

use std::io::Write;

/// A line; if nobody can read it any more, that is no failure.
pub fn line(text: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{text}");
}

/// Text as it is, without a line end.
pub fn raw(text: &str) {
    let mut stderr = std::io::stderr().lock();
    let _ = stderr.write_all(text.as_bytes());
    let _ = stderr.flush();
}
