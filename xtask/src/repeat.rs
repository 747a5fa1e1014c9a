//! Makes a large trace from a small real one by repeating its packets with shifted clocks.
//!
//! Compact event headers contain only the low bits of the clock. A shift by a multiple of 2^32 cycles
//! does not change these bits, so only packet contexts, sequence numbers and the extended headers
//! (which contain the full clock) are patched. Works on LTTng kernel traces since 2.8 with the large
//! event header, such as the bundled one; other traces are rejected.

use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::ops::ControlFlow;
use std::path::Path;

use whyslow_ingest::importers::ctf::consumer::{ClassRef, Consumer, Want};
use whyslow_ingest::importers::ctf::decoded::DecodedEvent;
use whyslow_ingest::importers::ctf::reader::CtfReader;

const MAGIC: u32 = 0xC1FC_1FC1;
/// Offsets in a packet: header of 32 bytes, then the context.
const TIMESTAMP_BEGIN: usize = 32;
const TIMESTAMP_END: usize = 40;
const PACKET_SIZE: usize = 56;
const SEQUENCE_NUMBER: usize = 64;
const CONTEXT_END: usize = 84;
/// Id in the large header that announces the real id and the full clock.
const EXTENDED: u16 = 0xFFFF;
const EXTENDED_CLOCK: usize = 2 + 4;
const CYCLE: u64 = 1 << 32;

pub(crate) fn repeat(source: &Path, target: &Path, events_wanted: u64) -> Result<String, String> {
    let text = |what: &Path, error: std::io::Error| format!("{}: {error}", what.display());
    std::fs::create_dir_all(target).map_err(|e| text(target, e))?;
    let metadata = source.join("metadata");
    std::fs::copy(&metadata, target.join("metadata")).map_err(|e| text(&metadata, e))?;

    let mut reader = CtfReader::open(source).map_err(|e| e.to_string())?;
    let mut places = Places::new(&reader)?;
    reader.read(&mut places).map_err(|e| e.to_string())?;
    let events: u64 = places.streams.values().map(|stream| stream.events).sum();
    let times = events_wanted.div_ceil(events.max(1));
    for (path, place) in &places.streams {
        let file = source.join(path);
        let bytes = std::fs::read(&file).map_err(|e| text(&file, e))?;
        let packets = packets(&bytes).map_err(|e| format!("{path}: {e}"))?;
        let out = target.join(path);
        let mut out = BufWriter::new(File::create(&out).map_err(|e| text(&out, e))?);
        let mut copy = bytes.clone();
        let period = places.span.next_multiple_of(CYCLE).max(CYCLE);
        for round in 0..times {
            copy.copy_from_slice(&bytes);
            shift(&mut copy, &packets, &place.extended, round * period, round);
            out.write_all(&copy).map_err(|e| e.to_string())?;
        }
    }
    Ok(format!("{} events", events * times))
}

#[derive(Default)]
struct Stream {
    events: u64,
    /// Offsets of events with an extended header.
    extended: Vec<usize>,
}

#[derive(Default)]
struct Places {
    streams: std::collections::BTreeMap<String, Stream>,
    begin: Option<i64>,
    span: u64,
    /// Names and contents of the stream files, by stream number.
    files: Vec<(String, Vec<u8>)>,
}

impl Places {
    fn new(reader: &CtfReader) -> Result<Self, String> {
        let mut places = Self::default();
        for stream in reader.streams() {
            let [path] = stream.paths.as_slice() else {
                return Err("unsupported layout: a stream has several files".into());
            };
            let bytes = std::fs::read(path).map_err(|e| format!("{}: {e}", path.display()))?;
            let name = path
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned();
            places.files.push((name, bytes));
        }
        Ok(places)
    }
}

impl Consumer for Places {
    fn wants(&mut self, _class: &ClassRef<'_>) -> Want {
        Want::Fields(Vec::new())
    }

    fn event(&mut self, event: &DecodedEvent<'_>) -> ControlFlow<()> {
        let (name, bytes) = &self.files[event.stream];
        let stream = self.streams.entry(name.clone()).or_default();
        stream.events += 1;
        let at = event.offset as usize;
        if bytes[at..].starts_with(&EXTENDED.to_le_bytes()) {
            stream.extended.push(at);
        }
        let begin = *self.begin.get_or_insert(event.ts);
        self.span = self.span.max(event.ts.saturating_sub(begin) as u64 + 1);
        ControlFlow::Continue(())
    }
}

/// Offsets of packets.
fn packets(bytes: &[u8]) -> Result<Vec<usize>, String> {
    let mut at = 0;
    let mut found = Vec::new();
    while at + CONTEXT_END <= bytes.len() {
        if !bytes[at..].starts_with(&MAGIC.to_le_bytes()) {
            return Err(format!("no packet at byte {at}"));
        }
        found.push(at);
        let bits = u64_at(bytes, at + PACKET_SIZE);
        let size = (bits / 8) as usize;
        if size < CONTEXT_END || size > bytes.len() - at {
            return Err(format!(
                "unsupported layout: a packet of {size} bytes at byte {at}"
            ));
        }
        at += size;
    }
    Ok(found)
}

fn shift(bytes: &mut [u8], packets: &[usize], extended: &[usize], cycles: u64, round: u64) {
    for &at in packets {
        add(bytes, at + TIMESTAMP_BEGIN, cycles);
        add(bytes, at + TIMESTAMP_END, cycles);
        add(bytes, at + SEQUENCE_NUMBER, round * packets.len() as u64);
    }
    for &at in extended {
        add(bytes, at + EXTENDED_CLOCK, cycles);
    }
}

fn add(bytes: &mut [u8], at: usize, cycles: u64) {
    let value = u64_at(bytes, at).wrapping_add(cycles);
    bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}
