//! Stacks and lock waits, of programs that wait a given number of times.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde_json::Value;
use whyslow_testkit::{Need, skip};

use super::compiled::{compiled, recorded};
use super::{can_record, rows};
use crate::common::Place;

/// The program with all its kinds of waits, under a unique name.
fn program(place: &Place, name: &str) -> Option<PathBuf> {
    let options = [
        "-O1",
        "-g0",
        "-fno-omit-frame-pointer",
        "-fno-optimize-sibling-calls",
    ];
    compiled(place, name, "waits.c", &options)
}

fn text<'r>(row: &'r Value, column: &str) -> &'r str {
    row[column].as_str().unwrap_or_default()
}

/// Functions of each stack, innermost first.
fn stacks(place: &Place, query: &[&str]) -> Vec<Vec<String>> {
    let mut stacks: BTreeMap<i64, Vec<String>> = BTreeMap::new();
    for row in rows(place, query) {
        let rank = row["rank"].as_i64().expect("a number");
        let functions = stacks.entry(rank).or_default();
        functions.push(text(&row, "function").to_owned());
    }
    stacks.into_values().collect()
}

fn has_in_order(stack: &[String], functions: &[&str]) -> bool {
    let mut stack = stack.iter();
    let has = |wanted: &&str| stack.any(|function| function.contains(wanted));
    functions.iter().all(has)
}

/// Remaining lifetime in seconds for symbolization: more on a slow machine.
const LINGER: [&str; 3] = ["2", "8", "20"];

#[test]
fn every_sleep_has_its_stack_in_the_kernel_and_in_the_program() {
    const NAPS: usize = 37;
    if !can_record() {
        return;
    }
    let place = Place::new();
    let Some(program) = program(&place, "napping37") else {
        return;
    };
    let query = ["stacks", "rec.wsl", "--comm", "napping37"];
    let mut found = Vec::new();
    for seconds in LINGER {
        let took: i64 = recorded(&place, &[], &program, &["naps", "37", seconds])
            .trim()
            .parse()
            .expect("a number");
        let log = ["stacks", "log", "rec.wsl", "--comm", "napping37"];
        let mut naps = rows(&place, &log);
        naps.retain(|row| {
            text(row, "function").contains("nanosleep") && text(row, "state") == "sleeping"
        });
        let times = naps.iter().filter_map(|row| row["dur_ns"].as_i64());
        let times: Vec<i64> = times.collect();
        found = stacks(&place, &query);
        let wanted = ["nanosleep", "nap_outer", "main"];
        let is_named = found.iter().any(|stack| has_in_order(stack, &wanted));
        // A thread that was preempted on its way to sleep did not sleep.
        if naps.len() != NAPS || !is_named {
            continue;
        }
        assert!(times.iter().all(|time| *time >= 1_000_000), "{times:?}");
        assert!(times.iter().sum::<i64>() <= took, "{took}: {times:?}");
        let order = ["--by", "comm", "--sort", "count"];
        let most = rows(&place, &[&query[..], &order].concat());
        assert_eq!(most[0]["comm"], "napping37");
        assert_eq!(most[0]["count"], NAPS);
        // The figures are those of the stack, shown with its first frame.
        assert!(most[1]["rank"] == 1 && most[1]["count"].is_null());
        return;
    }
    panic!("{found:?}");
}

#[cfg(target_arch = "x86_64")]
#[test]
fn code_made_at_run_time_has_the_name_that_its_program_tells() {
    if !can_record() {
        return;
    }
    let place = Place::new();
    let Some(program) = program(&place, "napping41") else {
        return;
    };
    let query = ["stacks", "rec.wsl", "--comm", "napping41"];
    let mut found = Vec::new();
    for seconds in LINGER {
        recorded(&place, &[], &program, &["made", "41", seconds]);
        found = stacks(&place, &query);
        let wanted = ["nanosleep", "nap_outer", "made_at_run_time", "nap_made"];
        if found.iter().any(|stack| has_in_order(stack, &wanted)) {
            return;
        }
    }
    panic!("{found:?}");
}

#[test]
fn two_writers_of_a_file_wait_for_its_lock() {
    if !can_record() {
        return;
    }
    let place = Place::new();
    let Some(program) = program(&place, "fighting43") else {
        return;
    };
    let file = place.join("fought-for");
    let file = file.to_str().expect("UTF-8");
    // They may happen to alternate.
    for count in ["100", "400", "1600", "3200"] {
        recorded(&place, &[], &program, &["fight", count, file]);
        let mut waits = rows(&place, &["locks", "log", "rec.wsl", "--op", "rwsem"]);
        waits.retain(|row| {
            let is_long = row["dur_ns"].as_i64().is_some_and(|time| time >= 100_000);
            is_long && text(row, "mode") == "write" && text(row, "function").contains("write")
        });
        let Some(wait) = waits.first() else {
            continue;
        };
        assert_eq!(text(wait, "comm"), "fighting43");
        let number = |column: &str| wait[column].as_i64().expect("a number");
        assert_eq!(number("ts_end_ns"), number("ts_ns") + number("dur_ns"));
        let by_lock = rows(&place, &["locks", "stats", "rec.wsl", "--by", "lock,kind"]);
        assert!(by_lock.iter().any(|row| row["lock"] == wait["lock"]));
        let found = stacks(&place, &["locks", "stacks", "rec.wsl", "--op", "rwsem"]);
        let wanted = ["rwsem_down_write", "write", "do_syscall_64"];
        let is_whole = |stack: &Vec<String>| has_in_order(stack, &wanted);
        assert!(
            !cfg!(target_arch = "x86_64") || found.iter().any(is_whole),
            "{found:?}"
        );
        return;
    }
    skip(Need::Machine, "the writers never met");
}

#[test]
fn what_runs_is_sampled_on_request() {
    if !can_record() {
        return;
    }
    let place = Place::new();
    let Some(program) = program(&place, "spinning47") else {
        return;
    };
    let options = ["--sample", "199", "--stacks", "off", "--what", "syscalls"];
    let mut samples = Vec::new();
    for seconds in LINGER {
        recorded(&place, &options, &program, &["spin", "1000", seconds]);
        let log = ["stacks", "log", "rec.wsl", "--comm", "spinning47"];
        samples = rows(&place, &log);
        let kinds = samples.iter().all(|row| text(row, "kind") == "sample");
        assert!(kinds, "{samples:?}");
        let is_spin = |row: &&Value| text(row, "user_function") == "spin";
        // A second has 199 samples; the program may have had a tenth of a CPU.
        if samples.iter().filter(is_spin).count() >= 10 {
            let period = 1_000_000_000 / 199;
            assert!(samples.iter().all(|row| row["dur_ns"] == period));
            return;
        }
    }
    panic!("{samples:?}");
}

#[test]
fn stacks_are_off_when_they_are_told_to_be() {
    if !can_record() {
        return;
    }
    let place = Place::new();
    let Some(program) = program(&place, "napping53") else {
        return;
    };
    recorded(&place, &["--stacks", "off"], &program, &["naps", "5", "0"]);
    assert!(rows(&place, &["stacks", "log", "rec.wsl"]).is_empty());
    // Longer than any nap.
    recorded(&place, &["--stacks", "1h"], &program, &["naps", "5", "0"]);
    assert!(rows(&place, &["stacks", "log", "rec.wsl"]).is_empty());
}
