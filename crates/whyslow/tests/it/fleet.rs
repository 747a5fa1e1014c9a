//! `fleet`: recordings are pushed to a lake and queried there; the results equal those of the
//! recordings.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command as Process;

use assert_cmd::Command;
use serde_json::Value;
use whyslow_testkit::{Need, skip};

use crate::common::{Place, recorded};

fn python() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../python/src")
}

/// With the Python package of this source tree.
fn fleet_command(place: &Place) -> Command {
    let mut command = place.whyslow();
    command.env("PYTHONPATH", python());
    command
}

/// Whether the dependencies of the package are installed; skips the test otherwise.
fn has_engine() -> bool {
    let output = Process::new("python3")
        .env("PYTHONPATH", python())
        .args(["-c", "import whyslow.fleet"])
        .output();
    match output {
        Ok(output) if output.status.success() => true,
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stderr);
            skip(Need::Python, said.lines().last().unwrap_or_default());
            false
        }
        Err(error) => {
            skip(Need::Python, format!("python3: {error}"));
            false
        }
    }
}

fn push(place: &Place, more: &[&str]) -> String {
    let recording = recorded().join("t.wsl");
    let mut command = place.whyslow();
    command
        .args(["fleet", "push"])
        .arg(recording)
        .arg("lake")
        .args(more);
    let output = command.assert().success();
    String::from_utf8(output.get_output().stderr.clone()).expect("UTF-8")
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("it is there").flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else {
                found.push(path);
            }
        }
    }
    found
}

fn said(mut command: Command, code: i32) -> String {
    let output = command.assert().code(code);
    String::from_utf8(output.get_output().stderr.clone()).expect("UTF-8")
}

#[test]
fn a_push_is_made_once_and_upkeep_says_what_it_does() {
    let place = Place::new();
    let first = push(&place, &["--label", "rack=r7"]);
    assert!(first.contains(" KiB to lake"), "{first}");
    let before = files(&place.join("lake"));
    assert_eq!(before.len(), 7);
    let again = push(&place, &[]);
    assert!(again.contains("already in lake"), "{again}");
    assert_eq!(files(&place.join("lake")), before);
    let mut compact = place.whyslow();
    compact.args(["fleet", "compact", "lake"]);
    let compacted = said(compact, 0);
    assert!(compacted.contains("merged 0 recordings"), "{compacted}");
    let mut expire = place.whyslow();
    expire.args(["fleet", "expire", "lake", "--keep", "1d", "--dry-run"]);
    let expired = said(expire, 0);
    assert!(
        expired.contains("2015-01-15 of default: would be deleted"),
        "{expired}"
    );
    assert_eq!(files(&place.join("lake")).len(), 7);
    let mut expire = place.whyslow();
    expire.args(["fleet", "expire", "lake", "--keep", "1d"]);
    said(expire, 0);
    assert_eq!(files(&place.join("lake")), [""; 0].map(PathBuf::from));
}

#[test]
fn what_cannot_be_pushed_is_told_with_what_to_do() {
    let place = Place::new();
    let recording = recorded().join("t.wsl");
    let recording = recording.to_str().expect("UTF-8");
    let check = |args: &[&str], code: i32, words: &[&str]| {
        let mut command = place.whyslow();
        command.args(["fleet"]).args(args);
        let said = said(command, code);
        for word in words {
            assert!(said.contains(word), "{args:?}: {said}");
        }
    };
    check(&["push", recording], 2, &["2 values"]);
    check(
        &["push", "missing.wsl", "lake"],
        1,
        &["missing.wsl", "hint:"],
    );
    check(
        &["push", "lake", recording],
        2,
        &["is a recording, not a lake", "name the lake last"],
    );
    check(
        &["push", recording, "ftp://x/y"],
        2,
        &["scheme ftp:// is not supported", "s3://BUCKET"],
    );
    check(
        &["push", recording, "lake", "--host", "a/b"],
        2,
        &["is not a valid host name", "--host"],
    );
    check(
        &["push", recording, "lake", "--label", "rack"],
        2,
        &["rack=r7"],
    );
    check(&["compact", "nowhere"], 1, &["nowhere"]);
    check(&["expire", "lake"], 2, &["--keep"]);
    fs::create_dir_all(place.join("queried/v1/_commits")).expect("it is ours");
    check(
        &["hosts", "queried"],
        2,
        &["`queried` is a lake, not a recording", "--lake"],
    );
    check(
        &["hosts", "--lake", "queried", "-w", "+1s..+2s"],
        2,
        &["count from the start of a recording", "-1h.."],
    );
    check(
        &["find", "01XXX", "--lake", "queried"],
        2,
        &["is not a valid recording name", "26 capital letters"],
    );
    check(
        &["deviations"],
        2,
        &["cannot query a lake: none specified", "WHYSLOW_LAKE"],
    );
    // Of two recordings one is invalid: the other one is pushed.
    check(
        &["push", recording, "missing.wsl", "lake"],
        1,
        &["1 of 2 recordings were not pushed"],
    );
    assert_eq!(files(&place.join("lake")).len(), 7);
}

#[test]
fn nobody_listens_at_the_store() {
    let place = Place::new();
    let recording = recorded().join("t.wsl");
    let mut command = place.whyslow();
    command
        .args(["fleet", "push"])
        .arg(recording)
        .arg("s3://bucket/lake")
        .env("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
        .env("AWS_ACCESS_KEY_ID", "a")
        .env("AWS_SECRET_ACCESS_KEY", "b")
        .env("AWS_REGION", "here");
    let none = said(command, 1);
    assert!(none.contains("error: failed to stat"), "{none}");
    assert!(none.contains("hint: "), "{none}");
    // Nor with an invalid URL.
    for endpoint in ["", "minio"] {
        let mut command = place.whyslow();
        command
            .args(["fleet", "push"])
            .arg(recorded().join("t.wsl"))
            .arg("s3://bucket/lake")
            .env("AWS_ENDPOINT_URL", endpoint);
        let wrong = said(command, 2);
        assert!(wrong.contains("which is not a URL"), "{wrong}");
    }
}

#[test]
fn a_missing_package_is_told_with_the_command_that_installs_it() {
    let place = Place::new();
    push(&place, &[]);
    let mut command = place.whyslow();
    command
        .args(["fleet", "deviations", "--lake", "lake"])
        .env("WHYSLOW_PYTHON", "/nonexistent/python");
    let none = said(command, 1);
    assert!(
        none.contains("cannot start `/nonexistent/python`") && none.contains("pip install"),
        "{none}"
    );
    // A Python without the package, whatever is installed on the machine.
    let bare = place.write("bare", "#!/bin/sh\nexec python3 -I -S \"$@\"\n");
    let mut mode = fs::metadata(&bare).expect("it is there").permissions();
    std::os::unix::fs::PermissionsExt::set_mode(&mut mode, 0o755);
    fs::set_permissions(&bare, mode).expect("it is ours");
    let mut command = place.whyslow();
    command
        .args(["fleet", "deviations", "--lake", "lake"])
        .env("WHYSLOW_PYTHON", bare);
    let bare = said(command, 1);
    assert!(
        bare.contains("not installed") && bare.contains("pip install"),
        "{bare}"
    );
}

#[test]
fn what_is_hidden_is_not_in_the_lake_and_not_there_twice() {
    let place = Place::new();
    let recording = recorded().join("t.wsl");
    place.write("key", "nobody guesses these 32 letters.");
    let pushed = |more: &[&str]| {
        let mut command = place.whyslow();
        command.args(["fleet", "push"]).arg(&recording).arg("lake");
        command.args(["--redact=names"]).args(more);
        command
    };
    let none = said(pushed(&[]), 2);
    assert!(none.contains("needs --redact-key or --host"), "{none}");
    let first = said(pushed(&["--redact-key", "key"]), 0);
    assert!(first.contains(" KiB to lake"), "{first}");
    let again = said(pushed(&["--redact-key", "key"]), 0);
    assert!(again.contains("already in lake"), "{again}");
    let names = files(&place.join("lake"));
    assert_eq!(names.len(), 7);
    assert!(
        names
            .iter()
            .all(|name| !name.to_string_lossy().contains("web1")),
        "{names:?}"
    );
    let commit = names
        .iter()
        .find(|name| name.extension() == Some("json".as_ref()));
    let commit = fs::read_to_string(commit.expect("one is there")).expect("UTF-8");
    assert!(commit.contains(r#""redacted": "names""#), "{commit}");
    assert!(!commit.contains("origin"), "{commit}");
    if !has_engine() {
        return;
    }
    let hidden = lake_text(&place);
    for word in HIDDEN {
        assert!(!hidden.contains(word), "{word}: {hidden}");
    }
    let open = Place::new();
    push(&open, &[]);
    let lake_text = lake_text(&open);
    for word in HIDDEN {
        assert!(lake_text.contains(word), "{word}: {lake_text}");
    }
}

/// Names in the recording; common program names, such as apache2, are not redacted.
const HIDDEN: [&str; 3] = ["web1", "owned", "calc"];

/// All named values in the lake.
fn lake_text(place: &Place) -> String {
    let dimensions = ["process", "file", "device"].map(|name| ["--dimension", name]);
    let queries = ["hosts", "verdicts", "culprits", "slowest"].map(|name| (name, &[][..]));
    let percentiles = dimensions.iter().map(|more| ("percentiles", &more[..]));
    let mut lake_text = String::new();
    for (query, more) in queries.into_iter().chain(percentiles) {
        let mut command = fleet_command(place);
        command
            .args(["fleet", query, "--lake", "lake", "--json"])
            .args(more);
        let output = command.assert().success();
        lake_text += &String::from_utf8_lossy(&output.get_output().stdout);
    }
    lake_text
}

/// Columns of `fleet percentiles`, and of `stats`.
const SAME: [(&str, &str); 11] = [
    ("op", "op"),
    ("operations", "count"),
    ("errors", "errors"),
    ("moved_bytes", "bytes"),
    ("dur_total_ns", "total_ns"),
    ("dur_min_ns", "min_ns"),
    ("dur_p50_ns", "p50_ns"),
    ("dur_p90_ns", "p90_ns"),
    ("dur_p99_ns", "p99_ns"),
    ("dur_p999_ns", "p999_ns"),
    ("dur_max_ns", "max_ns"),
];

/// The lake has the same culprits as `explain`, also if several shares are attributed to one; and
/// it has the path of the recording.
#[test]
fn blame_is_that_of_the_verdict_and_leads_to_the_recording() {
    if !has_engine() {
        return;
    }
    let place = Place::new();
    let fixture = whyslow_testkit::fixture("web-incident/trace.tar.zst");
    let run = |args: &[&str]| -> String {
        let output = fleet_command(&place).args(args).assert().success();
        String::from_utf8(output.get_output().stdout.clone()).expect("UTF-8")
    };
    run(&["import", fixture.to_str().expect("UTF-8"), "-o", "web.wsl"]);
    run(&["fleet", "push", "web.wsl", "lake"]);
    let statement = "SELECT recording, verdict, share FROM finding WHERE share IS NOT NULL";
    let answer = run(&["fleet", "sql", "--lake", "lake", statement, "--json"]);
    let answer: Value = serde_json::from_str(&answer).expect("JSON");
    let rows = answer["tables"][0]["rows"].as_array().expect("rows");
    let mut compared = 0;
    for row in rows {
        let (verdict, share) = (
            row["verdict"].as_str().expect("text"),
            row["share"].as_f64(),
        );
        let claimed = verdict
            .split_once(" of it (")
            .and_then(|(_, rest)| rest.split_once(" %)"))
            .and_then(|(percent, _)| percent.parse::<f64>().ok());
        if let Some(claimed) = claimed {
            compared += 1;
            let share = 100.0 * share.expect("a number");
            assert!((share - claimed).abs() <= 0.6, "{share}: {verdict}");
        }
    }
    assert!(compared >= 2, "{answer}");
    let recording = rows[0]["recording"].as_str().expect("text");
    let found = run(&["fleet", "find", recording, "--lake", "lake"]);
    assert!(
        found.contains("whyslow explain ") && found.contains("web.wsl"),
        "{found}"
    );
    // Losses are reported as for a single recording.
    let lossy = recorded().join("t.wsl");
    let lossy = lossy.to_str().expect("UTF-8");
    let mut strict = fleet_command(&place);
    strict.args(["fleet", "hosts", lossy, "--strict"]);
    let output = strict.assert().code(3);
    let text = String::from_utf8_lossy(&output.get_output().stdout).into_owned();
    assert!(
        text.contains("! 7 002 events lost") || text.contains("! 7002 events lost"),
        "{text}"
    );
    assert!(!text.contains("whyslow-lake-"), "{text}");
    // Everything before the end; nothing precedes it.
    let before = run(&["fleet", "hosts", "--lake", "lake", "-w", "..2100-01-01"]);
    assert!(
        before.contains("boardhost") || before.lines().count() > 1,
        "{before}"
    );
    let narrow = run(&["fleet", "slowest", "--lake", "lake"]);
    assert!(narrow.contains("20"), "{narrow}");
}

#[test]
fn what_lies_in_the_working_directory_is_no_part_of_the_answer() {
    if !has_engine() {
        return;
    }
    let place = Place::new();
    push(&place, &[]);
    // Users with write access to the lake must not be able to run code as the user of a query.
    for module in ["json.py", "runpy.py", "duckdb.py"] {
        place.write(module, "open('taken', 'w').close()\nraise SystemExit(9)\n");
    }
    let folder = place.join("whyslow/fleet");
    fs::create_dir_all(&folder).expect("it is ours");
    place.write("whyslow/__init__.py", "");
    place.write("whyslow/fleet/__init__.py", "");
    place.write("whyslow/fleet/__main__.py", "open('taken', 'w').close()\n");
    let mut command = fleet_command(&place);
    command
        .args(["fleet", "hosts", "--lake", "lake"])
        .assert()
        .success();
    assert!(!place.join("taken").exists());
}

#[test]
fn of_one_recording_the_lake_answers_what_the_recording_does() {
    if !has_engine() {
        return;
    }
    let place = Place::new();
    push(&place, &[]);
    let query = |args: &[&str]| -> Value {
        let mut command = fleet_command(&place);
        let output = command.args(args).arg("--json").assert().success();
        serde_json::from_slice(&output.get_output().stdout).expect("JSON")
    };
    let fleet = query(&["fleet", "percentiles", "--lake", "lake", "--kind", "io"]);
    let recording = recorded().join("t.wsl");
    let recording = recording.to_str().expect("UTF-8");
    let one = query(&["io", "stats", recording]);
    let rows = |answer: &Value, wanted: &[&str]| -> Vec<Value> {
        let table = &answer["tables"][0];
        let columns = table["columns"].as_array().expect("columns");
        let place = |name: &&str| columns.iter().position(|column| column["name"] == **name);
        let of = |row: &Value| -> Value {
            let cell = |name: &&str| match row {
                Value::Object(row) => row[*name].clone(),
                row => row[place(name).expect("a column")].clone(),
            };
            wanted.iter().map(cell).collect()
        };
        let rows = table["rows"].as_array().expect("rows");
        let mut rows: Vec<Value> = rows.iter().map(of).collect();
        rows.sort_by_key(Value::to_string);
        rows
    };
    let (theirs, ours): (Vec<&str>, Vec<&str>) = SAME.iter().copied().unzip();
    let expected = rows(&one, &ours);
    assert!(expected.len() > 2, "{one}");
    assert_eq!(rows(&fleet, &theirs), expected);
    let sql = query(&[
        "fleet",
        "sql",
        "--lake",
        "lake",
        "SELECT host, count(*) AS n FROM recording GROUP BY host",
    ]);
    assert!(sql.to_string().contains("web1"), "{sql}");
}
