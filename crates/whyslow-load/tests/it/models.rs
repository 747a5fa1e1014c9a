//! The number and times of requests match the plan.

use std::collections::BTreeSet;
use std::time::Duration;

use whyslow_load::{
    Connections, Limits, Model, Outcome, Reason, Redirects, RequestTemplate, Trace,
};

use crate::it::server::Server;
use crate::it::{closed, load, plan};

#[test]
fn exactly_what_was_asked_for_arrives() {
    let check = |limits: Limits, workers: u32, expected: usize| {
        let server = Server::start();
        let mut plan = plan(&[&server.url("/ok")]);
        plan.model = Model::Closed(limits);
        plan.workers = vec![workers];
        let (rows, ended) = load(plan);
        assert_eq!(rows.len(), expected, "{limits:?}");
        assert_eq!(server.arrivals().len(), expected, "{limits:?}");
        assert_eq!(ended.reason, Reason::Done);
        assert!(rows.is_sorted_by_key(|row| row.end_ns));
        let numbers: BTreeSet<u64> = rows.iter().map(|row| row.seq).collect();
        assert_eq!(numbers.len(), expected, "no number twice");
    };
    let limits = |each, total| Limits {
        each,
        total,
        length: None,
    };
    check(limits(Some(7), None), 11, 77);
    check(limits(None, Some(101)), 7, 101);
    check(limits(Some(100), Some(13)), 3, 13);
    check(limits(None, Some(2)), 5, 2);
}

#[test]
fn a_body_arrives_whatever_its_size() {
    for bytes in [0, 5, 16 << 10, 3 << 20] {
        let server = Server::start();
        let text = "x".repeat(bytes);
        let mut plan = plan(&[]);
        plan.template = RequestTemplate::new(None, &[], Some(text.clone().into())).expect("POST");
        let target = plan.template.target(&server.url("/ok"), 1);
        plan.targets.push(target.expect("an address"));
        plan.model = closed(2);
        let (rows, _) = load(plan);
        let arrivals = server.arrivals();
        assert_eq!(arrivals.len(), 2);
        for (row, (_, arrived)) in rows.iter().zip(&arrivals) {
            assert_eq!(row.outcome, Outcome::Ok, "{:?}", row.error);
            let body = arrived.split_once("\r\n\r\n").map(|(_, body)| body);
            assert!(body == Some(&text), "{bytes} bytes");
            assert_eq!(row.bytes_sent as usize, arrived.len());
        }
    }
}

#[test]
fn a_schedule_is_kept_and_no_turn_of_it_dropped() {
    let server = Server::start();
    let mut plan = plan(&[&server.url("/slow")]);
    // One worker, ten times too slow: all turns are late, and all are executed.
    plan.model = Model::Open {
        per_second: 140.0,
        length: Duration::from_millis(100),
    };
    let (mut rows, _) = load(plan);
    assert_eq!((rows.len(), server.arrivals().len()), (14, 14));
    rows.sort_by_key(|row| row.seq);
    let first = rows[0].intended_ns.expect("a schedule");
    for (at, row) in rows.iter().enumerate() {
        let intended = row.intended_ns.expect("a schedule");
        assert!(row.start_ns >= intended, "never early");
        assert!((intended - first).abs_diff(at as u64 * 1_000_000_000 / 140) <= 1);
        assert!(row.response_ns() >= row.total_ns());
    }
    assert!(rows[13].response_ns() > 5 * rows[13].total_ns());
}

#[test]
fn connections_are_kept_or_made_anew_and_a_closed_one_is_no_error() {
    let check = |path: &str, connections, expected: usize| {
        let server = Server::start();
        let mut plan = plan(&[&server.url(path)]);
        plan.model = closed(6);
        plan.connections = connections;
        // Long enough for a server to close a kept connection.
        plan.pause = Duration::from_millis(30);
        let (rows, _) = load(plan);
        assert!(
            rows.iter().all(|row| row.outcome == Outcome::Ok),
            "{rows:?}"
        );
        let made: BTreeSet<u64> = rows
            .iter()
            .filter_map(|row| Some(row.connection.as_ref()?.number))
            .collect();
        assert_eq!(made.len(), expected, "{path}");
        assert_eq!(rows.iter().filter(|row| !row.is_reused).count(), expected);
    };
    check("/ok", Connections::Kept, 1);
    check("/ok", Connections::New, 6);
    check("/last", Connections::Kept, 6);
    check("/gone", Connections::Kept, 6);
}

#[test]
fn a_redirect_is_a_request_of_its_own_if_it_is_followed() {
    let server = Server::start();
    let mut plan = plan(&[&server.url("/redirect"), &server.url("/away")]);
    plan.redirects = Redirects::Followed;
    let (rows, ended) = load(plan);
    let mut statuses: Vec<_> = rows.iter().filter_map(|row| row.status).collect();
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 302, 302]);
    assert_eq!(ended.unfollowed, 1, "other hosts are not loaded");
}

#[test]
fn weights_are_kept_and_traces_are_sent() {
    let server = Server::start();
    let mut plan = plan(&[]);
    for (path, weight) in [("/a", 3), ("/b", 1)] {
        let target = plan.template.target(&server.url(path), weight);
        plan.targets.push(target.expect("an address"));
    }
    plan.model = closed(400);
    let (rows, _) = load(plan);
    let of_a = rows
        .iter()
        .filter(|row| row.target.endpoint == "/a")
        .count();
    assert_eq!(of_a, 300);
    let traces: BTreeSet<u128> = rows.iter().filter_map(|row| Some(row.trace?.0)).collect();
    assert_eq!(traces.len(), 400);
    let (_, head) = &server.arrivals()[0];
    let (trace, span) = rows[0].trace.expect("a trace");
    let parent = format!("traceparent: 00-{trace:032x}-{span:016x}-01");
    assert!(head.contains(&parent), "{head}");
    assert_eq!(rows[0].server_timing.as_deref(), Some("db;dur=5"));
}

#[test]
fn a_load_ends_with_a_slow_request_or_without_traces_if_told_so() {
    let server = Server::start();
    let mut plan = plan(&[&server.url("/slow")]);
    plan.model = closed(1_000);
    plan.until_slow = Some(Duration::from_millis(20));
    plan.trace = Trace::Silent;
    let (rows, ended) = load(plan);
    assert_eq!((rows.len(), ended.reason), (1, Reason::UntilSlow));
    assert!(rows[0].trace.is_none());
    assert!(!server.arrivals()[0].1.contains("traceparent"));
}
