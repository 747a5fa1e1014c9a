//! The server gives the same answers as the command line.

use std::sync::{Arc, Mutex, Weak};

use serde_json::Value;

use super::client::Server;
use crate::common::recorded;

fn server() -> Arc<Server> {
    static SERVER: Mutex<Weak<Server>> = Mutex::new(Weak::new());
    Server::shared(&SERVER)
}

/// The same query to both, without the additional fields of the server's answer.
fn check(query: &str, words: &[&str]) {
    let mut got = server().json(query);
    let object = got.as_object_mut().expect("a document");
    let command = object.shift_remove("cli").expect("it contains the command");
    assert!(
        command
            .as_str()
            .is_some_and(|text| text.starts_with("whyslow "))
    );
    let want: Value = serde_json::from_str(&recorded().stdout(words)).expect("JSON");
    assert_eq!(got, want, "{query}");
}

#[test]
fn answers_are_those_of_the_command_line() {
    let _kept = server();
    let at = |words: &str| {
        let words: Vec<String> = words.split(' ').map(str::to_owned).collect();
        words
    };
    for (query, words) in [
        ("table?what=io&view=top", "io top t.wsl --json"),
        (
            "table?what=io&view=stats&op=open",
            "io stats t.wsl --op open --json",
        ),
        (
            "table?what=io&view=stats&interval=1&count=3",
            "io stats t.wsl 1 3 --json",
        ),
        ("hist?what=io", "io hist t.wsl --json"),
        ("hist?what=io&linear=5", "io hist t.wsl --linear 5 --json"),
        (
            "heat?what=io&weight=intensity",
            "io heat t.wsl --weight intensity --json",
        ),
        (
            "table?what=files&view=top&by=pattern",
            "files top t.wsl --by pattern --json",
        ),
        ("table?what=files&view=tree", "files tree t.wsl --json"),
        (
            "table?what=block&view=stats&dev=8:0",
            "block stats t.wsl --dev 8:0 --json",
        ),
        ("table?what=threads&view=list", "threads list t.wsl --json"),
        ("table?what=sched&view=stats", "sched stats t.wsl --json"),
        ("table?what=use", "use t.wsl --json"),
        (
            "table?what=io&view=log&w=%2B100ms..%2B1s&errors=1",
            "io log t.wsl -w +100ms..+1s --errors --json",
        ),
        (
            "table?what=io&view=log&wide=1&limit=0",
            "io log t.wsl --wide -n 0 --json",
        ),
        (
            "table?what=io&view=top&table=top_open&cols=path,dur_ns",
            "io top t.wsl --table top_open --cols path,dur_ns --json",
        ),
        ("explain", "explain t.wsl --json"),
        (
            "explain?limit=1&slow=open%3E10ms",
            "explain t.wsl -n 1 --slow open>10ms --json",
        ),
    ] {
        let words = at(words);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        check(query, &words);
    }
}

#[test]
fn a_window_in_nanoseconds_is_that_of_both() {
    let _kept = server();
    let window = "1421342317200000000..1421342317650000000";
    check(
        &format!("table?what=io&view=log&w={window}"),
        &["io", "log", "t.wsl", "-w", window, "--json"],
    );
}

#[test]
fn other_forms_are_those_of_the_command_line() {
    let _kept = server();
    let query = "/api/v1/table?what=io&view=log";
    for (form, media_type) in [
        ("csv", "text/csv; charset=utf-8"),
        ("tsv", "text/tab-separated-values; charset=utf-8"),
        ("ndjson", "application/x-ndjson"),
        ("md", "text/markdown; charset=utf-8"),
    ] {
        let reply = server().get(&format!("{query}&format={form}"));
        assert_eq!(reply.status, 200, "{}", reply.text());
        assert_eq!(reply.header("content-type"), Some(media_type));
        let want = recorded().stdout(&["io", "log", "t.wsl", "--format", form]);
        if form == "ndjson" {
            // The first line contains the command.
            let rest = |text: &str| text.split_once('\n').map(|(_, rest)| rest.to_owned());
            assert_eq!(rest(&reply.text()), rest(&want));
        } else {
            assert_eq!(reply.text(), want, "{form}");
        }
    }
    let reply = server().get_with(query, &["Accept: text/csv"]);
    assert_eq!(
        reply.text(),
        recorded().stdout(&["io", "log", "t.wsl", "--csv"])
    );
    let notes = reply
        .header("whyslow-notes")
        .expect("what CSV has no room for");
    let notes: Value = serde_json::from_str(notes).expect("JSON");
    assert_eq!(notes["lost_ranges"], 1);
}

#[test]
fn arrow_is_that_of_the_command_line() {
    let _kept = server();
    let accept = "Accept: application/vnd.apache.arrow.stream";
    let reply = server().get_with("/api/v1/table?what=io&view=log", &[accept]);
    assert_eq!(reply.status, 200);
    let output = recorded()
        .whyslow()
        .args(["io", "log", "t.wsl", "--format", "arrow"])
        .output()
        .expect("it runs");
    assert!(!output.stdout.is_empty());
    assert_eq!(reply.body, output.stdout);
}

#[test]
fn the_command_that_is_told_gives_the_same_answer() {
    let _kept = server();
    let query = "/api/v1/table?what=io&view=log&file=%3Dcmd%7C%27+%2FC*&min=1us";
    let reply = server().get(query);
    let command = reply.header("whyslow-cli").expect("a command").to_owned();
    assert_eq!(reply.json()["cli"], command.as_str());
    let words = command.strip_prefix("whyslow ").expect("the program");
    let program = assert_cmd::cargo::cargo_bin("whyslow");
    let line = format!("{} {words} --csv", program.display());
    let output = std::process::Command::new("sh")
        .args(["-c", &line])
        .current_dir(recorded().path())
        .output()
        .expect("a shell");
    let csv = server().get(&format!("{query}&format=csv")).text();
    assert_eq!(String::from_utf8_lossy(&output.stdout), csv);
    assert_eq!(csv.lines().count(), 2, "{csv}");
}
