//! The counters of a recording equal the sum over its parts.

use std::collections::BTreeSet;
use std::sync::atomic::AtomicBool;

use proptest::prelude::*;
use whyslow_analysis::Filter;
use whyslow_export::openmetrics::Metrics;
use whyslow_export::snapshot::{CutQuery, cut};
use whyslow_model::Window;
use whyslow_store::{Recording, Tables};
use whyslow_test_recordings::Recorded;

use crate::it::snapshot::made::{incident, text};

/// Time that a follower leaves for the next part, ns.
const SETTLED: i64 = 200_000_000;

/// The samples, except the times of the recording and the losses at the seams.
fn samples(metrics: &Metrics) -> Vec<String> {
    let mut text = Vec::new();
    metrics.write(&mut text).expect("writing to a vector");
    let text = String::from_utf8(text).expect("UTF-8");
    assert!(text.ends_with("# EOF\n"));
    let sample =
        |line: &&str| !line.starts_with("whyslow_recording_") && !line.starts_with("whyslow_los");
    text.lines().filter(sample).map(str::to_owned).collect()
}

/// Compares only what differs, to keep the message short.
fn same(actual: &Metrics, wanted: &Metrics) {
    let (actual, wanted) = (samples(actual), samples(wanted));
    assert!(wanted.len() > 20, "nothing to compare");
    let of = |one: &[String], other: &[String]| -> Vec<String> {
        let other: BTreeSet<&String> = other.iter().collect();
        let only = one.iter().filter(|line| !other.contains(line));
        only.take(10).cloned().collect()
    };
    assert_eq!(of(&actual, &wanted), of(&wanted, &actual));
    assert_eq!(actual.len(), wanted.len());
}

fn of_window(tables: &dyn Tables, windows: &[Window]) -> Metrics {
    let mut metrics = Metrics::default();
    for window in windows {
        let added = metrics.add(tables, Some(*window), &Filter::default());
        added.expect("readable");
    }
    metrics
}

fn moment(whole: &Recorded, share: f64) -> i64 {
    let info = whole.recording.info();
    info.begin_ns + ((info.end_ns - info.begin_ns) as f64 * share) as i64
}

fn end(whole: &Recorded) -> i64 {
    whole.recording.info().end_ns + 1
}

fn check_parts(whole: &Recorded, mut cuts: Vec<f64>) {
    cuts.sort_by(f64::total_cmp);
    let begin = whole.recording.info().begin_ns;
    let mut ends: Vec<i64> = cuts.iter().map(|share| moment(whole, *share)).collect();
    ends.push(end(whole));
    let begins = std::iter::once(begin).chain(ends.iter().copied());
    let windows: Vec<Window> = begins
        .zip(&ends)
        .map(|(begin, end)| Window::new(begin, *end))
        .filter(|window| window.length() > 0)
        .collect();
    let mut all = Metrics::default();
    let added = all.add(&whole.recording, None, &Filter::default());
    added.expect("readable");
    same(&of_window(&whole.recording, &windows), &all);
}

/// Overlapping parts, like those of a flight recorder, one after another.
fn check_followed(whole: &Recorded, mut begins: Vec<f64>) {
    begins.sort_by(f64::total_cmp);
    begins[0] = 0.0;
    let never = AtomicBool::new(false);
    let mut followed = Metrics::default();
    let last = end(whole);
    for (number, begin) in begins.iter().enumerate() {
        let next = begins.get(number + 1);
        // Including some of the next part.
        let until = next.map_or(last, |next| moment(whole, *next) + 2 * SETTLED);
        let query = CutQuery {
            focus: Window::new(moment(whole, *begin), until.min(last)),
            around: Some(0),
            digest: whole.recording.digest().expect("it is whole"),
        };
        let folder = tempfile::tempdir().expect("a temporary folder");
        let target = folder.path().join("cut.wsl");
        cut(&whole.recording, &query, &target, &never).expect("it can be cut");
        let part = Recording::open(&target).expect("it is a recording");
        followed.follow(&part).expect("it can be read");
    }
    let info = whole.recording.info();
    let settled = Window::new(info.begin_ns, info.end_ns - SETTLED);
    let want = of_window(&whole.recording, &[settled]);
    same(&followed, &want);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(5))]

    #[test]
    fn windows_side_by_side_add_up_to_all(cuts in prop::collection::vec(0.0..1.0_f64, 0..6)) {
        check_parts(incident(), cuts.clone());
        check_parts(text(), cuts);
    }

    #[test]
    fn what_overlaps_is_counted_once(begins in prop::collection::vec(0.0..0.95_f64, 1..5)) {
        check_followed(incident(), begins);
    }
}

#[test]
fn what_nobody_saw_is_told() {
    let whole = incident();
    let info = whole.recording.info();
    let mut metrics = Metrics::default();
    let never = AtomicBool::new(false);
    for (begin, end) in [(0.0, 0.4), (0.6, 1.0)] {
        let query = CutQuery {
            focus: Window::new(moment(whole, begin), moment(whole, end)),
            around: Some(0),
            digest: whole.recording.digest().expect("it is whole"),
        };
        let folder = tempfile::tempdir().expect("a temporary folder");
        let target = folder.path().join("cut.wsl");
        cut(&whole.recording, &query, &target, &never).expect("it can be cut");
        let part = Recording::open(&target).expect("it is a recording");
        metrics.follow(&part).expect("it can be read");
    }
    let mut text = Vec::new();
    metrics.write(&mut text).expect("writing to a vector");
    let text = String::from_utf8(text).expect("UTF-8");
    let unseen = text
        .lines()
        .find_map(|line| line.strip_prefix("whyslow_recording_unseen_seconds_total "));
    let unseen: f64 = unseen.and_then(|text| text.parse().ok()).expect("a number");
    let want = (info.end_ns - info.begin_ns) as f64 * 0.2 / 1e9;
    assert!((unseen - want - 0.2).abs() < 0.01, "{unseen} {want}");
}
