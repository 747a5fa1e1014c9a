//! Request logs become rows of `request` and `request_phase`: logs of servers and load generators
//! about the same requests agree.

use std::fs;
use std::path::PathBuf;

use whyslow_ingest::importers::markers;
use whyslow_ingest::importers::requests::{
    Form, Outcome, ReadOptions, Request, form_of, read_bytes, summary_of,
};
use whyslow_ingest::importers::streamed::Summary;
use whyslow_ingest::{InMemory, import_in_memory};
use whyslow_model::Sym;

fn path(name: &str) -> PathBuf {
    whyslow_testkit::fixture("requests").join(name)
}

fn read_as(name: &str, form: Form, format: Option<&str>) -> (Vec<Request>, Summary) {
    let bytes = fs::read(path(name)).expect("a fixture");
    let written = Some(1_795_697_900_000_000_000);
    read_bytes(form, &bytes, ReadOptions { written, format }).expect("it can be read")
}

fn read(name: &str) -> (Vec<Request>, Summary) {
    let bytes = fs::read(path(name)).expect("a fixture");
    let form = form_of(&String::from_utf8_lossy(&bytes)).expect("a form that is known");
    read_as(name, form, None)
}

fn count(summary: &Summary, name: &str) -> u64 {
    let notes = summary.notes.iter();
    notes
        .filter(|note| note.stat.name == name)
        .map(|note| note.count)
        .sum()
}

/// Properties of one request from several logs: method, target, status, duration in ms.
type Row = (String, String, Option<i32>, Option<i64>);

fn rows(requests: &[Request]) -> Vec<Row> {
    let requests = requests
        .iter()
        .filter(|request| request.outcome != Outcome::Protocol);
    requests
        .map(|request| {
            let ms = request.dur.map(|dur| dur / 1_000_000);
            (
                request.method.clone(),
                request.target.clone(),
                request.status,
                ms,
            )
        })
        .collect()
}

const TIMED: &str = "log_format keyed '$msec $remote_addr:$remote_port $server_addr:$server_port conn=$connection/$connection_requests pid=$pid \"$request\" $status in=$request_length out=$bytes_sent rt=$request_time uct=\"$upstream_connect_time\" uht=\"$upstream_header_time\" urt=\"$upstream_response_time\" host=$host tp=$http_traceparent';";
const JSON: &str = r#"{"time":"$time_iso8601","method":"$request_method","uri":"$request_uri","status":$status,"rt":$request_time,"agent":"$http_user_agent"}"#;
const APACHE: &str = "LogFormat \"%{usec}t %a:%{remote}p %A:%p \\\"%r\\\" %>s %I %O %D %^FB %X %k %P %{tid}P \\\"%{User-Agent}i\\\" %{traceparent}i\" timed";

#[test]
fn formats_of_nginx_tell_the_same_requests() {
    let (keyed, _) = read_as("nginx-keyed.log", Form::Access, Some(TIMED));
    let (timed, _) = read("nginx-timed.log");
    let (mut json, _) = read_as("nginx-json.log", Form::Access, Some(JSON));
    let (combined, lacks) = read("nginx-combined.log");
    assert_eq!(keyed.len(), 8);
    assert_eq!(rows(&keyed), rows(&timed));
    // Lines that are not requests have no method there, either.
    json.retain(|request| !request.method.is_empty());
    assert_eq!(rows(&keyed), rows(&json));
    let without: Vec<Row> = rows(&keyed)
        .into_iter()
        .map(|(a, b, c, _)| (a, b, c, None))
        .collect();
    assert_eq!(rows(&combined), without);
    assert_eq!(count(&lacks, "REQUEST_NO_DURATION"), 8);
    assert_eq!(count(&lacks, "REQUEST_NOT_HTTP"), 1);
}

#[test]
fn a_format_of_nginx_tells_connections_phases_and_traces() {
    let (requests, _) = read_as("nginx-keyed.log", Form::Access, Some(TIMED));
    let slow = &requests[2];
    assert_eq!(slow.ts, 1_795_697_838_410_000_000);
    assert_eq!(slow.dur, Some(211_000_000));
    assert_eq!(slow.peer, "127.0.0.1:43256");
    assert_eq!(slow.local, "127.0.0.1:18080");
    assert_eq!(
        (slow.connection, slow.is_reused, slow.pid),
        (Some(5), Some(false), Some(7049))
    );
    assert_eq!(
        (slow.bytes_received, slow.bytes_sent),
        (Some(166), Some(260))
    );
    assert_eq!(
        slow.trace,
        Some((0x0af7_6519_16cd_43dd, 0x8448_eb21_1c80_319c_u64 as i64))
    );
    assert_eq!(requests[1].is_reused, Some(true));
    // The first one was sent to a server that did not exist.
    let phases: Vec<(&str, i64)> = requests[0]
        .phases
        .iter()
        .map(|phase| (&*phase.name, phase.dur))
        .collect();
    let expected = [
        ("upstream_connect", 0),
        ("upstream_wait", 10_000_000),
        ("upstream_receive", 0),
    ];
    assert_eq!(phases, expected);
    assert_eq!(requests[6].outcome, Outcome::Closed);
    assert!(requests[5].phases.is_empty());
}

#[test]
fn formats_of_apache_tell_the_same_requests() {
    let (timed, _) = read_as("apache-timed.log", Form::Access, Some(APACHE));
    let (micro, _) = read_as(
        "apache-micro.log",
        Form::Access,
        Some("%h %l %u %t \"%r\" %>s %b %D"),
    );
    let (common, _) = read("apache-common.log");
    let (vhost, _) = read("apache-vhost.log");
    assert_eq!(timed.len(), 8);
    assert_eq!(rows(&timed), rows(&micro));
    let without: Vec<Row> = rows(&timed)
        .into_iter()
        .map(|(a, b, c, _)| (a, b, c, None))
        .collect();
    assert_eq!(rows(&common), without);
    assert_eq!(rows(&vhost), without);
    let slow = &timed[3];
    assert_eq!(
        (slow.ts, slow.dur),
        (1_795_697_870_407_159_000, Some(209_454_000))
    );
    assert_eq!(slow.peer, "127.0.0.1:50452");
    assert!(slow.parent_span.is_some());
    assert_eq!(
        (timed[1].is_reused, timed[2].is_reused),
        (Some(false), Some(true))
    );
    assert_eq!(vhost[0].host, "web.example");
}

fn text(seen: &InMemory, sym: Option<Sym>) -> &str {
    sym.map_or("", |sym| seen.symbols.get(sym))
}

#[test]
fn lines_of_a_load_become_rows_in_order_of_begin() {
    let seen = import_in_memory(&[path("load.ndjson")]).expect("an import");
    let rows: Vec<(i64, &str, &str, Option<i64>)> = seen
        .rows
        .request
        .iter()
        .map(|row| {
            (
                row.id,
                text(&seen, row.target),
                text(&seen, Some(row.outcome)),
                row.seq,
            )
        })
        .collect();
    let expected = [
        (0, "/slow", "error", Some(0)),
        (1, "/fast?x=1", "ok", Some(1)),
        (2, "/", "refused", Some(3)),
    ];
    assert_eq!(rows, expected);
    let phases: Vec<(i64, &str, Option<i64>)> = seen
        .rows
        .request_phase
        .iter()
        .map(|row| (row.request, text(&seen, Some(row.phase)), row.dur))
        .collect();
    assert_eq!(phases[0], (0, "resolve", Some(50_000)));
    assert_eq!(phases.len(), 5 + 5 + 2);
    assert_eq!(phases[8], (1, "server db", Some(1_500_000)));
    // Three, and one without a time.
    assert_eq!((seen.records.read, seen.records.skipped), (4, 1));
    let bad = seen
        .anomalies
        .iter()
        .find(|anomaly| anomaly.name == "REQUEST_LINE_BAD");
    assert!(bad.is_some_and(|bad| bad.text.contains("line 4")));
    assert_eq!(seen.begin_ns, 1_795_697_838_000_100_000);
    assert_eq!(seen.end_ns, 1_795_697_838_500_300_000);
}

/// The outcome, the duration in ms and the phases waited for.
fn parts(request: &Request) -> (&str, Option<i32>, i64, Vec<i64>) {
    let times = &request.times;
    let parts = [times.connect, times.send, times.wait, times.receive];
    let ms = parts.map(|part| part.map_or(-1, |ns| ns / 1_000_000));
    (
        request.outcome.name(),
        request.status,
        request.dur.map_or(-1, |ns| ns / 1_000_000),
        ms.to_vec(),
    )
}

#[test]
fn two_forms_of_one_load_tell_the_same() {
    let (json, _) = read("vegeta.json");
    let (csv, _) = read("vegeta.csv");
    assert_eq!(json, csv);
    assert_eq!(json.len(), 20);
    assert_eq!(json[2].ts, 1_795_697_843_123_555_213);
    assert_eq!(json[2].dur, Some(201_623_467));
    let ends: Vec<&str> = json[..3]
        .iter()
        .map(|request| request.outcome.name())
        .collect();
    assert_eq!(ends, ["error", "refused", "ok"]);

    let (json, _) = read("k6.json");
    let (csv, lacks) = read("k6.csv");
    assert_eq!(json.len(), 18);
    let of = |requests: &[Request]| {
        let parts: Vec<_> = requests
            .iter()
            .map(|request| (request.target.clone(), format!("{:?}", parts(request))))
            .collect();
        parts
    };
    assert_eq!(of(&json), of(&csv));
    assert_eq!(count(&lacks, "REQUEST_TIME_COARSE"), 18);
    assert_eq!(json[0].dur, Some(216_761_286 + 10_598_850));
    assert_eq!(json[0].times.queue, Some(10_598_850 - 10_555_960));
    let refused = json.iter().find(|request| request.target == "/refused");
    assert_eq!(
        refused.map(|request| request.outcome),
        Some(Outcome::Refused)
    );
}

#[test]
fn lists_of_hey_oha_and_ab_tell_lengths_and_parts() {
    let (hey, _) = read("hey.csv");
    let (oha, _) = read("oha.csv");
    let (ab, lacks) = read("ab.tsv");
    assert_eq!((hey.len(), oha.len(), ab.len()), (20, 20, 20));
    for request in hey.iter().chain(&oha).chain(&ab) {
        let ms = request.dur.expect("a length") / 1_000_000;
        assert!((200..300).contains(&ms), "{ms}");
        assert!(request.times.wait.is_some_and(|ns| ns >= 200_000_000));
    }
    assert_eq!(hey[0].is_reused, Some(false));
    // They count from the start of the load, which ended when the file was written.
    let written = 1_795_697_900_000_000_000;
    for list in [&hey, &oha] {
        let ends = list.iter().map(|one| one.ts + one.dur.unwrap_or(0));
        assert_eq!(ends.max(), Some(written));
    }
    let times = oha[0].times;
    assert_eq!(times.resolve, Some(42_312));
    assert_eq!(times.connect, Some(5_238_794 - 42_312));
    assert_eq!(times.wait, Some(213_021_866 - 5_238_794));
    assert_eq!(times.receive, Some(213_023_603 - 213_021_866));
    assert_eq!(oha[19].is_reused, Some(true));
    assert_eq!(count(&lacks, "REQUEST_TIME_COARSE"), 20);
}

/// Sorted durations in ns.
fn lengths(requests: &[Request]) -> Vec<i64> {
    let mut lengths: Vec<i64> = requests.iter().filter_map(|one| one.dur).collect();
    lengths.sort_unstable();
    lengths
}

fn with_status(requests: &[Request], status: Option<i32>) -> usize {
    requests.iter().filter(|one| one.status == status).count()
}

/// Summaries printed by `ab`, `vegeta report -type json` and k6 themselves for the same loads.
#[test]
fn what_is_listed_is_what_tools_sum_up() {
    let (ab, _) = read("ab.tsv");
    let ms: Vec<i64> = lengths(&ab).iter().map(|ns| ns / 1_000_000).collect();
    let share = |share: usize| ms[ms.len() * share / 100];
    let reported = [
        ms[0],
        share(50),
        share(66),
        share(75),
        share(80),
        share(90),
        ms[19],
    ];
    assert_eq!(reported, [203, 208, 209, 212, 220, 227, 227]);

    let (vegeta, _) = read("vegeta.json");
    let all = lengths(&vegeta);
    assert_eq!(all.iter().sum::<i64>(), 1_416_881_145);
    assert_eq!((all[0], all[19]), (293_344, 203_233_608));
    let statuses = [None, Some(200), Some(500)].map(|status| with_status(&vegeta, status));
    assert_eq!(statuses, [6, 7, 7]);
    assert_eq!(
        vegeta.iter().map(|one| one.ts).min(),
        Some(1_795_697_843_123_555_213)
    );

    let (k6, _) = read("k6.json");
    assert_eq!(k6.len(), 18);
    let failed = k6.iter().filter(|one| one.outcome != Outcome::Ok).count();
    assert_eq!(failed, 12);
    // `http_req_duration` does not include the time before the request was sent.
    let before = |one: &Request| {
        let times = &one.times;
        let parts = [times.queue, times.connect, times.tls];
        parts.into_iter().flatten().sum::<i64>()
    };
    let blocked: i64 = k6.iter().map(before).sum();
    let of = |one: &Request| one.dur.unwrap_or(0) - before(one);
    let duration: i64 = k6.iter().map(of).sum();
    assert_eq!(blocked, 13_870_125);
    assert_eq!(duration, 1_263_255_740);
    assert_eq!(k6.iter().map(of).max(), Some(220_989_358));
}

#[test]
fn a_list_of_a_broker_has_all_of_its_requests_and_their_time() {
    let seen = import_in_memory(&[path("kafka-broker.log.gz")]).expect("an import");
    let rows = &seen.rows.request;
    assert_eq!(rows.len(), 138);
    assert_eq!((seen.records.read, seen.records.skipped), (138, 0));
    let producers = rows
        .iter()
        .filter(|row| text(&seen, row.client).starts_with("producer-"));
    assert_eq!(producers.count(), 125);
    // The broker measures the total and its phases by one clock, to the microsecond.
    for row in rows {
        let phases = seen
            .rows
            .request_phase
            .iter()
            .filter(|one| one.request == row.id);
        let sum: i64 = phases.filter_map(|one| one.dur).sum();
        let rest = row.dur.expect("a length") - sum;
        assert!(rest.abs() <= 5000, "{} {rest}", row.id);
    }
}

#[test]
fn brokers_tell_where_their_requests_waited() {
    let (json, lacks) = read("kafka-json.log");
    let (words, _) = read("kafka-text.log");
    assert_eq!((json.len(), words.len()), (3, 2));
    let of = |request: &Request| {
        let phases: Vec<(String, i64)> = request
            .phases
            .iter()
            .filter(|phase| phase.name != "throttle")
            .map(|phase| (phase.name.to_string(), phase.dur / 1000))
            .collect();
        (
            request.client.clone(),
            request.dur,
            request.seq,
            request.peer.clone(),
            phases,
        )
    };
    assert_eq!(of(&json[0]), of(&words[0]));
    assert_eq!(of(&json[1]), of(&words[1]));
    assert_eq!(json[1].times.queue, Some(1_200_500_000));
    assert_eq!(json[0].endpoint, "FETCH");
    // The phases add up to the total.
    let sum: i64 = json[1].phases.iter().map(|phase| phase.dur).sum();
    assert_eq!(Some(sum), json[1].dur);
    assert_eq!(json[2].error, "error 3");
    assert_eq!(count(&lacks, "REQUEST_LINE_BAD"), 1);
    assert_eq!(count(&lacks, "REQUEST_ZONE_GUESSED"), 1);
}

#[test]
fn a_browser_tells_parts_of_requests() {
    let (requests, lacks) = read("session.har");
    let [first, second] = &requests[..] else {
        panic!("two requests");
    };
    assert_eq!(first.ts, second.ts + 100_000_000);
    assert_eq!(parts(first), ("ok", Some(200), 231, vec![10, 0, 180, 9]));
    assert_eq!(first.times.tls, Some(20_000_000));
    assert_eq!(
        (&*first.host, &*first.endpoint, &*first.protocol),
        ("web.example", "/a", "HTTP/2")
    );
    assert!(first.trace.is_some());
    assert_eq!((second.status, second.is_reused), (None, Some(true)));
    assert_eq!(count(&lacks, "REQUEST_LINE_BAD"), 1);
}

#[test]
fn three_forms_of_one_trace_tell_the_same() {
    let of = |name: &str| {
        let (mut requests, lacks) = read(name);
        assert_eq!(count(&lacks, "REQUEST_SPAN_ALONE"), 1, "{name}");
        requests.sort_by_key(|request| request.ts);
        for request in &mut requests {
            request.source = "";
        }
        requests
    };
    let otlp = of("otlp.json");
    assert_eq!(otlp, of("jaeger.json"));
    assert_eq!(otlp, of("zipkin.json"));
    let [client, server, database] = &otlp[..] else {
        panic!("three requests");
    };
    assert_eq!((&*client.host, &*client.target), ("app:8080", "/a?b=c"));
    assert_eq!(server.parent_span, client.span);
    assert_eq!((&*server.endpoint, server.status), ("/{name}", Some(503)));
    // One is nested in the other; both are phases of the server's request.
    let phases: Vec<&str> = server.phases.iter().map(|phase| &*phase.name).collect();
    assert_eq!(phases, ["render", "template"]);
    assert_eq!(
        (&*database.protocol, &*database.endpoint),
        ("postgresql", "SELECT")
    );
}

#[test]
fn markers_of_both_forms_become_rows() {
    let of = |name: &str| {
        let seen = import_in_memory(&[path(name)]).expect("an import");
        assert_eq!(seen.records.skipped, 1, "{name}");
        let rows = seen.rows.marker.iter();
        let rows = rows.map(|row| {
            (
                row.ts,
                seen.symbols.get(row.name),
                seen.symbols.get(row.text),
            )
        });
        rows.map(|(ts, name, text)| format!("{ts} {name} {text}"))
            .collect::<Vec<_>>()
    };
    let expected = [
        "1795697838500000000 mark deploy: version 2, to all",
        "1795697839000000000 mark restart",
    ];
    assert_eq!(of("markers.csv"), expected);
    assert_eq!(of("markers.json"), expected);
}

#[test]
fn a_summary_is_refused_with_what_would_list_requests() {
    let error = import_in_memory(&[path("wrk.txt")])
        .err()
        .map(|error| error.to_string());
    assert!(error.is_some_and(|error| error.contains("wrk without individual requests")));
}

#[test]
fn other_documents_are_not_taken_for_requests() {
    for other in [
        "{}",
        "[]",
        "[{\"name\":\"a\",\"ph\":\"X\",\"ts\":1,\"dur\":2,\"id\":\"1\"}]",
        "{\"traceEvents\":[{\"name\":\"a\",\"ph\":\"B\",\"ts\":1}]}",
        "{\"name\":\"web\",\"version\":\"1.0.0\",\"log\":{}}",
        "{\"log\":{\"level\":\"info\",\"creator\":{}},\"message\":\"a\"}",
        "{\"log\":\"a line\\n\",\"stream\":\"stdout\",\"time\":\"2026-11-26T12:57:18Z\"}",
        "{\"attack\":\"dragon\",\"latency\":3}",
        "{\"data\":[{\"id\":1,\"traceID\":2}]}",
        "{\"resourceLogs\":[]}",
        "{\"resourceMetrics\":[]}",
        "{\"metric\":\"cpu\",\"value\":1}",
        "{\"time\":1,\"text\":\"a\",\"level\":\"info\"}",
        "time,text,level\n1,a,b\n",
        "timestamp,value\n1795697843173789515,5\n",
    ] {
        assert_eq!(form_of(other), None, "{other}");
        assert_eq!(summary_of(other), None, "{other}");
        assert!(!markers::is_list(other), "{other}");
    }
    assert!(markers::is_list(
        "[{\"id\":1,\"time\":1507266395000,\"text\":\"a\",\"tags\":[\"deploy\"]}]"
    ));
}

#[test]
fn what_is_wrong_is_told_with_its_place() {
    let read = |form: Form, bytes: &str| read_bytes(form, bytes.as_bytes(), ReadOptions::default());
    let what = |form: Form, bytes: &str| {
        let (_, summary) = read(form, bytes).expect("a container");
        let mut notes = summary.notes.into_iter();
        let bad = notes.find(|note| note.stat.name == "REQUEST_LINE_BAD" && note.count > 0);
        let bad = bad.expect("something wrong");
        (bad.offset, bad.text)
    };
    let (offset, text) = what(
        Form::Oha,
        "request-start,DNS,DNS+dialup,Response-delay,request-duration,bytes,status\n1,2\n",
    );
    assert_eq!(
        (offset, &*text),
        (Some(74), "line 2: expected seven columns")
    );
    let har = "{\"log\":{\"entries\":[{\"startedDateTime\":\"2026-11-26T12:57:18Z\",\"request\":{}},{}]}}";
    let (offset, text) = what(Form::Har, har);
    assert_eq!(offset, Some(0));
    assert!(text.starts_with("entry 2 "), "{text}");
    let spans = "{\"resourceSpans\":[]}\n{\"resourceSpans\":[{\"scopeSpans\":[{\"spans\":[{}]}]}]}";
    let (offset, text) = what(Form::Otlp, spans);
    assert_eq!(offset, Some(20));
    assert!(text.starts_with("span 1 "), "{text}");
    let error = read(Form::Jaeger, "{\"data\":[\n{]").err();
    let error = error.map(|error| error.to_string()).unwrap_or_default();
    assert!(error.contains("line 2 column 2"), "{error}");
    // A line without an end uses no more memory than the limit for lines.
    let long = format!("{}\n", "x".repeat(3 << 20));
    let (offset, text) = what(Form::Kafka, &long);
    assert_eq!(offset, Some(0));
    assert!(text.starts_with("line 1: longer than "), "{text}");
}
