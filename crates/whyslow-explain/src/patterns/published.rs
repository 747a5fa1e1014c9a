//! Published cases, with the published numbers.

use whyslow_analysis::statistics::{Dice, hypergeometric_tail};
use whyslow_model::Ns;

use super::{Class, Input, Item, Judgement, UNIDENTIFIED, judge};

const MS: f64 = 1e6;
const S: f64 = 1e9;

fn item(ts: f64, dur: f64, key: u32) -> Item {
    Item {
        ts: ts as Ns,
        dur: dur as Ns,
        key,
        object: UNIDENTIFIED,
        worker: UNIDENTIFIED,
        failed: false,
        result: 0,
        wait_ns_max: None,
    }
}

fn fired(judgement: &Judgement) -> Vec<&str> {
    let fired = judgement.outcomes.iter().filter(|one| one.fired);
    fired.map(|one| one.test).collect()
}

fn number(judgement: &Judgement, name: &str) -> f64 {
    let pattern = judgement.pattern();
    let found = pattern.numbers.iter().find(|(found, _)| found == name);
    found.unwrap_or_else(|| panic!("{name}: {pattern:?}")).1
}

/// Histograms of 8 KiB reads in 10 s, in power-of-two buckets of µs: a bad disk and a good one, of
/// 17 under the same load ("Diagnose High-Latency I/O Operations Using SystemTap"). The others are
/// assumed to be like the good one.
const SDY: [u64; 15] = [2, 14, 4, 2, 7, 19, 37, 59, 14, 0, 10, 11, 10, 6, 4];
const SDT: [u64; 9] = [0, 19, 16, 1, 9, 28, 56, 49, 18];

/// Sequential reads in random order, each anywhere in its bucket.
fn reads(device: u32, histogram: &[u64], dice: &mut Dice) -> Vec<Item> {
    let mut times = Vec::new();
    for (bucket, count) in (6..).zip(histogram) {
        for _ in 0..*count {
            times.push(1000.0 * 2f64.powf(f64::from(bucket) + dice.unit()));
        }
    }
    dice.shuffle(&mut times);
    let mut ts = 0.0;
    let read = times.into_iter().map(|dur| {
        ts += dur + 20.0 * MS * dice.exponential();
        Item {
            object: device,
            ..item(ts - dur, dur, 0)
        }
    });
    read.collect()
}

#[test]
fn one_bad_disk_of_seventeen() {
    let over: u64 = SDY[10..].iter().sum();
    let counts = (over, SDY.iter().sum::<u64>(), SDT.iter().sum::<u64>());
    assert_eq!(counts, (41, 199, 196));
    // About 1e-13 two-sided.
    let p = hypergeometric_tail(41, 199, 41, 199 + 196);
    assert!((p / 6.33e-14 - 1.0).abs() < 0.001, "{p}");

    let mut dice = Dice::new(3);
    let mut items = reads(0, &SDY, &mut dice);
    for device in 1..17 {
        items.extend(reads(device, &SDT, &mut dice));
    }
    let names: Vec<String> = ('a'..='q').map(|letter| format!("sd{letter}")).collect();
    let found = judge(&Input {
        items: &items,
        what: "read",
        objects: &names,
        ..Input::default()
    });
    assert_eq!(
        (found.class, found.objects.as_slice()),
        (Class::OneDevice, [0].as_slice())
    );
    // These 41, and the one in a hundred that is beyond the p99 by definition.
    let over = number(&found, "T10.over");
    assert!((41.0..=45.0).contains(&over), "{}", found.summary);
    let summary = format!("sda: {over} of 199 beyond its peers' p99");
    assert!(found.summary.contains(&summary), "{}", found.summary);
    // Without the bad disk there is no outlier.
    let found = judge(&Input {
        items: &items[199..],
        ..Input::default()
    });
    assert_eq!(found.class, Class::Insufficient, "{}", found.summary);
}

/// Twelve endpoints, of which the health check was never slow; 58 of the 968 requests to the others
/// took five seconds more (the published account of a failing resolver gives no counts).
fn stalled(stall: f64, seed: u64) -> Vec<Item> {
    let mut dice = Dice::new(seed);
    let mut slow = vec![false; 968];
    slow[..58].fill(true);
    dice.shuffle(&mut slow);
    let mut items = Vec::new();
    for (place, slow) in slow.into_iter().enumerate() {
        let usual = 150.0 * MS * (0.4 * dice.normal()).exp();
        let more = if slow {
            stall + 10.0 * MS * dice.exponential()
        } else {
            0.0
        };
        items.push(item(
            240.0 * S * dice.unit(),
            usual + more,
            place as u32 % 11,
        ));
    }
    for _ in 0..240 {
        let usual = 5.0 * MS * (0.3 * dice.normal()).exp();
        items.push(item(240.0 * S * dice.unit(), usual, 11));
    }
    items
}

#[test]
fn five_seconds_now_and_then_whatever_is_asked() {
    let items = stalled(5.0 * S, 4);
    let mut keys: Vec<String> = (0..11).map(|at| format!("/page{at}")).collect();
    keys.push("/health".into());
    let features: Vec<(u32, u32)> = (0..12)
        .map(|key| (key, 1))
        .chain((0..11).map(|key| (key, 0)))
        .collect();
    let found = judge(&Input {
        items: &items,
        what: "request",
        keys: &keys,
        features: &features,
        feature_names: &["connect to the database".into(), "recv".into()],
        ..Input::default()
    });
    assert_eq!(found.class, Class::RareContention, "{found:#?}");
    assert_eq!(fired(&found), ["T5", "T6", "T7", "T8"], "{found:#?}");
    assert_eq!(
        (found.slow.len(), found.exempt.as_slice()),
        (58, [11].as_slice())
    );
    let p = number(&found, "T6.p");
    assert!((p / 3.6e-7 - 1.0).abs() < 0.05, "{p}");
    assert_eq!(number(&found, "T8.inside"), 58.0);
    let excess = number(&found, "T7.excess_ns");
    assert!((4.98..5.06).contains(&(excess / S)), "{excess}");
    for part in [
        "11 of 12 kinds, slow rate 6.0 %",
        "never slow: /health",
        "used only by slow kinds: connect to the database",
        "58 of 58 slow ones",
        "resolver timeout (glibc",
    ] {
        assert!(found.summary.contains(part), "{part}: {}", found.summary);
    }
}

/// Two more endpoints that usually take four seconds cannot show five more, and are not exempt.
#[test]
fn what_takes_long_anyhow_is_not_exempt() {
    let mut items = stalled(5.0 * S, 4);
    let mut dice = Dice::new(8);
    for place in 0..400 {
        let usual = 4.0 * S * (0.4 * dice.normal()).exp();
        let more = if dice.happens(0.06) { 5.0 * S } else { 0.0 };
        let ts = 240.0 * S * dice.unit();
        items.push(item(ts, usual + more, 12 + place % 2));
    }
    let found = judge(&Input {
        items: &items,
        ..Input::default()
    });
    assert_eq!(found.class, Class::RareContention, "{}", found.summary);
    assert_eq!(found.exempt, [11]);
    assert_eq!(number(&found, "T5.kinds_hidden"), 2.0);
    let summary = "not detectable for 2 kinds that usually take as long";
    assert!(found.summary.contains(summary), "{}", found.summary);
}

/// With three slow requests only the missing evidence is reported.
#[test]
fn too_few_slow_requests_are_no_verdict() {
    let mut items = stalled(5.0 * S, 4);
    let mut left = 3;
    items.retain(|item| {
        item.dur < 3_000_000_000 || {
            left -= 1;
            left >= 0
        }
    });
    let found = judge(&Input {
        items: &items,
        ..Input::default()
    });
    assert_eq!((found.class, found.slow.len()), (Class::Insufficient, 3));
    assert!(found.hints.is_empty() && found.exempt.is_empty());
    // Ten slow ones at this rate take seven thirds of these requests more.
    assert_eq!(found.more, Some((items.len() as u64 * 7).div_ceil(3)));
    assert!(
        found
            .summary
            .contains("3 slow ones count as 3.0, 10 needed"),
        "{}",
        found.summary
    );
}
