//! Lists of requests become rows of `request` and `request_phase`: what servers and load generators wrote of the same
//! requests says the same.

use std::fs;
use std::path::PathBuf;

use whyslow_ingest::importers::requests::{Asked, Form, Outcome, Request, form_of, read_bytes};
use whyslow_ingest::importers::streamed::Summary;
use whyslow_ingest::{InMemory, import_in_memory};
use whyslow_model::Sym;

fn path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../fixtures/requests")
        .join(name)
}

fn read_as(name: &str, form: Form, format: Option<&str>) -> (Vec<Request>, Summary) {
    let bytes = fs::read(path(name)).expect("a fixture");
    let written = Some(1_795_697_900_000_000_000);
    read_bytes(form, &bytes, Asked { written, format }).expect("it can be read")
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

/// What several logs tell of one request: method, target, status, length in ms.
type Told = (String, String, Option<i32>, Option<i64>);

fn told(requests: &[Request]) -> Vec<Told> {
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
    assert_eq!(told(&keyed), told(&timed));
    // What is no request has no method there, either.
    json.retain(|request| !request.method.is_empty());
    assert_eq!(told(&keyed), told(&json));
    let without: Vec<Told> = told(&keyed)
        .into_iter()
        .map(|(a, b, c, _)| (a, b, c, None))
        .collect();
    assert_eq!(told(&combined), without);
    assert_eq!(count(&lacks, "REQUEST_NO_DURATION"), 8);
    assert_eq!(count(&lacks, "REQUEST_NOT_ASKED"), 1);
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
    // The first one was tried at a server that was not there.
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
    assert_eq!(told(&timed), told(&micro));
    let without: Vec<Told> = told(&timed)
        .into_iter()
        .map(|(a, b, c, _)| (a, b, c, None))
        .collect();
    assert_eq!(told(&common), without);
    assert_eq!(told(&vhost), without);
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
    // Three, and one whose time is none.
    assert_eq!((seen.records.read, seen.records.skipped), (4, 1));
    let bad = seen
        .anomalies
        .iter()
        .find(|anomaly| anomaly.name == "REQUEST_LINE_BAD");
    assert!(bad.is_some_and(|bad| bad.text.contains("line 4")));
    assert_eq!(seen.begin_ns, 1_795_697_838_000_100_000);
    assert_eq!(seen.end_ns, 1_795_697_838_500_300_000);
}
