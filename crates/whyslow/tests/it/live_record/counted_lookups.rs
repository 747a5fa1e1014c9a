//! `dns stats @live --format openmetrics`, against the lookups of programs. They query a server of
//! this test, which replies late or never.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::thread::{self, sleep};
use std::time::Duration;

use whyslow_testkit::{Need, skip};

use super::can_record;
use super::live_outliers::Running;
use super::lookups::Surroundings;
use crate::common::Place;

/// Waits for a reply with the default timeout, and queries once.
const RESOLV_CONF: &str = "nameserver 127.0.0.1\noptions timeout:5 attempts:1\n";
/// More hosts than the kernel counts, by addresses that need no query.
const HOSTS: u64 = 5_000;
const CLIENT: &str = r#"
import socket

def look(host):
    try:
        socket.getaddrinfo(host, 80, socket.AF_INET, socket.SOCK_STREAM)
    except OSError:
        pass

for _ in range(7):
    look(b"good.counted.test")
for _ in range(3):
    look(b"bad.counted.test")
look(b"never.counted.test")
for _ in range(2):
    look(b'ho"st\n\\.counted.test')
"#;
const FLOOD: &str = "
import socket
for number in range(5000):
    socket.getaddrinfo('10.9.%d.%d' % (number // 250, number % 250), 80)
";

/// Values by name and labels, of one sample.
type Look = BTreeMap<String, f64>;

fn looks(text: &str) -> Vec<Look> {
    assert!(text.ends_with("\n# EOF\n"), "{text}");
    let each = text.split_inclusive("\n# EOF\n");
    each.map(|look| {
        let lines = look.lines().filter(|line| !line.starts_with('#'));
        let parse = |line: &str| {
            let (series, value) = line.rsplit_once(' ').expect(line);
            (series.to_owned(), value.parse().expect(line))
        };
        lines.map(parse).collect()
    })
    .collect()
}

fn check(look: &Look, series: &str, expected: f64) {
    assert_eq!(look.get(series), Some(&expected), "{series}: {look:#?}");
}

#[test]
fn lookups_are_counted_as_programs_do_them() {
    if !can_record() {
        return;
    }
    let place = Place::new();
    let Some(there) = Surroundings::new(&place) else {
        return skip(Need::Isolation, "no namespaces of our own to be had");
    };
    place.write("resolv.conf", RESOLV_CONF);
    let query = ["dns", "stats", "@live", "1", "--format", "openmetrics"];
    let mut running = Running::start(&place, &query, "Ctrl-C to stop");
    let mut stdout = running.take_stdout();
    // Otherwise the pipe would fill up.
    let heard = thread::spawn(move || {
        let mut text = String::new();
        stdout.read_to_string(&mut text).map(|_| text)
    });
    let run = |program: &str| {
        let mut python = there.enter();
        let status = python.args(["python3", "-c", program]).status();
        status.is_ok_and(|status| status.success())
    };
    if !run(CLIENT) {
        return skip(Need::Python, "no python3");
    }
    // So that their series exist.
    sleep(Duration::from_millis(1500));
    assert!(run(FLOOD));
    sleep(Duration::from_millis(1500));
    running.stop();
    let text = heard.join().expect("it does not panic").expect("UTF-8");
    assert_eq!(running.wait(), Some(0));
    let looks = looks(&text);
    let last = looks.last().expect("there is one");
    let of = |host: &str| format!(r#"host="{host}",resolver="127.0.0.1""#);
    let lookups = |host: &str, result: &str, count: f64| {
        let host = of(host);
        let series = format!(r#"whyslow_dns_lookups_total{{{host},result="{result}"}}"#);
        check(last, &series, count);
    };
    lookups("good.counted.test", "ok", 7.0);
    lookups("bad.counted.test", "EAI_NONAME", 3.0);
    lookups("never.counted.test", "EAI_AGAIN", 1.0);
    let hostile = last.iter().find(|(series, _)| {
        series.starts_with(r#"whyslow_dns_lookups_total{host="ho\"st\\n\\.counted.test""#)
    });
    assert_eq!(hostile.map(|(_, count)| *count), Some(2.0), "{last:#?}");
    let duration = "whyslow_dns_lookup_duration_seconds";
    let timed = |host: &str, buckets: &[(&str, f64)], timeouts: f64| {
        let host = of(host);
        for (end, count) in buckets {
            let series = format!(r#"{duration}_bucket{{le="{end}",{host}}}"#);
            check(last, &series, *count);
        }
        let series = format!("whyslow_dns_lookup_timeouts_total{{{host}}}");
        check(last, &series, timeouts);
    };
    // The server replies after 0.3 s.
    let good = [("0.25", 0.0), ("2.5", 7.0), ("+Inf", 7.0)];
    timed("good.counted.test", &good, 0.0);
    let never = [("5.0", 0.0), ("10.0", 1.0), ("+Inf", 1.0)];
    timed("never.counted.test", &never, 1.0);
    let sum = last[&format!("{duration}_sum{{{}}}", of("never.counted.test"))];
    assert!((5.0..9.0).contains(&sum), "{sum}");
    let count = format!("{duration}_count{{{}}}", of("good.counted.test"));
    check(last, &count, 7.0);
    // Overflow is counted together.
    let flood = |begin: &str| {
        let of = last.iter().filter(|(series, _)| series.starts_with(begin));
        of.map(|(_, count)| *count as u64).sum::<u64>()
    };
    let own = flood(r#"whyslow_dns_lookups_total{host="10.9."#);
    let others = flood(r#"whyslow_dns_lookups_total{host="(other)""#);
    assert!(own < HOSTS && own + others >= HOSTS, "{own} and {others}");
    check(last, "whyslow_dns_hosts", last["whyslow_dns_hosts_max"]);
    check(last, "whyslow_dns_lookups_uncounted_total", 0.0);
    for pair in looks.windows(2) {
        let counters = pair[0].iter().filter(|(series, _)| {
            series.contains("_total") || series.contains("_bucket") || series.contains("_count")
        });
        for (series, before) in counters {
            assert!(pair[1].get(series) >= Some(before), "{series}");
        }
    }
    assert!(looks.len() >= 8, "{}", looks.len());
}

#[test]
fn who_hears_enough_ends_it_and_a_file_is_whole() {
    if !can_record() {
        return;
    }
    let place = Place::new();
    let query = ["dns", "stats", "@live", "0.2", "--format", "openmetrics"];
    let mut running = Running::start(&place, &query, "Ctrl-C to stop");
    let mut first = String::new();
    let mut stdout = BufReader::new(running.take_stdout());
    stdout.read_line(&mut first).expect("UTF-8");
    assert!(first.starts_with("# HELP whyslow_dns_lookup_duration_seconds "));
    drop(stdout);
    assert_eq!(running.wait(), Some(0));
    let file = place.join("node/dns.prom");
    fs::create_dir(place.join("node")).expect("a disk");
    let output = place
        .whyslow()
        .args(query)
        .args(["3", "-o", "node/dns.prom"])
        .output();
    let output = output.expect("it starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success() && output.stdout.is_empty(),
        "{said}"
    );
    let mut text = String::new();
    let opened = fs::File::open(file).expect("it was written");
    BufReader::new(opened)
        .read_to_string(&mut text)
        .expect("UTF-8");
    assert_eq!(looks(&text).len(), 1, "{text}");
    // No other data is kept there.
    assert_eq!(
        fs::read_dir(place.join("node"))
            .expect("it is ours")
            .count(),
        1
    );
}

#[test]
fn what_cannot_be_counted_is_refused() {
    let place = Place::new();
    let check = |words: &[&str], message: &str, hint: &str| {
        let mut command = place.whyslow();
        command.args(words).args(["--format", "openmetrics"]);
        let output = command.output().expect("it starts");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(message) && said.contains(hint), "{said}");
    };
    let live = ["dns", "stats", "@live", "10"];
    let filtered = |flag: &'static str, value: &'static str| [&live[..], &[flag, value]].concat();
    check(&filtered("--pid", "1"), "cannot filter or sort", "@live 10");
    check(
        &filtered("--by", "comm"),
        "cannot filter or sort",
        "@live 10",
    );
    check(
        &["dns", "stats", "x.wsl"],
        "counts on @live only",
        "whyslow export openmetrics",
    );
    check(
        &["dns", "stats", "@live", "10ms"],
        "shorter than 100 ms",
        "@live 10",
    );
    check(
        &["dns", "top", "@live", "10"],
        "invalid value 'openmetrics'",
        "possible values",
    );
}
