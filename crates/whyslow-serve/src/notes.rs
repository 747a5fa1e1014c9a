//! `notes`: reads and replaces the bookmarks of a recording.

use axum::body::to_bytes;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use tokio::time::timeout;

use crate::note_store::{BYTES_MAX, Note};
use crate::query::Query;
use crate::reply::{self, Refusal};
use crate::server::Shared;

const NOTES_MAX: usize = 1_000;
const NOTE_BYTES_MAX: usize = 4 << 10;
/// Timeout for the request body.
const BODY_TIME_MAX: std::time::Duration = std::time::Duration::from_secs(20);

pub(crate) async fn get(
    State(shared): State<Shared>,
    request: Request,
) -> Result<Response, Refusal> {
    let query = Query::of(request.uri())?;
    query.only(&[])?;
    let current = shared.recordings.find(&query)?.now();
    let server = shared.clone();
    let found = shared
        .quick
        .run(move |_| Ok(server.notes.read(&current.digest)?));
    reply::json_document(&found.await?)
}

pub(crate) async fn put(
    State(shared): State<Shared>,
    request: Request,
) -> Result<Response, Refusal> {
    let query = Query::of(request.uri())?;
    query.only(&[])?;
    let served = shared.recordings.find(&query)?;
    if served.is_live() {
        return Err(Refusal::wrong("cannot add notes to @live"));
    }
    let current = served.now();
    let late = |_| {
        Refusal::new(
            StatusCode::REQUEST_TIMEOUT,
            "timeout while reading the request body",
        )
    };
    let body = timeout(BODY_TIME_MAX, to_bytes(request.into_body(), BYTES_MAX)).await;
    let body = body.map_err(late)?.map_err(|_| too_much())?;
    let notes = checked(&body)?;
    let server = shared.clone();
    let written = shared
        .quick
        .run(move |_| Ok(server.notes.write(&current.digest, &notes)?));
    written.await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

fn too_much() -> Refusal {
    let error = format!(
        "at most {NOTES_MAX} notes of {NOTE_BYTES_MAX} bytes each and {BYTES_MAX} bytes in total are allowed"
    );
    Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, error)
}

fn checked(body: &[u8]) -> Result<Vec<Note>, Refusal> {
    let notes: Vec<Note> = serde_json::from_slice(body).map_err(|error| {
        Refusal::wrong(format!("cannot parse the notes: {error}")).hint(
            "send a list of {\"ts_ns\": …, \"end_ns\": …, \"note\": \"…\"}; end_ns is optional",
        )
    })?;
    let is_long = |note: &Note| note.text.len() > NOTE_BYTES_MAX;
    if notes.len() > NOTES_MAX || notes.iter().any(is_long) {
        return Err(too_much());
    }
    let is_backwards = |note: &&Note| note.end_ns.is_some_and(|end| end < note.ts_ns);
    if let Some(note) = notes.iter().find(is_backwards) {
        let error = format!("the note at {} ends before its start", note.ts_ns);
        return Err(Refusal::wrong(error));
    }
    Ok(notes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_list_of_notes_is_refused() {
        let check = |text: &str, want: Option<StatusCode>| {
            let got = checked(text.as_bytes()).err().map(|refusal| refusal.status);
            assert_eq!(got, want, "{text:.80}");
        };
        let wrong = Some(StatusCode::BAD_REQUEST);
        let large = Some(StatusCode::PAYLOAD_TOO_LARGE);
        check("[]", None);
        check(r#"[{"ts_ns":1,"note":""}]"#, None);
        check(r#"[{"ts_ns":1,"end_ns":1,"note":"x"}]"#, None);
        check(r#"[{"ts_ns":2,"end_ns":1,"note":"x"}]"#, wrong);
        check(r#"[{"ts_ns":1}]"#, wrong);
        check(r#"[{"ts_ns":1.5,"note":"x"}]"#, wrong);
        check(r#"[{"ts_ns":1,"note":"x","more":1}]"#, wrong);
        check("{}", wrong);
        check("", wrong);
        let long = format!(r#"[{{"ts_ns":1,"note":"{}"}}]"#, "x".repeat(5000));
        check(&long, large);
        let many = vec![r#"{"ts_ns":1,"note":""}"#; NOTES_MAX + 1].join(",");
        check(&format!("[{many}]"), large);
    }
}
