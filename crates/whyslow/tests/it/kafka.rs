//! A broker whose producers wait for a lagging consumer: from its profile alone, and with kernel
//! events.

use serde_json::Value;

use crate::common::Place;

fn fixture(name: &str) -> String {
    let path = whyslow_testkit::fixture("kafka");
    path.join(name).display().to_string()
}

fn query(place: &Place, args: &[&str]) -> Value {
    let args: Vec<&str> = args.iter().copied().chain(["--json"]).collect();
    serde_json::from_str(&place.stdout(&args)).expect("one JSON document")
}

/// The longest wait for the lock of the log with one holder, not several in turn.
fn longest(place: &Place, recording: &str) -> Value {
    let answer = query(place, &["locks", "log", recording, "-n", "0"]);
    let rows = answer["tables"][0]["rows"].as_array().expect("rows");
    let of_log = rows.iter().filter(|row| {
        let function = row["function"].as_str().unwrap_or_default();
        let is_sure = row["confidence"] == "medium" || row["confidence"] == "high";
        row["reported_by"] == "event" && is_sure && function.contains("UnifiedLog")
    });
    let longest = of_log.max_by_key(|row| row["dur_ns"].as_i64());
    longest.expect("a wait for the log").clone()
}

fn text<'v>(value: &'v Value, place: &str) -> &'v str {
    value.pointer(place).and_then(Value::as_str).unwrap_or("")
}

/// Links of the first finding.
fn chain(place: &Place, args: &[&str]) -> (Value, Vec<Value>) {
    let report = query(place, args);
    let finding = report["findings"][0].clone();
    let chain = finding["chain"].as_array().expect("a chain").clone();
    (finding, chain)
}

#[test]
fn the_kernel_proves_what_the_profile_suspects() {
    let place = Place::new();
    let recording = fixture("incident.wsl.tar.zst");
    let wait = longest(&place, &recording);
    let id = text(&wait, "/id");
    let (finding, chain) = chain(&place, &["explain", &recording, "-w", id]);
    let write = chain
        .iter()
        .position(|hop| hop["mechanism"] == "lock_inode")
        .expect("a wait for the lock of the file");
    let (waiter, holder) = (&chain[write], &chain[write + 1]);
    assert!(text(waiter, "/actor/name").starts_with("data-plane-kafka-request-handler-"));
    assert_eq!(text(waiter, "/activity/call"), "write");
    let program = waiter["program"].to_string();
    assert!(program.contains("LogSegment.append"), "{program}");
    assert!(text(holder, "/actor/name").starts_with("data-plane-kafka-network-thread-"));
    assert_eq!(text(holder, "/activity/call"), "sendfile");
    assert!(text(holder, "/mechanism").starts_with("block_"));
    let program = holder["program"].to_string();
    assert!(program.contains("transferFrom"), "{program}");
    // Also if the wait for the monitor is split by timeouts.
    let parts = finding["parts"].as_array().expect("parts");
    let of_reader = parts.iter().filter(|part| {
        text(part, "/culprit/name").starts_with("data-plane-kafka-network-thread-")
            && text(part, "/root").starts_with("block_")
    });
    let share: f64 = of_reader.filter_map(|part| part["share"].as_f64()).sum();
    assert!(share > 0.95, "{share}");
    // What the profile alone shows is kept.
    let caveats = finding["caveats"].to_string();
    assert!(caveats.contains("from the profile alone"), "{caveats}");
}

#[test]
fn threads_have_their_whole_names_also_where_the_kernel_tells_of_them() {
    let place = Place::new();
    let recording = fixture("incident.wsl.tar.zst");
    for view in [
        &["threads", "list"][..],
        &["threads", "states"],
        &["io", "top"],
    ] {
        let args = [view, &[&recording, "--comm", "*-request-handler-*"]].concat();
        let answer = query(&place, &args);
        let rows = answer["tables"][0]["rows"].as_array().expect("rows");
        assert!(!rows.is_empty(), "{view:?}");
    }
}

#[test]
fn both_clocks_agree_where_they_tell_of_the_same() {
    let place = Place::new();
    let answer = query(&place, &["info", &fixture("incident.wsl.tar.zst")]);
    let tables = answer["tables"].as_array().expect("tables");
    let clocks = tables
        .iter()
        .find(|table| table["name"] == "clocks")
        .expect("clocks");
    let row = &clocks["rows"][0];
    assert!(row["pairs"].as_i64().expect("a number") >= 3);
    let median = row["median_ns"].as_i64().expect("a time");
    assert!((0..3_000_000).contains(&median), "{median}");
}

#[test]
fn a_profile_alone_tells_no_more_than_it_can_know() {
    let place = Place::new();
    let profile = fixture("incident.jfr.gz");
    let wait = longest(&place, &profile);
    let id = text(&wait, "/id");
    let (finding, chain) = chain(&place, &["explain", &profile, "-w", id]);
    assert_eq!(text(&chain[0], "/mechanism"), "lock_program");
    assert!(text(&chain[1], "/what").starts_with("held"));
    let silent: Vec<&Value> = chain
        .iter()
        .filter(|hop| hop["mechanism"] == "unseen_wait")
        .collect();
    assert_eq!(
        silent.len(),
        2,
        "the holder, and the thread that was silent with it"
    );
    assert!(silent.iter().all(|hop| hop["grade"] != "A"));
    assert_eq!(silent[1]["grade"], "C");
    assert!(text(silent[1], "/actor/name").contains("network-thread"));
    let of_kernel = |hop: &&Value| {
        let mechanism = text(hop, "/mechanism");
        mechanism.starts_with("block") || mechanism.starts_with("lock_inode")
    };
    assert!(!chain.iter().any(|hop| of_kernel(&hop)));
    assert!(finding["missing"].to_string().contains("whyslow record"));
}
