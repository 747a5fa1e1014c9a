//! Chores of the repository: `cargo run -p xtask -- tidy | docs [--check] | synthetic DIR ROWS`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

mod docs;
mod synthetic;
mod tidy;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let result = match words.as_slice() {
        ["tidy"] => tidy::check(&root()),
        ["docs"] => docs::write(&root()),
        ["docs", "--check"] => docs::check(&root()),
        ["synthetic", target, rows] => number(rows)
            .and_then(|rows| synthetic::write(Path::new(target), rows))
            .map(|done| say(&done))
            .map_err(|error| vec![error]),
        _ => Err(vec![
            "usage: xtask tidy | docs [--check] | synthetic DIR ROWS".into(),
        ]),
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

fn number(word: &str) -> Result<u64, String> {
    word.replace(['_', ','], "")
        .parse()
        .map_err(|_| format!("`{word}` is not a number"))
}

#[allow(clippy::print_stdout)] // what the chore measured is its output
fn say(text: &str) {
    println!("{text}");
}
