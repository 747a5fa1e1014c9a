//! Checks `ARCHITECTURE.md` and `docs/decisions/` against the code.
//!
//! The page is useful only while it is short and true, so its size, its lists and every place that it
//! names are compared with the code. A place is `path` or `path:NAME`, in backticks; a path is relative
//! to the repository, or `CRATE/REST` for `crates/whyslow-CRATE/src/REST`.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use super::edges;

const PAGE: &str = "ARCHITECTURE.md";
const BYTES_MAX: usize = 12 << 10;
const DETECT: &str = "crates/whyslow-ingest/src/detect.rs";
const IMPORTERS: &str = "crates/whyslow-ingest/src/importers/mod.rs";
const QUERY: &str = "crates/whyslow-analysis/src/query.rs";
const DECISIONS: &str = "docs/decisions";

/// Modules that the importers share.
const HELPERS: [&str; 7] = [
    "bad",
    "bytes",
    "rwbs",
    "stamp",
    "streamed",
    "task_state",
    "tracepoint",
];

/// Fields of every decision, in this order.
const FIELDS: [&str; 4] = ["Decision", "Why", "Rejected", "Measured"];

/// Extensions of files that the page names.
const ENDINGS: [&str; 9] = [
    ".c", ".h", ".json", ".md", ".py", ".rs", ".sql", ".toml", ".ts",
];

pub(super) fn check(root: &Path, complaints: &mut Vec<String>) {
    let read = |path: &str| fs::read_to_string(root.join(path)).unwrap_or_default();
    let page = read(PAGE);
    size(&page, complaints);
    crates(&page, &crates_of(root), complaints);
    words(&page, ("Kinds", "Kind"), &read(QUERY), complaints);
    words(&page, ("Verbs", "Verb"), &read(QUERY), complaints);
    sources(&page, &read(DETECT), complaints);
    importers(&page, &read(IMPORTERS), complaints);
    places(&page, &|path| content(root, path), complaints);
    let files = fs::read_dir(root.join(DECISIONS)).into_iter().flatten();
    let mut files: Vec<_> = files.flatten().map(|entry| entry.path()).collect();
    files.sort();
    if files.is_empty() {
        complaints.push(format!("{DECISIONS}: no decisions are recorded"));
    }
    for path in files {
        let name = path.strip_prefix(root).unwrap_or(&path).display();
        let text = fs::read_to_string(&path).unwrap_or_default();
        decisions(&name.to_string(), &text, complaints);
    }
}

fn size(page: &str, complaints: &mut Vec<String>) {
    if page.len() > BYTES_MAX {
        complaints.push(format!(
            "{PAGE}: {} bytes (at most {BYTES_MAX}); explanations belong in {DECISIONS}",
            page.len()
        ));
    }
}

/// Each crate with its workspace dependencies.
type Crates = Vec<(String, BTreeSet<String>)>;

fn crates_of(root: &Path) -> Crates {
    let folders = fs::read_dir(root.join("crates")).into_iter().flatten();
    let mut crates: Crates = folders
        .flatten()
        .filter_map(|folder| {
            let manifest = fs::read_to_string(folder.path().join("Cargo.toml")).ok()?;
            let ours = edges::dependencies(&manifest)
                .filter_map(|name| name.strip_prefix("whyslow-"))
                .map(str::to_owned);
            Some((
                folder.file_name().to_string_lossy().into_owned(),
                ours.collect(),
            ))
        })
        .collect();
    crates.sort();
    crates
}

/// The code map has one row per crate: name, content, first file, dependencies. Dependencies of a named
/// dependency may be omitted.
fn crates(page: &str, crates: &Crates, complaints: &mut Vec<String>) {
    let rows: Vec<Vec<&str>> = page
        .lines()
        .filter(|line| line.starts_with("| `whyslow"))
        .map(|line| line.trim_matches('|').split('|').map(str::trim).collect())
        .collect();
    let name_of = |row: &Vec<&str>| row[0].trim_matches('`').to_owned();
    for (name, dependencies) in crates {
        let Some(row) = rows.iter().find(|row| name_of(row) == *name) else {
            complaints.push(format!("{PAGE}: the code map lacks `{name}`"));
            continue;
        };
        let listed = row.last().unwrap_or(&"").split(", ").map(str::to_owned);
        let listed: BTreeSet<String> = listed.filter(|name| name != "–").collect();
        let are_all = all_below(&listed, crates) == all_below(dependencies, crates);
        if row.len() != 4 || !listed.is_subset(dependencies) || !are_all {
            complaints.push(format!(
                "{PAGE}: the row of `{name}` needs its content, its first file, and as dependencies: {}",
                join(dependencies)
            ));
        }
    }
    let is_known = |name: &String| crates.iter().any(|(known, _)| known == name);
    for name in rows.iter().map(name_of).filter(|name| !is_known(name)) {
        complaints.push(format!("{PAGE}: no crate is called `{name}`"));
    }
}

/// These crates and their transitive dependencies.
fn all_below(names: &BTreeSet<String>, crates: &Crates) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut waiting: Vec<&String> = names.iter().collect();
    while let Some(name) = waiting.pop() {
        let is_new = found.insert(name.clone());
        let mut known = crates.iter();
        let known = known.find(|(known, _)| known.strip_prefix("whyslow-") == Some(name.as_str()));
        waiting.extend(
            known
                .filter(|_| is_new)
                .into_iter()
                .flat_map(|(_, below)| below),
        );
    }
    found
}

/// Compares a list of the page with the command line words of an enumeration.
fn words(page: &str, (label, of): (&str, &str), query: &str, complaints: &mut Vec<String>) {
    let arm = format!("{of}::");
    let words = query.lines().filter_map(|line| {
        let (_, word) = line.trim().strip_prefix(&arm)?.split_once(" => \"")?;
        word.split_once('"')
    });
    let words: BTreeSet<&str> = words.map(|(word, _)| word).collect();
    let begin = format!("- {label}: ");
    let line = page.lines().find_map(|line| line.strip_prefix(&begin));
    let listed: BTreeSet<&str> = quoted(line.unwrap_or_default()).collect();
    differ(&format!("list of {label}"), &words, &listed, complaints);
}

/// Checks that the rows of queues name every kind of source.
fn sources(page: &str, detect: &str, complaints: &mut Vec<String>) {
    let body = detect.split_once("pub enum SourceKind {");
    let body = body.and_then(|(_, rest)| rest.split_once("\n}"));
    let variants = body.map_or("", |(body, _)| body).lines().map(str::trim);
    let is_variant = |line: &&str| line.starts_with(char::is_uppercase);
    let variants: BTreeSet<&str> = variants
        .filter(is_variant)
        .filter_map(|line| line.split([',', '(', ' ']).next())
        .collect();
    let is_source = |word: &&str| {
        word.starts_with(char::is_uppercase) && word.chars().all(char::is_alphanumeric)
    };
    let listed: BTreeSet<&str> = queues(page)
        .flat_map(quoted)
        .filter(is_source)
        .filter(|word| *word != "SourceKind")
        .collect();
    differ("table of sources", &variants, &listed, complaints);
}

/// Checks that they name every importer.
fn importers(page: &str, modules: &str, complaints: &mut Vec<String>) {
    let modules = modules.lines().filter_map(|line| {
        let (_, name) = line.strip_suffix(';')?.rsplit_once("mod ")?;
        Some(name)
    });
    let modules: BTreeSet<&str> = modules.filter(|name| !HELPERS.contains(name)).collect();
    let is_module = |word: &&str| {
        let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        word.chars().all(is_plain)
    };
    let listed: BTreeSet<&str> = queues(page).flat_map(quoted).filter(is_module).collect();
    differ("table of importers", &modules, &listed, complaints);
}

fn queues(page: &str) -> impl Iterator<Item = &str> {
    page.lines()
        .filter(|line| line.starts_with("| `ingest/pipeline/"))
}

/// Checks that every file and folder that the page names exists and declares the named item. `content`
/// returns the text of a file, and nothing for a missing one.
fn places(page: &str, content: &dyn Fn(&str) -> Option<String>, complaints: &mut Vec<String>) {
    for word in quoted(page) {
        let (path, name) = word
            .split_once(':')
            .map_or((word, None), |(path, name)| (path, Some(name)));
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-/".contains(c);
        let is_file = ENDINGS.iter().any(|ending| path.ends_with(ending));
        let is_path = path.starts_with(char::is_alphanumeric) && path.chars().all(is_plain);
        if !is_path || !is_file && !path.ends_with('/') {
            continue;
        }
        match (content(path), name) {
            (None, _) => complaints.push(format!("{PAGE}: `{path}` does not exist")),
            (Some(text), Some(name)) if !declares(&text, name) => {
                complaints.push(format!("{PAGE}: `{path}` declares no `{name}`"));
            }
            _ => {}
        }
    }
}

fn content(root: &Path, path: &str) -> Option<String> {
    let in_crate = path.split_once('/').map(|(name, rest)| match name {
        "whyslow" => format!("crates/whyslow/src/{rest}"),
        name => format!("crates/whyslow-{name}/src/{rest}"),
    });
    let places = [Some(path.to_owned()), in_crate].into_iter().flatten();
    let mut places = places.map(|place| root.join(place));
    let place = places.find(|place| place.exists())?;
    Some(fs::read_to_string(place).unwrap_or_default())
}

/// Whether a Rust or C file declares it as a function, a type or a constant.
fn declares(text: &str, name: &str) -> bool {
    const KEYWORDS: [&str; 9] = [
        "fn", "struct", "enum", "trait", "type", "const", "static", "void", "int",
    ];
    text.lines().any(|line| {
        KEYWORDS.iter().any(|keyword| {
            let found = line.split_once(&format!("{keyword} {name}"));
            found.is_some_and(|(_, rest)| {
                !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_')
            })
        })
    })
}

/// A record is a heading with exactly the four fields, one line each; a heading without text is a
/// group.
fn decisions(name: &str, text: &str, complaints: &mut Vec<String>) {
    let mut count = 0;
    for section in text.split("\n#").skip(1) {
        let (heading, body) = section.split_once('\n').unwrap_or((section, ""));
        let heading = heading.trim_start_matches('#').trim();
        let lines: Vec<&str> = body.lines().filter(|line| !line.is_empty()).collect();
        if lines.is_empty() {
            continue;
        }
        count += 1;
        let has = |(line, field): (&&str, &&str)| {
            let rest = line.strip_prefix(&format!("- **{field}:** "));
            rest.is_some_and(|rest| !rest.trim().is_empty())
        };
        if lines.len() != FIELDS.len() || !lines.iter().zip(&FIELDS).all(has) {
            complaints.push(format!(
                "{name}: `{heading}` needs the fields {}, one line each",
                FIELDS.join(", ")
            ));
        }
    }
    if count == 0 {
        complaints.push(format!("{name}: has no decisions"));
    }
}

/// Texts in backticks, except in indented code.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.lines()
        .flat_map(|line| line.split('`').skip(1).step_by(2))
}

fn differ(
    what: &str,
    wanted: &BTreeSet<&str>,
    listed: &BTreeSet<&str>,
    complaints: &mut Vec<String>,
) {
    if wanted.is_empty() {
        complaints.push(format!(
            "{PAGE}: cannot check the {what}: no words in the code"
        ));
    }
    for word in wanted.difference(listed) {
        complaints.push(format!("{PAGE}: the {what} lacks `{word}`"));
    }
    for word in listed.difference(wanted) {
        complaints.push(format!(
            "{PAGE}: the {what} has `{word}`, which is not in the code"
        ));
    }
}

fn join(names: &BTreeSet<String>) -> String {
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    if names.is_empty() {
        "–".to_owned()
    } else {
        names.join(", ")
    }
}

#[cfg(test)]
mod tests;
