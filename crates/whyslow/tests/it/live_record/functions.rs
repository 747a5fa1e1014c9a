//! Function calls (uprobes), against a program that makes a given number of them.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;
use whyslow_testkit::{Need, skip};

use super::compiled::compiled;
use super::kernel::open_to_all;
use super::{can_record, rows};
use crate::common::Place;

/// The program with its calls, under a unique name.
fn program(place: &Place, name: &str) -> Option<PathBuf> {
    compiled(place, name, "functions.c", &["-O2", "-g0", "-pthread"])
}

/// Records the program with these functions; returns its output.
fn run(place: &Place, functions: &[&str], program: &str) -> Vec<i64> {
    let mut whyslow = place.whyslow();
    whyslow.args([
        "-q", "record", "--force", "-o", "rec.wsl", "--what", "sched",
    ]);
    for function in functions {
        whyslow.args(["--function", function]);
    }
    let done = whyslow.arg("--").arg(program).output().expect("it starts");
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{said}");
    let text = String::from_utf8(done.stdout).expect("numbers");
    text.lines()
        .map(|line| line.parse().expect("a number"))
        .collect()
}

fn number(row: &Value, column: &str) -> i64 {
    row[column]
        .as_i64()
        .unwrap_or_else(|| panic!("{column} of {row}"))
}

fn of<'r>(all: &'r [Value], function: &str) -> Vec<&'r Value> {
    all.iter()
        .filter(|row| row["function"] == function)
        .collect()
}

fn is_whole(row: &Value) -> bool {
    row["dur_ns"].is_i64()
}

fn id(row: &Value) -> i64 {
    let id = row["id"]
        .as_str()
        .and_then(|id| id.strip_prefix("function:"));
    id.and_then(|id| id.parse().ok())
        .unwrap_or_else(|| panic!("{row}"))
}

#[test]
fn calls_are_told_with_arguments_results_and_times() {
    if !can_record() {
        return;
    }
    let place = Place::new();
    if program(&place, "calls61").is_none() {
        return;
    }
    let functions = [
        "./calls61:call_plain#long,int,uint,ptr,long,int=int",
        "./calls61:call_named#str,str",
        "./calls61:call_waits#long=void",
    ];
    let measured = run(&place, &functions, "./calls61");
    let all = rows(&place, &["functions", "log", "rec.wsl"]);
    assert!(all.iter().all(is_whole), "{all:?}");
    let plain = of(&all, "call_plain");
    assert_eq!(plain.len(), 37 + 2 * 19);
    for (place, row) in plain.iter().take(37).enumerate() {
        let args: Vec<i64> = ["arg1", "arg2", "arg3", "arg5", "arg6"]
            .map(|arg| number(row, arg))
            .into();
        assert_eq!(
            args,
            [place as i64, -3, 4_000_000_000, 1 << 40, -6],
            "{row}"
        );
        assert_ne!(number(row, "arg4"), 0, "{row}");
        assert_eq!(number(row, "ret"), -(place as i64), "{row}");
        assert_eq!(row["comm"], "calls61", "{row}");
    }
    for argument in [1000, 1001] {
        let of_thread = plain.iter().filter(|row| row["arg1"] == argument);
        let tids: Vec<i64> = of_thread.map(|row| number(row, "tid")).collect();
        assert_eq!(tids.len(), 19);
        assert!(tids.iter().all(|tid| *tid == tids[0]), "{tids:?}");
    }
    let named = of(&all, "call_named");
    let texts = named.iter();
    let texts = texts.map(|row| (row["text"].as_str(), row["text2"].as_str()));
    let texts: Vec<_> = texts.collect();
    assert_eq!(texts[0], (Some("name 0"), None));
    assert_eq!(texts[3], (Some("name 3"), Some("odd")));
    // A string longer than the limit, and a pointer that is not text.
    assert_eq!(texts[5], (Some("x".repeat(255).as_str()), None));
    assert_eq!(texts.len(), 6);
    let waits = of(&all, "call_waits");
    assert_eq!((waits.len(), measured.len()), (4, 4));
    for ((row, measured), ms) in waits.iter().zip(&measured).zip([2, 5, 8, 11]) {
        assert_eq!(number(row, "arg1"), ms, "{row}");
        assert!(row["ret"].is_null() && row["arg2"].is_null(), "{row}");
        let took = number(row, "dur_ns");
        // The program reads the clock before and after the call, and may lose the CPU there.
        let spare = measured - took;
        assert!((0..1_000_000_000).contains(&spare), "{spare} ns: {row}");
        assert!(took >= ms * 1_000_000, "{row}");
    }
}

#[test]
fn calls_within_calls_that_jump_or_go_too_deep_are_told_apart() {
    if !can_record() {
        return;
    }
    let place = Place::new();
    if program(&place, "calls67").is_none() {
        return;
    }
    run(&place, &["./calls67:call_*"], "./calls67");
    let all = rows(&place, &["functions", "log", "rec.wsl"]);
    let (outer, inner) = (of(&all, "call_outer"), of(&all, "call_inner"));
    assert_eq!((outer.len(), inner.len()), (7, 35));
    for (place, row) in inner.iter().enumerate() {
        assert_eq!(number(row, "parent_id"), id(outer[place / 5]), "{row}");
        assert_eq!(number(row, "ret"), number(row, "arg1") + 1, "{row}");
    }
    assert!(
        outer
            .iter()
            .all(|row| is_whole(row) && row["parent_id"].is_null())
    );
    // Three times eleven, and one recursion of which the kernel tracks only 64 returns.
    let recursive = of(&all, "call_itself");
    assert_eq!(recursive.len(), 33 + 101);
    for row in recursive.iter().filter(|row| is_whole(row)) {
        let depth = number(row, "arg1");
        assert_eq!(number(row, "ret"), depth * (depth + 1) / 2, "{row}");
    }
    let endless = recursive.iter().filter(|row| !is_whole(row)).count();
    assert_eq!(endless, 101 - 64);
    let (jumping, last) = (of(&all, "call_to_last"), of(&all, "call_last"));
    assert_eq!((jumping.len(), last.len()), (13, 13));
    for (jumping, last) in jumping.iter().zip(&last) {
        assert_eq!(number(last, "parent_id"), id(jumping), "{last}");
        assert_eq!(number(last, "ret"), number(jumping, "ret"), "{last}");
        assert!(number(jumping, "dur_ns") >= number(last, "dur_ns"));
    }
    let (around, left) = (of(&all, "call_around"), of(&all, "call_jumps"));
    assert_eq!((around.len(), left.len()), (17, 17));
    assert!(around.iter().all(|row| is_whole(row)), "{around:?}");
    for (around, left) in around.iter().zip(&left) {
        assert!(!is_whole(left) && left["ret"].is_null(), "{left}");
        assert_eq!(number(left, "parent_id"), id(around), "{left}");
        assert_eq!(number(around, "ret"), number(left, "arg1"), "{around}");
    }
    let stats = rows(&place, &["functions", "stats", "rec.wsl"]);
    let deep = stats.iter().find(|row| row["function"] == "call_itself");
    let deep = deep.expect("it is there");
    assert_eq!(number(deep, "unfinished"), 37, "{deep}");
    compare_with_sql(&place, &stats, &all);
}

/// `stats` equals what DuckDB finds in the table, and the view contains the self time of the
/// function.
fn compare_with_sql(place: &Place, stats: &[Value], all: &[Value]) {
    let query =
        "SELECT function, calls, unfinished, dur_ns, self_ns, dur_max_ns FROM function_usage";
    let output = place
        .whyslow()
        .args(["sql", "rec.wsl", "--csv", query])
        .output();
    let output = output.expect("it starts");
    let said = String::from_utf8_lossy(&output.stderr);
    if said.contains("not installed") {
        return skip(Need::DuckDb, "the duckdb command line is not installed");
    }
    assert!(output.status.success(), "{said}");
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    let lines: Vec<Vec<&str>> = text
        .lines()
        .skip(1)
        .map(|line| line.split(',').collect())
        .collect();
    assert_eq!(lines.len(), stats.len());
    for line in lines {
        let row = stats.iter().find(|row| row["function"] == line[0]);
        let row = row.unwrap_or_else(|| panic!("{line:?}"));
        let of_sql = |place: usize| line[place].parse::<i64>().unwrap_or(0);
        assert_eq!(number(row, "count"), of_sql(1), "{row}");
        assert_eq!(number(row, "unfinished"), of_sql(2), "{row}");
        assert_eq!(number(row, "total_ns"), of_sql(3), "{row}");
        assert_eq!(row["max_ns"].as_i64().unwrap_or(0), of_sql(5), "{row}");
        if line[0] == "call_outer" {
            let of_inner = of(all, "call_inner");
            let inner: i64 = of_inner.iter().map(|row| number(row, "dur_ns")).sum();
            assert_eq!(of_sql(3) - of_sql(4), inner, "{line:?}");
        }
    }
}

/// A child that is killed at the end of the test.
struct Ours(Child);

impl Drop for Ours {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn wait(mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_mins(1), "it does not come");
        thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn programs_that_only_another_mount_namespace_has_are_watched_and_calls_that_go_on_told() {
    if !can_record() {
        return;
    }
    let place = Place::new();
    if program(&place, "calls71").is_none() {
        return;
    }
    // A copy in a mount namespace of its own, which keeps running.
    let script =
        "mkdir -p inside && mount -t tmpfs none inside && cp calls71 inside/calls71only || exit 1
        : >there; until [ -e recording ]; do sleep 0.05; done; exec inside/calls71only hang";
    let holder = Command::new("unshare")
        .args(["--mount", "/bin/sh", "-c", script])
        .current_dir(place.path())
        .stdout(Stdio::null())
        .spawn();
    let Ok(holder) = holder.map(Ours) else {
        return skip(Need::Isolation, "no unshare");
    };
    let mut holder = holder;
    let is_there = || place.join("there").exists();
    wait(|| is_there() || !matches!(holder.0.try_wait(), Ok(None)));
    if !is_there() {
        return skip(Need::Isolation, "no mount namespace of one's own here");
    }
    // The same program, already running: without it no process has mapped the file.
    let first = Command::new("nsenter")
        .args(["--mount", "--target", &holder.0.id().to_string()])
        .args([
            place.join("inside/calls71only").as_os_str(),
            "hang".as_ref(),
        ])
        .stdout(Stdio::null())
        .spawn();
    let first = Ours(first.expect("unshare was there too"));
    let name = format!("/proc/{}/comm", first.0.id());
    wait(|| std::fs::read_to_string(&name).is_ok_and(|comm| comm == "calls71only\n"));
    let script = ": >recording; sleep 3";
    let done = place
        .whyslow()
        .args([
            "-q", "record", "--force", "-o", "rec.wsl", "--what", "sched", "--all",
        ])
        .args([
            "--function",
            "calls71only:call_waits",
            "--",
            "/bin/sh",
            "-c",
            script,
        ])
        .output()
        .expect("it starts");
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{said}");
    drop(first);
    let all = rows(&place, &["functions", "log", "rec.wsl"]);
    // The process that started later: it ends after four calls, during the fifth.
    let pid = i64::from(holder.0.id());
    let of_late: Vec<&Value> = all.iter().filter(|row| row["pid"] == pid).collect();
    let whole = of_late.iter().filter(|row| is_whole(row)).count();
    assert_eq!((whole, of_late.len()), (4, 5), "{all:?}");
    assert_eq!(number(of_late[4], "arg1"), 600_000);
    let module = of_late[0]["module"].as_str().unwrap_or_default();
    assert!(module.ends_with("calls71only"), "{module}");
}

#[test]
fn what_is_not_there_is_told_before_anything_is_recorded() {
    let place = Place::new();
    if !can_record() || program(&place, "calls73").is_none() {
        return;
    }
    let check = |function: &str, parts: &[&str]| {
        let output = place
            .whyslow()
            .args([
                "record",
                "-o",
                "no.wsl",
                "--function",
                function,
                "--",
                "touch",
                "ran",
            ])
            .output()
            .expect("it starts");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success(), "{function}");
        for part in parts {
            assert!(said.contains(part), "{function}: {said}");
        }
        for file in ["ran", "no.wsl", "no.wsl.spool"] {
            assert!(!place.join(file).exists(), "{function}: {file}");
        }
    };
    check(
        "./calls73:call_plian",
        &[
            "cannot probe `call_plian`: no such function in",
            "hint: use a similar name: call_plain",
        ],
    );
    check(
        "calls73-is-not-here:main",
        &["error: cannot find `calls73-is-not-here`: no running process maps it"],
    );
    check("./calls73", &["no file"]);
    check("./calls73:call_plain#float", &["unknown type `float`"]);
    check(
        "/etc/passwd:main",
        &["is not an executable of this architecture"],
    );
    let libc = "libc.so.6:";
    check(&format!("{libc}*"), &["it matches", "a longer pattern"]);
    check(&format!("{libc}memcpy"), &["resolved at program start"]);
}

#[test]
fn without_privileges_it_says_what_it_needs() {
    let place = Place::new();
    open_to_all(&place);
    let output = Command::new("setpriv")
        .args(["--reuid", "65534", "--regid", "65534", "--clear-groups"])
        .args(["./whyslow", "record", "-o", "no.wsl"])
        .args(["--function", "libc.so.6:getpid", "--", "true"])
        .current_dir(place.path())
        .output();
    let Some(output) = output.ok().filter(|output| !output.stderr.is_empty()) else {
        return skip(
            Need::Isolation,
            "setpriv is not installed, or we may not change the user",
        );
    };
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success());
    assert!(
        said.contains("error: cannot load BPF programs: permission denied")
            && said.contains("hint: run it as root"),
        "{said}"
    );
}
