//! Repository rules that can be checked automatically. Also runs as a test.

mod architecture;
mod budget;
mod circles;
mod edges;
mod glossary;
mod shape;
mod sql;
mod unfinished;

use std::path::{Path, PathBuf};
use std::process::Command;

/// Collects all complaints, so that one run reports them all.
pub(crate) fn check(root: &Path) -> Result<(), Vec<String>> {
    let files = tracked(root);
    let (mut long_files, mut complaints) = (Vec::new(), Vec::new());
    for path in &files {
        let name = path
            .strip_prefix(root)
            .unwrap_or(path)
            .display()
            .to_string();
        let Ok(text) = std::fs::read_to_string(path) else {
            continue;
        };
        shape::check(&name, &text, &mut long_files, &mut complaints);
        unfinished::check(&name, &text, &mut complaints);
        glossary::check(&name, &text, &mut complaints);
        sql::check(&name, &text, &mut complaints);
    }
    let api = "docs/openapi.json";
    if let Ok(text) = std::fs::read_to_string(root.join(api)) {
        glossary::check(api, &text, &mut complaints);
    }
    if long_files.len() > shape::LONG_FILES_MAX {
        complaints.append(&mut long_files);
    }
    edges::check(root, &mut complaints);
    architecture::check(root, &mut complaints);
    circles::check(root, &files, &mut complaints);
    budget::check(root, &mut complaints);
    fixtures_have_readmes(root, &mut complaints);
    committed_files_are_small(root, &mut complaints);
    if complaints.is_empty() {
        Ok(())
    } else {
        Err(complaints)
    }
}

/// Sources and documents of the repository, without build output and ignored folders.
fn tracked(root: &Path) -> Vec<PathBuf> {
    const SKIP: [&str; 6] = [
        "target",
        ".git",
        "node_modules",
        "dist",
        "corpus",
        "web-incident",
    ];
    const ENDINGS: [&str; 12] = [
        "rs", "md", "sql", "toml", "sh", "py", "ts", "tsx", "mjs", "c", "h", "lock",
    ];
    let mut files = Vec::new();
    let mut folders = vec![root.to_path_buf()];
    while let Some(folder) = folders.pop() {
        let Ok(entries) = std::fs::read_dir(&folder) else {
            continue;
        };
        for entry in entries.flatten() {
            let path = entry.path();
            let name = entry.file_name().to_string_lossy().into_owned();
            if path.is_dir() && !path.is_symlink() {
                if !SKIP.contains(&name.as_str()) {
                    folders.push(path);
                }
            } else if path
                .extension()
                .is_some_and(|e| ENDINGS.iter().any(|known| e == *known))
            {
                files.push(path);
            }
        }
    }
    files.sort();
    files
}

fn fixtures_have_readmes(root: &Path, complaints: &mut Vec<String>) {
    let Ok(entries) = std::fs::read_dir(root.join("fixtures")) else {
        return;
    };
    for entry in entries.flatten() {
        let path = entry.path();
        if path.is_dir() && !path.join("README.md").exists() {
            complaints.push(format!(
                "{}: a fixture folder needs a README.md",
                path.display()
            ));
        }
    }
}

/// Every clone contains all committed bytes for ever. Checks nothing outside a clone.
fn committed_files_are_small(root: &Path, complaints: &mut Vec<String>) {
    const MAX_BYTES: u64 = 200_000;
    let listed = Command::new("git")
        .arg("-C")
        .arg(root)
        .args(["ls-files", "-z"])
        .output();
    let names = listed.map(|listed| listed.stdout).unwrap_or_default();
    for name in String::from_utf8_lossy(&names).split_terminator('\0') {
        let bytes = std::fs::metadata(root.join(name)).map_or(0, |file| file.len());
        if bytes > MAX_BYTES && !name.starts_with("fixtures/") {
            complaints.push(format!(
                "{name}: {bytes} bytes; only fixtures may be large, and third-party files do not \
                 belong here"
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_house_is_tidy() {
        if let Err(complaints) = super::check(&crate::root()) {
            panic!("{}", complaints.join("\n"));
        }
    }
}
