//! Output of iostat, mpstat, pidstat, sar, sadf, vmstat, top and JmxTool becomes counters with its
//! timestamps.

mod damage;

use std::path::Path;
use std::process::Command;

use whyslow_ingest::InMemory;
use whyslow_model::tables::CounterRow;
use whyslow_testkit::{Need, skip};

use crate::live_texts::{self, DAY, Report, SECOND, at, fixture, import, met, text};

/// A counter: time, subject, name, value, unit.
type Counter = (i64, String, String, i64, String);

fn counters(import: &InMemory) -> Vec<Counter> {
    let rows = import.rows.counter.iter();
    let mut counters: Vec<Counter> = rows
        .map(|row| {
            (
                row.ts,
                text(import, row.subject).to_owned(),
                text(import, Some(row.name)).to_owned(),
                row.value,
                text(import, Some(row.unit)).to_owned(),
            )
        })
        .collect();
    counters.sort();
    counters
}

/// The value of one counter.
fn value(import: &InMemory, (time, subject, name): (&str, &str, &str)) -> (i64, String) {
    let found: Vec<Counter> = counters(import)
        .into_iter()
        .filter(|(ts, of, which, ..)| *ts == at(time) && of == subject && which == name)
        .collect();
    assert_eq!(found.len(), 1, "{subject} {name} at {time}: {found:?}");
    (found[0].3, found[0].4.clone())
}

fn check(import: &InMemory, of: (&str, &str, &str), expected: i64, unit: &str) {
    assert_eq!(value(import, of), (expected, unit.to_owned()), "{of:?}");
}

fn of_pid(import: &InMemory, pid: i32) -> Vec<&CounterRow> {
    let rows = import.rows.counter.iter();
    rows.filter(|row| row.pid == Some(pid)).collect()
}

/// Checks that everything could be read.
fn is_whole(import: &InMemory) {
    assert_eq!(met(import, "REPORT_LINE_BAD"), 0, "{:?}", import.anomalies);
    assert_eq!(import.records.skipped, 0);
}

/// Of a Kafka 3.9 broker.
#[test]
fn metrics_of_a_broker_are_of_its_requests() {
    const MS: i64 = 1_000_000;
    let import = import(fixture("jmx.csv"));
    is_whole(&import);
    let counters = counters(&import);
    let check = |(ms, subject, name): (i64, &str, &str), value: i64, unit: &str| {
        let (name, unit) = (name.to_owned(), unit.to_owned());
        let wanted = (ms * MS, subject.to_owned(), name, value, unit);
        assert!(counters.contains(&wanted), "{wanted:?}");
    };
    let (first, last) = (1_795_736_644_229, 1_795_736_652_198);
    let of_queue = |ms, name| (ms, "BrokerHeartbeat", name);
    let queue = "RequestQueueTimeMs.50thPercentile";
    check(of_queue(first, queue), 500_000, "ns");
    check(of_queue(last, queue), 0, "ns");
    check(of_queue(first, "RequestQueueTimeMs.Max"), 6 * MS, "ns");
    check(of_queue(first, "RequestQueueTimeMs.Count"), 8, "count");
    check(of_queue(last, "RequestQueueTimeMs.Count"), 12, "count");
    check((last, "1", "ResponseQueueSize"), 0, "count");
    check((last, "", "BytesInPerSec.OneMinuteRate"), 0, "hundredths/s");
    assert!(counters.iter().all(|one| !one.2.contains("Unit")));
    assert_eq!(met(&import, "REPORT_ZONE_GUESSED"), 0);
}

#[test]
fn iostat_tells_of_devices_and_of_the_cpus() {
    for name in ["iostat.txt", "iostat-iso.txt"] {
        let import = import(fixture(name));
        is_whole(&import);
        let vda = |time, name| (time, "vda", name);
        let reads = if name == "iostat.txt" { 16_500 } else { 15_600 };
        check(&import, vda("04:13:33", "r/s"), reads, "hundredths/s");
        check(&import, vda("04:13:33", "wkB/s"), 5276 * 1024, "bytes/s");
        check(&import, vda("04:13:33", "w_await"), 4_000_000, "ns");
        check(&import, vda("04:13:36", "rareq-sz"), 6400, "bytes");
        let rows = &import.rows.counter;
        assert!(rows.iter().all(|row| row.interval_ns == Some(SECOND)));
        assert!(
            rows.iter()
                .all(|row| text(&import, row.reported_by) == "iostat")
        );
        // Averages since boot describe no particular time.
        assert!(rows.iter().all(|row| row.ts > at("04:13:32")));
        assert!(met(&import, "REPORT_SINCE_BOOT") > 0);
        // Four seconds of three devices with 23 columns.
        let of_disks = rows.iter().filter(|row| row.subject.is_some());
        assert_eq!(of_disks.count(), 4 * 3 * 23 - 4 * 3);
        let guessed = u64::from(name == "iostat.txt");
        assert_eq!(met(&import, "REPORT_ZONE_GUESSED"), guessed);
    }
    let with_cpus = import(fixture("iostat.txt"));
    check(&with_cpus, ("04:13:36", "", "%iowait"), 50, "hundredths");
}

#[test]
fn iostat_tells_the_same_in_json() {
    let (text, json) = (
        import(fixture("iostat.txt")),
        import(fixture("iostat.json")),
    );
    is_whole(&json);
    let of_cpus = |counters: Vec<Counter>| -> Vec<Counter> {
        counters
            .into_iter()
            .filter(|counter| counter.1.is_empty())
            .collect()
    };
    let names = |import: &InMemory| -> Vec<(i64, String, String, String)> {
        let counters = counters(import).into_iter();
        counters
            .map(|(ts, of, name, _, unit)| (ts, of, name, unit))
            .collect()
    };
    assert_eq!(names(&text), names(&json));
    // Two programs read the same second, a short time apart.
    assert_eq!(of_cpus(counters(&json)).len(), 4 * 6);
}

#[test]
fn forms_of_one_file_of_sar_are_the_same_counters() {
    let text = import(fixture("sar.txt"));
    is_whole(&text);
    assert_eq!(counters(&text).len(), 4 * (6 + 6 + 3 * 8));
    assert!(met(&text, "REPORT_SUMS") > 0);
    for name in ["sadf.csv", "sadf.json"] {
        let other = import(fixture(name));
        is_whole(&other);
        assert_eq!(counters(&text), counters(&other), "{name}");
        assert_eq!(met(&other, "REPORT_ZONE_GUESSED"), 0, "{name}");
    }
    check(&text, ("04:13:36", "vda", "await"), 830_000, "ns");
    check(&text, ("04:13:36", "vda", "%util"), 40, "hundredths");
    check(&text, ("04:13:33", "", "runq-sz"), 5, "count");
}

/// Output of a program, or the reason to skip.
fn printed(command: &str, arguments: &[&str], folder: &Path) -> Result<String, String> {
    let output = Command::new(command)
        .args(arguments)
        .current_dir(folder)
        .env("LC_ALL", "C")
        .env("TZ", "UTC")
        .env_remove("S_TIME_FORMAT")
        .output()
        .map_err(|error| format!("{command} does not run here: {error}"))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        return Err(format!("{command} {arguments:?} failed: {said}"));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[test]
fn so_are_those_of_a_file_made_now() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let forms = || -> Result<[String; 3], String> {
        // `-S XALL` includes everything that the kernel reports.
        printed("sar", &["-o", "sa", "-A", "1", "2"], folder.path())?;
        Ok([
            printed("sar", &["-f", "sa", "-A"], folder.path())?,
            printed("sadf", &["-d", "sa", "--", "-A"], folder.path())?,
            printed("sadf", &["-j", "sa", "--", "-A"], folder.path())?,
        ])
    };
    let forms = match forms() {
        Ok(forms) => forms,
        Err(reason) => return skip(Need::Tools, reason),
    };
    let [text, csv, json] = forms.map(|form| {
        let imported = import(form);
        is_whole(&imported);
        imported
    });
    assert!(counters(&text).len() > 300, "{}", counters(&text).len());
    for other in [&csv, &json] {
        let (text, other) = (counters(&text), counters(other));
        let of_one = |one: &[Counter], other: &[Counter]| -> Vec<Counter> {
            let of_one = one.iter().filter(|counter| !other.contains(counter));
            of_one.cloned().collect()
        };
        assert_eq!(of_one(&text, &other), of_one(&other, &text));
        assert_eq!(text.len(), other.len());
    }
}

#[test]
fn what_tools_print_now_is_read_without_a_complaint() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let commands: [(&str, &[&str], usize); 17] = [
        ("iostat", &["-t", "-x", "1", "2"], 20),
        ("iostat", &["-t", "-y", "-x", "-s", "1", "1"], 6),
        ("iostat", &["-t", "-c", "1", "2"], 6),
        ("iostat", &["-t", "-d", "-k", "1", "2"], 6),
        ("iostat", &["-t", "-x", "-p", "ALL", "1", "2"], 20),
        ("iostat", &["-t", "-x", "-h", "1", "2"], 20),
        ("iostat", &["-t", "-x", "-o", "JSON", "1", "2"], 20),
        ("pidstat", &["-u", "-r", "-d", "-w", "1", "1"], 4),
        ("pidstat", &["-u", "-r", "-d", "-w", "-h", "1", "1"], 4),
        ("pidstat", &["-u", "-h", "-H", "1", "1"], 4),
        ("pidstat", &["-t", "-u", "1", "1"], 4),
        ("pidstat", &["-T", "CHILD", "-u", "1", "1"], 4),
        ("mpstat", &["-A", "1", "1"], 20),
        ("mpstat", &["-A", "-o", "JSON", "1", "1"], 20),
        ("vmstat", &["-t", "1", "2"], 20),
        ("vmstat", &["-t", "-w", "-a", "1", "2"], 20),
        (
            "sar",
            &["-u", "-d", "-n", "DEV", "-q", "-r", "-B", "-w", "1", "1"],
            40,
        ),
    ];
    for (command, arguments, least) in commands {
        let what = format!("{command} {arguments:?}");
        let printed = match printed(command, arguments, folder.path()) {
            Ok(printed) => printed,
            Err(reason) => {
                skip(Need::Tools, reason);
                continue;
            }
        };
        let report = Report::now(&printed);
        let now = report.written_ns();
        let import = report.import();
        is_whole(&import);
        let rows = &import.rows.counter;
        assert!(rows.len() >= least, "{what}: {} of {printed}", rows.len());
        let last = rows.iter().map(|row| row.ts).reduce(i64::max);
        let last = last.expect("a counter");
        assert!((now - 60 * SECOND..=now).contains(&last), "{what}: {last}");
    }
}

#[test]
fn pidstat_tells_of_the_program_and_no_other_time() {
    let import = import(fixture("pidstat.txt"));
    is_whole(&import);
    let rows = of_pid(&import, 1339);
    let names: Vec<&str> = rows
        .iter()
        .map(|row| text(&import, Some(row.name)))
        .collect();
    for name in ["%usr", "%wait", "RSS", "kB_rd/s", "iodelay", "cswch/s"] {
        assert!(names.contains(&name), "{name} of {names:?}");
    }
    let find = |time: &str, name: &str| {
        let mut found = rows
            .iter()
            .filter(|row| row.ts == at(time) && text(&import, Some(row.name)) == name);
        found.next().expect("the counter").value
    };
    assert_eq!(find("04:13:35", "kB_rd/s"), 984 * 1024);
    assert_eq!(find("04:13:35", "RSS"), 10_068 * 1024);
    assert_eq!(find("04:13:36", "cswch/s"), 39_000);
    assert!(
        rows.iter()
            .all(|row| text(&import, row.comm) == "python3" && row.interval_ns == Some(SECOND))
    );
    let of_h = live_texts::import(fixture("pidstat-h.txt"));
    is_whole(&of_h);
    assert_eq!(of_pid(&of_h, 1339).len(), 2 * 16);
}

#[test]
fn mpstat_vmstat_and_top_tell_of_the_machine() {
    let mpstat = import(fixture("mpstat.txt"));
    is_whole(&mpstat);
    check(&mpstat, ("04:13:33", "all", "%usr"), 8838, "hundredths");
    check(&mpstat, ("04:13:36", "0", "%sys"), 1616, "hundredths");
    assert_eq!(counters(&mpstat).len(), 4 * 3 * 10);
    assert_eq!(met(&mpstat, "REPORT_SUMS"), 4);

    let vmstat = import(fixture("vmstat.txt"));
    is_whole(&vmstat);
    // The first row counts since boot, except for instantaneous values.
    check(&vmstat, ("04:13:32", "", "r"), 12, "count");
    let first = counters(&vmstat)
        .into_iter()
        .filter(|counter| counter.0 == at("04:13:32"));
    assert!(first.into_iter().all(|counter| counter.2 != "cs"));
    check(&vmstat, ("04:13:36", "", "cs"), 1_368_400, "hundredths/s");
    check(&vmstat, ("04:13:33", "", "bo"), 5276 * 1024, "bytes/s");
    check(&vmstat, ("04:13:33", "", "swpd"), 0, "bytes");

    // It contains no date: that is the modification date of the file.
    let top = Report::new(fixture("top.txt")).written(at("04:13:40"));
    let top = top.import();
    is_whole(&top);
    check(&top, ("04:13:33", "", "load_1"), 248, "hundredths");
    check(&top, ("04:13:33", "", "tasks_running"), 2, "count");
    check(&top, ("04:13:33", "", "%us"), 9080, "hundredths");
    assert!(
        counters(&top)
            .iter()
            .all(|counter| counter.0 != at("04:13:32") || counter.2 != "%us")
    );
    let res = of_pid(&top, 1266)
        .into_iter()
        .find(|row| text(&top, Some(row.name)) == "RES");
    assert_eq!(res.expect("memory of top").value, 5280 * 1024);
}

#[test]
fn languages_and_clocks_are_the_same_times_and_numbers() {
    let forms = [
        (
            "11/25/26",
            ["04:13:33 PM", "04:13:34 PM", "04:13:35 PM"],
            "Average:",
            '.',
        ),
        (
            "11/25/2026",
            ["16:13:33", "16:13:34", "16:13:35"],
            "Average:",
            '.',
        ),
        (
            "2026-11-25",
            ["16:13:33", "16:13:34", "16:13:35"],
            "Moyenne :",
            ',',
        ),
        (
            "25.11.2026",
            ["16:13:33", "16:13:34", "16:13:35"],
            "Durchschn.:",
            ',',
        ),
        (
            "25/11/26",
            ["16:13:33", "16:13:34", "16:13:35"],
            "Media:",
            ',',
        ),
    ];
    for (date, [since, first, second], mean, point) in forms {
        let header = "CPU %user %idle";
        let rows = ["12.50 80.25", "0.00 100.00"].map(|row| row.replace('.', &point.to_string()));
        let report = format!(
            "Linux 6.1.0 (web1) \t{date} \t_x86_64_\t(2 CPU)\n\n{since} {header}\n\
             {first} all {}\n{second} all {}\n{mean} all {}\n",
            rows[0], rows[1], rows[0],
        );
        let import = import(&report);
        is_whole(&import);
        check(&import, ("16:13:34", "all", "%user"), 1250, "hundredths");
        check(&import, ("16:13:35", "all", "%idle"), 10_000, "hundredths");
        assert_eq!(counters(&import).len(), 4, "{report}");
        assert_eq!(met(&import, "REPORT_SUMS"), 1, "{report}");
    }
}

#[test]
fn the_zone_is_what_the_file_was_written_later() {
    let report = "Linux 6.1.0 (web1) \t11/25/26 \t_x86_64_\t(2 CPU)\n\n\
                  04:13:33 CPU %user\n04:13:34 all 1.00\n";
    // Two seconds after the last line, where UTC is one hour earlier.
    let written = at("03:13:36");
    let import = Report::new(report).written(written).import();
    check(&import, ("03:13:34", "all", "%user"), 100, "hundredths");
    assert_eq!(met(&import, "REPORT_ZONE_GUESSED"), 1);
}

#[test]
fn midnight_is_a_day_and_a_new_table_begins_it_again() {
    let report = "Linux 6.1.0 (web1) \t11/25/26 \t_x86_64_\t(2 CPU)\n\n\
                  23:59:58 CPU %user\n23:59:59 all 1.00\n00:00:00 all 2.00\n00:00:01 all 3.00\n\
                  Average: all 2.00\n\n\
                  23:59:58 DEV tps\n23:59:59 vda 4.00\n00:00:01 vda 5.00\n";
    let import = import(report);
    is_whole(&import);
    let expected = [
        (at("23:59:59"), 100),
        (at("23:59:59"), 400),
        (DAY + 86_400 * SECOND, 200),
        (DAY + 86_401 * SECOND, 300),
        (DAY + 86_401 * SECOND, 500),
    ];
    let mut found: Vec<(i64, i64)> = counters(&import)
        .iter()
        .map(|counter| (counter.0, counter.3))
        .collect();
    found.sort_unstable();
    assert_eq!(found, expected);
}

#[test]
fn runs_in_one_file_are_told_apart() {
    let report = fixture("iostat.txt");
    let twice = import(format!("{report}{}", report.replace("04:13:", "05:13:")));
    is_whole(&twice);
    let once = import(&report);
    assert_eq!(counters(&twice).len(), 2 * counters(&once).len());
    assert_eq!(
        met(&twice, "REPORT_SINCE_BOOT"),
        2 * met(&once, "REPORT_SINCE_BOOT")
    );
}

#[test]
fn reports_without_times_are_refused_with_the_flag() {
    let untimed: String = fixture("iostat.txt")
        .lines()
        .filter(|line| !line.starts_with("11/25/26"))
        .flat_map(|line| [line, "\n"])
        .collect();
    let why = Report::new(untimed).refused();
    assert!(
        why.contains("rows have no timestamps") && why.contains("`iostat -t`"),
        "{why}"
    );
    let untimed: String = fixture("vmstat.txt")
        .replace(" -----timestamp-----", "")
        .replace("                 UTC", "")
        .lines()
        .flat_map(|line| [line.split(" 2026-").next().unwrap_or_default(), "\n"])
        .collect();
    let why = Report::new(untimed).refused();
    assert!(why.contains("`vmstat -t`"), "{why}");
    let json = fixture("iostat.json").replace("\"timestamp\"", "\"moment\"");
    let why = Report::new(json).refused();
    assert!(why.contains("`iostat -t`"), "{why}");
}
