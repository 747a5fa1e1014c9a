//! Unrecorded data is not shown as zero, and recorded data counts once. Computed manually.

use whyslow_analysis::{Kind, Query, Verb, evaluate};
use whyslow_model::answer::Answer;
use whyslow_model::tables::{
    Collected, CpuRow, IrqRow, LostEventsRow, NetPacketRow, PageCountRow, SchedSliceRow,
    SyscallRow, ThreadStateRow,
};
use whyslow_model::{Symbols, Window};
use whyslow_store::{MemoryTables, RecordingInfo};

use crate::it::shown::{columns, table};

const SECOND: i64 = 1_000_000_000;

#[derive(Default)]
struct Made {
    rows: Collected,
    symbols: Symbols,
}

impl Made {
    /// A recording of ten seconds.
    fn tables(&self) -> MemoryTables {
        let info = RecordingInfo {
            begin_ns: 0,
            end_ns: 10 * SECOND,
            ..RecordingInfo::default()
        };
        MemoryTables::new(&self.rows, &self.symbols, info)
    }

    fn cpu(&mut self, cpu: i32, ts_first: i64) {
        self.rows.cpu.push(CpuRow {
            cpu,
            ts_first,
            ts_last: 10 * SECOND,
            events: 3,
            lost: 0,
            busy_ns: None,
        });
    }

    fn slice(&mut self, cpu: i32, ts: i64, ts_end: i64) {
        self.rows.sched_slice.push(SchedSliceRow {
            id: self.rows.sched_slice.len() as i64,
            ts,
            dur: Some(ts_end - ts),
            ts_end: Some(ts_end),
            cpu,
            utid: Some(1),
            upid: Some(1),
            tid: Some(5),
            pid: Some(5),
            comm: Some(self.symbols.intern("burn")),
            prio: Some(120),
            system_ns: 0,
            hardirq_ns: 0,
            softirq_ns: 0,
            migrations: 0,
            end_state: None,
        });
    }

    fn preempted(&mut self, ts: i64, ts_end: i64) {
        self.rows.thread_state.push(ThreadStateRow {
            id: self.rows.thread_state.len() as i64,
            ts,
            dur: Some(ts_end - ts),
            ts_end: Some(ts_end),
            utid: Some(1),
            upid: Some(1),
            tid: Some(5),
            pid: Some(5),
            comm: Some(self.symbols.intern("burn")),
            state: self.symbols.intern("runnable"),
            reason: Some(self.symbols.intern("preempted")),
            prio: Some(120),
            cpu: Some(0),
            ..ThreadStateRow::default()
        });
    }

    /// On an idle CPU.
    fn handler(&mut self, ts: i64, own: i64) {
        self.rows.irq.push(IrqRow {
            id: self.rows.irq.len() as i64,
            ts,
            dur: Some(own),
            ts_end: Some(ts + own),
            cpu: 0,
            kind: self.symbols.intern("hard"),
            nr: 30,
            self_ns: Some(own),
            ..IrqRow::default()
        });
    }

    fn packet(&mut self, ts: i64, kind: &str, comm: Option<&str>) {
        let owner = comm.map(|_| 5);
        self.rows.net_packet.push(NetPacketRow {
            id: self.rows.net_packet.len() as i64,
            ts,
            kind: self.symbols.intern(kind),
            netif: Some(self.symbols.intern("eth0")),
            bytes: Some(100),
            utid: owner,
            upid: owner,
            tid: owner,
            pid: owner,
            comm: comm.map(|comm| self.symbols.intern(comm)),
            ..NetPacketRow::default()
        });
    }

    fn pages(&mut self, ts: i64, [allocated, freed]: [i64; 2]) {
        self.rows.page_count.push(PageCountRow {
            id: self.rows.page_count.len() as i64,
            ts,
            utid: Some(1),
            upid: Some(1),
            tid: Some(5),
            pid: Some(5),
            comm: Some(self.symbols.intern("burn")),
            allocated,
            freed,
            faults_user: 0,
            faults_kernel: 0,
            cache_added: 0,
            cache_removed: 0,
            reclaim_written: 0,
            kswapd_wakeups: 0,
        });
    }

    fn call(&mut self, ts: i64, dur: i64) {
        let id = self.rows.syscall.len() as i64;
        self.rows.syscall.push(SyscallRow {
            id,
            ts,
            dur: Some(dur),
            ts_end: Some(ts + dur),
            utid: Some(id as i32),
            upid: Some(id as i32),
            tid: Some(id as i32),
            pid: Some(id as i32),
            comm: Some(self.symbols.intern("burn")),
            cpu: Some(0),
            name: self.symbols.intern("read"),
            compat: false,
            op: self.symbols.intern("read"),
            ret: Some(50),
            fd: Some(3),
            fd_class: Some(self.symbols.intern("file")),
            bytes: Some(50),
            ..SyscallRow::default()
        });
    }

    fn evaluate(&self, kind: Kind, verb: Verb, change: impl Fn(&mut Query)) -> Answer {
        let mut query = Query::new(kind, verb);
        change(&mut query);
        evaluate(&self.tables(), &query).unwrap()
    }
}

fn has_caveat(answer: &Answer, of: &str) -> bool {
    answer.caveats.iter().any(|caveat| caveat.contains(of))
}

/// CPU 0 is busy for half a second, then nine seconds are lost; the first event of CPU 1 is in the
/// ninth second.
fn lossy() -> Made {
    let mut made = Made::default();
    made.cpu(0, 0);
    made.cpu(1, 8 * SECOND);
    made.slice(0, 0, SECOND / 2);
    made.slice(1, 8 * SECOND, 9 * SECOND);
    made.rows.lost_events.push(LostEventsRow {
        id: 0,
        ts: SECOND / 2,
        dur: Some(9 * SECOND),
        ts_end: Some(19 * SECOND / 2),
        cpu: Some(0),
        stream: made.symbols.intern("channel0_0"),
        kind: made.symbols.intern("events"),
        count: Some(900_000),
    });
    made
}

#[test]
fn time_in_which_nobody_can_tell_who_ran_is_not_idle() {
    let made = lossy();
    let shown = ["cpu", "iowait_ratio", "idle_ratio", "busy_ratio", "busy_ns"];
    let answer = made.evaluate(Kind::Cpu, Verb::Usage, |_| {});
    assert_eq!(
        columns(table(&answer, "cpus"), &shown),
        "0 | 0 | 5.000000e-1 | 5.000000e-1 | 500000000\n\
         1 | 0 | 5.000000e-1 | 5.000000e-1 | 1000000000"
    );
    assert!(
        has_caveat(&answer, "unknown for 17 s"),
        "{:?}",
        answer.caveats
    );
    // A part without any data.
    let answer = made.evaluate(Kind::Cpu, Verb::Usage, |q| {
        q.window = Some(Window::new(SECOND, 2 * SECOND));
    });
    assert_eq!(
        columns(table(&answer, "cpus"), &shown),
        "0 | NULL | NULL | NULL | 0\n1 | NULL | NULL | NULL | 0"
    );
}

#[test]
fn without_wakeups_nobody_knows_how_many_threads_wait() {
    let mut made = lossy();
    made.preempted(SECOND, 2 * SECOND);
    let answer = made.evaluate(Kind::Use, Verb::Usage, |_| {});
    assert_eq!(
        columns(
            table(&answer, "resources"),
            &["resource", "util_ratio", "waiting", "wait_p99_ns"]
        ),
        "2 CPUs | 5.000000e-1 | NULL | NULL\n\
         CPU 0 | 5.000000e-1 | NULL | NULL\n\
         CPU 1 | 5.000000e-1 | NULL | NULL"
    );
    for (kind, verb) in [
        (Kind::Use, Verb::Usage),
        (Kind::Sched, Verb::Stats),
        (Kind::States, Verb::Usage),
        (Kind::Threads, Verb::Timeline),
    ] {
        let answer = made.evaluate(kind, verb, |_| {});
        assert!(
            has_caveat(&answer, "wakeups not recorded"),
            "{kind:?} {verb:?}"
        );
    }
}

#[test]
fn a_handler_at_the_edge_of_two_windows_counts_in_one() {
    let mut made = Made::default();
    made.cpu(0, 0);
    made.slice(0, 0, SECOND);
    made.handler(5 * SECOND, SECOND / 2);
    made.handler(10 * SECOND, 0);
    let ratio = |begin: i64, end: i64| {
        let answer = made.evaluate(Kind::Cpu, Verb::Usage, |q| {
            q.window = Some(Window::new(begin * SECOND, end * SECOND));
        });
        columns(table(&answer, "cpus"), &["hardirq_ratio"])
    };
    assert_eq!(ratio(0, 5), "0");
    assert_eq!(ratio(5, 10), "1.000000e-1");
}

/// Queued in one second, accepted by the driver in the next, in an interrupt.
#[test]
fn a_packet_is_sent_once() {
    let mut made = Made::default();
    for packet in 0..10 {
        made.packet(1_900_000_000 + packet, "queue", Some("a"));
        made.packet(2_100_000_000 + packet, "transmit", None);
    }
    made.call(0, 10);
    let by_second = |q: &mut Query| q.interval = Some(SECOND);
    let shown = ["ts_ns", "netif", "sent_bytes", "sent_packets"];
    let answer = made.evaluate(Kind::Net, Verb::Usage, by_second);
    assert_eq!(
        columns(table(&answer, "usage"), &shown),
        "1000000000 | eth0 | 0 | 0\n2000000000 | eth0 | 1000 | 10"
    );
    let answer = made.evaluate(Kind::Io, Verb::Usage, by_second);
    assert_eq!(
        columns(table(&answer, "interfaces"), &shown),
        "2000000000 | eth0 | 1000 | 10"
    );
}

#[test]
fn what_a_process_received_is_unknown_without_its_reads() {
    let mut made = Made::default();
    made.packet(SECOND, "queue", Some("a"));
    let shown = ["received_bytes", "received_bytes_per_s", "sent_packets"];
    let received = |made: &Made, by: &[&str], ops: &[&str]| {
        let answer = made.evaluate(Kind::Net, Verb::Usage, |q| {
            q.by = by.iter().map(ToString::to_string).collect();
            q.filter.ops = ops.iter().map(ToString::to_string).collect();
        });
        columns(table(&answer, "usage"), &shown)
    };
    assert_eq!(received(&made, &["comm"], &[]), "NULL | NULL | 1");
    made.call(0, 10);
    assert_eq!(received(&made, &["comm"], &[]), "0 | 0 | 1");
    assert_eq!(received(&made, &["comm", "netif"], &[]), "NULL | NULL | 1");
    assert_eq!(received(&made, &["comm"], &["queue"]), "NULL | NULL | 1");
}

#[test]
fn pages_kept_are_known_only_if_both_sides_are() {
    let mut made = Made::default();
    made.pages(0, [7, 0]);
    made.pages(SECOND, [2, 0]);
    let kept = |made: &Made| {
        let answer = made.evaluate(Kind::Mem, Verb::Usage, |_| {});
        columns(table(&answer, "usage"), &["allocated_pages", "kept_pages"])
    };
    assert_eq!(kept(&made), "9 | NULL");
    made.pages(2 * SECOND, [0, 4]);
    assert_eq!(kept(&made), "9 | 5");
}

#[test]
fn pages_by_interval_are_those_of_whole_seconds() {
    let mut made = Made::default();
    for second in 0..4 {
        made.pages(second * SECOND, [1 << second, 0]);
    }
    let mut query = Query::new(Kind::Mem, Verb::Usage);
    query.interval = Some(SECOND / 2);
    let error = evaluate(&made.tables(), &query).unwrap_err();
    assert!(error.to_string().contains("whole seconds"), "{error}");
    let answer = made.evaluate(Kind::Mem, Verb::Usage, |q| {
        q.interval = Some(2 * SECOND);
        q.window = Some(Window::new(3 * SECOND / 2, 7 * SECOND / 2));
    });
    assert_eq!(
        columns(table(&answer, "usage"), &["ts_ns", "allocated_pages"]),
        "1000000000 | 6\n3000000000 | 8"
    );
}

#[test]
fn rates_of_a_shorter_last_interval_are_its_own() {
    let mut made = Made::default();
    made.call(SECOND, SECOND);
    made.call(9 * SECOND, SECOND);
    made.packet(SECOND, "receive", None);
    made.packet(9 * SECOND, "receive", None);
    made.handler(SECOND, SECOND / 2);
    made.handler(9 * SECOND, SECOND / 2);
    // The last one is two seconds long.
    let interval = |q: &mut Query| q.interval = Some(4 * SECOND);
    let answer = made.evaluate(Kind::Io, Verb::Stats, interval);
    let shown = ["ts_ns", "rate_per_s", "bytes_per_s", "window_ratio"];
    assert_eq!(
        columns(table(&answer, "stats"), &shown),
        "0 | 2.500000e-1 | 1.250000e1 | 2.500000e-1\n\
         8000000000 | 5.000000e-1 | 2.500000e1 | 5.000000e-1"
    );
    let answer = made.evaluate(Kind::Net, Verb::Usage, interval);
    assert_eq!(
        columns(table(&answer, "usage"), &["received_bytes_per_s"]),
        "2.500000e1\n5.000000e1"
    );
    let answer = made.evaluate(Kind::Irq, Verb::Usage, interval);
    assert_eq!(
        columns(table(&answer, "usage"), &["window_ratio"]),
        "1.250000e-1\n2.500000e-1"
    );
}

#[test]
fn rows_left_out_by_the_default_limit_are_told() {
    let mut made = Made::default();
    for call in 0..23 {
        made.call(call * 1000, 10);
    }
    let usage = |limit: Option<usize>| {
        made.evaluate(Kind::Io, Verb::Usage, |q| {
            q.by = vec!["tid".into()];
            q.limit = limit;
        })
    };
    let answer = usage(None);
    assert_eq!(table(&answer, "usage").rows.len(), 10);
    assert!(has_caveat(&answer, "13 more rows"), "{:?}", answer.caveats);
    for query in [usage(Some(10)), usage(Some(0))] {
        assert!(!has_caveat(&query, "more rows"), "{:?}", query.caveats);
    }
}
