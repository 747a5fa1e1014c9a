//! A trace from which events are missing: a copy of a complete LTTng trace, in smaller packets, only
//! some of which are kept. The complete trace then shows what is true.

use std::fs;
use std::ops::{ControlFlow, Range};
use std::path::Path;

use whyslow_ingest::importers::ctf::consumer::{ClassRef, Consumer, Want};
use whyslow_ingest::importers::ctf::decoded::DecodedEvent;
use whyslow_ingest::importers::ctf::reader::CtfReader;

/// How a trace shows that events are missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Thinning {
    /// Packets are missing in the sequence: the tracer overwrote them.
    Overwritten,
    /// The packet before counts the events: the tracer discarded them while its buffer was full.
    Discarded,
}

/// Size of the header of a packet: magic, uuid, stream and instance.
const HEADER: usize = 4 + 16 + 4 + 8;
/// Numbers of 64 bits behind it, and their number; the CPU follows.
const BEGIN: usize = 0;
const END: usize = 1;
const CONTENT_BITS: usize = 2;
const PACKET_BITS: usize = 3;
const SEQUENCE: usize = 4;
const DISCARDED: usize = 5;
const NUMBERS: usize = 6;
/// Size of header and context.
const EVENTS: usize = HEADER + 8 * NUMBERS + 4;

/// Writes such a copy of a trace of a 64-bit machine, with packets of `events` events. `keep` is
/// called with the numbers of stream and packet; the first packet of a stream is always kept.
///
/// # Panics
/// If the trace cannot be read, or has another layout.
pub fn thin_out(
    (trace, into): (&Path, &Path),
    events: usize,
    how: Thinning,
    mut keep: impl FnMut(usize, usize) -> bool,
) {
    let mut reader = CtfReader::open(trace).expect("it is a trace");
    let mut places = Places(vec![Vec::new(); reader.streams().len()]);
    reader.read(&mut places).expect("it can be read");
    fs::create_dir_all(into).expect("there is room");
    for (number, places) in places.0.into_iter().enumerate() {
        let stream = &reader.streams()[number];
        let clock = &reader.traces()[stream.trace].class.clocks[0];
        assert_eq!(clock.frequency, 1_000_000_000);
        let origin = clock.offset_seconds * 1_000_000_000 + clock.offset_cycles;
        let path = &stream.paths[0];
        fs::copy(path.with_file_name("metadata"), into.join("metadata")).expect("there is room");
        let bytes = fs::read(path).expect("it was just read");
        let mut kept: Vec<Kept> = Vec::new();
        let mut discarded = 0;
        for (sequence, part) in parts(&bytes, &places, events).into_iter().enumerate() {
            let last = kept.last_mut();
            if let Some(last) = last.filter(|_| !keep(number, sequence)) {
                if how == Thinning::Discarded {
                    discarded += part.events;
                    (last.part.end, last.discarded) = (part.end, discarded);
                }
                continue;
            }
            kept.push(Kept {
                sequence: match how {
                    Thinning::Overwritten => sequence,
                    Thinning::Discarded => kept.len(),
                },
                part,
                discarded,
            });
        }
        let packets = kept.iter().map(|kept| kept.bytes(&bytes, origin));
        let packets: Vec<Vec<u8>> = packets.collect();
        let name = path.file_name().expect("it is a file");
        fs::write(into.join(name), packets.concat()).expect("there is room");
    }
}

/// Offset in the file and time of all events, by stream.
struct Places(Vec<Vec<(u64, i64)>>);

impl Consumer for Places {
    fn wants(&mut self, _: &ClassRef<'_>) -> Want {
        Want::Everything
    }

    fn event(&mut self, event: &DecodedEvent<'_>) -> ControlFlow<()> {
        self.0[event.stream].push((event.offset, event.ts));
        ControlFlow::Continue(())
    }
}

/// Some consecutive events of a packet: a packet of the copy.
struct Part {
    /// Offset of the original packet.
    packet: usize,
    bytes: Range<usize>,
    begin: i64,
    end: i64,
    events: u64,
}

fn parts(bytes: &[u8], places: &[(u64, i64)], events: usize) -> Vec<Part> {
    let mut parts: Vec<Part> = Vec::new();
    let (mut packet, mut rest) = (0, places);
    while packet < bytes.len() {
        assert_eq!(bytes[packet..packet + 4], 0xC1FC_1FC1_u32.to_le_bytes());
        let content_end = packet + number(bytes, packet, CONTENT_BITS) as usize / 8;
        let next = packet + number(bytes, packet, PACKET_BITS) as usize / 8;
        let inside = rest.partition_point(|(offset, _)| (*offset as usize) < next);
        let (here, later) = rest.split_at(inside);
        for (number, chunk) in here.chunks(events).enumerate() {
            let following = here.get((number + 1) * events);
            let last = chunk[chunk.len() - 1].1;
            parts.push(Part {
                packet,
                bytes: chunk[0].0 as usize..following.map_or(content_end, |next| next.0 as usize),
                begin: chunk[0].1,
                end: following.map_or(last, |next| next.1),
                events: chunk.len() as u64,
            });
        }
        (packet, rest) = (next, later);
    }
    parts
}

fn number(bytes: &[u8], packet: usize, which: usize) -> u64 {
    let at = packet + HEADER + 8 * which;
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("8 bytes"))
}

/// A packet of the copy.
struct Kept {
    part: Part,
    sequence: usize,
    discarded: u64,
}

impl Kept {
    /// `origin` is the time of cycle 0.
    fn bytes(&self, original: &[u8], origin: i64) -> Vec<u8> {
        let Part {
            packet,
            bytes: events,
            begin,
            end,
            ..
        } = &self.part;
        let mut bytes = original[*packet..*packet + EVENTS].to_vec();
        bytes.extend(&original[events.clone()]);
        let bits = bytes.len() as u64 * 8;
        for (which, value) in [
            (BEGIN, (begin - origin) as u64),
            (END, (end - origin) as u64),
            (CONTENT_BITS, bits),
            (PACKET_BITS, bits),
            (SEQUENCE, self.sequence as u64),
            (DISCARDED, self.discarded),
        ] {
            let at = HEADER + 8 * which;
            bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
        }
        bytes
    }
}
