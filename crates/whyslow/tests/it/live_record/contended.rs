//! A lock that always blocks other threads, and a pool of threads that wait for jobs.

use serde_json::Value;

use super::can_record;
use super::compiled::{compiled, recorded};
use crate::common::Place;

/// Findings of contended locks of the program's process, for one of its modes.
fn locks(mode: &str) -> Option<Vec<Value>> {
    let place = Place::new();
    let name = format!("contended-{mode}");
    let options = ["-O1", "-pthread", "-fno-omit-frame-pointer"];
    let program = compiled(&place, &name, "contended.c", &options)?;
    recorded(&place, &[], &program, &[mode]);
    let json = place.stdout(&["explain", "rec.wsl", "--json", "-n", "0"]);
    let report: Value = serde_json::from_str(&json).expect("JSON");
    let findings = report["findings"].as_array().cloned().unwrap_or_default();
    let of_program = |finding: &Value| {
        let verdict = finding["verdict"].as_str().unwrap_or_default();
        !finding["contention"].is_null() && verdict.contains(&name)
    };
    Some(findings.into_iter().filter(of_program).collect())
}

#[test]
fn a_mutex_that_is_held_most_of_the_time_is_reported_with_its_holder() {
    if !can_record() {
        return;
    }
    let Some(found) = locks("lock") else { return };
    let [finding] = found.as_slice() else {
        panic!("{found:#?}");
    };
    let lock = &finding["contention"];
    assert_eq!(lock["kind"], "futex");
    assert_eq!(lock["threads"], 4, "{lock}");
    let share = lock["share"].as_f64().expect("a share");
    assert!((0.3..0.9).contains(&share), "{lock}");
    // The holder is not the main thread.
    let holder = &lock["holder"];
    assert!(holder["tid"].as_i64() > holder["pid"].as_i64(), "{lock}");
    let place = finding["culprit"].as_u64().expect("a culprit") as usize;
    assert_eq!(finding["parts"][place]["root"], "timer_sleep");
}

#[test]
fn a_pool_that_waits_for_jobs_is_not_reported() {
    if !can_record() {
        return;
    }
    if let Some(found) = locks("pool") {
        assert!(found.is_empty(), "{found:#?}");
    }
}
