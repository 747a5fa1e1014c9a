//! Scripts of block events, compared with the rows that they yield.

mod losses;
mod random;

use std::fmt::Write;

use whyslow_model::Symbols;
use whyslow_model::event::{BlockFlags, BlockOp, BlockRange, Body, Loss, LossKind};
use whyslow_model::tables::{BlockIoRow, Collected};

use super::BlockTracker;
use crate::trackers::anomalies::Anomalies;
use crate::trackers::identity::{Here, Output, ThreadRef};

const DEV_MINOR_BITS: u32 = 20;

fn thread(tid: i32) -> ThreadRef {
    ThreadRef {
        slot: tid as u32,
        utid: tid,
        upid: Some(tid),
        tid,
        pid: Some(tid),
        comm: None,
        is_tracer: false,
    }
}

fn here(ts: i64, tid: &str) -> Here {
    Here {
        ts,
        cpu: Some(0),
        thread: tid.parse().ok().map(thread),
        idle: false,
        interrupted: tid == "irq",
        interrupt: None,
    }
}

fn dev(text: &str) -> i64 {
    let (major, minor) = text.split_once(':').unwrap();
    (major.parse::<i64>().unwrap() << DEV_MINOR_BITS) | minor.parse::<i64>().unwrap()
}

/// `dev sector+sectors rwbs`, with the letters printed by the kernel.
fn range<'a>(words: &[&'a str]) -> BlockRange<'a> {
    let (sector, sectors) = words[1].split_once('+').unwrap();
    let (preflush, rest) = match words[2].strip_prefix('F') {
        Some(rest) if !rest.is_empty() => (true, rest),
        _ => (false, words[2]),
    };
    let (op, marks) = rest.split_at(1);
    BlockRange {
        dev: dev(words[0]),
        sector: sector.parse().unwrap(),
        sectors: sectors.parse().unwrap(),
        bytes: None,
        flags: BlockFlags {
            op: match op {
                "R" => BlockOp::Read,
                "W" => BlockOp::Write,
                "D" => BlockOp::Discard,
                "F" => BlockOp::Flush,
                _ => BlockOp::Other,
            },
            preflush,
            fua: marks.contains('F'),
            ahead: marks.contains('A'),
            sync: marks.contains('S'),
            meta: marks.contains('M'),
            secure: false,
        },
        tid: None,
        comm: None,
    }
}

fn body<'a>(words: &[&'a str]) -> Body<'a> {
    match words[0] {
        "queue" => Body::BlockBioQueue(range(&words[1..])),
        "getrq" => Body::BlockGetRq(range(&words[1..])),
        "insert" => Body::BlockRqInsert(range(&words[1..])),
        "issue" => Body::BlockRqIssue(range(&words[1..])),
        "requeue" => Body::BlockRqRequeue(range(&words[1..])),
        "backmerge" => Body::BlockBioBackmerge(range(&words[1..])),
        "frontmerge" => Body::BlockBioFrontmerge(range(&words[1..])),
        "rqmerge" => Body::BlockRqMerge(range(&words[1..])),
        "complete" => Body::BlockRqComplete {
            range: range(&words[1..]),
            error: words.get(4).map_or(Some(0), |error| error.parse().ok()),
        },
        "biodone" => Body::BlockBioComplete {
            range: range(&words[1..]),
            error: Some(0),
        },
        "remap" => Body::BlockBioRemap {
            range: range(&words[1..]),
            old_dev: dev(words[4]),
            old_sector: words[5].parse().unwrap(),
        },
        "split" => Body::BlockSplit {
            range: range(&words[1..]),
            new_sector: words[4].parse().unwrap(),
        },
        "name" => Body::StateBlockDevice {
            dev: dev(words[1]),
            name: words[2].as_bytes(),
        },
        "dumped" => Body::StateEnd,
        other => panic!("no such event: {other}"),
    }
}

struct Machine {
    tracker: BlockTracker,
    symbols: Symbols,
    anomalies: Anomalies,
    rows: Collected,
}

impl Machine {
    fn new() -> Self {
        Self {
            tracker: BlockTracker::default(),
            symbols: Symbols::new(),
            anomalies: Anomalies::default(),
            rows: Collected::default(),
        }
    }

    fn apply(&mut self, here: &Here, body: &Body<'_>) {
        let out = &mut Output {
            symbols: &mut self.symbols,
            anomalies: &mut self.anomalies,
            sink: &mut self.rows,
        };
        self.tracker.apply(here, body, out);
    }

    fn finish(&mut self) {
        let out = &mut Output {
            symbols: &mut self.symbols,
            anomalies: &mut self.anomalies,
            sink: &mut self.rows,
        };
        self.tracker.finish(out);
        self.rows.block_io.sort_by_key(|row| (row.ts, row.id));
    }

    /// `begin-end dev[part] sector+sectors op rwbs layer source:tid …`
    fn text(&self, row: &BlockIoRow) -> String {
        let name = |sym| self.symbols.get(sym);
        let number = |n: Option<i64>| n.map_or("?".to_string(), |n| n.to_string());
        let part = row
            .part_name
            .map_or(String::new(), |part| format!("/{}", name(part)));
        let submitter = match (row.submitter_source, row.tid) {
            (Some(source), Some(tid)) => format!("{}:{tid}", name(source)),
            _ => "?".to_string(),
        };
        let mut text = format!(
            "{}-{} {}{part} {}+{} {} {} {} {submitter} queue {} device {}",
            row.ts,
            number(row.ts_end),
            name(row.dev_name),
            row.sector,
            row.sectors,
            name(row.op),
            name(row.rwbs),
            name(row.layer),
            number(row.queue_ns),
            number(row.device_ns),
        );
        if row.merges > 0 {
            write!(text, " merges {}", row.merges).unwrap();
        }
        if row.completions != 1 {
            write!(text, " completions {}", row.completions).unwrap();
        }
        if let Some(error) = row.error.filter(|&error| error != 0) {
            write!(text, " error {error}").unwrap();
        }
        if let Some(cut) = row.cut {
            write!(text, " cut {}", name(cut)).unwrap();
        }
        text
    }
}

/// `count` events were lost at this time.
fn loss(ts: i64, count: i64) -> Loss<'static> {
    Loss {
        ts,
        ts_end: Some(ts),
        cpu: None,
        stream: "",
        kind: LossKind::Events,
        count: Some(count),
    }
}

/// Compares lines `ts tid event …` (tid `-` for none) and `ts lost COUNT` with rows.
#[track_caller]
fn check(script: &str, expected: &[&str]) -> Machine {
    let mut machine = Machine::new();
    for line in script
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
    {
        let words: Vec<&str> = line.split_whitespace().collect();
        let ts = words[0].parse().unwrap();
        if words[1] == "lost" {
            machine.tracker.lost(&loss(ts, words[2].parse().unwrap()));
        } else {
            machine.apply(&here(ts, words[1]), &body(&words[2..]));
        }
    }
    machine.finish();
    let rows: Vec<String> = machine
        .rows
        .block_io
        .iter()
        .map(|row| machine.text(row))
        .collect();
    assert_eq!(rows, expected);
    machine
}

#[test]
fn the_submitter_is_who_queued_the_bio_not_the_kworker_that_issued_it() {
    check(
        "0 7 queue 8:0 100+8 WS
         1 7 getrq 8:0 100+8 WS
         2 7 insert 8:0 100+8 WS
         5 36 issue 8:0 100+8 WS
         9 - complete 8:0 100+8 WS",
        &["0-9 8:0 100+8 write WS request bio_queue:7 queue 5 device 4"],
    );
}

#[test]
fn with_issue_and_completion_only_the_queue_time_is_unknown() {
    check(
        "5 36 issue 8:0 100+8 R
         9 - complete 8:0 100+8 R",
        &["5-9 8:0 100+8 read R request issue:36 queue ? device 4"],
    );
}

#[test]
fn partial_completions_end_one_request() {
    check(
        "5 7 issue 8:0 100+24 R
         6 - complete 8:0 100+8 R
         7 - complete 8:0 108+8 R
         9 - complete 8:0 116+8 R",
        &["5-9 8:0 100+24 read R request issue:7 queue ? device 4 completions 3"],
    );
}

#[test]
fn bios_merge_at_the_back_and_at_the_front() {
    check(
        "0 7 queue 8:0 100+8 W
         0 7 getrq 8:0 100+8 W
         1 8 queue 8:0 108+8 W
         1 8 backmerge 8:0 108+8 W
         2 9 queue 8:0 92+8 W
         2 9 frontmerge 8:0 92+8 W
         5 7 issue 8:0 92+24 W
         9 - complete 8:0 92+24 W",
        &["0-9 8:0 92+24 write W request bio_queue:7 queue 5 device 4 merges 2"],
    );
}

#[test]
fn merged_requests_are_one() {
    check(
        "0 7 getrq 8:0 100+8 W
         1 8 getrq 8:0 116+8 W
         2 8 getrq 8:0 108+8 W
         3 8 rqmerge 8:0 116+8 W
         4 7 rqmerge 8:0 108+16 W
         5 7 issue 8:0 100+24 W
         9 - complete 8:0 100+24 W",
        &["0-9 8:0 100+24 write W request getrq:7 queue 5 device 4 merges 2"],
    );
}

#[test]
fn a_split_bio_becomes_two_requests_of_the_same_submitter() {
    check(
        "0 7 queue 8:0 100+24 R
         1 7 split 8:0 100+24 R 116
         1 7 getrq 8:0 100+16 R
         2 7 getrq 8:0 116+8 R
         3 7 issue 8:0 100+16 R
         4 36 issue 8:0 116+8 R
         8 - complete 8:0 116+8 R
         9 - complete 8:0 100+16 R",
        &[
            "0-9 8:0 100+16 read R request bio_queue:7 queue 3 device 6",
            "0-8 8:0 116+8 read R request bio_queue:7 queue 4 device 4",
        ],
    );
}

#[test]
fn a_remap_tells_partition_and_submitter_and_the_state_dump_names_both() {
    let machine = check(
        "0 7 remap 253:0 2148+8 W 253:1 100
         5 36 issue 253:0 2148+8 W
         9 - complete 253:0 2148+8 W
         10 1 name 253:0 vda
         10 1 name 253:1 vda1
         11 1 dumped",
        &["0-9 vda/vda1 2148+8 write W request bio_remap:7 queue 5 device 4"],
    );
    let part = &machine.rows.device[1];
    assert_eq!(
        (part.major, part.minor, part.parent),
        (253, 1, Some(dev("253:0")))
    );
}

#[test]
fn bios_of_recent_kernels_carry_the_partition_and_sectors_of_the_disk() {
    let expected = "0-9 sda/sda1 2148+8 write W request bio_queue:7 queue 5 device 4";
    check(
        "0 1 name 8:0 sda
         0 1 name 8:1 sda1
         0 7 remap 8:1 2148+8 W 8:1 100
         1 7 queue 8:1 2148+8 W
         1 7 getrq 8:1 2148+8 W
         5 36 issue 8:0 2148+8 W
         9 - complete 8:0 2148+8 W",
        &[expected],
    );
    // Without names, the request at the same position shows the disk.
    check(
        "0 7 remap 8:1 2148+8 W 8:1 100
         1 7 queue 8:1 2148+8 W
         5 36 issue 8:0 2148+8 W
         9 - complete 8:0 2148+8 W
         10 7 queue 8:1 2148+8 W
         15 36 issue 8:0 2148+8 W
         19 - complete 8:0 2148+8 W",
        &[
            "0-9 8:0/8:1 2148+8 write W request bio_queue:7 queue 5 device 4",
            "10-19 8:0/8:1 2148+8 write W request bio_queue:7 queue 5 device 4",
        ],
    );
}

#[test]
fn a_bio_of_a_stacked_device_is_an_io_of_its_own() {
    check(
        "0 7 queue 254:0 100+8 R
         1 7 remap 8:0 500+8 R 254:0 100
         1 7 queue 8:0 500+8 R
         2 7 getrq 8:0 500+8 R
         3 36 issue 8:0 500+8 R
         8 - complete 8:0 500+8 R
         9 - biodone 254:0 100+8 R",
        &[
            "0-9 254:0 100+8 read R bio bio_queue:7 queue ? device ?",
            "1-8 8:0 500+8 read R request bio_queue:7 queue 2 device 5",
        ],
    );
}

#[test]
fn an_empty_flush_is_one_io_of_its_submitter() {
    check(
        "0 7 queue 8:0 0+0 FWS
         1 7 getrq 8:0 0+0 FWS
         3 36 issue 8:0 0+0 FF
         8 - complete 8:0 -1+0 FF
         9 - complete 8:0 0+0 WS
         10 7 queue 8:0 0+0 FWS
         11 36 issue 8:0 0+0 FF
         18 - complete 8:0 -1+0 FF
         19 - complete 8:0 0+0 WS",
        &[
            "0-8 8:0 0+0 flush FWS request bio_queue:7 queue 3 device 5",
            "10-18 8:0 0+0 flush FWS request bio_queue:7 queue 1 device 7",
        ],
    );
}

#[test]
fn one_flush_of_the_device_serves_all_that_wait() {
    check(
        "0 7 queue 8:0 0+0 FWS
         1 8 queue 8:0 0+0 FWS
         3 36 issue 8:0 0+0 FF
         8 - complete 8:0 -1+0 FF
         9 - complete 8:0 0+0 WS
         9 - complete 8:0 0+0 WS",
        &[
            "0-8 8:0 0+0 flush FWS request bio_queue:7 queue 3 device 5",
            "1-9 8:0 0+0 flush FWS request bio_queue:8 queue ? device ?",
        ],
    );
}

#[test]
fn a_write_between_flushes_ends_with_the_last_of_them() {
    check(
        "0 7 queue 8:0 64+8 FWFSM
         1 7 getrq 8:0 64+8 FWFSM
         2 36 issue 8:0 0+0 FF
         3 - complete 8:0 -1+0 FF
         4 36 issue 8:0 64+8 WSM
         5 - complete 8:0 64+8 WSM
         6 36 issue 8:0 0+0 FF
         7 - complete 8:0 -1+0 FF
         8 - complete 8:0 64+0 WSM",
        &[
            "0-8 8:0 64+8 write FWFSM request bio_queue:7 queue 4 device 1",
            "2-3 8:0 0+0 flush FF request bio_queue:7 queue ? device 1",
            "6-7 8:0 0+0 flush FF request bio_queue:7 queue ? device 1",
        ],
    );
}

#[test]
fn discards_and_commands_are_neither_reads_nor_writes() {
    check(
        "0 7 issue 8:0 100+8 D
         1 - complete 8:0 100+8 D
         2 7 issue 8:0 0+0 N
         5 - complete 8:0 -1+0 N",
        &[
            "0-1 8:0 100+8 discard D request issue:7 queue ? device 1",
            "2-5 8:0 0+0 other N request issue:7 queue ? device 3",
        ],
    );
}

#[test]
fn a_request_put_back_counts_from_its_last_issue() {
    let expected = ["0-9 8:0 100+8 read R request getrq:7 queue 5 device 4"];
    check(
        "0 7 getrq 8:0 100+8 R
         2 7 issue 8:0 100+8 R
         3 7 requeue 8:0 100+8 R
         5 36 issue 8:0 100+8 R
         9 - complete 8:0 100+8 R",
        &expected,
    );
    check(
        "0 7 getrq 8:0 100+8 R
         2 7 issue 8:0 100+8 R
         5 36 issue 8:0 100+8 R
         9 - complete 8:0 100+8 R",
        &expected,
    );
}

#[test]
fn two_reads_of_one_block_at_a_time_are_two() {
    check(
        "0 7 getrq 8:0 100+8 R
         1 7 issue 8:0 100+8 R
         2 8 getrq 8:0 100+8 R
         3 8 issue 8:0 100+8 R
         8 - complete 8:0 100+8 R
         9 - complete 8:0 100+8 R",
        &[
            "0-8 8:0 100+8 read R request getrq:7 queue 1 device 7",
            "2-9 8:0 100+8 read R request getrq:8 queue 1 device 6",
        ],
    );
}

#[test]
fn an_interrupted_thread_is_not_the_submitter() {
    check(
        "5 irq issue 8:0 100+8 R
         9 - complete 8:0 100+8 R -5",
        &["5-9 8:0 100+8 read R request ? queue ? device 4 error 5"],
    );
}

#[test]
fn no_merge_loses_a_completion() {
    for merge in ["rqmerge 254:0 16+8 R", "rqmerge 254:0 16+0 R"] {
        let mut machine = Machine::new();
        let events = [
            "queue 254:0 8+16 R",
            "complete 254:0 8+8 R",
            "insert 254:0 16+8 R",
            "queue 254:0 0+16 R",
            merge,
        ];
        for (ts, event) in (0..).zip(events) {
            let words: Vec<&str> = event.split_whitespace().collect();
            machine.apply(&here(ts, "7"), &body(&words));
        }
        machine.finish();
        let rows = machine.rows.block_io.iter();
        assert_eq!(rows.map(|row| row.completions).sum::<i32>(), 1, "{merge}");
    }
}
