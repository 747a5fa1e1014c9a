//! `recordings` and `status`: what there is, and how busy the server is.

use axum::extract::{Request, State};
use axum::response::Response;
use serde_json::{Map, Value, json};
use whyslow_analysis::{TOPICS, Verb, View};
use whyslow_model::Symbols;
use whyslow_model::tables::LostEventsRow;
use whyslow_store::{RecordingInfo, StoreError, Tables, rows};

use crate::held::Held;
use crate::query::Query;
use crate::reply::{self, Refusal};
use crate::server::Shared;
use crate::shelf::Book;

pub(crate) async fn recordings(
    State(shared): State<Shared>,
    request: Request,
) -> Result<Response, Refusal> {
    Query::of(request.uri())?.only(&[])?;
    let asked = shared.clone();
    let all = shared.quick.ask(move |_| {
        let books = asked.shelf.books().iter();
        books
            .map(|book| about(book, &book.now(), &asked))
            .collect::<Result<Vec<Value>, Refusal>>()
    });
    reply::json_document(&json!({
        "version": env!("CARGO_PKG_VERSION"),
        "recordings": all.await?,
    }))
}

pub(crate) async fn status(State(shared): State<Shared>) -> Result<Response, Refusal> {
    reply::json_document(&json!({
        "questions": shared.desk.status(),
        "charts": shared.quick.status(),
        "explanations": shared.slow.status(),
        "memory_bytes": shared.resident.bytes(),
        "confined": shared.is_confined,
    }))
}

fn about(book: &Book, held: &Held, shared: &Shared) -> Result<Value, Refusal> {
    let info = held.opened.tables.info();
    let counted = info.tables.iter().filter(|(_, table)| table.rows > 0);
    let rows: Map<String, Value> = counted
        .map(|(name, table)| (name.clone(), json!(table.rows)))
        .collect();
    let mut about = json!({
        "id": book.id,
        "name": held.opened.name(),
        "digest": held.digest,
        "host": info.host,
        "zone": info.zone,
        "begin_ns": info.begin_ns,
        "end_ns": info.end_ns,
        "live": book.is_live(),
        "rows": rows,
        "kinds": kinds(info),
        "lost": lost(&*held.opened.tables)?,
        "tiles": held.charts.about(),
        "sql": shared.sql.about(),
    });
    if let (Some(cut), Some(focus)) = (&info.cut, info.focus()) {
        about["cut"] = json!({
            "digest": cut.digest,
            "begin_ns": cut.begin_ns,
            "end_ns": cut.end_ns,
        });
        // What questions without a window are about.
        about["focus"] = json!({"begin_ns": focus.begin, "end_ns": focus.end});
    }
    if let Some(hidden) = &info.redacted {
        about["redacted"] = json!(hidden);
    }
    if let Some(why) = book.live.as_ref().and_then(|live| live.ended()) {
        about["ended"] = json!(why);
    }
    Ok(about)
}

/// What can be asked, and whether there is anything of it; why not is told by the answer.
fn kinds(info: &RecordingInfo) -> Vec<Value> {
    let has_rows = |view: &View| {
        let table = info.tables.get(view.table().name);
        table.is_some_and(|table| table.rows > 0)
    };
    let topics = TOPICS.iter().map(|topic| {
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
