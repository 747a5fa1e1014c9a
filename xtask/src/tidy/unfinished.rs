//! Forbidden words.

/// Split so that this file does not match.
const UNFINISHED: [&str; 4] = [
    concat!("TO", "DO"),
    concat!("XX", "X"),
    concat!("HA", "CK"),
    concat!("todo", "!("),
];

pub(super) fn check(name: &str, text: &str, complaints: &mut Vec<String>) {
    let code = name.ends_with(".rs")
        || name.ends_with(".sh")
        || name.ends_with(".py")
        || name.ends_with(".sql");
    for (at, line) in text.lines().enumerate() {
        if code {
            for word in UNFINISHED {
                if line
                    .split(|c: char| !(c.is_alphanumeric() || c == '!' || c == '('))
                    .any(|w| w.starts_with(word) && w.len() <= word.len() + 1)
                {
                    complaints.push(format!("{name}:{}: unfinished mark `{word}`", at + 1));
                }
            }
        }
        if line.contains(concat!("/ro", "ot/")) || line.contains(concat!("/work", "/main")) {
            complaints.push(format!("{name}:{}: machine-specific path", at + 1));
        }
    }
}
