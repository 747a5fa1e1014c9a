//! Queries from the command line in every output format.

use std::io::Read;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::common::{self, Place, recorded};

fn json(args: &[&str]) -> Value {
    let mut args = args.to_vec();
    args.push("--json");
    serde_json::from_str(&recorded().stdout(&args)).expect("one JSON document")
}

fn rows(answer: &Value) -> Vec<&Value> {
    let tables = answer["tables"].as_array().expect("tables");
    tables
        .iter()
        .flat_map(|table| table["rows"].as_array().expect("rows"))
        .collect()
}

#[test]
fn the_slow_open_is_at_the_top_with_its_file_name() {
    let answer = json(&["io", "top", "t.wsl", "--op", "open"]);
    let first = rows(&answer)[0];
    assert_eq!(first["dur_ns"], 100_000_000);
    assert_eq!(first["path"], "/var/lib/php5/sess_1");
    assert_eq!(first["ts_ns"], 1_421_342_317_300_000_000_i64);
    assert_eq!(answer["host"], "web1");
}

#[test]
fn a_window_cut_to_an_operation_marks_what_ran_across_it() {
    let place = recorded();
    let top = json(&["io", "top", "t.wsl", "--op", "open"]);
    let id = rows(&top)[0]["id"].as_str().expect("an id").to_owned();
    let answer = json(&["io", "top", "t.wsl", "-w", &id]);
    let sync = rows(&answer)
        .into_iter()
        .find(|row| row["name"] == "sync")
        .expect("the sync overlaps");
    assert_eq!(sync["overlap"], "both");
    let text = place.stdout(&["io", "top", "t.wsl", "-w", &id]);
    assert!(
        text.lines()
            .any(|line| line.starts_with('*') && line.contains("sync")),
        "{text}"
    );
    assert!(text.contains("* started before"), "{text}");
    let across = json(&["io", "log", "t.wsl", "--overlaps", &id]);
    assert!(rows(&across).iter().all(|row| row["id"] != id.as_str()));
}

#[test]
fn the_last_part_of_a_recording_is_a_window() {
    let last = json(&["io", "log", "t.wsl", "--last", "1s"]);
    assert_eq!(rows(&last).len(), 1);
    assert_eq!(rows(&last)[0]["name"], "read");
    for same in [&["-w", "last 1s"][..], &["-w", "-1s.."]] {
        let args = [&["io", "log", "t.wsl"], same].concat();
        assert_eq!(rows(&json(&args)), rows(&last), "{same:?}");
    }
    // Longer than the recording: all of it.
    let all = json(&["io", "log", "t.wsl", "--last", "30d"]);
    assert_eq!(rows(&all), rows(&json(&["io", "log", "t.wsl"])));
}

#[test]
fn windows_mean_the_same_however_they_are_written() {
    let dated = "2015-01-15 12:18:37.3..2015-01-15 12:18:37.45";
    let want = json(&["io", "log", "t.wsl", "-w", dated]);
    assert_eq!(rows(&want).len(), 3);
    for window in [
        &["-w", "2015-01-15 12:18:37.3..12:18:37.45"][..],
        &["-w", "2015-01-15 12:18:37.3+150ms"],
        &["-w", "2015-01-15T17:18:37.375Z~150ms"],
        &["-w", "+100ms..+250ms"],
        &["-w", "1421342317.3..1421342317.45"],
        &[
            "--timerange",
            "[2015-01-15 12:18:37.3,2015-01-15 12:18:37.45]",
        ],
        &[
            "--begin",
            "2015-01-15 12:18:37.3",
            "--end",
            "2015-01-15 12:18:37.45",
        ],
    ] {
        let args = [&["io", "log", "t.wsl"], window].concat();
        assert_eq!(rows(&json(&args)), rows(&want), "{window:?}");
    }
}

#[test]
fn times_are_those_of_the_recorded_host_unless_asked_otherwise() {
    let place = recorded();
    let check = |flags: &[&str], part: &str| {
        let text = place.stdout(&[&["io", "top", "t.wsl"], flags].concat());
        assert!(text.contains(part), "{flags:?}: {text}");
    };
    check(&[], "2015-01-15 12:18:37.200");
    check(&[], "-05:00");
    check(&["--utc"], "2015-01-15 17:18:37.200");
    check(&["--gmt"], "+00:00");
    check(&["--tz", "Europe/Berlin"], "2015-01-15 18:18:37.200");
    check(&["--rel"], "+0.100000000s");
}

#[test]
fn lost_events_are_always_told_and_strict_makes_them_an_error() {
    let place = recorded();
    let loss = "! 7002 events lost 12:18:37.800-12:18:37.900 on CPU 0";
    let text = place.stdout(&["io", "stats", "t.wsl"]);
    assert!(text.contains(loss) && text.contains("lost 7002)"), "{text}");
    assert_eq!(json(&["io", "stats", "t.wsl"])["losses"][0]["count"], 7002);
    let strict = place
        .whyslow()
        .args(["io", "stats", "t.wsl", "--strict"])
        .assert()
        .code(3);
    assert!(String::from_utf8_lossy(&strict.get_output().stdout).contains(loss));
    let csv = place
        .whyslow()
        .args(["io", "top", "t.wsl", "--csv"])
        .assert()
        .success();
    assert!(String::from_utf8_lossy(&csv.get_output().stderr).contains(loss));
    // A window without losses is complete.
    place
        .whyslow()
        .args(["io", "stats", "t.wsl", "--strict", "-w", "+0ms..+500ms"])
        .assert()
        .success();
}

#[test]
fn hostile_names_arrive_as_text() {
    let place = recorded();
    let escape = '\u{1b}';
    for format in ["text", "json", "ndjson", "md", "html"] {
        let text = place.stdout(&["io", "log", "t.wsl", "--format", format]);
        assert!(!text.contains(escape), "{format}");
    }
    let text = place.stdout(&["io", "log", "t.wsl"]);
    assert!(text.contains("/tmp/\\x1b[2J\\x1b]0;owned\\x07"), "{text}");
    let csv = place.stdout(&["io", "log", "t.wsl", "--csv"]);
    assert!(csv.contains("\"'=cmd|' /C calc'!A0,x\""), "{csv}");
    let exact = json(&["io", "log", "t.wsl"]);
    assert!(
        rows(&exact)
            .iter()
            .any(|row| row["path"] == "/tmp/\u{1b}[2J\u{1b}]0;owned\u{7}")
    );
}

#[test]
fn columns_of_csv_are_the_keys_of_json_and_of_arrow() {
    let place = recorded();
    let answer = json(&["io", "log", "t.wsl"]);
    let keys: Vec<&String> = rows(&answer)[0]
        .as_object()
        .expect("a row")
        .keys()
        .collect();
    for (format, separator) in [("csv", ','), ("tsv", '\t')] {
        let text = place.stdout(&["io", "log", "t.wsl", "--format", format]);
        let header: Vec<&str> = text
            .lines()
            .next()
            .expect("a header")
            .split(separator)
            .collect();
        assert_eq!(header, keys);
        assert_eq!(text.lines().count(), 1 + rows(&answer).len());
    }
    let arrow = place.join("log.arrow");
    place.stdout(&["io", "log", "t.wsl", "--format", "arrow", "-o", "log.arrow"]);
    let file = std::fs::File::open(arrow).expect("written");
    let reader = arrow_ipc::reader::StreamReader::try_new(file, None).expect("a stream");
    let schema = reader.schema();
    let names: Vec<&String> = schema.fields().iter().map(|field| field.name()).collect();
    assert_eq!(names, keys);
    let count: usize = reader.map(|batch| batch.expect("a batch").num_rows()).sum();
    assert_eq!(count, rows(&answer).len());
    place.stdout(&[
        "io",
        "log",
        "t.wsl",
        "--format",
        "parquet",
        "-o",
        "log.parquet",
    ]);
    let parquet = std::fs::read(place.join("log.parquet")).expect("written");
    assert!(parquet.starts_with(b"PAR1") && parquet.ends_with(b"PAR1"));
}

#[test]
fn ndjson_says_the_same_as_json_line_by_line() {
    let text = recorded().stdout(&["io", "log", "t.wsl", "--format", "ndjson"]);
    let lines: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).expect("each line is JSON"))
        .collect();
    let answer = json(&["io", "log", "t.wsl"]);
    let found = lines.iter().filter(|line| line["type"] == "row").count();
    assert_eq!(found, rows(&answer).len());
    assert_eq!(lines[0]["type"], "answer");
    assert_eq!(lines[0]["window"], answer["window"]);
    assert!(
        lines
            .iter()
            .any(|line| line["type"] == "loss" && line["count"] == 7002)
    );
}

#[test]
fn every_question_answers_in_every_form() {
    let place = recorded();
    for query in [
        "io usage",
        "io stats",
        "io hist",
        "io freq",
        "io top",
        "io log",
        "io heat",
        "io syscalls",
        "block usage",
        "block stats",
        "block hist",
        "block top",
        "block log",
        "block heat",
        "files top",
        "files log",
        "files tree",
        "files open",
        "threads list",
        "threads states",
        "info",
    ] {
        let words: Vec<&str> = query.split(' ').collect();
        let text = place.stdout(&[words.as_slice(), &["t.wsl"]].concat());
        assert!(text.starts_with("t.wsl  2015-01-15"), "{query}: {text}");
        for format in ["json", "ndjson", "csv", "tsv", "md", "html"] {
            place.stdout(&[words.as_slice(), &["t.wsl", "--format", format]].concat());
        }
    }
}

#[test]
fn answers_are_the_same_every_time() {
    let place = recorded();
    for query in [
        ["io", "usage"],
        ["io", "stats"],
        ["io", "log"],
        ["files", "top"],
    ] {
        let args = [&query[..], &["t.wsl", "--json"]].concat();
        assert_eq!(place.stdout(&args), place.stdout(&args));
    }
}

#[test]
fn every_answer_says_that_not_all_of_the_source_could_be_used() {
    let place = Place::new();
    place.write("whole.txt", common::TRACE);
    place.write("t.txt", format!("{}this is no event\n", common::TRACE));
    let output_of = |words: &[&str]| {
        let output = place.whyslow().args(words).output().expect("it runs");
        assert!(output.status.success(), "{words:?}: {output:?}");
        String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
    };
    for query in [
        &["io", "top"][..],
        &["syscalls", "log"],
        &["sched", "stats"],
        &["mem", "usage"],
        &["explain"],
    ] {
        // Both at the import and from the cache.
        for _ in 0..2 {
            let text = output_of(&[query, &["t.txt"]].concat());
            assert!(text.contains("1 × TEXT_LINE_BAD"), "{query:?}: {text}");
        }
        let text = output_of(&[query, &["whole.txt"]].concat());
        assert!(!text.contains("source are unusable"), "{query:?}: {text}");
    }
    // It stands after all of the valid lines.
    let place_of = format!("at byte {}", common::TRACE.len());
    let text = output_of(&["info", "t.txt"]);
    assert!(text.contains(&place_of), "{place_of}: {text}");
}

#[test]
fn nothing_is_not_called_fast() {
    let place = Place::new();
    place.write("t.txt", "whyslow-text 1\nthis is no event\n");
    let output = place
        .whyslow()
        .args(["explain", "t.txt"])
        .output()
        .expect("it runs");
    let both = [output.stdout.clone(), output.stderr.clone()].concat();
    let text = String::from_utf8_lossy(&both).into_owned();
    assert!(
        text.starts_with("cannot tell: slow operations unavailable: no operations recorded"),
        "{text}"
    );
    assert_eq!(output.status.code(), Some(3), "{text}");
    assert!(text.contains("1 × TEXT_LINE_BAD"), "{text}");
}

#[test]
fn a_trace_is_taken_where_a_recording_is() {
    let place = Place::new();
    place.write("t.txt", common::TRACE);
    let first = place
        .whyslow()
        .args(["io", "top", "t.txt", "--json"])
        .assert()
        .success();
    let note = String::from_utf8_lossy(&first.get_output().stderr).into_owned();
    assert!(note.contains("into the cache"), "{note}");
    let second = place
        .whyslow()
        .args(["io", "top", "--json"])
        .assert()
        .success();
    // The second time it is there: only the recording that is used is reported.
    let note = String::from_utf8_lossy(&second.get_output().stderr).into_owned();
    assert!(
        note.starts_with("using ") && note.lines().count() == 1,
        "{note}"
    );
    assert_eq!(first.get_output().stdout, second.get_output().stdout);
}

#[test]
fn the_recording_used_last_is_the_default() {
    let place = Place::new();
    place.write("t.txt", common::TRACE);
    place.whyslow().args(["import", "t.txt"]).assert().success();
    let named = place.stdout(&["io", "stats", "t.txt.wsl"]);
    assert_eq!(place.stdout(&["io", "stats"]), named);
    assert_eq!(place.stdout(&["io", "stats", "@last"]), named);
    let said = |args: &[&str]| {
        let output = place.whyslow().args(args).output().expect("it starts");
        String::from_utf8(output.stderr).expect("UTF-8")
    };
    let used = "using t.txt.wsl (recorded 2015-01-15 12:18:37, 172799.8 s)\n";
    assert_eq!(said(&["io", "stats"]), used);
    assert_eq!(said(&["io", "stats", "@last"]), used);
    assert_eq!(said(&["io", "stats", "t.txt.wsl"]), "");
    assert_eq!(said(&["-q", "io", "stats"]), "");
    let intervals = place.stdout(&["io", "stats", "1", "2", "--json"]);
    let intervals: Value = serde_json::from_str(&intervals).expect("JSON");
    let window = &intervals["window"];
    let length = window["end_ns"].as_i64().zip(window["begin_ns"].as_i64());
    assert_eq!(length.map(|(end, begin)| end - begin), Some(2_000_000_000));
}

#[test]
fn columns_can_be_chosen() {
    let place = recorded();
    let text = place.stdout(&["io", "log", "t.wsl", "--csv", "--cols", "comm,dur_ns"]);
    assert!(text.starts_with("comm,dur_ns,outlier,overlap\n"), "{text}");
    let help = place.stdout(&["io", "log", "t.wsl", "--cols", "help"]);
    assert!(help.contains("dur_ns") && help.contains("path2"), "{help}");
    let text = place.stdout(&["io", "log", "t.wsl", "--unit", "ns", "--cols", "dur_ns"]);
    assert!(
        text.contains("duration ns") && text.contains("100000000"),
        "{text}"
    );
}

#[test]
fn ascii_and_color_follow_locale_and_variables() {
    let place = recorded();
    let run = |name: &str, value: &str, args: &[&str]| -> String {
        let output = place
            .whyslow()
            .env(name, value)
            .args(args)
            .assert()
            .success();
        String::from_utf8(output.get_output().stdout.clone()).expect("UTF-8")
    };
    let hist = ["io", "hist", "t.wsl"];
    assert!(run("LC_ALL", "C", &hist).is_ascii());
    assert!(!run("LC_ALL", "en_US.UTF-8", &hist).is_ascii());
    assert!(place.stdout(&["io", "hist", "t.wsl", "--ascii"]).is_ascii());
    assert!(
        !place.stdout(&hist).contains('\u{1b}'),
        "no colour in a pipe"
    );
    assert!(run("CLICOLOR_FORCE", "1", &hist).contains('\u{1b}'));
    let always = ["io", "hist", "t.wsl", "--color", "always"];
    assert!(place.stdout(&always).contains('\u{1b}'));
    let mut both = place.whyslow();
    both.env("NO_COLOR", "1")
        .env("CLICOLOR_FORCE", "1")
        .args(hist);
    let output = both.assert().success();
    assert!(!output.get_output().stdout.contains(&0x1b));
}

#[test]
fn a_reader_that_leaves_is_no_error() {
    let place = recorded();
    for format in ["text", "json", "csv", "ndjson", "arrow", "parquet"] {
        let mut child = Command::new(assert_cmd::cargo::cargo_bin("whyslow"))
            .current_dir(place.path())
            .env("XDG_STATE_HOME", place.join("state"))
            .args(["io", "log", "t.wsl", "--format", format])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it starts");
        drop(child.stdout.take());
        let mut talk = String::new();
        let stderr = child.stderr.as_mut().expect("piped");
        stderr.read_to_string(&mut talk).expect("UTF-8");
        assert!(child.wait().expect("it ends").success(), "{format}: {talk}");
        assert!(
            !talk.contains("error") && !talk.contains("panic"),
            "{format}: {talk}"
        );
    }
}
