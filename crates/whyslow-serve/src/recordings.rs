//! `recordings` and `status`: the served recordings, and the load of the server.

use axum::extract::{Request, State};
use axum::response::Response;
use serde_json::{Map, Value, json};
use whyslow_analysis::{TOPICS, Verb, View};
use whyslow_model::Symbols;
use whyslow_model::tables::LostEventsRow;
use whyslow_model::topic_state::TopicState;
use whyslow_store::{RecordingInfo, StoreError, Tables, rows};

use crate::open_recording::OpenRecording;
use crate::query::Query;
use crate::recording_set::ServedRecording;
use crate::reply::{self, Refusal};
use crate::server::Shared;

pub(crate) async fn recordings(
    State(shared): State<Shared>,
    request: Request,
) -> Result<Response, Refusal> {
    Query::of(request.uri())?.only(&[])?;
    let server = shared.clone();
    let all = shared.quick.run(move |_| {
        let served = server.recordings.all().iter();
        served
            .map(|served| about(served, &served.now(), &server))
            .collect::<Result<Vec<Value>, Refusal>>()
    });
    reply::json_document(&json!({
        "version": env!("CARGO_PKG_VERSION"),
        "recordings": all.await?,
    }))
}

pub(crate) async fn status(State(shared): State<Shared>) -> Result<Response, Refusal> {
    reply::json_document(&json!({
        "queries": shared.queue.status(),
        "charts": shared.quick.status(),
        "explanations": shared.slow.status(),
        "memory_bytes": shared.resident.bytes(),
        "confined": shared.is_confined,
    }))
}

fn about(
    served: &ServedRecording,
    current: &OpenRecording,
    shared: &Shared,
) -> Result<Value, Refusal> {
    let info = current.opened.tables.info();
    let counted = info.tables.iter().filter(|(_, table)| table.rows > 0);
    let rows: Map<String, Value> = counted
        .map(|(name, table)| (name.clone(), json!(table.rows)))
        .collect();
    let mut about = json!({
        "id": served.id,
        "name": current.opened.name(),
        "digest": current.digest,
        "host": info.host,
        "zone": info.zone,
        "begin_ns": info.begin_ns,
        "end_ns": info.end_ns,
        "live": served.is_live(),
        "rows": rows,
        "kinds": kinds(info, current.topic_states()?),
        "lost": lost(&*current.opened.tables)?,
        "tiles": current.charts.about(),
        "sql": shared.sql.about(),
    });
    if let (Some(cut), Some(focus)) = (&info.cut, info.focus()) {
        about["cut"] = json!({
            "digest": cut.digest,
            "begin_ns": cut.begin_ns,
            "end_ns": cut.end_ns,
        });
        // The default window of queries.
        about["focus"] = json!({"begin_ns": focus.begin, "end_ns": focus.end});
    }
    if let Some(hidden) = &info.redacted {
        about["redacted"] = json!(hidden);
    }
    if let Some(why) = served.live.as_ref().and_then(|live| live.ended()) {
        about["ended"] = json!(why);
    }
    Ok(about)
}

/// The available kinds and views, and whether the recording has data for them, with the reason if
/// not.
fn kinds(info: &RecordingInfo, states: &[TopicState]) -> Vec<Value> {
    let has_rows = |view: &View| {
        let table = info.tables.get(view.table().name);
        table.is_some_and(|table| table.rows > 0)
    };
    let topics = TOPICS.iter().zip(states).map(|(topic, state)| {
        let verbs: Vec<&str> = topic.views.iter().map(|view| view.verb.name()).collect();
        let by_time = topic.views.iter().filter(|view| view.by_time);
        let by_time: Vec<&str> = by_time.map(|view| view.verb.name()).collect();
        json!({
            "kind": topic.kind.name(),
            "about": topic.about,
            "verbs": verbs,
            "default": topic.default.map(Verb::name),
            "by_time": by_time,
            "recorded": topic.views.iter().any(has_rows),
            "state": state.name(),
            "count": state.count(),
            "reason": state.reason(),
            "record_with": state.record_with(),
        })
    });
    topics.collect()
}

fn lost(tables: &dyn Tables) -> Result<Vec<Value>, StoreError> {
    let mut symbols = Symbols::new();
    let found = rows::<LostEventsRow>(tables, &mut symbols)?;
    let ranges = found.iter().map(|row| {
        json!({
            "kind": symbols.get(row.kind),
            "count": row.count,
            "cpu": row.cpu,
            "begin_ns": row.ts,
            "end_ns": row.ts_end,
        })
    });
    Ok(ranges.collect())
}
