//! T7 and T8: the durations of slow items.

use whyslow_analysis::statistics::Dice;

use super::super::constants::{KNOWN, Waits, hints};
use super::super::modes::gap;
use super::super::ranks::{deviation, median};
use super::{FAMILIES, Family, MS, S, about, at_least, at_most, rate, runs};

fn is_mode(times: &[f64]) -> bool {
    let logs: Vec<f64> = times.iter().map(|time| time.ln()).collect();
    gap(&logs).is_some_and(|gap| gap.is_much())
}

#[test]
fn no_tail_of_one_piece_is_taken_for_a_mode() {
    for family in FAMILIES {
        for items in [100, 400] {
            let what = format!("T7, nothing | {family:?}, {items}");
            at_most(&what, 0.005, runs(400), |dice| {
                let times: Vec<f64> = (0..items).map(|_| family.draw(dice)).collect();
                is_mode(&times)
            });
        }
    }
}

/// Each item takes longer by `more` with this probability.
fn with_mode(items: u32, (chance, more): (f64, f64), usual: f64, dice: &mut Dice) -> Vec<f64> {
    let one = |_| {
        let time = usual * Family::LogNormal(0.5).draw(dice);
        time + if dice.happens(chance) { more } else { 0.0 }
    };
    (0..items).map(one).collect()
}

#[test]
fn a_mode_of_five_or_more_is_found() {
    for (items, chance, more, usual, wanted) in [
        (400, 0.05, 5.0 * S, 100.0 * MS, 1.0),
        (100, 0.10, 5.0 * S, 100.0 * MS, 0.97),
        // At least five of a hundred are slow in only .56 of the runs.
        (100, 0.05, 5.0 * S, 100.0 * MS, 0.56),
        (400, 0.02, 0.2 * S, 20.0 * MS, 0.63),
    ] {
        let what = format!(
            "T7, {chance} at +{} s, usual {} ms | {items}",
            more / S,
            usual / MS
        );
        at_least(&what, wanted, runs(200), |dice| {
            is_mode(&with_mode(items, (chance, more), usual, dice))
        });
    }
}

/// 200 ms more are a gap with a ratio of 1.5 only if usual items rarely take 140 ms.
#[test]
fn a_mode_near_the_usual_times_is_found_as_far_as_there_is_a_gap() {
    for (usual, wanted) in [(30.0, 0.37), (35.0, 0.18), (50.0, 0.0)] {
        let what = format!("T7, 0.02 at +0.2 s, usual {usual} ms | 400");
        let found = rate(&what, runs(200), |dice| {
            is_mode(&with_mode(400, (0.02, 0.2 * S), usual * MS, dice))
        });
        assert!((found - wanted).abs() < 0.12, "{what}: {found}");
    }
}

/// Slow items with these waits, and 400 usual ones with a median and σ .5.
fn waits(slow: &[f64], usual: f64, dice: &mut Dice) -> Waits {
    let one = |_| usual * Family::LogNormal(0.5).draw(dice);
    let times: Vec<f64> = (0..400).map(one).collect();
    let slow: Vec<f64> = slow
        .iter()
        .map(|wait| wait + usual * Family::LogNormal(0.5).draw(dice))
        .collect();
    let middle = median(times.clone()).unwrap();
    let most = slow.iter().copied().fold(0.0, f64::max);
    Waits {
        mad: deviation(times.into_iter(), middle).unwrap(),
        waits: slow.into_iter().map(|time| time - middle).collect(),
        usual: middle,
        range: (middle, most),
    }
}

fn hint_is(waits: &Waits, cause: &str) -> bool {
    hints(waits)
        .iter()
        .any(|hint| hint.known.cause.contains(cause))
}

/// The retransmission comes after 200 ms and the round trip, 6 to 14 ms.
#[test]
fn known_constants_are_found_from_five_slow_items() {
    let resolver = |_: &mut Dice| 5.004 * S;
    let retransmission = |dice: &mut Dice| (206.0 + 8.0 * dice.unit()) * MS;
    type Wait<'w> = &'w dyn Fn(&mut Dice) -> f64;
    let cases: [(Wait<'_>, &str, usize, f64); 5] = [
        (&resolver, "glibc", 3, 0.0),
        (&resolver, "glibc", 5, 0.985),
        (&resolver, "glibc", 10, 1.0),
        (&retransmission, "retransmission timeout 200 ms", 5, 0.25),
        (&retransmission, "retransmission timeout 200 ms", 10, 0.91),
    ];
    for (wait, cause, count, wanted) in cases {
        about(
            &format!("T8, {cause} | {count}"),
            wanted,
            runs(200),
            |dice| {
                let slow: Vec<f64> = (0..count).map(|_| wait(dice)).collect();
                hint_is(&waits(&slow, 30.0 * MS, dice), cause)
            },
        );
    }
}

#[test]
fn broad_tails_are_near_no_constant() {
    for family in FAMILIES {
        at_most(
            &format!("T8, broad | {family:?}"),
            0.001,
            runs(200),
            |dice| {
                let slow: Vec<f64> = (0..40).map(|_| 0.5 * S * family.draw(dice)).collect();
                !hints(&waits(&slow, 30.0 * MS, dice)).is_empty()
            },
        );
    }
}

/// A narrow cluster anywhere is near a constant as often as the windows cover the orders of
/// magnitude. No statistic can avoid that, so the hint names what would confirm it.
#[test]
fn a_narrow_cluster_anywhere_is_rarely_near_a_constant() {
    at_most("T8, narrow, 20 ms to 100 s", 0.10, runs(400), |dice| {
        let centre = 20.0 * MS * (5000f64.ln() * dice.unit()).exp();
        let slow: Vec<f64> = (0..20)
            .map(|_| centre * (1.0 + 0.01 * dice.normal()))
            .collect();
        !hints(&waits(&slow, 5.0 * MS, dice)).is_empty()
    });
    assert_eq!(KNOWN.len(), 13);
}
