//! Whether events were recorded, on the command line and in the API.

use serde_json::Value;

use crate::common::Place;
use crate::serve::client::Server;

/// System calls and locks were recorded. No thread waited for a lock, and nothing is known of
/// disks.
const CALLS: &str = r#"whyslow-text 1
meta topics=syscalls,locks
1421342317.100000000 [0] (tid=10 pid=10 comm=cat) syscall_enter name=openat path="/var/a" flags=0
1421342317.100100000 [0] (tid=10 pid=10 comm=cat) syscall_exit name=openat ret=3
1421342319.000000000 [0] (tid=10 pid=10 comm=cat) syscall_enter name=read fd=3 count=10
1421342319.000100000 [0] (tid=10 pid=10 comm=cat) syscall_exit name=read ret=10
"#;

fn place() -> Place {
    let place = Place::new();
    place.write("t.txt", CALLS);
    // The same without a statement about what was recorded.
    let silent = CALLS.replace("meta topics=syscalls,locks\n", "");
    place.write("silent.txt", silent);
    place
}

fn json(place: &Place, args: &[&str]) -> Value {
    let text = place.stdout(&[args, &["--json"]].concat());
    serde_json::from_str(&text).expect("one JSON document")
}

#[test]
fn an_answer_states_whether_its_events_were_recorded() {
    let place = place();
    let check = |args: &[&str], state: &str, reason: Option<&str>| {
        let answer = json(&place, args);
        assert_eq!(answer["state"], state, "{args:?}: {answer}");
        assert_eq!(answer["reason"].as_str(), reason, "{args:?}");
        if let Some(reason) = reason {
            let text = place.stdout(args);
            assert_eq!(text.matches(reason).count(), 1, "{args:?}: {text}");
        }
    };
    check(&["io", "stats", "t.txt"], "recorded", None);
    let none = "no lock waits: recorded, none happened";
    check(&["locks", "stats", "t.txt"], "none_happened", Some(none));
    check(&["locks", "top", "t.txt"], "none_happened", Some(none));
    check(
        &["io", "top", "t.txt", "-w", "+1s..+1.5s"],
        "none_happened",
        Some("no I/O operations: recorded, none happened in this window"),
    );
    check(
        &["block", "stats", "t.txt"],
        "not_recorded",
        Some("disk activity unavailable: block requests not recorded"),
    );
    check(
        &["locks", "stats", "silent.txt"],
        "unknown",
        Some("cannot tell whether lock waits were recorded: the source `text` does not state it"),
    );
    // The filter is the reason.
    check(&["io", "top", "t.txt", "-p", "4711"], "recorded", None);
    let text = place.stdout(&["io", "top", "t.txt", "-p", "4711"]);
    assert!(text.contains("(nothing matches)"), "{text}");
}

#[test]
fn info_and_the_api_list_the_topics() {
    let place = place();
    let info = json(&place, &["info", "t.txt"]);
    let tables = info["tables"].as_array().expect("tables");
    let topics = tables.iter().find(|table| table["name"] == "topics");
    let listed = topics.expect("a table of topics")["rows"].as_array();
    let listed = listed.expect("rows").clone();
    place.stdout(&["import", "t.txt", "-o", "t.wsl"]);
    let server = Server::start(&place, &["t.wsl"]);
    let about = server.json("recordings");
    let kinds = about["recordings"][0]["kinds"].as_array().expect("kinds");
    assert_eq!(listed.len(), kinds.len());
    let check = |kind: &str, state: &str, count: Option<i64>| {
        for one in [&listed, kinds] {
            let mut found = one.iter().filter(|one| one["kind"] == kind);
            let found = found.next().unwrap_or_else(|| panic!("{kind}"));
            assert_eq!(found["state"], state, "{found}");
            assert_eq!(found["count"].as_i64(), count, "{found}");
            assert_eq!(found["reason"].is_null(), state == "recorded", "{found}");
        }
    };
    check("io", "recorded", Some(2));
    check("syscalls", "recorded", Some(2));
    check("locks", "none_happened", Some(0));
    check("block", "not_recorded", None);
    check("runtime", "not_recorded", None);
}
