//! Function calls in synthetic spools: matching of entries and returns.

use std::fs;

use tempfile::TempDir;
use whyslow_ingest::{InMemory, import_in_memory};
use whyslow_model::spool::{Block, Encoder, Kind, TAIL};
use whyslow_model::tables::FunctionCallRow;

const MS: u64 = 1_000_000;
/// Wall-clock time at monotonic zero.
const EPOCH: i64 = 1_700_000_000_000_000_000;
const THREAD: (i32, i32) = (7, 8);

struct Spool(Encoder);

impl Spool {
    /// With the clocks, and functions `f0`, `f1`, …, of which the second returns an `int`.
    fn new() -> Self {
        let mut encoder = Encoder::default();
        encoder
            .begin(Kind::Clock, MS, (0, 0))
            .u64(MS)
            .u64((EPOCH + MS as i64) as u64)
            .end();
        for (probe, types) in [(0, &[7, 7, 5][..]), (1, &[5]), (2, &[0, 10])] {
            encoder
                .begin(Kind::Probe, 0, (0, 0))
                .u32(probe)
                .text(b"")
                .text(format!("f{probe}").as_bytes())
                .text(b"/bin/x")
                .text(types)
                .end();
        }
        Self(encoder)
    }

    fn enter(&mut self, ts: u64, probe: u32, sp: u64) -> &mut Self {
        self.enter_by(ts, (probe, sp), 0)
    }

    fn enter_by(&mut self, ts: u64, (probe, sp): (u32, u64), flags: u16) -> &mut Self {
        let record = self
            .0
            .begin_on(Kind::FunctionBegin, ts * MS, THREAD, (0, flags));
        record.u64(sp).u32(probe).u32(0);
        for arg in 0..6u64 {
            record.u64(0xffff_ffff_0000_0000 | arg);
        }
        record.end();
        self
    }

    fn leave(&mut self, ts: u64, probe: u32, sp: u64) -> &mut Self {
        let record = self.0.begin(Kind::FunctionEnd, ts * MS, THREAD);
        record.u64(sp).u32(probe).u32(0).u64(0xdead_ffff_ffff).end();
        self
    }

    fn exit(&mut self, ts: u64) -> &mut Self {
        let record = self.0.begin(Kind::Exit, ts * MS, THREAD);
        record
            .u32(THREAD.1 as u32)
            .u32(THREAD.0 as u32)
            .comm(b"x")
            .end();
        self
    }

    fn import(&self) -> InMemory {
        let payload = self.0.payload();
        let mut block = Block {
            number: 0,
            complete_until: u64::MAX,
            payload_bytes: payload.len() as u32,
            record_bytes: payload.len() as u32,
            records: self.0.records(),
            is_compressed: false,
            has_names: false,
            crc: 0,
        };
        let mut crc = crc32fast::Hasher::new();
        crc.update(&block.head());
        crc.update(payload);
        block.crc = crc.finalize();
        let mut file = block.head().to_vec();
        file.extend(block.crc.to_le_bytes());
        file.extend(payload);
        let folder = TempDir::new().expect("a temporary folder");
        let spool = folder.path().join("x.spool");
        fs::create_dir(&spool).expect("a disk");
        fs::write(spool.join("000001.blocks"), file).expect("a disk");
        import_in_memory(&[spool]).expect("a spool is always readable")
    }
}

fn text(imported: &InMemory, symbol: whyslow_model::Sym) -> String {
    imported.symbols.get(symbol).to_owned()
}

/// Function, start and duration in ms, and the containing call; sorted by start.
fn calls(imported: &InMemory) -> Vec<(String, i64, Option<i64>, Option<i64>)> {
    let ms = MS as i64;
    let mut rows: Vec<&FunctionCallRow> = imported.rows.function_call.iter().collect();
    rows.sort_by_key(|row| row.id);
    let show = |row: &&FunctionCallRow| {
        let begin = (row.ts - EPOCH) / ms;
        (
            text(imported, row.function),
            begin,
            row.dur.map(|dur| dur / ms),
            row.parent_id,
        )
    };
    rows.iter().map(show).collect()
}

fn check(imported: &InMemory, expected: &[(&str, i64, Option<i64>, Option<i64>)]) {
    let expected: Vec<_> = expected
        .iter()
        .map(|(function, begin, dur, parent)| ((*function).to_owned(), *begin, *dur, *parent))
        .collect();
    assert_eq!(calls(imported), expected);
}

fn count(imported: &InMemory, name: &str) -> i64 {
    let mut anomalies = imported.anomalies.iter();
    anomalies
        .find(|anomaly| anomaly.name == name)
        .map_or(0, |anomaly| anomaly.count as i64)
}

#[test]
fn arguments_and_results_are_read_by_their_types() {
    let mut spool = Spool::new();
    spool.enter(10, 0, 0x700).leave(15, 0, 0x700);
    spool.enter(20, 1, 0x700).leave(21, 1, 0x700);
    spool.enter(30, 2, 0x700).leave(31, 2, 0x700);
    let imported = spool.import();
    let rows = &imported.rows.function_call;
    let [plain, int, void] = rows.as_slice() else {
        panic!("{rows:?}");
    };
    assert_eq!(
        (plain.arg1, plain.arg2, plain.arg3),
        (Some(-1 << 32), Some(1), None)
    );
    assert_eq!(plain.ret, Some(0xdead_ffff_ffff));
    assert_eq!((int.arg1, int.ret), (None, Some(-1)));
    assert_eq!(
        (void.arg1, void.ret, void.text),
        (Some(-1 << 32), None, None)
    );
    assert_eq!(text(&imported, plain.module), "/bin/x");
    assert_eq!(
        (plain.pid, plain.tid, plain.cpu),
        (Some(7), Some(8), Some(0))
    );
}

#[test]
fn a_function_that_calls_itself_has_a_return_for_each_call() {
    let mut spool = Spool::new();
    spool
        .enter(10, 0, 0x700)
        .enter(11, 0, 0x6c0)
        .enter(12, 1, 0x680);
    spool
        .leave(20, 1, 0x680)
        .leave(21, 0, 0x6c0)
        .leave(30, 0, 0x700);
    check(
        &spool.import(),
        &[
            ("f0", 10, Some(20), None),
            ("f0", 11, Some(10), Some(0)),
            ("f1", 12, Some(8), Some(1)),
        ],
    );
}

#[test]
fn a_function_that_ends_in_a_jump_to_another_returns_with_it() {
    let mut spool = Spool::new();
    spool.enter(10, 0, 0x700).enter_by(11, (1, 0x700), TAIL);
    spool.leave(20, 1, 0x700).leave(20, 0, 0x700);
    // If the jump is not a tail call, the first call was left.
    spool
        .enter(30, 0, 0x700)
        .enter(31, 1, 0x700)
        .leave(40, 1, 0x700);
    let imported = spool.import();
    check(
        &imported,
        &[
            ("f0", 10, Some(10), None),
            ("f1", 11, Some(9), Some(0)),
            ("f0", 30, None, None),
            ("f1", 31, Some(9), None),
        ],
    );
    assert_eq!(count(&imported, "FUNCTION_LEFT"), 1);
}

#[test]
fn calls_that_are_left_have_no_end_and_those_around_them_have() {
    let mut spool = Spool::new();
    // A jump from the innermost to the outermost call, which returns.
    spool
        .enter(10, 0, 0x700)
        .enter(11, 1, 0x680)
        .enter(12, 2, 0x600)
        .leave(20, 0, 0x700);
    // A call on another stack, above the first, while that is in progress.
    spool
        .enter(30, 0, 0x700)
        .enter(31, 1, 0x9000)
        .leave(32, 1, 0x9000)
        .leave(40, 0, 0x700);
    // A call in progress when its thread ends.
    spool.enter(50, 0, 0x700).exit(60);
    let imported = spool.import();
    check(
        &imported,
        &[
            ("f0", 10, Some(10), None),
            ("f1", 11, None, Some(0)),
            ("f2", 12, None, Some(1)),
            ("f0", 30, Some(10), None),
            ("f1", 31, Some(1), None),
            ("f0", 50, None, None),
        ],
    );
    assert_eq!(count(&imported, "FUNCTION_LEFT"), 3);
}

#[test]
fn more_calls_than_can_be_open_are_told_without_an_end() {
    let mut spool = Spool::new();
    let depth = 1000;
    for call in 0..depth {
        spool.enter(10 + call, 0, 0x10_0000 - call * 16);
    }
    // The kernel reports the outermost call.
    for call in (0..64).rev() {
        spool.leave(3000 - call, 0, 0x10_0000 - call * 16);
    }
    let imported = spool.import();
    let rows = calls(&imported);
    assert_eq!(rows.len(), depth as usize);
    let whole = rows.iter().filter(|(_, _, dur, _)| dur.is_some()).count();
    assert_eq!(whole, 64);
    assert!(rows[..64].iter().all(|(_, _, dur, _)| dur.is_some()));
}

#[test]
fn static_probes_have_their_arguments_by_type() {
    let mut spool = Spool::new();
    let probe = spool.0.begin(Kind::Probe, 0, (0, 0));
    probe
        .u32(5)
        .text(b"server")
        .text(b"query__start")
        .text(b"/bin/db");
    // A signed 32-bit value, an unreadable one, and a text.
    probe.text(&[0, 5, 0, 10]).end();
    let hit = spool.0.begin(Kind::Usdt, 10 * MS, THREAD);
    hit.u32(5).u32(1);
    for arg in 0..12u64 {
        hit.u64(0xffff_ffff - arg);
    }
    let mut room = [0; 512];
    room[..8].copy_from_slice(b"SELECT 1");
    for word in room.chunks_exact(8) {
        hit.u64(u64::from_le_bytes(word.try_into().expect("eight bytes")));
    }
    hit.end();
    let imported = spool.import();
    let [row] = imported.rows.usdt_event.as_slice() else {
        panic!("{:?}", imported.rows.usdt_event);
    };
    assert_eq!(
        (row.arg1, row.arg2, row.arg3, row.arg4),
        (Some(-1), None, Some(0xffff_fffd), None)
    );
    assert_eq!(
        row.text.map(|symbol| text(&imported, symbol)).as_deref(),
        Some("SELECT 1")
    );
    assert_eq!(
        (text(&imported, row.provider), text(&imported, row.name)),
        ("server".into(), "query__start".into())
    );
    assert_eq!(
        (row.ts - EPOCH, row.tid, row.text2),
        (10 * MS as i64, Some(8), None)
    );
}

#[test]
fn what_nothing_tells_the_begin_or_the_name_of_is_counted() {
    let mut spool = Spool::new();
    spool
        .leave(10, 0, 0x700)
        .enter(20, 9, 0x700)
        .leave(21, 9, 0x700);
    let imported = spool.import();
    check(&imported, &[]);
    assert_eq!(count(&imported, "FUNCTION_END_WITHOUT_BEGIN"), 1);
    assert_eq!(count(&imported, "FUNCTION_UNKNOWN"), 2);
    assert_eq!(imported.records.skipped, 2);
}
