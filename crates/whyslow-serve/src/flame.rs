//! `flame`: merged stacks of a window, as `export svg` draws them.

use axum::extract::{Request, State};
use axum::response::Response;

use crate::limited::Limited;
use crate::queries::wrong_words;
use crate::query::{self, Query};
use crate::reply::{self, Refusal};
use crate::server::Shared;

pub(crate) async fn flame(
    State(shared): State<Shared>,
    request: Request,
) -> Result<Response, Refusal> {
    let query = Query::of(request.uri())?;
    let served = shared.recordings.find(&query)?;
    let current = served.now();
    let place = std::path::absolute(current.opened.path()).unwrap_or_default();
    let command_words = query::command_words(
        &*shared.command_line,
        &["export", "svg"],
        (&place, &served.word),
        &query,
    )?;
    let query = shared
        .command_line
        .flame_graph(&command_words.words)
        .map_err(wrong_words)?
        .ok_or_else(|| Refusal::wrong("invalid query"))?;
    let command = command_words.command.clone();
    let merged = shared.queue.run(move |gauge| {
        let tables = Limited::new(&*current.opened.tables, gauge);
        let (merged, weight) = query.graph(&current.opened, &tables)?;
        let mut answer = merged.to_json();
        answer["weight"] = weight.name().into();
        answer["cli"] = command.into();
        Ok(answer)
    });
    let body = serde_json::to_vec(&merged.await?).unwrap_or_default();
    Ok(reply::with_command(
        "application/json",
        &command_words.command,
        body,
    ))
}
