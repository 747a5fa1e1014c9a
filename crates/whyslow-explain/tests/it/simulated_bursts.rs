//! Clients that send or fail far more requests than usual, among other clients, in simulated
//! requests.

use whyslow_analysis::statistics::Dice;
use whyslow_explain::{Observation, Query, explain};
use whyslow_model::Symbols;
use whyslow_model::tables::{Collected, RequestRow};
use whyslow_store::{MemoryTables, RecordingInfo};

use crate::it::blank;

const MS: f64 = 1e6;
const S: f64 = 1e9;
const SPAN: f64 = 400.0 * S;
const CLIENTS: usize = 40;
const RUNS: u64 = 20;

#[derive(Debug, Clone, Copy)]
struct Made {
    ts: f64,
    dur: f64,
    client: usize,
    endpoint: usize,
    status: i32,
}

/// Requests at random times from clients of which a few send most; one in a hundred fails.
fn steady(dice: &mut Dice) -> Vec<Made> {
    let weights: Vec<f64> = (0..CLIENTS).map(|rank| 1.0 / (rank + 1) as f64).collect();
    let sum: f64 = weights.iter().sum();
    let mut found = Vec::new();
    let mut ts = 0.0;
    while ts < SPAN {
        ts += dice.exponential() * SPAN / 4000.0;
        let mut at = dice.unit() * sum;
        let client = weights.iter().position(|weight| {
            at -= weight;
            at < 0.0
        });
        let endpoint = dice.below(5);
        found.push(Made {
            ts,
            dur: 20.0 * MS * (1 + endpoint) as f64 * (0.5 * dice.normal()).exp(),
            client: client.unwrap_or(0),
            endpoint,
            status: if dice.happens(0.01) { 500 } else { 200 },
        });
    }
    found
}

/// A client with few requests sends the same request 20 times a second, from `begin` on for 20 s.
fn flood(made: &mut Vec<Made>, begin: f64, status: i32, dice: &mut Dice) {
    made.extend((0..400).map(|number| Made {
        ts: begin + f64::from(number) * 0.05 * S,
        dur: 20.0 * MS * (0.5 * dice.normal()).exp(),
        client: CLIENTS - 3,
        endpoint: 0,
        status,
    }));
}

fn slow(made: &mut [Made], (begin, length): (f64, f64)) {
    for one in made
        .iter_mut()
        .filter(|one| (begin..begin + length).contains(&one.ts))
    {
        one.dur += 2.0 * S;
    }
}

fn found(made: &[Made], source: &'static str) -> Vec<Observation> {
    let (mut rows, mut symbols) = (Collected::default(), Symbols::new());
    let mut made = made.to_vec();
    made.sort_by(|a, b| a.ts.total_cmp(&b.ts));
    let is_socket = source == "socket";
    for (id, one) in made.iter().enumerate() {
        let time = (id as i64, one.ts as i64, one.dur as i64);
        let blank = blank::request(time, ("server", source), &mut symbols);
        let outcome = match (is_socket, one.status) {
            (true, _) => "unknown",
            (false, 200) => "ok",
            (false, _) => "error",
        };
        let endpoint = format!("/{}", one.endpoint);
        rows.request.push(RequestRow {
            outcome: symbols.intern(outcome),
            client: Some(symbols.intern(&format!("10.0.0.{}", one.client))),
            local: Some(symbols.intern("10.0.0.99:80")),
            endpoint: (!is_socket).then(|| symbols.intern(&endpoint)),
            status: (!is_socket).then_some(one.status),
            ..blank
        });
    }
    let info = RecordingInfo {
        begin_ns: 0,
        end_ns: SPAN as i64,
        ..RecordingInfo::default()
    };
    let tables = MemoryTables::new(&rows, &symbols, info);
    let report = explain(&tables, &Query::default(), None).expect("an answer");
    let all = report.observations.into_iter();
    all.filter(|one| matches!(one.kind.as_str(), "request_flood" | "error_burst"))
        .collect()
}

#[allow(clippy::print_stdout)] // tables of docs/patterns.md are made of it
fn count(what: &str, mut happens: impl FnMut(&mut Dice) -> bool) -> usize {
    let count = (0..RUNS)
        .filter(|run| happens(&mut Dice::new(run + 900)))
        .count();
    println!("| bursts, {what} | {RUNS} | {count} |");
    count
}

const CLIENT: &str = "10.0.0.37";

#[test]
fn of_steady_traffic_nothing_is_said() {
    let observations = count("nothing", |dice| !found(&steady(dice), "nginx").is_empty());
    assert_eq!(observations, 0);
    let observations = count("three stalls", |dice| {
        let mut made = steady(dice);
        for _ in 0..3 {
            slow(&mut made, (SPAN * dice.unit(), 10.0 * S));
        }
        !found(&made, "nginx").is_empty()
    });
    assert_eq!(observations, 0);
    let observations = count("a flood without effect on others", |dice| {
        let mut made = steady(dice);
        let begin = 350.0 * S * dice.unit();
        flood(&mut made, begin, 200, dice);
        !found(&made, "nginx").is_empty()
    });
    assert_eq!(observations, 0);
}

#[test]
fn a_client_whose_flood_others_feel_is_named_with_what_coincides() {
    for (source, lasts) in [("nginx", 20.0), ("nginx", 35.0), ("socket", 20.0)] {
        let what = format!("a flood of 20 s, others slow for {lasts} s, {source}");
        let observations = count(&what, |dice| {
            let mut made = steady(dice);
            let begin = 350.0 * S * dice.unit();
            flood(&mut made, begin, 200, dice);
            slow(&mut made, (begin, lasts * S));
            let all = found(&made, source);
            let [one] = all.as_slice() else { return false };
            assert!(
                one.begin_ns <= begin as i64 + 2_000_000_000,
                "{}",
                one.summary
            );
            one.kind == "request_flood"
                && one.culprit.name == CLIENT
                && one
                    .summary
                    .contains("The burst overlapped with slow requests of other clients")
                && (source == "socket" || one.summary.contains("of these /0"))
        });
        assert!(observations >= 19, "{what}: {observations}");
    }
}

#[test]
fn what_was_slow_at_another_time_does_not_coincide() {
    let observations = count("a flood, and a stall before it", |dice| {
        let mut made = steady(dice);
        let begin = 100.0 * S + 250.0 * S * dice.unit();
        flood(&mut made, begin, 200, dice);
        slow(&mut made, (begin - 60.0 * S, 20.0 * S));
        !found(&made, "nginx").is_empty()
    });
    assert_eq!(observations, 0);
    let observations = count("a flood in a stall that had started before", |dice| {
        let mut made = steady(dice);
        let begin = 100.0 * S + 250.0 * S * dice.unit();
        flood(&mut made, begin, 200, dice);
        slow(&mut made, (begin - 30.0 * S, 60.0 * S));
        let all = found(&made, "nginx");
        all.iter()
            .any(|one| one.summary.contains("The burst overlapped"))
    });
    assert_eq!(observations, 0);
}

#[test]
fn a_flood_that_fails_alone_is_told_with_others_that_were_not_slower() {
    let observations = count("a flood that is refused", |dice| {
        let mut made = steady(dice);
        let begin = 350.0 * S * dice.unit();
        flood(&mut made, begin, 429, dice);
        let all = found(&made, "nginx");
        let [one] = all.as_slice() else { return false };
        one.culprit.name == CLIENT
            && one.summary.contains("got status 429")
            && one
                .summary
                .contains("Requests of other clients were not slower")
    });
    assert!(observations >= 19, "{observations}");
    let observations = count("a client with failing requests for a while", |dice| {
        let mut made = steady(dice);
        let begin = 300.0 * S * dice.unit();
        for one in &mut made {
            if one.client == 2 && (begin..begin + 40.0 * S).contains(&one.ts) {
                one.status = 403;
            }
        }
        let all = found(&made, "nginx");
        let [one] = all.as_slice() else { return false };
        one.kind == "error_burst"
            && one.culprit.name == "10.0.0.2"
            && one.summary.contains("got status 403")
            && one
                .summary
                .contains("Requests of other clients were not slower")
    });
    assert!(observations >= 19, "{observations}");
}
