//! `explain` and `why`.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::Response;
use serde_json::{Value, json};
use whyslow_base::args::{Format, OutputArgs};
use whyslow_base::failure::Failure;
use whyslow_explain::{AdviceRule, DESCRIBED_MECHANISMS};
use whyslow_model::mechanism::MECHANISMS;
use whyslow_sources::recording::Opened;
use whyslow_store::Tables;

use crate::command_line::{Explained, Explanation};
use crate::form;
use crate::limited::{Gauge, Limited};
use crate::open_recording::OpenRecording;
use crate::queries::wrong_words;
use crate::query::{self, Query};
use crate::reply::{self, Refusal};
use crate::server::Shared;

pub(crate) async fn explain(
    State(shared): State<Shared>,
    request: Request,
) -> Result<Response, Refusal> {
    let query = Query::of(request.uri())?;
    let format = form::of(request.headers(), &query)?;
    if !matches!(format, Format::Json | Format::Md | Format::Text) {
        let error = "unsupported format: use json, md or text";
        return Err(Refusal::new(StatusCode::NOT_ACCEPTABLE, error));
    }
    let served = shared.recordings.find(&query)?;
    let current = served.now();
    let place = std::path::absolute(current.opened.path()).unwrap_or_default();
    let command_words = query::command_words(
        &*shared.command_line,
        &["explain"],
        (&place, &served.word),
        &query,
    )?;
    let explanation = shared
        .command_line
        .explanation(&command_words.words)
        .map_err(wrong_words)?
        .ok_or_else(|| Refusal::wrong("invalid query"))?;
    let explained = open(&shared, explanation)?;
    let (command, is_live) = (command_words.command, served.is_live());
    let key = key(
        &shared,
        &current,
        &command_words.flags,
        (format, &*explained),
    );
    let key_lock = shared.memo.key_lock(&key);
    let _guard = key_lock.lock().await;
    let body = if let Some(body) = shared.memo.get(&key) {
        body
    } else {
        let written = shared
            .slow
            .run(move |gauge| write(&*explained, &current, gauge, format));
        let body = Arc::new(written.await?);
        if is_live {
            shared.memo.hold(&key, &body);
        } else {
            shared.memo.put(&key, &body);
        }
        body
    };
    let body = add_command(&body, format, &command);
    let media_type = form::media_type(format);
    Ok(reply::with_command(media_type, &command, body))
}

/// Opens the recordings of `vs` and `across`, which have to be served as well.
fn open(shared: &Shared, explanation: Box<dyn Explanation>) -> Result<Box<dyn Explained>, Failure> {
    let opened = |name: &str| {
        let found = shared.recordings.named(name);
        found.map(|current| Arc::clone(&current.opened))
    };
    let versus = |name: &str| {
        let unknown = || {
            Failure::usage(
                "cannot compare with the recording of `vs`: the server does not serve it",
            )
        };
        opened(name).ok_or_else(unknown)
    };
    let across = |name: &str| {
        let unknown = || {
            Failure::usage(format!(
                "cannot follow requests into `{name}`: the server does not serve it"
            ))
            .hint("see `recordings` for the served recordings")
        };
        opened(name).ok_or_else(unknown)
    };
    explanation.open(&versus, &across)
}

/// The same key whatever the recording's name is, and in whatever order the parameters are.
fn key(
    shared: &Shared,
    current: &OpenRecording,
    flags: &[String],
    (format, explained): (Format, &dyn Explained),
) -> String {
    let mut flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    flags.sort_unstable();
    // The default format is not part of the key, because search looks reports up without it.
    let form = (format != Format::Json).then(|| form::media_type(format));
    flags.extend(form);
    let path = explained.versus().map(Opened::path);
    let other = path.and_then(|path| shared.recordings.named(&path.display().to_string()));
    let other = other.map(|current| current.digest.clone());
    flags.extend(other.as_deref());
    let digest = |opened: &Opened| {
        let current = shared
            .recordings
            .named(&opened.path().display().to_string());
        current.map(|current| current.digest.clone())
    };
    let of_hosts: Vec<String> = explained.across().into_iter().filter_map(digest).collect();
    flags.extend(of_hosts.iter().map(String::as_str));
    shared.memo.key(&current.identity(), &flags)
}

/// The document with the command, which is not stored with it: the recording may have another name.
fn add_command(body: &[u8], format: Format, command: &str) -> Vec<u8> {
    let Some(rest) = body.strip_prefix(b"{").filter(|_| format == Format::Json) else {
        return body.to_vec();
    };
    let mut text = format!("{{\"cli\":{},", json!(command)).into_bytes();
    text.extend_from_slice(rest);
    text
}

fn write(
    explained: &dyn Explained,
    current: &OpenRecording,
    gauge: &Gauge,
    format: Format,
) -> Result<Vec<u8>, Refusal> {
    let opened = &current.opened;
    let tables = Limited::new(&*opened.tables, gauge);
    let versus = explained.versus();
    let versus = versus.map(|opened| Limited::new(&*opened.tables, gauge));
    let versus = versus.as_ref().map(|tables| -> &dyn Tables { tables });
    let across = explained.across();
    let across: Vec<Limited<'_>> = across
        .iter()
        .map(|opened| Limited::new(&*opened.tables, gauge))
        .collect();
    let across: Vec<&dyn Tables> = across
        .iter()
        .map(|tables| -> &dyn Tables { tables })
        .collect();
    let (report, calendar) = explained.report(opened, &tables, versus, &across)?;
    if format == Format::Json {
        let failed = |error| Failure::new(format!("cannot write JSON: {error}"));
        return Ok(serde_json::to_vec(&report).map_err(failed)?);
    }
    let output = OutputArgs {
        format,
        ..explained.output().clone()
    };
    let text = whyslow_render::findings::to_text(&report, &opened.subject(), &calendar, &output)?;
    Ok(text.into_bytes())
}

/// The description of one mechanism, or of all.
pub(crate) async fn mechanism(request: Request) -> Result<Response, Refusal> {
    let query = Query::of(request.uri())?;
    query.only(&["mechanism"])?;
    let Some(id) = query.get("mechanism") else {
        let all: Vec<Value> = DESCRIBED_MECHANISMS.iter().map(about).collect();
        return reply::json_document(&json!({"mechanisms": all}));
    };
    let unknown = || {
        let error = format!("unknown mechanism `{id}`");
        Refusal::new(StatusCode::NOT_FOUND, error).hint("omit `mechanism` to list all")
    };
    reply::json_document(&about(whyslow_explain::mechanism(id).ok_or_else(unknown)?))
}

fn about(mechanism: &whyslow_explain::Mechanism) -> Value {
    let short = MECHANISMS.iter().find(|(id, _)| *id == mechanism.id);
    let advice: Vec<String> = mechanism.advice.iter().map(AdviceRule::general).collect();
    json!({
        "id": mechanism.id,
        "short": short.map(|(_, meaning)| meaning),
        "what": mechanism.what,
        "recognised": mechanism.recognised,
        "advice": advice,
        "reference": mechanism.reference,
    })
}
