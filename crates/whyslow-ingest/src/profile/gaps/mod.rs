//! Sampling gaps: times in which a sampler that visits all threads got no sample of a thread.
//!
//! A sampler that uses signals gets no sample from a thread in an uninterruptible wait: the signal
//! is delivered when the call ends, and the stack recorded then shows the call. So the sample
//! *after* a gap identifies the call that took the time; the sample before it does not.
//!
//! A gap in time alone means little, because samplers are late on busy machines. It is therefore
//! measured in rounds of the sampler (`Cycles`): a thread that misses four rounds was not reached.

use std::cmp::Reverse;

use whyslow_model::Ns;
use whyslow_model::sort::IndexSort;

use super::cycles::Cycles;
use super::leaf::{Leaf, leaf};
use super::{Point, Profile, SampleKind};

/// Minimum number of rounds that a thread must have missed.
const CYCLES_MIN: f64 = 4.0;
/// Minimum length of a gap; it must also span three intervals.
const GAP_MIN: Ns = 40_000_000;
const INTERVALS_MIN: i64 = 3;
/// Samples of one stack that are closer together than this fraction of an interval are queued
/// signals.
const BURST_SHARE: i64 = 10;
/// A time without samples of any thread of this length means that the process or the sampler was
/// stopped.
const STALL_MIN: Ns = 100_000_000;
const STALL_INTERVALS: i64 = 5;
const STALL_THREADS: u32 = 8;
/// Assumed minimum fraction of rounds that threads miss by chance.
const LOSS_MIN: f64 = 0.05;
/// A gap that is not in a file call is reported only if its probability by chance is below this.
const CHANCE_MAX: f64 = 1e-4;
/// Gaps of different threads form a group if they share this fraction of the shorter one.
const OVERLAP: f64 = 0.5;

/// Class of a gap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum GapClass {
    /// The thread was in an uninterruptible wait in the kernel.
    KernelWait,
    /// Likewise, but while accessing memory: probably a page had to be read.
    PageFault,
    /// The sampler missed it, or its signal was late: the call is one that a signal interrupts.
    SamplerLate,
    /// It was computing, and got no CPU time or no signal.
    CpuStarved,
    /// No thread was sampled: the process or the sampler was stopped.
    ProcessStopped,
}

impl GapClass {
    /// Value of the column `sample_gap.class`.
    pub fn name(self) -> &'static str {
        match self {
            Self::KernelWait => "kernel_wait",
            Self::PageFault => "page_fault",
            Self::SamplerLate => "sampler_late",
            Self::CpuStarved => "cpu_starved",
            Self::ProcessStopped => "process_stopped",
        }
    }

    fn of(leaf: Leaf) -> Self {
        match leaf {
            Leaf::FileCall => Self::KernelWait,
            Leaf::Memory => Self::PageFault,
            Leaf::Interruptible => Self::SamplerLate,
            Leaf::Code => Self::CpuStarved,
        }
    }
}

/// A sampling gap of one thread, or of all threads.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Gap {
    /// Time of the last sample before it.
    pub ts: Ns,
    /// Time of the first sample after it.
    pub ts_end: Ns,
    /// `None` for a gap of all threads.
    pub thread: Option<u32>,
    /// Class.
    pub class: GapClass,
    /// Stack of the last sample before it.
    pub before: u32,
    /// Stack of the first sample after it.
    pub after: u32,
    /// Rounds that the sampler completed during the gap.
    pub cycles: f64,
    /// Samples that arrived together at its end, because signals had been queued.
    pub queued: u32,
    /// Group of gaps of several threads at the same time.
    pub group: Option<u32>,
}

impl Gap {
    /// Length in ns.
    pub fn dur(&self) -> Ns {
        self.ts_end - self.ts
    }
}

/// Result of the analysis of a wall-clock profile.
#[derive(Debug, Default)]
pub struct Gaps {
    /// Gaps, sorted by start.
    pub gaps: Vec<Gap>,
    /// Start of the time that each point stands for; the point is its end.
    pub since: Vec<Ns>,
    /// Points of a burst that are represented by another point.
    pub is_queued: Vec<bool>,
}

/// Why gaps cannot be found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Off {
    /// The sampler does not visit all threads.
    NotWall,
    /// The sampling interval is unknown.
    NoInterval,
}

/// Finds the gaps of a sorted profile. Merges samples that arrived together into one of its points,
/// which gets their number and the time from the first to the last.
pub fn find(profile: &mut Profile) -> Result<Gaps, Off> {
    if !profile
        .points
        .iter()
        .any(|point| point.kind == SampleKind::Wall)
    {
        return Err(Off::NotWall);
    }
    let interval = profile
        .interval
        .filter(|ns| *ns > 0)
        .ok_or(Off::NoInterval)?;
    let Collapsed {
        is_queued,
        lives,
        ends,
    } = Collapsing::of(profile.threads.len(), interval).all(&mut profile.points);
    let points = &profile.points;
    let mut stalls = Stalls::new(ends, interval);
    let taken = points.iter().zip(&is_queued);
    let taken = taken.filter(|(_, queued)| !**queued);
    // Both iterate over all points in one pass, because the iteration dominates the cost. Any
    // sample is a sign of life; samples of a separate CPU sampler are not part of a round.
    let taken = taken.filter_map(|(point, _)| {
        stalls.point(point.ts);
        (point.kind == SampleKind::Wall).then_some(point)
    });
    let Some(cycles) = Cycles::of(taken, &lives, interval) else {
        return Err(Off::NotWall);
    };
    let stalls = stalls.finish(&cycles);
    let finding = Finding {
        profile,
        points,
        cycles: &cycles,
        stalls: &stalls,
        interval,
    };
    let mut out = finding.of_all(is_queued);
    out.gaps.extend(stalls);
    out.gaps.index_sort_by(|one, other| {
        (one.ts, one.thread, one.ts_end).cmp(&(other.ts, other.thread, other.ts_end))
    });
    group(&mut out.gaps);
    Ok(out)
}

fn end(point: &Point) -> Ns {
    point.ts.saturating_add(point.span)
}

/// State after merging signals that were delivered together.
struct Collapsed {
    is_queued: Vec<bool>,
    /// First and last wall-clock sample of each thread.
    lives: Vec<Option<(Ns, Ns)>>,
    /// Ends of batches.
    ends: Vec<Ns>,
}

/// Merges signals that were delivered together into the first point.
struct Collapsing {
    interval: Ns,
    /// For each thread, the first point of a possible batch, and the last point as it was read.
    of: Vec<Option<(usize, Point)>>,
    out: Collapsed,
}

impl Collapsing {
    fn of(threads: usize, interval: Ns) -> Self {
        Self {
            interval,
            of: vec![None; threads],
            out: Collapsed {
                is_queued: Vec::new(),
                lives: vec![None; threads],
                ends: Vec::new(),
            },
        }
    }

    fn all(mut self, points: &mut [Point]) -> Collapsed {
        self.out.is_queued = vec![false; points.len()];
        for at in 0..points.len() {
            if points[at].kind == SampleKind::Wall {
                self.point(points, at);
            } else if points[at].span > 0 {
                self.out.ends.push(end(&points[at]));
            }
        }
        for first in std::mem::take(&mut self.of).into_iter().flatten() {
            self.settle(&points[first.0]);
        }
        self.out
    }

    #[inline]
    fn point(&mut self, points: &mut [Point], at: usize) {
        let point = points[at];
        let thread = point.thread as usize;
        let Some((first, last)) = &mut self.of[thread] else {
            self.of[thread] = Some((at, point));
            self.out.lives[thread] = Some((point.ts, Ns::MIN));
            return;
        };
        let is_near = point.ts.saturating_sub(end(last)) < self.interval / BURST_SHARE;
        let is_same = point.stack == last.stack && point.credits == 1 && last.credits == 1;
        *last = point;
        if is_near && is_same && !points[*first].is_assumed {
            self.out.is_queued[at] = true;
            let first = &mut points[*first];
            first.credits += 1;
            first.span = point.ts.saturating_sub(first.ts);
            self.live_until(thread, end(&point));
        } else {
            let before = std::mem::replace(first, at);
            self.settle(&points[before]);
        }
    }

    /// Completes a point to which no more samples are added.
    #[inline]
    fn settle(&mut self, point: &Point) {
        let end = end(point);
        if point.span > 0 {
            self.out.ends.push(end);
        }
        self.live_until(point.thread as usize, end);
    }

    #[inline]
    fn live_until(&mut self, thread: usize, end: Ns) {
        if let Some((_, last)) = &mut self.out.lives[thread] {
            *last = end.max(*last);
        }
    }
}

/// Finds times without any sample.
struct Stalls {
    min: Ns,
    /// Ends of batches also count as signs of life.
    ends: std::iter::Peekable<std::vec::IntoIter<Ns>>,
    last: Option<Ns>,
    /// Start and end.
    found: Vec<(Ns, Ns)>,
}

impl Stalls {
    fn new(mut ends: Vec<Ns>, interval: Ns) -> Self {
        ends.sort_unstable();
        Self {
            min: STALL_MIN.max(interval.saturating_mul(STALL_INTERVALS)),
            ends: ends.into_iter().peekable(),
            last: None,
            found: Vec::new(),
        }
    }

    #[inline]
    fn point(&mut self, ts: Ns) {
        while let Some(end) = self.ends.next_if(|end| *end <= ts) {
            self.sign(end);
        }
        self.sign(ts);
    }

    #[inline]
    fn sign(&mut self, ts: Ns) {
        if let Some(last) = self.last
            && ts.saturating_sub(last) > self.min
        {
            self.found.push((last, ts));
        }
        self.last = self.last.max(Some(ts));
    }

    fn finish(mut self, cycles: &Cycles) -> Vec<Gap> {
        while let Some(end) = self.ends.next() {
            self.sign(end);
        }
        let found = self.found.into_iter();
        let found = found.filter(|(begin, _)| cycles.alive_at(*begin) >= STALL_THREADS);
        let gaps = found.map(|(ts, ts_end)| Gap {
            ts,
            ts_end,
            thread: None,
            class: GapClass::ProcessStopped,
            before: super::NO_STACK,
            after: super::NO_STACK,
            cycles: 0.0,
            queued: 0,
            group: None,
        });
        gaps.collect()
    }
}

struct Finding<'p> {
    profile: &'p Profile,
    points: &'p [Point],
    cycles: &'p Cycles,
    stalls: &'p [Gap],
    interval: Ns,
}

/// State of a thread while its samples are processed.
#[derive(Clone, Copy, Default)]
struct Seen {
    /// Index of its last sample, and the rounds up to the end of that sample.
    last: Option<(usize, f64)>,
    /// Number of single missed rounds, and of intervals between its samples.
    missed: u32,
    all: u32,
}

impl Seen {
    /// Fraction of its rounds that a thread misses one at a time.
    fn loss(&self) -> f64 {
        (f64::from(self.missed) / f64::from(self.all.max(1))).clamp(LOSS_MIN, 0.5)
    }
}

impl Finding<'_> {
    fn of_all(&self, is_queued: Vec<bool>) -> Gaps {
        let mut seen = vec![Seen::default(); self.profile.threads.len()];
        let mut since: Vec<Ns> = Vec::with_capacity(self.points.len());
        // Pairs of consecutive samples; the loss rate of a thread is known only at the end.
        let mut long: Vec<(usize, usize)> = Vec::new();
        for (at, (point, queued)) in self.points.iter().zip(&is_queued).enumerate() {
            if point.kind != SampleKind::Wall || *queued {
                since.push(point.ts);
                continue;
            }
            let of = &mut seen[point.thread as usize];
            let rounds = self.cycles.at(point.ts);
            if let Some((before, rounds_before)) = of.last {
                let from = end(&self.points[before]);
                of.all += 1;
                let missed = (rounds - rounds_before).max(0.0);
                of.missed += u32::from((1.5..2.5).contains(&missed));
                since.push(from.min(point.ts));
                if point.ts.saturating_sub(from) >= self.min() {
                    long.push((before, at));
                }
            } else {
                since.push(point.ts.saturating_sub(self.interval));
            }
            let until = end(point);
            let rounds = if until == point.ts {
                rounds
            } else {
                self.cycles.at(until)
            };
            of.last = Some((at, rounds));
        }
        let mut gaps = Vec::new();
        for (before, after) in long {
            let pair = (&self.points[before], &self.points[after]);
            let loss = seen[pair.1.thread as usize].loss();
            if let Some(gap) = self.gap(pair.1.thread, pair, loss) {
                // The rest belongs to the sample itself.
                since[after] = gap.ts_end;
                gaps.push(gap);
            }
        }
        Gaps {
            gaps,
            since,
            is_queued,
        }
    }

    /// Minimum length of a gap.
    fn min(&self) -> Ns {
        GAP_MIN.max(self.interval.saturating_mul(INTERVALS_MIN))
    }

    fn gap(&self, thread: u32, (before, after): (&Point, &Point), loss: f64) -> Option<Gap> {
        let (from, to) = (end(before), after.ts);
        let dur = to.saturating_sub(from);
        let min = self.min();
        if dur < min || before.is_assumed && after.is_assumed {
            return None;
        }
        let stopped = self.stopped(from, to);
        let left = dur.saturating_sub(stopped);
        if left < min {
            return None;
        }
        let cycles = self.cycles.between(from, to) * left as f64 / dur as f64;
        if cycles < CYCLES_MIN {
            return None;
        }
        let class = GapClass::of(leaf(self.profile.frames_of(after.stack)));
        let chance = loss.powf(cycles - 1.0);
        if chance >= CHANCE_MAX && class != GapClass::KernelWait {
            return None;
        }
        Some(Gap {
            ts: from,
            ts_end: to.saturating_sub(self.interval.min(dur)).max(from),
            thread: Some(thread),
            class,
            before: before.stack,
            after: after.stack,
            cycles,
            queued: if after.is_assumed {
                0
            } else {
                after.credits - 1
            },
            group: None,
        })
    }

    /// Part of this time in which no thread was sampled.
    fn stopped(&self, from: Ns, to: Ns) -> Ns {
        let first = self.stalls.partition_point(|stall| stall.ts_end <= from);
        let within = self.stalls[first..]
            .iter()
            .take_while(|stall| stall.ts < to);
        within
            .map(|stall| stall.ts_end.min(to) - stall.ts.max(from))
            .sum()
    }
}

/// Numbers groups of simultaneous gaps of several threads.
fn group(gaps: &mut [Gap]) {
    let mut next = 0;
    // Gaps that may overlap following ones; the one that ends last is on top.
    let mut open: Vec<usize> = Vec::new();
    for at in 0..gaps.len() {
        let gap = gaps[at];
        if gap.thread.is_none() || !matches!(gap.class, GapClass::KernelWait | GapClass::PageFault)
        {
            continue;
        }
        open.retain(|other| gaps[*other].ts_end > gap.ts);
        let shares = |other: &usize| {
            let other = &gaps[*other];
            let overlap = gap.ts_end.min(other.ts_end) - gap.ts.max(other.ts);
            let shorter = gap.dur().min(other.dur());
            other.thread != gap.thread && overlap as f64 >= OVERLAP * shorter as f64
        };
        let best = open.iter().copied().filter(shares);
        let best = best.min_by_key(|other| {
            let other = &gaps[*other];
            ((other.ts_end - gap.ts_end).abs(), Reverse(other.dur()))
        });
        if let Some(other) = best {
            let group = gaps[other].group.unwrap_or_else(|| {
                next += 1;
                next
            });
            gaps[other].group = Some(group);
            gaps[at].group = Some(group);
        }
        open.push(at);
    }
}

#[cfg(test)]
mod tests;
