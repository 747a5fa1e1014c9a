//! Items of a lane: intervals, and sums of short ones.

/// An interval, in ns since the start of the recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Interval {
    pub(crate) begin: u64,
    pub(crate) end: u64,
    pub(crate) value: i32,
    pub(crate) mix: Mix,
}

/// How the time of an interval is divided among the four groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mix {
    /// All in one group.
    Of(u8),
    /// Parts of 255 in the second and third group; the rest is in the first.
    Parts(u8, u8),
}

/// Denominator of parts of intervals and shares of cells.
pub(crate) const WHOLE: u64 = 255;

/// Time in each group, in ns / [`WHOLE`], so that parts of intervals are integers.
pub(crate) type Times = [u64; 4];

impl Mix {
    /// Adds `length` ns of the interval. Sums saturate at about two years.
    #[inline]
    pub(crate) fn add(self, length: u64, times: &mut Times) {
        let mut add = |group: usize, parts: u64| {
            times[group] = times[group].saturating_add(length.saturating_mul(parts));
        };
        match self {
            Mix::Of(group) => add(usize::from(group & 3), WHOLE),
            Mix::Parts(second, third) => {
                let second = u64::from(second);
                let third = u64::from(third).min(WHOLE - second);
                add(1, second);
                add(2, third);
                add(0, WHOLE - second - third);
            }
        }
    }
}

/// Sum of the intervals of one cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sum {
    pub(crate) level: u8,
    pub(crate) cell: u64,
    pub(crate) times: Times,
    pub(crate) longest: Longest,
    pub(crate) count: u64,
}

/// The longest interval; among equally long ones that with the smallest value, so that the result
/// does not depend on their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Longest {
    pub(crate) length: u64,
    pub(crate) value: i32,
}

impl Longest {
    #[inline]
    pub(crate) fn update(&mut self, other: Longest) {
        if other.length > self.length || (other.length == self.length && other.value < self.value) {
            *self = other;
        }
    }
}

impl Interval {
    #[inline]
    pub(crate) fn longest(&self) -> Longest {
        Longest {
            length: self.end - self.begin,
            value: self.value,
        }
    }
}

impl Sum {
    pub(crate) fn none(level: u8, cell: u64) -> Self {
        Self {
            level,
            cell,
            times: [0; 4],
            longest: Longest {
                length: 0,
                value: i32::MAX,
            },
            count: 0,
        }
    }

    pub(crate) fn add_interval(&mut self, interval: &Interval) {
        interval
            .mix
            .add(interval.end - interval.begin, &mut self.times);
        self.longest.update(interval.longest());
        self.count += 1;
    }

    pub(crate) fn add_sum(&mut self, sum: &Sum) {
        for (time, more) in self.times.iter_mut().zip(sum.times) {
            *time = time.saturating_add(more);
        }
        self.longest.update(sum.longest);
        self.count = self.count.saturating_add(sum.count);
    }
}

/// Shares of a cell in parts of 255, whose sum is at most 255. Each is off by less than one part.
pub(crate) fn shares(times: &Times, cell_ns: u64) -> [u8; 4] {
    let cell = i128::from(cell_ns.max(1));
    let whole = i128::from(WHOLE);
    let times = times.map(i128::from);
    let mut shares = times.map(|time| ((time + cell / 2) / cell).min(whole));
    while shares.iter().sum::<i128>() > whole {
        // Reduce the share that rounding raised most.
        let added = |group: &usize| shares[*group] * cell - times[*group];
        let most = (0..4).filter(|group| shares[*group] > 0).max_by_key(added);
        shares[most.unwrap_or(0)] -= 1;
    }
    shares.map(|share| share as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_no_more_than_the_cell() {
        let check = |times, cell, expected| assert_eq!(shares(&times, cell), expected);
        check([0; 4], 0, [0; 4]);
        check([255, 0, 0, 0], 1, [255, 0, 0, 0]);
        check([51, 51, 102, 51], 1, [51, 51, 102, 51]);
        // A quarter each is 63.75: three are rounded up, one down.
        check([255; 4], 4, [64, 64, 64, 63]);
        check([u64::MAX, u64::MAX, 0, 0], 1, [128, 127, 0, 0]);
        check([0, 0, 127, 0], 255, [0; 4]);
        check([0, 0, 128, 0], 255, [0, 0, 1, 0]);
    }
}
