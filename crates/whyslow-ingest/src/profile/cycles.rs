//! Estimates the sampler's rounds from the samples: a thread that misses several rounds was not
//! reached, while a late sampler misses all threads equally.

use whyslow_model::Ns;

use super::Point;

/// Resolution: parts per sampling interval.
const PARTS: i64 = 4;
/// Maximum number of parts; longer recordings have longer parts.
const PARTS_MAX: i64 = 1 << 22;

/// Number of sampler rounds since the start, at any time.
pub(super) struct Cycles {
    begin: Ns,
    width: Ns,
    /// Rounds at the start of each part.
    rounds: Vec<f64>,
    /// Threads alive in each part.
    alive: Vec<u32>,
}

impl Cycles {
    /// `points` are sorted by time; `lives` are the first and last point of each thread.
    pub(super) fn of<'p>(
        points: impl Iterator<Item = &'p Point>,
        lives: &[Option<(Ns, Ns)>],
        interval: Ns,
    ) -> Option<Self> {
        let mut points = points.peekable();
        let begin = points.peek()?.ts;
        let end = lives
            .iter()
            .flatten()
            .map(|(_, last)| *last)
            .max()?
            .max(begin);
        let length = end.saturating_sub(begin).saturating_add(1);
        let width = (interval / PARTS).max(length / PARTS_MAX).max(1);
        let parts = usize::try_from(length / width + 2).ok()?;
        let mut cycles = Self {
            begin,
            width,
            rounds: Vec::new(),
            alive: Vec::new(),
        };
        let mut alive = vec![0_i64; parts + 1];
        for (first, last) in lives.iter().flatten() {
            alive[cycles.part(*first, parts)] += 1;
            alive[cycles.part(*last, parts) + 1] -= 1;
        }
        let mut now = 0;
        cycles.alive = alive[..parts]
            .iter()
            .map(|change| {
                now += change;
                now.max(0) as u32
            })
            .collect();
        cycles.rounds = cycles.count(points, parts);
        Some(cycles)
    }

    fn count<'p>(&self, points: impl Iterator<Item = &'p Point>, parts: usize) -> Vec<f64> {
        // Single samples count at their time; batches are spread evenly, as changes of a rate.
        let (mut single, mut rate) = (vec![0.0_f64; parts], vec![0.0_f64; parts + 1]);
        for point in points {
            let first = self.part(point.ts, parts);
            if point.credits == 1 || point.span <= 0 {
                single[first] += 1.0;
                continue;
            }
            let last = self.part(point.ts.saturating_add(point.span), parts);
            let each = f64::from(point.credits) / (last - first + 1) as f64;
            rate[first] += each;
            rate[last + 1] -= each;
        }
        let (mut total, mut now) = (0.0, 0.0);
        let mut rounds = Vec::with_capacity(parts);
        for part in 0..parts {
            rounds.push(total);
            now += rate[part];
            let alive = f64::from(self.alive[part].max(1));
            total += (single[part] + now.max(0.0)) / alive;
        }
        rounds
    }

    fn part(&self, ts: Ns, parts: usize) -> usize {
        let part = ts.saturating_sub(self.begin).max(0) / self.width;
        usize::try_from(part).unwrap_or(usize::MAX).min(parts - 1)
    }

    /// Rounds between two times.
    pub(super) fn between(&self, from: Ns, to: Ns) -> f64 {
        (self.at(to) - self.at(from)).max(0.0)
    }

    /// Rounds since the start.
    pub(super) fn at(&self, ts: Ns) -> f64 {
        let part = self.part(ts, self.rounds.len());
        let begin = self.rounds[part];
        let next = self.rounds.get(part + 1).copied().unwrap_or(begin);
        let since = ts.saturating_sub(self.begin).max(0) - part as i64 * self.width;
        let share = (since as f64 / self.width as f64).clamp(0.0, 1.0);
        begin + (next - begin) * share
    }

    pub(super) fn alive_at(&self, ts: Ns) -> u32 {
        self.alive[self.part(ts, self.alive.len())]
    }
}
