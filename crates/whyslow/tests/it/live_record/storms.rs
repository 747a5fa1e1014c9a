//! Many threads, forks and programs at once, name changes, and reused ids.

use std::collections::BTreeSet;
use std::os::unix::fs::symlink;
use std::process::Command;
use std::sync::{Arc, Barrier};

use serde_json::Value;
use whyslow_testkit::{Need, skip};

use super::{can_record, record, rows};
use crate::common::Place;

const THREADS: usize = 5003;
const THREAD_NAME: &str = "storm-5003";

/// Threads in the recording of a shell command, run in its directory.
fn threads_of(place: &Place, script: &str) -> Vec<Value> {
    record(place, &[], script);
    rows(place, &["threads", "list", "rec.wsl"])
}

fn named(rows: &[Value], comm: &str) -> Vec<Value> {
    let rows = rows.iter().filter(|row| row["comm"] == comm);
    rows.cloned().collect()
}

/// A copy of a system program under this name in the directory.
fn alias(place: &Place, name: &str, program: &str) {
    symlink(program, place.join(name)).expect("a temporary folder");
}

/// Not a test: run in a separate process by the test below.
#[test]
#[ignore = "starts thousands of threads"]
#[allow(clippy::disallowed_methods)] // it is the whole process
fn a_process_of_many_threads() {
    let all_there = Arc::new(Barrier::new(THREADS + 1));
    let mut threads = Vec::new();
    for _ in 0..THREADS {
        let all_there = Arc::clone(&all_there);
        let thread = std::thread::Builder::new()
            .name(THREAD_NAME.into())
            .stack_size(32 << 10)
            .spawn(move || {
                all_there.wait();
            });
        let Ok(thread) = thread else {
            // The other threads would wait forever otherwise.
            std::process::exit(75);
        };
        threads.push(thread);
    }
    all_there.wait();
    for thread in threads {
        thread.join().expect("nothing can go wrong in it");
    }
}

#[test]
fn five_thousand_threads_are_five_thousand_rows() {
    if !can_record() {
        return;
    }
    let place = Place::new();
    let program = std::env::current_exe().expect("this test");
    let script = format!(
        "{} --ignored --exact live_record::storms::a_process_of_many_threads >/dev/null 2>&1; echo $? >status",
        program.display()
    );
    let rows = threads_of(&place, &script);
    let status = std::fs::read_to_string(place.join("status")).expect("the shell wrote it");
    if status.trim() == "75" {
        return skip(
            Need::Machine,
            "this machine does not permit that many threads",
        );
    }
    assert_eq!(status.trim(), "0");
    let storm = named(&rows, THREAD_NAME);
    let set = |name: &str| -> BTreeSet<i64> {
        storm.iter().filter_map(|row| row[name].as_i64()).collect()
    };
    assert_eq!(storm.len(), THREADS);
    assert_eq!((set("tid").len(), set("pid").len()), (THREADS, 1));
    let is_whole = |row: &&Value| row["start_ns"].is_i64() && row["exit_ns"].is_i64();
    assert_eq!(storm.iter().filter(is_whole).count(), THREADS);
}

#[test]
fn each_program_of_a_storm_has_its_name_and_arguments() {
    if !can_record() {
        return;
    }
    let place = Place::new();
    let names: BTreeSet<String> = (0..499).map(|number| format!("./storm-{number}")).collect();
    for name in &names {
        alias(&place, name, "/bin/true");
    }
    let script = "i=0; while [ $i -lt 499 ]; do ./storm-$i; i=$((i+1)); done";
    let rows = threads_of(&place, script);
    let commands = rows.iter().filter_map(|row| row["command"].as_str());
    let commands: Vec<&str> = commands
        .filter(|name| name.starts_with("./storm-"))
        .collect();
    assert_eq!(commands.len(), 499);
    assert_eq!(commands.iter().copied().collect::<BTreeSet<_>>().len(), 499);
    let of_command = |row: &&Value| {
        let command = row["command"].as_str().unwrap_or_default();
        names.contains(command) && row["comm"].as_str() == command.strip_prefix("./")
    };
    assert_eq!(rows.iter().filter(of_command).count(), 499);
    let calls = super::rows(&place, &["syscalls", "log", "rec.wsl", "--name", "execve"]);
    let done = calls.iter().filter(|call| call["ret"] == 0);
    let paths: BTreeSet<&str> = done.filter_map(|call| call["path"].as_str()).collect();
    let missing: Vec<_> = names
        .iter()
        .filter(|name| !paths.iter().any(|path| path.ends_with(&name[1..])))
        .collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn each_process_of_a_fork_storm_is_a_row() {
    if !can_record() {
        return;
    }
    let place = Place::new();
    alias(&place, "forks-1009", "/bin/sh");
    place.write(
        "forks",
        "i=0; while [ $i -lt 1009 ]; do ( : ); i=$((i+1)); done; :",
    );
    let rows = threads_of(&place, "./forks-1009 forks; true");
    let storm = named(&rows, "forks-1009");
    assert_eq!(storm.len(), 1 + 1009);
    let pids: BTreeSet<_> = storm.iter().filter_map(|row| row["pid"].as_i64()).collect();
    assert_eq!(pids.len(), 1 + 1009);
}

#[test]
fn calls_belong_to_the_name_that_a_process_had() {
    if !can_record() {
        return;
    }
    let place = Place::new();
    alias(&place, "before-13", "/bin/sh");
    place.write(
        "renames",
        "i=0; while [ $i -lt 13 ]; do cd /; i=$((i+1)); done
        printf after-17 >/proc/self/comm
        i=0; while [ $i -lt 17 ]; do cd /; i=$((i+1)); done",
    );
    record(&place, &[], "./before-13 renames; true");
    let calls = rows(&place, &["syscalls", "log", "rec.wsl", "--name", "chdir"]);
    assert_eq!(named(&calls, "before-13").len(), 13);
    assert_eq!(named(&calls, "after-17").len(), 17);
}

#[test]
fn processes_that_have_the_same_id_one_after_the_other_are_two() {
    if !can_record() {
        return;
    }
    let place = Place::new();
    alias(&place, "reuse-a", "/bin/true");
    alias(&place, "reuse-b", "/bin/true");
    // Another process may take the id first: then the test retries.
    let script = "n=0; while [ $n -lt 500 ]; do n=$((n+1))
        ./reuse-a & a=$!; wait $a
        echo $((a-1)) >/proc/sys/kernel/ns_last_pid || exit 0
        ./reuse-b & b=$!; wait $b
        if [ $a = $b ]; then echo $a >reused; exit 0; fi; done";
    let may_choose = Command::new("/bin/sh")
        .args(["-c", "echo $$ >/proc/sys/kernel/ns_last_pid"])
        .output();
    if !may_choose.is_ok_and(|output| output.status.success()) {
        return skip(
            Need::Machine,
            "this kernel does not permit setting the next process id",
        );
    }
    let rows = threads_of(&place, script);
    let Ok(reused) = std::fs::read_to_string(place.join("reused")) else {
        return skip(
            Need::Machine,
            "others on this machine take process ids too quickly",
        );
    };
    let pid: i64 = reused.trim().parse().expect("a number");
    let same: Vec<_> = rows.iter().filter(|row| row["pid"] == pid).collect();
    let commands: Vec<_> = same
        .iter()
        .filter_map(|row| row["command"].as_str())
        .collect();
    assert_eq!(same.len(), 2, "{same:?}");
    assert!(
        commands.contains(&"./reuse-a") && commands.contains(&"./reuse-b"),
        "{same:?}"
    );
    // Each thread has its own calls; the first one is not the last call of the other thread.
    let exits = super::rows(
        &place,
        &["syscalls", "log", "rec.wsl", "--name", "exit_group"],
    );
    for comm in ["reuse-a", "reuse-b"] {
        let own = named(&exits, comm);
        let own = own.iter().filter(|call| call["pid"] == pid);
        assert_eq!(own.count(), 1, "{comm}");
    }
}
