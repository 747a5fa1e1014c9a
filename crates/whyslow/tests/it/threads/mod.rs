//! Queries about threads of profiles: pools, timelines, flame graphs, gaps, lock chains, and dumps
//! of a running JVM.

mod dumps;
mod flames;

use std::collections::BTreeMap;

use serde_json::Value;

use crate::common::held::truth;
use crate::common::{Place, recorded};

const MS: i64 = 1_000_000;

fn fixture(name: &str) -> String {
    let path = whyslow_testkit::fixture(name);
    path.to_str().expect("a path").to_owned()
}

fn query(args: &[&str]) -> Value {
    let text = recorded().stdout(&[args, &["--json"]].concat());
    serde_json::from_str(&text).expect("one JSON document")
}

fn rows<'a>(answer: &'a Value, table: &str) -> Vec<&'a Value> {
    let tables = answer["tables"].as_array().expect("tables");
    let found = tables.iter().find(|one| one["name"] == table);
    let rows = found.and_then(|table| table["rows"].as_array());
    rows.into_iter().flatten().collect()
}

fn int(row: &Value, name: &str) -> i64 {
    row[name]
        .as_i64()
        .unwrap_or_else(|| panic!("{name} of {row}"))
}

#[test]
fn a_pool_is_at_work_while_its_threads_wait_for_locks() {
    for name in ["each", "batches", "chunks"] {
        let answer = query(&[
            "threads",
            "list",
            &fixture(&format!("jfr/{name}.jfr")),
            "--by",
            "pool",
        ]);
        let pools = rows(&answer, "pools");
        let pool = pools.iter().find(|row| row["pool"] == "request-handler-N");
        let pool = pool.expect("the handlers");
        assert_eq!(int(pool, "threads"), 8, "{name}");
        // How many of them waited at once, as logged by themselves.
        let held = truth(name);
        let waits: Vec<(i64, i64)> = held
            .iter()
            .filter(|one| {
                one.thread.starts_with("request-handler-") && one.entered - one.requested > 50 * MS
            })
            .map(|one| (one.requested, one.entered))
            .collect();
        let at = |moment: i64| {
            waits
                .iter()
                .filter(|(from, to)| *from <= moment && moment < *to)
                .count()
        };
        let most = waits
            .iter()
            .map(|(from, _)| at(*from + 20 * MS))
            .max()
            .unwrap_or(0);
        let busiest = int(pool, "work_max");
        assert!(
            busiest <= 8 && busiest >= most as i64,
            "{name}: {busiest} for {most}"
        );
        let (begin, end) = (
            answer["window"]["begin_ns"].as_i64(),
            answer["window"]["end_ns"].as_i64(),
        );
        let length = end.zip(begin).map(|(end, begin)| end - begin);
        let waited: i64 = waits.iter().map(|(from, to)| to - from).sum();
        if let Some(length) = length {
            let share = waited as f64 / (8 * length) as f64;
            let ratio = pool["work_ratio"].as_f64().expect("a share");
            assert!(ratio > share - 0.05, "{name}: {ratio} for {share}");
        }
    }
}

#[test]
fn letters_stand_where_the_stacks_match() {
    let name = "each";
    let recording = fixture("jfr/each.jfr");
    let args = [
        "threads",
        "timeline",
        &recording,
        "--threads",
        "^request-handler-[0-9]+$",
        "--match",
        r"\$Ledger\.",
        "-n",
        "0",
    ];
    let answer = query(&args);
    let table = &answer["tables"][0];
    let part = table["facts"].to_string();
    let lines = rows(&answer, "timeline");
    assert_eq!(lines.len(), 8, "{part}");
    let none = query(&[
        "threads",
        "timeline",
        &recording,
        "--match",
        "no such function",
    ]);
    assert!(rows(&none, "timeline").is_empty());
    let all = query(&[
        "threads",
        "timeline",
        &recording,
        "--threads",
        "^request-handler-[0-9]+$",
        "-n",
        "0",
    ]);
    let rejected = query(&[&args[..5], &["--reject", r"\$Ledger\.", "-n", "0"]].concat());
    let held = truth(name);
    for line in lines {
        let comm = line["comm"].as_str().expect("a name");
        let of = |answer: &Value| -> Vec<char> {
            let rows = rows(answer, "timeline");
            let row = rows
                .iter()
                .find(|row| row["comm"] == comm)
                .expect("the same");
            row["states"].as_str().expect("letters").chars().collect()
        };
        let letters: Vec<char> = line["states"].as_str().expect("letters").chars().collect();
        let (all, others) = (of(&all), of(&rejected));
        assert!(held.iter().any(|one| one.thread == comm));
        for (at, letter) in letters.iter().enumerate() {
            // Matching and non-matching stacks add up to the total.
            if *letter == ' ' && others[at] == ' ' {
                assert_eq!(all[at], ' ', "{comm} {at}");
            } else {
                assert_ne!(all[at], ' ', "{comm} {at}");
            }
        }
        let waited: i64 = held
            .iter()
            .filter(|one| one.thread == comm && one.lock == "ledger")
            .map(|one| one.left - one.requested)
            .sum();
        let seen = letters.iter().filter(|letter| **letter != ' ').count();
        assert_eq!(waited > 100 * MS, seen > 0, "{comm}: {waited} {letters:?}");
    }
}

#[test]
fn letters_are_of_what_has_the_operation() {
    let recording = fixture("jfr/each.jfr");
    let of = |op: &str| {
        let answer = query(&["threads", "timeline", &recording, "--op", op]);
        rows(&answer, "timeline").len()
    };
    assert!(of("wall") > 0);
    // States from a kernel trace, which has stacks, too.
    let place = Place::new();
    place.write(
        "t.txt",
        "whyslow-text 1\n\
         1.000000 [0] (tid=10 pid=10 comm=web) sched_switch prev=10 prev_comm=web prev_state=D next=0\n\
         1.030000 [0] sched_switch prev=0 prev_state=R next=10 next_comm=web\n\
         1.030000 [0] (tid=10 comm=web) stack kind=back since=1.000000000 state=D cpu=0 kernel=io_schedule user=main\n",
    );
    let text = place.stdout(&[
        "threads",
        "timeline",
        "t.txt",
        "--op",
        "uninterruptible",
        "--json",
    ]);
    let answer: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(rows(&answer, "timeline").len(), 1, "{text}");
    let mut command = place.whyslow();
    command.args(["threads", "timeline", "t.txt", "--op", "nonsense"]);
    assert!(!command.output().expect("it runs").status.success());
}

#[test]
fn a_pattern_that_is_none_is_named() {
    let recording = fixture("jfr/each.jfr");
    for (flag, pattern) in [("--match", "("), ("--reject", "a{"), ("--threads", "[")] {
        let mut command = recorded().whyslow();
        command.args(["threads", "timeline", &recording, flag, pattern]);
        let output = command.output().expect("it runs");
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success(), "{flag}");
        assert!(
            message.contains(pattern) && message.contains("regular expression"),
            "{message}"
        );
    }
    let mut command = recorded().whyslow();
    command.args(["block", "stats", "t.wsl", "--match", "a"]);
    let output = command.output().expect("it runs");
    assert!(String::from_utf8_lossy(&output.stderr).contains("cannot filter block by stack"));
}

#[test]
fn chains_lead_to_who_had_the_lock() {
    for name in ["each", "batches", "chunks", "both"] {
        let held = truth(name);
        let answer = query(&[
            "locks",
            "chains",
            &fixture(&format!("jfr/{name}.jfr")),
            "--op",
            "monitor",
        ]);
        let mut chains: BTreeMap<i64, Vec<&Value>> = BTreeMap::new();
        for row in rows(&answer, "chains") {
            chains.entry(int(row, "rank")).or_default().push(row);
        }
        assert!(chains.len() >= 3, "{name}: {answer:#}");
        let mut checked = 0;
        for links in chains.values() {
            let (last, links) = links.split_last().expect("rows");
            assert!(
                last["what"]
                    .as_str()
                    .is_some_and(|what| what.starts_with("holds it"))
            );
            // The holder of each link is the thread of the next one.
            let threads: Vec<&Value> = links.iter().chain([last]).map(|row| &row["comm"]).collect();
            for (row, next) in links.iter().zip(&threads[1..]) {
                if row["confidence"] == "low" {
                    continue;
                }
                let (begin, dur) = (int(row, "ts_ns"), int(row, "dur_ns"));
                let lock = if row["what"]
                    .as_str()
                    .is_some_and(|what| what.contains("$Ledger"))
                {
                    "ledger"
                } else {
                    continue;
                };
                let had: i64 = held
                    .iter()
                    .filter(|one| one.lock == lock && next.as_str() == Some(one.thread.as_str()))
                    .map(|one| (one.left.min(begin + dur) - one.entered.max(begin)).max(0))
                    .sum();
                assert!(had * 2 >= dur - 40 * MS, "{name}: {row} {had}");
                checked += 1;
            }
        }
        assert!(checked > 0, "{name}");
    }
}

#[test]
fn gaps_say_how_they_lie_to_each_other() {
    let answer = query(&[
        "threads",
        "gaps",
        &fixture("kafka/incident.jfr.gz"),
        "-n",
        "0",
    ]);
    let gaps = rows(&answer, "gaps");
    let mut groups: BTreeMap<i64, Vec<&Value>> = BTreeMap::new();
    for gap in &gaps {
        if let Some(group) = gap["group_id"].as_i64() {
            groups.entry(group).or_default().push(gap);
        }
        if gap["class"] == "process_stopped" {
            assert!(
                gap["cause"].is_string() && gap["confidence"].is_null(),
                "{gap}"
            );
        } else {
            assert!(
                gap["confidence"].is_string() && gap["state"].is_string(),
                "{gap}"
            );
        }
    }
    assert!(groups.len() >= 5);
    for members in groups.values() {
        let longest = members
            .iter()
            .filter(|gap| gap["relation"] == "the longest");
        let longest: Vec<_> = longest.collect();
        assert_eq!(longest.len(), 1, "{members:?}");
        for gap in members {
            let end = |gap: &Value| int(gap, "ts_end_ns");
            if gap["relation"]
                .as_str()
                .is_some_and(|text| text.starts_with("same end"))
            {
                assert!((end(gap) - end(longest[0])).abs() <= 20 * MS, "{gap}");
                assert!(
                    (int(gap, "ts_ns") - int(longest[0], "ts_ns")).abs() > 20 * MS,
                    "{gap}"
                );
            }
        }
    }
    let pairs = rows(&answer, "pairs");
    let of =
        |row: &&&Value| row["function"] == "__GI_write" && row["other_function"] == "sendfile64";
    let pair = pairs
        .iter()
        .find(of)
        .expect("writes wait while files are sent");
    assert!(int(pair, "count") >= 5, "{pair}");
    // The same seed gives the same probability.
    let again = query(&[
        "threads",
        "gaps",
        &fixture("kafka/incident.jfr.gz"),
        "-n",
        "0",
    ]);
    assert_eq!(rows(&again, "pairs"), pairs);
}
