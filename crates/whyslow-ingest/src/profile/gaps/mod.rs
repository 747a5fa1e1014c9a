//! Times in which a sampler that goes round all threads got no sample of one: what is known of them.
//!
//! A sampler that sends signals gets none from a thread that waits where no signal reaches it (uninterruptible):
//! the signal is delivered when the call ends, and the stack taken then shows the call. So the sample *after* a
//! gap names what took the time; the one before tells nothing.
//!
//! A gap in time alone means little, as samplers are late on busy machines. It is measured in rounds of the
//! sampler ([`Cycles`]): who misses four was not reached.

use std::cmp::Reverse;

use whyslow_model::Ns;

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

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Gap {
    pub ts: Ns,
    pub ts_end: Ns,
    /// None if it is one of all threads.
    pub thread: Option<u32>,
    pub class: GapClass,
    /// Stacks of the samples before and after it.
    pub before: u32,
    pub after: u32,
    /// Rounds that the sampler made meanwhile.
    pub cycles: f64,
    /// Samples that came at once when it ended: signals had queued.
    pub queued: u32,
    /// Gaps of one time, of several threads.
    pub group: Option<u32>,
}

impl Gap {
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
    let by_thread = by_thread(profile);
    let is_queued = collapse(&mut profile.points, &by_thread, interval);
    let points = &profile.points;
    let lives: Vec<Option<(Ns, Ns)>> = by_thread
        .iter()
        .map(|of| {
            let first = points.get(*of.first()? as usize)?.ts;
            let ends = of.iter().map(|at| end(&points[*at as usize]));
            Some((first, ends.max()?))
        })
        .collect();
    let taken = || {
        let all = points.iter().zip(&is_queued);
        all.filter(|(_, queued)| !**queued).map(|(point, _)| point)
    };
    let Some(cycles) = Cycles::of(taken(), &lives, interval) else {
        return Err(Off::NotWall);
    };
    let stalls = stalls(taken(), &cycles, interval);
    let mut out = Gaps {
        gaps: Vec::new(),
        since: points.iter().map(|point| point.ts).collect(),
        is_queued,
    };
    let finding = Finding {
        profile,
        points,
        cycles: &cycles,
        stalls: &stalls,
        interval,
    };
    for (thread, of) in by_thread.iter().enumerate() {
        finding.of_thread(thread as u32, of, &mut out);
    }
    out.gaps.extend(stalls);
    out.gaps.sort_by(|one, other| {
        (one.ts, one.thread, one.ts_end).cmp(&(other.ts, other.thread, other.ts_end))
    });
    group(&mut out.gaps);
    Ok(out)
}

fn end(point: &Point) -> Ns {
    point.ts.saturating_add(point.span)
}

/// Places of the wall samples of each thread, in order of time.
fn by_thread(profile: &Profile) -> Vec<Vec<u32>> {
    let mut of = vec![Vec::new(); profile.threads.len()];
    for (at, point) in (0..).zip(&profile.points) {
        if point.kind == SampleKind::Wall {
            of[point.thread as usize].push(at);
        }
    }
    of
}

/// Makes one point of signals that were delivered at once: the first, with their number.
fn collapse(points: &mut [Point], by_thread: &[Vec<u32>], interval: Ns) -> Vec<bool> {
    let mut is_queued = vec![false; points.len()];
    for of in by_thread {
        let Some(mut first) = of.first().map(|at| *at as usize) else {
            continue;
        };
        let mut last = points[first];
        for at in of.iter().skip(1).map(|at| *at as usize) {
            let point = points[at];
            let is_near = point.ts.saturating_sub(end(&last)) < interval / BURST_SHARE;
            let is_same = point.stack == last.stack && point.credits == 1 && last.credits == 1;
            if is_near && is_same && !points[first].is_assumed {
                is_queued[at] = true;
                points[first].credits += 1;
                points[first].span = point.ts.saturating_sub(points[first].ts);
            } else {
                first = at;
            }
            last = point;
        }
    }
    is_queued
}

/// Times without any sample.
fn stalls<'p>(
    points: impl Iterator<Item = &'p Point> + Clone,
    cycles: &Cycles,
    interval: Ns,
) -> Vec<Gap> {
    let min = STALL_MIN.max(interval.saturating_mul(STALL_INTERVALS));
    // Ends of batches are signs of life, too.
    let mut ends: Vec<Ns> = points
        .clone()
        .filter(|point| point.span > 0)
        .map(end)
        .collect();
    ends.sort_unstable();
    let mut ends = ends.into_iter().peekable();
    let mut stalls = Vec::new();
    let mut last: Option<Ns> = None;
    let mut sign = |ts: Ns| {
        if let Some(last) = last
            && ts.saturating_sub(last) > min
            && cycles.alive_at(last) >= STALL_THREADS
        {
            stalls.push(Gap {
                ts: last,
                ts_end: ts,
                thread: None,
                class: GapClass::ProcessStopped,
                before: super::NO_STACK,
                after: super::NO_STACK,
                cycles: 0.0,
                queued: 0,
                group: None,
            });
        }
        last = Some(last.map_or(ts, |last| last.max(ts)));
    };
    for point in points {
        while let Some(end) = ends.next_if(|end| *end <= point.ts) {
            sign(end);
        }
        sign(point.ts);
    }
    ends.for_each(sign);
    stalls
}

struct Finding<'p> {
    profile: &'p Profile,
    points: &'p [Point],
    cycles: &'p Cycles,
    stalls: &'p [Gap],
    interval: Ns,
}

impl Finding<'_> {
    fn of_thread(&self, thread: u32, of: &[u32], out: &mut Gaps) {
        let own: Vec<usize> = of
            .iter()
            .map(|at| *at as usize)
            .filter(|at| !out.is_queued[*at])
            .collect();
        let Some(first) = own.first() else { return };
        out.since[*first] = self.points[*first].ts.saturating_sub(self.interval);
        let loss = self.loss(&own);
        for pair in own.windows(2) {
            let (before, after) = (&self.points[pair[0]], &self.points[pair[1]]);
            let from = end(before);
            out.since[pair[1]] = from.min(after.ts);
            if let Some(gap) = self.gap(thread, (before, after), loss) {
                // What is left belongs to the sample itself.
                out.since[pair[1]] = gap.ts_end;
                out.gaps.push(gap);
            }
        }
    }

    /// Share of its rounds that a thread misses one at a time.
    fn loss(&self, own: &[usize]) -> f64 {
        let (mut missed, mut all) = (0_u32, 0_u32);
        for pair in own.windows(2) {
            let cycles = self
                .cycles
                .between(end(&self.points[pair[0]]), self.points[pair[1]].ts);
            all += 1;
            missed += u32::from((1.5..2.5).contains(&cycles));
        }
        (f64::from(missed) / f64::from(all.max(1))).clamp(LOSS_MIN, 0.5)
    }

    fn gap(&self, thread: u32, (before, after): (&Point, &Point), loss: f64) -> Option<Gap> {
        let (from, to) = (end(before), after.ts);
        let dur = to.saturating_sub(from);
        let min = GAP_MIN.max(self.interval.saturating_mul(INTERVALS_MIN));
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
