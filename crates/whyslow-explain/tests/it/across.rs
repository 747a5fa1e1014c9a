//! Three hosts with clocks seconds apart: a client sends requests to an application, which queries
//! its database, where a thread holds a lock (`fixtures/across`).

use std::path::PathBuf;

use whyslow_explain::{
    ActorKind, Crossing, Finding, Grade, OtherHost, Query, Report, explain, explain_across,
};
use whyslow_ingest::{InMemory, import_in_memory};
use whyslow_model::Window;
use whyslow_model::tables::RequestRow;
use whyslow_store::{MemoryTables, RecordingInfo};

const SECOND: i64 = 1_000_000_000;
/// How far the clocks of the fixtures are ahead of the client's clock.
const APP_AHEAD: i64 = 3_700_000_000;
const DB_AHEAD: i64 = -1_250_000_000;
/// Time for which the lock is held.
const HELD: i64 = 353_000_000;

struct Host {
    made: InMemory,
    name: &'static str,
}

impl Host {
    fn read(name: &'static str, file: &str) -> Self {
        let folder = whyslow_testkit::fixture("across");
        let source: PathBuf = folder.join(file);
        let made = import_in_memory(&[source]).expect("it can be read");
        Self { made, name }
    }

    fn tables(&self) -> MemoryTables {
        let info = RecordingInfo {
            host: Some(self.name.to_owned()),
            begin_ns: self.made.begin_ns,
            end_ns: self.made.end_ns,
            ..RecordingInfo::default()
        };
        MemoryTables::new(&self.made.rows, &self.made.symbols, info)
    }

    fn text(&self, sym: whyslow_model::Sym) -> &str {
        self.made.symbols.get(sym)
    }
}

fn client() -> Host {
    Host::read("cli", "cli.txt")
}

fn app() -> Host {
    Host::read("app", "app.txt")
}

fn db() -> Host {
    Host::read("db", "db.txt")
}

fn report_of(here: &Host, query: &Query, others: &[&Host]) -> Report {
    let tables: Vec<MemoryTables> = others.iter().map(|host| host.tables()).collect();
    let hosts: Vec<OtherHost<'_>> = tables
        .iter()
        .zip(others)
        .map(|(tables, host)| OtherHost {
            tables,
            recording: host.name,
        })
        .collect();
    let query = Query {
        recording: here.name.to_owned(),
        ..query.clone()
    };
    let report = explain_across(&here.tables(), &query, None, &hosts).expect("an answer");
    report.findings.iter().for_each(conserved);
    for finding in &report.findings {
        super::page::check(finding, &finding.target.what);
    }
    report
}

/// Every instant of what is explained belongs to one part, and each wait is the sum of the server's
/// time and the round trip.
fn conserved(finding: &Finding) {
    let sum: i64 = finding.parts.iter().map(|part| part.dur_ns).sum();
    let target = &finding.target;
    assert_eq!(sum, target.end_ns - target.begin_ns, "{}", finding.verdict);
    for one in &finding.across {
        let is_followed = one.served_ns + one.between_ns == one.waited_ns;
        assert!(
            is_followed || one.served_ns + one.between_ns == 0,
            "{one:?}"
        );
    }
    if let Some(place) = finding.culprit {
        assert!(place < finding.parts.len());
    }
}

/// The call in which the client waited longest.
fn longest_call(client: &Host) -> Query {
    let rows = client.made.rows.syscall.iter();
    let longest = rows.max_by_key(|row| row.dur).expect("calls");
    assert_eq!(client.text(longest.name), "recvfrom");
    Query {
        operation: Some(("syscall".into(), longest.id)),
        ..Query::default()
    }
}

fn clock(crossing: &Crossing) -> (i64, i64, u64) {
    let clock = crossing.clock.as_ref().expect("bounds");
    (clock.low_ns, clock.high_ns, clock.pairs)
}

fn holds(crossing: &Crossing, truth: i64) {
    let (low, high, pairs) = clock(crossing);
    assert!(low <= truth && truth <= high, "{low} {truth} {high}");
    // Fastest transfers in both directions, and the possible clock drift in half of such a long
    // request.
    assert!(high - low < 1_000_000, "{}", high - low);
    assert_eq!(pairs, 30);
}

#[test]
fn who_held_the_lock_two_hosts_away_is_named_from_the_client() {
    let (client, app, db) = (client(), app(), db());
    let report = report_of(&client, &longest_call(&client), &[&db, &app]);
    let finding = &report.findings[0];
    let summary = &finding.verdict;
    assert!(
        summary.contains("on host db, where session[30"),
        "{summary}"
    );
    assert!(summary.contains("vacuum"), "{summary}");
    let culprit = &finding.parts[finding.culprit.expect("a culprit")];
    assert_eq!(culprit.culprit.host.as_deref(), Some("db"));
    assert_eq!(culprit.culprit.kind, ActorKind::Process);
    assert_eq!(culprit.culprit.tid, Some(31));
    assert_eq!(
        (culprit.mechanism.as_str(), culprit.root.as_str()),
        ("lock_futex", "timer_sleep")
    );
    assert!(
        (culprit.dur_ns - HELD).abs() < 2_000_000,
        "{}",
        culprit.dur_ns
    );
    let hosts: Vec<Option<&str>> = finding
        .chain
        .iter()
        .map(|hop| hop.actor.host.as_deref())
        .collect();
    assert_eq!(hosts, [None, Some("app"), Some("db"), Some("db")]);
    // By one clock, each step is within the previous one.
    for pair in finding.chain.windows(2) {
        assert!(pair[1].begin_ns >= pair[0].begin_ns - 2_000_000, "{pair:?}");
        assert!(pair[1].end_ns <= pair[0].end_ns + 2_000_000, "{pair:?}");
    }
    let [to_app, to_db] = finding.across.as_slice() else {
        panic!("{:?}", finding.across);
    };
    assert_eq!(
        (to_app.from_host.as_deref(), to_db.from_host.as_deref()),
        (None, Some("app"))
    );
    holds(to_app, APP_AHEAD);
    holds(to_db, DB_AHEAD - APP_AHEAD);
    assert_eq!(
        (to_app.grade, to_app.joined_by.as_deref()),
        (Grade::A, Some("connection"))
    );
    assert!(to_db.between_ns < 1_000_000 && to_app.between_ns < 1_000_000);
    assert!(
        finding.reproduce.ends_with("--across db,app"),
        "{}",
        finding.reproduce
    );
}

/// The time in which the thread of the database waited for the lock, by the client's clock.
fn waited_for_the_lock(db: &Host) -> (i64, i64) {
    let rows = db.made.rows.syscall.iter();
    let waits = rows.filter(|row| db.text(row.name) == "futex" && row.tid == Some(30));
    let wait = waits.max_by_key(|row| row.dur).expect("it waited");
    (
        wait.ts - DB_AHEAD,
        wait.ts_end.expect("it got it") - DB_AHEAD,
    )
}

#[test]
fn of_any_window_each_host_has_the_time_that_it_had_in_it() {
    let (client, app, db) = (client(), app(), db());
    let lock = waited_for_the_lock(&db);
    let (begin, length) = (
        client.made.begin_ns,
        client.made.end_ns - client.made.begin_ns,
    );
    for number in 0..23 {
        // Windows of several lengths all over the recording, most of which start or end within the
        // wait.
        let from = begin + length * (number * 7 % 23) / 23;
        let to = (from + length * (1 + number % 5) / 11).min(begin + length);
        let query = Query {
            window: Some(Window::new(from, to)),
            tids: vec![10],
            ..Query::default()
        };
        let report = report_of(&client, &query, &[&app, &db]);
        let Some(finding) = report
            .findings
            .iter()
            .find(|finding| finding.target.kind == "thread")
        else {
            continue;
        };
        let of_lock: i64 = finding
            .parts
            .iter()
            .filter(|part| part.mechanism == "lock_futex")
            .map(|part| part.dur_ns)
            .sum();
        let target = &finding.target;
        let truth = (lock.1.min(target.end_ns) - lock.0.max(target.begin_ns)).max(0);
        // Within the bounds of two clock offsets.
        let error = (of_lock - truth).abs();
        assert!(
            error < 2_000_000,
            "{from}..{to}: {of_lock} of {truth}: {}",
            finding.verdict
        );
    }
}

#[test]
fn recordings_of_one_host_are_told_apart_by_their_names() {
    let (client, mut app, mut db) = (client(), app(), db());
    (app.name, db.name) = ("machine", "machine");
    let named = [&app, &db].map(Host::tables);
    let hosts = [("app.wsl", &named[0]), ("db.wsl", &named[1])]
        .map(|(recording, tables)| OtherHost { tables, recording });
    let report = explain_across(&client.tables(), &longest_call(&client), None, &hosts);
    let finding = &report.expect("an answer").findings[0];
    assert!(
        finding.verdict.contains("on host db.wsl"),
        "{}",
        finding.verdict
    );
}

#[test]
fn where_the_next_host_was_not_recorded_the_story_ends_there_and_says_so() {
    let (client, app) = (client(), app());
    let finding = &report_of(&client, &longest_call(&client), &[&app]).findings[0];
    let culprit = &finding.parts[finding.culprit.expect("a culprit")];
    assert_eq!(culprit.culprit.host.as_deref(), Some("app"));
    assert_eq!(culprit.culprit.name, "10.0.0.3:5432");
    assert!(
        finding.across[1].summary.contains("not found in app"),
        "{:?}",
        finding.across[1]
    );
    assert_eq!(finding.across[1].server_request, None);
}

#[test]
fn a_recording_that_did_not_see_the_request_changes_nothing_but_says_so() {
    let (client, db) = (client(), db());
    let query = longest_call(&client);
    let with = &report_of(&client, &query, &[&db]).findings[0];
    let tables = client.tables();
    let query = Query {
        recording: client.name.to_owned(),
        ..query
    };
    let without = &explain(&tables, &query, None).expect("an answer").findings[0];
    assert_eq!(
        (&with.verdict, &with.parts),
        (&without.verdict, &without.parts)
    );
    assert!(
        with.across[0].summary.contains("not found in db"),
        "{:?}",
        with.across
    );
}

#[test]
fn requests_of_load_go_on_where_they_were_served() {
    let (app, db) = (app(), db());
    let load = Host::read("load", "load.ndjson");
    let finding = &report_of(&load, &Query::default(), &[&app, &db]).findings[0];
    let summary = &finding.verdict;
    assert!(
        summary.contains("requests were slow") && summary.contains("on host db"),
        "{summary}"
    );
    assert!(!summary.contains("no recording of the server"), "{summary}");
    holds(&finding.across[0], APP_AHEAD);
    let one = Query {
        operation: Some(("request".into(), 17)),
        ..Query::default()
    };
    let finding = &report_of(&load, &one, &[&app, &db]).findings[0];
    assert!(
        finding.verdict.contains("on host db"),
        "{}",
        finding.verdict
    );
    assert_eq!(finding.chain[0].actor, finding.target.actor);
}

#[test]
fn a_clock_that_was_set_meanwhile_is_told_and_nothing_is_claimed() {
    let client = client();
    let mut app = app();
    let set = client.made.begin_ns + APP_AHEAD + SECOND / 4;
    let rows = &mut app.made.rows;
    let set_clock = |ts: &mut i64| *ts += if *ts > set { SECOND } else { 0 };
    for row in &mut rows.request {
        set_clock(&mut row.ts);
        row.ts_end.as_mut().map(set_clock);
    }
    for row in &mut rows.syscall {
        set_clock(&mut row.ts);
        row.ts_end.as_mut().map(set_clock);
    }
    let finding = &report_of(&client, &longest_call(&client), &[&app]).findings[0];
    let crossing = &finding.across[0];
    assert!(
        crossing.contradicting > 0 && crossing.clock.is_none(),
        "{crossing:?}"
    );
    assert!(
        crossing.summary.contains("contradict"),
        "{}",
        crossing.summary
    );
    assert!(finding.parts.iter().all(|part| part.culprit.host.is_none()));
}

#[test]
fn requests_of_connections_that_are_older_than_both_recordings_are_joined_by_what_fits_best() {
    let mut client = client();
    let mut app = app();
    for row in client
        .made
        .rows
        .request
        .iter_mut()
        .chain(&mut app.made.rows.request)
    {
        row.is_reused = None;
    }
    // All sizes are equal, so only the times are left to match requests.
    for row in client
        .made
        .rows
        .request
        .iter_mut()
        .chain(&mut app.made.rows.request)
    {
        (row.bytes_sent, row.bytes_received) = (Some(7), Some(7));
    }
    let finding = &report_of(&client, &longest_call(&client), &[&app]).findings[0];
    let crossing = &finding.across[0];
    assert_eq!(crossing.grade, Grade::B, "{crossing:?}");
    let (low, high, _) = clock(crossing);
    assert!(low <= APP_AHEAD && APP_AHEAD <= high, "{low} {high}");
    let of_app = finding
        .parts
        .iter()
        .filter(|part| part.culprit.host.is_some());
    assert!(of_app.clone().count() > 0);
    assert!(of_app.into_iter().all(|part| part.grade < Grade::A));
}

#[test]
fn what_a_log_tells_of_a_trace_is_a_length_and_no_clock() {
    let (mut client, mut app) = (client(), app());
    for (host, role) in [(&mut client, "client"), (&mut app, "server")] {
        let Host { made, .. } = host;
        let source = made.symbols.intern("otlp");
        let mut of_role: Vec<_> = made
            .rows
            .request
            .iter_mut()
            .filter(|row| made.symbols.get(row.role) == role)
            .collect();
        of_role.sort_by_key(|row| row.ts);
        for (number, row) in (0..).zip(of_role) {
            (row.trace_high, row.trace_low) = (Some(1), Some(number));
            let span = Some(7);
            if role == "client" {
                row.span = span;
            } else {
                // Other addresses, as with NAT, and an arbitrary clock.
                (row.parent_span, row.source) = (span, source);
                (row.local, row.peer, row.utid) = (None, None, None);
                row.ts += 12 * SECOND;
                row.ts_end = row.ts_end.map(|end| end + 12 * SECOND);
            }
        }
    }
    app.made.rows.request_thread.clear();
    let finding = &report_of(&client, &longest_call(&client), &[&app]).findings[0];
    let crossing = &finding.across[0];
    assert_eq!(crossing.joined_by.as_deref(), Some("trace"), "{crossing:?}");
    assert_eq!(crossing.clock, None);
    let served = app.made.rows.request.iter();
    let served = served.filter(|row| row.parent_span.is_some());
    let length = |row: &RequestRow| Some(row.dur? + row.queue_ns.unwrap_or(0));
    let longest = served.filter_map(length).max().expect("requests");
    assert_eq!(crossing.served_ns, longest);
    assert_eq!(finding.culprit, None, "{}", finding.verdict);
    assert!(
        finding
            .verdict
            .contains("host app was handling the request"),
        "{}",
        finding.verdict
    );
}
