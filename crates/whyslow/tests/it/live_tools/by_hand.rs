//! A handwritten trace of a few seconds, whose figures can be worked out on paper.

use crate::common::Place;

/// Two CPUs and a disk `sdb` with a partition. In the first second: a read of 4 KiB (0.1 to 0.3 s).
/// In the next: a write of 8 KiB with a merge, to the partition (from 0.9, done at 1.1 s), a
/// discard of 8 KiB (1.2 to 1.25 s), a flush (1.3 to 1.31 s) and a read that never completes (from
/// 1.5 s on). Thread 30 runs on CPU 0 from 0.2 to 0.7 s and is preempted.
const TRACE: &str = "whyslow-text 1
meta hostname=db1
meta kernel_release=6.8.0
0.000000000 [1] other name=begin
0.000000000 [0] state_process tid=20 pid=20 comm=mysqld
0.000000000 [0] state_process tid=30 pid=30 comm=cruncher
0.000000000 [0] state_block_device dev=8:16 name=sdb
0.000000000 [0] state_block_device dev=8:17 name=sdb1
0.100000000 [0] block_rq_insert dev=8:16 sector=0 sectors=8 rwbs=R bytes=4096 tid=20 comm=mysqld
0.100000000 [0] block_rq_issue dev=8:16 sector=0 sectors=8 rwbs=R bytes=4096 tid=20 comm=mysqld
0.200000000 [0] sched_switch prev=0 next=30 prev_state=R prev_comm=swapper/0 prev_prio=120 next_comm=cruncher next_prio=125
0.300000000 [0] block_rq_complete dev=8:16 sector=0 sectors=8 rwbs=R error=0
0.700000000 [0] sched_switch prev=30 next=0 prev_state=R prev_comm=cruncher prev_prio=125 next_comm=swapper/0 next_prio=120
0.900000000 [0] block_bio_remap dev=8:16 sector=2048 sectors=8 rwbs=W old_dev=8:17 old_sector=0
0.900000000 [0] block_bio_queue dev=8:16 sector=2048 sectors=8 rwbs=W tid=20 comm=mysqld
0.900000000 [0] block_getrq dev=8:16 sector=2048 sectors=8 rwbs=W tid=20 comm=mysqld
0.910000000 [0] block_bio_remap dev=8:16 sector=2056 sectors=8 rwbs=W old_dev=8:17 old_sector=8
0.910000000 [0] block_bio_queue dev=8:16 sector=2056 sectors=8 rwbs=W tid=20 comm=mysqld
0.910000000 [0] block_bio_backmerge dev=8:16 sector=2056 sectors=8 rwbs=W tid=20 comm=mysqld
0.920000000 [0] block_rq_issue dev=8:16 sector=2048 sectors=16 rwbs=W bytes=8192 tid=20 comm=mysqld
1.100000000 [0] block_rq_complete dev=8:16 sector=2048 sectors=16 rwbs=W error=0
1.200000000 [0] block_rq_issue dev=8:16 sector=4096 sectors=16 rwbs=D bytes=8192 tid=20 comm=mysqld
1.250000000 [0] block_rq_complete dev=8:16 sector=4096 sectors=16 rwbs=D error=0
1.300000000 [0] block_rq_issue dev=8:16 sector=0 sectors=0 rwbs=FF bytes=0 tid=20 comm=mysqld
1.310000000 [0] block_rq_complete dev=8:16 sector=0 sectors=0 rwbs=FF error=0
1.500000000 [0] block_rq_issue dev=8:16 sector=8192 sectors=8 rwbs=R bytes=4096 tid=20 comm=mysqld
2.000000000 [1] other name=end
";

fn place() -> Place {
    let place = Place::new();
    place.write("h.txt", TRACE);
    let import = ["import", "h.txt", "-o", "h.wsl"];
    place.whyslow().args(import).assert().success();
    place
}

/// Words of the lines that start with a prefix.
fn lines(text: &str, begin: &str) -> Vec<Vec<String>> {
    let lines = text
        .lines()
        .filter(|line| line.trim_start().starts_with(begin));
    let words = |line: &str| line.split_whitespace().map(str::to_owned).collect();
    lines.map(words).collect()
}

#[test]
fn requests_count_where_they_complete() {
    let place = place();
    let output = place
        .whyslow()
        .args(["as", "iostat", "h.wsl", "-dx", "1"])
        .assert()
        .success();
    let output = output.get_output();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let first = "sdb 1.00 4.00 0.00 0.00 200.00 4.00 0.00 0.00 0.00 0.00 0.00 0.00 \
                 0.00 0.00 0.00 0.00 0.00 0.00 0.00 0.00 0.30 30.00";
    // In flight: the write 0.1 s, the discard 0.05 s, the flush 0.01 s, the read 0.5 s.
    let second = "sdb 0.00 0.00 0.00 0.00 0.00 0.00 1.00 8.00 1.00 50.00 200.00 8.00 \
                  1.00 8.00 0.00 0.00 50.00 8.00 1.00 10.00 0.66 66.00";
    let want = [first, second].map(|line| line.split_whitespace().map(str::to_owned).collect());
    assert_eq!(lines(&text, "sdb"), want as [Vec<String>; 2], "{text}");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        said.contains("completion of 1 requests not recorded"),
        "{said}"
    );
}

#[test]
fn older_columns_have_the_same_numbers_in_another_order() {
    let text = place().stdout(&[
        "as", "iostat", "h.wsl", "-dx", "--layout", "11", "-w", "+1s..+2s",
    ]);
    // svctm: 660 ms busy, two transfers.
    let want =
        "sdb 0.00 1.00 0.00 8.00 0.00 1.00 0.00 50.00 0.00 200.00 0.66 0.00 8.00 330.00 66.00";
    let want: Vec<String> = want.split_whitespace().map(str::to_owned).collect();
    assert_eq!(lines(&text, "sdb"), [want], "{text}");
}

#[test]
fn partitions_are_shown_if_asked_for() {
    let place = place();
    let text = place.stdout(&["as", "iostat", "h.wsl", "-d", "-p"]);
    let want = [
        "sdb 1.50 2.00 4.00 4.00 4 8 8",
        "sdb1 0.50 0.00 4.00 0.00 0 8 0",
    ];
    let want = want.map(|line| line.split_whitespace().map(str::to_owned).collect());
    assert_eq!(lines(&text, "sdb"), want as [Vec<String>; 2], "{text}");
    let one = place.stdout(&["as", "iostat", "h.wsl", "-d", "-p", "sdb"]);
    assert_eq!(lines(&one, "sdb").len(), 2);
    assert_eq!(
        lines(&place.stdout(&["as", "iostat", "h.wsl", "-d"]), "sdb").len(),
        1
    );
}

#[test]
fn avg_cpu_is_the_mean_of_both() {
    let text = place().stdout(&["as", "iostat", "h.wsl", "-c", "1"]);
    assert!(
        text.starts_with("Linux 6.8.0 (db1) \t1970-01-01 \t_-_\t(2 CPU)\n\n"),
        "{text}"
    );
    // 0.5 of 2 CPU seconds in the first second, of a nice thread; no system calls, no interrupts.
    let idle: Vec<String> = lines(&text, "-")
        .iter()
        .map(|words| words[5].clone())
        .collect();
    assert_eq!(idle, ["75.00", "100.00"], "{text}");
    assert_eq!(lines(&text, "-")[0][..3], ["-", "-", "-"], "{text}");
}

#[test]
fn who_is_pushed_away_did_not_want_to_go() {
    let place = place();
    let text = place.stdout(&["as", "pidstat", "h.wsl", "-w", "1"]);
    assert_eq!(
        lines(&text, "Average:")[1][3..],
        ["0.00", "0.50", "cruncher"],
        "{text}"
    );
    let text = place.stdout(&["as", "pidstat", "h.wsl", "-u", "1", "1"]);
    let row = &lines(&text, "Average:")[1];
    // It remains runnable from 0.7 s.
    let want = ["-", "-", "-", "30.00", "50.00", "-", "cruncher"];
    assert_eq!(row[3..], want, "{text}");
    let text = place.stdout(&["as", "pidstat", "h.wsl", "-d"]);
    let rows = lines(&text, "00:00:02");
    // Two reads of 4 KiB were submitted in two seconds; system calls are not recorded.
    assert_eq!(rows[0][2..6], ["20", "4.00", "-1.00", "-1.00"], "{text}");
    let top = place.stdout(&["as", "top", "h.wsl"]);
    let row = top
        .lines()
        .find(|line| line.contains("cruncher"))
        .expect("there");
    let words: Vec<&str> = row.split_whitespace().collect();
    assert_eq!(words[2..4], ["25", "5"], "{top}");
    assert_eq!(
        [words[7], words[8], words[10]],
        ["R", "25.0", "0:00.50"],
        "{top}"
    );
}

#[test]
fn a_histogram_and_a_list_of_the_same_requests() {
    let place = place();
    let text = place.stdout(&["as", "biolatency", "h.wsl", "-m"]);
    // 10, 50, 180 and 200 ms.
    let count = |from: &str| lines(&text, from)[0][4].clone();
    assert_eq!(
        ["8 ->", "32 ->", "128 ->"].map(count),
        ["1", "1", "2"],
        "{text}"
    );
    let text = place.stdout(&["as", "biosnoop", "h.wsl", "-Q"]);
    let rows: Vec<&str> = text.lines().skip(1).collect();
    // The trace has the thread ids of requests, but neither names nor processes.
    let want = [
        "0.000000    -              -       sdb       R 0          4096      0.000 200.000",
        "0.800000    -              -       sdb       W 2048       8192     20.000 180.000",
    ];
    assert_eq!(rows[..2], want, "{text}");
    assert_eq!(rows.len(), 4);
}

#[test]
fn an_interval_longer_than_any_recording_is_the_whole() {
    let place = place();
    for (tool, option) in [
        (&["iostat", "-d"][..], None),
        (&["iostat", "-dx"], None),
        (&["iostat", "-c"], None),
        (&["biolatency"], None),
        (&["filetop"], None),
        (&["iotop"], Some("-d")),
        (&["top"], Some("-d")),
    ] {
        let args = [&["as", tool[0], "h.wsl"], &tool[1..]].concat();
        let whole = place.stdout(&args);
        let interval: Vec<&str> = option.into_iter().chain(["9223372036"]).collect();
        assert_eq!(
            place.stdout(&[args.clone(), interval].concat()),
            whole,
            "{args:?}"
        );
    }
    for option in ["-u", "-d", "-w"] {
        let text = place.stdout(&["as", "pidstat", "h.wsl", option, "9223372036"]);
        assert!(text.contains("Average:"), "{text}");
    }
}

/// The words of the line with a prefix, without its first ones.
fn after(text: &str, begin: &str) -> String {
    let found = text
        .lines()
        .find_map(|line| line.trim().strip_prefix(begin));
    let found = found.unwrap_or_else(|| panic!("no `{begin}` in {text}"));
    found.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn iotop_does_not_take_the_unknown_for_nothing() {
    // System calls were not recorded.
    let text = place().stdout(&["as", "iotop", "h.wsl"]);
    assert_eq!(
        after(&text, "Total DISK READ:"),
        "4.00 K/s | Total DISK WRITE: -"
    );
    assert_eq!(
        after(&text, "Current DISK READ:"),
        "2.00 K/s | Current DISK WRITE: 4.00 K/s"
    );
    assert_eq!(after(&text, "20    -"), "- 4.00 K/s - - 0.00 % mysqld");
    // Neither were block requests.
    let place = Place::new();
    let no_requests = TRACE.lines().filter(|line| !line.contains("block_"));
    let trace: Vec<&str> = no_requests.collect();
    place.write("n.txt", trace.join("\n") + "\n");
    let import = ["import", "n.txt", "-o", "n.wsl"];
    place.whyslow().args(import).assert().success();
    for accumulated in [&[][..], &["-a"], &["-k"], &["-a", "-d", "1"]] {
        let text = place.stdout(&[&["as", "iotop", "n.wsl"], accumulated].concat());
        assert_eq!(after(&text, "Total DISK READ:"), "- | Total DISK WRITE: -");
        assert_eq!(
            after(&text, "Current DISK READ:"),
            "- | Current DISK WRITE: -"
        );
        assert_eq!(after(&text, "20    -"), "- - - - 0.00 % mysqld");
    }
}

#[test]
fn accumulated_sums_grow_from_list_to_list() {
    let text = place().stdout(&["as", "iotop", "h.wsl", "-aok", "-d", "0.5"]);
    let rows: Vec<String> = text
        .lines()
        .filter(|line| line.ends_with("mysqld"))
        .map(|line| {
            line.split_whitespace()
                .take(5)
                .collect::<Vec<_>>()
                .join(" ")
        })
        .collect();
    // Submitted at 0.1 s and at 1.5 s, the start of the last half second.
    let (first, last) = ("20 - - 4.00 K", "20 - - 8.00 K");
    assert_eq!(rows, [first, first, first, last], "{text}");
}

#[test]
fn what_a_device_above_a_disk_gets_counts_once() {
    let stacked = "\
0.400000000 [0] block_bio_queue dev=253:0 sector=0 sectors=8 rwbs=R tid=20 comm=mysqld
0.450000000 [0] block_bio_complete dev=253:0 sector=0 sectors=8 rwbs=R error=0
0.460000000 [0] block_bio_queue dev=253:0 sector=8 sectors=8 rwbs=R tid=20 comm=mysqld
";
    let place = Place::new();
    let (begin, end) = TRACE.split_at(TRACE.find("0.700000000").expect("a line"));
    place.write("s.txt", format!("{begin}{stacked}{end}"));
    let import = ["import", "s.txt", "-o", "s.wsl"];
    place.whyslow().args(import).assert().success();
    let rows = place.stdout(&["block", "log", "s.wsl", "--csv", "--cols", "layer"]);
    assert!(rows.contains("bio"), "{rows}");
    for args in [&[][..], &["-Q"], &["-D"], &["-DQ"]] {
        let text = place.stdout(&[&["as", "biolatency", "s.wsl"], args].concat());
        let count = |line: &str| line.split_whitespace().nth(4)?.parse::<u64>().ok();
        let counts = text.lines().filter(|line| line.contains("->"));
        let total: u64 = counts.filter_map(count).sum();
        assert_eq!(total, 4, "{args:?} {text}");
    }
    let output = place.whyslow().args(["as", "biolatency", "s.wsl"]).assert();
    let said = String::from_utf8_lossy(&output.get_output().stderr).into_owned();
    assert!(said.contains("1 requests not counted"), "{said}");
}
