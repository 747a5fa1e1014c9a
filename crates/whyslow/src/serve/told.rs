//! `explain` and `why`.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::Response;
use serde_json::{Value, json};
use whyslow_base::args::{Format, OutputArgs};
use whyslow_base::failure::Failure;
use whyslow_explain::{MECHANISMS_TOLD, why};
use whyslow_model::mechanism::MECHANISMS;
use whyslow_sources::recording::Opened;
use whyslow_store::Tables;

use super::limited::{Gauge, Limited};
use super::questions::wrong_words;
use super::reply::{self, Refusal};
use super::shelf::Held;
use super::words::{self, Query};
use super::{Shared, form};
use crate::cli::{Cli, Command, ExplainArgs};
use crate::commands::explain::{Beside, Hosts, report};

pub(super) async fn explain(
    State(shared): State<Shared>,
    request: Request,
) -> Result<Response, Refusal> {
    let query = Query::of(request.uri())?;
    let format = form::of(request.headers(), &query)?;
    if !matches!(format, Format::Json | Format::Md | Format::Text) {
        let error = "explanations have the forms json, md and text";
        return Err(Refusal::new(StatusCode::NOT_ACCEPTABLE, error));
    }
    let book = shared.shelf.find(&query)?;
    let held = book.now();
    let place = std::path::absolute(held.opened.path()).unwrap_or_default();
    let spoken = words::spoken(&["explain"], (&place, &book.word), &query)?;
    let read = Cli::read(&spoken.words).map_err(wrong_words)?;
    let Command::Explain(args) = read.command else {
        return Err(Refusal::wrong("that is no question"));
    };
    let beside = Beside::opened_by(&args, |name| {
        let found = shared.shelf.named(name);
        let unknown = || Failure::usage("the server does not show the recording of `vs`");
        found
            .map(|held| Arc::clone(&held.opened))
            .ok_or_else(unknown)
    })?;
    let hosts = Hosts::opened_by(&args, |name| {
        let found = shared.shelf.named(name);
        let unknown = || {
            Failure::usage(format!(
                "the server does not show the recording `{name}` of `across`"
            ))
            .hint("`recordings` lists those that it was started with")
        };
        found
            .map(|held| Arc::clone(&held.opened))
            .ok_or_else(unknown)
    })?;
    let (command, is_live) = (spoken.command, book.is_live());
    let key = key(
        &shared,
        &held,
        &spoken.flags,
        (format, beside.as_ref(), &hosts),
    );
    let turn = shared.memo.turn(&key);
    let _turn = turn.lock().await;
    let body = if let Some(body) = shared.memo.get(&key) {
        body
    } else {
        let written = shared
            .slow
            .ask(move |gauge| write(&args, &held, (beside.as_ref(), &hosts, gauge), format));
        let body = Arc::new(written.await?);
        if is_live {
            shared.memo.hold(&key, &body);
        } else {
            shared.memo.put(&key, &body);
        }
        body
    };
    let body = said(&body, format, &command);
    let media_type = form::media_type(format);
    Ok(reply::with_command(media_type, &command, body))
}

/// The same whatever the recording is called, and in whatever order it is asked.
fn key(
    shared: &Shared,
    held: &Held,
    flags: &[String],
    (format, beside, hosts): (Format, Option<&Beside>, &Hosts),
) -> String {
    let mut flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    flags.sort_unstable();
    // That of the default is looked for by others, too: it has no more than the recording.
    let form = (format != Format::Json).then(|| form::media_type(format));
    flags.extend(form);
    let path = beside.and_then(Beside::path);
    let other = path.and_then(|path| shared.shelf.named(&path.display().to_string()));
    let other = other.map(|held| held.digest.clone());
    flags.extend(other.as_deref());
    let digest = |opened: &Opened| {
        let held = shared.shelf.named(&opened.path().display().to_string());
        held.map(|held| held.digest.clone())
    };
    let of_hosts: Vec<String> = hosts.opened().filter_map(digest).collect();
    flags.extend(of_hosts.iter().map(String::as_str));
    shared.memo.key(&held.identity(), &flags)
}

/// The document with the command, which is not kept with it: the recording may be named otherwise.
fn said(body: &[u8], format: Format, command: &str) -> Vec<u8> {
    let Some(rest) = body.strip_prefix(b"{").filter(|_| format == Format::Json) else {
        return body.to_vec();
    };
    let mut text = format!("{{\"cli\":{},", json!(command)).into_bytes();
    text.extend_from_slice(rest);
    text
}

fn write(
    args: &ExplainArgs,
    held: &Held,
    (beside, hosts, gauge): (Option<&Beside>, &Hosts, &Gauge),
    format: Format,
) -> Result<Vec<u8>, Refusal> {
    let opened = &held.opened;
    let tables = Limited::new(&*opened.tables, gauge);
    let others = beside.and_then(Beside::tables);
    let others = others.map(|others| Limited::new(others, gauge));
    let other = beside.map(|beside| {
        let others = others.as_ref().map(|others| -> &dyn Tables { others });
        beside.other((opened, &tables), others, args)
    });
    let of_hosts: Vec<Limited<'_>> = hosts
        .opened()
        .map(|opened| Limited::new(&*opened.tables, gauge))
        .collect();
    let of_hosts = hosts.with(of_hosts.iter().map(|tables| -> &dyn Tables { tables }));
    let (report, calendar) = report(args, opened, &tables, other.transpose()?, &of_hosts)?;
    if format == Format::Json {
        let failed = |error| Failure::new(format!("failed to write JSON: {error}"));
        return Ok(serde_json::to_vec(&report).map_err(failed)?);
    }
    let output = OutputArgs {
        format,
        ..args.output.clone()
    };
    let text = whyslow_render::stories::to_text(&report, &opened.subject(), &calendar, &output)?;
    Ok(text.into_bytes())
}

/// What is known of a mechanism in general, or of all.
pub(super) async fn mechanism(request: Request) -> Result<Response, Refusal> {
    let query = Query::of(request.uri())?;
    query.only(&["mechanism"])?;
    let Some(id) = query.get("mechanism") else {
        let all: Vec<Value> = MECHANISMS_TOLD.iter().map(about).collect();
        return reply::json_document(&json!({"mechanisms": all}));
    };
    let unknown = || {
        let error = format!("there is no mechanism `{id}`");
        Refusal::new(StatusCode::NOT_FOUND, error).hint("without `mechanism` all are told")
    };
    reply::json_document(&about(why(id).ok_or_else(unknown)?))
}

fn about(told: &whyslow_explain::Mechanism) -> Value {
    let short = MECHANISMS.iter().find(|(id, _)| *id == told.id);
    json!({
        "id": told.id,
        "short": short.map(|(_, meaning)| meaning),
        "what": told.what,
        "recognised": told.recognised,
        "advice": told.advice,
        "reference": told.reference,
    })
}
