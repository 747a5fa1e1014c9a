//! Decodes every field of every event of a trace and says how long it took: `ctf_decode PATH [N]`
//! does it N times, with the name of each event class if N is 0.
#![allow(clippy::print_stdout)]

use std::error::Error;
use std::path::Path;
use std::time::Instant;

use whyslow_ingest::importers::ctf::reader::{CtfReader, decode_all};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().ok_or("usage: ctf_decode PATH [N]")?;
    let times: u32 = arguments.next().map_or(Ok(1), |times| times.parse())?;
    let summary = decode_all(Path::new(&path))?;
    if times == 0 {
        let reader = CtfReader::open(Path::new(&path))?;
        for (class, count) in reader.classes().zip(&summary.events_by_class) {
            if *count > 0 {
                println!("{}\t{count}", class.event.name);
            }
        }
    }
    let begin = Instant::now();
    for _ in 0..times {
        decode_all(Path::new(&path))?;
    }
    let events = summary.events_read * u64::from(times);
    let rate = events as f64 / begin.elapsed().as_secs_f64() / 1e6;
    println!(
        "{} events, {} delivered, {} skipped, {} packets; {rate:.2} M events/s",
        summary.events_read, summary.events_delivered, summary.events_skipped, summary.packets_read
    );
    for anomaly in summary.anomalies {
        let (path, offset) = (anomaly.path.display(), anomaly.byte_offset);
        println!(
            "{} × {} (`{path}`, byte {offset}: {})",
            anomaly.count, anomaly.stat.name, anomaly.text
        );
    }
    Ok(())
}
