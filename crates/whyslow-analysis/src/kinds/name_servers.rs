//! `nameservers`: questions to name servers, and whether they were answered.

use whyslow_model::answer::Measure;
use whyslow_model::row::Row;
use whyslow_model::tables::DnsQueryRow;

use crate::key::Key;
use crate::query::{Kind, Verb};
use crate::spec::{Cell, Field, Hooks, Spec, Topic, View};

pub(crate) static TOPIC: Topic = Topic {
    kind: Kind::NameServers,
    about: "Questions to name servers (port 53): which were answered, how fast, and which were lost",
    examples: "\
  whyslow nameservers web.wsl                        by server, and how they ended
  whyslow nameservers stats web.wsl --by server,host which names were not answered
  whyslow nameservers top web.wsl                    those that took longest
  whyslow nameservers usage web.wsl                  who asked",
    views: &[
        View::new(
            Verb::Stats,
            "Count and latency by server and outcome",
            &QUESTIONS,
        ),
        View::new(Verb::Usage, "Time of questions by process", &QUESTIONS),
        View::new(Verb::Hist, "Latency histogram with percentiles", &QUESTIONS),
        View::new(Verb::Top, "Questions that took longest", &QUESTIONS),
        View::new(Verb::Log, "Questions in order of time", &QUESTIONS),
        View::new(
            Verb::Differs,
            "What these questions have that others have not: -w, --min, --vs",
            &QUESTIONS,
        ),
        View::new(Verb::Heat, "Latency over time", &QUESTIONS),
    ],
    default: Some(Verb::Stats),
    is_main: false,
};

static QUESTIONS: Spec = Spec {
    kind: Kind::NameServers,
    name: "nameservers",
    rows: "questions",
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
    id_prefix: "question",
    fields: FIELDS,
    hooks: Hooks::NONE,
};

const FIELDS: &[Field] = &[
    Field::new("ts_ns", "begin", Measure::Time, Cell::Int("ts")),
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
