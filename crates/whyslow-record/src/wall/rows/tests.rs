//! Rows of synthetic samples.

use super::*;
use crate::wall::thread_sample::Place;
use crate::wall::unwind::Registers;
use whyslow_model::spool::{Record, records};

const INTERVAL: u64 = 10_000_000;

struct NoNames;

impl Names for NoNames {
    fn see(&mut self, _: i32, _: u64, _: (&[u64], &[u64]), _: bool) {}
}

/// User addresses that were requested, since the spool started.
#[derive(Default)]
struct Seen(Vec<u64>);

impl Names for Seen {
    fn see(&mut self, _: i32, _: u64, (_, user): (&[u64], &[u64]), _: bool) {
        self.0.extend(user);
    }
}

fn registers() -> Registers {
    Registers {
        ip: 1,
        sp: 2,
        bp: Some(3),
        lr: 0,
    }
}

fn off_cpu(state: u32) -> Doing {
    Doing::Away(
        state,
        Away::OffCpu(Box::new(Place {
            runs: 5,
            registers: Some(registers()),
            nr: 7,
            is_compat: false,
            kernel: vec![0xf0],
        })),
    )
}

/// A round with a sample of one thread.
fn round(number: u64, switches: u64, doing: Doing, job: Option<u64>) -> Round {
    let ts = number * INTERVAL;
    let sample = ThreadSample {
        ts,
        tid: 9,
        pid: 8,
        switches,
        ran: 0,
        doing,
    };
    Round {
        begun: ts,
        ended: ts,
        samples: vec![(sample, job)],
        missed: 0,
    }
}

fn run(ts: u64) -> Run {
    Run {
        ts,
        cpu: 3,
        tid: 9,
        pid: 8,
        is_compat: false,
        nr: -1,
        registers: registers(),
        kernel: Vec::new(),
        runs: 0,
        stack: Vec::new(),
    }
}

fn walked(id: u64, frames: &[u64]) -> Walked {
    Walked {
        id,
        frames: frames.to_vec(),
        end: End::Whole,
    }
}

/// Start, end, state, credits and user frames of each row.
fn found(encoder: &Encoder) -> Vec<(u64, u64, u32, u32, Vec<u64>)> {
    let rows = records(encoder.payload()).filter_map(|(_, record)| match record {
        Ok((head, Record::Wall(wall))) => Some((
            wall.since / INTERVAL,
            head.ts / INTERVAL,
            wall.state,
            wall.credits,
            wall.user.iter().collect(),
        )),
        _ => None,
    });
    rows.collect()
}

#[test]
fn who_has_not_run_is_one_row() {
    let (mut rows, mut encoder) = (Rows::new(INTERVAL), Encoder::default());
    rows.walked(walked(1, &[11]));
    rows.add(round(10, 4, off_cpu(1), Some(1)));
    for number in 11..30 {
        rows.add(round(number, 4, Doing::Away(1, Away::Same), None));
    }
    // It was woken, and waits for a CPU with the same stack.
    rows.add(round(30, 4, Doing::Away(0, Away::Same), None));
    // It ran, and is back.
    rows.walked(walked(2, &[11]));
    rows.add(round(31, 5, off_cpu(1), Some(2)));
    rows.write(u64::MAX, 0, &mut NoNames, &mut encoder);
    rows.cut(0, &mut NoNames, &mut encoder);
    let expected = [
        (9, 29, 1, 20, vec![11]),
        (29, 30, Switch::PREEMPTED, 1, vec![11]),
        (30, 31, 1, 1, vec![11]),
    ];
    assert_eq!(found(&encoder), expected);
    // The open row starts where it was cut.
    rows.add(round(32, 5, Doing::Away(1, Away::Same), None));
    rows.cut(0, &mut NoNames, &mut encoder);
    assert_eq!(found(&encoder)[3], (31, 32, 1, 1, vec![11]));
}

#[test]
fn rows_are_not_longer_than_they_may_be() {
    let (mut rows, mut encoder) = (Rows::new(INTERVAL), Encoder::default());
    rows.add(round(10, 4, off_cpu(1), None));
    for number in 11..=1000 {
        rows.add(round(number, 4, Doing::Away(1, Away::Same), None));
        rows.write(u64::MAX, 0, &mut NoNames, &mut encoder);
    }
    rows.cut(0, &mut NoNames, &mut encoder);
    let rows = found(&encoder);
    assert_eq!(rows.len(), 5);
    assert!(rows.windows(2).all(|pair| pair[0].1 == pair[1].0));
    assert_eq!(rows.iter().map(|row| row.3).sum::<u32>(), 991);
}

#[test]
fn who_runs_has_the_stack_that_is_nearest() {
    let (mut rows, mut encoder) = (Rows::new(INTERVAL), Encoder::default());
    rows.ran(run(10 * INTERVAL - 4_000_000), Some(1));
    rows.ran(run(10 * INTERVAL + 3_000_000), Some(2));
    rows.walked(walked(1, &[11]));
    rows.add(round(10, 4, Doing::Runs, None));
    rows.add(round(20, 4, Doing::MayRun, None));
    // The other one is not unwound yet, and later ticks are not known.
    rows.write(11 * INTERVAL - 1, 0, &mut NoNames, &mut encoder);
    rows.write(u64::MAX, 0, &mut NoNames, &mut encoder);
    assert_eq!(found(&encoder), []);
    rows.walked(walked(2, &[12]));
    rows.write(u64::MAX, 0, &mut NoNames, &mut encoder);
    rows.cut(0, &mut NoNames, &mut encoder);
    let expected = [
        (9, 10, WallRecord::ON_CPU, 1, vec![12]),
        // No tick met it: it waited for a CPU.
        (10, 20, Switch::PREEMPTED, 1, vec![]),
    ];
    assert_eq!(found(&encoder), expected);
}

/// The sampler itself preempts a thread.
#[test]
fn who_waits_for_a_cpu_but_had_one_for_most_of_the_time_ran() {
    let (mut rows, mut encoder) = (Rows::new(INTERVAL), Encoder::default());
    let ran = |number: u64, parts: u64, doing: Doing| {
        let mut round = round(number, number, doing, None);
        round.samples[0].0.ran = parts * INTERVAL / 10;
        round
    };
    rows.add(ran(10, 100, off_cpu(0)));
    rows.ran(run(11 * INTERVAL - 4_000_000), Some(1));
    rows.walked(walked(1, &[12]));
    rows.add(ran(11, 109, off_cpu(0)));
    // No tick met it.
    rows.add(ran(13, 128, off_cpu(0)));
    rows.add(ran(14, 132, off_cpu(0)));
    rows.add(ran(15, 142, Doing::MayRun));
    rows.add(ran(16, 143, Doing::MayRun));
    rows.write(u64::MAX, 0, &mut NoNames, &mut encoder);
    rows.cut(0, &mut NoNames, &mut encoder);
    let found: Vec<_> = found(&encoder)
        .into_iter()
        .map(|(_, end, state, _, user)| (end, state, user))
        .collect();
    let expected = [
        (10, Switch::PREEMPTED, vec![]),
        (11, WallRecord::ON_CPU, vec![12]),
        (13, WallRecord::ON_CPU, vec![]),
        (14, Switch::PREEMPTED, vec![]),
        (15, WallRecord::ON_CPU, vec![]),
        (16, Switch::PREEMPTED, vec![]),
    ];
    assert_eq!(found, expected);
}

#[test]
fn who_is_gone_has_its_last_row_and_a_number_may_be_used_again() {
    let (mut rows, mut encoder) = (Rows::new(INTERVAL), Encoder::default());
    rows.add(round(10, 40, off_cpu(2), None));
    // Fewer switches than before: another thread.
    rows.add(round(11, 3, off_cpu(1), None));
    rows.add(Round {
        samples: Vec::new(),
        ..round(12, 0, Doing::Runs, None)
    });
    rows.write(u64::MAX, 0, &mut NoNames, &mut encoder);
    let states: Vec<_> = found(&encoder).iter().map(|row| (row.1, row.2)).collect();
    assert_eq!(states, [(10, 2), (11, 1)]);
    assert!(rows.threads.is_empty());
}

#[test]
fn a_stack_is_not_waited_for_for_ever() {
    let (mut rows, mut encoder) = (Rows::new(INTERVAL), Encoder::default());
    rows.add(round(10, 4, off_cpu(1), Some(1)));
    rows.write(
        u64::MAX,
        10 * INTERVAL + WAIT_MAX_NS - 1,
        &mut NoNames,
        &mut encoder,
    );
    assert!(rows.has_rounds());
    rows.write(
        u64::MAX,
        10 * INTERVAL + WAIT_MAX_NS,
        &mut NoNames,
        &mut encoder,
    );
    assert!(!rows.has_rounds());
    rows.cut(0, &mut NoNames, &mut encoder);
    assert_eq!(found(&encoder), [(9, 10, 1, 1, vec![])]);
}

#[test]
fn a_stack_that_comes_late_is_of_the_row_that_goes_on() {
    let (mut rows, mut encoder) = (Rows::new(INTERVAL), Encoder::default());
    let mut seen = Seen::default();
    let late = 10 * INTERVAL + WAIT_MAX_NS;
    rows.add(round(10, 4, off_cpu(1), Some(1)));
    rows.write(u64::MAX, late, &mut seen, &mut encoder);
    assert!(!rows.has_rounds() && seen.0.is_empty());
    rows.walked(walked(1, &[11]));
    rows.add(round(11, 4, Doing::Away(1, Away::Same), None));
    rows.write(u64::MAX, late, &mut seen, &mut encoder);
    assert_eq!(seen.0, [11]);
    // The stack of the next row does not arrive before the thread has moved on.
    rows.add(round(12, 5, off_cpu(2), Some(2)));
    rows.write(u64::MAX, late + 2 * INTERVAL, &mut seen, &mut encoder);
    rows.add(round(13, 6, off_cpu(2), None));
    rows.write(u64::MAX, late, &mut seen, &mut encoder);
    rows.walked(walked(2, &[12]));
    rows.cut(0, &mut seen, &mut encoder);
    let expected = [
        (9, 11, 1, 2, vec![11]),
        (11, 12, 2, 1, vec![]),
        (12, 13, 2, 1, vec![]),
    ];
    assert_eq!(found(&encoder), expected);
}

#[test]
fn each_spool_is_told_what_its_rows_need() {
    let (mut rows, mut encoder) = (Rows::new(INTERVAL), Encoder::default());
    let mut seen = Seen::default();
    rows.walked(walked(1, &[11]));
    rows.add(round(10, 4, off_cpu(1), Some(1)));
    rows.cut(0, &mut seen, &mut encoder);
    // The thread continues, and is reported once in the next spool.
    seen.0.clear();
    for number in 11..20 {
        rows.add(round(number, 4, Doing::Away(1, Away::Same), None));
        rows.write(u64::MAX, 0, &mut seen, &mut encoder);
        assert_eq!(seen.0, [11]);
    }
    rows.cut(0, &mut seen, &mut encoder);
    // It ran before the next sample: its row ends in that spool.
    seen.0.clear();
    rows.walked(walked(2, &[12]));
    rows.add(round(20, 4, Doing::Away(0, Away::Same), None));
    rows.add(round(21, 5, off_cpu(1), Some(2)));
    rows.cut(0, &mut seen, &mut encoder);
    let with_rows: Vec<u64> = found(&encoder)[2..]
        .iter()
        .flat_map(|row| row.4.clone())
        .collect();
    assert_eq!(with_rows, [11, 12]);
    assert_eq!(seen.0, [11, 12]);
}

#[test]
fn stacks_that_nobody_asks_for_go() {
    let (mut rows, mut encoder) = (Rows::new(INTERVAL), Encoder::default());
    let last = 3 * UNUSED_ROUNDS_MAX;
    for number in 1..=last {
        // Each arrives after its round, and its thread has moved on.
        rows.add(round(number, number, off_cpu(1), Some(number)));
        rows.write(u64::MAX, u64::MAX, &mut NoNames, &mut encoder);
        let before = number.saturating_sub(2);
        rows.walked(walked(before, &[11]));
    }
    assert!(rows.walked.len() as u64 <= UNUSED_ROUNDS_MAX + 2);
    assert_eq!(rows.came.len(), rows.walked.len());
}
