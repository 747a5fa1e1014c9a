//! Times in which a sampler that goes round all threads got no sample of one: what is known of them.
//!
//! A sampler that sends signals gets none from a thread that waits where no signal reaches it (uninterruptible):
//! the signal is delivered when the call ends, and the stack taken then shows the call. So the sample *after* a
//! gap names what took the time; the one before tells nothing.
//!
//! A gap in time alone means little, as samplers are late on busy machines. It is measured in rounds of the
//! sampler (`Cycles`): who misses four was not reached.

use std::cmp::Reverse;

use whyslow_model::Ns;
use whyslow_model::sort::IndexSort;

use super::cycles::Cycles;
use super::leaf::{Leaf, leaf};
use super::{Point, Profile, SampleKind};

/// Rounds that a thread must have missed.
const CYCLES_MIN: f64 = 4.0;
/// A gap is as long as this, and as three intervals.
const GAP_MIN: Ns = 40_000_000;
const INTERVALS_MIN: i64 = 3;
/// Samples of one stack that are nearer than this share of an interval are signals that had queued.
const BURST_SHARE: i64 = 10;
/// No sample of any thread for so long: the process was stopped, or the sampler was.
const STALL_MIN: Ns = 100_000_000;
const STALL_INTERVALS: i64 = 5;
const STALL_THREADS: u32 = 8;
/// Threads lose at least this share of rounds by chance.
const LOSS_MIN: f64 = 0.05;
/// A gap of other than file calls is told of if chance makes it more seldom than this.
const CHANCE_MAX: f64 = 1e-4;
/// Gaps of different threads belong together if they share this part of the shorter one.
const OVERLAP: f64 = 0.5;

/// What a gap is taken for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum GapClass {
    /// The thread waited in the kernel where no signal reached it.
    KernelWait,
    /// The same while it touched memory: a page had to be read, likely.
    PageFault,
    /// The sampler missed it, or its signal came late: the call it is in ends when a signal comes.
    SamplerLate,
    /// It computes, and got no CPU, or no signal.
    CpuStarved,
    /// No thread was sampled: the process was stopped, or the sampler.
    ProcessStopped,
}

impl GapClass {
    /// As the column `sample_gap.class` has it.
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

/// A time without samples of one thread, or of all.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Gap {
    /// The last sample before it.
    pub ts: Ns,
    /// The first sample after it.
    pub ts_end: Ns,
    /// None if it is one of all threads.
    pub thread: Option<u32>,
    /// What made it.
    pub class: GapClass,
    /// Stacks of the samples before and after it.
    pub before: u32,
    /// Stack of the first sample after it.
    pub after: u32,
    /// Rounds that the sampler made meanwhile.
    pub cycles: f64,
    /// Samples that came at once when it ended: signals had queued.
    pub queued: u32,
    /// Gaps of one time, of several threads.
    pub group: Option<u32>,
}

impl Gap {
    /// Length in ns.
    pub fn dur(&self) -> Ns {
        self.ts_end - self.ts
    }
}

/// What is made of the points of a wall profile.
#[derive(Debug, Default)]
pub struct Gaps {
    /// By begin.
    pub gaps: Vec<Gap>,
    /// When the time begins that each point stands for; it ends with the point.
    pub since: Vec<Ns>,
    /// Points of a burst that another one stands for.
    pub is_queued: Vec<bool>,
}

/// Why there are none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Off {
    /// The sampler does not go round all threads.
    NotWall,
    /// Nobody tells how often it should.
    NoInterval,
}

/// Finds the gaps of a sorted profile. Samples that came at once become one of its points, which has their
/// number and the time from the first to the last.
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
    // Both look at all points, which takes longer than what they do with them. Any sample is a sign of life;
    // what another sampler took of whoever computes is no part of a round.
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

/// What is known once signals that were delivered at once are one point.
struct Collapsed {
    is_queued: Vec<bool>,
    /// First and last moment of each thread that wall samples show.
    lives: Vec<Option<(Ns, Ns)>>,
    /// Ends of batches.
    ends: Vec<Ns>,
}

/// Makes one point of signals that were delivered at once: the first, with their number.
struct Collapsing {
    interval: Ns,
    /// Of each thread the first of those that may be one, and the last as it was read.
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

    /// Nothing is added to this point any more.
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

/// Times without any sample.
struct Stalls {
    min: Ns,
    /// Ends of batches are signs of life, too.
    ends: std::iter::Peekable<std::vec::IntoIter<Ns>>,
    last: Option<Ns>,
    /// Begin and end.
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

/// What is known of a thread as its samples are gone through.
#[derive(Clone, Copy, Default)]
struct Seen {
    /// Place of its last sample, and rounds up to the end of that.
    last: Option<(usize, f64)>,
    /// Rounds that it missed one at a time, and times between its samples.
    missed: u32,
    all: u32,
}

impl Seen {
    /// Share of its rounds that a thread misses one at a time.
    fn loss(&self) -> f64 {
        (f64::from(self.missed) / f64::from(self.all.max(1))).clamp(LOSS_MIN, 0.5)
    }
}

impl Finding<'_> {
    fn of_all(&self, is_queued: Vec<bool>) -> Gaps {
        let mut seen = vec![Seen::default(); self.profile.threads.len()];
        let mut since: Vec<Ns> = Vec::with_capacity(self.points.len());
        // Samples with the one before: how much a thread misses by chance is known only at the end.
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
                // What is left belongs to the sample itself.
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

    /// A gap is at least so long.
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

    /// How long of this time nothing was sampled at all.
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

/// Numbers gaps of several threads at one time.
fn group(gaps: &mut [Gap]) {
    let mut next = 0;
    // Those that may still overlap what follows, the one that ends last on top of the others.
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
