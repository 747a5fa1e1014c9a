//! Maintenance tasks of the repository: `cargo run -p xtask -- TASK`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

mod docs;
mod machine;
mod repeat;
mod requests;
mod synthetic;
mod tidy;

use machine::Rows;

const USAGE: &str = "usage: xtask TASK
  tidy                           check the repository rules
  docs [--check]                 generate (or check) documents from code
  decode TRACE                   decode every field of every event, and count events
  repeat TRACE DIR EVENTS        make a large trace from a small one
  synthetic DIR.wsl ROWS         make a recording of system calls for benchmarks
  requests DIR.wsl ROWS          make a recording of requests to 17 disks, the first of which is bad
  machine DIR.wsl ROWS           make a recording of a busy machine with ROWS rows per table
  machine DIR.wsl ROWS together  the same with ROWS rows in total, in the proportions of an incident";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let result = match words.as_slice() {
        ["tidy"] => tidy::check(&root()),
        ["docs"] => docs::write(&root()),
        ["docs", "--check"] => docs::check(&root()),
        ["decode", source] => decode(Path::new(source))
            .map(|done| print(&done))
            .map_err(|e| vec![e]),
        ["repeat", source, target, events] => number(events)
            .and_then(|events| repeat::repeat(Path::new(source), Path::new(target), events))
            .map(|done| print(&done))
            .map_err(|error| vec![error]),
        ["requests", target, rows] => number(rows)
            .and_then(|rows| requests::write(Path::new(target), rows))
            .map(|done| print(&done))
            .map_err(|error| vec![error]),
        ["machine", target, rows] => machine(target, rows, Rows::Each),
        ["machine", target, rows, "together"] => machine(target, rows, Rows::Together),
        ["synthetic", target, rows] => number(rows)
            .and_then(|rows| synthetic::write(Path::new(target), rows))
            .map(|done| print(&done))
            .map_err(|error| vec![error]),
        _ => Err(vec![USAGE.into()]),
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

/// The repository in which this program was built.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("xtask is in the workspace")
        .into()
}

#[allow(clippy::print_stderr)] // tasks report problems on stderr
fn report(complaint: &str) {
    eprintln!("{complaint}");
}

/// Decodes every field of every event and drops it, like `babeltrace2 -o dummy`.
fn decode(source: &Path) -> Result<String, String> {
    let summary =
        whyslow_ingest::importers::ctf::reader::decode_all(source).map_err(|e| e.to_string())?;
    Ok(format!(
        "{} events, {} not decodable",
        summary.events_read, summary.events_skipped
    ))
}

fn machine(target: &str, rows: &str, spread: Rows) -> Result<(), Vec<String>> {
    number(rows)
        .and_then(|rows| machine::write(Path::new(target), rows, spread))
        .map(|done| print(&done))
        .map_err(|error| vec![error])
}

fn number(word: &str) -> Result<u64, String> {
    word.replace(['_', ','], "")
        .parse()
        .map_err(|_| format!("`{word}` is not a number"))
}

#[allow(clippy::print_stdout)] // the result of a task is its output
fn print(text: &str) {
    println!("{text}");
}
