//! The suggested next query after an answer.

use whyslow_model::answer::{AnswerTable, Value};

use crate::query::{Kind, Query, Verb};

pub(crate) fn step(query: &Query, tables: &[AnswerTable]) -> Option<String> {
    let kind = query.kind.name();
    match (query.kind, query.verb) {
        (Kind::Io | Kind::Block | Kind::States, Verb::Stats | Verb::Hist | Verb::Heat) => {
            (!tables.is_empty()).then(|| format!("whyslow {kind} top"))
        }
        (Kind::Io | Kind::Block, Verb::Top) => {
            let id = longest(tables)?;
            Some(format!("whyslow {kind} log --overlaps {id}"))
        }
        (Kind::Locks, Verb::Top | Verb::Stats) => Some("whyslow locks chains".into()),
        (Kind::Io, Verb::Usage) => Some("whyslow io usage --by file".into()),
        (Kind::Block, Verb::Outliers) => {
            let (bad, good) = bad_and_good(tables)?;
            Some(format!("whyslow block hist --dev {bad} --vs {good}"))
        }
        (Kind::Block, Verb::Usage) => Some("whyslow block stats".into()),
        (Kind::Files, Verb::Top) if query.by.is_empty() => {
            Some("whyslow files top --by pattern".into())
        }
        _ => None,
    }
}

/// The first device that deviates from its peers, and one that does not.
fn bad_and_good(tables: &[AnswerTable]) -> Option<(&str, &str)> {
    let devices = tables.iter().find(|table| table.name == "devices")?;
    let place = |name: &str| {
        devices
            .columns
            .iter()
            .position(|column| column.name == name)
    };
    let (name, words) = (place("dev")?, place("vs_peers")?);
    let bad = devices.rows.get(*devices.outliers.first()?)?;
    let mut rows = devices.rows.iter().rev();
    let good = rows.find(|row| match row.get(words) {
        Some(Value::Text(words)) => words.starts_with("like its peers"),
        _ => false,
    })?;
    match (bad.get(name)?, good.get(name)?) {
        (Value::Text(bad), Value::Text(good)) => Some((bad, good)),
        _ => None,
    }
}

/// Id of the longest row of several tables.
fn longest(tables: &[AnswerTable]) -> Option<&str> {
    let rows = tables.iter().flat_map(|table| {
        let place = |name: &str| table.columns.iter().position(|column| column.name == name);
        let places = place("dur_ns").zip(place("id"));
        table.rows.iter().filter_map(move |row| {
            let (dur, id) = places?;
            match (row.get(dur), row.get(id)) {
                (Some(Value::Int(dur)), Some(Value::Text(id))) => Some((*dur, id.as_str())),
                _ => None,
            }
        })
    });
    let longest = rows.max_by_key(|(dur, id)| (*dur, std::cmp::Reverse(*id)));
    longest.map(|(_, id)| id)
}
