//! Embeds the header comments of the fleet queries.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::{env, fs};

/// Names and headers of the files in `sql/fleet/`, in order.
fn main() {
    let from_cargo = |name| PathBuf::from(env::var_os(name).expect("set by cargo"));
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
        // Variants of a query for groups of hosts are selected by its grouping.
        let is_query = file.extension().is_some_and(|ending| ending == "sql");
        if !is_query || name.ends_with("_of_groups") {
            continue;
        }
        println!("cargo::rerun-if-changed={}", file.display());
        let text = fs::read_to_string(&file).expect("a text file");
        let head: Vec<&str> = text
            .lines()
            .take_while(|line| line.starts_with("--"))
            .collect();
        let _ = write!(list, "({name:?}, {:?}),", head.join("\n"));
    }
    list.push_str("];");
    fs::write(from_cargo("OUT_DIR").join("fleet.rs"), list).expect("OUT_DIR is writable");
}
