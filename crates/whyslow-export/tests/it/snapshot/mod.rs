//! A snapshot answers queries of its window like the whole recording.

pub(crate) mod made;
mod redacted;

use std::sync::atomic::AtomicBool;

use made::{incident, text};
use proptest::prelude::*;
use whyslow_analysis::{Kind, Query, TOPICS, Verb, evaluate};
use whyslow_export::snapshot::{CutQuery, cut};
use whyslow_model::Window;
use whyslow_store::{Recording, StoreError, Tables, packed};
use whyslow_test_recordings::Recorded;

/// A snapshot, packed and unpacked.
fn cut_of(whole: &Recorded, focus: Window, around: Option<i64>) -> (Recording, tempfile::TempDir) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let query = CutQuery {
        focus,
        around,
        digest: whole.recording.digest().expect("it is whole"),
    };
    let target = folder.path().join("cut.wsl");
    let never = AtomicBool::new(false);
    cut(&whole.recording, &query, &target, &never).expect("it can be cut");
    let mut file = Vec::new();
    packed::pack(&target, &mut file).expect("writing to a vector");
    let unpacked = folder.path().join("unpacked.wsl");
    std::fs::create_dir(&unpacked).expect("a temporary directory");
    let limits = packed::Unpacking::into(&unpacked, &never).expect("a disk");
    packed::unpack(&*file, &target, &unpacked, &limits).expect("it is whole");
    let recording = Recording::open(&unpacked).expect("it is a recording");
    assert_eq!(
        recording.digest().ok(),
        Recording::open(&target).and_then(|all| all.digest()).ok()
    );
    (recording, folder)
}

/// All views, plain and with options that affect what is read.
fn queries(window: Window) -> Vec<Query> {
    let mut queries = Vec::new();
    for topic in TOPICS {
        // `differs` compares with everything else in the recording.
        for view in topic.views.iter().filter(|view| view.verb != Verb::Differs) {
            let plain = Query {
                window: Some(window),
                limit: Some(0),
                wide: true,
                ..Query::new(topic.kind, view.verb)
            };
            if view.by_time {
                let interval = (window.length() / 3).max(1_000_000_000);
                queries.push(Query {
                    interval: Some(interval),
                    ..plain.clone()
                });
            }
            queries.push(plain);
        }
    }
    queries
}

fn same_answers(whole: &dyn Tables, part: &dyn Tables, window: Window) {
    let mut rows = 0;
    for query in queries(window) {
        let what = (query.kind, query.verb, query.interval);
        let (here, there) = (evaluate(part, &query), evaluate(whole, &query));
        match (here, there) {
            (Ok(here), Ok(there)) => {
                rows += there
                    .tables
                    .iter()
                    .map(|table| table.rows.len())
                    .sum::<usize>();
                assert_eq!(here.tables.len(), there.tables.len(), "{what:?}");
                for (here, there) in here.tables.iter().zip(&there.tables) {
                    for (one, other) in here.rows.iter().zip(&there.rows) {
                        assert_eq!(one, other, "{what:?} {}", there.name);
                    }
                    assert_eq!(here, there, "{what:?}");
                }
                assert_eq!(here, there, "{what:?}");
            }
            (here, there) => assert_eq!(
                here.map_err(|error| error.to_string()),
                there.map_err(|error| error.to_string()),
                "{what:?}"
            ),
        }
    }
    assert!(rows > 0, "nothing was compared");
}

/// A window of the recording by shares of its length.
fn window(whole: &Recorded, begin: f64, length: f64) -> Window {
    let info = whole.recording.info();
    let all = (info.end_ns - info.begin_ns) as f64;
    let begin = info.begin_ns + (all * begin) as i64;
    Window::new(begin, begin + ((all * length) as i64).max(1))
}

fn around() -> impl Strategy<Value = Option<i64>> {
    prop_oneof![
        Just(None),
        Just(Some(0)),
        (0..3_000_000_000_i64).prop_map(Some)
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4, ..ProptestConfig::default() })]

    #[test]
    fn a_part_of_an_incident_answers_as_the_whole(
        begin in 0.0..1.0, length in 0.0..0.5, around in around()
    ) {
        let whole = incident();
        let window = window(whole, begin, length);
        let (part, _folder) = cut_of(whole, window, around);
        same_answers(&whole.recording, &part, window);
    }

    #[test]
    fn so_does_one_of_late_and_unfinished_calls_and_losses(
        begin in -0.1..1.0, length in 0.0..1.2, around in around()
    ) {
        let whole = text();
        let window = window(whole, begin, length);
        let info = whole.recording.info();
        prop_assume!(window.begin <= info.end_ns && window.end > info.begin_ns);
        let (part, _folder) = cut_of(whole, window, around);
        same_answers(&whole.recording, &part, window);
    }
}

/// The call in which a sleep without an end began may be over before the kept time starts.
#[test]
fn a_sleep_that_outlasts_its_call_answers_as_in_the_whole() {
    let whole = incident();
    let window = window(whole, 0.152_754_718_432_721_34, 0.322_109_451_657_306_64);
    let (part, _folder) = cut_of(whole, window, Some(0));
    same_answers(&whole.recording, &part, window);
}

/// The next call after a call without an end may be over before the kept time starts.
#[test]
fn late_instants_answer_as_the_whole() {
    let whole = text();
    for share in [0.6, 0.8, 0.930_267_699, 0.97] {
        let window = window(whole, share, 0.0);
        let (part, _folder) = cut_of(whole, window, Some(0));
        same_answers(&whole.recording, &part, window);
    }
}

#[test]
fn the_text_trace_has_what_it_is_made_for() {
    let info = text().recording.info();
    let calls = &info.tables["syscall"];
    assert!(!calls.long_files.is_empty() && calls.unfinished > 1);
    assert!(info.tables["lost_events"].rows > 0);
}

#[test]
fn a_part_of_an_incident_tells_the_same_findings() {
    let whole = incident();
    let mut compared = 0;
    for (begin, length) in [(0.15, 0.2), (0.55, 0.1), (0.6, 0.3)] {
        let window = window(whole, begin, length);
        let (part, _folder) = cut_of(whole, window, None);
        let query = whyslow_explain::Query {
            window: Some(window),
            ..whyslow_explain::Query::default()
        };
        let explain = |tables| whyslow_explain::explain(tables, &query, None);
        let there = explain(&whole.recording).expect("it can be explained");
        let here = explain(&part).expect("it can be explained");
        let findings = |report: &whyslow_explain::Report| {
            let of = |finding: &whyslow_explain::Finding| {
                let blame = finding.parts.iter().map(|part| {
                    let culprit = part.culprit.name.clone();
                    (part.mechanism.clone(), culprit, part.dur_ns)
                });
                (finding.target.id.clone(), blame.collect::<Vec<_>>())
            };
            report.findings.iter().map(of).collect::<Vec<_>>()
        };
        assert_eq!(findings(&here), findings(&there));
        compared += there.findings.len();
        assert!(
            here.caveats
                .iter()
                .any(|caveat| caveat.contains("an excerpt of a longer recording"))
        );
        assert!(
            !there
                .caveats
                .iter()
                .any(|caveat| caveat.contains("an excerpt of a longer recording"))
        );
    }
    assert!(compared > 1, "only {compared} findings were compared");
}

#[test]
fn what_is_compared_with_the_rest_says_that_there_is_less_of_it() {
    let whole = incident();
    let window = window(whole, 0.55, 0.05);
    let (part, _folder) = cut_of(whole, window, None);
    let mut query = Query::new(Kind::Io, Verb::Differs);
    query.window = Some(window);
    let caveats = |tables| evaluate(tables, &query).expect("an answer").caveats;
    let is_it = |caveat: &String| caveat.contains("this slice of a recording");
    assert!(caveats(&part).iter().any(is_it));
    assert!(!caveats(&whole.recording).iter().any(is_it));
}

#[test]
fn a_part_of_a_part_is_one_of_the_whole() {
    let whole = incident();
    let outer = window(whole, 0.2, 0.5);
    let (part, folder) = cut_of(whole, outer, Some(0));
    let part = Recorded::within(folder, part);
    let inner = window(whole, 0.4, 0.1);
    let (inmost, _folder) = cut_of(&part, inner, None);
    same_answers(&whole.recording, &inmost, inner);
    let info = inmost.info();
    let cut = info.cut.as_ref().expect("it is a part");
    assert_eq!(cut.digest, whole.recording.digest().expect("it is whole"));
    assert_eq!(info.whole(), window(whole, 0.0, 1.0));
    assert_eq!(info.focus(), Some(inner));
    // Nothing is in it that was not in the snapshot it was cut from.
    assert_eq!((info.begin_ns, info.end_ns), (outer.begin, outer.end));
}

#[test]
fn equal_parts_are_equal_files() {
    let whole = incident();
    let query = CutQuery {
        focus: window(whole, 0.3, 0.1),
        around: None,
        digest: String::new(),
    };
    let folder = tempfile::tempdir().expect("a temporary folder");
    let made: Vec<Vec<u8>> = ["one.wsl", "two.wsl"]
        .map(|name| {
            let target = folder.path().join(name);
            let never = AtomicBool::new(false);
            cut(&whole.recording, &query, &target, &never).expect("it can be cut");
            let mut file = Vec::new();
            packed::pack(&target, &mut file).expect("writing to a vector");
            file
        })
        .into();
    assert_eq!(made[0], made[1]);
}

#[test]
fn who_says_stop_leaves_nothing() {
    let whole = incident();
    let folder = tempfile::tempdir().expect("a temporary folder");
    let query = CutQuery {
        focus: window(whole, 0.0, 1.0),
        around: None,
        digest: String::new(),
    };
    let target = folder.path().join("cut.wsl");
    let stopped = cut(&whole.recording, &query, &target, &AtomicBool::new(true));
    assert!(matches!(stopped, Err(StoreError::Stopped)));
    assert_eq!(
        std::fs::read_dir(folder.path()).map(Iterator::count).ok(),
        Some(0)
    );
}

#[test]
fn what_nothing_names_is_left_out() {
    let whole = incident();
    let (part, _folder) = cut_of(whole, window(whole, 0.0, 0.02), Some(0));
    let rows = |recording: &Recording, table: &str| recording.info().tables[table].rows;
    for table in ["thread", "process", "syscall"] {
        assert!(
            rows(&part, table) < rows(&whole.recording, table),
            "{table}"
        );
    }
}
