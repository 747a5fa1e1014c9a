//! `record` from its start to its end: when its clock starts, the status of its command, signals, and
//! what it reports about itself.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::Instant;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use whyslow_testkit::{Need, skip};

use super::{can_record, flight, no_floods, rows};
use crate::common::Place;

/// Time between the start of a recording and the arrival of the line that reports it.
const START_NS: i64 = 300_000_000;

/// Exit code and standard error.
fn recorded(place: &Place, args: &[&str]) -> (Option<i32>, String) {
    let output = place.whyslow().arg("record").args(args).output();
    let output = output.expect("it starts");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    (output.status.code(), said)
}

fn json(place: &Place, args: &[&str]) -> Value {
    let text = place.stdout(&[args, &["--json"]].concat());
    serde_json::from_str(&text).expect("JSON")
}

/// A number between two parts of a text.
fn number(text: &str, before: &str, after: &str) -> f64 {
    let rest = text.split_once(before).expect("it is reported").1;
    let number = rest.split_once(after).expect("it is reported").0;
    number.replace(',', "").parse().expect("a number")
}

#[test]
fn the_time_starts_when_everything_is_recorded() {
    if !can_record() {
        return;
    }
    let _calm = no_floods();
    let place = Place::new();
    let mut child = place
        .program()
        .args(["record", "--for", "1500ms", "-o", "rec.wsl"])
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    let (mut said, mut begun) = (String::new(), None);
    let stderr = child.stderr.take().expect("it is piped");
    for line in BufReader::new(stderr).lines() {
        let line = line.expect("UTF-8");
        if line.contains("recording started") {
            begun = Some(Instant::now());
        }
        said.push_str(&line);
        said.push('\n');
    }
    let elapsed = begun.expect("it is printed").elapsed().as_nanos() as i64;
    assert_eq!(child.wait().expect("it is ours").code(), Some(0), "{said}");
    let info = json(&place, &["info", "rec.wsl"]);
    let facts = &info["tables"][0]["facts"];
    let length = facts["length_ns"].as_i64().expect("a length");
    // On a busy machine, it takes a while to end. Events of the time in which programs are attached
    // are in the recording, too, so it is longer than what is requested.
    let possible = 1_450_000_000..elapsed + START_NS;
    assert!(possible.contains(&length), "{length} {elapsed}");
    let started = said.find("recording started").expect("it is printed");
    assert!(started < said.find("recorded ").expect("it is printed"));
    assert!(number(&said, "recorded ", " s, ") >= 1.5, "{said}");
    assert!(
        said.ends_with("\nNext: whyslow explain rec.wsl\n"),
        "{said}"
    );
    // Nothing else was reported.
    assert!(!said.contains('\r') && !said.contains("accepted"), "{said}");
    let (code, said) = recorded(&place, &["-q", "--for", "100ms", "-o", "quiet.wsl"]);
    // What this kernel does not report is a note of its own.
    let rest: Vec<&str> = said
        .lines()
        .filter(|line| !line.starts_with("note: not recorded"))
        .collect();
    assert_eq!((code, rest), (Some(0), Vec::new()));
}

#[test]
fn the_status_of_the_command_is_that_of_the_recorder() {
    if !can_record() {
        return;
    }
    let place = Place::new();
    for (script, expected) in [("exit 0", 0), ("exit 7", 7), ("kill -KILL $$", 137)] {
        let args = ["--force", "-o", "rec.wsl", "--", "/bin/sh", "-c", script];
        let (code, said) = recorded(&place, &args);
        assert_eq!(code, Some(expected), "{said}");
        assert!(said.contains("recording started"), "{said}");
        assert!(!rows(&place, &["threads", "list", "rec.wsl"]).is_empty());
    }
}

#[test]
fn a_command_that_cannot_be_executed_leaves_no_recording() {
    let place = Place::new();
    place.write("text", "echo\n");
    // The kernel only detects it when the command is executed.
    let script = place.write("script", "#!/no/such/interpreter\n");
    let executable = fs::Permissions::from_mode(0o755);
    fs::set_permissions(script, executable).expect("it is ours");
    let check = |command: &str, expected: i32| {
        let (code, said) = recorded(&place, &["-o", "rec.wsl", "--", command]);
        assert_eq!(code, Some(expected), "{said}");
        let error = format!("error: cannot run `{command}`");
        assert_eq!(said.matches(&error).count(), 1, "{said}");
        assert!(!place.join("rec.wsl").exists());
        assert!(!place.join("rec.wsl.spool").exists());
        said
    };
    let said = check("no-such-command-7919", 127);
    assert!(!said.contains("recording started"), "{said}");
    check("./text", 126);
    check("./", 126);
    if can_record() {
        check("./script", 127);
        let (code, _) = recorded(&place, &["--ring", "5s", "--", "./script"]);
        assert_eq!(code, Some(127));
    }
}

/// Whether programs started by this one see a hangup; otherwise skips the test.
fn sees_hangups() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    let is_seen = mask.is_some_and(|mask| mask & 1 == 0);
    if !is_seen {
        skip(Need::Machine, "SIGHUP is ignored, as under nohup");
    }
    is_seen
}

/// A recorder whose terminal is gone: standard error was closed.
fn without_a_terminal(place: &Place) -> Child {
    let mut child = place
        .program()
        .args(["record", "-o", "rec.wsl"])
        .stdin(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    let said = child.stderr.take().expect("it is piped");
    let mut lines = BufReader::new(said).lines();
    assert!(lines.any(|line| line.expect("UTF-8").contains("recording started")));
    child
}

#[test]
fn a_hangup_ends_the_recording_in_order() {
    if !can_record() || !sees_hangups() {
        return;
    }
    for signals in [
        &[Signal::HUP, Signal::HUP][..],
        &[Signal::TERM, Signal::HUP],
    ] {
        let place = Place::new();
        let mut child = without_a_terminal(&place);
        std::thread::sleep(std::time::Duration::from_millis(300));
        // Shells and session managers send several in a row.
        for signal in signals {
            kill_process(Pid::from_child(&child), *signal).expect("it is ours");
        }
        let status = child.wait().expect("it is ours");
        assert_eq!(status.code(), Some(0), "{signals:?}");
        assert!(!rows(&place, &["threads", "list", "rec.wsl"]).is_empty());
        assert!(!place.join("rec.wsl.spool").exists());
    }
}

#[test]
fn a_flight_recorder_saves_what_it_keeps_unless_its_user_ends_it() {
    if !can_record() || !sees_hangups() {
        return;
    }
    for (signal, expected) in [("HUP", 1), ("TERM", 1), ("INT", 0)] {
        let place = Place::new();
        let recorder = flight::Recorder::start(&place, &["--ring", "1m"]);
        std::thread::sleep(std::time::Duration::from_millis(500));
        let said = recorder.end_by(signal);
        let saved = flight::recordings(&place);
        assert_eq!(saved.len(), expected, "{signal} {said}");
        for name in &saved {
            assert!(said.contains(&format!("saved ./{name}: ")), "{said}");
            let marks = place.stdout(&["info", name, "--table", "marks"]);
            let reason = format!("the recorder was stopped by SIG{signal}");
            assert!(marks.contains(&reason), "{marks}");
        }
        assert_eq!(said.contains("Ctrl-C does not save"), signal == "INT");
    }
}

#[test]
fn the_cost_of_the_recorder_is_one_figure_that_no_other_process_adds_to() {
    if !can_record() {
        return;
    }
    let _calm = no_floods();
    let place = Place::new();
    // Another program of the same name, which does not give up the CPU.
    fs::copy("/bin/sh", place.join("whyslow")).expect("a shell");
    let script = "i=0; while [ $i -lt 600000 ]; do i=$((i+1)); done";
    let args = ["-o", "rec.wsl", "--", "./whyslow", "-c", script];
    let (code, said) = recorded(&place, &args);
    assert_eq!(code, Some(0), "{said}");
    let printed = number(&said, " lost (", " % of a CPU");
    let report = json(&place, &["explain", "rec.wsl"]);
    let share = report["tracer_share"].as_f64().expect("a share");
    assert!((share * 100.0 - printed).abs() < 0.051, "{share} {said}");
    let info = json(&place, &["info", "rec.wsl"]);
    let facts = &info["tables"][0]["facts"];
    let stored = facts["recorder_cpu"].as_f64().expect("a share");
    assert!((stored - share).abs() < 1e-6, "{stored} {share}");
    let pid = facts["recorder_pid"].as_i64().expect("an id");
    let threads = rows(&place, &["threads", "list", "rec.wsl"]);
    let named = |thread: &&Value| thread["comm"] == "whyslow";
    let (own, others): (Vec<&Value>, Vec<&Value>) = threads
        .iter()
        .filter(named)
        .partition(|thread| thread["tracer"] == true);
    assert!(!own.is_empty() && own.iter().all(|thread| thread["pid"] == pid));
    assert!(
        others.iter().any(|thread| thread["pid"] != pid),
        "{threads:?}"
    );
    assert!(Path::new(&place.join("rec.wsl")).exists());
}
