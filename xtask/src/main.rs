//! Chores of the repository: `cargo run -p xtask -- CHORE`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

mod docs;
mod machine;
mod repeat;
mod requests;
mod synthetic;
mod tidy;

use machine::Rows;

const USAGE: &str = "usage: xtask CHORE
  tidy                          rules of the house
  docs [--check]                documents made from code
  decode TRACE                  decode every field of every event, count them
  repeat TRACE DIR EVENTS       a large trace from a small one
  synthetic DIR.wsl ROWS        a recording to measure questions on
  requests DIR.wsl ROWS         one of requests to 17 disks, the first of which is bad
  machine DIR.wsl ROWS          one of a busy machine: so many rows of each kind
  machine DIR.wsl ROWS together so many of all kinds, in the proportions of an incident";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let result = match words.as_slice() {
        ["tidy"] => tidy::check(&root()),
        ["docs"] => docs::write(&root()),
        ["docs", "--check"] => docs::check(&root()),
        ["decode", source] => decode(Path::new(source))
            .map(|done| say(&done))
            .map_err(|e| vec![e]),
        ["repeat", source, target, events] => number(events)
            .and_then(|events| repeat::repeat(Path::new(source), Path::new(target), events))
            .map(|done| say(&done))
            .map_err(|error| vec![error]),
        ["requests", target, rows] => number(rows)
            .and_then(|rows| requests::write(Path::new(target), rows))
            .map(|done| say(&done))
            .map_err(|error| vec![error]),
        ["machine", target, rows] => machine(target, rows, Rows::Each),
        ["machine", target, rows, "together"] => machine(target, rows, Rows::Together),
        ["synthetic", target, rows] => number(rows)
            .and_then(|rows| synthetic::write(Path::new(target), rows))
            .map(|done| say(&done))
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

/// Decodes every field of every event and drops it: what `babeltrace2 -o dummy` does.
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
        .map(|done| say(&done))
        .map_err(|error| vec![error])
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
