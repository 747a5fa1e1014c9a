//! Chores of the repository: `cargo run -p xtask -- tidy | docs [--check]`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

mod docs;
mod tidy;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let result = match words.as_slice() {
        ["tidy"] => tidy::check(&root()),
        ["docs"] => docs::write(&root()),
        ["docs", "--check"] => docs::check(&root()),
        _ => Err(vec!["usage: xtask tidy | docs [--check]".into()]),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(complaints) => {
            for complaint in complaints {
                report(&complaint);
            }
            ExitCode::FAILURE
        }
    }
}

/// The repository this program was built in.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("xtask lies in the workspace")
        .into()
}

#[allow(clippy::print_stderr)] // a chore talks on stderr
fn report(complaint: &str) {
    eprintln!("{complaint}");
}
