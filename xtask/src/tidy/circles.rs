//! Circles of imports: files of one crate of which each imports the next, and the last the first.
//!
//! A circle over many files has no lower layer: nothing in it can be read, tested or moved alone.
//! The graph is read from the sources, as text: `use` declarations and paths that begin with
//! `crate`, `self` or `super`, outside of comments and unit tests. A path leads to the deepest
//! module that it names. `mod` declarations are not imports.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// A handful.
const FILES_MAX: usize = 5;
/// Circles that were there before this rule. A number may only fall.
const KNOWN: [(&str, usize); 0] = [];

pub(super) fn check(root: &Path, files: &[std::path::PathBuf], complaints: &mut Vec<String>) {
    let mut crates: BTreeMap<String, BTreeMap<Vec<String>, (String, String)>> = BTreeMap::new();
    for path in files {
        let Ok(relative) = path.strip_prefix(root) else {
            continue;
        };
        let name = relative.display().to_string();
        let Some((krate, module)) = module_of(&name) else {
            continue;
        };
        let Ok(text) = std::fs::read_to_string(path) else {
            continue;
        };
        let modules = crates.entry(krate.to_owned()).or_default();
        modules.insert(module, (name, text));
    }
    for (krate, modules) in &crates {
        let known = KNOWN.iter().find(|(name, _)| name == krate);
        let limit = known.map_or(FILES_MAX, |(_, files)| *files);
        for circle in circles(modules) {
            if circle.len() > limit {
                complaints.push(format!(
                    "crates/{krate}: {} files import each other in a circle, at most {limit}: {}",
                    circle.len(),
                    circle.join(", ")
                ));
            }
        }
    }
}

/// Crate and module of `crates/KRATE/src/a/b.rs`; none for tests, examples and benches.
fn module_of(name: &str) -> Option<(&str, Vec<String>)> {
    let (krate, inner) = name.strip_prefix("crates/")?.split_once("/src/")?;
    let mut module: Vec<String> = inner
        .strip_suffix(".rs")?
        .split('/')
        .map(Into::into)
        .collect();
    let last = module.last()?.clone();
    if last == "tests" || last.ends_with("_tests") || last.ends_with("_test") {
        return None;
    }
    if matches!(last.as_str(), "mod" | "lib" | "main") {
        module.pop();
    }
    Some((krate, module))
}

/// Names of the files of each circle with more than one file, in order.
fn circles(modules: &BTreeMap<Vec<String>, (String, String)>) -> Vec<Vec<String>> {
    let numbers: BTreeMap<&Vec<String>, usize> = modules
        .keys()
        .enumerate()
        .map(|(at, module)| (module, at))
        .collect();
    let mut edges = vec![BTreeSet::new(); modules.len()];
    for (at, (module, (_, text))) in modules.iter().enumerate() {
        for path in paths(text) {
            let Some(target) = resolve(&path, module, &numbers) else {
                continue;
            };
            if target != at {
                edges[at].insert(target);
            }
        }
    }
    let names: Vec<&String> = modules.values().map(|(name, _)| name).collect();
    let mut found: Vec<Vec<String>> = components(&edges)
        .into_iter()
        .filter(|component| component.len() > 1)
        .map(|component| component.into_iter().map(|at| names[at].clone()).collect())
        .collect();
    for circle in &mut found {
        circle.sort();
    }
    found.sort();
    found
}

/// The deepest module that a path leads to, if it begins in this crate.
fn resolve(
    path: &[String],
    module: &[String],
    numbers: &BTreeMap<&Vec<String>, usize>,
) -> Option<usize> {
    let mut at: Vec<String> = match path.first()?.as_str() {
        "crate" => Vec::new(),
        "self" | "super" => module.to_vec(),
        // `use child::Thing` names a child of the module, if there is one of that name.
        first => {
            let child: Vec<String> = [module, &[first.to_owned()]].concat();
            numbers.get(&child)?;
            module.to_vec()
        }
    };
    let mut steps = path.iter().peekable();
    while let Some(step) = steps.peek() {
        match step.as_str() {
            "crate" | "self" => {}
            "super" => {
                at.pop()?;
            }
            _ => break,
        }
        steps.next();
    }
    for step in steps {
        let deeper: Vec<String> = [&at[..], &[step.clone()]].concat();
        if !numbers.contains_key(&deeper) {
            break;
        }
        at = deeper;
    }
    numbers.get(&at).copied()
}

/// Paths of the `use` declarations, each leaf by itself, and paths in the code that begin with
/// `crate`, `self` or `super`.
fn paths(text: &str) -> Vec<Vec<String>> {
    let code = product_code(text);
    let mut found = Vec::new();
    for statement in code.split(';') {
        let statement = statement.trim_start();
        // What stands before a `use` in the same statement: attributes and visibility.
        let Some(tree) = use_tree(statement) else {
            continue;
        };
        leaves(&tree.replace(char::is_whitespace, " "), &[], &mut found);
    }
    for start in ["crate::", "super::", "self::"] {
        for (at, _) in code.match_indices(start) {
            let is_whole =
                !code[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == ':');
            if is_whole {
                let path: String = code[at..]
                    .chars()
                    .take_while(|c| c.is_alphanumeric() || *c == '_' || *c == ':')
                    .collect();
                found.push(
                    path.split("::")
                        .filter(|step| !step.is_empty())
                        .map(Into::into)
                        .collect(),
                );
            }
        }
    }
    found
}

/// What a `use` declaration at the end of a statement imports.
fn use_tree(statement: &str) -> Option<&str> {
    let at = match statement.strip_prefix("use ") {
        Some(tree) => return Some(tree),
        None => statement
            .rfind("\nuse ")
            .or_else(|| statement.rfind(") use "))
            .or_else(|| {
                statement
                    .rfind("pub use ")
                    .filter(|at| statement[..*at].ends_with('\n') || *at == 0)
            }),
    }?;
    let rest = &statement[at..];
    let from = rest.find("use ")? + "use ".len();
    Some(&rest[from..])
}

/// `a::{b, c::d}` is `a::b` and `a::c::d`.
fn leaves(tree: &str, before: &[String], found: &mut Vec<Vec<String>>) {
    let tree = tree.trim();
    if let Some((head, inner)) = tree.split_once('{') {
        let head: Vec<String> = steps(head);
        let before = [before, &head[..]].concat();
        let inner = inner.trim_end().strip_suffix('}').unwrap_or(inner);
        let (mut depth, mut from) = (0, 0);
        for (at, c) in inner.char_indices() {
            match c {
                '{' => depth += 1,
                '}' => depth -= 1,
                ',' if depth == 0 => {
                    leaves(&inner[from..at], &before, found);
                    from = at + 1;
                }
                _ => {}
            }
        }
        leaves(&inner[from..], &before, found);
    } else if !tree.is_empty() {
        found.push([before, &steps(tree)[..]].concat());
    }
}

fn steps(path: &str) -> Vec<String> {
    let path = path.split(" as ").next().unwrap_or(path);
    path.split("::")
        .map(str::trim)
        .filter(|step| !step.is_empty())
        .map(Into::into)
        .collect()
}

/// The text without comments and without what only tests see.
fn product_code(text: &str) -> String {
    let mut code = String::with_capacity(text.len());
    let mut hidden_until: Option<String> = None;
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        if let Some(end) = &hidden_until {
            if line == end {
                hidden_until = None;
            }
            continue;
        }
        let bare = line.trim_start();
        if bare.starts_with("//") {
            continue;
        }
        if bare == "#[cfg(test)]" {
            let Some(item) = lines.next() else { break };
            if item.trim_end().ends_with('{') {
                let indent = &item[..item.len() - item.trim_start().len()];
                hidden_until = Some(format!("{indent}}}"));
            }
            continue;
        }
        code.push_str(line.split(" // ").next().unwrap_or(line));
        code.push('\n');
    }
    code
}

/// Strongly connected components (Tarjan, R.: Depth-first search and linear graph algorithms, 1972).
fn components(edges: &[BTreeSet<usize>]) -> Vec<Vec<usize>> {
    let mut search = Search {
        edges,
        index: vec![None; edges.len()],
        low: vec![0; edges.len()],
        on_stack: vec![false; edges.len()],
        stack: Vec::new(),
        next: 0,
        found: Vec::new(),
    };
    for at in 0..edges.len() {
        if search.index[at].is_none() {
            search.visit(at);
        }
    }
    search.found
}

struct Search<'e> {
    edges: &'e [BTreeSet<usize>],
    index: Vec<Option<usize>>,
    low: Vec<usize>,
    on_stack: Vec<bool>,
    stack: Vec<usize>,
    next: usize,
    found: Vec<Vec<usize>>,
}

impl Search<'_> {
    fn visit(&mut self, at: usize) {
        self.index[at] = Some(self.next);
        self.low[at] = self.next;
        self.next += 1;
        self.stack.push(at);
        self.on_stack[at] = true;
        for &to in &self.edges[at] {
            match self.index[to] {
                None => {
                    self.visit(to);
                    self.low[at] = self.low[at].min(self.low[to]);
                }
                Some(index) if self.on_stack[to] => self.low[at] = self.low[at].min(index),
                Some(_) => {}
            }
        }
        if self.index[at] == Some(self.low[at]) {
            let mut component = Vec::new();
            while let Some(member) = self.stack.pop() {
                self.on_stack[member] = false;
                component.push(member);
                if member == at {
                    break;
                }
            }
            self.found.push(component);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn circles_of(files: &[(&str, &str)]) -> Vec<Vec<String>> {
        let modules = files.iter().map(|(name, text)| {
            let (_, module) = module_of(name).expect("a source file");
            (module, ((*name).to_owned(), (*text).to_owned()))
        });
        circles(&modules.collect())
    }

    #[test]
    fn a_circle_is_found_through_each_form_of_import() {
        let found = circles_of(&[
            ("crates/k/src/lib.rs", "mod a;\nmod b;\nmod c;\nmod d;\n"),
            ("crates/k/src/a.rs", "use crate::{b::{B, Other}, std::X};\n"),
            (
                "crates/k/src/b/mod.rs",
                "mod inner;\npub(crate) use inner::B;\n",
            ),
            (
                "crates/k/src/b/inner.rs",
                "fn f() { crate::c::run(super::super::d::D) }\n",
            ),
            ("crates/k/src/c.rs", "use super::a::A;\n"),
            ("crates/k/src/d.rs", "use std::io;\n"),
        ]);
        let want =
            ["a.rs", "b/inner.rs", "b/mod.rs", "c.rs"].map(|file| format!("crates/k/src/{file}"));
        assert_eq!(found, [want]);
    }

    #[test]
    fn comments_tests_and_declarations_are_no_imports() {
        let found = circles_of(&[
            ("crates/k/src/lib.rs", "mod a;\nmod b;\n"),
            ("crates/k/src/a.rs", "use crate::b::B;\n"),
            (
                "crates/k/src/b.rs",
                "// use crate::a::A;\n#[cfg(test)]\nmod tests {\n    use crate::a::A;\n}\n",
            ),
        ]);
        assert!(found.is_empty(), "{found:?}");
    }

    #[test]
    fn a_large_circle_is_a_complaint() {
        let folder = tempfile::tempdir().expect("a folder");
        let source = folder.path().join("crates/k/src");
        std::fs::create_dir_all(&source).expect("a folder");
        let names: Vec<String> = (0..FILES_MAX + 1).map(|n| format!("m{n}")).collect();
        let mut files = Vec::new();
        for (at, name) in names.iter().enumerate() {
            let next = &names[(at + 1) % names.len()];
            let file = source.join(format!("{name}.rs"));
            std::fs::write(&file, format!("use crate::{next}::Thing;\n")).expect("a file");
            files.push(file);
        }
        let mut complaints = Vec::new();
        check(folder.path(), &files, &mut complaints);
        assert_eq!(complaints.len(), 1, "{complaints:?}");
        files.pop();
        complaints.clear();
        check(folder.path(), &files, &mut complaints);
        assert!(complaints.is_empty(), "{complaints:?}");
    }
}
