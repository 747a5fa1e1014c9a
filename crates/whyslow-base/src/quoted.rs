//! Shell quoting for commands that are shown to be pasted.

use std::fmt::Write as _;

/// A word quoted for shells, in printable ASCII.
pub fn quoted(word: &str) -> String {
    let is_plain = |c: char| {
        c.is_ascii_alphanumeric()
            || matches!(c, '_' | '-' | '.' | '/' | ':' | '=' | ',' | '+' | '@' | '%')
    };
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    if word.chars().all(|c| matches!(c, ' '..='~')) {
        return format!("'{}'", word.replace('\'', r"'\''"));
    }
    let mut text = String::from("$'");
    for c in word.chars() {
        match c {
            '\'' | '\\' => text.extend(['\\', c]),
            ' '..='~' => text.push(c),
            // Bytes, because some shells do not support escapes for characters here.
            c => {
                let mut bytes = [0_u8; 4];
                for byte in c.encode_utf8(&mut bytes).bytes() {
                    let _ = write!(text, "\\{byte:03o}");
                }
            }
        }
    }
    text.push('\'');
    text
}
