//! Writes small traces: shortened metadata of an LTTng kernel trace, and packets.
#![allow(clippy::unwrap_used)]

use std::fmt::Write as _;
use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use whyslow_ingest::importers::ctf::consumer::{ClassRef, Consumer, Loss, Progress, Want};
use whyslow_ingest::importers::ctf::decoded::DecodedEvent;
use whyslow_ingest::importers::ctf::reader::{CtfReader, Summary};

pub(crate) const UUID: [u8; 16] = [
    0x2a, 0x64, 0x22, 0xd0, 0x6c, 0xee, 0x11, 0xe0, 0x8c, 0x08, 0xcb, 0x07, 0xd7, 0xb3, 0xa5, 0x64,
];
pub(crate) const NOTE: u64 = 0;
pub(crate) const LIST: u64 = 1;

/// Events of class `note`: a number and a text; of class `list`: 16-bit numbers.
pub(crate) const METADATA: &str = r#"/* CTF 1.8 */
typealias integer { size = 8; align = 8; signed = false; } := uint8_t;
typealias integer { size = 16; align = 8; signed = false; } := uint16_t;
typealias integer { size = 32; align = 8; signed = false; } := uint32_t;
typealias integer { size = 64; align = 8; signed = false; } := uint64_t;
typealias integer { size = 5; align = 1; signed = false; } := uint5_t;
trace {
    major = 1; minor = 8; byte_order = le;
    uuid = "2a6422d0-6cee-11e0-8c08-cb07d7b3a564";
    packet.header := struct {
        uint32_t magic; uint8_t uuid[16]; uint32_t stream_id; uint64_t stream_instance_id;
    };
};
env { hostname = "host"; domain = "kernel"; };
clock { name = "monotonic"; freq = 1000000000; offset = 1000000000000; };
typealias integer { size = 27; align = 1; signed = false; map = clock.monotonic.value; } := ts27_t;
typealias integer { size = 64; align = 8; signed = false; map = clock.monotonic.value; } := ts64_t;
stream {
    id = 0;
    event.header := struct {
        enum : uint5_t { compact = 0 ... 30, extended = 31 } id;
        variant <id> {
            struct { ts27_t timestamp; } compact;
            struct { uint32_t id; ts64_t timestamp; } extended;
        } v;
    } align(8);
    packet.context := struct {
        ts64_t timestamp_begin; ts64_t timestamp_end; uint64_t content_size; uint64_t packet_size;
        uint64_t packet_seq_num; uint32_t events_discarded; uint32_t cpu_id;
    };
};
event { name = "note"; id = 0; stream_id = 0;
    fields := struct { uint32_t _number; string _text; }; };
event { name = "list"; id = 1; stream_id = 0;
    fields := struct { uint32_t __values_length; uint16_t _values[ __values_length ]; }; };
"#;

/// Offset of the clock from the epoch.
pub(crate) const OFFSET_NS: i64 = 1_000_000_000_000;
/// Size of packet header and context in bytes.
pub(crate) const HEADER_BYTES: usize = 4 + 16 + 4 + 8 + 5 * 8 + 2 * 4;

/// A packet to be written.
#[derive(Clone)]
pub(crate) struct Packet {
    pub(crate) uuid: [u8; 16],
    pub(crate) instance: u64,
    pub(crate) begin: u64,
    pub(crate) end: u64,
    pub(crate) sequence: u64,
    pub(crate) discarded: u32,
    pub(crate) cpu: u32,
    /// Size of the whole packet; the space after the events is padding.
    pub(crate) bytes: usize,
    pub(crate) events: Vec<u8>,
}

impl Packet {
    pub(crate) fn new(sequence: u64, begin: u64, end: u64) -> Packet {
        let (uuid, events) = (UUID, Vec::new());
        Packet {
            uuid,
            instance: 0,
            begin,
            end,
            sequence,
            discarded: 0,
            cpu: 0,
            bytes: 256,
            events,
        }
    }

    /// Adds an event of class `note` with a compact header.
    pub(crate) fn note(mut self, time: u64, number: u32, text: &str) -> Packet {
        self.header(time, NOTE);
        self.events.extend(number.to_le_bytes());
        self.events.extend(text.as_bytes());
        self.events.push(0);
        self
    }

    pub(crate) fn list(mut self, time: u64, values: &[u16]) -> Packet {
        self.header(time, LIST);
        self.events.extend((values.len() as u32).to_le_bytes());
        for value in values {
            self.events.extend(value.to_le_bytes());
        }
        self
    }

    pub(crate) fn header(&mut self, time: u64, id: u64) {
        self.events
            .extend((((time & 0x7ff_ffff) << 5 | id) as u32).to_le_bytes());
    }

    /// Adds an event of class `note` with an extended header.
    pub(crate) fn extended(mut self, time: u64, id: u32, number: u32, text: &str) -> Packet {
        self.events.push(31);
        self.events.extend(id.to_le_bytes());
        self.events.extend(time.to_le_bytes());
        self.events.extend(number.to_le_bytes());
        self.events.extend(text.as_bytes());
        self.events.push(0);
        self
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        let content = HEADER_BYTES + self.events.len();
        let total = self.bytes.max(content);
        let mut bytes = 0xC1FC_1FC1_u32.to_le_bytes().to_vec();
        bytes.extend(self.uuid);
        bytes.extend(0_u32.to_le_bytes());
        bytes.extend(self.instance.to_le_bytes());
        let sizes = [content as u64 * 8, total as u64 * 8];
        for number in [self.begin, self.end, sizes[0], sizes[1], self.sequence] {
            bytes.extend(number.to_le_bytes());
        }
        bytes.extend(self.discarded.to_le_bytes());
        bytes.extend(self.cpu.to_le_bytes());
        assert_eq!(bytes.len(), HEADER_BYTES);
        bytes.extend(&self.events);
        bytes.resize(total, 0);
        bytes
    }
}

/// Three packets with two events each.
pub(crate) fn three_packets() -> Vec<Packet> {
    (0..3)
        .map(|index| {
            let begin = 1000 + index * 100;
            Packet::new(index, begin, begin + 99)
                .note(begin + 10, index as u32, "a text")
                .list(begin + 20, &[1, 2, 3])
        })
        .collect()
}

pub(crate) fn file(packets: &[Packet]) -> Vec<u8> {
    packets.iter().flat_map(Packet::bytes).collect()
}

/// A directory with traces, deleted afterwards.
pub(crate) struct Folder {
    folder: tempfile::TempDir,
}

impl Folder {
    pub(crate) fn new() -> Folder {
        Folder {
            folder: tempfile::tempdir().unwrap(),
        }
    }

    /// Creates one with a single trace of one stream.
    pub(crate) fn with(bytes: &[u8]) -> Folder {
        let folder = Folder::new();
        folder.add("metadata", METADATA.as_bytes());
        folder.add("channel0_0", bytes);
        folder
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn add(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, bytes).unwrap();
        path
    }

    pub(crate) fn read(&self) -> Read {
        Read::of(self.path())
    }
}

/// Everything that a reader returns.
#[derive(Default)]
pub(crate) struct Read {
    /// Time, CPU, stream, name and fields of each event.
    pub(crate) events: Vec<(i64, Option<i32>, usize, String)>,
    pub(crate) losses: Vec<Loss>,
    pub(crate) progress: Progress,
    pub(crate) summary: Option<Summary>,
    /// Stop after this number of events.
    pub(crate) stop_after: Option<usize>,
}

impl Read {
    pub(crate) fn of(path: &Path) -> Read {
        let mut read = Read::default();
        let mut reader = CtfReader::open(path).unwrap();
        read.summary = Some(reader.read(&mut read).unwrap());
        read
    }

    /// Number of anomalies of each kind.
    pub(crate) fn anomalies(&self) -> Vec<(&'static str, u64)> {
        let summary = self.summary.as_ref().unwrap();
        summary
            .anomalies
            .iter()
            .map(|anomaly| (anomaly.stat.name, anomaly.count))
            .collect()
    }

    pub(crate) fn times(&self) -> Vec<i64> {
        self.events
            .iter()
            .map(|event| event.0 - OFFSET_NS)
            .collect()
    }

    pub(crate) fn texts(&self) -> Vec<&str> {
        self.events.iter().map(|event| event.3.as_str()).collect()
    }
}

impl Consumer for Read {
    fn wants(&mut self, _: &ClassRef<'_>) -> Want {
        Want::Everything
    }

    fn event(&mut self, event: &DecodedEvent<'_>) -> ControlFlow<()> {
        let mut text = event.name().to_owned();
        for value in event.values() {
            write!(text, " {value:?}").unwrap();
        }
        self.events.push((event.ts, event.cpu, event.stream, text));
        match self.stop_after {
            Some(events) if self.events.len() >= events => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        }
    }

    fn lost(&mut self, loss: &Loss) {
        self.losses.push(loss.clone());
    }

    fn progress(&mut self, progress: Progress) {
        assert!(progress.bytes_done >= self.progress.bytes_done);
        self.progress = progress;
    }
}
