//! Threads, CPUs and interrupts of real traces, compared with the output of lttng-analyses. If the
//! two differ, the test states by how much and why.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::common::data;
use whyslow_ingest::{InMemory, archive, import_in_memory};
use whyslow_model::Sym;

const TRACES: [&str; 4] = [
    "arm-old-syscalls-3.10",
    "basic-kernel-4.4",
    "many-threads-4.4",
    "perfctx-6.2",
];

/// Durations of a group: count, minimum, mean, maximum in microseconds.
#[derive(Debug, Clone, Copy)]
struct Summary {
    count: usize,
    min: f64,
    mean: f64,
    max: f64,
}

impl Summary {
    fn of(durations_ns: &[i64]) -> Summary {
        let count = durations_ns.len();
        let us = |ns: i64| ns as f64 / 1e3;
        Summary {
            count,
            min: us(*durations_ns.iter().min().expect("no empty group")),
            mean: us(durations_ns.iter().sum()) / count as f64,
            max: us(*durations_ns.iter().max().expect("no empty group")),
        }
    }

    /// The peer prints three decimals.
    fn is_same(&self, other: &Summary) -> bool {
        let near = |a: f64, b: f64| (a - b).abs() < 0.001;
        self.count == other.count
            && near(self.min, other.min)
            && near(self.mean, other.mean)
            && near(self.max, other.max)
    }
}

fn import(source: PathBuf) -> InMemory {
    import_in_memory(&[source]).expect("the trace imports")
}

/// Calls `check` with every trace for which the peer's output exists, and the directory of the
/// output.
fn for_each_trace(check: impl Fn(&str, &InMemory, &Path)) {
    let Some(data) = data() else { return };
    let said = data.join("lttng-analyses/reference-outputs.tar.xz");
    let said = archive::unpack(&said).expect("the archive unpacks");
    for name in TRACES {
        let trace = import(data.join(format!("{name}.tar.xz")));
        check(name, &trace, &said.path().join(name));
    }
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).expect("what the peer said")
}

fn numbers(text: &str) -> Vec<f64> {
    let words = text.split_whitespace();
    words.map_while(|word| word.parse().ok()).collect()
}

fn summary(numbers: &[f64]) -> Option<Summary> {
    let &[count, min, mean, max, ..] = numbers else {
        return None;
    };
    Some(Summary {
        count: count as usize,
        min,
        mean,
        max,
    })
}

/// `name (7)   906   1.740   62.782   4584.191   224.221   [20]`
fn latency_of_thread(line: &str) -> Option<(i32, Summary)> {
    let (name, rest) = line.rsplit_once(") ")?;
    let (_, tid) = name.rsplit_once('(')?;
    Some((tid.parse().ok()?, summary(&numbers(rest))?))
}

#[test]
fn waits_for_a_cpu_after_a_wakeup_are_those_the_peer_measures() {
    for_each_trace(|name, trace, said| {
        let text = read(&said.join("sched-all.txt"));
        let (_, table) = text.split_once("(per-TID)").expect("a table by thread");
        let (table, _) = table.split_once("(per-prio)").expect("a table by priority");
        let peer: BTreeMap<i32, Summary> = table.lines().filter_map(latency_of_thread).collect();
        assert!(peer.len() > 20, "{name}: {table}");
        let mut ours: BTreeMap<i32, Vec<i64>> = BTreeMap::new();
        for row in &trace.rows.thread_state {
            let waits = trace.symbols.get(row.state) == "runnable" && row.wakeup_id.is_some();
            if let (true, Some(tid), Some(dur)) = (waits, row.tid, row.dur) {
                ours.entry(tid).or_default().push(dur);
            }
        }
        assert!(ours.keys().eq(peer.keys()), "{name}");
        for (tid, peer) in &peer {
            let ours = Summary::of(&ours[tid]);
            if (name, *tid) == ("many-threads-4.4", 4042) {
                // Preempted while going to sleep and woken before that: it never slept, and was
                // runnable since the preemption. The peer counts from the wakeup.
                assert_eq!((ours.count, peer.count), (2, 3));
                continue;
            }
            assert!(ours.is_same(peer), "{name} {tid}: {ours:?}, {peer:?}");
        }
    });
}

/// `27: <virtio2-req.0>       95        4.481  …  |    95    1.2 …` (the last part for softirqs).
fn irq_of_line(line: &str) -> Option<(i32, Summary, Option<Summary>)> {
    let (nr, rest) = line.split_once(':')?;
    let (_, rest) = rest.split_once('>')?;
    let (durations, raises) = rest.split_once('|')?;
    let nr = nr.trim().parse().ok()?;
    Some((nr, summary(&numbers(durations))?, summary(&numbers(raises))))
}

#[test]
fn interrupts_last_as_long_as_the_peer_measures() {
    for_each_trace(|name, trace, said| {
        let text = read(&said.join("irq-all.txt"));
        let is_soft = |line: &str| line.contains("_SOFTIRQ>");
        let mut seen = 0;
        for line in text.lines() {
            let Some((nr, peer, raises)) = irq_of_line(line) else {
                continue;
            };
            seen += 1;
            let kind = if is_soft(line) { "soft" } else { "hard" };
            let rows = trace.rows.irq.iter();
            let rows = rows.filter(|row| row.nr == nr && trace.symbols.get(row.kind) == kind);
            let rows: Vec<_> = rows.collect();
            let durations: Vec<i64> = rows.iter().filter_map(|row| row.dur).collect();
            let ours = Summary::of(&durations);
            assert!(ours.is_same(&peer), "{name} {nr}: {ours:?}, {peer:?}");
            if let Some(peer) = raises {
                let raises: Vec<i64> = rows.iter().filter_map(|row| row.raise_ns).collect();
                let ours = Summary::of(&raises);
                assert!(ours.is_same(&peer), "{name} {nr}: {ours:?}, {peer:?}");
            }
        }
        assert!(seen >= 3, "{name}: {text}");
    });
}

/// `███   3.40 %   bash (13665)    0   [20]`
fn share_of_thread(line: &str) -> Option<(i32, f64)> {
    let (bar, rest) = line.split_once(" % ")?;
    let (name, _) = rest.rsplit_once(')')?;
    let (_, tid) = name.rsplit_once('(')?;
    let share = bar.split_whitespace().last()?.parse().ok()?;
    Some((tid.parse().ok()?, share))
}

/// `███   7.30 % CPU 0`
fn share_of_cpu(line: &str) -> Option<(i32, f64)> {
    let (bar, cpu) = line.split_once(" % CPU ")?;
    let share = bar.split_whitespace().last()?.parse().ok()?;
    Some((cpu.trim().parse().ok()?, share))
}

#[test]
fn threads_and_cpus_are_as_busy_as_the_peer_measures() {
    for_each_trace(|name, trace, said| {
        let rows = &trace.rows;
        let begin = rows.cpu.iter().map(|cpu| cpu.ts_first).min();
        let begin = begin.expect("a trace has CPUs");
        let end = rows.cpu.iter().map(|cpu| cpu.ts_last).max().expect("CPUs");
        let percent = |ns: i64| 100.0 * ns as f64 / (end - begin) as f64;
        let near = |a: f64, b: f64| (a - b).abs() <= 0.0051;
        let text = read(&said.join("cputop.txt"));
        let shares: Vec<_> = text.lines().filter_map(share_of_thread).collect();
        assert!(shares.len() >= 10, "{name}: {text}");
        for (tid, peer) in shares {
            let slices = rows.sched_slice.iter().filter(|row| row.tid == Some(tid));
            let ran_ns = slices.map(|row| row.ts_end.unwrap_or(end) - row.ts).sum();
            assert!(near(percent(ran_ns), peer), "{name} {tid}");
        }
        let cpus: Vec<_> = text.lines().filter_map(share_of_cpu).collect();
        assert_eq!(cpus.len(), rows.cpu.len(), "{name}: {text}");
        for (number, peer) in cpus {
            let cpu = rows.cpu.iter().find(|cpu| cpu.cpu == number);
            let busy_ns = cpu
                .and_then(|cpu| cpu.busy_ns)
                .expect("a CPU with switches");
            let slices = rows.sched_slice.iter().filter(|row| row.cpu == number);
            let first = slices.min_by_key(|row| row.ts).expect("slices");
            // The peer considers a CPU busy from the start to its first switch, even if it is idle.
            let first_ns = first.ts - begin;
            assert!(
                near(percent(busy_ns + first_ns), peer),
                "{name} CPU {number}"
            );
        }
    });
}

#[test]
fn pages_are_counted_by_order_where_the_peer_counts_events() {
    for_each_trace(|name, trace, said| {
        let text = read(&said.join("memtop.txt"));
        let peer = |what: &str| -> i64 {
            let line = text.lines().find(|line| line.ends_with(what));
            let words = line.and_then(|line| line.split_whitespace().nth(1));
            words.map_or(0, |word| word.parse().expect("a count"))
        };
        let pages = &trace.rows.page_count;
        let ours = (
            pages.iter().map(|row| row.allocated).sum::<i64>(),
            pages.iter().map(|row| row.freed).sum::<i64>(),
        );
        let peer = (peer("pages allocated"), peer("pages freed"));
        match name {
            // 33,571 allocations of order 0, 74 of 1, 46 of 2, 12 of 3. The peer also omits those
            // before the first switch of their CPU.
            "basic-kernel-4.4" => {
                assert_eq!(ours, (33_999, 33_808));
                assert_eq!(peer, (33_661, 33_467));
            }
            "arm-old-syscalls-3.10" => assert!(ours.0 >= peer.0 && ours.1 >= peer.1),
            _ => assert_eq!(ours, (0, 0), "{name} records no pages"),
        }
    });
}

/// Names of the threads with this id.
fn named(trace: &InMemory, tid: i32) -> Vec<&str> {
    let name = |comm: Option<Sym>| comm.map_or("", |comm| trace.symbols.get(comm));
    let threads = trace.rows.thread.iter().filter(|row| row.tid == tid);
    threads.map(|row| name(row.comm)).collect()
}

#[test]
fn programs_are_named_as_they_were_started() {
    let Some(data) = data() else { return };
    let trace = import(data.join("basic-kernel-4.4.tar.xz"));
    // The peer reports bash, gcc, gcc, bash.
    for (tid, name) in [
        (13666, "gzip"),
        (13674, "cc1"),
        (13690, "as"),
        (13659, "ping"),
    ] {
        assert_eq!(named(&trace, tid), [name], "{tid}");
    }
}

#[test]
fn states_of_threads_are_whole_in_every_trace() {
    let Some(data) = data() else { return };
    let mut sources: Vec<PathBuf> = ["big-endian-3.14", "no-thread-6.2", "tidctx-only-6.2"]
        .iter()
        .chain(&TRACES)
        .map(|name| data.join(format!("{name}.tar.xz")))
        .collect();
    sources.push(data.join("ours-web-incident/trace.tar.zst"));
    for source in sources {
        let trace = import(source.clone());
        let mut of: BTreeMap<i32, Vec<(i64, i64, Option<i64>)>> = BTreeMap::new();
        for row in &trace.rows.thread_state {
            let utid = row.utid.expect("a state has a thread");
            of.entry(utid)
                .or_default()
                .push((row.ts, row.id, row.ts_end));
        }
        for (utid, mut states) in of {
            states.sort_unstable();
            for pair in states.windows(2) {
                assert_eq!(pair[0].2, Some(pair[1].0), "{}: {utid}", source.display());
            }
        }
        let mismatches = trace
            .anomalies
            .iter()
            .find(|anomaly| anomaly.name == "SCHED_PREV_MISMATCH");
        assert!(mismatches.is_none(), "{}", source.display());
    }
}

#[test]
fn threads_known_by_contexts_alone_have_no_states_and_unknowable_ones_no_rows() {
    let Some(data) = data() else { return };
    let contexts = import(data.join("tidctx-only-6.2.tar.xz")).rows;
    assert!(contexts.thread.len() > 10);
    assert!(contexts.thread.iter().all(|thread| thread.pid.is_some()));
    assert!(contexts.sched_slice.is_empty() && contexts.thread_state.is_empty());
    assert!(contexts.cpu.iter().all(|cpu| cpu.busy_ns.is_none()));
    let nothing = import(data.join("no-thread-6.2.tar.xz")).rows;
    assert!(nothing.thread.is_empty() && nothing.process.is_empty());
    assert_eq!(
        nothing.cpu.iter().map(|cpu| cpu.events).sum::<i64>(),
        96_268
    );
}
