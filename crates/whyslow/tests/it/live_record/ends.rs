//! How recordings end: calls that do not return, a killed recorder, a size limit.

use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::{can_record, record, rows};
use crate::common::Place;

#[test]
fn a_call_that_does_not_return_is_there_without_an_end() {
    if !can_record() {
        return;
    }
    let place = Place::new();
    record(&place, &["--for", "700ms"], "exec sleep 2");
    let calls = rows(
        &place,
        &["syscalls", "log", "rec.wsl", "--name", "clock_nanosleep"],
    );
    let [call] = calls.as_slice() else {
        panic!("{calls:?}");
    };
    assert_eq!(call["comm"], "sleep");
    assert!(
        call["ts_end_ns"].is_null() && call["ret"].is_null(),
        "{call}"
    );
}

#[test]
fn the_spool_of_a_killed_recorder_is_a_recording() {
    if !can_record() {
        return;
    }
    let place = Place::new();
    let mut recorder = Command::new(env!("CARGO_BIN_EXE_whyslow"))
        .args(["record", "-o", "rec.wsl"])
        .current_dir(place.path())
        .stderr(Stdio::null())
        .spawn()
        .expect("it starts");
    let spool = place.join("rec.wsl.spool");
    let begun = Instant::now();
    let is_written = || {
        let file = std::fs::metadata(spool.join("000001.blocks"));
        // More than the first block, which has no events.
        file.is_ok_and(|file| file.len() > 2_000)
    };
    while !is_written() && begun.elapsed() < Duration::from_secs(30) {
        sleep(Duration::from_millis(50));
    }
    sleep(Duration::from_millis(1_500));
    recorder.kill().expect("it is ours");
    recorder.wait().expect("it is ours");
    let spool = spool.to_str().expect("UTF-8");
    let done = place
        .whyslow()
        .args(["import", spool, "-o", "rec.wsl"])
        .output()
        .expect("it starts");
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{said}");
    // Killed during a write, the recorder leaves a truncated block.
    let is_cut = said.contains(" 1 errors") && said.contains("1 × spool_block_damaged");
    assert!(said.contains(" 0 errors") || is_cut, "{said}");
    assert!(!rows(&place, &["threads", "list", "rec.wsl"]).is_empty());
    // Truncated anywhere, the spool has the records before that point.
    let whole = std::fs::read(format!("{spool}/000001.blocks")).expect("it is there");
    std::fs::write(format!("{spool}/000001.blocks"), &whole[..whole.len() - 7]).expect("a disk");
    let done = place
        .whyslow()
        .args(["import", spool, "-o", "cut.wsl"])
        .output()
        .expect("it starts");
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{said}");
    assert!(said.contains("spool_block_damaged"), "{said}");
}

#[test]
fn a_spool_does_not_grow_beyond_its_limit() {
    if !can_record() {
        return;
    }
    let place = Place::new();
    let done = place
        .whyslow()
        .args(["record", "-o", "rec.wsl", "--keep-spool"])
        .args(["--max-size", "100KiB", "--buffer", "1MiB", "--for", "20s"])
        .args([
            "--",
            "/bin/sh",
            "-c",
            "for i in $(seq 3000); do cat /dev/null; done",
        ])
        .output();
    let done = done.expect("it starts");
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(said.contains("the spool reached --max-size"), "{said}");
    assert!(said.contains("were not written"), "{said}");
    let spool = std::fs::metadata(place.join("rec.wsl.spool/000001.blocks"));
    let bytes = spool.expect("it was kept").len();
    // Full, except for what is reserved for its end.
    assert!((85 << 10..=100 << 10).contains(&bytes), "{bytes}");
    // Earlier data is complete, and answers report that the rest is missing.
    let answer = place.whyslow().args(["info", "rec.wsl", "--json"]).output();
    let answer: Value = serde_json::from_slice(&answer.expect("it starts").stdout).expect("JSON");
    let losses = answer["losses"].as_array().expect("a list");
    assert!(!losses.is_empty(), "{said}");
    assert!(!rows(&place, &["threads", "list", "rec.wsl"]).is_empty());
}

#[test]
fn a_spool_that_is_too_small_is_an_error_and_leaves_nothing() {
    if !can_record() {
        return;
    }
    let place = Place::new();
    let done = place
        .whyslow()
        .args([
            "record",
            "-o",
            "rec.wsl",
            "--max-size",
            "8KiB",
            "--",
            "true",
        ])
        .output();
    let done = done.expect("it starts");
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(!done.status.success(), "{said}");
    assert!(said.contains("exceeds the limit of 8192 bytes"), "{said}");
    assert!(said.contains("--max-size"), "{said}");
    assert!(!place.join("rec.wsl.spool").exists());
}
