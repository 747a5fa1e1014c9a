//! What lies in a lane: intervals as they were, and sums of short ones.

/// An interval, in ns since the begin of the recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Interval {
    pub(crate) begin: u64,
    pub(crate) end: u64,
    pub(crate) value: i32,
    pub(crate) mix: Mix,
}

/// How an interval's time is divided among the four groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mix {
    /// All of it is of one group.
    Of(u8),
    /// Parts of 255 that are of the second and third group; the first has the rest.
    Parts(u8, u8),
}

/// A whole, in parts of intervals and shares of cells.
pub(crate) const WHOLE: u64 = 255;

/// Time in each group, in ns / [`WHOLE`]: then parts of intervals are whole numbers.
pub(crate) type Times = [u64; 4];

impl Mix {
    /// Adds a piece of that length of the interval. What is longer than two years is that long.
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

/// Intervals of one cell that are told together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sum {
    pub(crate) level: u8,
    pub(crate) cell: u64,
    pub(crate) times: Times,
    pub(crate) longest: Longest,
    pub(crate) count: u64,
}

/// The longest interval, the one of the smallest value where several are as long: so it does not
/// matter in which order they come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Longest {
    pub(crate) length: u64,
    pub(crate) value: i32,
}

impl Longest {
    #[inline]
    pub(crate) fn meet(&mut self, other: Longest) {
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
        self.longest.meet(interval.longest());
        self.count += 1;
    }

    pub(crate) fn add_sum(&mut self, sum: &Sum) {
        for (time, more) in self.times.iter_mut().zip(sum.times) {
            *time = time.saturating_add(more);
        }
        self.longest.meet(sum.longest);
        self.count = self.count.saturating_add(sum.count);
    }
}

/// Shares of 255 of a cell, together no more than that. Each is less than one from the true one.
pub(crate) fn shares(times: &Times, cell_ns: u64) -> [u8; 4] {
    let cell = i128::from(cell_ns.max(1));
    let whole = i128::from(WHOLE);
    let times = times.map(i128::from);
    let mut shares = times.map(|time| ((time + cell / 2) / cell).min(whole));
    while shares.iter().sum::<i128>() > whole {
        // The one that rounding has added most to.
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
        // Each a quarter: of 63.75, three are rounded up, and one down.
        check([255; 4], 4, [64, 64, 64, 63]);
        check([u64::MAX, u64::MAX, 0, 0], 1, [128, 127, 0, 0]);
        check([0, 0, 127, 0], 255, [0; 4]);
        check([0, 0, 128, 0], 255, [0, 0, 1, 0]);
    }
}
