//! Reads a JFR file up to a given stage, for measurements: `profile read|gaps|locks FILE` (read and
//! sorted; with sampling gaps; with lock holders), or `profile write FILE OUTPUT.wsl` (complete
//! import). Prints one line of JSON.

#![allow(clippy::print_stdout, reason = "a program")]

use std::path::PathBuf;
use std::time::Instant;

use whyslow_ingest::importers::jfr;
use whyslow_ingest::profile::{gaps, locks};
use whyslow_ingest::{ImportOptions, import};

type AnyError = Box<dyn std::error::Error>;

fn main() -> Result<(), AnyError> {
    let mut arguments = std::env::args_os().skip(1);
    let usage = "usage: profile read|gaps|locks FILE, profile write FILE OUTPUT.wsl";
    let mut next = || arguments.next().ok_or(usage);
    let (part, file) = (next()?, next()?);
    let begin = Instant::now();
    let ms = || begin.elapsed().as_secs_f64() * 1e3;
    if part == "write" {
        let options = ImportOptions::new(PathBuf::from(next()?));
        let report = import(&[PathBuf::from(file)], &options, &mut |_| {})?;
        println!(
            "{{\"records\":{},\"wall_ms\":{:.0}}}",
            report.records.read,
            ms()
        );
        return Ok(());
    }
    let file = std::fs::File::open(file)?;
    let found = jfr::read_chunks(&file, file.metadata()?.len())?;
    let mut profile = found.ok_or("a chunk does not match its header")?.profile;
    let read = ms();
    let (mut found, mut waits) = (None, 0);
    if part != "read" {
        found = gaps::find(&mut profile).ok();
    }
    let gapped = ms();
    if part == "locks" {
        waits = locks::find(&profile, found.as_ref().unwrap_or(&gaps::Gaps::default())).len();
    }
    println!(
        "{{\"samples\":{},\"events\":{},\"gaps\":{},\"waits\":{waits},\"wall_ms\":[{read:.0},{:.0},{:.0}]}}",
        profile.points.len(),
        profile.events.len(),
        found.map_or(0, |found| found.gaps.len()),
        gapped - read,
        ms() - gapped,
    );
    Ok(())
}
