//! Paths as users type and read them.

use std::io::IsTerminal as _;
use std::path::{Component, Path, PathBuf};

use clap::builder::{PathBufValueParser, TypedValueParser};

/// Columns of a line that are left to the text around a path.
const AROUND: usize = 24;
/// A path is never shortened to fewer columns.
const COLUMNS_MIN: usize = 32;

/// Without `.` and repeated slashes: `./a//b/./c` is `a/b/c`. `..` stays, because what it refers to
/// depends on symbolic links.
pub fn normalised(path: &Path) -> PathBuf {
    let parts = path.components().filter(|part| *part != Component::CurDir);
    let found: PathBuf = parts.collect();
    let first = found.as_os_str().as_encoded_bytes().first();
    let is_marked = path.components().next() == Some(Component::CurDir);
    match first {
        None => path.to_owned(),
        // Without the `./` it would be an option, or @last.
        Some(b'-' | b'@') if is_marked => Path::new(".").join(found),
        Some(_) => found,
    }
}

/// Parses an argument that is a path.
pub fn path_parser() -> impl TypedValueParser<Value = PathBuf> {
    PathBufValueParser::new().map(|path| normalised(&path))
}

/// A path in a message: on a terminal, one that is wider than the terminal is shortened in the
/// middle.
pub(crate) fn shown(path: &Path) -> String {
    let text = path.display().to_string();
    let text = whyslow_model::text::shown(&text, false);
    match terminal_columns() {
        Some(columns) => shortened(&text, columns.saturating_sub(AROUND).max(COLUMNS_MIN)),
        None => text.into_owned(),
    }
}

/// Width of the terminal on standard error; `None` for a file or a pipe.
fn terminal_columns() -> Option<usize> {
    let stderr = std::io::stderr();
    if !stderr.is_terminal() {
        return None;
    }
    let size = rustix::termios::tcgetwinsize(&stderr).ok()?;
    (size.ws_col > 0).then(|| size.ws_col.into())
}

/// At most `columns` characters; the end, which identifies a file best, gets most of them.
fn shortened(text: &str, columns: usize) -> String {
    let count = text.chars().count();
    if count <= columns {
        return text.to_owned();
    }
    let head = columns / 3;
    let tail = columns - head - 1;
    let begin: String = text.chars().take(head).collect();
    let end: String = text.chars().skip(count - tail).collect();
    format!("{begin}…{end}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dots_and_repeated_slashes_are_removed() {
        let check = |path: &str, want: &str| {
            let got = normalised(Path::new(path));
            assert_eq!(got.to_str(), Some(want), "{path}");
        };
        check("./././web.wsl", "web.wsl");
        check("a//b/./c/", "a/b/c");
        check("/a/./b", "/a/b");
        check("../web.wsl", "../web.wsl");
        check("a/../web.wsl", "a/../web.wsl");
        check(".", ".");
        check("./@last", "./@last");
        check("@live", "@live");
        check("./-x.wsl", "./-x.wsl");
    }

    #[test]
    fn a_wide_path_is_shortened_in_the_middle() {
        assert_eq!(shortened("/a/b.wsl", 8), "/a/b.wsl");
        let text = shortened("/var/lib/whyslow/flights/web-20261127.wsl", 20);
        assert_eq!(text.chars().count(), 20);
        assert!(
            text.starts_with("/var/l…") && text.ends_with("20261127.wsl"),
            "{text}"
        );
    }
}
