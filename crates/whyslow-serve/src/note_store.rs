//! `notes`: bookmarks of a recording, the only thing that clients can write. They are in the user's
//! state directory, named after the content of the recording, which may be moved and need not be
//! writable.

use std::fs::{self, DirBuilder, File};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use whyslow_base::failure::Failure;

/// Maximum size of all notes of a recording.
pub(crate) const BYTES_MAX: usize = 256 << 10;

/// A bookmark.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Note {
    pub(crate) ts_ns: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) end_ns: Option<i64>,
    #[serde(rename = "note")]
    pub(crate) text: String,
}

/// The directory of the notes; `None` without a home directory.
#[derive(Debug)]
pub(crate) struct Notes(Option<PathBuf>);

impl Notes {
    /// In a subdirectory of the state directory.
    pub(crate) fn new(state: Option<&Path>) -> Self {
        Self(state.map(|state| state.join("notes")))
    }

    pub(crate) fn read(&self, digest: &str) -> Result<Vec<Note>, Failure> {
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

    pub(crate) fn write(&self, digest: &str, notes: &[Note]) -> Result<(), Failure> {
        let (Some(path), Some(folder)) = (self.path(digest), &self.0) else {
            return Err(Failure::new("cannot store notes: no home directory")
                .hint("set XDG_STATE_HOME or HOME"));
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
        assert_eq!(notes.read("a").expect("no notes yet"), []);
        notes.write("a", &some).expect("writable");
        assert_eq!(notes.read("a").expect("readable"), some);
        assert_eq!(notes.read("b").expect("none"), []);
        let path = notes.path("a").expect("a place");
        let mode = |path: &Path| {
            let about = fs::metadata(path).expect("it exists");
            std::os::unix::fs::PermissionsExt::mode(&about.permissions()) & 0o777
        };
        assert_eq!(mode(&path), 0o600);
        assert_eq!(mode(path.parent().expect("a folder")), 0o700);
        notes.write("a", &[]).expect("writable");
        assert!(!path.exists());
        notes.write("a", &[]).expect("writable twice");
        fs::write(&path, "nonsense").expect("writable");
        assert!(notes.read("a").is_err());
    }
}
