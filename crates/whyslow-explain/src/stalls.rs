//! CPUs that stand still while a thread is on them: the hypervisor runs other guests, the firmware
//! handles an SMI, or the kernel has disabled interrupts.
//!
//! **Goal.** Time in which a thread ran, and time in which its CPU executed nothing, look the same in
//! scheduling events. What distinguishes them is the timer tick: a CPU that executes a thread has an
//! event per tick at least, if ticks are recorded.
//!
//! **Chosen.** The tick is read from the CPU itself: many gaps between consecutive events, with one
//! thread on the CPU, have the length of one of the ticks that kernels are built with. Some ticks
//! leave no event (without a softirq, for example), and a CPU without a tick has none, so a silent
//! time is a stall only if it is not explained by ticks that happen to be unseen.
//!
//! **Rejected.** A fixed limit: a computing thread on a CPU without a tick, or in a recording
//! without interrupts, is silent for as long as it likes.

use std::cell::RefCell;

use rustc_hash::FxHashMap;
use whyslow_model::Ns;

use crate::window_slice::{State, WindowSlice};

/// Ticks of kernels (`CONFIG_HZ` 100, 250, 300, 1000).
const TICKS_NS: [Ns; 4] = [10_000_000, 4_000_000, 3_333_333, 1_000_000];
/// A gap of one tick differs from it by at most this share.
const TOLERANCE: f64 = 0.06;
/// Minimum number of gaps of one tick for it to be known.
const SEEN_MIN: usize = 10;
/// Longer silence, in ticks, is a stall …
const STALL_TICKS: f64 = 3.25;
/// … if it is at least this long …
const STALL_MIN_NS: Ns = 10_000_000;
/// … and as many unseen ticks in a row are less probable than this in the examined time.
const CHANCE_MAX: f64 = 0.01;
/// With a larger share of unseen ticks, silence shows nothing.
const UNSEEN_MAX: f64 = 0.5;

/// Begin and end of the stalls of each CPU, in order.
type StallsOfCpus = FxHashMap<i32, Vec<(Ns, Ns)>>;

/// The stalls of each CPU of a slice.
#[derive(Debug, Default)]
pub(crate) struct Stalls(RefCell<Option<StallsOfCpus>>);

impl Stalls {
    /// Stalls of a CPU that overlap a range in which a thread ran.
    pub(crate) fn within(
        &self,
        slice: &WindowSlice,
        cpu: i32,
        (begin, end): (Ns, Ns),
    ) -> Vec<(Ns, Ns)> {
        // Without interrupts, the ticks are not known.
        if end - begin < STALL_MIN_NS || !slice.recorded.handlers {
            return Vec::new();
        }
        let mut known = self.0.borrow_mut();
        let stalls = known.get_or_insert_with(|| find(slice));
        let of_cpu = stalls.get(&cpu).into_iter().flatten();
        let clipped = of_cpu.map(|(from, to)| ((*from).max(begin), (*to).min(end)));
        clipped.filter(|(from, to)| from < to).collect()
    }
}

fn find(slice: &WindowSlice) -> FxHashMap<i32, Vec<(Ns, Ns)>> {
    let events = events(slice);
    let of_cpu = |(cpu, mut events): (i32, Vec<Ns>)| {
        events.sort_unstable();
        let silent = silent(slice, cpu, &events);
        let lengths: Vec<Ns> = silent.iter().map(|(from, to)| to - from).collect();
        let Some(tick) = Tick::of(&lengths) else {
            return (cpu, Vec::new());
        };
        let stalls = silent.into_iter().filter(|(from, to)| {
            tick.is_stall(to - from) && !slice.is_lossy(Some(cpu), (*from, *to))
        });
        // The CPU may have executed until its next tick was due.
        (
            cpu,
            stalls.map(|(from, to)| (from + tick.length, to)).collect(),
        )
    };
    events.into_iter().map(of_cpu).collect()
}

/// Times of all events of each CPU.
fn events(slice: &WindowSlice) -> FxHashMap<i32, Vec<Ns>> {
    let mut found: FxHashMap<i32, Vec<Ns>> = FxHashMap::default();
    for (cpu, ts) in slice.times_on_cpus() {
        found.entry(cpu).or_default().push(ts);
    }
    found
}

/// Silent times with one thread on the CPU that are long enough to be a tick.
fn silent(slice: &WindowSlice, cpu: i32, events: &[Ns]) -> Vec<(Ns, Ns)> {
    let shortest = (TICKS_NS[TICKS_NS.len() - 1] as f64 * (1.0 - TOLERANCE)) as Ns;
    let mut found = Vec::new();
    for ran in slice.ran_on(cpu, (slice.begin, slice.end)) {
        debug_assert!(
            ran.state == State::Running,
            "only running threads are on a CPU"
        );
        // Where an unfinished state ends is not an event.
        if ran.is_open || ran.end - ran.begin < shortest {
            continue;
        }
        let first = events.partition_point(|ts| *ts < ran.begin);
        let mut before = ran.begin;
        for ts in events[first..]
            .iter()
            .copied()
            .take_while(|ts| *ts <= ran.end)
        {
            if ts - before >= shortest {
                found.push((before, ts));
            }
            before = ts;
        }
        if ran.end - before >= shortest {
            found.push((before, ran.end));
        }
    }
    found
}

/// The timer tick of a CPU, as its events show it.
#[derive(Debug, Clone, Copy)]
struct Tick {
    length: Ns,
    /// Silent times of one tick or more.
    count: usize,
    /// Share of these without an event at the tick.
    unseen: f64,
}

impl Tick {
    fn of(silent: &[Ns]) -> Option<Self> {
        let is_one = |tick: Ns, length: Ns| (length - tick).abs() as f64 <= TOLERANCE * tick as f64;
        let seen = |tick: Ns| {
            silent
                .iter()
                .filter(|length| is_one(tick, **length))
                .count()
        };
        let length = TICKS_NS
            .into_iter()
            .max_by_key(|tick| (seen(*tick), *tick))?;
        let seen = seen(length);
        let longer = silent.iter().filter(|one| **one > length + length / 2);
        let longer = longer.count();
        let count = seen + longer;
        let unseen = longer as f64 / count.max(1) as f64;
        (seen >= SEEN_MIN && unseen <= UNSEEN_MAX).then_some(Self {
            length,
            count,
            unseen,
        })
    }

    /// Whether the CPU stood still in a silent time of this length.
    fn is_stall(&self, length: Ns) -> bool {
        let ticks = length as f64 / self.length as f64;
        // All ticks but the last of the silent time are unseen.
        let chance = self.count as f64 * self.unseen.powf(ticks.floor() - 1.0);
        length >= STALL_MIN_NS && ticks > STALL_TICKS && chance < CHANCE_MAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Ns = 1_000_000;

    #[test]
    fn a_silence_of_many_ticks_is_a_stall() {
        let mut silent = vec![4 * MS; 60];
        silent.push(167 * MS);
        let tick = Tick::of(&silent).expect("a tick");
        assert_eq!(tick.length, 4 * MS);
        assert!(tick.is_stall(167 * MS));
        assert!(!tick.is_stall(12 * MS), "three ticks");
    }

    #[test]
    fn unseen_ticks_are_no_stall() {
        // Every third tick leaves no event, so gaps of several ticks are usual.
        let mut silent = Vec::new();
        for _ in 0..40 {
            silent.extend([4 * MS, 4 * MS, 8 * MS]);
        }
        silent.extend([12 * MS, 16 * MS, 20 * MS]);
        let tick = Tick::of(&silent).expect("a tick");
        assert!(!tick.is_stall(20 * MS));
        assert!(tick.is_stall(400 * MS));
    }

    #[test]
    fn a_cpu_without_a_tick_shows_nothing() {
        // Silent for as long as a thread computes.
        let silent: Vec<Ns> = (1..80)
            .map(|place| place * 7 * MS + place * place * 1000)
            .collect();
        assert!(Tick::of(&silent).is_none());
        assert!(Tick::of(&[4 * MS; 5]).is_none(), "too few");
    }
}
