//! Builds the blocks of a spool, on disk or in memory.

use std::io;
use std::sync::Arc;
use std::time::Instant;

use whyslow_model::spool::{ELSEWHERE, Encoder, HEAD_BYTES, HostRecord, Kind, Record, records};

use crate::clock::Clocks;
use crate::following::Followers;
use crate::heap;
use crate::in_flight::InFlight;
use crate::naming::SymbolizerQueue;
use crate::packed::{Packed, Packer};
use crate::pending::Pending;
use crate::raw::Raw;
use crate::ring::{Part, Ring};
use crate::snapshot;
use crate::spool::{BlockClass, SpoolWriter};
use crate::wall::{self, Wall};
use crate::when::Watcher;

/// Maximum size of a block.
const BLOCK_BYTES: usize = 512 << 10;
/// Symbols are written when they reach this size, or with the clocks.
const NAMES_BYTES: usize = 256 << 10;

/// Destination of the blocks.
pub(crate) enum Out {
    Spool(SpoolWriter),
    Ring(Ring),
}

impl Out {
    /// The ring in memory evicts old blocks for new ones.
    fn fits(&self, block: &Packed, kind: BlockClass) -> bool {
        match self {
            Out::Spool(writer) => writer.fits(block, kind),
            Out::Ring(_) => true,
        }
    }

    fn put(&mut self, part: Part, block: Arc<Packed>) -> io::Result<()> {
        match self {
            Out::Spool(writer) => writer.write(&block),
            Out::Ring(ring) => {
                ring.push(part, block);
                Ok(())
            }
        }
    }

    /// Size of the spool, or of the ring in memory.
    pub(crate) fn bytes(&self) -> u64 {
        match self {
            Out::Spool(writer) => writer.bytes,
            Out::Ring(ring) => ring.bytes(),
        }
    }
}

/// A block that does not fit is split down to this number of records.
const PART_MIN: u32 = 8;

/// Records beyond the size limit of the spool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Unwritten {
    pub(crate) records: u64,
    /// Everything before was written.
    pub(crate) since: u64,
}

/// First bytes of an exec record.
const EXEC: [u8; 2] = (Kind::Exec as u16).to_le_bytes();
/// First bytes of a record of the program that a process runs, …
const PROGRAM: [u8; 2] = (Kind::Program as u16).to_le_bytes();
/// … of a function call, …
const CALL: [u8; 2] = (Kind::FunctionBegin as u16).to_le_bytes();
/// … and of a USDT probe hit.
const USDT: [u8; 2] = (Kind::Usdt as u16).to_le_bytes();

/// First bytes of a record for the wall-clock sampler, which is not part of a spool.
const RUNS: [u8; 2] = wall::RUNS.to_le_bytes();

pub(crate) struct BlockWriter {
    pub(crate) encoder: Encoder,
    pub(crate) out: Out,
    pub(crate) packer: Packer,
    pub(crate) written: Instant,
    /// All records before this time arrived before those in the encoder.
    pub(crate) complete_until: u64,
    pub(crate) failed: Option<io::Error>,
    /// `None` if no further spool follows.
    pub(crate) in_flight: Option<InFlight>,
    /// Processes that called exec, since the last poll.
    pub(crate) execed: Vec<i32>,
    /// The same, with their mount namespaces.
    pub(crate) spaces: Vec<(i32, u32)>,
    /// Symbolizes addresses.
    pub(crate) symbolizer: SymbolizerQueue,
    /// Samples all threads by wall clock.
    pub(crate) wall: Option<Wall>,
    /// Records that arrive now are not part of the recording any more.
    pub(crate) is_over: bool,
    /// Time up to which the written blocks are complete.
    written_until: u64,
    /// Start of the current spool or chapter, to which its snapshot belongs.
    pub(crate) snapshot_until: u64,
    /// Receive the events as well.
    pub(crate) followers: Followers,
    /// Checks the conditions.
    pub(crate) watcher: Option<Watcher>,
    /// Function calls and USDT probe hits.
    pub(crate) calls: u64,
    /// Records written so far, and their bytes.
    given: (u64, u64),
    /// The spool is full: only its end is still written.
    pub(crate) unwritten: Option<Unwritten>,
    /// Between two spools: records from a time on, buffered for the second one.
    pending: Option<Pending>,
    /// Pending records that were lost for lack of memory.
    pub(crate) pending_lost: u64,
}

impl BlockWriter {
    pub(crate) fn new(out: Out, may_turn: bool, symbolizer: SymbolizerQueue) -> io::Result<Self> {
        Ok(Self {
            followers: Followers::default(),
            encoder: Encoder::default(),
            out,
            packer: Packer::new()?,
            written: Instant::now(),
            complete_until: 0,
            failed: None,
            in_flight: may_turn.then(InFlight::default),
            execed: Vec::new(),
            spaces: Vec::new(),
            symbolizer,
            wall: None,
            is_over: false,
            written_until: 0,
            snapshot_until: 0,
            watcher: None,
            calls: 0,
            given: (0, 0),
            unwritten: None,
            pending: None,
            pending_lost: 0,
        })
    }

    /// A record from a ring; any return value but 0 stops reading.
    pub(crate) fn take(&mut self, record: &[u8]) -> i32 {
        if record.first_chunk() == Some(&RUNS) {
            if let Some(wall) = self.wall.as_mut().filter(|_| !self.is_over) {
                wall.ran(record);
            }
            return 0;
        }
        self.symbolizer.see(record);
        if self.is_over {
            return 0;
        }
        if let Some(pending) = &mut self.pending {
            let ts = Raw(record).ts();
            if ts >= pending.from {
                pending.push(record, ts);
                return 0;
            }
        }
        self.keep(record)
    }

    /// Records from this time on are not part of the current spool.
    pub(crate) fn hold_from(&mut self, ts: u64) {
        self.pending = Some(Pending::from(ts));
    }

    /// Passes on the held records: the next spool has started.
    pub(crate) fn release_pending(&mut self) {
        let pending = self.pending.take().unwrap_or_default();
        for record in &pending.records {
            self.keep(record);
        }
        if pending.lost > 0 {
            self.pending_lost += pending.lost;
            self.in_flight.iter_mut().for_each(InFlight::lose);
            pending.write_lost(&mut self.encoder);
        }
    }

    fn keep(&mut self, record: &[u8]) -> i32 {
        if let Some(in_flight) = &mut self.in_flight {
            in_flight.see(record);
        }
        if let Some(watcher) = &mut self.watcher {
            watcher.see(record);
        }
        if let Some(unwritten) = &mut self.unwritten {
            unwritten.records += 1;
            return 0;
        }
        self.encoder.copy(record);
        match record.first_chunk() {
            Some(&EXEC) => self.execed.extend(pid_of(record)),
            Some(&PROGRAM) => self.spaces.extend(space_of(record)),
            Some(&(CALL | USDT)) => self.calls += 1,
            _ => {}
        }
        if self.encoder.payload().len() >= BLOCK_BYTES
            && let Err(error) = self.write(Part::Events)
        {
            self.failed = Some(error);
            return -1;
        }
        0
    }

    /// Makes blocks of the pending records.
    pub(crate) fn write(&mut self, part: Part) -> io::Result<()> {
        self.written = Instant::now();
        let mut encoder = std::mem::take(&mut self.encoder);
        let put = self.put_records(part, encoder.payload());
        encoder.clear();
        self.encoder = encoder;
        put
    }

    fn put_records(&mut self, part: Part, payload: &[u8]) -> io::Result<()> {
        let (until, all_until) = match part {
            Part::Snapshot => (self.snapshot_until, self.snapshot_until),
            Part::Head | Part::Events => (self.written_until, self.complete_until),
        };
        let (mut begin, mut count) = (0, 0);
        for (at, _) in records(payload) {
            if at - begin >= BLOCK_BYTES {
                self.put_block(part, (&payload[begin..at], count), until)?;
                (begin, count) = (at, 0);
            }
            count += 1;
        }
        self.put_block(part, (&payload[begin..], count), all_until)
    }

    /// A block of the records, or of as many of them as fit.
    fn put_block(
        &mut self,
        part: Part,
        (mut payload, mut count): (&[u8], u32),
        complete_until: u64,
    ) -> io::Result<()> {
        let mut share = count;
        while self.unwritten.is_none() {
            let is_all = share == count;
            let (end, until) = if is_all {
                (payload.len(), complete_until)
            } else {
                (end_of(payload, share), self.written_until)
            };
            let block = self.packer.pack(&payload[..end], share, until)?;
            if self.out.fits(&block, BlockClass::Records) {
                self.put_shared(part, block)?;
                if is_all {
                    return Ok(());
                }
                (payload, count) = (&payload[end..], count - share);
                share = share.min(count);
            } else if share > PART_MIN {
                share /= 2;
            } else {
                break;
            }
        }
        self.leave_out(count);
        Ok(())
    }

    fn leave_out(&mut self, records: u32) {
        let unwritten = self.unwritten.get_or_insert(Unwritten {
            records: 0,
            since: self.written_until,
        });
        unwritten.records += u64::from(records);
    }

    /// Memory exceeds the limit: releases caches first, then kept records.
    pub(crate) fn relieve(&mut self, excess: u64, is_lasting: bool) {
        if excess == 0 {
            return;
        }
        self.symbolizer.forget();
        self.wall.iter().for_each(Wall::give_up);
        self.followers.give_up();
        if let Out::Ring(ring) = &mut self.out
            && is_lasting
        {
            ring.give_up(excess);
        }
        heap::trim();
    }

    /// Ends the spool, with the records of `write` if they fit.
    pub(crate) fn end(&mut self, now: &Clocks, write: impl FnOnce(&mut Encoder)) -> io::Result<()> {
        self.write(Part::Events)?;
        let mut encoder = Encoder::default();
        snapshot::clocks(&mut encoder, now);
        if let Some(unwritten) = self.unwritten {
            encoder
                .begin_on(Kind::Lost, unwritten.since, (0, 0), (0, ELSEWHERE))
                .u64(unwritten.since)
                .u64(now.monotonic)
                .u64(unwritten.records)
                .end();
        }
        let (bytes, count) = (encoder.payload().len(), encoder.records());
        write(&mut encoder);
        let mut block = self.packer.pack_all(&encoder, u64::MAX)?;
        if !self.out.fits(&block, BlockClass::End) {
            let needed = &encoder.payload()[..bytes];
            block = self.packer.pack(needed, count, u64::MAX)?;
        }
        self.put(Part::Events, block)
    }

    /// Starts another spool.
    pub(crate) fn begin(&mut self, writer: SpoolWriter) {
        self.out = Out::Spool(writer);
        self.unwritten = None;
        // The end of the previous spool reported it as complete.
        self.written_until = 0;
        self.symbolizer.begin_spool();
    }

    fn put(&mut self, part: Part, block: Packed) -> io::Result<()> {
        self.put_arc(part, Arc::new(block))
    }

    /// A block that followers receive as well: they have heads and snapshots of their own.
    fn put_shared(&mut self, part: Part, block: Packed) -> io::Result<()> {
        let block = Arc::new(block);
        if part == Part::Events {
            self.followers.push(&block);
        }
        self.put_arc(part, block)
    }

    fn put_arc(&mut self, part: Part, block: Arc<Packed>) -> io::Result<()> {
        self.given.0 += u64::from(block.records);
        self.given.1 += u64::from(block.record_bytes);
        self.written_until = self.written_until.max(block.complete_until);
        self.out.put(part, block)
    }

    /// Writes the resolved symbols, if they fill a block.
    pub(crate) fn write_names(&mut self, are_enough: bool) -> io::Result<()> {
        let names = &mut self.symbolizer.names;
        let is_due = are_enough || names.payload().len() >= NAMES_BYTES;
        if !is_due || names.payload().is_empty() {
            return Ok(());
        }
        let block = self.packer.pack_names(names, self.written_until)?;
        names.clear();
        if self.out.fits(&block, BlockClass::Names) {
            self.put_shared(Part::Events, block)?;
        } else {
            self.leave_out(block.records);
        }
        Ok(())
    }

    /// Prepares for another spool.
    pub(crate) fn begin_rotation(&mut self, now: u64) {
        self.in_flight.get_or_insert_default().begin_rotation(now);
    }

    /// Writes blocks of a snapshot, before the pending records.
    pub(crate) fn put_snapshot(&mut self, payload: &[u8]) -> io::Result<()> {
        if !self.encoder.payload().is_empty() {
            self.write(Part::Events)?;
        }
        if let Some(watcher) = &mut self.watcher {
            watcher.see_snapshot(payload);
        }
        self.put_records(Part::Snapshot, payload)
    }

    /// Counts of missing symbols and stacks.
    pub(crate) fn left_out(&self) -> Vec<(&'static str, u64)> {
        let files = [("symbol_files_over", self.symbolizer.too_large())];
        let stacks = self.wall.iter().flat_map(Wall::left_out);
        files.into_iter().chain(stacks).collect()
    }

    pub(crate) fn records(&self) -> u64 {
        self.given.0 + u64::from(self.encoder.records())
    }

    pub(crate) fn record_bytes(&self) -> u64 {
        self.given.1 + self.encoder.payload().len() as u64
    }
}

/// Offset of the end of the first `count` records.
fn end_of(payload: &[u8], count: u32) -> usize {
    let mut after = records(payload).skip(count as usize);
    after.next().map_or(payload.len(), |(at, _)| at)
}

/// Process and mount namespace in a record of an exec.
fn space_of(record: &[u8]) -> Option<(i32, u32)> {
    let (_, found) = records(record).next()?;
    match found.ok()? {
        (head, Record::Host(HostRecord::Program(program))) if !program.is_end => {
            Some((head.pid, program.mount_ns)).filter(|(_, ns)| *ns != 0)
        }
        _ => None,
    }
}

/// Process of a record.
fn pid_of(record: &[u8]) -> Option<i32> {
    let bytes = record.get(HEAD_BYTES - 4..HEAD_BYTES)?;
    Some(i32::from_le_bytes(bytes.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock;
    use crate::options::Options;
    use whyslow_model::spool::Block;

    const HEAD: usize = whyslow_model::spool::BLOCK_BYTES;

    /// A record of noise, which does not compress.
    fn noise(number: u64) -> Vec<u8> {
        let mut encoder = Encoder::default();
        let mut seed = number;
        let bytes: Vec<u8> = std::iter::repeat_with(|| {
            seed = seed
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (seed >> 56) as u8
        })
        .take(200)
        .collect();
        encoder.begin(Kind::Mark, number, (1, 1)).text(&bytes).end();
        encoder.payload().to_vec()
    }

    /// Blocks of a spool: number of records, and `complete_until`.
    fn blocks(file: &[u8]) -> Vec<(u32, u64)> {
        let mut blocks = Vec::new();
        let mut rest = file;
        while let Some(head) = rest.first_chunk::<HEAD>() {
            let block = Block::parse(head).expect("a block");
            rest = &rest[HEAD + block.payload_bytes as usize..];
            blocks.push((block.records, block.complete_until));
        }
        assert!(rest.is_empty());
        blocks
    }

    #[test]
    fn a_spool_has_no_byte_more_than_it_may_have_and_tells_what_is_missing() {
        for bytes_max in [40_000, 300_000, 700_000, 2_000_000] {
            let folder = tempfile::TempDir::new().expect("a temporary folder");
            let spool = folder.path().join("spool");
            let writer = SpoolWriter::create(&spool, bytes_max).expect("a disk");
            let options = Options {
                stack_min: None,
                topics: [].into(),
                ..Options::new("")
            };
            let symbolizer = SymbolizerQueue::new(&options);
            let mut sink = BlockWriter::new(Out::Spool(writer), false, symbolizer).expect("memory");
            let mut sent = 0;
            while sink.unwritten.is_none() {
                sent += 1;
                sink.complete_until = sent;
                assert_eq!(sink.take(&noise(sent)), 0);
            }
            for number in 0..99 {
                sink.take(&noise(number));
            }
            sink.end(&clock::clocks(), |encoder| {
                let fact = encoder.begin(Kind::Fact, 1, (0, 0));
                fact.text(b"name").text(&noise(1).repeat(30)).end();
            })
            .expect("a disk");
            let file = std::fs::read(spool.join("000001.blocks")).expect("it is there");
            assert!(file.len() as u64 <= bytes_max, "{}", file.len());
            // Only the reserve is unused.
            let reserved = (bytes_max / 16).max(8 << 10) + (3 << 10);
            assert!(file.len() as u64 >= bytes_max - reserved, "{}", file.len());
            let written = blocks(&file);
            let (last, blocks) = written.split_last().expect("an end");
            assert_eq!(last.1, u64::MAX);
            let unwritten = sink.unwritten.expect("it is full");
            let written: u64 = blocks.iter().map(|(records, _)| u64::from(*records)).sum();
            assert_eq!(written + unwritten.records, sent + 99);
            // A time that a part of a block covers is not complete.
            assert!(blocks.iter().all(|(_, until)| *until <= written));
            assert!(unwritten.since <= written, "{unwritten:?}");
        }
    }

    #[test]
    fn the_end_says_what_was_not_written() {
        let folder = tempfile::TempDir::new().expect("a temporary folder");
        let spool = folder.path().join("spool");
        let writer = SpoolWriter::create(&spool, 10_000).expect("a disk");
        let symbolizer = SymbolizerQueue::default();
        let mut sink = BlockWriter::new(Out::Spool(writer), false, symbolizer).expect("memory");
        for number in 0..50 {
            sink.encoder.copy(&noise(number));
        }
        sink.write(Part::Events).expect("a disk");
        sink.end(&clock::clocks(), |_| ()).expect("a disk");
        let file = std::fs::read(spool.join("000001.blocks")).expect("it is there");
        let written = blocks(&file);
        let (last, _) = written.split_last().expect("an end");
        let begin = file.len() - last_bytes(&file);
        let stored = &file[begin..];
        let payload = zstd::bulk::decompress(stored, 1 << 20).unwrap_or_else(|_| stored.to_vec());
        let lost = records(&payload).find_map(|(_, record)| match record {
            Ok((_, Record::Lost { count, .. })) => Some(count),
            _ => None,
        });
        assert_eq!((last.0, lost), (2, sink.unwritten.map(|left| left.records)));
    }

    #[test]
    fn what_waits_between_two_spools_is_bounded_and_told() {
        use crate::pending::{EACH_BYTES, PENDING_BYTES_MAX};
        let folder = tempfile::TempDir::new().expect("a temporary folder");
        let writer = SpoolWriter::create(&folder.path().join("a"), u64::MAX).expect("a disk");
        let mut sink =
            BlockWriter::new(Out::Spool(writer), true, SymbolizerQueue::default()).expect("memory");
        sink.hold_from(1_000);
        assert_eq!(sink.take(&noise(999)), 0);
        assert_eq!(sink.records(), 1);
        let bytes = noise(1_000).len() + EACH_BYTES;
        let capacity = (PENDING_BYTES_MAX / bytes) as u64;
        for number in 0..capacity + 7 {
            sink.take(&noise(1_000 + number));
        }
        assert_eq!(sink.records(), 1);
        sink.release_pending();
        // All records that fit, and one that reports the rest.
        assert_eq!((sink.records(), sink.pending_lost), (1 + capacity + 1, 7));
        let lost = records(sink.encoder.payload()).find_map(|(_, record)| match record {
            Ok((
                _,
                Record::Lost {
                    from, to, count, ..
                },
            )) => Some((from, to, count)),
            _ => None,
        });
        assert_eq!(lost, Some((1_000 + capacity, 1_006 + capacity, 7)));
        // The next one starts empty.
        sink.release_pending();
        assert_eq!(sink.pending_lost, 7);
    }

    #[test]
    fn the_end_of_a_spool_says_nothing_about_the_next_one() {
        let folder = tempfile::TempDir::new().expect("a temporary folder");
        let spool =
            |name| SpoolWriter::create(&folder.path().join(name), u64::MAX).expect("a disk");
        let mut sink = BlockWriter::new(Out::Spool(spool("a")), true, SymbolizerQueue::default())
            .expect("memory");
        sink.end(&clock::clocks(), |_| ()).expect("a disk");
        sink.begin(spool("b"));
        // More than one block.
        for number in 1..6_000 {
            sink.encoder.copy(&noise(number));
            sink.complete_until = number;
        }
        sink.write(Part::Events).expect("a disk");
        let file = std::fs::read(folder.path().join("b/000001.blocks")).expect("it is there");
        let until: Vec<u64> = blocks(&file).iter().map(|(_, until)| *until).collect();
        assert!(
            until.len() > 1 && until.iter().all(|until| *until < 6_000),
            "{until:?}"
        );
    }

    /// Payload size of the last block.
    fn last_bytes(file: &[u8]) -> usize {
        let (mut rest, mut last) = (file, 0);
        while let Some(head) = rest.first_chunk::<HEAD>() {
            last = Block::parse(head).expect("a block").payload_bytes as usize;
            rest = &rest[HEAD + last..];
        }
        last
    }
}
