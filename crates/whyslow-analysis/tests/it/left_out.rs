//! Waits for work that views of durations leave out.

use whyslow_analysis::{Kind, Query, Verb, evaluate};
use whyslow_model::Symbols;
use whyslow_model::answer::{Answer, AnswerTable};
use whyslow_model::tables::{Collected, SyscallRow, ThreadRow, ThreadStateRow};
use whyslow_store::{MemoryTables, RecordingInfo};

use crate::it::shown::columns;

/// `begin end name op class path thread`, times in us; `-` is empty. A begin of `<` was not
/// recorded.
const CALLS: &str = "
10 900000 accept4 connect inet - 1
20 60 openat open file /var/lib/a 1
70 470 openat open file /var/lib/b 1
500 700500 read read inet - 1
510 710 read read file /var/lib/a 1
520 820 read read - - 1
530 500530 read read dev /dev/fuse 2
540 940 read read dev /dev/nvme0 2
< 300000 poll wait - - 6
600 2600 connect connect inet - 2
610 3610 io_getevents wait - - 2
620 6620 write write pipe - 2
630 - epoll_wait wait epoll - 2
";

/// `utid`, begin and end in us, and state of each stretch.
const STATES: [(i32, i64, i64, &str); 8] = [
    // In accept4, in openat, in a read of a file, and before the first recorded call.
    (1, 30, 19_000, "sleeping"),
    (1, 100, 300, "uninterruptible"),
    (6, 5, 299_000, "sleeping"),
    (2, 2_000_000, 2_600_000, "runnable"),
    (3, 40, 900_000, "sleeping"),
    (3, 950_000, 980_000, "uninterruptible"),
    (4, 50, 700_000, "idle"),
    (5, 60, 500_000, "sleeping"),
];

fn tables() -> MemoryTables {
    let mut symbols = Symbols::new();
    let mut rows = Collected::default();
    for (id, line) in CALLS.trim().lines().enumerate() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [begin, end, name, op, class, path, thread] = words[..] else {
            panic!("{line}");
        };
        let us = |word: &str| word.parse::<i64>().ok().map(|us| us * 1000);
        let mut text = |word: &str| (word != "-").then(|| symbols.intern(word));
        let (ts, ts_end) = (us(begin).or(us(end)).unwrap(), us(end));
        rows.syscall.push(SyscallRow {
            id: id as i64 + 1,
            ts,
            ts_end,
            dur: ts_end.filter(|_| begin != "<").map(|end| end - ts),
            utid: thread.parse().ok(),
            tid: Some(17),
            name: text(name).unwrap(),
            op: text(op).unwrap(),
            fd_class: text(class),
            path: text(path),
            cut: match (begin, end) {
                ("<", _) => text("begin"),
                (_, "-") => text("end"),
                _ => None,
            },
            ..SyscallRow::default()
        });
    }
    for (id, (utid, begin, end, state)) in STATES.into_iter().enumerate() {
        rows.thread_state.push(ThreadStateRow {
            id: id as i64 + 1,
            ts: begin * 1000,
            dur: Some((end - begin) * 1000),
            ts_end: Some(end * 1000),
            utid: Some(utid),
            tid: Some(100 + utid),
            state: symbols.intern(state),
            ..ThreadStateRow::default()
        });
    }
    for (utid, is_kernel) in [
        (1, Some(false)),
        (2, None),
        (3, Some(true)),
        (4, Some(true)),
        (5, None),
        (6, None),
    ] {
        rows.thread.push(ThreadRow {
            utid,
            tid: 100 + utid,
            is_kernel,
            ..ThreadRow::default()
        });
    }
    rows.syscall.sort_by_key(|row| (row.ts, row.id));
    rows.thread_state.sort_by_key(|row| (row.ts, row.id));
    let info = RecordingInfo {
        begin_ns: 0,
        end_ns: 3_000_000_000,
        ..RecordingInfo::default()
    };
    MemoryTables::new(&rows, &symbols, info)
}

fn answer(kind: Kind, verb: Verb, change: impl FnOnce(&mut Query)) -> Answer {
    let mut query = Query::new(kind, verb);
    change(&mut query);
    evaluate(&tables(), &query).unwrap()
}

fn names(answer: &Answer) -> Vec<String> {
    let of_table = |table: &AnswerTable| columns(table, &["name"]);
    let all = answer.tables.iter().map(of_table).collect::<Vec<_>>();
    all.join("\n").lines().map(str::to_owned).collect()
}

#[test]
fn the_longest_calls_are_those_that_were_slow() {
    let top = answer(Kind::Syscalls, Verb::Top, |_| {});
    assert_eq!(
        names(&top),
        [
            "write",
            "io_getevents",
            "connect",
            "openat",
            "read",
            "read",
            "read",
            "openat"
        ]
    );
    let left_out = top.left_out.as_ref().unwrap();
    assert_eq!((left_out.count, left_out.total_ns), (5, 2_099_990_000));
    assert_eq!(left_out.by_name[0], ("read".to_owned(), 2, 1_200_000_000));
    assert_eq!(
        top.caveats.last().unwrap(),
        "left out: 5 waits for work (read, accept4, epoll_wait, …), 2.10 s in total; --waits includes \
         them"
    );
}

#[test]
fn waits_are_included_by_option_and_by_name() {
    let with = answer(Kind::Syscalls, Verb::Top, |query| query.waits = true);
    assert_eq!(names(&with)[0], "accept4");
    assert_eq!(with.left_out, None);
    let by_op = answer(Kind::Syscalls, Verb::Top, |query| {
        query.filter.ops = vec!["accept4".into(), "read".into()];
    });
    // `read` is a class here: only its reads of files and devices.
    assert_eq!(names(&by_op), ["accept4", "read", "read", "read"]);
    assert_eq!(by_op.left_out.unwrap().count, 2);
    let by_name = answer(Kind::Syscalls, Verb::Top, |query| {
        query.filter.names = vec!["read".into()];
    });
    assert_eq!(names(&by_name).len(), 5);
    assert_eq!(by_name.left_out, None);
}

#[test]
fn every_view_of_durations_leaves_them_out() {
    let stats = answer(Kind::Io, Verb::Stats, |_| {});
    assert_eq!(
        columns(&stats.tables[0], &["op", "count", "max_ns"]),
        "write | 1 | 6000000\nconnect | 1 | 2000000\nread | 3 | 400000\nopen | 2 | 400000"
    );
    let all = answer(Kind::Syscalls, Verb::Log, |_| {});
    assert_eq!((names(&all).len(), all.left_out), (13, None));
    for (kind, verb, kept) in [
        (Kind::Io, Verb::Syscalls, "read | 3"),
        (Kind::Syscalls, Verb::Stats, "read | 3"),
    ] {
        let by_name = answer(kind, verb, |_| {});
        let shown = columns(&by_name.tables[0], &["name", "count"]);
        assert!(
            shown.contains(kept) && !shown.contains("accept4"),
            "{shown}"
        );
    }
    for verb in [Verb::Hist, Verb::Heat] {
        let counted = answer(Kind::Syscalls, verb, |_| {});
        let with = answer(Kind::Syscalls, verb, |query| query.waits = true);
        assert_eq!(
            counted.left_out.as_ref().map(|out| out.count),
            Some(5),
            "{verb:?}"
        );
        assert_ne!(counted.tables, with.tables, "{verb:?}");
    }
}

#[test]
fn states_begin_with_those_that_hold_a_thread_up() {
    let top = answer(Kind::States, Verb::Top, |_| {});
    let titles: Vec<&str> = top
        .tables
        .iter()
        .map(|table| table.title.as_str())
        .collect();
    assert_eq!(titles, ["uninterruptible", "runnable", "sleeping"]);
    // A thread without recorded calls may not be idle.
    assert_eq!(columns(&top.tables[2], &["tid"]), "105");
    assert_eq!(top.left_out.as_ref().unwrap().count, 4);
    let all = answer(Kind::States, Verb::Top, |query| query.waits = true);
    assert_eq!(all.tables.len(), 4);
    let by_name = answer(Kind::States, Verb::Top, |query| {
        query.filter.ops = vec!["sleeping".into()];
    });
    assert_eq!(by_name.tables[0].rows.len(), 4);
}
