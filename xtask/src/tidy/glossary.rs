//! Words of the project that readers of kernel documentation and manuals do not expect, each with what
//! to write instead.
//!
//! Comments, strings, documents and identifiers are searched line by line for whole words.

/// A word or phrase in lower case, and what to write.
const BANNED: [(&str, &str); 52] = [
    ("told", "reported, recorded, known"),
    ("told_by", "reported_by"),
    ("untold", "done"),
    ("tell", "report, show, indicate"),
    ("tells", "reports, shows, indicates"),
    ("says", "reports, shows, states"),
    ("spoken", "command_words"),
    ("ask", "query, request, look up"),
    ("asks", "queries, requests, looks up"),
    ("asked", "queried, requested, looked up"),
    ("asking", "querying, requesting, looking up"),
    ("question", "query, request"),
    ("questions", "queries, requests"),
    ("story", "finding"),
    ("stories", "findings"),
    ("who", "the thread, the process, the culprit"),
    ("whom", "the thread, the process"),
    ("nobody", "no process, no thread"),
    ("somebody", "a process, an unidentified thread"),
    ("anybody", "any process, any thread"),
    ("so long", "DURATION, or the number"),
    ("so many", "COUNT, or the number"),
    ("so much", "SIZE, or the number"),
    ("so often", "INTERVAL, or the number"),
    ("the begin", "the start"),
    ("put down to", "attributed to"),
    ("found besides", "other findings"),
    ("got_by", "received_by"),
    ("underway", "in_flight"),
    ("lookups of names", "DNS lookups"),
    ("questions to name servers", "DNS queries"),
    ("threads of the kernel", "kernel threads"),
    ("work that the kernel put off", "workqueue items"),
    ("calls of functions of programs", "function calls (uprobes)"),
    ("static probes of programs", "USDT probes"),
    ("what comes into the page cache", "page-cache fills"),
    ("held back", "throttled (cgroup I/O limit), buffered (data)"),
    ("had everything written", "flushed dirty pages"),
    ("without it at most", "removing it saves at most"),
    (
        "coincided with this",
        "overlapped with …; causality is not established",
    ),
    ("it ran itself", "it was on CPU"),
    ("it slept for a time", "it slept by its own timer"),
    ("had not answered", "did not reply"),
    ("as far as can be told", "no outlier among COUNT devices"),
    ("times without samples", "sampling gaps"),
    ("that one made the other", "causality is not established"),
    (
        "or the recording, or not at all",
        "still in progress at the end of the window",
    ),
    ("recording under way", "active recording"),
    ("the recording knows no", "unknown"),
    ("cannot be chosen by", "cannot sort by"),
    ("adding up stacks", "Aggregating stacks…"),
    ("people who want", "the users, or the purpose"),
];

/// Phrases in which a word may stand: word, phrase, reason.
const PHRASES: [(&str, &str, &str); 2] = [
    (
        "tell",
        "cannot tell",
        "the answer for missing or lossy input",
    ),
    ("tell", "tell(", "a method of files in Python"),
];

/// A word that is also a label of the page of `explain`, and the field of a finding with its sentence.
const LABEL: &str = "who";

/// Files in which a word may stand, and why: END of the path, word, reason.
const ALLOWED: [(&str, &str, &str); 36] = [
    (
        "whyslow-store/src/renamed.rs",
        "told_by",
        "a column of format version 2",
    ),
    (
        "whyslow-store/src/renamed.rs",
        "got_by",
        "a column of format version 2",
    ),
    (
        "whyslow-store/src/source.rs",
        "told",
        "a key of the manifest of format version 2",
    ),
    (
        "tests/it/former_versions.rs",
        "told",
        "a key of the manifest of format version 2",
    ),
    (
        "tests/it/former_versions.rs",
        "story",
        "a word of commit version 1",
    ),
    (
        "whyslow-fleet/src/encode.rs",
        "told_by",
        "a column of commit version 1",
    ),
    (
        "whyslow-fleet/src/encode.rs",
        "story",
        "a word of commit version 1",
    ),
    (
        "fleet/contract.py",
        "told_by",
        "a column of commit version 1",
    ),
    ("fleet/contract.py", "story", "a word of commit version 1"),
    (
        "whyslow/renamed.py",
        "told_by",
        "a column of format version 2",
    ),
    (
        "whyslow/renamed.py",
        "got_by",
        "a column of format version 2",
    ),
    (
        "tests/test_former_versions.py",
        "told_by",
        "a column of commit version 1",
    ),
    (
        "tests/test_former_versions.py",
        "story",
        "a word of commit version 1",
    ),
    (
        "tests/it/view_answers.rs",
        "told_by",
        "a column of format version 2",
    ),
    ("duckdb/views.rs", "told_by", "a column of format version 2"),
    (
        "importers/text/reader.rs",
        "told_by",
        "a key that older writers used",
    ),
    (
        "importers/text/tests.rs",
        "told_by",
        "a key that older writers used",
    ),
    (
        "docs/format.md",
        "told",
        "a key of the manifest of format version 2",
    ),
    ("docs/format.md", "told_by", "a column of format version 2"),
    ("docs/format.md", "got_by", "a column of format version 2"),
    ("docs/fleet.md", "told_by", "a column of commit version 1"),
    ("docs/fleet.md", "story", "a word of commit version 1"),
    (
        "docs/text-format.md",
        "told_by",
        "a key that older writers used",
    ),
    (
        "importers/text/mod.rs",
        "told_by",
        "a key that older writers used",
    ),
    (
        "former-versions/README.md",
        "told",
        "a key of the manifest of format version 2",
    ),
    (
        "former-versions/README.md",
        "told_by",
        "a column of format version 2",
    ),
    (
        "former-versions/README.md",
        "got_by",
        "a column of format version 2",
    ),
    ("redact/public.rs", "nobody", "a user of Unix"),
    ("redact/public.rs", "question", "a public word"),
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
];

pub(super) fn check(name: &str, text: &str, complaints: &mut Vec<String>) {
    if name.ends_with("tidy/glossary.rs") {
        return;
    }
    for (at, line) in text.lines().enumerate() {
        // Names of tests may stay, so that their history can be followed.
        if is_test_name(name, line) {
            continue;
        }
        let line = if name == "CHANGELOG.md" {
            without_code(line)
        } else {
            line.to_owned()
        };
        // Places in it are those in the line.
        let lower = line.to_ascii_lowercase();
        for (word, instead) in BANNED {
            if has(&line, &lower, word) && !is_allowed(name, word) {
                let line = at + 1;
                complaints.push(format!("{name}:{line}: `{word}`: write {instead}"));
            }
        }
    }
}

/// Whether a line is the name of a test in TypeScript or JavaScript. Names in Rust and Python are
/// single words.
fn is_test_name(name: &str, line: &str) -> bool {
    name.contains("web/tests/") && line.trim_start().starts_with("test(\"")
}

/// A line of Markdown without the text between backquotes: a changelog lists former names.
fn without_code(line: &str) -> String {
    line.split('`').step_by(2).collect::<Vec<_>>().join("``")
}

fn is_allowed(name: &str, word: &str) -> bool {
    ALLOWED
        .iter()
        .any(|(end, allowed, _)| name.ends_with(end) && *allowed == word)
}

/// Whether a line, also given in lower case, has this word between characters that are not part of a
/// word, not in one of [`PHRASES`], and not as the [`LABEL`].
fn has(line: &str, lower: &str, word: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    lower.match_indices(word).any(|(at, _)| {
        let (before, after) = (&line[..at], &line[at + word.len()..]);
        let is_in_phrase = || {
            PHRASES.iter().any(|(of, phrase, _)| {
                let Some(into) = phrase.find(word).filter(|_| *of == word) else {
                    return false;
                };
                let rest = at.checked_sub(into).and_then(|from| lower.get(from..));
                rest.is_some_and(|rest| rest.starts_with(phrase))
            })
        };
        let is_label = || word == LABEL && is_identifier(before, &line[at..at + word.len()], after);
        !before.ends_with(is_part) && !after.starts_with(is_part) && !is_in_phrase() && !is_label()
    })
}

/// Whether the word is a label or an identifier rather than prose: `WHO`, `**Who:**`, in quotes, the
/// field of something, or its declaration.
fn is_identifier(before: &str, word: &str, after: &str) -> bool {
    let is_between = |quote: char| before.ends_with(quote) && after.starts_with(quote);
    let is_field = || {
        ["", "pub ", "readonly "].contains(&before.trim_start())
            && (after.starts_with(": ") || after == ",")
    };
    let is_function = || before.ends_with("fn ") && after.starts_with('(');
    match word {
        "WHO" => true,
        "Who" => before.ends_with("**") && after.starts_with(":**"),
        "who" => {
            is_between('"')
                || is_between('`')
                || before.ends_with('.')
                || is_field()
                || is_function()
        }
        _ => false,
    }
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
        let in_capitals = format!("{}.", BANNED[7].0.to_uppercase());
        assert_eq!(found("a.md", &in_capitals).len(), 1);
        assert!(found("a.rs", &format!("{word}_of, s{word}, {word}er")).is_empty());
        assert!(found("docs/format.md", word).is_empty());
        assert!(found("CHANGELOG.md", &format!("`{word}` is now `known`")).is_empty());
        assert_eq!(found("CHANGELOG.md", &format!("`a` {word} `b`")).len(), 1);
    }

    #[test]
    fn phrases_and_names_of_tests_may_have_a_word() {
        let is_fine = |name: &str, text: &str| {
            let mut complaints = Vec::new();
            check(name, text, &mut complaints);
            complaints.is_empty()
        };
        let [(word, phrase, _), ..] = PHRASES;
        assert!(is_fine("a.md", &format!("It {phrase}.")));
        assert!(!is_fine(
            "a.md",
            &format!("{phrase}, but others can {word}")
        ));
        let name = format!("test(\"it can {word}\", () => {{");
        assert!(is_fine("web/tests/unit/a.test.ts", &name));
        assert!(!is_fine("web/src/a.ts", &name));
    }

    #[test]
    fn a_label_and_its_field_are_not_prose() {
        let is_fine = |text: &str| {
            let mut complaints = Vec::new();
            check("a.rs", text, &mut complaints);
            complaints.is_empty()
        };
        let (small, capitals) = (LABEL, LABEL.to_uppercase());
        for text in [
            format!("    {capitals}   app (pid 5): 1 of 305 openat() took 158 ms"),
            format!("- **W{}:** {{}}", &small[1..]),
            format!("[\"why\", \"{small}\"]"),
            format!("JSON has `{small}` of a finding"),
            format!("    pub {small}: String,"),
            format!("    readonly {small}: string;"),
            format!("    {small}: self.{small}(&victims),"),
            format!("    {small},"),
            format!("fn {small}(&self) -> String {{"),
            format!("page.{small}, page.why"),
        ] {
            assert!(is_fine(&text), "{text}");
        }
        for text in [
            format!("the thread {small} holds it"),
            format!("those {small}, like this one, wait"),
            format!("// {small}: the thread"),
            format!("W{} waits?", &small[1..]),
            format!("`{small}` of those {small} wait"),
            format!("pub {small} waits"),
        ] {
            assert!(!is_fine(&text), "{text}");
        }
    }

    #[test]
    fn exceptions_are_for_banned_words_and_have_reasons() {
        let is_banned = |word: &str| BANNED.iter().any(|(banned, _)| *banned == word);
        for (_, word, reason) in ALLOWED {
            assert!(is_banned(word) && !reason.is_empty(), "{word}");
        }
        for (word, phrase, reason) in PHRASES {
            assert!(is_banned(word) && !reason.is_empty(), "{word}");
            // A phrase that is the word alone would lift the ban.
            assert!(phrase.contains(word) && phrase != word, "{phrase}");
        }
        assert!(is_banned(LABEL));
    }
}
