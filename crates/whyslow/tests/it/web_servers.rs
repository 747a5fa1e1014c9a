//! Three recorded incidents of real web servers: `explain` names the cause, and requests found in
//! sockets equal those that the applications logged (`fixtures/web-servers`, made by
//! `workloads/run.py`).

use std::path::PathBuf;

use serde_json::Value;

use crate::common::Place;

/// Time between the read of the request and the log entry of the application.
const ROUND_NS: i64 = 1_000_000;

struct Incident {
    place: Place,
    folder: PathBuf,
    truth: Value,
}

impl Incident {
    fn new(name: &str) -> Self {
        let fixtures = whyslow_testkit::fixture("web-servers");
        let folder = fixtures.join(name);
        let truth = std::fs::read_to_string(folder.join("truth.json")).expect("it is there");
        Self {
            place: Place::new(),
            truth: serde_json::from_str(&truth).expect("JSON"),
            folder,
        }
    }

    fn query(&self, query: &[&str], words: &[&str]) -> Value {
        let recording = self.folder.join("recording.wsl.tar.zst");
        let mut command = self.place.whyslow();
        command.args(query).arg(recording).args(words);
        let done = command.arg("--json").assert().success();
        serde_json::from_slice(&done.get_output().stdout).expect("one JSON document")
    }

    /// The log of the application.
    fn served(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(self.folder.join("served.ndjson")).expect("it is there");
        let lines = text.lines().map(serde_json::from_str);
        lines.collect::<Result<_, _>>().expect("JSON")
    }

    /// Each request is found on its connection, at its time and in its thread, and nowhere else.
    /// Returns the log of each and its name.
    fn joined(&self) -> Vec<(Value, String)> {
        let words = ["-n", "0", "--by", "source,role"];
        let log = self.query(&["requests", "log"], &words);
        let rows = log["tables"][0]["rows"].as_array().expect("rows");
        let of_sockets: Vec<&Value> = rows
            .iter()
            .filter(|row| row["role"] == "server" && row["source"] == "socket")
            .collect();
        let served = self.served();
        let (mut joined, mut wrong) = (Vec::new(), 0);
        for truth in &served {
            let is_it = |row: &&&Value| {
                let began = truth["begin_ns"].as_i64().expect("a time");
                let end = row["ts_end_ns"].as_i64().unwrap_or(i64::MAX);
                plain(&row["peer"]) == plain(&truth["peer"])
                    && plain(&row["local"]) == plain(&truth["local"])
                    && row["ts_ns"].as_i64().expect("a time") <= began + ROUND_NS
                    && end >= began
            };
            let mut found: Vec<_> = of_sockets.iter().filter(is_it).collect();
            if found.len() > 1 {
                // The next request on a connection may come within the rounding error.
                found.retain(|row| row["ts_ns"].as_i64() <= truth["begin_ns"].as_i64());
            }
            let is_right = found.len() == 1 && found[0]["tid"] == truth["tid"];
            wrong += usize::from(!found.is_empty() && !is_right);
            if is_right {
                let id = found[0]["id"].as_str().expect("request:ID");
                joined.push((truth.clone(), id.to_owned()));
            }
        }
        assert_eq!(wrong, 0);
        let (right, all) = (joined.len(), served.len());
        assert!(right * 100 >= all * 95, "{right} of {all}");
        joined
    }
}

/// An IPv4-mapped IPv6 address is the same address.
fn plain(address: &Value) -> String {
    let address = address.as_str().unwrap_or_default();
    address
        .replace("[::ffff:", "")
        .replace("::ffff:", "")
        .replace(']', "")
}

fn findings(report: &Value) -> &Vec<Value> {
    report["findings"].as_array().expect("findings")
}

#[test]
fn a_shop_whose_resolver_loses_queries() {
    let shop = Incident::new("shop");
    let report = shop.query(&["explain"], &[]);
    let guilty = &shop.truth["guilty"];
    let (resolver, host) = (guilty["resolver"].as_str(), guilty["host"].as_str());
    let (resolver, host) = (resolver.expect("its address"), host.expect("its name"));
    let first = &findings(&report)[0];
    let part = &first["parts"][0];
    assert!(
        part["root"] == "dns_lookup" || part["mechanism"] == "dns_lookup",
        "{}",
        first["verdict"]
    );
    assert!(part.to_string().contains(resolver), "{part}");
    let text = report.to_string();
    for word in [host, "timeout 5 s, attempts 2", "/health"] {
        assert!(text.contains(word), "{word}");
    }
    // Queries without a reply are those that the resolver logged as lost.
    let log = shop.query(&["nameservers", "log"], &["-n", "0"]);
    let rows = log["tables"][0]["rows"].as_array().expect("rows");
    let lost = rows.iter().filter(|row| {
        row["server"] == resolver
            && row["outcome"] != "answered"
            && row["dur_ns"].as_i64() >= Some(4_000_000_000)
    });
    let dropped = shop.truth["lost"].as_array().expect("a list");
    assert!(!dropped.is_empty());
    assert_eq!(lost.count(), dropped.len());
    shop.joined();
}

#[test]
fn an_image_board_beside_a_sync() {
    let board = Incident::new("board");
    let report = board.query(&["explain"], &[]);
    let first = &findings(&report)[0];
    let place = first["culprit"].as_u64().expect("a culprit") as usize;
    assert_eq!(first["parts"][place]["culprit"]["name"], "sync", "{first}");
    let targets: Vec<&Value> = findings(&report)
        .iter()
        .map(|finding| &finding["target"])
        .collect();
    let is_session = |target: &&Value| target.to_string().contains("sessions/sess_");
    assert!(
        targets.iter().copied().any(|target| is_session(&target)),
        "{targets:?}"
    );
    board.joined();
}

#[test]
fn a_word_service_that_writes_a_file_for_each_word() {
    let words = Incident::new("words");
    let report = words.query(&["explain"], &[]);
    let guilty = &words.truth["guilty"];
    let observations = report["observations"].as_array().expect("observations");
    let files = observations
        .iter()
        .find(|it| it["kind"] == "temporary_files");
    let numbers = files.expect("they are found")["numbers"].to_string();
    for name in ["files", "bytes"] {
        assert!(
            numbers.contains(&guilty[name].to_string()),
            "{name}: {numbers}"
        );
    }
    let first = &findings(&report)[0];
    let folder = guilty["folder"].as_str().expect("its path");
    let is_there = first["target"].to_string() + &first["chain"].to_string();
    assert!(is_there.contains(folder), "{}", first["verdict"]);
    // The thread that received the request text is one of the request's threads.
    let (mut handed, mut found) = (0, 0);
    for (truth, id) in words.joined() {
        if truth["counter_tid"].is_null() {
            continue;
        }
        let report = words.query(&["requests", "threads"], &["-w", &id]);
        let tables = report["tables"].as_array().expect("tables");
        let threads = tables.iter().find(|table| table["name"] == "threads");
        let rows = threads.expect("the table exists")["rows"].as_array();
        handed += 1;
        let mut rows = rows.expect("rows").iter();
        found += usize::from(rows.any(|row| row["tid"] == truth["counter_tid"]));
    }
    assert!(handed > 0 && found == handed, "{found} of {handed}");
}
