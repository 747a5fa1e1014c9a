//! Applies the device tests to any column of objects: interfaces, hosts, files, clients.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;
use whyslow_model::Ns;
use whyslow_model::sort::IndexSort;

use super::{
    Compared, Comparison, Completed, InFlight, Issued, Sample, Slices, Stratum, adjust, compare,
};

/// Each object is compared with every other one.
const OBJECTS_MAX: usize = 100;
/// Kinds of operations are numbered by a byte.
const KINDS_MAX: usize = 256;
/// As for devices: operations within this multiple of the median duration count as just before
/// another.
const LATELY: i64 = 4;

/// An operation on an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Operation {
    /// Start, ns since the epoch.
    pub ts: Ns,
    /// Duration in ns, not negative.
    pub dur: Ns,
    /// Number of the object, chosen by the caller.
    pub object: u32,
    /// Only operations of the same kind are compared: operation and size class.
    pub kind: u32,
}

/// How an object compares with its peers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Deviation {
    /// Number of the object.
    pub object: u32,
    /// Number of operations that peers have comparable ones of.
    pub compared: u64,
    /// Of `compared`: operations beyond the 99th percentile of the peers' comparable ones.
    pub over: u64,
    /// Ratio to the number expected if it were like its peers.
    pub relative_risk: f64,
    /// Smallest false discovery rate at which the tail is significant, over all tests of all
    /// objects.
    pub tail_q: f64,
    /// Whether the object is an outlier by its tail.
    pub is_tail: bool,
    /// Ratio of its median to that of the median peer; `None` with fewer than 100 operations.
    pub median_ratio: Option<f64>,
    /// Like `tail_q`, for the shift of the median; `None` where `median_ratio` is.
    pub shift_q: Option<f64>,
    /// Whether the object is an outlier by its median.
    pub is_shifted: bool,
    /// Found, but with far more demand than its peers: slow and busy cannot be distinguished.
    pub is_excused: bool,
    /// Number of operations with which one slow in five would be found nine times in ten; `None` if
    /// peers have too few for that.
    pub enough: Option<u64>,
}

/// Compares each object with the others; those that cannot be compared are omitted. If there are
/// more than a hundred objects, only those with the most operations.
pub fn deviations(operations: &[Operation]) -> Vec<Deviation> {
    let objects = commonest(operations.iter().map(|one| one.object), OBJECTS_MAX);
    let kinds = commonest(operations.iter().map(|one| one.kind), KINDS_MAX);
    let mut by_object: Vec<Vec<(Operation, u8)>> = vec![Vec::new(); objects.len()];
    for one in operations {
        if let (Some(place), Some(kind)) = (objects.get(&one.object), kinds.get(&one.kind)) {
            by_object[*place].push((*one, *kind as u8));
        }
    }
    let completed: Vec<Vec<Completed<(Ns, u8)>>> = by_object.into_iter().map(completed).collect();
    let samples: Vec<Sample> = completed
        .iter()
        .map(|completed| sample(completed))
        .collect();
    let mut compared = compare(&samples);
    let span = span(operations);
    for (compared, completed) in compared.iter_mut().zip(&completed) {
        for comparison in compared.comparisons_mut() {
            let mut slices = Slices::new(span);
            for one in completed {
                if let Some(is_over) = comparison.tail.is_over(stratum(one), bucket(one)) {
                    slices.add(one.request.issue, is_over);
                }
            }
            comparison.tail.disperse(slices.dispersion());
        }
    }
    let tests = adjust(compared.iter_mut().flat_map(Compared::comparisons_mut));
    let mut names: Vec<u32> = vec![0; objects.len()];
    for (object, place) in objects {
        names[place] = object;
    }
    let found = names.into_iter().zip(&compared);
    let found = found.flat_map(|(object, compared)| {
        let comparisons = compared.by_op.as_deref().unwrap_or_default();
        let one = move |comparison| deviation(object, comparison, tests);
        comparisons.iter().map(one)
    });
    found.collect()
}

fn deviation(object: u32, comparison: &Comparison, tests: usize) -> Deviation {
    let (tail, shift) = (&comparison.tail, comparison.shift.as_ref());
    Deviation {
        object,
        compared: tail.compared,
        over: tail.over,
        relative_risk: tail.relative_risk(),
        tail_q: tail.q,
        is_tail: comparison.tail_fires(),
        median_ratio: shift.map(|shift| shift.ratio),
        shift_q: shift.map(|shift| shift.q),
        is_shifted: comparison.shift_fires(),
        is_excused: comparison.is_excused(),
        enough: tail.enough(tests),
    }
}

/// The most frequent values, numbered.
fn commonest(values: impl Iterator<Item = u32>, most: usize) -> FxHashMap<u32, usize> {
    let mut counts: BTreeMap<u32, u64> = BTreeMap::new();
    for value in values {
        *counts.entry(value).or_default() += 1;
    }
    let mut counts: Vec<(u32, u64)> = counts.into_iter().collect();
    counts.index_sort_by_key(|(value, count)| (std::cmp::Reverse(*count), *value));
    counts.truncate(most);
    let places = counts.into_iter().enumerate();
    places.map(|(place, (value, _))| (value, place)).collect()
}

/// Operations of one object with the concurrent ones.
fn completed(mut operations: Vec<(Operation, u8)>) -> Vec<Completed<(Ns, u8)>> {
    operations.index_sort_by_ints(|(one, _)| [one.ts, 0, 0]);
    let mut lengths: Vec<Ns> = operations.iter().map(|(one, _)| one.dur).collect();
    lengths.sort_unstable();
    let usual = lengths.get(lengths.len() / 2).copied().unwrap_or(0);
    let mut found = Vec::with_capacity(operations.len());
    let mut in_flight = InFlight::new(LATELY.saturating_mul(usual));
    for (id, (one, kind)) in (0..).zip(operations) {
        let request = Issued {
            issue: one.ts,
            id,
            end: one.ts.saturating_add(one.dur),
            what: (one.dur, kind),
        };
        in_flight.add(one.ts, request, &mut |completed| found.push(completed));
    }
    in_flight.finish(&mut |completed| found.push(completed));
    found
}

fn sample(completed: &[Completed<(Ns, u8)>]) -> Sample {
    let mut sample = Sample::default();
    for one in completed {
        sample.add(stratum(one), one.request.what.0, one.share_ns);
        sample.count_arrival(one.preceded);
    }
    sample
}

fn stratum(completed: &Completed<(Ns, u8)>) -> Stratum {
    Stratum::of_kind(completed.request.what.1, completed.depth)
}

fn bucket(completed: &Completed<(Ns, u8)>) -> usize {
    whyslow_model::histogram::bucket_of(completed.request.what.0)
}

fn span(operations: &[Operation]) -> Ns {
    let first = operations.iter().map(|one| one.ts).min().unwrap_or(0);
    let last = operations.iter().map(|one| one.ts).max().unwrap_or(0);
    last.saturating_sub(first)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::Dice;

    /// Six hosts that are queried in turn, with two kinds of queries, one after the other.
    fn queried(time: impl Fn(u32, &mut Dice) -> f64) -> Vec<Operation> {
        let mut dice = Dice::new(3);
        let mut one = |number: u32| {
            let (object, kind) = (number % 6 + 10, number / 6 % 2);
            let usual = (f64::from(kind + 1) + 0.3 * dice.normal()).exp();
            Operation {
                ts: Ns::from(number) * 1_000_000_000,
                dur: (1e6 * usual * time(object, &mut dice)) as Ns,
                object,
                kind,
            }
        };
        (0..1800).map(&mut one).collect()
    }

    fn found(operations: &[Operation]) -> [Vec<u32>; 2] {
        let deviations = deviations(operations);
        assert_eq!(deviations.len(), 6);
        let tails = deviations.iter().filter(|one| one.is_tail);
        let shifts = deviations.iter().filter(|one| one.is_shifted);
        [
            tails.map(|one| one.object).collect(),
            shifts.map(|one| one.object).collect(),
        ]
    }

    #[test]
    fn the_bad_one_of_several_is_found_by_its_tail_or_its_median() {
        assert_eq!(found(&queried(|_, _| 1.0)), [[0; 0]; 2]);
        let sometimes = |object, dice: &mut Dice| {
            let is_slow = object == 13 && dice.happens(0.1);
            if is_slow { 20.0 } else { 1.0 }
        };
        assert_eq!(found(&queried(sometimes)), [vec![13], Vec::new()]);
        let always = |object, _: &mut Dice| if object == 11 { 1.6 } else { 1.0 };
        assert_eq!(found(&queried(always))[1], [11]);
    }

    #[test]
    fn few_objects_or_operations_are_not_compared() {
        let all = queried(|_, _| 1.0);
        assert!(deviations(&[]).is_empty());
        assert!(deviations(&all[..60]).is_empty());
        let three: Vec<_> = all.iter().filter(|one| one.object < 13).copied().collect();
        assert!(deviations(&three).is_empty());
    }
}
