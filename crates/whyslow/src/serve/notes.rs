//! `notes`: bookmarks of a recording, the only thing that is ever written for who asks. They lie in the
//! user's state folder, named after the content of the recording: it may be moved, and need not be
//! writable.

use std::fs::{self, DirBuilder, File};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use axum::body::to_bytes;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use tokio::time::timeout;
use whyslow_base::failure::Failure;

use super::Shared;
use super::reply::{self, Refusal};
use super::words::Query;

const BYTES_MAX: usize = 256 << 10;
const NOTES_MAX: usize = 1_000;
const NOTE_BYTES_MAX: usize = 4 << 10;
/// For the body to come.
const BODY_TIME_MAX: std::time::Duration = std::time::Duration::from_secs(20);

/// Something that somebody wants to find again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Note {
    ts_ns: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    end_ns: Option<i64>,
    #[serde(rename = "note")]
    text: String,
}

/// Where notes are kept; nowhere for who has no home.
#[derive(Debug)]
pub(super) struct Notes(Option<PathBuf>);

impl Notes {
    /// Below a state folder.
    pub(super) fn new(state: Option<&Path>) -> Self {
        Self(state.map(|state| state.join("notes")))
    }

    fn read(&self, digest: &str) -> Result<Vec<Note>, Failure> {
        let Some(path) = self.path(digest) else {
            return Ok(Vec::new());
        };
        let failed = |error| Failure::reading(&path, error);
        let file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(failed(error)),
        };
        let mut text = Vec::new();
        let mut limited = file.take(BYTES_MAX as u64 * 2);
        limited.read_to_end(&mut text).map_err(failed)?;
        serde_json::from_slice(&text).map_err(|error| failed(io::Error::other(error)))
    }

    fn write(&self, digest: &str, notes: &[Note]) -> Result<(), Failure> {
        let (Some(path), Some(folder)) = (self.path(digest), &self.0) else {
            return Err(
                Failure::new("there is no place for notes").hint("set XDG_STATE_HOME or HOME")
            );
        };
        let failed = |error| Failure::writing(&path, error);
        let mut builder = DirBuilder::new();
        let made = builder.recursive(true).mode(0o700).create(folder);
        made.map_err(failed)?;
        if notes.is_empty() {
            return match fs::remove_file(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => Err(failed(error)),
                _ => Ok(()),
            };
        }
        let text = serde_json::to_vec(notes).map_err(|error| failed(io::Error::other(error)))?;
        let mut file = tempfile::NamedTempFile::new_in(folder).map_err(failed)?;
        file.write_all(&text).map_err(failed)?;
        file.as_file().sync_all().map_err(failed)?;
        let kept = file.persist(&path);
        kept.map(drop).map_err(|error| failed(error.error))
    }

    fn path(&self, digest: &str) -> Option<PathBuf> {
        Some(self.0.as_ref()?.join(format!("{digest}.json")))
    }
}

pub(super) async fn get(
    State(shared): State<Shared>,
    request: Request,
) -> Result<Response, Refusal> {
    let query = Query::of(request.uri())?;
    query.only(&[])?;
    let held = shared.shelf.find(&query)?.now();
    let asked = shared.clone();
    let found = shared
        .quick
        .ask(move |_| Ok(asked.notes.read(&held.digest)?));
    reply::json_document(&found.await?)
}

pub(super) async fn put(
    State(shared): State<Shared>,
    request: Request,
) -> Result<Response, Refusal> {
    let query = Query::of(request.uri())?;
    query.only(&[])?;
    let book = shared.shelf.find(&query)?;
    if book.is_live() {
        return Err(Refusal::wrong("what is live keeps no notes: it goes by"));
    }
    let held = book.now();
    let late = |_| {
        Refusal::new(
            StatusCode::REQUEST_TIMEOUT,
            "the notes did not come in time",
        )
    };
    let body = timeout(BODY_TIME_MAX, to_bytes(request.into_body(), BYTES_MAX)).await;
    let body = body.map_err(late)?.map_err(|_| too_much())?;
    let notes = checked(&body)?;
    let asked = shared.clone();
    let written = shared
        .quick
        .ask(move |_| Ok(asked.notes.write(&held.digest, &notes)?));
    written.await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

fn too_much() -> Refusal {
    let error = format!(
        "notes are {NOTES_MAX} at most, of {NOTE_BYTES_MAX} bytes each and {BYTES_MAX} together"
    );
    Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, error)
}

fn checked(body: &[u8]) -> Result<Vec<Note>, Refusal> {
    let notes: Vec<Note> = serde_json::from_slice(body).map_err(|error| {
        Refusal::wrong(format!("these are no notes: {error}"))
            .hint("a list of {\"ts_ns\": …, \"end_ns\": …, \"note\": \"…\"}; end_ns may be missing")
    })?;
    let is_long = |note: &Note| note.text.len() > NOTE_BYTES_MAX;
    if notes.len() > NOTES_MAX || notes.iter().any(is_long) {
        return Err(too_much());
    }
    let is_backwards = |note: &&Note| note.end_ns.is_some_and(|end| end < note.ts_ns);
    if let Some(note) = notes.iter().find(is_backwards) {
        let error = format!("a note ends before it begins, at {}", note.ts_ns);
        return Err(Refusal::wrong(error));
    }
    Ok(notes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_are_kept_by_recording_and_for_their_owner_alone() {
        let state = tempfile::tempdir().expect("a temporary folder");
        let notes = Notes::new(Some(state.path()));
        let some = vec![Note {
            ts_ns: i64::MIN,
            end_ns: Some(i64::MAX),
            text: "<b>\u{202e}\n".to_owned(),
        }];
        assert_eq!(notes.read("a").expect("none yet"), []);
        notes.write("a", &some).expect("it can be written");
        assert_eq!(notes.read("a").expect("they are there"), some);
        assert_eq!(notes.read("b").expect("none"), []);
        let path = notes.path("a").expect("a place");
        let mode = |path: &Path| {
            let about = fs::metadata(path).expect("it is there");
            std::os::unix::fs::PermissionsExt::mode(&about.permissions()) & 0o777
        };
        assert_eq!(mode(&path), 0o600);
        assert_eq!(mode(path.parent().expect("a folder")), 0o700);
        notes.write("a", &[]).expect("it can be written");
        assert!(!path.exists());
        notes.write("a", &[]).expect("twice, too");
        fs::write(&path, "nonsense").expect("it can be written");
        assert!(notes.read("a").is_err());
    }

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
