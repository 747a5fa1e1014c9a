//! Kernel lock and futex waits in one lane, and groups of system calls.

use whyslow_model::Symbols;
use whyslow_model::row::Emit as _;
use whyslow_model::tables::{Collected, FutexCallRow, LockWaitRow, SyscallRow};
use whyslow_store::MemoryTables;
use whyslow_tiles::LEVEL_MAX;

use crate::it::made::{piece, place};
use crate::it::support::{Piece, check, info, tiles_of};

#[test]
fn waits_of_two_tables_come_in_order_of_time() {
    let mut symbols = Symbols::new();
    let words = ["mutex", "rwsem", "unheard_of", "wait", "wake"].map(|word| symbols.intern(word));
    let [mutex, rwsem, unheard, wait, wake] = words;
    let mut rows = Collected::default();
    let mut kernel = |begin, end, utid, kind| {
        rows.lock_wait.push(LockWaitRow {
            id: begin,
            ts: begin,
            dur: Some(end - begin),
            ts_end: Some(end),
            kind,
            utid: Some(utid),
            ..LockWaitRow::default()
        });
    };
    kernel(100, 200, 1, mutex);
    kernel(500, 600, 1, rwsem);
    kernel(520, 530, 2, unheard);
    kernel(900, 950, 1, mutex);
    let mut futex = |begin, end, utid, op| {
        rows.futex_call.push(FutexCallRow {
            id: begin,
            ts: begin,
            dur: Some(end - begin),
            ts_end: Some(end),
            op,
            utid: Some(utid),
            ..FutexCallRow::default()
        });
    };
    futex(0, 50, 1, wait);
    futex(150, 300, 1, wait); // overlaps a kernel lock wait
    futex(310, 320, 1, wake); // not a wait
    futex(300, 550, 2, wait);
    futex(960, 970, 1, wait);
    let tiles = tiles_of(&MemoryTables::new(&rows, &symbols, info(0, 1000)));
    let track = tiles
        .tracks()
        .iter()
        .find(|track| track.name == "locks")
        .expect("a track");
    let [mutex, rwsem, futex] = ["mutex", "rwsem", "futex"].map(|value| place(track, value));
    let first = [
        piece(0, 50, futex, 1),
        piece(100, 200, mutex, 0),
        piece(200, 300, futex, 1),
        piece(500, 600, rwsem, 0),
        piece(900, 950, mutex, 0),
        piece(960, 970, futex, 1),
    ];
    let second = [piece(300, 550, futex, 1)];
    for level in 0..=LEVEL_MAX {
        let runs = tiles.tile("locks", level, 0, &[1, 2]).expect("whole");
        check(&runs, 1, &first, level, 0);
        check(&runs, 2, &second, level, 0);
    }
    assert_eq!((track.left_out.cut, track.left_out.hidden), (1, 1));
}

#[test]
fn calls_are_about_files_the_network_or_waiting() {
    let mut symbols = Symbols::new();
    let mut rows = Collected::default();
    let calls = [
        ("read", Some("file"), 0),
        ("write", Some("inet6"), 1),
        ("read", Some("pipe"), 3),
        ("read", None, 3),
        ("wait", Some("epoll"), 2),
        ("lock", None, 2),
        ("sleep", None, 2),
        ("metadata", None, 0),
        ("open", Some("inet"), 1),
        ("memory", Some("file"), 3),
        ("process", None, 3),
    ];
    let mut at = 0;
    for (op, class, _) in calls {
        rows.emit(SyscallRow {
            id: at,
            ts: at,
            dur: Some(1000),
            ts_end: Some(at + 1000),
            utid: Some(5),
            op: symbols.intern(op),
            fd_class: class.map(|class| symbols.intern(class)),
            ..SyscallRow::default()
        });
        at += 1024;
    }
    let tiles = tiles_of(&MemoryTables::new(&rows, &symbols, info(0, at)));
    let track = tiles
        .tracks()
        .iter()
        .find(|track| track.name == "calls")
        .expect("a track");
    let pieces: Vec<Piece> = (0u64..)
        .zip(calls)
        .map(|(number, (op, _, group))| {
            piece(number * 1024, number * 1024 + 1000, place(track, op), group)
        })
        .collect();
    for level in [0, 5, 10, 12, 20] {
        let runs = tiles.tile("calls", level, 0, &[5]).expect("whole");
        check(&runs, 5, &pieces, level, 0);
    }
}
