//! `flame`: stacks of a window merged, as `export svg` draws them.

use axum::extract::{Request, State};
use axum::response::Response;

use super::Shared;
use super::limited::Limited;
use super::questions::wrong_words;
use super::reply::{self, Refusal};
use super::words::{self, Query};
use crate::cli::{Cli, Command, ExportCommand};
use crate::commands::export::stacks::{graph, weight};

pub(super) async fn flame(
    State(shared): State<Shared>,
    request: Request,
) -> Result<Response, Refusal> {
    let query = Query::of(request.uri())?;
    let book = shared.shelf.find(&query)?;
    let held = book.now();
    let place = std::path::absolute(held.opened.path()).unwrap_or_default();
    let spoken = words::spoken(&["export", "svg"], (&place, &book.word), &query)?;
    let Command::Export(command) = Cli::read(&spoken.words).map_err(wrong_words)?.command else {
        return Err(Refusal::wrong("that is no question"));
    };
    let ExportCommand::Svg(args) = *command else {
        return Err(Refusal::wrong("that is no question"));
    };
    let command = spoken.command.clone();
    let merged = shared.desk.ask(move |gauge| {
        let tables = Limited::new(&*held.opened.tables, gauge);
        let merged = graph(&args, &held.opened, &tables)?;
        let mut answer = merged.to_json();
        answer["weight"] = weight(&args.stacks, &held.opened).name().into();
        answer["cli"] = command.into();
        Ok(answer)
    });
    let body = serde_json::to_vec(&merged.await?).unwrap_or_default();
    Ok(reply::with_command(
        "application/json",
        &spoken.command,
        body,
    ))
}
