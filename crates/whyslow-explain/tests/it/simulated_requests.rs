//! Patterns detected in simulated requests, and how often one is detected where there is none.
//!
//! `docs/patterns.md` has the rates of more runs; `WHYSLOW_RUNS` multiplies their number.

use whyslow_analysis::statistics::Dice;
use whyslow_explain::{Other, Pattern, Query, explain};
use whyslow_model::Symbols;
use whyslow_model::tables::{Collected, RequestRow};
use whyslow_store::{MemoryTables, RecordingInfo};

use crate::it::blank;

const MS: f64 = 1e6;
const S: f64 = 1e9;
const SPAN: f64 = 400.0 * S;
const REQUESTS: usize = 800;

/// One request, times in ns.
#[derive(Debug, Clone, Copy)]
struct Made {
    ts: f64,
    /// Duration of its page …
    usual: f64,
    /// … and of the DNS lookup.
    lookup: f64,
    endpoint: usize,
    client: usize,
    worker: Option<usize>,
}

/// Distribution of durations, around 1.
#[derive(Debug, Clone, Copy)]
enum Family {
    LogNormal(f64),
    Exponential,
    Pareto,
}

impl Family {
    fn draw(self, dice: &mut Dice) -> f64 {
        match self {
            Self::LogNormal(sigma) => (sigma * dice.normal()).exp(),
            Self::Exponential => dice.exponential(),
            Self::Pareto => 1.0 / dice.unit(),
        }
    }
}

/// Requests of eight endpoints and six clients at random times.
fn service(requests: usize, family: Family, dice: &mut Dice) -> Vec<Made> {
    let mut one = |number: usize| {
        let endpoint = number % 8;
        Made {
            ts: SPAN * dice.unit(),
            usual: 20.0 * MS * (1 + endpoint) as f64 * family.draw(dice),
            lookup: 0.0,
            endpoint,
            client: dice.below(6),
            worker: None,
        }
    };
    (0..requests).map(&mut one).collect()
}

/// Closed-loop load in stages with different numbers of threads.
/// `lookup` gets the number of threads.
fn sweep(
    threads: &[usize],
    each: usize,
    lookup: impl Fn(usize, &mut Dice) -> f64,
    dice: &mut Dice,
) -> Vec<Made> {
    let mut found = Vec::new();
    let mut begin: f64 = 0.0;
    for threads in threads {
        let mut last = begin;
        for worker in 0..*threads {
            let mut ts = begin + MS * worker as f64;
            for _ in 0..each {
                let made = Made {
                    ts,
                    usual: 30.0 * MS * Family::LogNormal(0.4).draw(dice),
                    lookup: lookup(*threads, dice),
                    endpoint: dice.below(6),
                    client: 0,
                    worker: Some(worker),
                };
                ts += made.usual + made.lookup + 0.1 * MS;
                found.push(made);
            }
            last = last.max(ts);
        }
        begin = last + 10.0 * MS;
    }
    found
}

fn tables(made: &[Made]) -> MemoryTables {
    let (mut rows, mut symbols) = (Collected::default(), Symbols::new());
    let mut made = made.to_vec();
    made.sort_by(|a, b| a.ts.total_cmp(&b.ts));
    rows.request.extend(
        made.iter()
            .enumerate()
            .map(|(id, one)| row(id as i64, one, &mut symbols)),
    );
    let ends = rows.request.iter().filter_map(|row| row.ts_end);
    let info = RecordingInfo {
        begin_ns: 0,
        end_ns: ends.max().unwrap_or(0) + 1,
        ..RecordingInfo::default()
    };
    MemoryTables::new(&rows, &symbols, info)
}

fn row(id: i64, made: &Made, symbols: &mut Symbols) -> RequestRow {
    let (ts, dur) = (made.ts as i64, (made.usual + made.lookup) as i64);
    let is_load = made.worker.is_some();
    let (role, source) = if is_load {
        ("client", "load")
    } else {
        ("server", "nginx")
    };
    RequestRow {
        method: Some(symbols.intern("GET")),
        endpoint: Some(symbols.intern(&format!("/{}", made.endpoint))),
        status: Some(200),
        outcome: symbols.intern("ok"),
        client: Some(symbols.intern(&format!("10.0.0.{}", made.client))),
        worker: made.worker.map(|worker| worker as i32),
        seq: Some(id),
        resolve_ns: (made.lookup > 0.0).then_some(made.lookup as i64),
        wait_ns: Some(made.usual as i64),
        ..blank::request((id, ts, dur), (role, source), symbols)
    }
}

fn pattern(made: &[Made], before: Option<&[Made]>) -> Option<Pattern> {
    let before = before.map(tables);
    let other = before.as_ref().map(|tables| Other {
        tables,
        window: None,
        recording: "before",
        is_same: false,
    });
    let report = explain(&tables(made), &Query::default(), other).expect("an answer");
    report.patterns.into_iter().next()
}

fn class(made: &[Made], before: Option<&[Made]>) -> String {
    let found = pattern(made, before);
    found.map_or_else(|| "insufficient".to_owned(), |found| found.class)
}

fn runs(default: u32) -> u32 {
    let wanted = std::env::var("WHYSLOW_RUNS").ok();
    let times = wanted.and_then(|text| text.parse::<u32>().ok());
    default * times.unwrap_or(1)
}

#[allow(clippy::print_stdout)] // tables of docs/patterns.md are made of it
fn rate(what: &str, runs: u32, mut happens: impl FnMut(&mut Dice) -> bool) -> f64 {
    let count = (0..runs).filter(|run| happens(&mut Dice::new(u64::from(*run) + 500)));
    let rate = count.count() as f64 / f64::from(runs);
    println!("| requests, {what} | {runs} | {rate:.3} |");
    rate
}

fn margin(rate: f64, runs: u32) -> f64 {
    3.0 * (rate * (1.0 - rate) / f64::from(runs)).sqrt()
}

fn at_most(what: &str, wanted: f64, runs: u32, happens: impl FnMut(&mut Dice) -> bool) {
    let found = rate(what, runs, happens);
    assert!(found <= wanted + margin(wanted, runs), "{what}: {found}");
}

fn at_least(what: &str, wanted: f64, runs: u32, happens: impl FnMut(&mut Dice) -> bool) {
    let found = rate(what, runs, happens);
    assert!(found >= wanted - margin(wanted, runs), "{what}: {found}");
}

#[test]
fn requests_that_show_nothing_are_given_no_class() {
    for family in [Family::LogNormal(0.5), Family::Exponential, Family::Pareto] {
        at_most(&format!("nothing, {family:?}"), 0.01, runs(10), |dice| {
            let made = service(REQUESTS, family, dice);
            let before = service(REQUESTS, family, dice);
            class(&made, Some(&before)) != "insufficient"
        });
    }
    at_most("three stalls of 2 s", 0.02, runs(10), |dice| {
        let stalls = [0; 3].map(|_| SPAN * dice.unit());
        let mut made = service(REQUESTS, Family::LogNormal(0.5), dice);
        for one in &mut made {
            if stalls
                .iter()
                .any(|at| (0.0..2.0 * S).contains(&(one.ts - at)))
            {
                one.usual += 2.0 * S * dice.unit();
            }
        }
        class(&made, None) != "insufficient"
    });
}

/// Makes requests of a service slower, and checks the class.
fn finds(what: &str, wanted: &str, requests: usize, slower: impl Fn(&mut Made, &mut Dice)) {
    at_least(what, 0.98, runs(10), |dice| {
        let mut made = service(requests, Family::LogNormal(0.5), dice);
        for one in &mut made {
            slower(one, dice);
        }
        class(&made, None) == wanted
    });
}

#[test]
fn each_kind_of_slowness_of_requests_is_given_its_class() {
    finds(
        "5 s more in one of ten",
        "rare_contention",
        REQUESTS,
        |one, dice| {
            one.lookup = if dice.happens(0.1) { 5.004 * S } else { 0.0 };
        },
    );
    finds(
        "2 s more in three of ten of one endpoint",
        "one_operation",
        REQUESTS,
        |one, dice| {
            if one.endpoint == 3 && dice.happens(0.3) {
                one.usual += 2.0 * S;
            }
        },
    );
    finds(
        "1 s more in a fifth for one client",
        "one_device",
        2000,
        |one, dice| {
            if one.client == 2 && dice.happens(0.2) {
                one.usual += S;
            }
        },
    );
    finds("a second of each ten", "periodic", REQUESTS, |one, dice| {
        if one.ts.rem_euclid(10.0 * S) < S {
            one.usual += S * (1.0 + dice.unit());
        }
    });
    at_least("twice as long", 0.98, runs(10), |dice| {
        let before = service(REQUESTS, Family::LogNormal(0.5), dice);
        let mut made = service(REQUESTS, Family::LogNormal(0.5), dice);
        for one in &mut made {
            one.usual *= 2.0;
        }
        class(&made, Some(&before)) == "shifted"
    });
}

/// One of ten requests waits five seconds, but none of the last endpoint, which has `exempt`
/// requests. These take very little time, so a share of them is slow by its own measure.
fn with_exempt(requests: usize, (exempt, jitter): (usize, f64), dice: &mut Dice) -> String {
    let mut made = service(requests, Family::LogNormal(0.5), dice);
    let mut seen = 0;
    made.retain(|one| {
        seen += usize::from(one.endpoint == 7);
        one.endpoint != 7 || seen <= exempt
    });
    for one in made.iter_mut().filter(|one| one.endpoint == 7) {
        let times = if dice.happens(jitter) { 18.0 } else { 1.0 };
        one.usual = 0.35 * MS * times * Family::LogNormal(0.3).draw(dice);
    }
    for one in made.iter_mut().filter(|one| one.endpoint != 7) {
        one.lookup = if dice.happens(0.1) { 5.004 * S } else { 0.0 };
    }
    let found = pattern(&made, None).expect("slow requests");
    let tests = found.tests.iter().filter(|(test, ..)| test == "T6");
    tests.map(|(.., summary)| summary.clone()).collect()
}

#[test]
fn an_endpoint_is_called_exempt_with_enough_requests_and_else_told_how_many_are_needed() {
    for jitter in [0.0, 0.1, 0.35] {
        let what = format!("exempt with 100, {jitter} of these 18 times their usual");
        at_least(&what, 0.95, runs(10), |dice| {
            let summary = with_exempt(REQUESTS, (100, jitter), dice);
            summary.contains("GET /7: 0 of 100 slow (p ") && summary.contains("), exempt")
        });
    }
    at_least("not enough with 12", 1.0, runs(5), |dice| {
        let summary = with_exempt(REQUESTS, (12, 0.1), dice);
        assert!(!summary.contains("), exempt"), "{summary}");
        summary.contains("GET /7: 0 of 12 slow") && summary.contains("too few to call it exempt (")
    });
}

fn depends(made: &[Made]) -> bool {
    let found = pattern(made, None);
    found.is_some_and(|found| {
        found
            .summary
            .contains("depends on concurrency, the slow share is")
    })
}

#[test]
fn that_slowness_depends_on_concurrency_is_told_with_its_shares() {
    let threads = [1, 4, 16, 32];
    let five = |chance: f64, dice: &mut Dice| if dice.happens(chance) { 5.004 * S } else { 0.0 };
    for (per_thread, each, wanted) in [(0.01, 10, 0.9), (0.005, 10, 0.5), (0.005, 30, 0.95)] {
        let what = format!("{per_thread} for each thread, {each} each");
        at_least(&what, wanted, runs(10), |dice| {
            let lookup = |threads: usize, dice: &mut Dice| five(per_thread * threads as f64, dice);
            depends(&sweep(&threads, each, lookup, dice))
        });
    }
    for (chance, each) in [(0.05, 10), (0.1, 10), (0.05, 40)] {
        let what = format!("{chance} with any number of threads, {each} each");
        at_most(&what, 0.01, runs(20), |dice| {
            depends(&sweep(&threads, each, |_, dice| five(chance, dice), dice))
        });
    }
}

#[test]
fn the_slow_share_is_told_by_requests_in_flight() {
    let lookup = |threads: usize, dice: &mut Dice| {
        if dice.happens(0.01 * threads as f64) {
            5.004 * S
        } else {
            0.0
        }
    };
    let made = sweep(&[1, 4, 16, 32], 20, lookup, &mut Dice::new(7));
    let report = explain(&tables(&made), &Query::default(), None).expect("an answer");
    let verdict = &report.findings[0].verdict;
    assert!(verdict.contains("depends on concurrency"), "{verdict}");
    assert!(verdict.contains("32 in flight"), "{verdict}");
    assert!(
        verdict.contains("the slow share is 10 % with 1 to 3 in flight"),
        "{verdict}"
    );
    assert!(!verdict.contains("every 5.0"), "{verdict}");
}
