//! The data of charts.

use serde_json::{Value, json};

use super::client::{Reply, Server};
use crate::common::recorded;

fn server() -> Server {
    let server = Server::start(recorded(), &["t.wsl"]);
    server.await_charts();
    server
}

#[test]
fn lanes_have_the_names_of_their_threads() {
    let server = server();
    let found = server.json("tracks?track=calls");
    let track = &found["tracks"][0];
    assert_eq!(track["total"], 2, "{track}");
    let lanes = track["lanes"].as_array().expect("lanes");
    // `sync` was busy for longer than `apache2`.
    let names: Vec<(&Value, &Value)> = lanes
        .iter()
        .map(|lane| (&lane["name"], &lane["tid"]))
        .collect();
    assert_eq!(
        names,
        [
            (&json!("sync"), &json!(10)),
            (&json!("apache2"), &json!(20))
        ]
    );
    for (query, total) in [
        ("tid=20", 1),
        ("pid=10", 1),
        ("comm=sy*", 1),
        ("comm=x", 0),
        ("w=1..2", 0),
    ] {
        let found = server.json(&format!("tracks?track=calls&{query}"));
        assert_eq!(found["tracks"][0]["total"], total, "{query}");
    }
    assert_eq!(server.get("/api/v1/tracks?track=no").status, 404);
    assert_eq!(server.get("/api/v1/tracks?comm=%5B").status, 400);
    assert_eq!(server.get("/api/v1/tracks?pid=x").status, 400);
}

/// Calls of a tile by thread; each counts once, where it starts.
fn counted(reply: &Reply) -> i64 {
    let rows = reply.json()["rows"].clone();
    let rows = rows.as_array().expect("rows").clone();
    rows.iter().filter_map(|row| row[8].as_i64()).sum()
}

#[test]
fn a_tile_has_the_calls_of_its_time() {
    let server = server();
    let whole = server.get("/api/v1/tile?track=calls&level=38&index=0");
    let calls = server.json("table?what=syscalls&view=log");
    let calls = calls["tables"][0]["rows"].as_array().expect("rows").len() as i64;
    assert_eq!(counted(&whole), calls, "{}", whole.text());
    // Its two halves together have the same calls.
    let halves = (0..=1).map(|index| {
        counted(&server.get(&format!("/api/v1/tile?track=calls&level=37&index={index}")))
    });
    assert_eq!(halves.sum::<i64>(), calls);
    let lane = whole.json()["rows"][0][0].clone();
    let one = server.get(&format!(
        "/api/v1/tile?track=calls&level=38&index=0&lanes={lane}"
    ));
    assert!(counted(&one) < calls && counted(&one) > 0);
    for (query, status) in [
        ("track=calls&level=51&index=0", 400),
        ("track=calls&level=-1&index=0", 400),
        ("track=calls&level=50&index=18446744073709551615", 200),
        ("track=calls&level=0&index=0&lanes=2147483647,-5", 200),
        ("track=calls&level=0&index=0&lanes=x", 400),
        ("track=no&level=0&index=0", 404),
        ("level=0&index=0", 400),
        ("track=calls&index=0", 400),
        ("track=calls&level=0&index=0&format=csv", 406),
    ] {
        let reply = server.get(&format!("/api/v1/tile?{query}"));
        assert_eq!(reply.status, status, "{query}: {}", reply.text());
    }
}

#[test]
fn a_tile_may_be_kept_when_it_names_the_content_of_its_recording() {
    let server = server();
    let digest = server.json("recordings")["recordings"][0]["digest"].clone();
    let digest = digest.as_str().expect("a digest");
    let path = "/api/v1/tile?track=calls&level=30&index=0";
    assert_eq!(server.get(path).header("cache-control"), Some("no-store"));
    let pinned = format!("{path}&digest={digest}");
    let reply = server.get(&pinned);
    let cached = reply.header("cache-control").expect("it limits caching");
    assert!(
        cached.contains("immutable") && cached.contains("private"),
        "{cached}"
    );
    let etag = reply.header("etag").expect("a tag");
    let again = server.get_with(&pinned, &[&format!("If-None-Match: {etag}")]);
    assert_eq!((again.status, again.body.len()), (304, 0));
    let other = server.get_with(&pinned, &["If-None-Match: \"0\""]);
    assert_eq!(other.status, 200);
    let gone = server.get(&format!("{path}&digest=0"));
    assert_eq!(gone.status, 404);
    assert_eq!(gone.header("cache-control"), Some("no-store"));
}

#[test]
fn answers_are_compressed_for_who_takes_it() {
    let server = server();
    let path = "/api/v1/table?what=io&view=log";
    let plain = server.get(path);
    assert!(plain.header("content-encoding").is_none());
    let packed = server.get_with(path, &["Accept-Encoding: gzip"]);
    assert_eq!(packed.header("content-encoding"), Some("gzip"));
    assert!(packed.body.len() < plain.body.len());
    assert_eq!(packed.body[..2], [0x1f, 0x8b]);
}

#[test]
fn series_reach_over_the_window() {
    let server = server();
    let found = server.json("series?points=10");
    let names: Vec<&Value> = found["series"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|series| &series["name"])
        .collect();
    assert!(names.len() > 2, "{names:?}");
    let one = server.json("series?points=10&name=calls");
    assert_eq!(one["series"].as_array().map(Vec::len), Some(1));
    let values = one["series"][0]["values"].as_array().expect("values");
    assert!(
        values.iter().any(|value| value.as_f64() > Some(0.0)),
        "{one}"
    );
    assert_eq!(server.get("/api/v1/series?name=no").status, 404);
    assert_eq!(server.get("/api/v1/series?points=x").status, 400);
}
