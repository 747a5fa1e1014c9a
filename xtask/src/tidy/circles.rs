//! Import cycles: files of one crate of which each imports the next, and the last imports the first.
//!
//! A cycle over many files has no lower layer: none of its files can be read, tested or moved alone.
//! The graph is read from the source text: `use` declarations and paths that start with `crate`,
//! `self` or `super`, outside of comments and unit tests. A path leads to the deepest module that it
//! names, and from there to the origin of a reexported name. `mod` declarations are not imports, nor is
//! a `pub use` of a submodule's items.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Maximum number of files in a cycle.
const FILES_MAX: usize = 5;
/// Cycles that existed before this rule. A number may only decrease.
const KNOWN: [(&str, usize); 4] = [
    ("whyslow-analysis", 6),
    ("whyslow-ingest", 8),
    ("whyslow-model", 12),
    ("whyslow-record", 11),
];

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
                    "crates/{krate}: import cycle of {} files, at most {limit}: {}",
                    circle.len(),
                    circle.join(", ")
                ));
            }
        }
    }
}

/// Crate and module of `crates/KRATE/src/a/b.rs`; `None` for tests, examples and benches.
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

/// Imports and reexports of a file.
#[derive(Default)]
struct Uses {
    paths: Vec<Vec<String>>,
    /// Name in this module → its path.
    names: BTreeMap<String, Vec<String>>,
    /// Paths of `pub use`.
    reexports: Vec<Vec<String>>,
}

struct Graph<'m> {
    numbers: BTreeMap<&'m Vec<String>, usize>,
    modules: Vec<&'m Vec<String>>,
    uses: Vec<Uses>,
}

/// File names of each cycle with more than one file, in order.
fn circles(modules: &BTreeMap<Vec<String>, (String, String)>) -> Vec<Vec<String>> {
    let graph = Graph {
        numbers: modules.keys().zip(0..).collect(),
        modules: modules.keys().collect(),
        uses: modules.values().map(|(_, text)| uses(text)).collect(),
    };
    let mut edges = vec![BTreeSet::new(); modules.len()];
    for (at, uses) in graph.uses.iter().enumerate() {
        let below = |target: usize| graph.modules[target].starts_with(graph.modules[at]);
        let imports = uses.paths.iter().filter_map(|path| graph.resolve(path, at));
        let reexports = uses
            .reexports
            .iter()
            .filter_map(|path| graph.resolve(path, at));
        edges[at].extend(imports.chain(reexports.filter(|target| !below(*target))));
        edges[at].remove(&at);
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

impl Graph<'_> {
    /// The file that a path in the file `at` leads to, if it is in this crate.
    fn resolve(&self, path: &[String], at: usize) -> Option<usize> {
        /// Maximum number of reexports of a name.
        const STEPS_MAX: usize = 16;
        let (mut path, mut at) = (path.to_vec(), at);
        for _ in 0..STEPS_MAX {
            let (found, rest) = self.walk(&path, at)?;
            let Some((name, rest)) = rest.split_first() else {
                return Some(found);
            };
            let Some(origin) = self.uses[found].names.get(name) else {
                return Some(found);
            };
            (path, at) = ([origin, rest].concat(), found);
        }
        Some(at)
    }

    /// The deepest module that a path names, and the rest of the path.
    fn walk<'p>(&self, path: &'p [String], at: usize) -> Option<(usize, &'p [String])> {
        let mut module: Vec<String> = match path.first()?.as_str() {
            "crate" => Vec::new(),
            "self" | "super" => self.modules[at].clone(),
            // `use child::Thing` names a child of the module if it has one of that name.
            first => {
                let child: Vec<String> = [&self.modules[at][..], &[first.to_owned()]].concat();
                self.numbers.get(&child)?;
                self.modules[at].clone()
            }
        };
        let mut rest = path;
        while let Some((step, after)) = rest.split_first() {
            match step.as_str() {
                "crate" | "self" => {}
                "super" => {
                    module.pop()?;
                }
                _ => break,
            }
            rest = after;
        }
        while let Some((step, after)) = rest.split_first() {
            let deeper: Vec<String> = [&module[..], std::slice::from_ref(step)].concat();
            if !self.numbers.contains_key(&deeper) {
                break;
            }
            (module, rest) = (deeper, after);
        }
        Some((*self.numbers.get(&module)?, rest))
    }
}

/// The `use` declarations, one per leaf, and paths in the code that start with `crate`, `self` or
/// `super`.
fn uses(text: &str) -> Uses {
    let code = product_code(text);
    let mut uses = Uses::default();
    let mut rest = String::with_capacity(code.len());
    for statement in code.split_inclusive(';') {
        let Some((before, tree)) = use_tree(statement) else {
            rest.push_str(statement);
            continue;
        };
        rest.push_str(before);
        let mut found = Vec::new();
        leaves(&tree.replace(char::is_whitespace, " "), &[], &mut found);
        let is_public = before.trim_end().ends_with("pub") || before.trim_end().ends_with(')');
        for (name, path) in found {
            uses.names.insert(name, path.clone());
            if is_public {
                uses.reexports.push(path);
            } else {
                uses.paths.push(path);
            }
        }
    }
    for start in ["crate::", "super::", "self::"] {
        for (at, _) in rest.match_indices(start) {
            let is_whole =
                !rest[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == ':');
            // `pub(in crate::a)` is not an import.
            if is_whole && !rest[..at].ends_with("(in ") {
                let path: String = rest[at..]
                    .chars()
                    .take_while(|c| c.is_alphanumeric() || *c == '_' || *c == ':')
                    .collect();
                uses.paths.push(steps(&path));
            }
        }
    }
    uses
}

/// The text before the `use` at the end of a statement, and its tree.
fn use_tree(statement: &str) -> Option<(&str, &str)> {
    let at = statement.match_indices("use ").find(|(at, _)| {
        let before = &statement[..*at];
        let line = before.rsplit('\n').next().unwrap_or(before).trim();
        line.is_empty() || line == "pub" || (line.starts_with("pub(") && line.ends_with(')'))
    });
    let (at, mark) = at?;
    let tree = statement[at + mark.len()..].trim_end().strip_suffix(';')?;
    Some((&statement[..at], tree))
}

/// Splits a tree: `a::{b, c::d as e}` is `a::b` named `b`, and `a::c::d` named `e`.
fn leaves(tree: &str, before: &[String], found: &mut Vec<(String, Vec<String>)>) {
    let tree = tree.trim();
    if let Some((head, inner)) = tree.split_once('{') {
        let before = [before, &steps(head)[..]].concat();
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
        let (path, alias) = tree.split_once(" as ").unwrap_or((tree, ""));
        let mut path = [before, &steps(path)[..]].concat();
        if path.last().is_some_and(|step| step == "self") {
            path.pop();
        }
        let last = path.last().cloned().unwrap_or_default();
        let name = if alias.is_empty() {
            last
        } else {
            alias.trim().to_owned()
        };
        found.push((name, path));
    }
}

fn steps(path: &str) -> Vec<String> {
    path.split("::")
        .map(str::trim)
        .filter(|step| !step.is_empty())
        .map(Into::into)
        .collect()
}

/// The text without comments and test modules.
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
        let want = ["a.rs", "b/inner.rs", "c.rs"].map(|file| format!("crates/k/src/{file}"));
        assert_eq!(found, [want]);
    }

    #[test]
    fn a_name_leads_to_where_it_is_defined() {
        // The root and `b` reexport; only the origin is imported.
        let found = circles_of(&[
            (
                "crates/k/src/lib.rs",
                "mod a;\nmod b;\npub use b::Thing as Named;\n",
            ),
            ("crates/k/src/a.rs", "use crate::Named;\npub struct A;\n"),
            (
                "crates/k/src/b/mod.rs",
                "mod c;\npub(crate) use c::{self, Thing};\n",
            ),
            ("crates/k/src/b/c.rs", "use crate::a::A;\n"),
        ]);
        let want = ["a.rs", "b/c.rs"].map(|file| format!("crates/k/src/{file}"));
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
        let names: Vec<String> = (0..=FILES_MAX).map(|n| format!("m{n}")).collect();
        let mut files = Vec::new();
        for (at, name) in names.iter().enumerate() {
            let next = &names[(at + 1) % names.len()];
            let file = source.join(format!("{name}.rs"));
            std::fs::write(&file, format!("use crate::{next}::Of{next};\n")).expect("a file");
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
