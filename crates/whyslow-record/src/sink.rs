//! Where records go: blocks of a spool, on disk or in memory.

use std::io;
use std::time::Instant;

use whyslow_model::spool::{Encoder, HEAD_BYTES, Kind, records};

use crate::naming::Desk;
use crate::packed::{Packed, Packer};
use crate::ring::{Part, Ring};
use crate::spool::SpoolWriter;
use crate::underway::Underway;
use crate::when::Watcher;

/// A block is written when it is so large.
const BLOCK_BYTES: usize = 512 << 10;
/// Names are written when they are so many, or with the clocks.
const NAMES_BYTES: usize = 256 << 10;

/// What blocks are given to.
pub(crate) enum Out {
    Spool(SpoolWriter),
    Ring(Ring),
}

impl Out {
    fn put(&mut self, part: Part, block: Packed) -> io::Result<()> {
        match self {
            Out::Spool(writer) => writer.write(&block),
            Out::Ring(ring) => {
                ring.push(part, block);
                Ok(())
            }
        }
    }

    /// Bytes of the spool, or in memory.
    pub(crate) fn bytes(&self) -> u64 {
        match self {
            Out::Spool(writer) => writer.bytes,
            Out::Ring(ring) => ring.bytes(),
        }
    }
}

/// What a record of an exec begins with.
const EXEC: [u8; 2] = (Kind::Exec as u16).to_le_bytes();

pub(crate) struct Sink {
    pub(crate) encoder: Encoder,
    pub(crate) out: Out,
    packer: Packer,
    pub(crate) written: Instant,
    /// All before this moment was told before the records in the encoder came.
    pub(crate) complete_until: u64,
    pub(crate) failed: Option<io::Error>,
    /// Unless there will be no other spool.
    pub(crate) underway: Option<Underway>,
    /// Processes that run another program, since somebody looked.
    pub(crate) execed: Vec<i32>,
    /// Who has addresses named.
    pub(crate) desk: Desk,
    /// What comes now is no part of the recording any more.
    pub(crate) is_over: bool,
    /// Up to when the blocks so far tell everything.
    told_until: u64,
    /// Looks for conditions.
    pub(crate) watcher: Option<Watcher>,
    /// Of what was given away: records, and their bytes.
    given: (u64, u64),
}

impl Sink {
    pub(crate) fn new(out: Out, may_turn: bool, desk: Desk) -> io::Result<Self> {
        Ok(Self {
            encoder: Encoder::default(),
            out,
            packer: Packer::new()?,
            written: Instant::now(),
            complete_until: 0,
            failed: None,
            underway: may_turn.then(Underway::default),
            execed: Vec::new(),
            desk,
            is_over: false,
            told_until: 0,
            watcher: None,
            given: (0, 0),
        })
    }

    /// A record from a ring; anything but 0 ends the reading.
    pub(crate) fn take(&mut self, record: &[u8]) -> i32 {
        self.desk.see(record);
        if self.is_over {
            return 0;
        }
        if let Some(underway) = &mut self.underway {
            underway.see(record);
        }
        if let Some(watcher) = &mut self.watcher {
            watcher.see(record);
        }
        self.encoder.copy(record);
        if record.starts_with(&EXEC) {
            self.execed.extend(pid_of(record));
        }
        if self.encoder.payload().len() >= BLOCK_BYTES
            && let Err(error) = self.write(Part::Events)
        {
            self.failed = Some(error);
            return -1;
        }
        0
    }

    pub(crate) fn write(&mut self, part: Part) -> io::Result<()> {
        self.written = Instant::now();
        let block = self.packer.pack_all(&self.encoder, self.complete_until)?;
        self.encoder.clear();
        self.put(part, block)
    }

    fn put(&mut self, part: Part, block: Packed) -> io::Result<()> {
        self.given.0 += u64::from(block.records);
        self.given.1 += u64::from(block.record_bytes);
        self.told_until = block.complete_until;
        self.out.put(part, block)
    }

    /// Names that are known, if they are enough for a block.
    pub(crate) fn write_names(&mut self, are_enough: bool) -> io::Result<()> {
        let names = &mut self.desk.names;
        let is_due = are_enough || names.payload().len() >= NAMES_BYTES;
        if !is_due || names.payload().is_empty() {
            return Ok(());
        }
        let block = self.packer.pack_names(names, self.told_until)?;
        names.clear();
        self.put(Part::Events, block)
    }

    /// Another spool is about to begin.
    pub(crate) fn begin_turn(&mut self, now: u64) {
        self.underway.get_or_insert_default().begin_turn(now);
    }

    /// Blocks of a snapshot, before what is in the encoder.
    pub(crate) fn put_snapshot(&mut self, payload: &[u8]) -> io::Result<()> {
        if !self.encoder.payload().is_empty() {
            self.write(Part::Events)?;
        }
        let until = self.complete_until;
        let (mut begin, mut count) = (0, 0);
        for (at, _) in records(payload) {
            if at - begin >= BLOCK_BYTES {
                let block = self.packer.pack(&payload[begin..at], count, until)?;
                self.put(Part::Snapshot, block)?;
                (begin, count) = (at, 0);
            }
            count += 1;
        }
        let block = self.packer.pack(&payload[begin..], count, until)?;
        self.put(Part::Snapshot, block)
    }

    pub(crate) fn records(&self) -> u64 {
        self.given.0 + u64::from(self.encoder.records())
    }

    pub(crate) fn record_bytes(&self) -> u64 {
        self.given.1 + self.encoder.payload().len() as u64
    }
}

/// Process of a record.
fn pid_of(record: &[u8]) -> Option<i32> {
    let bytes = record.get(HEAD_BYTES - 4..HEAD_BYTES)?;
    Some(i32::from_le_bytes(bytes.try_into().ok()?))
}
