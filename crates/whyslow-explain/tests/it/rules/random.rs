//! Whatever happened, every instant of a window counts once.

use std::fmt::Write as _;

use whyslow_explain::{Query, explain};
use whyslow_model::Window;
use whyslow_test_recordings::Recorded;

/// The same numbers on every machine.
struct Dice(u64);

impl Dice {
    fn below(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % sides.max(1)
    }
}

const THREADS: u64 = 6;
const CPUS: usize = 3;
const EVENTS: u64 = 400;

/// An impossible trace: events that contradict each other, in any order.
fn trace(dice: &mut Dice) -> String {
    let mut text = String::new();
    for tid in 2..=THREADS {
        let is_kernel = tid == THREADS;
        let comm = if is_kernel { "kworker/0:1" } else { "thread" };
        let _ = writeln!(
            text,
            "1.0 [0] state_process tid={tid} pid={tid} comm={comm} is_kernel={is_kernel}"
        );
    }
    let mut running = [0; CPUS];
    let mut at = 1_000_000_000_u64;
    let thread = |dice: &mut Dice| 2 + dice.below(THREADS - 1);
    for _ in 0..EVENTS {
        at += 1 + dice.below(2_000_000);
        let cpu = dice.below(CPUS as u64) as usize;
        let (now, tid) = (running[cpu], thread(dice));
        let _ = write!(
            text,
            "{}.{:09} [{cpu}] ",
            at / 1_000_000_000,
            at % 1_000_000_000
        );
        let sector = dice.below(4) * 8;
        let since = at - dice.below(at - 1_000_000_000);
        let since = format!("{}.{:09}", since / 1_000_000_000, since % 1_000_000_000);
        let line = match dice.below(16) {
            0..=4 => {
                let next = if dice.below(3) == 0 || running.contains(&tid) {
                    0
                } else {
                    tid
                };
                running[cpu] = next;
                let state = ["S", "D", "R", "R+", "I", "T"][dice.below(6) as usize];
                format!("sched_switch prev={now} prev_state={state} next={next}")
            }
            5 | 6 => format!("(tid={now}) sched_waking tid={tid}"),
            7 => format!(
                "(tid={now}) syscall_enter name={} fd=3",
                ["read", "futex", "poll", "syncfs", "wait4"][dice.below(5) as usize]
            ),
            8 => format!("(tid={now}) syscall_exit name=read ret={}", dice.below(2)),
            9 => format!("(tid={now}) block_getrq dev=8:0 sector={sector} sectors=8 rwbs=R"),
            10 => format!("(tid={now}) block_rq_issue dev=8:0 sector={sector} sectors=8 rwbs=R"),
            11 => format!("block_rq_complete dev=8:0 sector={sector} sectors=8 rwbs=R error=0"),
            12 => format!(
                "irq_enter kind={} nr=3",
                ["hard", "soft", "hrtimer"][dice.below(3) as usize]
            ),
            13 => "irq_exit kind=hard nr=3 ret=1".to_owned(),
            14 if now != 0 => format!(
                "(tid={now}) lock_wait kind=mutex lock=0x{} since={since} kernel=xfs_ilock",
                dice.below(2)
            ),
            14 => format!(
                "(tid={now}) work kind=dirty_throttle phase=done dev=8:0 dur={}",
                dice.below(5_000_000)
            ),
            _ if dice.below(8) == 0 => format!(
                "lost kind=events until={}.{:09} count=3",
                at / 1_000_000_000,
                at % 1_000_000_000
            ),
            _ => format!(
                "(tid={now}) stack kind=back since={since} state=D cpu={cpu} kernel=schedule;start_this_handle"
            ),
        };
        let _ = writeln!(text, "{line}");
    }
    text
}

#[test]
fn every_moment_of_a_window_counts_once_whatever_happened() {
    let mut explained = 0;
    for seed in 1..=60 {
        let mut dice = Dice(u64::wrapping_mul(seed, 0x9E37_79B9_7F4A_7C15));
        let made = Recorded::of_text(&trace(&mut dice));
        for tid in 2..=THREADS as i32 {
            let begin = 1_000_000_000 + dice.below(200_000_000) as i64;
            let end = begin + 1 + dice.below(300_000_000) as i64;
            let query = Query {
                window: Some(Window::new(begin, end)),
                tids: vec![tid],
                ..Query::default()
            };
            let report = explain(&made.recording, &query, None).expect("an answer");
            for finding in report.findings {
                let length = finding.target.end_ns - finding.target.begin_ns;
                let sum: i64 = finding.parts.iter().map(|part| part.dur_ns).sum();
                assert_eq!(sum, length, "seed {seed}, thread {tid}, {begin}..{end}");
                explained += 1;
            }
        }
    }
    assert!(explained >= 100, "only {explained} windows had a thread");
}
