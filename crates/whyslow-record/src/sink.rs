//! Where records go: blocks of a spool.

use std::io;
use std::time::Instant;

use whyslow_model::spool::{Encoder, HEAD_BYTES, Kind, records};

use crate::naming::Desk;
use crate::spool::SpoolWriter;
use crate::underway::Underway;

/// A block is written when it is so large.
const BLOCK_BYTES: usize = 512 << 10;
/// Names are written when they are so many, or with the clocks.
const NAMES_BYTES: usize = 256 << 10;

/// What a record of an exec begins with.
const EXEC: [u8; 2] = (Kind::Exec as u16).to_le_bytes();

pub(crate) struct Sink {
    pub(crate) encoder: Encoder,
    pub(crate) writer: SpoolWriter,
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
    /// Of spools that have ended: records and their bytes.
    ended: (u64, u64),
}

impl Sink {
    pub(crate) fn new(writer: SpoolWriter, may_turn: bool, desk: Desk) -> Self {
        Self {
            encoder: Encoder::default(),
            writer,
            written: Instant::now(),
            complete_until: 0,
            failed: None,
            underway: may_turn.then(Underway::default),
            execed: Vec::new(),
            desk,
            is_over: false,
            ended: (0, 0),
        }
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
        self.encoder.copy(record);
        if record.starts_with(&EXEC) {
            self.execed.extend(pid_of(record));
        }
        if self.encoder.payload().len() >= BLOCK_BYTES
            && let Err(error) = self.write()
        {
            self.failed = Some(error);
            return -1;
        }
        0
    }

    pub(crate) fn write(&mut self) -> io::Result<()> {
        self.written = Instant::now();
        self.writer.write(&mut self.encoder, self.complete_until)
    }

    /// Names that are known, if they are enough for a block.
    pub(crate) fn write_names(&mut self, are_enough: bool) -> io::Result<()> {
        let names = &mut self.desk.names;
        let is_due = are_enough || names.payload().len() >= NAMES_BYTES;
        if is_due && !names.payload().is_empty() {
            self.writer.write_names(names)?;
        }
        Ok(())
    }

    /// Everything was told: the spool is whole.
    pub(crate) fn end(&mut self) -> io::Result<()> {
        self.complete_until = u64::MAX;
        self.write()
    }

    /// Another spool is about to begin.
    pub(crate) fn begin_turn(&mut self, now: u64) {
        self.underway.get_or_insert_default().begin_turn(now);
    }

    /// What comes goes to another spool. The one before must have ended.
    pub(crate) fn turn(&mut self, writer: SpoolWriter, complete_until: u64) {
        self.ended = (self.records(), self.record_bytes());
        self.writer = writer;
        self.complete_until = complete_until;
        self.desk.begin_spool();
    }

    /// Blocks of a snapshot, before what is in the encoder.
    pub(crate) fn put_snapshot(&mut self, payload: &[u8]) -> io::Result<()> {
        if !self.encoder.payload().is_empty() {
            self.write()?;
        }
        let until = self.complete_until;
        let (mut begin, mut count) = (0, 0);
        for (at, _) in records(payload) {
            if at - begin >= BLOCK_BYTES {
                self.writer.write_block(&payload[begin..at], count, until)?;
                (begin, count) = (at, 0);
            }
            count += 1;
        }
        self.writer.write_block(&payload[begin..], count, until)
    }

    pub(crate) fn records(&self) -> u64 {
        self.ended.0 + self.writer.records + u64::from(self.encoder.records())
    }

    pub(crate) fn record_bytes(&self) -> u64 {
        self.ended.1 + self.writer.record_bytes + self.encoder.payload().len() as u64
    }
}

/// Process of a record.
fn pid_of(record: &[u8]) -> Option<i32> {
    let bytes = record.get(HEAD_BYTES - 4..HEAD_BYTES)?;
    Some(i32::from_le_bytes(bytes.try_into().ok()?))
}
