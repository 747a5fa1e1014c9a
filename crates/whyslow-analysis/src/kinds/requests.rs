//! `requests`: requests between programs, their phases, and the threads that worked on them.

use whyslow_model::answer::Measure;
use whyslow_model::row::Row;
use whyslow_model::tables::{RequestPhaseRow, RequestRow, RequestThreadRow};

use crate::keys::Key;
use crate::query::{Filter, KeyFilter, Kind, Query, Verb};
use crate::spec::{Cell, Duplicates, Failure, Field, Hooks, PartOf, Sides, Spec, Topic, View};

pub(crate) static TOPIC: Topic = Topic {
    kind: Kind::Requests,
    about: "Requests (HTTP, RPC, …): endpoint, client, latency, phases and outcome",
    examples: "\
  whyslow requests web.wsl                      by endpoint and outcome
  whyslow requests top web.wsl --endpoint '/api/*' --min 300ms
  whyslow requests stats web.wsl --by phase,client
  whyslow requests threads web.wsl -w request:17",
    views: &[
        View::new(
            Verb::Stats,
            "Count and latency by endpoint and outcome, or by phase (--by phase)",
            &REQUESTS,
        ),
        View {
            by_time: false,
            ..View::new(
                Verb::Usage,
                "Requests, errors, time in phases and thread time by client",
                &REQUESTS,
            )
        },
        View::new(Verb::Hist, "Latency histogram with percentiles", &REQUESTS),
        View::new(Verb::Top, "The longest requests", &REQUESTS),
        View::new(Verb::Log, "Requests in chronological order", &REQUESTS),
        View::new(
            Verb::Differs,
            "How selected requests (-w, --min, …) differ from the others (--vs)",
            &REQUESTS,
        ),
        View::new(Verb::Heat, "Latency over time", &REQUESTS),
        View::new(
            Verb::Threads,
            "Threads that worked on a request (-w request:ID), with their states over time",
            &REQUESTS,
        ),
        View::new(
            Verb::Outbound,
            "Outbound requests of threads that serve requests: peer, lookup, connect, first byte",
            &WORKERS,
        ),
        View::new(
            Verb::Bursts,
            "Clients with far more requests or errors than usual",
            &REQUESTS,
        ),
    ],
    default: Some(Verb::Stats),
    is_main: true,
};

/// The query is answered from the phases if a phase is a key or is selected.
fn phases_instead(query: &Query) -> Option<&'static Spec> {
    let name = Key::Phase.name();
    let is_key = query.by.iter().any(|by| by == name);
    let is_chosen = query.filter.values.iter().any(|one| one.key == name);
    let has_phases = matches!(
        query.verb,
        Verb::Stats | Verb::Hist | Verb::Top | Verb::Log | Verb::Heat
    );
    (has_phases && (is_key || is_chosen)).then_some(&PHASES)
}

/// Whether a request with this outcome failed. If the client cancelled it, its outcome is unknown.
pub(crate) fn is_failure(outcome: &str) -> bool {
    !matches!(outcome, "ok" | "unknown" | "cut")
}

/// Two sources may report the same side of a request. Both rows count only if the query is about
/// sources, or selects one request by its id.
fn counts_duplicates(query: &Query, keys: &[Key]) -> bool {
    let source = Key::Source;
    let is_chosen = |by: &str| by == source.name();
    keys.contains(&source)
        || query.by.iter().any(|by| is_chosen(by))
        || query.filter.values.iter().any(|one| is_chosen(one.key))
        || query.request.is_some()
}

/// Durations and classes apply to phases, and so do keys that phases have.
fn split_phases(filter: &Filter) -> (Filter, Filter) {
    let is_own = |one: &KeyFilter| Key::parse(&PHASES, one.key).is_ok();
    let (own, others) = filter.values.iter().cloned().partition(is_own);
    let phases = Filter {
        values: own,
        ended_in: filter.ended_in,
        dur_min: filter.dur_min,
        dur_max: filter.dur_max,
        ops: filter.ops.clone(),
        ..Filter::default()
    };
    let requests = Filter {
        values: others,
        ended_in: None,
        dur_min: None,
        dur_max: None,
        ops: Vec::new(),
        ..filter.clone()
    };
    (phases, requests)
}

/// A filter applies to the requests; threads only have their time.
fn split_workers(filter: &Filter) -> (Filter, Filter) {
    let threads = Filter {
        ended_in: filter.ended_in,
        ..Filter::default()
    };
    let requests = Filter {
        ended_in: None,
        ..filter.clone()
    };
    (threads, requests)
}

fn sides_caveat(sides: &[String]) -> String {
    format!(
        "requests reported by {} are combined, so one request may count twice: select a role with \
         --role",
        sides.join(" and ")
    )
}

/// Parts of a request that are columns of its row.
const STAGES: &[(&str, &str)] = &[
    ("queue", "queue_ns"),
    ("resolve", "resolve_ns"),
    ("connect", "connect_ns"),
    ("tls", "tls_ns"),
    ("send", "send_ns"),
    ("wait", "wait_ns"),
    ("receive", "receive_ns"),
];

pub(crate) static REQUESTS: Spec = Spec {
    kind: Kind::Requests,
    name: "requests",
    rows: "requests",
    table: RequestRow::TABLE,
    only: &[],
    class: "outcome",
    classes: &[],
    // Both sides may report a request: they are only added up if the query requests it.
    group: &[Key::Endpoint, Key::Outcome, Key::Role],
    series: &[Key::Role],
    size: None,
    errno: None,
    lasting: false,
    owner: "utid",
    stages: STAGES,
    id_prefix: "request",
    fields: FIELDS,
    hooks: Hooks {
        instead: phases_instead,
        failure: Some(Failure {
            column: "outcome",
            is_failure,
        }),
        duplicates: Some(Duplicates {
            column: "same_as",
            count: counts_duplicates,
        }),
        sides: Some(Sides {
            key: Key::Role,
            caveat: sides_caveat,
        }),
        ..Hooks::NONE
    },
};

pub(crate) static PHASES: Spec = Spec {
    kind: Kind::Requests,
    name: "request phases",
    rows: "phases",
    table: RequestPhaseRow::TABLE,
    class: "phase",
    group: &[Key::Phase],
    series: &[Key::Phase],
    stages: &[],
    id_prefix: "phase",
    fields: PHASE_FIELDS,
    hooks: part_of_requests(split_phases),
    ..REQUESTS
};

pub(crate) static WORKERS: Spec = Spec {
    kind: Kind::Requests,
    name: "request threads",
    rows: "threads",
    table: RequestThreadRow::TABLE,
    class: "received_by",
    group: &[],
    series: &[],
    stages: &[],
    id_prefix: "request_thread",
    fields: &[],
    hooks: part_of_requests(split_workers),
    ..REQUESTS
};

const fn part_of_requests(split: fn(&Filter) -> (Filter, Filter)) -> Hooks {
    Hooks {
        part_of: Some(PartOf {
            whole: &REQUESTS,
            column: "request",
            split,
        }),
        ..Hooks::NONE
    }
}

const fn duration(name: &'static str, title: &'static str) -> Field {
    Field::new(name, title, Measure::Duration, Cell::Int(name))
        .priority(4)
        .sparse()
}

const fn text(name: &'static str, title: &'static str) -> Field {
    Field::new(name, title, Measure::Text, Cell::Text(name))
}

const fn number(name: &'static str, title: &'static str) -> Field {
    Field::new(name, title, Measure::Count, Cell::Int(name))
}

const FIELDS: &[Field] = &[
    Field::new("ts_ns", "start", Measure::Time, Cell::Int("ts")),
    Field::new("ts_end_ns", "end", Measure::Time, Cell::Int("ts_end")).priority(7),
    Field::new(
        "intended_ns",
        "scheduled start",
        Measure::Time,
        Cell::Int("ts_intended"),
    )
    .priority(7)
    .sparse(),
    Field::new("dur_ns", "duration", Measure::Duration, Cell::Int("dur")),
    text("role", "role").priority(4),
    text("source", "source").priority(7),
    text("protocol", "protocol").priority(7).sparse(),
    text("method", "method").priority(1),
    text("host", "host").priority(5).sparse(),
    text("endpoint", "endpoint"),
    Field::new("target", "target", Measure::Path, Cell::Text("target"))
        .priority(6)
        .sparse(),
    number("status", "status"),
    text("outcome", "outcome"),
    text("error", "error").priority(3).sparse(),
    text("client", "client").priority(2).sparse(),
    number("connection", "connection").priority(6).sparse(),
    Field::new(
        "is_reused",
        "reused",
        Measure::Text,
        Cell::Bool("is_reused"),
    )
    .priority(7)
    .sparse(),
    text("local", "local").priority(8).sparse(),
    text("peer", "peer").priority(6).sparse(),
    number("worker", "worker").priority(6).sparse(),
    Field::new(
        "bytes_sent",
        "sent",
        Measure::Bytes,
        Cell::Int("bytes_sent"),
    )
    .priority(5)
    .sparse(),
    Field::new(
        "bytes_received",
        "received",
        Measure::Bytes,
        Cell::Int("bytes_received"),
    )
    .priority(5)
    .sparse(),
    duration("queue_ns", "queue"),
    duration("resolve_ns", "resolve"),
    duration("connect_ns", "connect"),
    duration("tls_ns", "tls"),
    duration("send_ns", "send"),
    duration("wait_ns", "wait"),
    duration("receive_ns", "receive"),
    Field::new(
        "server_request",
        "server request",
        Measure::Id,
        Cell::IdOf("request", "server_request"),
    )
    .priority(3)
    .sparse(),
    text("joined_by", "joined by").priority(8).sparse(),
    Field::new(
        "same_as",
        "same as",
        Measure::Id,
        Cell::IdOf("request", "same_as"),
    )
    .priority(8)
    .sparse(),
    text("comm", "comm").priority(2).sparse(),
    number("pid", "pid").priority(6).sparse(),
    number("tid", "tid").priority(3).sparse(),
    Field::new("id", "id", Measure::Id, Cell::Id).priority(1),
];

const PHASE_FIELDS: &[Field] = &[
    Field::new("ts_ns", "start", Measure::Time, Cell::Int("ts")),
    Field::new("ts_end_ns", "end", Measure::Time, Cell::Int("ts_end")).priority(6),
    Field::new("dur_ns", "duration", Measure::Duration, Cell::Int("dur")),
    text("phase", "phase"),
    text("endpoint", "endpoint"),
    text("client", "client").priority(2).sparse(),
    Field::new(
        "request",
        "request",
        Measure::Id,
        Cell::IdOf("request", "request"),
    ),
    Field::new("id", "id", Measure::Id, Cell::Id).priority(4),
];
