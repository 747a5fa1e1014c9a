//! Tests of the detector with synthetic samplers and programs, whose waits are known.

use proptest::prelude::*;

use super::*;
use crate::profile::{CodeFrame, CodeKind, SampledState, SampledThread};

const MS: Ns = 1_000_000;
const INTERVAL: Ns = 10 * MS;

/// A sampler that visits all threads, and the disturbances of the sampler and the threads.
#[derive(Debug, Clone)]
struct Made {
    threads: usize,
    rounds: i64,
    /// Probability of losing a sample, in parts per thousand.
    loss: u32,
    /// Thread, start and end of an uninterruptible wait, in milliseconds.
    hidden: Vec<(usize, i64, i64)>,
    /// Signals are queued, and delivered together at the end of such a wait.
    queues: bool,
    /// Start and end of a stop of the whole process.
    stop: Option<(i64, i64)>,
    /// Start and end of a time in which the sampler is five times slower.
    starved: Option<(i64, i64)>,
    /// Function in which a thread is seen after a wait.
    call: &'static str,
    seed: u64,
}

impl Default for Made {
    fn default() -> Self {
        Self {
            threads: 20,
            rounds: 1000,
            loss: 0,
            hidden: Vec::new(),
            queues: false,
            stop: None,
            starved: None,
            call: "write",
            seed: 1,
        }
    }
}

impl Made {
    fn profile(&self) -> Profile {
        let mut profile = Profile {
            interval: Some(INTERVAL),
            ..Profile::default()
        };
        let frame = |profile: &mut Profile, kind, function: &str| {
            let frame = profile.frame(CodeFrame {
                kind,
                function: function.to_owned(),
                module: None,
                line: None,
            });
            profile.stack(&[frame])
        };
        let idle = frame(&mut profile, CodeKind::User, "__futex_abstimed_wait_common");
        let call = frame(&mut profile, CodeKind::User, self.call);
        let mut dice = dice(self.seed);
        for number in 0..self.threads {
            profile.thread(SampledThread {
                tid: Some(100 + number as i32),
                ..SampledThread::default()
            });
        }
        let mut now = 0;
        let mut owed: Vec<(usize, Ns)> = Vec::new();
        for _ in 0..self.rounds {
            let is_slow = self
                .starved
                .is_some_and(|(begin, end)| (begin * MS..end * MS).contains(&now));
            now += if is_slow { 5 * INTERVAL } else { INTERVAL };
            if let Some((begin, end)) = self.stop
                && (begin * MS..end * MS).contains(&now)
            {
                now = end * MS;
            }
            for thread in 0..self.threads {
                let ts = now + (dice() % (INTERVAL as u64 / 5)) as Ns;
                if dice() % 1000 < u64::from(self.loss) {
                    continue;
                }
                let hidden = self
                    .hidden
                    .iter()
                    .find(|(of, begin, end)| *of == thread && (begin * MS..end * MS).contains(&ts));
                match hidden {
                    Some((_, _, end)) => {
                        let is_owed = owed.iter().any(|(of, at)| (*of, *at) == (thread, end * MS));
                        if self.queues || !is_owed {
                            owed.push((thread, end * MS));
                        }
                    }
                    None => profile
                        .points
                        .push(point(ts, thread, idle, SampledState::Sleeping)),
                }
            }
        }
        for (number, (thread, at)) in owed.into_iter().enumerate() {
            let ts = at + (number as Ns % 40) * 1000;
            profile
                .points
                .push(point(ts, thread, call, SampledState::Running));
        }
        profile.sort();
        profile
    }

    fn gaps(&self) -> Vec<Gap> {
        find(&mut self.profile()).expect("a wall profile").gaps
    }
}

fn dice(seed: u64) -> impl FnMut() -> u64 {
    let mut random = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    move || {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random >> 16
    }
}

fn point(ts: Ns, thread: usize, stack: u32, state: SampledState) -> Point {
    Point {
        ts,
        span: 0,
        thread: thread as u32,
        stack,
        credits: 1,
        kind: SampleKind::Wall,
        state,
        is_assumed: false,
    }
}

fn of_class(gaps: &[Gap], class: GapClass) -> Vec<(usize, i64)> {
    let of = gaps.iter().filter(|gap| gap.class == class);
    of.map(|gap| {
        (
            gap.thread.map_or(usize::MAX, |thread| thread as usize),
            gap.dur() / MS,
        )
    })
    .collect()
}

#[test]
fn a_wait_that_hides_a_thread_is_found_with_its_length() {
    for queues in [false, true] {
        let made = Made {
            hidden: vec![(3, 2000, 2600), (7, 2005, 2601), (3, 5000, 5090)],
            queues,
            ..Made::default()
        };
        let gaps = made.gaps();
        let found = of_class(&gaps, GapClass::KernelWait);
        let threads: Vec<usize> = found.iter().map(|(thread, _)| *thread).collect();
        assert_eq!(threads, [3, 7, 3], "{gaps:?}");
        for ((_, dur), wanted) in found.iter().zip([600, 596, 90]) {
            assert!((dur - wanted).abs() <= 20, "{dur} for {wanted}");
        }
        assert_eq!(gaps.len(), 3);
        // Two that share their time form a group, the third does not.
        assert!(gaps[0].group.is_some() && gaps[0].group == gaps[1].group);
        assert_eq!(gaps[2].group, None);
        assert_eq!(gaps[0].queued > 10, queues, "{}", gaps[0].queued);
    }
}

#[test]
fn a_stop_of_the_process_is_one_event_and_no_gap_of_each_thread() {
    let made = Made {
        stop: Some((3000, 3700)),
        ..Made::default()
    };
    let gaps = made.gaps();
    let stopped = of_class(&gaps, GapClass::ProcessStopped);
    assert_eq!(stopped.len(), 1, "{gaps:?}");
    assert!((stopped[0].1 - 700).abs() <= 25, "{stopped:?}");
    assert_eq!(gaps.len(), 1);
}

#[test]
fn a_wait_across_a_stop_has_its_own_time() {
    let made = Made {
        stop: Some((3000, 3700)),
        hidden: vec![(4, 2500, 4200)],
        ..Made::default()
    };
    let found = of_class(&made.gaps(), GapClass::KernelWait);
    assert_eq!(found.len(), 1);
    assert!((found[0].1 - 1700).abs() <= 20);
}

#[test]
fn a_late_sampler_hides_nobody() {
    let made = Made {
        starved: Some((2000, 4000)),
        ..Made::default()
    };
    assert_eq!(made.gaps(), []);
    // Threads that are hidden are still found.
    let made = Made {
        hidden: vec![(2, 2500, 3200)],
        ..made
    };
    assert_eq!(of_class(&made.gaps(), GapClass::KernelWait).len(), 1);
}

/// A profiler may take CPU samples in addition to its rounds; these are much more frequent.
#[test]
fn samples_of_who_computes_are_no_rounds() {
    let made = Made {
        starved: Some((2000, 4000)),
        ..Made::default()
    };
    let mut profile = made.profile();
    let idle = profile.points[0].stack;
    for at in 0..10_000 {
        for thread in 0..8 {
            let wall = point(at * MS, thread, idle, SampledState::Running);
            profile.points.push(Point {
                kind: SampleKind::Cpu,
                ..wall
            });
        }
    }
    profile.sort();
    let found = find(&mut profile).expect("a wall profile");
    assert_eq!(found.gaps, []);
}

#[test]
fn calls_that_a_signal_ends_are_no_kernel_waits() {
    let made = Made {
        hidden: vec![(3, 2000, 2600)],
        call: "epoll_wait",
        ..Made::default()
    };
    let gaps = made.gaps();
    assert_eq!(of_class(&gaps, GapClass::KernelWait), []);
    assert_eq!(of_class(&gaps, GapClass::SamplerLate).len(), 1);
}

#[test]
fn where_gaps_mean_nothing_none_are_looked_for() {
    let mut cpu = Made::default().profile();
    for point in &mut cpu.points {
        point.kind = SampleKind::Cpu;
    }
    assert_eq!(find(&mut cpu).err(), Some(Off::NotWall));
    let mut unknown = Made::default().profile();
    unknown.interval = None;
    assert_eq!(find(&mut unknown).err(), Some(Off::NoInterval));
    assert_eq!(find(&mut Profile::default()).err(), Some(Off::NotWall));
}

#[test]
fn between_batches_that_the_sampler_credited_nothing_is_hidden() {
    let mut profile = Made {
        rounds: 100,
        ..Made::default()
    }
    .profile();
    let idle = profile.points[0].stack;
    profile.points.retain(|point| point.thread != 5);
    for (begin, end) in [(0, 300), (700, 1000)] {
        profile.points.push(Point {
            span: (end - begin) * MS,
            credits: 30,
            is_assumed: true,
            ..point(begin * MS, 5, idle, SampledState::Sleeping)
        });
    }
    profile.sort();
    assert_eq!(find(&mut profile).expect("a wall profile").gaps, []);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    /// Samplers lose samples; a thread that is reached in most rounds was not hidden.
    #[test]
    fn what_is_lost_by_chance_is_no_wait(loss in 0..200_u32, threads in 2..40_usize, seed: u64) {
        let made = Made { loss, threads, seed, rounds: 2000, ..Made::default() };
        prop_assert_eq!(of_class(&made.gaps(), GapClass::KernelWait), []);
        prop_assert_eq!(of_class(&made.gaps(), GapClass::ProcessStopped), []);
    }

    #[test]
    fn waits_are_found_whatever_else_is_lost(
        loss in 0..150_u32, threads in 8..40_usize, seed: u64, begin in 1000..6000_i64, dur in 100..1500_i64,
        queues: bool,
    ) {
        let made = Made { loss, threads, seed, queues, hidden: vec![(1, begin, begin + dur)], ..Made::default() };
        let found = of_class(&made.gaps(), GapClass::KernelWait);
        prop_assert_eq!(found.len(), 1, "{:?}", found);
        prop_assert_eq!(found[0].0, 1);
        // Samples lost before the wait lengthen the gap by as many rounds.
        prop_assert!((found[0].1 - dur).abs() <= 45, "{} for {}", found[0].1, dur);
    }

    /// The time of each thread is divided between its samples and gaps.
    #[test]
    fn no_time_is_counted_twice_or_lost(
        loss in 0..150_u32, seed: u64, queues: bool, hidden in prop::collection::vec((0..8_usize, 500..8000_i64, 1..900_i64), 0..6),
    ) {
        let hidden = hidden.into_iter().map(|(thread, begin, dur)| (thread, begin, begin + dur)).collect();
        let mut profile = Made { loss, seed, queues, hidden, threads: 8, ..Made::default() }.profile();
        let found = find(&mut profile).expect("a wall profile");
        for thread in 0..8_u32 {
            let own: Vec<usize> = (0..profile.points.len())
                .filter(|at| profile.points[*at].thread == thread && !found.is_queued[*at])
                .collect();
            let mut spans: Vec<(Ns, Ns)> = own.iter().map(|at| (found.since[*at], end(&profile.points[*at]))).collect();
            let gaps = found.gaps.iter().filter(|gap| gap.thread == Some(thread));
            spans.extend(gaps.map(|gap| (gap.ts, gap.ts_end)));
            spans.sort_unstable();
            for pair in spans.windows(2) {
                prop_assert_eq!(pair[0].1, pair[1].0);
            }
        }
    }
}
