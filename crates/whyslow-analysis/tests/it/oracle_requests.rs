//! Queries about requests and their phases compared with SQL, as in `oracle.rs`.

use whyslow_analysis::{Filter, KeyFilter, Kind, Query, Verb};

use crate::it::duckdb::{Rows, amount, by, check, query, windows, written};

const ERRORS: &str = "count(*) FILTER (WHERE outcome NOT IN ('ok', 'unknown', 'cut')) AS errors,";

/// Keys with their SQL expressions, the view, and the prefix of its ids.
const KEYS: [(&[&str], &str, &str, &str); 7] = [
    (
        &["endpoint", "outcome"],
        "endpoint, outcome",
        "requests",
        "request",
    ),
    (&["status"], "status", "requests", "request"),
    (
        &["client", "method"],
        "client, method",
        "requests",
        "request",
    ),
    (
        &["connection", "worker"],
        "connection, worker",
        "requests",
        "request",
    ),
    (
        &["host", "peer", "role", "source"],
        "host, peer, role, source",
        "requests",
        "request",
    ),
    (&["phase"], "phase", "phases", "phase"),
    (&["client", "phase"], "client, phase", "phases", "phase"),
];

#[test]
fn statistics_of_requests_equal_sql() {
    let Some(written) = written(amount()) else {
        return;
    };
    for (keys, expression, view, id) in KEYS {
        let names = keys.iter().map(|name| format!("{name} NULLS FIRST"));
        let order = names.collect::<Vec<_>>().join(", ");
        let errors = if view == "requests" { ERRORS } else { "" };
        let words = [
            ("view", view),
            ("id", id),
            ("keys", expression),
            ("order", &*order),
            ("size", ""),
            ("errors", errors),
        ];
        for query in windows(amount(), &by(keys, query(Kind::Requests, Verb::Stats))) {
            let rows = Rows::Table("stats");
            check(&written, &query, rows, "stats.sql", &words);
        }
    }
}

#[test]
fn filters_of_requests_equal_sql() {
    let Some(written) = written(amount()) else {
        return;
    };
    let value = |key, values: &[&str]| KeyFilter {
        key,
        values: values.iter().map(ToString::to_string).collect(),
    };
    let columns = "ts AS ts_ns, dur AS dur_ns, endpoint, status, 'request:' || id AS id";
    for (values, condition) in [
        (
            vec![value("endpoint", &["/api/*"])],
            "endpoint LIKE '/api/%'",
        ),
        (
            vec![value("status", &["5xx", "304"])],
            "status BETWEEN 500 AND 599 OR status = 304",
        ),
        (
            vec![
                value("client", &["10.0.0.1", "*.2"]),
                value("worker", &["1"]),
            ],
            "client IN ('10.0.0.1', '10.0.0.2') AND worker = 1",
        ),
        (vec![value("role", &["client"])], "role = 'client'"),
    ] {
        let query = Query {
            filter: Filter {
                values,
                ..Filter::default()
            },
            ..query(Kind::Requests, Verb::Log)
        };
        let words = [
            ("view", "requests"),
            ("columns", columns),
            ("cut", "cut_of(ts, ts_end, cut)"),
            ("where", condition),
        ];
        check(&written, &query, Rows::Table("log"), "log.sql", &words);
    }
    let failed = Query {
        filter: Filter {
            errors_only: true,
            ..Filter::default()
        },
        ..query(Kind::Requests, Verb::Log)
    };
    let words = [
        ("view", "requests"),
        ("columns", columns),
        ("cut", "cut_of(ts, ts_end, cut)"),
        ("where", "outcome IN ('error', 'timeout')"),
    ];
    check(&written, &failed, Rows::Table("log"), "log.sql", &words);
}

#[test]
fn phases_are_those_of_the_requests_that_pass() {
    let Some(written) = written(amount()) else {
        return;
    };
    let filter = Filter {
        values: vec![KeyFilter {
            key: "status",
            values: vec!["503".into()],
        }],
        ..Filter::default()
    };
    let query = Query {
        filter,
        ..by(&["phase"], query(Kind::Requests, Verb::Stats))
    };
    let view = "phases SEMI JOIN request ON request.id = phases.request AND status = 503";
    let words = [
        ("view", view),
        ("id", "phase"),
        ("keys", "phase"),
        ("order", "phase"),
        ("size", ""),
        ("errors", ""),
    ];
    check(&written, &query, Rows::Table("stats"), "stats.sql", &words);
}

#[test]
fn distributions_of_requests_equal_sql() {
    let Some(written) = written(amount()) else {
        return;
    };
    for (key, view) in [("outcome", "requests"), ("phase", "phases")] {
        let words = [("view", view), ("label", key), ("order", "series")];
        let query = by(&[key], query(Kind::Requests, Verb::Hist));
        for query in windows(amount(), &query) {
            let rows = Rows::Series("hist");
            check(&written, &query, rows, "hist.sql", &words);
        }
    }
}

#[test]
fn who_asked_how_much_equals_sql() {
    let Some(written) = written(amount()) else {
        return;
    };
    for query in windows(amount(), &query(Kind::Requests, Verb::Usage)) {
        let rows = Rows::Table("usage");
        check(&written, &query, rows, "usage_requests.sql", &[]);
    }
}
