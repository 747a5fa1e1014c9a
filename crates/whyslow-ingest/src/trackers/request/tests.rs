//! Matching of requests reported by a client with the requests that served them.

use whyslow_model::Symbols;
use whyslow_model::tables::{Collected, RequestRow};

use super::super::anomalies::Anomalies;
use super::super::identity::Output;
use super::expected::Expected;
use super::traced::Traced;

pub(super) fn client_row(
    symbols: &mut Symbols,
    id: i64,
    (ts, ts_end): (i64, Option<i64>),
) -> RequestRow {
    RequestRow {
        id,
        ts,
        dur: ts_end.map(|end| end - ts),
        ts_end,
        role: symbols.intern("client"),
        source: symbols.intern("load"),
        outcome: symbols.intern("ok"),
        local: Some(symbols.intern("10.0.0.1:5000")),
        peer: Some(symbols.intern("10.0.0.2:80")),
        ..RequestRow::default()
    }
}

/// Times of client requests and of served requests, and the expected matches.
fn check(
    requests: &[(i64, Option<i64>)],
    served: &[(i64, i64)],
    expected: &[Option<i64>],
    log: &str,
) {
    let (mut symbols, mut rows) = (Symbols::new(), Collected::default());
    let mut anomalies = Anomalies::default();
    let mut all = Expected::default();
    all.expect_both();
    let mut out = Output {
        symbols: &mut symbols,
        anomalies: &mut anomalies,
        sink: &mut rows,
    };
    for (id, times) in (0..).zip(requests) {
        let row = Box::new(client_row(out.symbols, id, *times));
        assert!(all.client(row, &mut out).is_none());
    }
    for (id, &(ts, answered)) in (100..).zip(served) {
        let mut row = client_row(out.symbols, id, (ts, Some(answered + 1)));
        std::mem::swap(&mut row.local, &mut row.peer);
        row.source = out.symbols.intern("socket");
        row.outcome = out.symbols.intern("unknown");
        assert!(all.served(Box::new(row), answered, &mut out).is_none());
    }
    all.finish(&Traced::default(), &mut out);
    let clients = rows.request.iter().filter(|row| row.id < 100);
    let found: Vec<Option<i64>> = clients.map(|row| row.server_request).collect();
    for served in rows.request.iter().filter(|row| row.id >= 100) {
        let is_joined = found.contains(&Some(served.id));
        assert_eq!(symbols.get(served.outcome) == "ok", is_joined, "{served:?}");
    }
    assert_eq!(found, expected, "{requests:?} {served:?}");
    let stat = &whyslow_model::stat::REQUEST_CLOCK;
    assert_eq!(anomalies.text(stat).unwrap_or_default(), log);
}

#[test]
fn a_request_is_the_only_one_that_was_served_while_it_was_asked() {
    check(
        &[(10, Some(20)), (30, Some(40)), (50, None)],
        &[(12, 15), (33, 35)],
        &[Some(100), Some(101), None],
        "",
    );
}

#[test]
fn where_two_fit_there_is_no_answer() {
    check(&[(10, Some(40))], &[(12, 15), (33, 35)], &[None], "");
    check(
        &[(10, Some(40)), (11, Some(41))],
        &[(12, 15)],
        &[None, None],
        "",
    );
}

#[test]
fn the_clock_of_another_host_is_found_and_told() {
    let far = 5_000_000_000;
    let requests: Vec<_> = (0..8)
        .map(|turn| (turn * 20_000, Some(turn * 20_000 + 10_000)))
        .collect();
    let served: Vec<_> = (0..8)
        .map(|turn| {
            (
                turn * 20_000 + 3_000 - far,
                turn * 20_000 + 9_000 - turn * 100 - far,
            )
        })
        .collect();
    let expected: Vec<_> = (100..108).map(Some).collect();
    let log = "the client's clock is 4999999 \u{b5}s ahead (\u{b1} 2 \u{b5}s)";
    check(&requests, &served, &expected, log);
    // Fewer may match by chance.
    check(&requests[..7], &served[..7], &[None; 7], "");
}
