//! Invariants of the tables for random input.

use std::collections::BTreeMap;
use std::fmt::Write;

use proptest::prelude::*;
use whyslow_model::Symbols;
use whyslow_model::tables::Collected;

use super::run;

/// A step of a valid history: an event on one CPU.
#[derive(Debug, Clone, Copy)]
enum Step {
    Switch { next: u8, state: u8 },
    Wake { thread: u8 },
    Fork { child: u8 },
    Die,
    Irq { nr: u8 },
    Lose,
}

fn step() -> impl Strategy<Value = (u8, u8, Step)> {
    let step = prop_oneof![
        6 => (0u8..12, 0u8..4).prop_map(|(next, state)| Step::Switch { next, state }),
        4 => (0u8..12).prop_map(|thread| Step::Wake { thread }),
        1 => (0u8..12).prop_map(|child| Step::Fork { child }),
        1 => Just(Step::Die),
        1 => (0u8..4).prop_map(|nr| Step::Irq { nr }),
        1 => Just(Step::Lose),
    ];
    (0u8..3, 0u8..5, step)
}

/// A simulated machine with kernel-like behaviour: a thread runs on one CPU at a time, only
/// runnable threads are switched in, only sleeping ones are woken.
/// ready are switched in, only those asleep woken.
#[derive(Debug, Default)]
struct Machine {
    ts: i64,
    script: String,
    hidden: bool,
    on_cpu: [Option<u8>; 3],
    ready: Vec<u8>,
    asleep: Vec<u8>,
    /// Start of the current slice of each CPU.
    since: [i64; 3],
    /// CPU time of each thread id.
    ran_ns: BTreeMap<i32, i64>,
}

impl Machine {
    fn step(&mut self, cpu: u8, wait: u8, step: Step) {
        self.ts += i64::from(wait);
        let ts = self.ts;
        let current = self.on_cpu[cpu as usize];
        let prev = current.map_or(0, |thread| thread + 100);
        match step {
            Step::Switch { next, state } => {
                let next = self.take_ready(next);
                let state = match (current, state) {
                    (None, _) => "R",
                    (Some(thread), 0 | 1) => {
                        self.asleep.push(thread);
                        ["S", "D"][state as usize]
                    }
                    (Some(thread), _) => {
                        self.ready.push(thread);
                        "R+"
                    }
                };
                self.leave(cpu);
                self.on_cpu[cpu as usize] = next;
                let next = next.map_or(0, |thread| thread + 100);
                self.line(format_args!("{ts} c{cpu} switch {prev}:p {state} {next}:n"));
            }
            Step::Wake { thread } => {
                if !self.asleep.is_empty() {
                    let thread = self.asleep.remove(thread as usize % self.asleep.len());
                    self.ready.push(thread);
                    self.line(format_args!("{ts} c{cpu} waking {}:p 0", thread + 100));
                }
            }
            Step::Fork { child } => {
                let known = self.on_cpu.contains(&Some(child))
                    || self.ready.contains(&child)
                    || self.asleep.contains(&child);
                if current.is_some() && !known {
                    self.ready.push(child);
                    let child = child + 100;
                    self.line(format_args!(
                        "{ts} c{cpu} fork {prev}/{prev}:p {child}/{child}:p"
                    ));
                }
            }
            Step::Die => {
                if current.is_some() {
                    self.leave(cpu);
                    self.line(format_args!("{ts} c{cpu} exit {prev}:p"));
                    self.line(format_args!("{ts} c{cpu} switch {prev}:p Z 0:s"));
                    self.line(format_args!("{ts} c{cpu} free {prev}"));
                }
            }
            Step::Irq { nr } => {
                self.line(format_args!("{ts} c{cpu} irq+ {nr} x"));
                self.line(format_args!("{ts} c{cpu} irq- {nr}"));
            }
            Step::Lose => {
                // The next event on this CPU is not recorded.
                self.hidden = true;
                self.step(cpu, 1, Step::Wake { thread: 0 });
                self.step(cpu, 1, Step::Switch { next: 0, state: 0 });
                self.step(cpu, 1, Step::Switch { next: 1, state: 2 });
                self.step(cpu, 1, Step::Wake { thread: 1 });
                self.hidden = false;
                let until = self.ts;
                self.line(format_args!("loss {cpu} {ts} {until}"));
                self.ts += 1;
            }
        }
    }

    fn leave(&mut self, cpu: u8) {
        let since = std::mem::replace(&mut self.since[cpu as usize], self.ts);
        if let Some(thread) = self.on_cpu[cpu as usize].take() {
            *self.ran_ns.entry(i32::from(thread) + 100).or_default() += self.ts - since;
        }
    }

    fn take_ready(&mut self, next: u8) -> Option<u8> {
        if self.ready.is_empty() {
            return None;
        }
        Some(self.ready.remove(next as usize % self.ready.len()))
    }

    fn line(&mut self, line: std::fmt::Arguments<'_>) {
        if self.hidden {
            return;
        }
        writeln!(self.script, "{line}").expect("a string takes any text");
    }
}

fn legal_history() -> impl Strategy<Value = Machine> {
    prop::collection::vec(step(), 1..200).prop_map(|steps| {
        let mut machine = Machine {
            ready: (0..6).collect(),
            ..Machine::default()
        };
        for (cpu, wait, step) in steps {
            machine.step(cpu, wait, step);
        }
        (0..3).for_each(|cpu| machine.leave(cpu));
        let ts = machine.ts;
        machine.line(format_args!("finish {ts}"));
        machine
    })
}

/// Any event of the vocabulary, in any order.
fn any_script() -> impl Strategy<Value = String> {
    let thread = || (-1i32..12, prop::option::of(-1i32..12), 0u8..3);
    let name = |(tid, pid, comm): (i32, Option<i32>, u8)| match pid {
        Some(pid) => format!("{tid}/{pid}:n{comm}"),
        None => format!("{tid}:n{comm}"),
    };
    let event = prop_oneof![
        (thread(), 0usize..11, thread()).prop_map(move |(prev, state, next)| {
            let state = ["R", "R+", "S", "D", "T", "t", "X", "Z", "P", "I", "?"][state];
            format!("switch {} {state} {}", name(prev), name(next))
        }),
        (0usize..3, thread(), -1i32..5).prop_map(move |(kind, thread, cpu)| {
            let kind = ["waking", "wakeup", "wakeup_new"][kind];
            format!("{kind} {} {cpu}", name(thread))
        }),
        (thread(), thread()).prop_map(move |(parent, child)| format!(
            "fork {} {}",
            name(parent),
            name(child)
        )),
        (-1i32..12, -1i32..12).prop_map(|(tid, old)| format!("exec {tid} {old} /bin/x")),
        thread().prop_map(move |thread| format!("exit {}", name(thread))),
        (-1i32..12).prop_map(|tid| format!("free {tid}")),
        thread().prop_map(move |thread| format!("rename {}", name(thread))),
        (-1i32..12, -1i32..5).prop_map(|(tid, cpu)| format!("migrate {tid} {cpu}")),
        (thread(), 0i32..9)
            .prop_map(move |(thread, status)| format!("dump {} 1 {status}", name(thread))),
        Just("syscall read".to_owned()),
        Just("return read".to_owned()),
        Just("other".to_owned()),
        (0usize..6, -1i32..12).prop_map(|(kind, nr)| match kind {
            0 => format!("irq+ {nr} x"),
            1 => format!("irq- {nr}"),
            2 => format!("soft+ {nr}"),
            3 => format!("soft- {nr}"),
            4 => "timer+".to_owned(),
            _ => "timer-".to_owned(),
        }),
        (-1i32..12).prop_map(|nr| format!("raise {nr}")),
        (0u32..70).prop_map(|order| format!("page+ {order}")),
    ];
    let context = prop::option::of(thread());
    let line = (0i64..4, -1i32..4, context, event, 0u8..12);
    prop::collection::vec(line, 1..120).prop_map(move |lines| {
        let mut script = Vec::new();
        let mut ts = 0;
        for (wait, cpu, context, event, loss) in lines {
            ts += wait;
            if loss == 0 && cpu >= 0 {
                script.push(format!("loss {cpu} {ts} {}", ts + wait));
                ts += wait;
            }
            let context = context.map(|thread| format!("ctx={} ", name(thread)));
            let context = context.unwrap_or_default();
            script.push(format!("{ts} c{cpu} {context}{event}"));
        }
        script.join("\n")
    })
}

/// States of a thread are consecutive without gap or overlap; only the last one may have no end.
fn assert_states(rows: &Collected) {
    let mut of: BTreeMap<i32, Vec<(i64, i64, Option<i64>)>> = BTreeMap::new();
    for row in &rows.thread_state {
        let utid = row.utid.expect("a state has a thread");
        assert!(row.dur.is_none_or(|dur| row.ts_end == Some(row.ts + dur)));
        of.entry(utid)
            .or_default()
            .push((row.ts, row.id, row.ts_end));
    }
    for (utid, mut states) in of {
        states.sort_unstable();
        for pair in states.windows(2) {
            assert_eq!(pair[0].2, Some(pair[1].0), "thread {utid}: {states:?}");
        }
        let thread = rows.thread.iter().find(|thread| thread.utid == utid);
        assert!(thread.is_some(), "state of a thread without row");
    }
}

/// Slices of a CPU do not overlap.
fn assert_slices(rows: &Collected) {
    let mut of: BTreeMap<i32, Vec<(i64, i64, Option<i64>)>> = BTreeMap::new();
    for row in &rows.sched_slice {
        of.entry(row.cpu)
            .or_default()
            .push((row.ts, row.id, row.ts_end));
    }
    for (cpu, mut slices) in of {
        slices.sort_unstable();
        for pair in slices.windows(2) {
            let ts_end = pair[0].2.expect("only the last slice of a CPU is open");
            assert!(ts_end <= pair[1].0, "CPU {cpu}: {slices:?}");
        }
    }
}

fn ran_by_slices(rows: &Collected, ts_last: i64) -> BTreeMap<i32, i64> {
    let mut ran_ns = BTreeMap::new();
    for row in &rows.sched_slice {
        let tid = row.tid.expect("a slice has a thread");
        *ran_ns.entry(tid).or_default() += row.ts_end.unwrap_or(ts_last) - row.ts;
    }
    ran_ns
}

fn ran_by_states(rows: &Collected, symbols: &Symbols, ts_last: i64) -> BTreeMap<i32, i64> {
    let mut ran_ns = BTreeMap::new();
    let states = rows.thread_state.iter();
    for row in states.filter(|row| symbols.get(row.state) == "running") {
        let tid = row.tid.expect("a state has a thread");
        *ran_ns.entry(tid).or_default() += row.ts_end.unwrap_or(ts_last) - row.ts;
    }
    ran_ns
}

fn assert_ids_are_unique(rows: &Collected) {
    let ids = |mut ids: Vec<i64>| {
        let count = ids.len();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), count);
    };
    ids(rows.thread_state.iter().map(|row| row.id).collect());
    ids(rows.sched_slice.iter().map(|row| row.id).collect());
    ids(rows.wakeup.iter().map(|row| row.id).collect());
    ids(rows.irq.iter().map(|row| row.id).collect());
    ids(rows.thread_comm.iter().map(|row| row.id).collect());
    ids(rows.thread.iter().map(|row| row.utid.into()).collect());
    ids(rows.process.iter().map(|row| row.upid.into()).collect());
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_legal_history_keeps_the_invariants(machine in legal_history()) {
        let (rows, symbols, trackers) = run(&machine.script);
        assert_states(&rows);
        assert_slices(&rows);
        assert_ids_are_unique(&rows);
        if rows.lost_events.is_empty() {
            let mismatches = trackers.anomalies().get(&whyslow_model::stat::SCHED_PREV_MISMATCH);
            prop_assert_eq!(mismatches, 0);
            prop_assert_eq!(&ran_by_slices(&rows, machine.ts), &machine.ran_ns);
            prop_assert_eq!(&ran_by_states(&rows, &symbols, machine.ts), &machine.ran_ns);
        } else {
            for (tid, ran_ns) in ran_by_slices(&rows, machine.ts) {
                prop_assert!(ran_ns <= machine.ran_ns[&tid], "thread {} got too much", tid);
            }
        }
    }

    #[test]
    fn any_events_keep_the_invariants(script in any_script()) {
        let (rows, _, _) = run(&script);
        assert_states(&rows);
        assert_slices(&rows);
        assert_ids_are_unique(&rows);
    }
}
