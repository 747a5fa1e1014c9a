//! Words of the project that readers of kernel documentation and manuals do not expect, each with what
//! to write instead.
//!
//! Comments, strings, documents and identifiers are searched line by line for whole words.

/// A word or phrase in lower case, and what to write.
const BANNED: [(&str, &str); 14] = [
    ("told", "reported, recorded, known"),
    ("tells", "reports, shows, indicates"),
    ("asks", "queries, requests, looks up"),
    ("nobody", "no process, no thread"),
    ("somebody", "a process, an unidentified thread"),
    ("anybody", "any process, any thread"),
    ("whom", "the thread, the process"),
    ("so long", "DURATION, or the number"),
    ("so many", "COUNT, or the number"),
    ("so much", "SIZE, or the number"),
    ("so often", "INTERVAL, or the number"),
    ("the begin", "the start"),
    ("put down to", "attributed to"),
    ("found besides", "other findings"),
];

/// Files in which a word may stand, and why: END of the path, word, reason.
const ALLOWED: [(&str, &str, &str); 19] = [
    (
        "whyslow-store/src/source.rs",
        "told",
        "a field of the manifest",
    ),
    ("docs/format.md", "told", "a field of the manifest"),
    (
        "whyslow-cli/src/commands/doctor.rs",
        "tells",
        "a field of the JSON form",
    ),
    (
        "whyslow-analysis/tests/it/main.rs",
        "told",
        "part of the names of tests",
    ),
    (
        "importers/jfr/tests/mod.rs",
        "told",
        "part of the names of tests",
    ),
    ("web/tests/unit/flame.test.ts", "told", "the name of a test"),
    (
        "web/tests/unit/threads.test.ts",
        "told",
        "the name of a test",
    ),
    (
        "web/tests/unit/turns.test.ts",
        "nobody",
        "the name of a test",
    ),
    ("web/tests/unit/fleet.test.ts", "asks", "the name of a test"),
    ("redact/public.rs", "nobody", "a user of Unix"),
    ("tests/it/errors.rs", "nobody", "a user of Unix"),
    ("web/dns_stall.py", "nobody", "a user of Unix"),
    ("web/stack.py", "nobody", "a user of Unix"),
    ("web/word_service.py", "nobody", "a user of Unix"),
    (
        "trackers/tests/causes.rs",
        "nobody",
        "a thread name of a test",
    ),
    ("tests/it/fleet.rs", "nobody", "a key of a test"),
    ("live_record/tcp.rs", "nobody", "a missing value of a test"),
    (
        "as_lttng/counts.rs",
        "the begin",
        "the name of a rule that a list of differences has",
    ),
    (
        "as_lttng/rules.rs",
        "the begin",
        "the name of a rule that a list of differences has",
    ),
];

/// The list of differences that has the names of these rules.
const RULES: &str = "docs/lttng-analyses-differences.md";

pub(super) fn check(name: &str, text: &str, complaints: &mut Vec<String>) {
    if name.ends_with("tidy/glossary.rs") {
        return;
    }
    for (at, line) in text.lines().enumerate() {
        let line = line.to_lowercase();
        for (word, instead) in BANNED {
            if has(&line, word) && !is_allowed(name, word) {
                let line = at + 1;
                complaints.push(format!("{name}:{line}: `{word}`: write {instead}"));
            }
        }
    }
}

fn is_allowed(name: &str, word: &str) -> bool {
    let is_listed =
        |(end, allowed, _): &(&str, &str, &str)| name.ends_with(end) && *allowed == word;
    ALLOWED.iter().any(is_listed) || name == RULES && word.starts_with("the ")
}

/// Whether a line in lower case has this word between characters that are not part of a word.
fn has(line: &str, word: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(word).any(|(at, _)| {
        let (before, after) = (&line[..at], &line[at + word.len()..]);
        !before.ends_with(is_part) && !after.starts_with(is_part)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn banned_words_are_complaints_but_parts_of_words_are_not() {
        let found = |name: &str, text: &str| {
            let mut complaints = Vec::new();
            check(name, text, &mut complaints);
            complaints
        };
        let word = BANNED[0].0;
        assert_eq!(
            found("a.rs", &format!("fine\n// as {word} before\n")),
            [format!("a.rs:2: `{word}`: write {}", BANNED[0].1)]
        );
        assert_eq!(
            found("a.md", &format!("{}.", BANNED[7].0.to_uppercase())).len(),
            1
        );
        assert!(found("a.rs", &format!("{word}_by, s{word}, {word}er")).is_empty());
        assert!(found("docs/format.md", word).is_empty());
    }
}
