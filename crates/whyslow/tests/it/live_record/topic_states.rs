//! What the recorder recorded is known, whether or not anything happened.

use serde_json::Value;

use super::{can_record, record};
use crate::common::Place;

#[test]
fn topics_without_events_were_recorded_and_others_were_not() {
    if !can_record() {
        return;
    }
    let place = Place::new();
    // The shell looks up no name, and calls no function of a library for that.
    record(&place, &["--what", "syscalls,dns"], "cd /; true");
    let answer = |query: &[&str]| -> Value {
        let text = place.stdout(&[query, &["rec.wsl", "--json"]].concat());
        serde_json::from_str(&text).expect("JSON")
    };
    assert_eq!(answer(&["syscalls", "stats"])["state"], "recorded");
    let lookups = answer(&["dns", "log"]);
    let rows = lookups["tables"][0]["rows"].as_array().map_or(0, Vec::len);
    let state = if rows == 0 {
        "none_happened"
    } else {
        "recorded"
    };
    assert_eq!(lookups["state"], state, "{lookups}");
    let packets = answer(&["net", "usage"]);
    assert_eq!(packets["state"], "not_recorded", "{packets}");
    assert_eq!(packets["record_with"], "--what +net");
    let caveat = "network traffic unavailable: packets not recorded (add `--what +net`)";
    assert_eq!(packets["caveats"][0], caveat, "{packets}");
}
