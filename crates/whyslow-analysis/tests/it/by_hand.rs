//! Small recordings with manually computed answers.

use whyslow_analysis::{Bins, DeviceRef, Kind, Query, Sort, Verb, evaluate, evaluate_streaming};
use whyslow_model::tables::{
    BlockIoRow, Collected, FdLifeRow, LostEventsRow, SyscallRow, ThreadRow,
};
use whyslow_model::{Symbols, Window};
use whyslow_store::{MemoryTables, RecordingInfo};

use crate::it::shown::{columns, table};

/// One line per call: `begin end name op comm errno bytes path`, times in us; `-` is empty.
pub(crate) fn recording(calls: &str) -> MemoryTables {
    let mut symbols = Symbols::new();
    let mut rows = Collected::default();
    for (id, line) in calls.trim().lines().enumerate() {
        let mut words = line.split_whitespace();
        let mut word = || words.next().filter(|word| *word != "-");
        let number = |word: Option<&str>| word.map(|word| word.parse::<i64>().unwrap());
        let ts = number(word()).unwrap() * 1000;
        let ts_end = number(word()).map(|us| us * 1000);
        let (name, op, comm) = (word().unwrap(), word().unwrap(), word().unwrap());
        let errno = number(word()).map(|errno| errno as i32);
        let bytes = number(word());
        let path = word();
        rows.syscall.push(SyscallRow {
            id: id as i64 + 1,
            ts,
            dur: ts_end.map(|end| end - ts),
            ts_end,
            // Calls overlap, so each has a thread of its own.
            utid: Some(id as i32 + 1),
            upid: Some(1),
            tid: Some(17),
            pid: Some(17),
            comm: Some(symbols.intern(comm)),
            cpu: Some(0),
            name: symbols.intern(name),
            compat: false,
            op: symbols.intern(op),
            ret: bytes,
            errno,
            fd: Some(3),
            path: path.map(|path| symbols.intern(path)),
            fd_class: Some(symbols.intern("file")),
            bytes,
            cut: ts_end.is_none().then(|| symbols.intern("end")),
            ..SyscallRow::default()
        });
    }
    rows.thread.push(ThreadRow {
        utid: 1,
        upid: Some(1),
        tid: 17,
        pid: Some(17),
        comm: Some(symbols.intern("apache2")),
        ts_first: 0,
        ts_last: 0,
        is_main: Some(true),
        is_tracer: false,
        ..ThreadRow::default()
    });
    let info = RecordingInfo {
        begin_ns: 0,
        end_ns: 1_000_000,
        ..RecordingInfo::default()
    };
    MemoryTables::new(&rows, &symbols, info)
}

const INCIDENT: &str = "
10 38 openat open apache2 - - /var/lib/php5/sess_a
40 42 read read apache2 - 100 /var/lib/php5/sess_a
50 60 openat open apache2 2 - /etc/nowhere
100 900 sync sync sync - - -
110 890 openat open apache2 - - /var/lib/php5/sess_b
200 - fsync sync sync - - /db
600 600 write write apache2 - 0 /var/log/x
700 706 write write apache2 - 4096 /var/log/x
";

#[test]
fn statistics_of_each_class_of_operation() {
    let answer = evaluate(&recording(INCIDENT), &Query::new(Kind::Io, Verb::Stats)).unwrap();
    let stats = table(&answer, "stats");
    let shown = columns(
        stats,
        &[
            "op",
            "count",
            "bytes",
            "min_ns",
            "avg_ns",
            "p50_ns",
            "max_ns",
            "total_ns",
            "errors",
            "unfinished",
            "slowest_comm",
            "slowest_object",
            "slowest_id",
        ],
    );
    assert_eq!(
        shown,
        "open | 3 | 0 | 10000 | 2.726667e5 | 28000 | 780000 | 818000 | 1 | 0 | apache2 | /var/lib/php5/sess_b | op:5\n\
         sync | 2 | 0 | 800000 | 8.000000e5 | 800000 | 800000 | 800000 | 0 | 1 | sync | NULL | op:4\n\
         write | 2 | 4096 | 0 | 3.000000e3 | 0 | 6000 | 6000 | 0 | 0 | apache2 | /var/log/x | op:8\n\
         read | 1 | 100 | 2000 | 2.000000e3 | 2000 | 2000 | 2000 | 0 | 0 | apache2 | /var/lib/php5/sess_a | op:2"
    );
    assert!(
        answer
            .caveats
            .iter()
            .any(|caveat| caveat.starts_with("1 operations started before"))
    );
}

#[test]
fn share_of_the_window_counts_what_lies_inside() {
    let mut query = Query::new(Kind::Io, Verb::Stats);
    query.window = Some(Window::new(400_000, 800_000));
    let answer = evaluate(&recording(INCIDENT), &query).unwrap();
    let shown = columns(
        table(&answer, "stats"),
        &["op", "count", "total_ns", "window_ratio"],
    );
    assert_eq!(
        shown,
        "sync | 2 | 800000 | 1.000000e0\nopen | 1 | 780000 | 1.000000e0\nwrite | 2 | 6000 | 1.500000e-2"
    );
}

#[test]
fn operations_cut_by_the_window_are_kept_and_marked_on_both_sides() {
    let mut query = Query::new(Kind::Io, Verb::Log);
    query.window = Some(Window::new(700_000, 895_000));
    let answer = evaluate(&recording(INCIDENT), &query).unwrap();
    let log = table(&answer, "log");
    assert_eq!(
        columns(log, &["name", "dur_ns", "id"]),
        "sync | 800000 | op:4\nopenat | 780000 | op:5\nfsync | NULL | op:6\nwrite | 6000 | op:8"
    );
    assert_eq!(log.cut, [(0, "both"), (1, "begin"), (2, "both")]);
}

#[test]
fn top_has_exactly_as_many_rows_as_asked_for() {
    let mut query = Query::new(Kind::Io, Verb::Top);
    query.limit = Some(2);
    let answer = evaluate(&recording(INCIDENT), &query).unwrap();
    assert_eq!(
        columns(
            table(&answer, "top_open"),
            &["dur_ns", "path", "fd", "error", "id"]
        ),
        "780000 | /var/lib/php5/sess_b | 3 | NULL | op:5\n28000 | /var/lib/php5/sess_a | 3 | NULL | op:1"
    );
    assert_eq!(
        columns(
            table(&answer, "unfinished"),
            &["dur_min_ns", "dur_ns", "id"]
        ),
        "800000 | NULL | op:6"
    );
    assert_eq!(
        answer.next.as_deref(),
        Some("whyslow io log --overlaps op:4")
    );
}

#[test]
fn what_overlaps_an_operation_is_everything_else_that_ran_during_it() {
    let mut query = Query::new(Kind::Io, Verb::Log);
    query.overlaps = Some(("syscall".into(), 5));
    let answer = evaluate(&recording(INCIDENT), &query).unwrap();
    assert_eq!(
        columns(table(&answer, "log"), &["id"]),
        "op:4\nop:6\nop:7\nop:8"
    );
}

#[test]
fn filters_hold_together() {
    let tables = recording(INCIDENT);
    let ids = |change: &dyn Fn(&mut Query)| {
        let mut query = Query::new(Kind::Io, Verb::Log);
        change(&mut query);
        columns(table(&evaluate(&tables, &query).unwrap(), "log"), &["id"]).replace('\n', " ")
    };
    // Rows without a size pass a minimum size, but not an exact one.
    assert_eq!(
        ids(&|q| q.filter.size_min = Some(1)),
        "op:1 op:2 op:3 op:4 op:5 op:6 op:8"
    );
    assert_eq!(ids(&|q| q.filter.size = Some(4096)), "op:8");
    assert_eq!(ids(&|q| q.filter.errors_only = true), "op:3");
    assert_eq!(
        ids(&|q| q.filter.ops = vec!["sync".into(), "openat".into()]),
        "op:1 op:3 op:4 op:5 op:6"
    );
    assert_eq!(ids(&|q| q.filter.comms = vec!["sy*".into()]), "op:4 op:6");
    assert_eq!(
        ids(&|q| q.filter.files = vec!["sess_*".into()]),
        "op:1 op:2 op:5"
    );
    assert_eq!(ids(&|q| q.filter.files = vec!["/var/*".into()]), "");
    assert_eq!(
        ids(&|q| q.filter.files = vec!["/var/**".into()]),
        "op:1 op:2 op:5 op:7 op:8"
    );
    // The unfinished call lasted at least 800 us; it may have lasted more than 900.
    assert_eq!(ids(&|q| q.filter.dur_min = Some(780_000)), "op:4 op:5 op:6");
    assert_eq!(
        ids(&|q| {
            q.filter.dur_min = Some(780_000);
            q.filter.dur_max = Some(900_000);
        }),
        "op:4 op:5"
    );
}

#[test]
fn powers_of_two_and_equal_parts() {
    let mut query = Query::new(Kind::Io, Verb::Hist);
    query.filter.ops = vec!["open".into()];
    let tables = recording(INCIDENT);
    let answer = evaluate(&tables, &query).unwrap();
    let histogram = table(&answer, "hist_open");
    assert_eq!(
        columns(histogram, &["from_ns", "to_ns", "count"]),
        "8192 | 16384 | 1\n16384 | 32768 | 1\n32768 | 65536 | 0\n65536 | 131072 | 0\n\
         131072 | 262144 | 0\n262144 | 524288 | 0\n524288 | 1048576 | 1"
    );
    query.bins = Bins::Linear {
        count: 4,
        uniform: false,
    };
    let answer = evaluate(&tables, &query).unwrap();
    assert_eq!(
        columns(table(&answer, "hist_open"), &["from_ns", "to_ns", "count"]),
        "10000 | 202500 | 2\n202500 | 395000 | 0\n395000 | 587500 | 0\n587500 | 780000 | 1"
    );
}

#[test]
fn a_question_that_means_nothing_is_refused_with_a_hint() {
    let tables = recording(INCIDENT);
    let refused = |change: &dyn Fn(&mut Query)| {
        let mut query = Query::new(Kind::Io, Verb::Stats);
        change(&mut query);
        evaluate(&tables, &query).unwrap_err().to_string()
    };
    let sda = || vec![DeviceRef::Name("sda".into())];
    assert_eq!(
        refused(&|q| q.filter.devices = sda()),
        "cannot filter io by device"
    );
    assert_eq!(
        refused(&|q| q.by = vec!["dev".into()]),
        "unknown key `dev` for io"
    );
    assert_eq!(
        refused(&|q| q.filter.files = vec!["[".into()]),
        "`[` is not a valid pattern: unclosed character class; missing ']'"
    );
    assert_eq!(
        refused(&|q| q.verb = Verb::Tree),
        "unknown view `tree` of io"
    );
    assert_eq!(
        refused(&|q| q.sort = Some(Sort {
            column: "colour".into(),
            ascending: true
        })),
        "cannot sort by `colour`: no such column"
    );
    assert_eq!(
        refused(&|q| q.overlaps = Some(("syscall".into(), 99))),
        "no operation 99 in table `syscall`"
    );
    assert_eq!(
        refused(&|q| q.interval = Some(1)),
        "the window has more than 100000 intervals"
    );
}

#[test]
fn what_was_not_recorded_is_unavailable() {
    let answer = evaluate(&recording(INCIDENT), &Query::new(Kind::Block, Verb::Stats)).unwrap();
    assert!(answer.tables.is_empty());
    assert_eq!(
        answer.caveats,
        [
            "cannot tell whether block requests were recorded: the recording does not state it \
             (`whyslow record --what +block` records them)"
        ]
    );
}

#[test]
fn rows_of_a_log_are_handed_on_until_the_reader_has_enough() {
    let mut seen = 0;
    let mut query = Query::new(Kind::Io, Verb::Log);
    query.limit = Some(3);
    evaluate_streaming(&recording(INCIDENT), &query, &mut |header, table| {
        assert_eq!(header.query, "io log");
        seen += table.rows.len();
        std::ops::ControlFlow::Continue(())
    })
    .unwrap();
    assert_eq!(seen, 3);
}

#[test]
fn losses_that_touch_the_window_are_told() {
    let symbols = &mut Symbols::new();
    let mut rows = Collected::default();
    rows.lost_events.push(LostEventsRow {
        id: 1,
        ts: 100,
        dur: Some(50),
        ts_end: Some(150),
        cpu: Some(2),
        stream: symbols.intern("c_2"),
        kind: symbols.intern("events"),
        count: Some(7),
    });
    let info = RecordingInfo {
        begin_ns: 0,
        end_ns: 1000,
        ..RecordingInfo::default()
    };
    let tables = MemoryTables::new(&rows, symbols, info);
    let losses = |begin, end| {
        let mut query = Query::new(Kind::Io, Verb::Stats);
        query.window = Some(Window::new(begin, end));
        evaluate(&tables, &query).unwrap().losses.len()
    };
    assert_eq!(
        (losses(0, 99), losses(120, 130), losses(200, 300)),
        (0, 1, 0)
    );
}

/// Two overlapping reads of sda, one write, and a request that never completed.
fn disks() -> MemoryTables {
    let mut symbols = Symbols::new();
    let mut rows = Collected::default();
    for (id, (ts, dur, op)) in [
        (0, Some(400_000_000), "read"),
        (200_000_000, Some(400_000_000), "read"),
        (1_500_000_000, Some(100_000_000), "write"),
        (1_900_000_000, None, "write"),
    ]
    .into_iter()
    .enumerate()
    {
        rows.block_io.push(BlockIoRow {
            id: id as i64,
            ts,
            dur,
            ts_end: dur.map(|dur| ts + dur),
            ts_issue: Some(ts),
            queue_ns: Some(0),
            device_ns: dur,
            dev: 8 << 20,
            dev_name: symbols.intern("sda"),
            sector: 0,
            sectors: 8,
            bytes: 4096,
            op: symbols.intern(op),
            rwbs: symbols.intern("R"),
            layer: symbols.intern("request"),
            merges: 0,
            completions: 1,
            cut: dur.is_none().then(|| symbols.intern("end")),
            ..BlockIoRow::default()
        });
    }
    let info = RecordingInfo {
        begin_ns: 0,
        end_ns: 2_000_000_000,
        ..RecordingInfo::default()
    };
    MemoryTables::new(&rows, &symbols, info)
}

#[test]
fn devices_second_by_second_as_iostat_shows_them() {
    let mut query = Query::new(Kind::Block, Verb::Usage);
    query.interval = Some(1_000_000_000);
    let answer = evaluate(&disks(), &query).unwrap();
    assert_eq!(
        columns(
            table(&answer, "devices"),
            &[
                "ts_ns",
                "dev",
                "r_per_s",
                "w_per_s",
                "r_await_ns",
                "w_await_ns",
                "aqu_sz",
                "busy_ns"
            ],
        ),
        "0 | sda | 2.000000e0 | 0 | 4.000000e8 | NULL | 8.000000e-1 | 600000000\n\
         1000000000 | sda | 0 | 2.000000e0 | NULL | 1.000000e8 | 2.000000e-1 | 200000000"
    );
}

#[test]
fn what_the_end_of_an_interval_cuts_counts_in_the_next_one_and_its_time_in_both() {
    let ended = |kind, verb| Query {
        counts_ended: true,
        ..Query::new(kind, verb)
    };
    let answer = evaluate(&disks(), &ended(Kind::Block, Verb::Usage)).unwrap();
    let shown = ["requests", "write_bytes", "busy_ns", "aqu_sz"];
    assert_eq!(
        columns(table(&answer, "devices"), &shown),
        "3 | 4096 | 800000000 | 5.000000e-1"
    );
    let calls = recording(INCIDENT);
    let answer = evaluate(&calls, &ended(Kind::Io, Verb::Stats)).unwrap();
    let stats = table(&answer, "stats");
    assert_eq!(
        columns(stats, &["op", "count", "total_ns", "unfinished"]),
        "open | 3 | 818000 | 0\nsync | 1 | 800000 | 0\nwrite | 2 | 6000 | 0\nread | 1 | 2000 | 0"
    );
    assert!(
        answer
            .caveats
            .iter()
            .all(|caveat| !caveat.contains("started before"))
    );
    let answer = evaluate(&calls, &ended(Kind::Io, Verb::Log)).unwrap();
    assert_eq!(table(&answer, "log").rows.len(), 7);
    // It is still in progress, and must be listed as such.
    let answer = evaluate(&calls, &ended(Kind::Io, Verb::Top)).unwrap();
    let running = table(&answer, "unfinished");
    assert_eq!(columns(running, &["id", "dur_min_ns"]), "op:6 | 800000");
    let answer = evaluate(&calls, &ended(Kind::Files, Verb::Usage)).unwrap();
    let files = table(&answer, "usage");
    let db = columns(files, &["file", "other_calls"]);
    assert!(!db.contains("/db"), "{db}");
}

#[test]
fn a_call_that_returned_nobody_says_when_does_not_go_on() {
    let tables = recording("100 - openat open cat - 3 /x\n200 - fsync sync sync - - /db");
    let answer = evaluate(&tables, &Query::new(Kind::Io, Verb::Top)).unwrap();
    let running = table(&answer, "unfinished");
    assert_eq!(columns(running, &["name", "dur_min_ns"]), "fsync | 800000");
}

#[test]
fn a_device_is_found_by_name_and_by_number() {
    for (device, count) in [
        (DeviceRef::Name("sda".into()), 4),
        (DeviceRef::Name("/dev/sda".into()), 4),
        (DeviceRef::Number { major: 8, minor: 0 }, 4),
        (DeviceRef::Name("sdb".into()), 0),
        (DeviceRef::Number { major: 8, minor: 1 }, 0),
    ] {
        let mut query = Query::new(Kind::Block, Verb::Log);
        query.filter.devices = vec![device];
        let answer = evaluate(&disks(), &query).unwrap();
        assert_eq!(table(&answer, "log").rows.len(), count);
    }
}

#[test]
fn open_files_at_a_moment() {
    let mut symbols = Symbols::new();
    let mut rows = Collected::default();
    for (id, (ts, ts_end, fd, path)) in [
        (10, Some(20), 4, Some("/a")),
        (5, None, 3, Some("/b")),
        (20, None, 4, None),
    ]
    .into_iter()
    .enumerate()
    {
        rows.fd_life.push(FdLifeRow {
            id: id as i64,
            ts,
            dur: ts_end.map(|end| end - ts),
            ts_end,
            upid: Some(1),
            pid: Some(17),
            comm: Some(symbols.intern("apache2")),
            fd,
            fd_class: symbols.intern("file"),
            path: path.map(|path| symbols.intern(path)),
            unknown_reason: path.is_none().then(|| symbols.intern("inherited")),
            origin: symbols.intern("open"),
            syscall_id: None,
            flags: None,
            cloexec: false,
            deleted: id == 1,
            closed_by: None,
        });
    }
    let info = RecordingInfo {
        begin_ns: 0,
        end_ns: 100,
        ..RecordingInfo::default()
    };
    let tables = MemoryTables::new(&rows, &symbols, info);
    let open = |at| {
        let mut query = Query::new(Kind::Files, Verb::Open);
        query.at = Some(at);
        let answer = evaluate(&tables, &query).unwrap();
        columns(
            table(&answer, "open"),
            &["comm", "pid", "fd", "path", "deleted"],
        )
    };
    assert_eq!(open(4), "");
    assert_eq!(
        open(10),
        "apache2 | 17 | 3 | /b | true\napache2 | 17 | 4 | /a | false"
    );
    assert_eq!(
        open(20),
        "apache2 | 17 | 3 | /b | true\napache2 | 17 | 4 | unknown (inherited) | false"
    );
}
