//! Questions about threads of profiles: pools, time lines, flame graphs, gaps, chains of locks, and dumps of
//! a JVM that runs.

mod common;
#[path = "common/held.rs"]
mod held;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use common::{Place, recorded};
use held::truth;
use serde_json::Value;

const MS: i64 = 1_000_000;

fn fixture(name: &str) -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../fixtures")
        .join(name);
    path.to_str().expect("a path").to_owned()
}

fn asked(args: &[&str]) -> Value {
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
        let answer = asked(&[
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
        // How many of them waited at once, as they wrote it down.
        let held = truth(name);
        let waits: Vec<(i64, i64)> = held
            .iter()
            .filter(|one| {
                one.thread.starts_with("request-handler-") && one.entered - one.asked > 50 * MS
            })
            .map(|one| (one.asked, one.entered))
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
        let told = int(pool, "work_max");
        assert!(
            told <= 8 && told >= most as i64,
            "{name}: {told} for {most}"
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
    let answer = asked(&args);
    let table = &answer["tables"][0];
    let part = table["facts"].to_string();
    let lines = rows(&answer, "timeline");
    assert_eq!(lines.len(), 8, "{part}");
    let none = asked(&[
        "threads",
        "timeline",
        &recording,
        "--match",
        "no such function",
    ]);
    assert!(rows(&none, "timeline").is_empty());
    let all = asked(&[
        "threads",
        "timeline",
        &recording,
        "--threads",
        "^request-handler-[0-9]+$",
        "-n",
        "0",
    ]);
    let rejected = asked(&[&args[..5], &["--reject", r"\$Ledger\.", "-n", "0"]].concat());
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
            // What matches and what does not is all there is.
            if *letter == ' ' && others[at] == ' ' {
                assert_eq!(all[at], ' ', "{comm} {at}");
            } else {
                assert_ne!(all[at], ' ', "{comm} {at}");
            }
        }
        let waited: i64 = held
            .iter()
            .filter(|one| one.thread == comm && one.lock == "ledger")
            .map(|one| one.left - one.asked)
            .sum();
        let seen = letters.iter().filter(|letter| **letter != ' ').count();
        assert_eq!(waited > 100 * MS, seen > 0, "{comm}: {waited} {letters:?}");
    }
}

#[test]
fn a_pattern_that_is_none_is_named() {
    let recording = fixture("jfr/each.jfr");
    for (flag, pattern) in [("--match", "("), ("--reject", "a{"), ("--threads", "[")] {
        let mut command = recorded().whyslow();
        command.args(["threads", "timeline", &recording, flag, pattern]);
        let output = command.output().expect("it runs");
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success(), "{flag}");
        assert!(
            told.contains(pattern) && told.contains("regular expression"),
            "{told}"
        );
    }
    let mut command = recorded().whyslow();
    command.args(["block", "stats", "t.wsl", "--match", "a"]);
    let output = command.output().expect("it runs");
    assert!(String::from_utf8_lossy(&output.stderr).contains("has no stack to filter by"));
}

#[test]
fn chains_lead_to_who_had_the_lock() {
    for name in ["each", "batches", "chunks", "both"] {
        let held = truth(name);
        let answer = asked(&[
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
            // Each link's holder is the thread of the next one.
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
    let answer = asked(&[
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
                .is_some_and(|told| told.starts_with("same end"))
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
    // The same seed, the same chance.
    let again = asked(&[
        "threads",
        "gaps",
        &fixture("kafka/incident.jfr.gz"),
        "-n",
        "0",
    ]);
    assert_eq!(rows(&again, "pairs"), pairs);
}

#[test]
fn a_flame_graph_gives_each_thread_its_life() {
    let place = recorded();
    for name in [
        "kafka/incident.jfr.gz",
        "jfr/each.jfr",
        "jfr/batches.jfr",
        "jfr/chunks.jfr",
    ] {
        let answer = asked(&["threads", "flame", &fixture(name), "-n", "0"]);
        let caveats = answer["caveats"].to_string();
        assert!(
            caveats.contains(" 0 ns too much or too little"),
            "{name}: {caveats}"
        );
        // Sums of lines are those of the whole, whatever is shown.
        let lines = rows(&answer, "flame");
        let sum = |rows: &[&Value]| -> i64 { rows.iter().map(|row| int(row, "self_ns")).sum() };
        let top: i64 = lines
            .iter()
            .filter(|row| int(row, "depth") == 0)
            .map(|row| int(row, "total_ns"))
            .sum();
        assert_eq!(sum(&lines), top, "{name}");
        let ten = asked(&["threads", "flame", &fixture(name), "-n", "10"]);
        let ten = rows(&ten, "flame");
        assert!(ten.len() <= 10);
        // The same in lines for other tools.
        let text = place.stdout(&["export", "collapsed", &fixture(name), "--weight", "time"]);
        let lines = text.lines().filter_map(|line| line.rsplit_once(' '));
        let told: i64 = lines
            .map(|(_, time)| time.parse::<i64>().expect("a number"))
            .sum();
        assert_eq!(told, top, "{name}");
    }
}

#[test]
fn calls_that_kept_signals_away_stand_out_against_samples() {
    let answer = asked(&["threads", "flame", &fixture("kafka/incident.jfr.gz")]);
    let caveats = answer["caveats"].as_array().expect("caveats");
    let told = caveats.iter().filter_map(Value::as_str);
    let told: Vec<&str> = told.filter(|text| text.contains("% of samples")).collect();
    let sent = told.iter().find(|text| text.starts_with("sendfile64: "));
    let sent = sent.unwrap_or_else(|| panic!("{caveats:?}"));
    let shares: Vec<f64> = sent
        .split_whitespace()
        .filter_map(|word| word.parse().ok())
        .collect();
    assert!(shares[1] > 2.0 * shares[0], "{sent}");
}

#[test]
fn the_name_of_a_file_says_its_form() {
    let place = Place::new();
    let recording = fixture("kafka/incident.jfr.gz");
    let written = |name: &str, more: &[&str]| {
        let args = [
            &["threads", "flame", &recording, "-o", name, "--quiet"],
            more,
        ]
        .concat();
        place.stdout(&args);
        fs::read_to_string(place.join(name)).expect("a file")
    };
    let svg = written("flame.svg", &[]);
    assert!(
        svg.contains("<svg")
            && svg.contains("% of samples")
            && svg.contains("adds up to their lives")
    );
    assert!(svg.contains(" off\">"), "who waits is pale");
    assert_eq!(
        written("stacks.txt", &[]),
        place.stdout(&["export", "collapsed", &recording])
    );
    let scope: Value = serde_json::from_str(&written("scope.json", &[])).expect("JSON");
    let other: Value =
        serde_json::from_str(&place.stdout(&["export", "speedscope", &recording])).expect("JSON");
    assert_eq!(scope["profiles"], other["profiles"]);
    assert_eq!(written("any", &["--format", "svg"]), svg);
    let answer: Value = serde_json::from_str(&written("table.json", &["--json"])).expect("JSON");
    assert!(answer["tables"].is_array());
    let chart = written("chart.svg", &["--chart", "--threads", "network-thread"]);
    assert!(chart.contains("data-chart") && chart.contains("sendfile64"));
    assert!(!chart.contains("request-handler"));
    let pools = asked(&["threads", "flame", &recording, "--by", "pool"]);
    let names: Vec<&Value> = rows(&pools, "flame")
        .into_iter()
        .map(|row| &row["function"])
        .collect();
    assert!(
        names.contains(&&Value::from("data-plane-kafka-request-handler-N")),
        "{names:?}"
    );
}

/// Three threads that wait for each other, and one that sleeps.
const DEADLOCK: &str = r#"
public class Deadlock {
    static final Object[] LOCKS = { new Object(), new StringBuilder(), new Thread() };
    static void take(int first) throws Exception {
        synchronized (LOCKS[first]) {
            Thread.sleep(500);
            synchronized (LOCKS[(first + 1) % LOCKS.length]) { System.out.println("never"); }
        }
    }
    public static void main(String[] args) throws Exception {
        for (int number = 0; number < LOCKS.length; number++) {
            int own = number;
            Thread thread = new Thread(() -> { try { take(own); } catch (Exception e) { } }, "philosopher-" + own);
            thread.setDaemon(true);
            thread.start();
        }
        Thread.sleep(1000);
        System.out.println("ready");
        Thread.sleep(60_000);
    }
}
"#;

struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn is_there(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

fn java(folder: &Path) -> Running {
    fs::write(folder.join("Deadlock.java"), DEADLOCK).expect("room");
    let out = fs::File::create(folder.join("out")).expect("room");
    let child = Command::new("java")
        .args(["-Xmx64m", "Deadlock.java"])
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(out)
        .stderr(Stdio::null())
        .spawn()
        .expect("java runs");
    let running = Running(child);
    let give_up = Instant::now() + Duration::from_mins(1);
    while !fs::read_to_string(folder.join("out"))
        .expect("its output")
        .contains("ready")
    {
        assert!(Instant::now() < give_up, "the program does not begin");
        std::thread::sleep(Duration::from_millis(50));
    }
    running
}

#[test]
fn dumps_of_a_running_jvm_become_a_recording_that_shows_its_deadlock() {
    for program in ["java", "javac", "jcmd"] {
        if !is_there(program) {
            println!("skipped: there is no `{program}`");
            return;
        }
    }
    let place = Place::new();
    let running = java(place.path());
    let pid = running.0.id().to_string();
    let mut command = place.whyslow();
    command.args([
        "threads",
        "dump",
        "--every",
        "400ms",
        "--for",
        "4s",
        "-p",
        &pid,
        "-o",
        "dumps.wsl",
    ]);
    let output = command.output().expect("it runs");
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{told}");
    assert!(
        told.contains(" dumps in ") && told.contains("stood still"),
        "{told}"
    );
    drop(running);
    let text = place.stdout(&["locks", "chains", "dumps.wsl", "--json"]);
    let answer: Value = serde_json::from_str(&text).expect("JSON");
    let chains = rows(&answer, "chains");
    let first = chains.first().expect("a chain");
    let verdict = first["verdict"].as_str().expect("a verdict");
    assert!(verdict.starts_with("deadlock"), "{answer:#}");
    for number in 0..3 {
        assert!(
            verdict.contains(&format!("philosopher-{number}")),
            "{verdict}"
        );
    }
    let dump = place.stdout(&["threads", "dump", "dumps.wsl", "--at", "-200ms", "--wide"]);
    assert!(dump.contains(": deadlock"), "{dump}");
}

#[test]
fn only_a_jvm_is_dumped() {
    let place = Place::new();
    let own = std::process::id().to_string();
    let check = |args: &[&str], want: &str| {
        let mut command = place.whyslow();
        command
            .args(["threads", "dump", "--every", "1s"])
            .args(args);
        let output = command.output().expect("it runs");
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(
            !output.status.success() && told.contains(want),
            "{args:?}: {told}"
        );
    };
    check(&["-p", &own, "-o", "x.wsl"], "is no JVM");
    check(&["-p", &own], "--output");
    check(&["-o", "x.wsl"], "--pid");
    check(&["-p", "1,2", "-o", "x.wsl"], "one process");
    place.write("there.wsl", "");
    check(&["-p", &own, "-o", "there.wsl"], "exists already");
}
