//! A trace with half of its events: what is certain in it is true in the complete one.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use whyslow_analysis::{Kind, Query as AnalysisQuery, Verb, evaluate};
use whyslow_explain::{Confidence, Judged, Query, Report, explain};
use whyslow_model::Symbols;
use whyslow_model::answer::Value;
use whyslow_model::tables::{BlockIoRow, CUT_UNCERTAIN, SyscallRow};
use whyslow_store::{Recording, rows};
use whyslow_test_recordings::Recorded;
use whyslow_test_recordings::thinned::{Thinning, thin_out};

const EVENTS: usize = 400;

/// Duration of each operation by its start and identity.
type Durations = BTreeMap<(i64, i64, String), i64>;

fn blocks(recording: &Recording, only_certain: bool) -> Durations {
    let mut symbols = Symbols::new();
    let rows = rows::<BlockIoRow>(recording, &mut symbols).expect("a table");
    let certain = rows.into_iter().filter(|row| {
        let cut = row.cut.map(|cut| symbols.get(cut));
        !only_certain || cut != Some(CUT_UNCERTAIN)
    });
    let found = certain.filter_map(|row| {
        // By number: the name may be among what was lost.
        let name = format!("{} {}", row.dev, symbols.get(row.op));
        Some(((row.ts, row.sector, name), row.dur?))
    });
    found.collect()
}

fn calls(recording: &Recording, only_certain: bool) -> Durations {
    let mut symbols = Symbols::new();
    let rows = rows::<SyscallRow>(recording, &mut symbols).expect("a table");
    let certain = rows.into_iter().filter(|row| {
        let cut = row.cut.map(|cut| symbols.get(cut));
        !only_certain || cut != Some(CUT_UNCERTAIN)
    });
    let found = certain.filter_map(|row| {
        let tid = i64::from(row.tid?);
        Some(((row.ts, tid, symbols.get(row.name).to_owned()), row.dur?))
    });
    found.collect()
}

/// The longest of each kind.
fn longest(all: &Durations) -> BTreeMap<&str, i64> {
    let mut longest = BTreeMap::new();
    for ((_, _, name), dur) in all {
        let known = longest.entry(name.as_str()).or_insert(0);
        *known = (*dur).max(*known);
    }
    longest
}

fn check_durations(complete: &Durations, certain: &Durations, all: &Durations) {
    // Positions and start times of the same operation are equal in both.
    let wrong: Vec<_> = certain
        .iter()
        .filter(|(operation, dur)| complete.get(*operation).is_some_and(|was| was < *dur))
        .collect();
    assert!(wrong.is_empty(), "{} too long: {wrong:?}", wrong.len());
    let limits = longest(complete);
    for ((ts, _, name), dur) in all {
        let limit = limits.get(name.as_str()).copied().unwrap_or(0);
        assert!(
            *dur <= limit,
            "{name} at {ts}: {dur} ns, never over {limit}"
        );
    }
}

fn of(recording: &Recording) -> Report {
    explain(recording, &Query::default(), None).expect("an answer")
}

/// Names of the culprits, and of the threads that are themselves the cause.
fn culprits(report: &Report) -> BTreeSet<String> {
    let named = report.findings.iter().filter_map(|finding| {
        let culprit = &finding.parts[finding.culprit?].culprit;
        Some(culprit.name.clone())
    });
    named.collect()
}

/// The greatest value of a column over all tables of an answer.
fn greatest(recording: &Recording, kind: Kind, verb: Verb, column: &str) -> f64 {
    let answer = evaluate(recording, &AnalysisQuery::new(kind, verb)).expect("an answer");
    let mut found = 0.0_f64;
    for table in &answer.tables {
        let place = table.columns.iter().position(|one| one.name == column);
        for row in place.map_or(&[][..], |_| table.rows.as_slice()) {
            let value = match &row[place.expect("checked")] {
                Value::Int(value) => *value as f64,
                Value::Float(value) => *value,
                _ => 0.0,
            };
            found = found.max(value);
        }
    }
    found
}

fn check_views(complete: &Recording, lossy: &Recording) {
    for (kind, verb, column) in [
        (Kind::Block, Verb::Stats, "max_ns"),
        (Kind::Block, Verb::Top, "dur_ns"),
        (Kind::Block, Verb::Hist, "from_ns"),
        (Kind::Block, Verb::Heat, "from_ns"),
        (Kind::Block, Verb::Outliers, "device_max_ns"),
        (Kind::Block, Verb::Outliers, "in_flight_p99"),
        (Kind::Io, Verb::Stats, "max_ns"),
        (Kind::Io, Verb::Top, "dur_ns"),
    ] {
        let [whole, part] = [complete, lossy].map(|it| greatest(it, kind, verb, column));
        assert!(
            part <= whole,
            "{kind:?} {verb:?} {column}: {part} of {whole}"
        );
    }
    let util = |it| greatest(it, Kind::Block, Verb::Usage, "util_ratio");
    assert!(util(lossy) <= util(complete) + 0.01);
}

fn check(trace: &Path, how: Thinning, seed: u64) {
    let complete = Recorded::of_trace(trace);
    let folder = tempfile::tempdir().expect("there is room");
    let mut state = seed;
    thin_out((trace, folder.path()), EVENTS, how, |_, _| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        state >> 63 == 0
    });
    let lossy = Recorded::of_trace(folder.path());
    let (complete, lossy) = (&complete.recording, &lossy.recording);
    check_durations(
        &blocks(complete, false),
        &blocks(lossy, true),
        &blocks(lossy, false),
    );
    check_durations(
        &calls(complete, false),
        &calls(lossy, true),
        &calls(lossy, false),
    );
    check_views(complete, lossy);
    let (whole, part) = (of(complete), of(lossy));
    assert!(part.lost_share > 0.2, "{}", part.lost_share);
    assert_eq!(part.lost_events.is_some(), how == Thinning::Discarded);
    assert_ne!(part.judged, Judged::NothingSlow);
    let known = culprits(&whole);
    if let Some(first) = part.findings.first()
        && first.confidence >= Confidence::Medium
    {
        let named = first.culprit.map(|place| &first.parts[place].culprit.name);
        assert!(
            named.is_some_and(|name| known.contains(name)),
            "{named:?} is not one of {known:?}: {}",
            first.verdict
        );
    }
    let is_lost = |root: &str| root == "lost";
    for finding in &part.findings {
        let lost = finding.parts.iter().filter(|part| is_lost(&part.root));
        let lost: i64 = lost.map(|part| part.dur_ns).sum();
        let length = finding.target.end_ns - finding.target.begin_ns;
        assert!(
            finding.culprit.is_some() || 2 * lost < length,
            "{finding:?}"
        );
    }
}

#[test]
fn half_of_the_packets_of_a_web_server_show_nothing_that_was_not() {
    let trace = whyslow_testkit::fixture("web-incident/trace.tar.zst");
    for (how, seed) in [
        (Thinning::Overwritten, 1),
        (Thinning::Discarded, 2),
        (Thinning::Discarded, 3),
    ] {
        check(&trace, how, seed);
    }
}

#[test]
fn half_of_the_packets_of_several_cpus_show_nothing_that_was_not() {
    let Some(data) = whyslow_testkit::data_folder("ctf") else {
        return;
    };
    for name in ["many-threads-4.4", "perfctx-6.2"] {
        let trace = data.join(format!("{name}.tar.xz"));
        for (how, seed) in [(Thinning::Overwritten, 4), (Thinning::Discarded, 5)] {
            check(&trace, how, seed);
        }
    }
}
