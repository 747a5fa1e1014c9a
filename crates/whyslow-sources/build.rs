//! Takes over what the questions of fleets say of themselves.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::{env, fs};

/// Names and heads of the texts in `sql/fleet/`, in order.
fn main() {
    let from_cargo = |name| PathBuf::from(env::var_os(name).expect("cargo sets it"));
    let folder = from_cargo("CARGO_MANIFEST_DIR").join("../../sql/fleet");
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed={}", folder.display());
    let entries = fs::read_dir(&folder).into_iter().flatten().flatten();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    files.sort();
    let mut list = String::from("static HEADS: &[(&str, &str)] = &[");
    for file in files {
        let name = file
            .file_stem()
            .and_then(|name| name.to_str())
            .unwrap_or_default();
        // Variants of a question for groups of hosts are chosen by what it is asked by.
        let is_question = file.extension().is_some_and(|ending| ending == "sql");
        if !is_question || name.ends_with("_of_groups") {
            continue;
        }
        println!("cargo::rerun-if-changed={}", file.display());
        let text = fs::read_to_string(&file).expect("it is text");
        let head: Vec<&str> = text
            .lines()
            .take_while(|line| line.starts_with("--"))
            .collect();
        let _ = write!(list, "({name:?}, {:?}),", head.join("\n"));
    }
    list.push_str("];");
    fs::write(from_cargo("OUT_DIR").join("fleet.rs"), list).expect("the build's folder takes it");
}
