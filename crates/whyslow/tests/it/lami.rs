//! The LAMI output of `as lttng-…`: every table of every command against the metadata that the
//! command prints, with and without rows, and against the metadata of lttng-analyses.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use serde_json::{Map, Value as Json};
use whyslow_testkit::{Need, skip};

use crate::common::{self, Place};

const COMMANDS: [&str; 15] = [
    "lttng-iousagetop",
    "lttng-iolatencystats",
    "lttng-iolatencytop",
    "lttng-iolatencyfreq",
    "lttng-iolog",
    "lttng-cputop",
    "lttng-schedstats",
    "lttng-schedtop",
    "lttng-schedfreq",
    "lttng-schedlog",
    "lttng-irqstats",
    "lttng-irqfreq",
    "lttng-irqlog",
    "lttng-syscallstats",
    "lttng-memtop",
];

/// Some data for every table.
const BUSY: &str = r#"whyslow-text 1
meta hostname=web1
1421342317.100000000 [0] sched_switch prev=0 next=10 prev_state=R prev_comm=swapper/0 next_comm=sync next_prio=120
1421342317.200000000 [0] (tid=10 pid=10 comm=sync) syscall_enter name=openat path="/var/a" flags=66
1421342317.200100000 [0] (tid=10 pid=10 comm=sync) syscall_exit name=openat ret=3
1421342317.210000000 [0] (tid=10 pid=10 comm=sync) syscall_enter name=write fd=3 count=100
1421342317.210070000 [0] (tid=10 pid=10 comm=sync) syscall_exit name=write ret=100
1421342317.220000000 [0] (tid=10 pid=10 comm=sync) syscall_enter name=read fd=3 count=100
1421342317.220030000 [0] (tid=10 pid=10 comm=sync) syscall_exit name=read ret=90
1421342317.230000000 [0] (tid=10 pid=10 comm=sync) syscall_enter name=fsync fd=3
1421342317.230500000 [0] (tid=10 pid=10 comm=sync) block_rq_issue dev=8:0 sector=1000 sectors=8 rwbs=WS bytes=4096
1421342317.234500000 [0] block_rq_complete dev=8:0 sector=1000 sectors=8 rwbs=WS error=0
1421342317.234600000 [0] (tid=10 pid=10 comm=sync) block_rq_issue dev=8:0 sector=2000 sectors=16 rwbs=R bytes=8192
1421342317.235000000 [0] block_rq_complete dev=8:0 sector=2000 sectors=16 rwbs=R error=0
1421342317.236000000 [0] (tid=10 pid=10 comm=sync) syscall_exit name=fsync ret=0
1421342317.240000000 [0] (tid=10 pid=10 comm=sync) syscall_enter name=openat path="/var/b" flags=0
1421342317.240010000 [0] (tid=10 pid=10 comm=sync) syscall_exit name=openat ret=-2
1421342317.250000000 [0] sched_switch prev=10 next=0 prev_state=S prev_comm=sync next_comm=swapper/0
1421342317.260000000 [0] irq_enter kind=hard nr=9 name=sda
1421342317.260001000 [0] sched_wakeup tid=10 comm=sync prio=120 target_cpu=0
1421342317.260005000 [0] irq_exit kind=hard nr=9 ret=1
1421342317.261000000 [0] softirq_raise nr=4
1421342317.261100000 [0] irq_enter kind=soft nr=4
1421342317.261300000 [0] irq_exit kind=soft nr=4
1421342317.270000000 [0] sched_switch prev=0 next=10 prev_state=R prev_comm=swapper/0 next_comm=sync next_prio=120
1421342317.271000000 [0] sched_switch prev=10 next=0 prev_state=S prev_comm=sync next_comm=swapper/0
1421342317.272000000 [0] irq_enter kind=hard nr=9 name=sda
1421342317.272002000 [0] sched_wakeup tid=10 comm=sync prio=120 target_cpu=0
1421342317.272009000 [0] irq_exit kind=hard nr=9 ret=1
1421342317.272500000 [0] sched_switch prev=0 next=10 prev_state=R prev_comm=swapper/0 next_comm=sync next_prio=120
1421342317.280000000 [0] (tid=10 pid=10 comm=sync) page_alloc order=1
1421342317.290000000 [0] (tid=10 pid=10 comm=sync) page_free order=0
1421342317.300000000 [0] net kind=receive bytes=1500 netif=eth0 skbaddr=1
1421342317.310000000 [0] net kind=transmit bytes=100 netif=eth0 ret=0 skbaddr=2
1421342319.400000000 [0] sched_switch prev=10 next=0 prev_state=S prev_comm=sync next_comm=swapper/0
"#;

/// Two markers and nothing else.
const EMPTY: &str = r#"whyslow-text 1
meta hostname=web1
1421342317.000000000 [0] marker name="begin"
1421342318.000000000 [0] marker name="end"
"#;

fn recorded(text: &str) -> Place {
    let place = Place::new();
    place.write("t.txt", text);
    place.stdout(&["import", "t.txt", "-o", "t.wsl"]);
    place
}

fn parsed(text: &str) -> Json {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// Cell classes of every column, by table class.
type Classes = BTreeMap<String, Vec<String>>;

fn classes(metadata: &Json) -> Classes {
    let tables = metadata["table-classes"].as_object().expect("an object");
    let columns = |table: &Json| -> Vec<String> {
        let columns = table["column-descriptions"].as_array().expect("an array");
        let class = |column: &Json| {
            assert!(column["title"].is_string(), "{column}");
            let unit = column.get("unit");
            assert!(unit.is_none_or(Json::is_string), "{column}");
            column["class"].as_str().expect("a class").to_owned()
        };
        columns.iter().map(class).collect()
    };
    let tables = tables.iter().map(|(name, table)| {
        assert!(table["title"].is_string(), "{table}");
        (name.clone(), columns(table))
    });
    tables.collect()
}

fn check_metadata(metadata: &Json) {
    assert_eq!(metadata["mi-version"], parsed(r#"{"major":1,"minor":0}"#));
    for part in ["major", "minor", "patch"] {
        assert!(metadata["version"][part].is_u64(), "{metadata}");
    }
    for text in ["title", "description", "url"] {
        assert!(metadata[text].is_string(), "{metadata}");
    }
    for list in ["authors", "tags"] {
        let list = metadata[list].as_array().expect("a list");
        assert!(!list.is_empty() && list.iter().all(Json::is_string));
    }
}

/// Name and value of a member.
type Member = (&'static str, fn(&Json) -> bool);

/// Names and types of the members of a cell.
fn check_cell(class: &str, cell: &Json) {
    let Some(object) = cell.as_object() else {
        assert!(cell.is_null(), "{cell} is neither empty nor an object");
        return;
    };
    let text = object["class"].as_str().expect("a class");
    if text == "unknown" {
        assert_eq!(object.len(), 1, "{cell}");
        return;
    }
    assert_eq!(text, class, "{cell}");
    let members = |required: &[Member], optional: &[Member]| {
        check_members(object, required, optional);
    };
    match class {
        "bool" => members(&[("value", Json::is_boolean)], &[]),
        "number" | "ratio" | "duration" => members(&[("value", Json::is_number)], &[]),
        "timestamp" | "size" => members(&[("value", Json::is_i64)], &[]),
        "string" => members(&[("value", Json::is_string)], &[]),
        "time-range" => {
            members(&[("begin", Json::is_object), ("end", Json::is_object)], &[]);
            check_cell("timestamp", &object["begin"]);
            check_cell("timestamp", &object["end"]);
        }
        "syscall" | "disk" | "part" | "netif" => members(&[("name", Json::is_string)], &[]),
        "process" => members(
            &[],
            &[
                ("name", Json::is_string),
                ("pid", Json::is_i64),
                ("tid", Json::is_i64),
            ],
        ),
        "path" => members(&[("path", Json::is_string)], &[]),
        "fd" => members(&[("fd", Json::is_i64)], &[]),
        "cpu" => members(&[("id", Json::is_i64)], &[]),
        "irq" => members(
            &[("hard", Json::is_boolean), ("nr", Json::is_i64)],
            &[("name", Json::is_string)],
        ),
        class => panic!("`{class}` is no class of cells"),
    }
}

fn check_members(object: &Map<String, Json>, required: &[Member], optional: &[Member]) {
    for (name, is) in required {
        assert!(object.get(*name).is_some_and(is), "{name} of {object:?}");
    }
    for (name, value) in object {
        let mut known = required.iter().chain(optional);
        let known = name == "class" || known.any(|(known, is)| known == name && is(value));
        assert!(known, "{name} of {object:?}");
    }
}

/// Rows of the results by table class.
fn check_results(results: &Json, classes: &Classes) -> BTreeMap<String, usize> {
    let mut rows = BTreeMap::new();
    let members: Vec<&String> = results.as_object().expect("an object").keys().collect();
    assert_eq!(members, ["results"]);
    for table in results["results"].as_array().expect("a list") {
        let class = match &table["class"] {
            Json::String(class) => class,
            inherited => {
                assert!(inherited["title"].is_string(), "{inherited}");
                inherited["inherit"].as_str().expect("a class")
            }
        };
        let columns = classes.get(class).expect("it is described");
        check_cell("time-range", &table["time-range"]);
        let data = table["data"].as_array().expect("rows");
        *rows.entry(class.to_owned()).or_default() += data.len();
        for row in data {
            let row = row.as_array().expect("cells");
            assert_eq!(row.len(), columns.len(), "{class}: {row:?}");
            for (column, cell) in columns.iter().zip(row) {
                check_cell(column, cell);
            }
        }
    }
    rows
}

/// All tables of a command.
fn options(command: &str) -> &'static [&'static str] {
    match command.trim_start_matches("lttng-") {
        name if name.starts_with("io") => &["--usage", "--stats", "--top", "--freq", "--log"],
        name if name.starts_with("sched") => &[
            "--stats",
            "--top",
            "--freq",
            "--log",
            "--total",
            "--per-tid",
            "--per-prio",
        ],
        name if name.starts_with("irq") => &["--stats", "--freq", "--log"],
        _ => &[],
    }
}

fn described(place: &Place, command: &str) -> Classes {
    let metadata = parsed(&place.stdout(&["as", command, "--metadata"]));
    check_metadata(&metadata);
    classes(&metadata)
}

#[test]
fn every_table_is_as_described_and_has_rows() {
    let place = recorded(BUSY);
    for command in COMMANDS {
        let command = format!("{command}-mi");
        let classes = described(&place, &command);
        let mut args = vec!["as", &command, "t.wsl"];
        args.extend(options(&command));
        let mut rows = check_results(&parsed(&place.stdout(&args)), &classes);
        // Parts of the range have a summary.
        args.extend(["--refresh", "1s"]);
        let parts = check_results(&parsed(&place.stdout(&args)), &classes);
        for (class, count) in parts {
            *rows.entry(class).or_default() += count;
        }
        for class in classes.keys() {
            let count = rows.get(class).copied().unwrap_or(0);
            assert!(count > 0, "{command}: no row of `{class}` was checked");
        }
    }
}

#[test]
fn tables_without_rows_are_as_described() {
    let place = recorded(EMPTY);
    for command in COMMANDS {
        let command = format!("{command}-mi");
        let classes = described(&place, &command);
        let mut args = vec!["as", &command, "t.wsl"];
        args.extend(options(&command));
        let rows = check_results(&parsed(&place.stdout(&args)), &classes);
        let expected = match command.as_str() {
            // Classes of calls are listed even without calls.
            name if name.starts_with("lttng-io") => 4,
            _ => 0,
        };
        assert_eq!(
            rows.values().sum::<usize>(),
            expected,
            "{command}: {rows:?}"
        );
        // Nothing to analyse is reported by the exit status.
        let mut whyslow = place.whyslow();
        whyslow.args(["as", &command, "t.wsl", "--test-compatibility"]);
        whyslow.assert().failure();
    }
}

#[test]
fn progress_is_lines_before_the_result() {
    let place = recorded(BUSY);
    let text = place.stdout(&["as", "lttng-cputop-mi", "t.wsl", "--output-progress"]);
    let lines: Vec<&str> = text.lines().collect();
    let (result, progress) = lines.split_last().expect("there are lines");
    assert!(parsed(result)["results"].is_array());
    let shares = progress.iter().map(|line| {
        let share = line.split(' ').next().unwrap_or("");
        share.parse::<f64>().unwrap_or(f64::NAN)
    });
    let shares: Vec<f64> = shares.collect();
    assert_eq!(shares.first(), Some(&0.0));
    assert_eq!(shares.last(), Some(&1.0));
}

#[test]
fn failures_are_objects_with_a_message() {
    let place = recorded(BUSY);
    let mut whyslow = place.whyslow();
    whyslow.args(["as", "lttng-cputop-mi", "missing.wsl"]);
    let output = whyslow.assert().failure();
    let text = String::from_utf8(output.get_output().stdout.clone()).expect("UTF-8");
    assert!(parsed(&text)["error-message"].is_string(), "{text}");
}

/// Programs identify results by the names of table classes and by the classes of cells.
#[test]
fn classes_are_those_of_lttng_analyses() {
    let place = recorded(EMPTY);
    for command in COMMANDS {
        let command = format!("{command}-mi");
        let Ok(output) = Command::new(&command).arg("--metadata").output() else {
            return skip(Need::Tools, format!("{command} is not installed"));
        };
        let theirs = classes(&parsed(&String::from_utf8_lossy(&output.stdout)));
        let ours = described(&place, &command);
        let missing: BTreeSet<&String> = theirs
            .keys()
            .filter(|name| !ours.contains_key(*name))
            .collect();
        let expected: BTreeSet<String> = if command.starts_with("lttng-irq") {
            // Its summary adds up interrupts of all kinds in rows that do not name the kind.
            BTreeSet::from(["summary".into()])
        } else {
            BTreeSet::new()
        };
        assert_eq!(missing, expected.iter().collect(), "{command}");
        for (name, columns) in &ours {
            assert_eq!(Some(columns), theirs.get(name), "{command}: {name}");
        }
    }
}

#[test]
fn options_that_a_command_does_not_have_are_refused() {
    let place = recorded(BUSY);
    for (args, text) in [
        (&["lttng-cputop", "--irq", "5"][..], "cannot use --irq"),
        (&["lttng-irqstats", "--per-prio"], "cannot use --per-prio"),
        (
            &["lttng-syscallstats", "--limit", "3"],
            "cannot use --limit",
        ),
        (
            &["lttng-schedstats", "--minsize", "2"],
            "cannot use --minsize",
        ),
        (
            &["lttng-schedfreq", "--freq-series"],
            "cannot use --freq-series",
        ),
        (&["lttng-iolog", "--period", "a : b"], "cannot use periods"),
        (&["lttng-memtop", "--refresh", "10ms"], "per second"),
    ] {
        let mut whyslow = place.whyslow();
        whyslow.arg("as").args(args).arg("t.wsl");
        let output = whyslow.assert().failure().code(2);
        let stderr = String::from_utf8_lossy(&output.get_output().stderr).into_owned();
        assert!(stderr.contains(text), "{args:?}: {stderr}");
    }
}

#[test]
fn only_the_interrupts_asked_for_have_distributions() {
    let place = recorded(BUSY);
    let all = place.stdout(&["as", "lttng-irqfreq", "t.wsl"]);
    assert!(all.contains("sda (9)"), "{all}");
    let others = place.stdout(&["as", "lttng-irqfreq", "t.wsl", "--irq", "10"]);
    assert!(!others.contains("sda (9)"), "{others}");
}

#[test]
fn parts_of_a_range_share_no_call() {
    let place = recorded(BUSY);
    let calls = |args: &[&str]| -> usize {
        let text = place.stdout(args);
        let lines = text.lines();
        let counts = lines.filter_map(|line| line.strip_prefix("Total syscalls: "));
        counts.filter_map(|count| count.parse::<usize>().ok()).sum()
    };
    let whole = calls(&["as", "lttng-syscallstats", "t.wsl"]);
    assert!(whole > 4);
    // Some calls cross the borders of these parts.
    let parts = calls(&["as", "lttng-syscallstats", "t.wsl", "--refresh", "5ms"]);
    assert_eq!(parts, whole);
}

#[test]
fn losses_are_told_beside_the_tables() {
    let place = recorded(common::TRACE);
    let mut whyslow = place.whyslow();
    whyslow.args(["as", "lttng-iolatencystats", "t.wsl"]);
    let output = whyslow.assert().success();
    let stderr = String::from_utf8_lossy(&output.get_output().stderr).into_owned();
    assert!(stderr.contains("7002"), "{stderr}");
}
