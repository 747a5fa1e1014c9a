//! Measures every verb × kind on a generated recording: `speed DIRECTORY [SYSCALLS]`. The recording
//! is created if it does not exist.

#![allow(clippy::print_stdout, reason = "a program")]

#[path = "../tests/it/made.rs"]
#[allow(dead_code, reason = "tests use more of it")]
mod made;
#[path = "../tests/it/made_requests.rs"]
mod made_requests;
#[path = "../tests/it/made_sched.rs"]
mod made_sched;
#[path = "../tests/it/made_waits.rs"]
mod made_waits;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use whyslow_analysis::{Kind, Query, Verb, evaluate};
use whyslow_model::{Symbols, Window};
use whyslow_store::{Existing, Recording, RecordingWriter, Tables};

type AnyError = Box<dyn std::error::Error>;

fn main() -> Result<(), AnyError> {
    let mut arguments = std::env::args().skip(1);
    let directory = PathBuf::from(
        arguments
            .next()
            .ok_or("usage: speed DIRECTORY [SYSCALLS]")?,
    );
    let syscalls = arguments.next().map_or(Ok(10_000_000), |n| n.parse())?;
    if !directory.exists() {
        write(&directory, syscalls)?;
    }
    let recording = Recording::open(&directory)?;
    let length = recording.info().end_ns - recording.info().begin_ns;
    let middle = recording.info().begin_ns + length / 2;
    let second = Window::new(middle, middle + 1_000_000_000.min(length / 10));
    for (what, query) in queries() {
        let windowed = Query {
            window: Some(second),
            ..query.clone()
        };
        let (all, part) = (best(&recording, &query)?, best(&recording, &windowed)?);
        println!(
            "{what:24} {:8.1} ms   window {:8.1} ms",
            millis(all),
            millis(part)
        );
    }
    Ok(())
}

fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

fn best(recording: &Recording, query: &Query) -> Result<Duration, AnyError> {
    let mut best = Duration::MAX;
    for _ in 0..3 {
        let start = Instant::now();
        evaluate(recording, query)?;
        best = best.min(start.elapsed());
    }
    Ok(best)
}

fn queries() -> Vec<(&'static str, Query)> {
    let by = |keys: &[&str], kind, verb| Query {
        by: keys.iter().map(ToString::to_string).collect(),
        ..Query::new(kind, verb)
    };
    vec![
        ("io stats", Query::new(Kind::Io, Verb::Stats)),
        ("io usage", Query::new(Kind::Io, Verb::Usage)),
        (
            "io usage --by process",
            by(&["process"], Kind::Io, Verb::Usage),
        ),
        ("io hist", Query::new(Kind::Io, Verb::Hist)),
        ("io heat", Query::new(Kind::Io, Verb::Heat)),
        ("io top", Query::new(Kind::Io, Verb::Top)),
        ("io syscalls", Query::new(Kind::Io, Verb::Syscalls)),
        (
            "io stats --by comm,pid",
            by(&["comm", "pid"], Kind::Io, Verb::Stats),
        ),
        ("io stats --by file", by(&["file"], Kind::Io, Verb::Stats)),
        ("io usage --by file", by(&["file"], Kind::Io, Verb::Usage)),
        ("files top", Query::new(Kind::Files, Verb::Top)),
        (
            "files top --by pattern",
            by(&["pattern"], Kind::Files, Verb::Top),
        ),
        ("files tree", Query::new(Kind::Files, Verb::Tree)),
        ("block stats", Query::new(Kind::Block, Verb::Stats)),
        ("block usage", Query::new(Kind::Block, Verb::Usage)),
        ("block hist", Query::new(Kind::Block, Verb::Hist)),
        ("states usage", Query::new(Kind::States, Verb::Usage)),
        ("threads list", Query::new(Kind::Threads, Verb::List)),
    ]
}

fn write(directory: &std::path::Path, syscalls: u64) -> Result<(), AnyError> {
    let amount = made::Amount {
        seed: 1,
        syscalls,
        blocks: syscalls / 10,
        states: syscalls / 2,
        paths: 50_000,
        gap_ns: 6_000,
    };
    let start = Instant::now();
    let mut symbols = Symbols::new();
    let mut failure = None;
    let mut writer = RecordingWriter::create(directory, Existing::Refuse)?;
    let info = made::make(amount, &mut symbols, &mut writer, |writer, symbols| {
        if let Err(error) = writer.flush_ready(symbols) {
            failure.get_or_insert(error);
        }
    });
    failure.map_or(Ok(()), Err)?;
    writer.finish(&symbols, info)?;
    println!("written in {:.1} s", start.elapsed().as_secs_f64());
    Ok(())
}
