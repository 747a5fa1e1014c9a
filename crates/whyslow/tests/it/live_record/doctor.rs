//! `doctor` where nothing, some and everything can be recorded.

use std::process::{Command, Output};

use serde_json::Value;
use whyslow_testkit::{Need, skip};

use super::can_record;
use super::kernel::{open_to_all, with_mounts};
use crate::common::Place;

/// Rows of a table of an answer in JSON.
fn table(output: &Output, name: &str) -> Vec<Value> {
    let answer: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let tables = answer["tables"].as_array().expect("tables");
    let table = tables.iter().find(|table| table["name"] == name);
    let rows = table.and_then(|table| table["rows"].as_array());
    rows.cloned().unwrap_or_default()
}

fn state_of(checks: &[Value], name: &str) -> String {
    let check = checks.iter().find(|row| row["check"] == name);
    let state = check.and_then(|row| row["state"].as_str());
    state.unwrap_or("not listed").to_owned()
}

#[test]
fn whoever_can_record_is_told_so() {
    if !can_record() {
        return;
    }
    let place = Place::new();
    let output = place.whyslow().args(["doctor", "--json"]).output();
    let output = output.expect("it starts");
    assert!(output.status.success());
    let checks = table(&output, "checks");
    for name in ["kernel", "privileges", "kernel types (BTF)", "syscalls"] {
        assert_eq!(state_of(&checks, name), "ok", "{name}");
    }
    // A failed check has a command that fixes it, or names what is missing.
    for check in &checks {
        assert!(
            !check["found"].as_str().unwrap_or_default().is_empty(),
            "{check}"
        );
    }
    assert!(table(&output, "instead").is_empty());
}

#[test]
fn a_user_without_privileges_gets_the_commands_that_help() {
    let place = Place::new();
    open_to_all(&place);
    let output = Command::new("setpriv")
        .args(["--reuid", "65534", "--regid", "65534", "--clear-groups"])
        .args(["./whyslow", "doctor", "--json"])
        .current_dir(place.path())
        .output();
    let Some(output) = output.ok().filter(|output| !output.stdout.is_empty()) else {
        return skip(
            Need::Isolation,
            "setpriv is not installed, or we may not change the user",
        );
    };
    assert_eq!(output.status.code(), Some(1));
    let checks = table(&output, "checks");
    assert_eq!(state_of(&checks, "privileges"), "missing");
    let fixes: Vec<_> = checks
        .iter()
        .filter_map(|row| row["fix"].as_str())
        .collect();
    assert!(
        fixes.iter().any(|fix| fix.contains("sudo whyslow")),
        "{fixes:?}"
    );
    assert!(
        fixes
            .iter()
            .any(|fix| fix.contains("--ambient-caps +bpf,+perfmon")),
        "{fixes:?}"
    );
}

#[test]
fn without_types_the_commands_of_another_tracer_are_printed() {
    let place = Place::new();
    let script = "mount -t tmpfs none /sys/kernel/btf; exec \"$WHYSLOW\" doctor --json";
    let Some(output) = with_mounts(&place, script) else {
        return;
    };
    if output.stdout.is_empty() {
        return skip(
            Need::Isolation,
            "nothing can be mounted over /sys/kernel/btf",
        );
    }
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(
        state_of(&table(&output, "checks"), "kernel types (BTF)"),
        "missing"
    );
    let steps = table(&output, "instead");
    let commands: Vec<_> = steps
        .iter()
        .filter_map(|row| row["command"].as_str())
        .collect();
    assert!(
        commands
            .iter()
            .any(|command| command.contains("--syscall --all")),
        "{commands:?}"
    );
    assert!(
        commands
            .last()
            .is_some_and(|command| command.contains("whyslow import"))
    );
}

#[test]
fn two_capabilities_are_enough_to_record() {
    if !can_record() {
        return;
    }
    let place = Place::new();
    open_to_all(&place);
    let run = |capabilities: &str, words: &[&str]| {
        Command::new("setpriv")
            .args(["--reuid", "65534", "--regid", "65534", "--clear-groups"])
            .args(["--inh-caps", capabilities, "--ambient-caps", capabilities])
            .arg("./whyslow")
            .args(words)
            .current_dir(place.path())
            .output()
    };
    let all = "-all,+bpf,+perfmon,+sys_ptrace,+dac_read_search,+syslog";
    let output = run(all, &["doctor", "--json"]);
    let Some(output) = output.ok().filter(|output| output.status.success()) else {
        return skip(
            Need::Isolation,
            "setpriv gives no capabilities here, or the kernel wants more than them",
        );
    };
    assert_eq!(state_of(&table(&output, "checks"), "privileges"), "ok");
    let command = "i=0; while [ $i -lt 29 ]; do cd /; i=$((i+1)); done";
    let words = [
        "-q", "record", "-o", "rec.wsl", "--", "/bin/sh", "-c", command,
    ];
    let output = run("-all,+bpf,+perfmon", &words).expect("it ran before");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let calls = super::rows(&place, &["syscalls", "log", "rec.wsl", "--name", "chdir"]);
    assert_eq!(calls.len(), 29);
    // One of the two is not enough.
    let output = run("-all,+bpf", &["record", "-o", "no.wsl", "--", "true"]);
    let said = String::from_utf8_lossy(&output.expect("it ran before").stderr).into_owned();
    assert!(
        said.contains("error: ") && said.contains("hint: "),
        "{said}"
    );
}
