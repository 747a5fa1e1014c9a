//! Snapshots of what the program reports: errors, hints and caveats of all crates, mechanisms with
//! their advice, and anomalies. A rewording is one difference to read:
//! `INSTA_UPDATE=always cargo test -p whyslow-cli message_snapshots` accepts it.
//!
//! Errors, hints and caveats are read from the sources, because most of them need a broken machine
//! to appear: the texts in calls and attributes of [`MARKERS`], with their placeholders.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use whyslow_explain::DESCRIBED_MECHANISMS;
use whyslow_model::mechanism::MECHANISMS;
use whyslow_model::stat;

/// Names before a parenthesis with texts for users, and what to call these texts.
const MARKERS: [(&str, &str); 10] = [
    ("error", "error"),
    ("Failure::new", "error"),
    ("Failure::usage", "error"),
    ("Refusal::new", "error"),
    ("Refusal::wrong", "error"),
    ("hint", "hint"),
    ("note", "caveat"),
    ("caveat", "caveat"),
    ("caveats.push", "caveat"),
    ("note_once", "caveat"),
];

/// What matters of a source file.
#[derive(Debug, PartialEq)]
enum Token {
    /// Words joined by `::` and `.`.
    Name(String),
    Text(String),
    Mark(char),
}

fn tokens(source: &str) -> Vec<Token> {
    let (mut tokens, mut rest) = (Vec::new(), source);
    while let Some(first) = rest.chars().next() {
        let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | ':' | '.');
        if rest.starts_with("//") {
            rest = rest.split_once('\n').map_or("", |(_, rest)| rest);
        } else if let Some((text, after)) = raw_text(rest).or_else(|| plain_text(rest)) {
            tokens.push(Token::Text(text));
            rest = after;
        } else if first == '\'' {
            rest = after_character(rest);
        } else if is_part(first) {
            let end = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
            tokens.push(Token::Name(rest[..end].trim_start_matches('.').to_owned()));
            rest = &rest[end..];
        } else {
            if !first.is_whitespace() && first != '!' {
                tokens.push(Token::Mark(first));
            }
            rest = &rest[first.len_utf8()..];
        }
    }
    tokens
}

/// `r"…"` and `r#"…"#`.
fn raw_text(source: &str) -> Option<(String, &str)> {
    let after = source.strip_prefix('r')?;
    let hashes = after.len() - after.trim_start_matches('#').len();
    let inside = after[hashes..].strip_prefix('"')?;
    let (text, rest) = inside.split_once(&format!("\"{}", "#".repeat(hashes)))?;
    Some((text.to_owned(), rest))
}

fn plain_text(source: &str) -> Option<(String, &str)> {
    let inside = source.strip_prefix('"')?;
    let mut text = String::new();
    let mut chars = inside.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return Some((text, &inside[at + 1..])),
            '\\' => match chars.next()?.1 {
                // A line that goes on: without the indentation of the next one.
                '\n' => {
                    let next = &inside[at + 2..];
                    let more = next.trim_start();
                    for _ in next[..next.len() - more.len()].chars() {
                        chars.next();
                    }
                }
                'n' => text.push('\n'),
                escaped => text.push(escaped),
            },
            c => text.push(c),
        }
    }
    None
}

/// After a character literal; lifetimes are only their quote.
fn after_character(source: &str) -> &str {
    let inside = &source[1..];
    let mut chars = inside.chars();
    match chars.next() {
        Some('\\') => {
            let from = inside
                .char_indices()
                .nth(2)
                .map_or(inside.len(), |(at, _)| at);
            inside[from..].split_once('\'').map_or("", |(_, rest)| rest)
        }
        Some(c) if chars.next() == Some('\'') => &inside[c.len_utf8() + 1..],
        _ => inside,
    }
}

/// Texts in the parentheses after markers, with what to call them.
fn messages(source: &str) -> BTreeSet<(&'static str, String)> {
    let tokens = tokens(source);
    let mut found = BTreeSet::new();
    for (at, token) in tokens.iter().enumerate() {
        let Token::Name(name) = token else { continue };
        let is_marker =
            |(marker, _): &&(&str, &str)| name == marker || name.ends_with(&format!(".{marker}"));
        let Some((_, called)) = MARKERS.iter().find(is_marker) else {
            continue;
        };
        let mut depth = 0;
        for token in &tokens[at + 1..] {
            match token {
                Token::Mark('(') => depth += 1,
                Token::Mark(')') => depth -= 1,
                Token::Text(text) if depth > 0 && is_sentence(text) => {
                    found.insert((*called, text.clone()));
                }
                _ => {}
            }
            if depth <= 0 {
                break;
            }
        }
    }
    found
}

/// Whether a text is more than a word or a separator.
fn is_sentence(text: &str) -> bool {
    text.contains(' ') && text.contains(char::is_alphabetic)
}

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("sources") {
        let path = entry.expect("readable").path();
        let name = path
            .file_name()
            .map(|name| name.to_string_lossy().into_owned());
        let name = name.unwrap_or_default();
        let is_test = name.contains("test") || name.contains("snapshots");
        if path.is_dir() && !is_test {
            sources(&path, found);
        } else if name.ends_with(".rs") && !is_test {
            found.push(path);
        }
    }
}

/// The code of a file without its tests at the end.
fn without_tests(source: &str) -> &str {
    let end = source.find("#[cfg(test)]\nmod tests");
    &source[..end.unwrap_or(source.len())]
}

#[test]
fn messages_of_all_crates() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut by_crate: BTreeMap<String, BTreeSet<(&str, String)>> = BTreeMap::new();
    for entry in std::fs::read_dir(&crates).expect("the crates") {
        let folder = entry.expect("readable").path();
        let name = folder.file_name().expect("a name").to_string_lossy();
        if !folder.join("src").is_dir() || name.starts_with("whyslow-test") {
            continue;
        }
        let mut files = Vec::new();
        sources(&folder.join("src"), &mut files);
        for file in files {
            let source = std::fs::read_to_string(file).expect("UTF-8");
            let found = messages(without_tests(&source));
            by_crate.entry(name.to_string()).or_default().extend(found);
        }
    }
    let mut out = String::new();
    for (name, messages) in by_crate.iter().filter(|(_, found)| !found.is_empty()) {
        let _ = writeln!(out, "======== {name}");
        for (called, text) in messages {
            let _ = writeln!(out, "{called}: {}", text.replace('\n', "\n    "));
        }
        out.push('\n');
    }
    insta::assert_snapshot!("messages", out);
}

#[test]
fn mechanisms_and_their_advice() {
    let mut out = String::new();
    for (id, meaning) in MECHANISMS {
        let _ = writeln!(out, "======== {id}: {meaning}");
        if let Some(one) = DESCRIBED_MECHANISMS.iter().find(|one| one.id == *id) {
            let _ = writeln!(out, "what: {}\nrecognised: {}", one.what, one.recognised);
            for advice in one.advice {
                let _ = writeln!(out, "advice: {}", advice.text);
            }
            let _ = writeln!(out, "reference: {}", one.reference);
        }
        out.push('\n');
    }
    insta::assert_snapshot!("mechanisms", out);
}

#[test]
fn anomalies() {
    let mut out = String::new();
    for one in stat::ALL {
        let _ = writeln!(out, "{} {}: {}", one.severity.name(), one.name, one.doc);
    }
    insta::assert_snapshot!("anomalies", out);
}

#[test]
#[expect(
    clippy::needless_raw_string_hashes,
    reason = "the source ends a raw string of its own with one hash"
)]
fn texts_after_markers_are_found_whatever_is_around_them() {
    let source = r##"
        #[error("cannot read `{path}`: {reason}")]
        fn a<'a>() -> char { '"' }
        // hint("not a hint")
        let x = Failure::new(format!("unknown file `{}`", f("two words"))).hint(
            "use \
             another one");
        context.note(r#"nothing "at all""#.into());
        other("no message");
    "##;
    let found: Vec<(&str, String)> = messages(source).into_iter().collect();
    let expected = [
        ("caveat", "nothing \"at all\""),
        ("error", "cannot read `{path}`: {reason}"),
        ("error", "two words"),
        ("error", "unknown file `{}`"),
        ("hint", "use another one"),
    ];
    assert_eq!(
        found,
        expected.map(|(called, text)| (called, text.to_owned()))
    );
}
