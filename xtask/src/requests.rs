//! A recording of many requests to several disks, for benchmarks of device queries: each disk is
//! busy for a third of the time, and one in twenty requests of the first disk takes twenty times as
//! long.

use std::path::Path;

use whyslow_model::Symbols;
use whyslow_model::row::Emit as _;
use whyslow_model::tables::BlockIoRow;
use whyslow_store::{Existing, RecordingInfo, RecordingWriter};

use crate::synthetic::Random;

const BEGIN: i64 = 1_700_000_000_000_000_000;
const DISKS: u64 = 17;
/// A request arrives every 20 µs and takes a median of 100 µs.
const GAP_NS: u64 = 20_000;
const USUAL_NS: f64 = 100_000.0;
const SECTORS: [i64; 4] = [8, 16, 64, 256];

pub(crate) fn write(target: &Path, rows: u64) -> Result<String, String> {
    let text = |error: whyslow_store::StoreError| error.to_string();
    let mut writer = RecordingWriter::create(target, Existing::Replace).map_err(text)?;
    let mut symbols = Symbols::new();
    let letters = "abcdefghijklmnopq".chars();
    let names: Vec<_> = letters
        .map(|letter| symbols.intern(&format!("sd{letter}")))
        .collect();
    let ops = [("read", "R"), ("read", "R"), ("write", "W")]
        .map(|(op, rwbs)| (symbols.intern(op), symbols.intern(rwbs)));
    let layer = symbols.intern("request");
    let mut random = Random(0x9E37_79B9_7F4A_7C15);
    for id in 0..rows {
        let disk = random.next() % DISKS;
        let ts = BEGIN + (id * GAP_NS + random.next() % GAP_NS) as i64;
        let queue_ns = (random.next() % 20_000) as i64;
        let device_ns = device_ns(disk, &mut random);
        let (op, rwbs) = ops[(random.next() % 3) as usize];
        let sectors = SECTORS[(random.next() % 4) as usize];
        writer.emit(BlockIoRow {
            id: id as i64,
            ts,
            dur: Some(queue_ns + device_ns),
            ts_end: Some(ts + queue_ns + device_ns),
            ts_issue: Some(ts + queue_ns),
            queue_ns: Some(queue_ns),
            device_ns: Some(device_ns),
            dev: (8 << 20) + 16 * disk as i64,
            dev_name: names[disk as usize],
            part: None,
            part_name: None,
            sector: (random.next() % (1 << 31)) as i64,
            sectors,
            bytes: sectors * 512,
            op,
            rwbs,
            layer,
            utid: None,
            upid: None,
            tid: None,
            pid: None,
            comm: None,
            submitter_source: None,
            issuer_utid: None,
            cpu: Some((id % 8) as i32),
            merges: 0,
            completions: 1,
            error: None,
            cut: None,
        });
        writer.flush_ready(&symbols).map_err(text)?;
    }
    let about = RecordingInfo {
        host: Some("synthetic".into()),
        begin_ns: BEGIN,
        end_ns: BEGIN + (rows * GAP_NS) as i64 + 1_000_000_000,
        ..RecordingInfo::default()
    };
    writer.finish(&symbols, about).map_err(text)?;
    Ok(format!("{rows} requests to {DISKS} disks"))
}

fn device_ns(disk: u64, random: &mut Random) -> i64 {
    let usual = USUAL_NS * random.spread(0.5);
    let is_slow = disk == 0 && random.next().is_multiple_of(20);
    (usual * if is_slow { 20.0 } else { 1.0 }) as i64
}
