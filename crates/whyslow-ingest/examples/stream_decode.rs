//! Reads a trace.dat file, or blktrace files, to the end: `stream_decode FILE…`. Prints the number
//! of records and events, the CPU time and the memory used.
#![allow(clippy::print_stdout)]

use std::path::PathBuf;

use whyslow_ingest::importers::blktrace::BlktraceSource;
use whyslow_ingest::importers::streamed::Streamed;
use whyslow_ingest::importers::tracedat::TraceDatSource;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let paths: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    let first = paths.first().ok_or("usage: stream_decode FILE…")?;
    let mut source: Box<dyn Streamed> = match TraceDatSource::open(first, Some(0), 0) {
        Ok(source) => Box::new(source),
        Err(_) => Box::new(BlktraceSource::open(&paths, None, 0).map_err(|(_, error)| error)?),
    };
    let mut items = 0_u64;
    while source.next(&mut |_| items += 1)? {}
    let summary = source.summary();
    println!("{} records, {} items", summary.records, items);
    for note in summary.notes.iter().filter(|note| note.count > 0) {
        println!("{}: {}", note.stat.name, note.count);
    }
    let status = std::fs::read_to_string("/proc/self/status")?;
    println!(
        "{}",
        status
            .lines()
            .find(|line| line.starts_with("VmHWM"))
            .unwrap_or("")
    );
    Ok(())
}
