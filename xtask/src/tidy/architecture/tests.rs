//! For each rule a page that keeps it, and one that breaks it.

use super::*;

/// Runs a check and compares its complaints.
fn complains(check: impl FnOnce(&mut Vec<String>), expected: &[&str]) {
    let mut complaints = Vec::new();
    check(&mut complaints);
    let short = |text: &String| text.trim_start_matches("ARCHITECTURE.md: ").to_owned();
    let complaints: Vec<String> = complaints.iter().map(short).collect();
    assert_eq!(complaints, expected);
}

#[test]
fn a_page_that_is_too_long_is_seen() {
    complains(|found| size(&"x".repeat(BYTES_MAX), found), &[]);
    complains(
        |found| size(&"x".repeat(BYTES_MAX + 1), found),
        &["12289 bytes (at most 12288); explanations belong in docs/decisions"],
    );
}

#[test]
fn the_code_map_has_each_crate_with_its_dependencies() {
    let known: Crates = vec![
        ("whyslow-model".to_owned(), BTreeSet::new()),
        (
            "whyslow-store".to_owned(),
            BTreeSet::from(["model".to_owned()]),
        ),
    ];
    let model = "| `whyslow-model` | words | `model/lib.rs` | – |\n";
    let store = "| `whyslow-store` | files | `store/lib.rs` | model |\n";
    let check = |page: String, expected: &[&str]| {
        complains(|found| crates(&page, &known, found), expected);
    };
    check(format!("{model}{store}"), &[]);
    check(model.to_owned(), &["the code map lacks `whyslow-store`"]);
    check(
        format!("{model}{}", store.replace("| model |", "| – |")),
        &[
            "the row of `whyslow-store` needs its content, its first file, and as dependencies: model",
        ],
    );
    check(
        format!("{}{store}", model.replace("| `model/lib.rs` ", "")),
        &["the row of `whyslow-model` needs its content, its first file, and as dependencies: –"],
    );
    let base = (
        "whyslow-base".to_owned(),
        ["model", "store"].map(str::to_owned).into(),
    );
    let higher: Crates = known.iter().cloned().chain([base]).collect();
    let check_base = |dependencies: &str, expected: &[&str]| {
        let page =
            format!("{model}{store}| `whyslow-base` | flags | `base/lib.rs` | {dependencies} |\n");
        complains(|found| crates(&page, &higher, found), expected);
    };
    let wrong = "the row of `whyslow-base` needs its content, its first file, and as dependencies: model, store";
    check_base("model, store", &[]);
    check_base("store", &[]);
    check_base("model", &[wrong]);
    check_base("store, load", &[wrong]);
    check(
        format!("{model}{store}| `whyslow-old` | nothing | `old/lib.rs` | – |\n"),
        &["no crate is called `whyslow-old`"],
    );
}

#[test]
fn kinds_and_verbs_are_those_of_the_command_line() {
    let query = "            Kind::Io => \"io\",\n            Kind::Mem => \"mem\",\n            Verb::Top => \"top\",\n";
    let check = |page: &str, expected: &[&str]| {
        complains(
            |found| {
                words(page, ("Kinds", "Kind"), query, found);
                words(page, ("Verbs", "Verb"), query, found);
            },
            expected,
        );
    };
    check("- Kinds: `io`, `mem`\n- Verbs: `top`\n", &[]);
    check(
        "- Kinds: `io`\n- Verbs: `top`\n",
        &["the list of Kinds lacks `mem`"],
    );
    check(
        "- Kinds: `io`, `mem`\n- Verbs: `top`, `log`\n",
        &["the list of Verbs has `log`, which is not in the code"],
    );
    complains(
        |found| words("- Kinds: `io`\n", ("Kinds", "Kind"), "", found),
        &[
            "cannot check the list of Kinds: no words in the code",
            "the list of Kinds has `io`, which is not in the code",
        ],
    );
}

#[test]
fn sources_and_importers_are_those_of_the_code() {
    let detect =
        "pub enum SourceKind {\n    /// Lines.\n    Text,\n    Samples(samplers::Form),\n}\n";
    let modules = "mod bad;\npub mod samplers;\npub(crate) mod text;\n";
    let text = "| `ingest/pipeline/text_source.rs` | `Text` (`text`) |\n";
    let samples = "| `ingest/pipeline/b.rs` | `Samples` (`samplers`) |\n";
    let check = |page: String, expected: &[&str]| {
        complains(
            |found| {
                sources(&page, detect, found);
                importers(&page, modules, found);
            },
            expected,
        );
    };
    check(format!("{text}{samples}"), &[]);
    check(
        text.to_owned(),
        &[
            "the table of sources lacks `Samples`",
            "the table of importers lacks `samplers`",
        ],
    );
    check(
        format!(
            "{text}{samples}{}",
            text.replace("Text", "Old").replace("`text`", "`old`")
        ),
        &[
            "the table of sources has `Old`, which is not in the code",
            "the table of importers has `old`, which is not in the code",
        ],
    );
}

#[test]
fn places_exist_and_declare_what_they_are_named_for() {
    let content = |path: &str| match path {
        "a/b.rs" => Some("pub(crate) fn find_all() {}\nstruct Here;\n".to_owned()),
        "a/b.h" => Some("static __always_inline void lose(__u64 now)\n".to_owned()),
        "docs/" => Some(String::new()),
        _ => None,
    };
    let check = |page: &str, expected: &[&str]| {
        complains(|found| places(page, &content, found), expected);
    };
    check(
        "`a/b.rs`, `a/b.rs:find_all`, `a/b.rs:Here`, `a/b.h:lose`, `docs/`, `/proc/`, `op:17`, `a::b`, `x y.rs`",
        &[],
    );
    check("see `a/c.rs`", &["`a/c.rs` does not exist"]);
    check("see `old/`", &["`old/` does not exist"]);
    check("see `a/b.rs:find`", &["`a/b.rs` declares no `find`"]);
}

#[test]
fn a_decision_has_its_four_fields() {
    let good = "# Decisions\n\nWords.\n\n## Group\n\n### One\n\n- **Decision:** a\n- **Why:** b\n- **Rejected:** –\n- **Measured:** –\n";
    let check = |text: &str, expected: &[&str]| {
        complains(|found| decisions("a.md", text, found), expected);
    };
    let broken = "a.md: `One` needs the fields Decision, Why, Rejected, Measured, one line each";
    check(good, &[]);
    check(&good.replace("- **Why:** b\n", ""), &[broken]);
    check(&good.replace("**Why:** b", "**Why:** "), &[broken]);
    check(&good.replace("Rejected", "Measured"), &[broken]);
    check(&format!("{good}- **More:** x\n"), &[broken]);
    check("# Decisions\n", &["a.md: has no decisions"]);
}
