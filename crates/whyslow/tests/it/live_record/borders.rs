//! Borders of `@live` intervals: what crosses a border counts once, in the interval where it ends,
//! with its full duration.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::fs::FileExt as _;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;
use whyslow_testkit::{Need, skip};

use super::blocks::Loop;
use super::can_record;
use super::live_outliers::Running;
use crate::common::Place;

/// A query with an answer every 200 ms, or as often as the machine can.
struct LiveQuery {
    running: Running,
    lines: Receiver<Value>,
    seen: Vec<Value>,
}

impl LiveQuery {
    fn start(place: &Place, query: &[&str], filter: &[&str]) -> Self {
        let words = [query, &["@live", "200ms", "--json"], filter].concat();
        let mut running = Running::start(place, &words, "Ctrl-C to stop");
        let stdout = BufReader::new(running.take_stdout());
        let (sender, lines) = channel();
        thread::spawn(move || {
            for line in stdout.lines() {
                let line = line.expect("UTF-8");
                // The receiver may have been dropped.
                let _ = sender.send(serde_json::from_str(&line).expect("each line is JSON"));
            }
        });
        Self {
            running,
            lines,
            seen: Vec::new(),
        }
    }

    /// Waits until there were this many answers.
    fn wait_for(&mut self, answers: usize) {
        for _ in 0..answers {
            let line = loop {
                let line = self.lines.recv().expect("it goes on");
                if line["type"] == "answer" {
                    break line;
                }
                self.seen.push(line);
            };
            self.seen.push(line);
        }
    }

    /// All its output; ends it by Ctrl-C.
    fn end(mut self) -> Vec<Value> {
        self.running.stop();
        self.seen.extend(self.lines);
        assert_eq!(self.running.wait(), Some(0));
        self.seen
    }
}

fn rows<'l>(lines: &'l [Value], table: &'l str) -> impl Iterator<Item = &'l Value> {
    let rows = lines.iter().filter(|line| line["type"] == "row");
    rows.filter(move |row| row["table"] == table)
}

fn sum<'l>(rows: impl Iterator<Item = &'l Value>, column: &str) -> i64 {
    rows.map(|row| row[column].as_i64().expect("a number"))
        .sum()
}

/// Short reads before each wait for a pipe, which is longer than an interval should be.
const READS_EACH: i64 = 997;
const WAIT: Duration = Duration::from_millis(350);

/// Calls of a thread: waits, and the longest of them.
struct Waits {
    count: i64,
    longest: i64,
}

fn wait_and_read(is_over: &AtomicBool) -> Waits {
    let zero = File::open("/dev/zero").expect("it is there");
    let (mut from, mut to) = std::io::pipe().expect("a pipe");
    let writer = thread::spawn(move || {
        loop {
            thread::sleep(WAIT);
            if to.write_all(&[1]).is_err() {
                break;
            }
        }
    });
    let mut waits = Waits {
        count: 0,
        longest: 0,
    };
    let mut byte = [0];
    while !is_over.load(Ordering::Relaxed) {
        for number in 0..READS_EACH {
            zero.read_exact_at(&mut byte, 0).expect("there is one");
            if number % 50 == 0 {
                thread::sleep(Duration::from_millis(1));
            }
        }
        let begun = Instant::now();
        from.read_exact(&mut byte).expect("it is written");
        waits.count += 1;
        waits.longest = waits.longest.max(begun.elapsed().as_nanos() as i64);
    }
    drop(from);
    writer.join().expect("it ends");
    waits
}

#[test]
fn a_call_counts_in_the_interval_in_which_it_ends() {
    if !can_record() {
        return;
    }
    let _calm = super::no_floods();
    calls_count_once(&Place::new());
}

/// A thread that reads and waits while two queries run: both report everything exactly once.
/// Returns the number of short reads.
pub(crate) fn calls_count_once(place: &Place) -> i64 {
    let is_over = Arc::new(AtomicBool::new(false));
    let (go, begin) = channel();
    let (tell_tid, tid) = channel();
    let caller = thread::spawn({
        let is_over = is_over.clone();
        move || {
            let tid = rustix::thread::gettid().as_raw_nonzero().get();
            tell_tid.send(tid).expect("it is waited for");
            begin.recv().expect("it is sent");
            wait_and_read(&is_over)
        }
    });
    let tid = tid.recv().expect("it has one").to_string();
    let pid = std::process::id().to_string();
    let of_thread = ["-p", &pid, "-t", &tid];
    let mut stats = LiveQuery::start(place, &["syscalls", "stats", "--waits"], &of_thread);
    let mut usage = LiveQuery::start(place, &["io", "usage", "--by", "tid"], &of_thread);
    go.send(()).expect("it waits");
    stats.wait_for(4);
    usage.wait_for(4);
    is_over.store(true, Ordering::Relaxed);
    let Waits { count, longest } = caller.join().expect("it ends");
    let (stats, usage) = (stats.end(), usage.end());
    let of = |name: &'static str| rows(&stats, "syscalls").filter(move |row| row["name"] == name);
    assert_eq!(sum(of("pread64"), "count"), count * READS_EACH);
    assert_eq!(sum(of("read"), "count"), count);
    assert_eq!(sum(of("read"), "unfinished"), 0);
    // Nothing arrives late in a recording, which would give it the time of earlier events.
    for row in of("pread64") {
        let least = row["min_ns"].as_i64();
        assert!(least.is_some_and(|least| least > 0), "{row}");
    }
    for row in of("read") {
        let max = row["max_ns"].as_i64().expect("its length is known");
        assert!(max <= longest, "{max} {longest}");
    }
    assert!(sum(of("read"), "total_ns") <= count * longest);
    let reads = count * (READS_EACH + 1);
    assert_eq!(sum(rows(&usage, "usage"), "reads"), reads);
    // The snapshot may be too late for descriptors that were opened an interval before.
    let sorts = ["file", "net", "other", "unknown"].map(|sort| format!("{sort}_read_bytes"));
    let bytes = sorts.map(|column| sum(rows(&usage, "usage"), &column));
    assert_eq!(bytes.iter().sum::<i64>(), reads, "{bytes:?}");
    count * READS_EACH
}

/// Reads and writes a disk, up to six requests at a time, until a file exists.
const SCRIPT: &str = "\
    for i in 1 2 3 4 5; do \
      while [ ! -e over ]; do \
        dd if=/dev/$0 of=/dev/null bs=16384 count=31 iflag=direct 2>&1 || exit 1; \
        sleep 0.1; \
      done & \
    done; \
    while [ ! -e over ]; do \
      dd if=/dev/zero of=/dev/$0 bs=65536 count=17 oflag=direct 2>&1 || exit 1; \
      sleep 0.1; \
    done; \
    wait";

#[test]
fn a_request_counts_in_the_interval_in_which_it_ends_and_its_length_is_known() {
    if !can_record() {
        return;
    }
    let _calm = super::no_floods();
    let place = Place::new();
    let Some(disk) = Loop::new(&place) else {
        return skip(Need::Isolation, "there is no loop device to be had");
    };
    let of_disk = ["--dev", &disk.name];
    let mut stats = LiveQuery::start(&place, &["block", "stats", "--by", "op"], &of_disk);
    let mut usage = LiveQuery::start(&place, &["block", "usage"], &of_disk);
    let before = disk.counters();
    let begun = Instant::now();
    let load = thread::spawn({
        let mut shell = Command::new("/bin/sh");
        shell.args(["-c", SCRIPT, &disk.name]);
        shell.current_dir(place.path());
        move || shell.output()
    });
    stats.wait_for(4);
    usage.wait_for(4);
    place.write("over", "");
    let done = load.join().expect("it ends").expect("there is a shell");
    assert!(done.status.success(), "{done:?}");
    let length = begun.elapsed().as_nanos() as i64;
    let after = disk.counters();
    let (stats, usage) = (stats.end(), usage.end());
    let new = |at: usize| after[at] - before[at];
    for (op, count, sectors) in [("read", 0, 2), ("write", 4, 6)] {
        let of_op = || rows(&stats, "stats").filter(|row| row["op"] == op);
        assert_eq!(sum(of_op(), "count"), new(count), "{op}");
        assert_eq!(sum(of_op(), "bytes"), new(sectors) * 512, "{op}");
        assert_eq!(sum(of_op(), "unfinished"), 0, "{op}");
        let longest = of_op().filter_map(|row| row["max_ns"].as_i64()).max();
        assert!(longest.is_some_and(|longest| longest <= length));
    }
    let devices = || rows(&usage, "devices");
    assert_eq!(sum(devices(), "requests"), new(0) + new(4));
    assert_eq!(sum(devices(), "read_bytes"), new(2) * 512);
    assert_eq!(sum(devices(), "write_bytes"), new(6) * 512);
    // Six at a time, and no time counts twice.
    for row in devices() {
        let in_flight = row["aqu_sz"].as_f64().expect("a number");
        assert!(in_flight <= 6.001, "{row}");
        let busy = row["util_ratio"].as_f64().expect("a number");
        assert!(busy <= 1.0, "{row}");
    }
}
