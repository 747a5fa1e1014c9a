//! What only the server has: notes, searches, wakeups, SQL, load figures.

use std::fmt::Write as _;
use std::io::Write as _;
use std::time::Duration;

use serde_json::{Value, json};
use whyslow_testkit::{Need, skip};

use super::client::{Reply, Server, encoded};
use crate::common::{Place, recorded};

/// Hostile names: markup, terminal escapes, text directions, and very long ones.
fn hostile() -> (Place, Vec<String>) {
    let names = vec![
        "/tmp/<script>alert(1)</script>\"'&".to_owned(),
        "/tmp/\u{202e}gpj.exe\u{2066}".to_owned(),
        "/tmp/\u{1b}[2J\u{7}\n{}".to_owned(),
        format!("/tmp/{}", "ä".repeat(2_000)),
    ];
    let mut trace = "whyslow-text 1\nmeta hostname=<b>host\n".to_owned();
    for (number, name) in names.iter().enumerate() {
        let mut quoted = String::new();
        for byte in name.bytes() {
            match byte {
                b'"' | b'\\' | 0..=0x1f | 0x7f.. => {
                    let _ = write!(quoted, "\\x{byte:02x}");
                }
                byte => quoted.push(char::from(byte)),
            }
        }
        let task = format!("(tid={0} pid={0} comm=<i>x{0})", 20 + number);
        let at = 1_421_342_317 + number;
        let _ = write!(
            trace,
            "{at}.1 [0] {task} syscall_enter name=openat path=\"{quoted}\" flags=0\n\
             {at}.2 [0] {task} syscall_exit name=openat ret=3\n"
        );
    }
    let place = Place::new();
    place.write("h.txt", trace);
    (place, names)
}

#[test]
fn hostile_names_come_as_they_are_in_json_and_nowhere_else() {
    let (place, names) = hostile();
    let server = Server::start(&place, &["h.txt"]);
    let reply = server.get("/api/v1/table?what=io&view=log");
    let document = reply.json();
    let rows = document["tables"][0]["rows"].as_array().expect("rows");
    let paths: Vec<&str> = rows.iter().filter_map(|row| row["path"].as_str()).collect();
    assert_eq!(paths, names);
    // Terminal escapes are escaped here, too.
    let text = reply.text();
    assert!(
        !text.contains('\u{1b}') && !text.contains('\u{202e}'),
        "{text}"
    );
    for name in &names {
        let part: String = name.chars().skip(5).take(9).collect();
        let part = encoded(&part);
        let found = server.json(&format!("search?q={part}"));
        let hit = &found["hits"][0];
        assert_eq!(hit["text"], name.as_str(), "{found}");
        assert_eq!(hit["count"], 1);
        // Its filter matches this file and no other.
        let glob = hit["filter"]["file"].as_str().expect("a glob");
        let glob = encoded(glob);
        let reply = server.get(&format!("/api/v1/table?what=io&view=log&file={glob}"));
        assert_eq!(reply.status, 200, "{}", reply.text());
        let rows = reply.json()["tables"][0]["rows"].clone();
        assert_eq!(rows.as_array().map(Vec::len), Some(1), "{name:?}");
        assert_eq!(rows[0]["path"], name.as_str());
        assert!(reply.head.is_ascii());
    }
    let found = server.json("search?q=%3CI%3EX2");
    let kinds: Vec<&Value> = found["hits"].as_array().expect("hits").iter().collect();
    assert_eq!(kinds.len(), 8, "{found}");
    let quoted = server.get("/api/v1/table?what=no%0d%0aX-Injected:1&view=top");
    assert_eq!(quoted.status, 404);
    let quoted = server.get("/api/v1/table?what=io&view=top&comm=a%0d%0aX-Injected:%201");
    assert!(quoted.header("x-injected").is_none(), "{}", quoted.head);
    let error = server.get("/api/v1/table?what=%3Cscript%3E&view=top");
    assert_eq!(error.header("content-type"), Some("application/json"));
}

#[test]
fn names_are_found_in_any_case() {
    let server = Server::start(recorded(), &["t.wsl"]);
    let found = server.json("search?q=APACHE");
    let hits = found["hits"].as_array().expect("hits");
    let of = |kind: &str| hits.iter().filter(|hit| hit["kind"] == kind).count();
    assert_eq!(
        (of("process"), of("thread"), of("file")),
        (1, 1, 0),
        "{found}"
    );
    let found = server.json("search?q=sess_");
    let hits = found["hits"].as_array().expect("hits");
    let hit = hits
        .iter()
        .find(|hit| hit["kind"] == "file")
        .expect("a file");
    assert_eq!(hit["text"], "/var/lib/php5/sess_1");
    // openat, write and read, as in the table of calls.
    let rows = server.json("table?what=syscalls&view=log&file=/var/lib/php5/sess_1");
    let rows = rows["tables"][0]["rows"].as_array().expect("rows").clone();
    assert_eq!(hit["count"], rows.len());
    assert_eq!(hit["begin_ns"], rows[0]["ts_ns"]);
    assert_eq!(server.json("search?q=8:0")["hits"][0]["kind"], "device");
    assert_eq!(server.json("search?q=no-such-name")["hits"], json!([]));
    assert_eq!(server.get("/api/v1/search?q=%20").status, 400);
    // Findings can be requested once `explain` has run.
    server.json("explain");
    let found = server.json("search?q=sess_1");
    assert_eq!(found["hits"][0]["kind"], "finding", "{found}");
}

fn put(server: &Server, path: &str, body: &str) -> Reply {
    let first = format!("PUT {path} HTTP/1.1");
    let token = format!("Authorization: Bearer {}", server.token);
    let length = format!("Content-Length: {}", body.len());
    let lines = [first.as_str(), "Host: localhost", &token, &length];
    server.say(&lines, body.as_bytes())
}

#[test]
fn notes_are_kept_by_recording() {
    let place = recorded();
    let notes = json!([{"ts_ns": 5, "note": "<b>"}, {"ts_ns": 6, "end_ns": 7, "note": "ä"}]);
    let path = "/api/v1/notes";
    let server = Server::start(place, &["t.wsl"]);
    assert_eq!(server.json("notes"), json!([]));
    assert_eq!(put(&server, path, &notes.to_string()).status, 204);
    assert_eq!(server.json("notes"), notes);
    for wrong in ["", "{}", "[1]", "[{\"ts_ns\":1}]"] {
        assert_eq!(put(&server, path, wrong).status, 400, "{wrong}");
    }
    let long = json!([{"ts_ns": 1, "note": "x".repeat(300 << 10)}]).to_string();
    assert_eq!(put(&server, path, &long).status, 413);
    assert_eq!(put(&server, "/api/v1/notes?rec=no", "[]").status, 404);
    // Another server of the recording has them, too; another recording does not.
    let (other, _) = hostile();
    let other = other.join("h.txt").display().to_string();
    let again = Server::start(place, &["t.wsl", &other]);
    assert_eq!(again.json("notes"), notes);
    assert_eq!(again.json("notes?rec=h.txt"), json!([]));
    assert_eq!(put(&again, path, "[]").status, 204);
    assert_eq!(server.json("notes"), json!([]));
}

#[test]
fn heat_maps_have_as_many_columns_as_are_asked_for() {
    let server = Server::start(recorded(), &["t.wsl"]);
    let begin = 1_421_342_317_000_000_000_i64;
    let query = format!("heat?what=io&columns=7&w={begin}..{}", begin + 999_999_999);
    let map = server.json(&query);
    let command = map["cli"].as_str().expect("a command");
    // A seventh, and no less: there is no eighth.
    assert!(command.contains(" 142857143ns "), "{command}");
    for wrong in [
        "columns=0",
        "columns=x",
        "columns=5&interval=1",
        "columns=99999999",
    ] {
        let reply = server.get(&format!("/api/v1/heat?what=io&{wrong}"));
        assert_eq!(reply.status, 400, "{wrong}");
    }
}

#[test]
fn sql_is_answered_within_limits() {
    let server = Server::start(recorded(), &["t.wsl"]);
    let about = server.json("recordings")["recordings"][0]["sql"].clone();
    if about["available"] == false {
        assert!(
            about["hint"]
                .as_str()
                .is_some_and(|hint| hint.contains("pip install"))
        );
        assert_eq!(server.get("/api/v1/sql?q=SELECT%201").status, 503);
        return skip(Need::DuckDb, "there is no DuckDB");
    }
    let query = |statement: &str| {
        let q = encoded(statement);
        server.get(&format!("/api/v1/sql?q={q}"))
    };
    let found = query("SELECT name, count(*) AS n FROM io GROUP BY name ORDER BY name").json();
    assert_eq!(
        found["columns"],
        json!([{"name": "name", "type": "VARCHAR"}, {"name": "n", "type": "BIGINT"}])
    );
    assert_eq!(found["rows"][0], json!(["openat", 3]));
    let many = query("SELECT * FROM range(100000)").json();
    assert_eq!(many["cut"], true);
    assert_eq!(many["rows"].as_array().map(Vec::len), Some(10_000));
    for refused in [
        "SELECT nothing FROM io",
        "SELECT * FROM read_text('/etc/passwd')",
        "COPY (SELECT 1) TO '/tmp/whyslow-sql-test'",
        "ATTACH '/tmp/whyslow-sql-test.db'",
        ".shell id",
        "no sql at all",
    ] {
        let reply = query(refused);
        assert_eq!(reply.status, 400, "{refused}: {}", reply.text());
    }
    assert_eq!(server.get("/api/v1/sql?q=").status, 400);
    let text = server.json("sql?tables")["text"].clone();
    assert!(text.as_str().is_some_and(|text| text.contains("io_stats")));
}

/// How many queries were cancelled because the client left, and how many are running.
fn cancelled(server: &Server) -> (u64, u64) {
    let queries = &server.json("status")["queries"];
    let count = |name: &str| queries[name].as_u64().expect("a number");
    (count("cancelled"), count("running"))
}

fn wait_for(what: &str, is_so: impl Fn() -> bool) {
    for _ in 0..600 {
        if is_so() {
            return;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    panic!("never: {what}");
}

#[test]
fn a_question_ends_when_nobody_waits_for_it() {
    let server = Server::start(recorded(), &["t.wsl", "--query-time=1h"]);
    if server.json("recordings")["recordings"][0]["sql"]["available"] == false {
        return skip(
            Need::DuckDb,
            "there is no DuckDB, and no other query here takes long",
        );
    }
    let mut stream = server.connect();
    let endless = "SELECT%20count(*)%20FROM%20range(1000000000000)%20a,range(1000000000)%20b";
    let text = format!(
        "GET /api/v1/sql?q={endless} HTTP/1.1\r\nHost: localhost\r\n\
         Authorization: Bearer {}\r\n\r\n",
        server.token
    );
    stream.write_all(text.as_bytes()).expect("it takes it");
    wait_for("it runs", || cancelled(&server) == (0, 1));
    drop(stream);
    wait_for("it was given up", || cancelled(&server) == (1, 0));
}

#[test]
fn a_question_ends_when_its_time_is_over() {
    let server = Server::start(recorded(), &["t.wsl", "--query-time=1ns"]);
    let reply = server.get("/api/v1/table?what=io&view=top");
    assert_eq!(reply.status, 408, "{}", reply.text());
    let reply = server.get("/api/v1/table?what=io&view=log&format=csv");
    assert_eq!(reply.status, 408, "{}", reply.text());
    let server = Server::start(recorded(), &["t.wsl", "--query-memory=1k"]);
    let reply = server.get("/api/v1/table?what=io&view=top");
    assert_eq!(reply.status, 413, "{}", reply.text());
}

#[test]
fn many_questions_at_once_are_all_answered_the_same() {
    let server = Server::start(recorded(), &["t.wsl"]);
    let want = server.json("table?what=io&view=stats");
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..16)
            .map(|_| scope.spawn(|| server.json("table?what=io&view=stats")))
            .collect();
        for thread in threads {
            assert_eq!(thread.join().expect("an answer"), want);
        }
    });
}

#[test]
fn figures_are_those_of_the_export_for_who_has_the_token() {
    let place = recorded();
    let token = place.path().join("token");
    let token = token.to_str().expect("UTF-8");
    let server = Server::start(place, &["t.wsl", "--token-file", token]);
    let kept = std::fs::read_to_string(token).expect("it was made");
    assert_eq!(kept.trim_end(), server.token);
    for (path, flags) in [
        ("/metrics", [].as_slice()),
        ("/api/v1/metrics?w=%2B0s..%2B1ms", &["-w", "+0s..+1ms"]),
    ] {
        let reply = server.get(path);
        assert_eq!(reply.status, 200, "{}", reply.text());
        let content = reply.header("content-type").expect("a type").to_owned();
        assert!(content.starts_with("application/openmetrics-text; version=1.0.0"));
        let mut words = vec!["export", "openmetrics", "t.wsl", "-q"];
        words.extend(flags);
        let done = place.program().args(&words).output().expect("it runs");
        assert_eq!(reply.text(), String::from_utf8_lossy(&done.stdout));
        assert!(reply.text().contains("\nwhyslow_"), "{}", reply.text());
    }
    let query = |header: &str| server.say(&["GET /metrics HTTP/1.1", header], b"").status;
    assert_eq!(query("Host: localhost"), 401);
    assert_eq!(query("Host: evil.example"), 403);
    assert_eq!(server.get("/metrics?no-such-key=1").status, 400);
}
