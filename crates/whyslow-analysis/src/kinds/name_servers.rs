//! `nameservers`: DNS queries to name servers, and their replies.

use whyslow_model::answer::Measure;
use whyslow_model::row::Row;
use whyslow_model::tables::DnsQueryRow;

use crate::key::Key;
use crate::query::{Kind, Verb};
use crate::spec::{Cell, Field, Hooks, Spec, Topic, View};

pub(crate) static TOPIC: Topic = Topic {
    kind: Kind::NameServers,
    about: "DNS queries to name servers (port 53): replies, latency, retries and queries given up",
    examples: "\
  whyslow nameservers web.wsl                        by server and outcome
  whyslow nameservers stats web.wsl --by server,host  by server and queried name
  whyslow nameservers top web.wsl                    the longest queries
  whyslow nameservers usage web.wsl                  by process",
    views: &[
        View::new(
            Verb::Stats,
            "Count and latency by server and outcome",
            &QUERIES,
        ),
        View::new(Verb::Usage, "Time in DNS queries by process", &QUERIES),
        View::new(Verb::Hist, "Latency histogram with percentiles", &QUERIES),
        View::new(Verb::Top, "The longest queries", &QUERIES),
        View::new(Verb::Log, "Queries in chronological order", &QUERIES),
        View::new(
            Verb::Differs,
            "How selected queries (-w, --min, …) differ from the others (--vs)",
            &QUERIES,
        ),
        View::new(Verb::Heat, "Latency over time", &QUERIES),
    ],
    default: Some(Verb::Stats),
    is_main: false,
};

static QUERIES: Spec = Spec {
    kind: Kind::NameServers,
    name: "nameservers",
    rows: "DNS queries",
    table: DnsQueryRow::TABLE,
    only: &[],
    class: "outcome",
    classes: &["answered", "asked_again", "given_up"],
    group: &[Key::Server, Key::Outcome],
    series: &[],
    size: None,
    errno: None,
    lasting: false,
    owner: "utid",
    stages: &[],
    id_prefix: "query",
    fields: FIELDS,
    hooks: Hooks::NONE,
};

const FIELDS: &[Field] = &[
    Field::new("ts_ns", "start", Measure::Time, Cell::Int("ts")),
    Field::new("ts_end_ns", "end", Measure::Time, Cell::Int("ts_end")).priority(6),
    Field::new("dur_ns", "duration", Measure::Duration, Cell::Int("dur")),
    Field::new("server", "server", Measure::Text, Cell::Text("server")),
    Field::new("outcome", "outcome", Measure::Text, Cell::Text("outcome")),
    Field::new("host", "host", Measure::Path, Cell::Text("host")),
    Field::new("attempt", "attempt", Measure::Count, Cell::Int("attempt")).priority(3),
    Field::new("lookup", "lookup", Measure::Id, Cell::IdOf("dns", "lookup")).priority(2),
    Field::new("comm", "comm", Measure::Text, Cell::Text("comm")),
    Field::new("pid", "pid", Measure::Count, Cell::Int("pid")).priority(3),
    Field::new("tid", "tid", Measure::Count, Cell::Int("tid")),
    Field::new("cpu", "cpu", Measure::Count, Cell::Int("cpu")).priority(9),
    Field::new("id", "id", Measure::Id, Cell::Id).priority(1),
];
