//! Tests of the comparison on rare stalls and on few requests.

use super::{Comparison, Latency, Side, Verdict, adjust, compare};
use crate::statistics::Dice;

const MS: i64 = 1_000_000;

fn side(begin: i64, durs: impl IntoIterator<Item = i64>) -> Side {
    let one = |(place, dur): (usize, i64)| Latency {
        ts: begin + place as i64 * 20 * MS,
        dur: Some(dur),
        failed: false,
        worker: (place % 4) as u32,
        phases: Default::default(),
    };
    Side::of(durs.into_iter().enumerate().map(one).collect())
}

/// 300 requests of about 20 ms, of which every `stalled`th takes five seconds more.
fn run(begin: i64, stalled: Option<usize>, seed: u64) -> Side {
    let dice = &mut Dice::new(seed);
    let mut dur = |place: usize| {
        let is_stalled = stalled.is_some_and(|every| place % every == every / 2);
        let usual = (20.0 * MS as f64 * (0.2 * dice.normal()).exp()) as i64;
        usual + if is_stalled { 5000 * MS } else { 0 }
    };
    side(begin, (0..300).map(&mut dur).collect::<Vec<_>>())
}

fn compared(before: &Side, after: &Side) -> (Comparison, Verdict) {
    let mut found = [compare(before, after, None)];
    adjust(&mut found);
    let [found] = found;
    let verdict = found.verdict(0.02);
    (found, verdict)
}

#[test]
fn a_fix_of_eleven_stalls_among_three_hundred_requests_is_better() {
    for seed in 0..5 {
        let before = run(0, Some(27), seed);
        let after = run(1_000_000 * MS, None, seed);
        let (found, verdict) = compared(&before, &after);
        let (limit, over) = found.over.as_ref().expect("a limit");
        assert!((100 * MS..5000 * MS).contains(limit), "{limit}");
        assert!((over.before - 11.0 / 300.0).abs() < 1e-9 && over.after == 0.0);
        assert_eq!(verdict, Verdict::Better, "{seed}: {found:?}");
        // The other way round it is worse.
        let before = run(0, None, seed);
        let after = run(1_000_000 * MS, Some(27), seed);
        assert_eq!(compared(&before, &after).1, Verdict::Worse, "{seed}");
    }
}

#[test]
fn as_many_stalls_on_both_sides_are_no_difference() {
    for seed in 0..5 {
        let before = run(0, Some(27), seed);
        let after = run(1_000_000 * MS, Some(27), seed);
        let (found, verdict) = compared(&before, &after);
        assert!(!verdict.is_shown(), "{seed}: {found:?}");
    }
}

#[test]
fn three_requests_against_twelve_are_compared_by_rank() {
    let before = side(0, (0..3).map(|place| (400 + place) * MS));
    let after = side(1_000_000 * MS, (0..12).map(|place| (20 + place) * MS));
    let (found, verdict) = compared(&before, &after);
    let median = &found.quantiles[0];
    assert_eq!(median.sides, Some((401e6, 25e6)));
    assert!(median.is_of_ranks);
    assert_eq!(found.extremes, Some([(400e6, 402e6), (20e6, 31e6)]));
    assert_eq!(verdict, Verdict::Better);
    // Overlapping ones show nothing.
    let after = side(1_000_000 * MS, (0..12).map(|place| (350 + 9 * place) * MS));
    let (found, verdict) = compared(&before, &after);
    assert_eq!(verdict, Verdict::NotShown, "{found:?}");
    assert!(found.quantiles[0].sides.is_some());
    // Two against two cannot show anything, however far apart.
    let (a, b) = (side(0, [1, 2]), side(1_000_000 * MS, [900, 901]));
    assert_eq!(compared(&a, &b).1, Verdict::NotShown);
}
