//! Decodes every field of every event of a trace, and prints the time it took.
//!
//! `ctf_decode PATH [N]` reads it N times; with N = 0 it prints the number of events of each name
//! instead.
#![allow(clippy::print_stdout)]

use std::error::Error;
use std::path::Path;
use std::time::Instant;

use whyslow_ingest::importers::ctf::reader::{CtfReader, DecodeAll};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().ok_or("usage: ctf_decode PATH [N]")?;
    let times: u32 = arguments.next().map_or(Ok(1), |times| times.parse())?;
    let begin = Instant::now();
    let mut reader = CtfReader::open(Path::new(&path))?;
    let open_ms = begin.elapsed().as_secs_f64() * 1e3;
    let begin = Instant::now();
    let mut summary = reader.read(&mut DecodeAll)?;
    for _ in 1..times {
        summary = reader.read(&mut DecodeAll)?;
    }
    let events = summary.events_read * u64::from(times.max(1));
    let rate = events as f64 / begin.elapsed().as_secs_f64() / 1e6;
    if times == 0 {
        for (class, count) in reader.classes().zip(&summary.events_by_class) {
            if *count > 0 {
                println!("{}\t{count}", class.event.name);
            }
        }
    }
    println!(
        "{} events, {} skipped, {} packets; opened in {open_ms:.1} ms, {rate:.2} M events/s",
        summary.events_read, summary.events_skipped, summary.packets_read
    );
    for anomaly in &summary.anomalies {
        let (path, offset) = (anomaly.path.display(), anomaly.byte_offset);
        let (count, name, text) = (anomaly.count, anomaly.stat.name, &anomaly.text);
        println!("{count} × {name} (`{path}`, byte {offset}: {text})");
    }
    Ok(())
}
