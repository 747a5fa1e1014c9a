//! Pairs of calls whose gaps coincide more often than by chance.
//!
//! Two gaps of different threads coincide if they overlap by half of the shorter one. The count of
//! a pair of calls is compared with counts after each thread's gaps have been shifted cyclically by
//! a random time, all of one thread together: that keeps their number and lengths, and removes the
//! relation between threads.

use std::collections::BTreeMap;

use whyslow_model::Ns;
use whyslow_model::answer::{AnswerColumn, AnswerTable, Measure};
use whyslow_model::sort::IndexSort;

use super::about::Seen;
use crate::context::Context;
use crate::statistics::Dice;

const SHIFTS: u32 = 1000;
const SEED: u64 = 0x9a95;
/// Required overlap as a share of the shorter gap.
const OVERLAP: f64 = 0.5;
/// A single occurrence is not a pattern.
const COUNT_MIN: u32 = 2;
/// Of more gaps, only the longest are used.
const GAPS_MAX: usize = 2000;
const ROWS: usize = 10;

#[derive(Debug, Clone, Copy)]
struct Gap {
    begin: Ns,
    end: Ns,
    thread: u32,
    function: u32,
}

/// Pairs of call numbers, the smaller first.
type Counts = BTreeMap<(u32, u32), u32>;

pub(super) fn table(context: &Context<'_>, seen: &[Seen]) -> Option<AnswerTable> {
    let (gaps, functions) = numbered(context, seen);
    let observed = together(&gaps);
    let mut pairs: Vec<((u32, u32), u32)> = observed
        .into_iter()
        .filter(|(_, count)| *count >= COUNT_MIN)
        .collect();
    if pairs.is_empty() {
        return None;
    }
    let (expected, as_many) = by_chance(&gaps, &pairs);
    let lift = |at: usize| f64::from(pairs[at].1) / expected[at].max(1.0 / f64::from(SHIFTS));
    let mut order: Vec<usize> = (0..pairs.len()).collect();
    order.index_sort_by(|a, b| {
        let by_chance = as_many[*a].cmp(&as_many[*b]);
        by_chance
            .then_with(|| pairs[*b].1.cmp(&pairs[*a].1))
            .then_with(|| pairs[*a].0.cmp(&pairs[*b].0))
    });
    order.truncate(ROWS);
    let mut table = AnswerTable::new("pairs", "coinciding gaps", columns());
    for at in order {
        let ((one, other), count) = pairs[at];
        let name = |function: u32| functions[function as usize].clone();
        table.rows.push(vec![
            name(one).into(),
            name(other).into(),
            i64::from(count).into(),
            expected[at].into(),
            lift(at).into(),
            (f64::from(as_many[at] + 1) / f64::from(SHIFTS + 1)).into(),
        ]);
    }
    pairs.clear();
    context.note(format!(
        "coinciding gaps: gaps of two threads that overlap by half of the shorter one, compared with {SHIFTS} shifts of \
         each thread's gaps by a random time; such threads may wait for each other in the kernel, \
         for example for the lock of a file, or for the same device"
    ));
    Some(table)
}

fn columns() -> Vec<AnswerColumn> {
    let column = AnswerColumn::new;
    vec![
        column("function", "call", Measure::Text),
        column("other_function", "coincides with", Measure::Text),
        column("count", "count", Measure::Count),
        column("expected", "expected", Measure::Number).priority(2),
        column("lift", "ratio", Measure::Number),
        column("chance", "p", Measure::Number).priority(1),
    ]
}

/// Waits in the kernel, from the earliest, in time order.
fn numbered(context: &Context<'_>, seen: &[Seen]) -> (Vec<Gap>, Vec<String>) {
    let mut waits: Vec<&Seen> = seen.iter().filter(|gap| gap.is_wait()).collect();
    if waits.len() > GAPS_MAX {
        context.note(format!(
            "coinciding gaps are based on the {GAPS_MAX} longest of {} gaps",
            waits.len()
        ));
        waits.index_sort_by_ints(|gap| [-gap.dur(), gap.ts, gap.utid.unwrap_or(i64::MIN)]);
        waits.truncate(GAPS_MAX);
    }
    waits.index_sort_by_ints(|gap| [gap.ts, gap.utid.unwrap_or(i64::MIN), 0]);
    let first = waits.first().map_or(0, |gap| gap.ts);
    let mut functions: BTreeMap<&str, u32> = waits
        .iter()
        .map(|gap| (gap.function.as_deref().unwrap_or("?"), 0))
        .collect();
    let mut threads: BTreeMap<i64, u32> =
        waits.iter().map(|gap| (gap.utid.unwrap_or(0), 0)).collect();
    (0..)
        .zip(functions.values_mut())
        .for_each(|(at, number)| *number = at);
    (0..)
        .zip(threads.values_mut())
        .for_each(|(at, number)| *number = at);
    let gaps = waits.iter().map(|gap| Gap {
        begin: gap.ts - first,
        end: gap.ts_end - first,
        thread: threads[&gap.utid.unwrap_or(0)],
        function: functions[gap.function.as_deref().unwrap_or("?")],
    });
    (
        gaps.collect(),
        functions.keys().map(|name| (*name).to_owned()).collect(),
    )
}

/// How often the gaps of each two calls coincide; gaps are in order of start.
fn together(gaps: &[Gap]) -> Counts {
    let mut counts = Counts::new();
    let mut open: Vec<Gap> = Vec::new();
    for gap in gaps {
        open.retain(|other| other.end > gap.begin);
        for other in &open {
            let shared = gap.end.min(other.end) - gap.begin.max(other.begin);
            let shorter = (gap.end - gap.begin).min(other.end - other.begin);
            if other.thread != gap.thread && shared as f64 >= OVERLAP * shorter as f64 {
                let pair = (
                    gap.function.min(other.function),
                    gap.function.max(other.function),
                );
                *counts.entry(pair).or_default() += 1;
            }
        }
        open.push(*gap);
    }
    counts
}

/// For each pair: the expected count by chance, and the number of shifts with at least the observed
/// count.
fn by_chance(gaps: &[Gap], pairs: &[((u32, u32), u32)]) -> (Vec<f64>, Vec<u32>) {
    let length = gaps.iter().map(|gap| gap.end).max().unwrap_or(1).max(1);
    let threads = gaps.iter().map(|gap| gap.thread + 1).max().unwrap_or(0);
    let mut dice = Dice::new(SEED);
    let mut sums = vec![0_u64; pairs.len()];
    let mut as_many = vec![0_u32; pairs.len()];
    for _ in 0..SHIFTS {
        let shifts: Vec<Ns> = (0..threads)
            .map(|_| (dice.unit() * length as f64) as Ns)
            .collect();
        let mut moved: Vec<Gap> = gaps
            .iter()
            .map(|gap| {
                let begin = (gap.begin + shifts[gap.thread as usize]) % length;
                Gap {
                    begin,
                    end: begin + (gap.end - gap.begin),
                    ..*gap
                }
            })
            .collect();
        moved.sort_unstable_by_key(|gap| (gap.begin, gap.thread));
        let counts = together(&moved);
        for (at, (pair, observed)) in pairs.iter().enumerate() {
            let count = counts.get(pair).copied().unwrap_or(0);
            sums[at] += u64::from(count);
            as_many[at] += u32::from(count >= *observed);
        }
    }
    let expected = sums.iter().map(|sum| *sum as f64 / f64::from(SHIFTS));
    (expected.collect(), as_many)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Ns = 1_000_000;

    fn gap(thread: u32, function: u32, begin: i64, dur: i64) -> Gap {
        Gap {
            begin: begin * MS,
            end: (begin + dur) * MS,
            thread,
            function,
        }
    }

    fn tried(mut gaps: Vec<Gap>) -> (u32, f64, u32) {
        gaps.sort_unstable_by_key(|gap| (gap.begin, gap.thread));
        let observed = together(&gaps).get(&(0, 1)).copied().unwrap_or(0);
        let (expected, as_many) = by_chance(&gaps, &[((0, 1), observed)]);
        (observed, expected[0], as_many[0])
    }

    #[test]
    fn calls_that_wait_for_each_other_stand_out() {
        let pairs = (0..12).flat_map(|at| {
            let begin = at * at * 61 + at * 700;
            [gap(0, 0, begin, 100), gap(1, 1, begin + 30, 70)]
        });
        let (observed, expected, as_many) = tried(pairs.collect());
        assert_eq!(observed, 12);
        // All gaps of a thread are shifted together: offsets within 100 ms in 15.2 s make all pairs
        // coincide again, which is 6.6 of 1000 shifts.
        assert!(as_many < 20, "{as_many}");
        assert!(expected < 1.5, "{expected}");
    }

    #[test]
    fn calls_that_meet_now_and_then_do_not() {
        let mut dice = Dice::new(7);
        let mut standing_out = 0;
        for _ in 0..20 {
            let gaps = (0..40).map(|at| gap(at % 2, at % 2, dice.below(10_000) as i64, 80));
            let (_, _, as_many) = tried(gaps.collect());
            standing_out += u32::from(as_many < 10);
        }
        assert!(standing_out <= 2, "{standing_out}");
    }
}
