//! Views of durations of a web server begin with what was slow, not with idle workers.

use serde_json::Value;

use crate::common::Place;

/// The bundled incident, imported.
fn place() -> Place {
    let place = Place::new();
    let trace = whyslow_testkit::fixture("web-incident/trace.tar.zst");
    let trace = trace.to_str().expect("a path");
    place.stdout(&["import", trace, "-o", "web.wsl", "--quiet"]);
    place
}

fn json(place: &Place, args: &[&str]) -> Value {
    serde_json::from_str(&place.stdout(&[args, &["--json"]].concat())).expect("JSON")
}

fn rows(answer: &Value, table: usize) -> Vec<Value> {
    let rows = answer["tables"][table]["rows"].as_array();
    rows.expect("rows").clone()
}

#[test]
fn the_longest_operations_are_those_that_were_slow() {
    let place = place();
    // The example of `whyslow --help`: the open of the session file that waited for the journal.
    let opens = json(&place, &["io", "top", "web.wsl", "--op", "open", "-n", "5"]);
    let first = &rows(&opens, 0)[0];
    assert_eq!(first["name"], "openat", "{first}");
    let path = first["path"].as_str().expect("a path");
    assert!(path.starts_with("/var/lib/php/sessions/sess_"), "{path}");
    let idle = [
        "accept4",
        "epoll_wait",
        "poll",
        "wait4",
        "nanosleep",
        "futex",
    ];
    for args in [
        &["io", "top", "web.wsl"][..],
        &["syscalls", "top", "web.wsl"],
        &["io", "hist", "web.wsl"],
        &["io", "heat", "web.wsl"],
        &["syscalls", "stats", "web.wsl"],
        &["io", "syscalls", "web.wsl"],
    ] {
        let answer = json(&place, args);
        let text = answer["tables"].to_string();
        for name in idle {
            assert!(!text.contains(&format!("\"{name}\"")), "{args:?}: {name}");
        }
        let left_out = &answer["left_out"];
        assert!(left_out["count"].as_i64() > Some(0), "{args:?}: {left_out}");
        assert!(
            left_out["total_ns"].as_i64() > Some(1_000_000_000),
            "{args:?}"
        );
        let with = json(&place, &[args, &["--waits"]].concat());
        assert_eq!(with["left_out"], Value::Null, "{args:?}");
    }
    let text = place.stdout(&["io", "top", "web.wsl"]);
    let noted = text.lines().filter(|line| line.contains("left out: "));
    assert_eq!(noted.count(), 1, "{text}");
}

#[test]
fn opens_are_not_averaged_with_idle_accepts() {
    let place = place();
    let stats = json(&place, &["io", "stats", "web.wsl"]);
    let all = rows(&stats, 0);
    let open = all.iter().find(|row| row["op"] == "open").expect("opens");
    assert!(open["avg_ns"].as_f64() < Some(100_000.0), "{open}");
    assert!(
        all.iter()
            .all(|row| row["slowest_object"] != "socket:[11749]")
    );
    let with = json(&place, &["io", "stats", "web.wsl", "--waits"]);
    let with = rows(&with, 0);
    let of = |op: &str| with.iter().find(|row| row["op"] == op).expect("listed")["count"].as_i64();
    // Accepts have a class of their own.
    assert_eq!(of("open"), open["count"].as_i64());
    assert!(of("connect") > Some(50));
    let named = json(
        &place,
        &["io", "top", "web.wsl", "--op", "accept4", "-n", "2"],
    );
    assert_eq!(rows(&named, 0)[0]["name"], "accept4");
    assert_eq!(named["left_out"], Value::Null);
    let log = json(&place, &["io", "log", "web.wsl", "--op", "connect"]);
    assert!(log["tables"].to_string().contains("accept4"));
}

#[test]
fn states_begin_with_uninterruptible_sleeps_and_run_queue_waits() {
    let place = place();
    let top = json(&place, &["states", "top", "web.wsl"]);
    let tables = top["tables"].as_array().expect("tables");
    let titles: Vec<&str> = tables
        .iter()
        .filter_map(|table| table["title"].as_str())
        .collect();
    assert_eq!(titles[..2], ["uninterruptible", "runnable"], "{titles:?}");
    assert!(!titles.contains(&"idle"), "{titles:?}");
    // `sync` waited for the journal.
    assert_eq!(rows(&top, 0)[0]["comm"], "sync");
    let shown = json(&place, &["states", "top", "web.wsl", "--op", "idle"]);
    assert_eq!(rows(&shown, 0)[0]["state"], "idle");
}
