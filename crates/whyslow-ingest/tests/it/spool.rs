//! Synthetic spools: the results of their records, their order, and damage.

use std::fs;
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use tempfile::TempDir;
use whyslow_ingest::{InMemory, import_in_memory};
use whyslow_model::spool::{BLOCK_BYTES, Block, ENTRY_RECORDED, Encoder, Kind};
use whyslow_model::tables::SyscallRow;
use whyslow_model::trigger;

const MS: u64 = 1_000_000;
/// Wall-clock time at monotonic zero.
const EPOCH: i64 = 1_700_000_000_000_000_000;
/// System call numbers of x86_64.
const READ: u32 = 0;
const OPENAT: u32 = 257;

struct Spool {
    folder: TempDir,
    file: Vec<u8>,
    number: u64,
}

impl Spool {
    /// With the first block of every spool.
    fn new() -> Self {
        let mut spool = Self {
            folder: TempDir::new().expect("a temporary folder"),
            file: Vec::new(),
            number: 0,
        };
        let mut encoder = Encoder::default();
        encoder
            .begin(Kind::Clock, MS, (0, 0))
            .u64(MS)
            .u64((EPOCH + MS as i64) as u64)
            .end();
        encoder
            .begin(Kind::Fact, MS, (0, 0))
            .text(b"architecture")
            .text(b"x86_64")
            .end();
        spool.block(&encoder, MS);
        spool
    }

    fn block(&mut self, encoder: &Encoder, complete_until: u64) {
        let payload = encoder.payload();
        let mut block = Block {
            number: self.number,
            complete_until,
            payload_bytes: payload.len() as u32,
            record_bytes: payload.len() as u32,
            records: encoder.records(),
            is_compressed: false,
            has_names: false,
            crc: 0,
        };
        let mut crc = crc32fast::Hasher::new();
        crc.update(&block.head());
        crc.update(payload);
        block.crc = crc.finalize();
        self.file.extend(block.head());
        self.file.extend(block.crc.to_le_bytes());
        self.file.extend(payload);
        self.number += 1;
    }

    fn import(&self) -> InMemory {
        let spool: PathBuf = self.folder.path().join("x.spool");
        let _ = fs::create_dir(&spool);
        fs::write(spool.join("000001.blocks"), &self.file).expect("a disk");
        import_in_memory(&[spool]).expect("a spool is always readable")
    }
}

#[test]
fn the_time_of_a_trigger_is_converted() {
    let mut spool = Spool::new();
    let mut encoder = Encoder::default();
    let mut fact = |ts: u64, key: &str, value: &str| {
        let record = encoder.begin(Kind::Fact, ts, (0, 0));
        record.text(key.as_bytes()).text(value.as_bytes()).end();
    };
    fact(2 * MS, trigger::TIME, "");
    fact(MS, trigger::CONDITION, "open>1s");
    spool.block(&encoder, u64::MAX);
    let imported = spool.import();
    let value = |key: &str| {
        let mut rows = imported.rows.metadata.iter();
        let row = rows.find(|row| text(&imported, row.key) == key);
        row.map(|row| text(&imported, row.value))
    };
    let expected = (EPOCH + 2 * MS as i64).to_string();
    assert_eq!(value(trigger::TIME), Some(expected));
    assert_eq!(value(trigger::CONDITION).as_deref(), Some("open>1s"));
}

fn call(encoder: &mut Encoder, ts: u64, entered: u64, (nr, ret): (u32, i64), args: [u64; 3]) {
    let record = encoder.begin_on(Kind::Syscall, ts, (7, 7), (0, 0));
    record.u64(entered).u64(ret as u64).u32(nr).u32(3);
    for arg in args {
        record.u64(arg);
    }
    record.end();
}

fn text(imported: &InMemory, symbol: whyslow_model::Sym) -> String {
    imported.symbols.get(symbol).to_owned()
}

fn shown(imported: &InMemory) -> Vec<(String, i64, Option<i64>, Option<i64>)> {
    let show = |row: &SyscallRow| {
        let name = text(imported, row.name);
        (name, row.ts - EPOCH, row.dur, row.ret)
    };
    imported.rows.syscall.iter().map(show).collect()
}

#[test]
fn the_recorder_is_the_process_that_reported_itself_whatever_others_are_called() {
    let mut spool = Spool::new();
    let mut encoder = Encoder::default();
    encoder
        .begin(Kind::Fact, MS, (0, 0))
        .text(b"recorder_pid")
        .text(b"9")
        .end();
    call(&mut encoder, 41 * MS, 40 * MS, (OPENAT, 3), [0, 0, 0]);
    let record = encoder.begin_on(Kind::Syscall, 50 * MS, (9, 12), (1, 0));
    record.u64(45 * MS).u64(5).u32(READ).u32(3);
    record.u64(4).u64(0).u64(100).end();
    spool.block(&encoder, u64::MAX);
    let imported = spool.import();
    let rows = &imported.rows;
    let mut processes: Vec<_> = rows
        .process
        .iter()
        .map(|row| (row.pid, row.is_tracer))
        .collect();
    processes.sort_unstable();
    assert_eq!(processes, [(7, false), (9, true)]);
    let mut threads: Vec<_> = rows
        .thread
        .iter()
        .map(|row| (row.tid, row.is_tracer))
        .collect();
    threads.sort_unstable();
    assert_eq!(threads, [(7, false), (12, true)]);
    let fact = rows
        .metadata
        .iter()
        .find(|row| text(&imported, row.key) == "recorder_pid");
    assert!(fact.is_some_and(|row| text(&imported, row.value) == "9"));
}

#[test]
fn a_call_that_was_told_late_has_its_place_by_its_entry() {
    let mut spool = Spool::new();
    let mut encoder = Encoder::default();
    // Of another thread, between the entry and the return of the long one.
    encoder
        .begin_on(Kind::Text, 40 * MS, (7, 7), (0, 0))
        .u32(2)
        .text(b"/etc/passwd")
        .end();
    call(&mut encoder, 41 * MS, 40 * MS, (OPENAT, 3), [0, 0, 0]);
    spool.block(&encoder, 60 * MS);
    encoder.clear();
    let record = encoder.begin_on(Kind::Syscall, 90 * MS, (9, 9), (1, 0));
    record.u64(10 * MS).u64(5).u32(READ).u32(3);
    record.u64(4).u64(0).u64(100).end();
    spool.block(&encoder, u64::MAX);
    let imported = spool.import();
    let ms = MS as i64;
    let expected = [
        ("openat".to_owned(), 40 * ms, Some(ms), Some(3)),
        ("read".to_owned(), 10 * ms, Some(80 * ms), Some(5)),
    ];
    assert_eq!(shown(&imported), expected);
    let path = imported.rows.syscall[0]
        .path
        .map(|path| text(&imported, path));
    assert_eq!(path.as_deref(), Some("/etc/passwd"));
    assert!(
        imported
            .anomalies
            .iter()
            .all(|anomaly| anomaly.name != "TIME_CLAMPED")
    );
}

#[test]
fn a_call_is_one_row_whether_its_entry_was_told_before_or_not() {
    let mut spool = Spool::new();
    let mut encoder = Encoder::default();
    let record = encoder.begin_on(Kind::SyscallEnter, 30 * MS, (7, 7), (0, 0));
    record.u64(10 * MS).u64(0).u32(READ).u32(3);
    record.u64(4).u64(0).u64(100).end();
    let record = encoder.begin_on(Kind::Syscall, 900 * MS, (7, 7), (0, ENTRY_RECORDED));
    record.u64(10 * MS).u64(77).u32(READ).u32(3);
    record.u64(4).u64(0).u64(100).end();
    // One that never returns.
    let record = encoder.begin_on(Kind::SyscallEnter, 920 * MS, (7, 7), (0, 0));
    record.u64(910 * MS).u64(0).u32(READ).u32(3);
    record.u64(4).u64(0).u64(100).end();
    spool.block(&encoder, u64::MAX);
    let ms = MS as i64;
    let expected = [
        ("read".to_owned(), 10 * ms, Some(890 * ms), Some(77)),
        ("read".to_owned(), 910 * ms, None, None),
    ];
    assert_eq!(shown(&spool.import()), expected);
}

#[test]
fn damage_costs_the_blocks_it_is_in_and_is_told() {
    let mut spool = Spool::new();
    let mut blocks = Vec::new();
    for number in 1..=5u64 {
        let mut encoder = Encoder::default();
        let ts = number * 100 * MS;
        call(
            &mut encoder,
            ts,
            ts - MS,
            (READ, number as i64),
            [4, 0, 100],
        );
        blocks.push(spool.file.len());
        spool.block(&encoder, ts);
    }
    let whole = spool.file.clone();
    assert_eq!(shown(&spool.import()).len(), 5);
    let kept = |spool: &Spool| -> Vec<i64> {
        let imported = spool.import();
        let reports = imported.anomalies.iter();
        let reported = reports.filter(|report| report.name == "SPOOL_BLOCK_DAMAGED");
        assert_eq!(reported.map(|report| report.count).sum::<u64>(), 1);
        shown(&imported)
            .iter()
            .filter_map(|(_, _, _, ret)| *ret)
            .collect()
    };
    spool.file[blocks[2] + BLOCK_BYTES + 30] ^= 1;
    assert_eq!(kept(&spool), [1, 2, 4, 5]);
    // A size that exceeds everything.
    spool.file.clone_from(&whole);
    spool.file[blocks[1] + 26] = 3;
    assert_eq!(kept(&spool), [1, 3, 4, 5]);
    // A recorder that was killed while writing: at any byte of the last block.
    for end in blocks[4] + 1..whole.len() {
        spool.file = whole[..end].to_vec();
        assert_eq!(kept(&spool), [1, 2, 3, 4], "{end}");
    }
    spool.file = whole[..blocks[4]].to_vec();
    assert_eq!(shown(&spool.import()).len(), 4);
    spool.file = whole[..blocks[2]]
        .iter()
        .chain(&whole[blocks[3]..])
        .copied()
        .collect();
    let imported = spool.import();
    let missing = imported
        .anomalies
        .iter()
        .find(|report| report.name == "SPOOL_BLOCK_MISSING");
    assert_eq!(missing.map(|report| report.count), Some(1));
}

#[test]
fn a_record_of_no_known_kind_is_counted_and_passed_over() {
    let mut spool = Spool::new();
    let mut encoder = Encoder::default();
    let mut foreign = Encoder::default();
    foreign
        .begin(Kind::Mark, 20 * MS, (7, 7))
        .text(b"hello")
        .end();
    let mut bytes = foreign.payload().to_vec();
    bytes[..2].copy_from_slice(&999u16.to_le_bytes());
    encoder.copy(&bytes);
    call(&mut encoder, 41 * MS, 40 * MS, (READ, 3), [0, 0, 0]);
    spool.block(&encoder, u64::MAX);
    let imported = spool.import();
    assert_eq!(shown(&imported).len(), 1);
    assert_eq!(imported.records.skipped, 1);
    assert_eq!(imported.records.read, imported.records.accepted + 1);
}

#[test]
fn a_spool_of_nothing_is_an_empty_recording() {
    let spool = Spool::new();
    assert!(shown(&spool.import()).is_empty());
    assert!(Path::new(spool.folder.path()).exists());
}

/// Bytes that look like records: known kinds, plausible lengths, and arbitrary data.
fn noise() -> impl Strategy<Value = Vec<u8>> {
    let kinds = prop::sample::select(Kind::ALL.to_vec());
    let record = (
        kinds,
        any::<[u8; 4]>(),
        prop::collection::vec(any::<u8>(), 0..72),
    );
    let record = record.prop_map(|(kind, place, mut rest)| {
        rest.resize((16 + rest.len()).next_multiple_of(8) + 4, 7);
        let length = (rest.len() + 8) as u16;
        let mut bytes = (kind as u16).to_le_bytes().to_vec();
        bytes.extend(length.to_le_bytes());
        bytes.extend(place);
        bytes.extend(rest);
        bytes
    });
    prop::collection::vec(record, 0..40).prop_map(|records| records.concat())
}

proptest! {
    #[test]
    fn whatever_records_hold_they_are_used_or_counted(payload in noise(), cut in 0usize..40) {
        let mut spool = Spool::new();
        let mut encoder = Encoder::default();
        encoder.copy(&payload[..payload.len().saturating_sub(cut)]);
        spool.block(&encoder, u64::MAX);
        let records = spool.import().records;
        prop_assert_eq!(records.read, records.accepted + records.skipped);
    }
}

#[test]
fn a_call_of_an_older_spool_has_its_time_and_does_not_begin_the_recording() {
    let mut spool = Spool::new();
    let mut encoder = Encoder::default();
    // Repeated because the spool is new, and once more by the thread itself.
    for ts in [1_000, 1_010] {
        let record = encoder.begin_on(Kind::SyscallEnter, ts * MS, (7, 7), (0, 0));
        record.u64(MS / 2).u64(0).u32(READ).u32(3);
        record.u64(4).u64(0).u64(100).end();
    }
    // Recorded only in the older spool.
    let record = encoder.begin_on(Kind::Syscall, 1_020 * MS, (9, 9), (0, ENTRY_RECORDED));
    record.u64(1_005 * MS).u64(5).u32(READ).u32(3);
    record.u64(4).u64(0).u64(100).end();
    let record = encoder.begin_on(Kind::Syscall, 1_030 * MS, (7, 7), (0, ENTRY_RECORDED));
    record.u64(MS / 2).u64(77).u32(READ).u32(3);
    record.u64(4).u64(0).u64(100).end();
    spool.block(&encoder, u64::MAX);
    let imported = spool.import();
    let ms = MS as i64;
    let expected = [
        ("read".to_owned(), 1_005 * ms, Some(15 * ms), Some(5)),
        (
            "read".to_owned(),
            ms / 2,
            Some(1_030 * ms - ms / 2),
            Some(77),
        ),
    ];
    assert_eq!(shown(&imported), expected);
    // The recording starts with the first clock snapshot of the recorder.
    assert_eq!(imported.begin_ns, EPOCH + ms);
}

#[test]
fn a_call_has_the_path_that_another_ring_tells_later() {
    let mut spool = Spool::new();
    let mut encoder = Encoder::default();
    // While migrating from one CPU to another, the thread recorded the path first, then the call;
    // the ring buffer of the first CPU was read before, that of the second after.
    call(&mut encoder, 41 * MS, 40 * MS, (OPENAT, 3), [0, 0, 0]);
    spool.block(&encoder, 30 * MS);
    encoder.clear();
    for (ts, path) in [(40 * MS, b"/first".as_slice()), (50 * MS, b"/second")] {
        encoder
            .begin_on(Kind::Text, ts, (7, 7), (0, 0))
            .u32(2)
            .text(path)
            .end();
    }
    spool.block(&encoder, 45 * MS);
    encoder.clear();
    call(&mut encoder, 51 * MS, 50 * MS, (OPENAT, 4), [0, 0, 0]);
    spool.block(&encoder, u64::MAX);
    let imported = spool.import();
    let paths = imported.rows.syscall.iter().map(|row| {
        let path = row.path.map(|path| text(&imported, path));
        (row.ret, path.unwrap_or_default())
    });
    let expected = [
        (Some(3), "/first".to_owned()),
        (Some(4), "/second".to_owned()),
    ];
    assert_eq!(paths.collect::<Vec<_>>(), expected);
}

#[test]
fn a_path_is_not_said_of_a_later_call() {
    let mut spool = Spool::new();
    let mut encoder = Encoder::default();
    // Of a call that was too short to be recorded.
    encoder
        .begin_on(Kind::Text, 20 * MS, (7, 7), (0, 0))
        .u32(2)
        .text(b"/short")
        .end();
    call(&mut encoder, 41 * MS, 30 * MS, (OPENAT, 3), [0, 0, 0]);
    spool.block(&encoder, u64::MAX);
    let imported = spool.import();
    assert_eq!(imported.rows.syscall.len(), 1);
    assert_eq!(imported.rows.syscall[0].path, None);
}
