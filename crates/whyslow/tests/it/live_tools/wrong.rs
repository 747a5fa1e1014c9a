//! Wrong arguments, empty recordings, hostile names and closed pipes.

use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};

use super::incident;
use crate::common::{Place, newly_recorded, recorded};

const TOOLS: [&str; 10] = [
    "iostat",
    "pidstat",
    "iotop",
    "top",
    "filetop",
    "opensnoop",
    "biosnoop",
    "biolatency",
    "ext4slower",
    "gethostlatency",
];

fn refused(args: &[&str], code: i32) -> String {
    let args = [&["as"], args].concat();
    let output = incident().whyslow().args(&args).assert().code(code);
    let output = output.get_output();
    assert_eq!(output.stdout, b"", "{args:?}");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn unknown_options_and_words_are_refused() {
    for tool in TOOLS {
        let said = refused(&[tool, "web.wsl", "--nonsense"], 2);
        assert!(said.contains("--nonsense"), "{tool}: {said}");
        if tool != "iostat" {
            let said = refused(&[tool, "web.wsl", "word"], 2);
            assert!(
                said.contains("unexpected argument `word`"),
                "{tool}: {said}"
            );
        }
    }
    let said = refused(&["iostat", "web.wsl", "sdz"], 2);
    assert!(
        said.contains("`sdz`") && said.contains("sda, vda, vdb"),
        "{said}"
    );
    for args in [
        &["biosnoop", "web.wsl", "-d", "sdz"],
        &["biolatency", "web.wsl", "-d", "/dev/sdz"],
    ] {
        let said = refused(args, 2);
        assert!(said.contains("sdz`"), "{args:?} {said}");
        assert!(
            said.contains("hint: disks in this recording: sda, "),
            "{args:?} {said}"
        );
    }
}

#[test]
fn notes_are_about_what_is_shown() {
    let notes = |args: &[&str]| {
        let output = incident().whyslow().args(args).assert().success();
        String::from_utf8_lossy(&output.get_output().stderr).into_owned()
    };
    for tool in TOOLS {
        let said = notes(&["as", tool, "web.wsl"]);
        assert!(
            !said.contains("--no-tracer"),
            "{tool} has no such option: {said}"
        );
    }
    // The share of bytes on unknown objects matters only to tools that show bytes.
    let about_bytes =
        |args: &[&str]| notes(args).contains("of the bytes were transferred to or from unknown");
    assert!(about_bytes(&["threads", "list", "web.wsl", "--csv"]));
    assert!(about_bytes(&["as", "iotop", "web.wsl"]));
    assert!(about_bytes(&["as", "pidstat", "web.wsl", "-d"]));
    assert!(!about_bytes(&["as", "pidstat", "web.wsl"]));
    assert!(!about_bytes(&["as", "top", "web.wsl"]));
}

#[test]
fn intervals_must_be_longer_than_nothing() {
    for args in [
        &["iostat", "web.wsl", "0"][..],
        &["pidstat", "web.wsl", "0"],
        &["filetop", "web.wsl", "0"],
        &["biolatency", "web.wsl", "0", "1"],
        &["biosnoop", "web.wsl", "0"],
        &["iotop", "web.wsl", "-d", "0"],
        &["top", "web.wsl", "-d", "0"],
        &["opensnoop", "web.wsl", "-d", "0"],
    ] {
        let said = refused(args, 2);
        assert!(
            said.contains("longer than 0") && said.contains("hint: "),
            "{args:?} {said}"
        );
    }
    let said = refused(&["iostat", "web.wsl", "1", "0"], 2);
    assert!(said.contains("invalid number of intervals `0`"), "{said}");
    let said = refused(&["iostat", "web.wsl", "1ns"], 2);
    assert!(said.contains("more than 100000 intervals"), "{said}");
    refused(&["iotop", "web.wsl", "-n", "0"], 2);
    refused(&["ext4slower", "web.wsl", "1", "2"], 2);
    refused(&["pidstat", "web.wsl", "-p", "x"], 2);
    let said = refused(&["iostat", "web.wsl", "-w", "+1h..+2h"], 2);
    assert!(said.contains("outside of the recording"), "{said}");
}

#[test]
fn options_that_would_change_nothing_are_refused() {
    for args in [
        &["--layout", "11"][..],
        &["-d", "--layout", "11"],
        &["-s", "--layout", "11"],
        &["-sx", "--layout", "11"],
    ] {
        let said = refused(&[&["iostat", "web.wsl"], args].concat(), 2);
        assert!(
            said.contains("--layout 11") && said.contains("hint: "),
            "{args:?} {said}"
        );
    }
}

#[test]
fn what_is_not_recorded_is_refused() {
    for args in [
        &["pidstat", "web.wsl", "-r"][..],
        &["pidstat", "web.wsl", "-s"],
        &["pidstat", "web.wsl", "-v"],
        &["pidstat", "web.wsl", "-R"],
        &["opensnoop", "web.wsl", "-u", "0"],
    ] {
        let said = refused(args, 2);
        assert!(
            said.contains("are not recorded") && said.contains("hint: "),
            "{args:?} {said}"
        );
    }
}

#[test]
fn a_missing_recording_is_told() {
    for tool in TOOLS {
        let said = refused(&[tool, "missing.wsl"], 1);
        assert!(
            said.contains("missing.wsl") && said.contains("hint: "),
            "{tool}: {said}"
        );
    }
    // Without an argument it is @last, which a new user does not have.
    let fresh = Place::new();
    for tool in TOOLS {
        let output = fresh.whyslow().args(["as", tool]).assert().code(2);
        let said = String::from_utf8_lossy(&output.get_output().stderr).into_owned();
        assert!(
            said.contains("cannot open a recording: none specified"),
            "{tool}: {said}"
        );
    }
}

#[test]
fn the_recording_used_last_needs_no_name() {
    let place = newly_recorded();
    let named = place.stdout(&["as", "iostat", "t.wsl", "-dx", "-w", "+0s..+3s", "1"]);
    assert_eq!(
        place.stdout(&["as", "iostat", "-dx", "1", "-w", "+0s..+3s"]),
        named
    );
    assert_eq!(
        place.stdout(&["as", "iostat", "1", "3", "@last", "-dx"]),
        named
    );
}

#[test]
fn an_empty_recording_has_headers_and_says_why() {
    let place = Place::new();
    let line = "1421342317.200000000 [0] (tid=10 pid=10 comm=a) marker name=nothing";
    let trace = format!("whyslow-text 1\nmeta hostname=web1\n{line}\n");
    place.write("e.txt", trace);
    let import = ["import", "e.txt", "-o", "e.wsl"];
    place.whyslow().args(import).assert().success();
    for tool in TOOLS {
        let output = place
            .whyslow()
            .args(["as", tool, "e.wsl"])
            .assert()
            .success();
        let output = output.get_output();
        assert!(!output.stdout.is_empty(), "{tool}");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(said.contains("note: "), "{tool}: {said}");
        let quiet = place.whyslow().args(["as", tool, "e.wsl", "-q"]).assert();
        assert_eq!(quiet.get_output().stderr, b"", "{tool}");
    }
    let cpus = place.stdout(&["as", "iostat", "e.wsl", "-c"]);
    assert!(!cpus.contains("0.00"), "unknown is not nothing: {cpus}");
    let disk = place.stdout(&["as", "pidstat", "e.wsl", "-d", "-p", "10"]);
    assert!(disk.contains("-1.00     -1.00     -1.00"), "{disk}");
}

#[test]
fn losses_are_told_beside_the_text() {
    for tool in TOOLS {
        let output = recorded()
            .whyslow()
            .args(["as", tool, "t.wsl"])
            .assert()
            .success();
        let said = String::from_utf8_lossy(&output.get_output().stderr).into_owned();
        assert!(said.contains("7002 events lost"), "{tool}: {said}");
    }
}

#[test]
fn hostile_names_are_spelled_out() {
    let place = recorded();
    let opens = place.stdout(&["as", "opensnoop", "t.wsl"]);
    assert!(opens.contains("/tmp/\\x1b[2J\\x1b]0;owned\\x07"), "{opens}");
    let failed = place.stdout(&["as", "opensnoop", "t.wsl", "-x"]);
    let failed: Vec<&str> = failed.lines().skip(1).collect();
    let want = "20     apache2           -1   2 =cmd|' /C calc'!A0,x";
    assert_eq!(failed, [want]);
    assert!(opens.contains(want), "{opens}");
    for tool in TOOLS {
        let text = place.stdout(&["as", tool, "t.wsl"]);
        let harmless = |c: char| !c.is_control() || c == '\n' || c == '\t';
        assert!(text.chars().all(harmless), "{tool}");
    }
    let csv = place.stdout(&["as", "ext4slower", "t.wsl", "0", "-j"]);
    assert!(
        csv.lines().all(|line| line.split(',').count() >= 8),
        "{csv}"
    );
}

#[test]
fn times_are_those_of_the_host_unless_asked() {
    let place = recorded();
    let time = |args: &[&str]| {
        let text = place.stdout(&[&["as", "opensnoop", "t.wsl", "-T"], args].concat());
        text.lines().nth(1).expect("a row")[..8].to_owned()
    };
    assert_eq!(time(&[]), "12:18:37");
    assert_eq!(time(&["--utc"]), "17:18:37");
    assert_eq!(time(&["--tz", "+01:00"]), "18:18:37");
    let reports = place.stdout(&["as", "iostat", "t.wsl", "-dt", "1", "1"]);
    assert!(
        reports.contains("\n2015-01-15T12:18:38-0500\n"),
        "{reports}"
    );
}

#[test]
fn a_reader_that_leaves_is_no_failure() {
    let place = incident();
    for args in [
        &["opensnoop"][..],
        &["biosnoop"],
        &["filetop", "-a", "-r", "0", "10ms"],
        &["iostat", "10ms"],
    ] {
        let mut child = Command::new(place.whyslow().get_program())
            .arg("as")
            .arg(args[0])
            .arg("web.wsl")
            .args(&args[1..])
            .args(["-q"])
            .current_dir(place.path())
            .env("XDG_STATE_HOME", place.join("state"))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it was built");
        let mut stdout = BufReader::new(child.stdout.take().expect("a pipe"));
        let mut first = String::new();
        stdout.read_line(&mut first).expect("text");
        assert!(!first.is_empty());
        drop(stdout);
        let mut said = String::new();
        let mut stderr = child.stderr.take().expect("a pipe");
        stderr.read_to_string(&mut said).expect("text");
        let status = child.wait().expect("it ends");
        assert_eq!((status.code(), said.as_str()), (Some(0), ""), "{args:?}");
    }
}
