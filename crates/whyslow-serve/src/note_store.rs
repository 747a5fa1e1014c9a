//! `notes`: bookmarks of a recording, the only thing that is ever written for who asks. They lie in the
//! user's state folder, named after the content of the recording: it may be moved, and need not be
//! writable.

use std::fs::{self, DirBuilder, File};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use whyslow_base::failure::Failure;

/// Of all notes of a recording together.
pub(crate) const BYTES_MAX: usize = 256 << 10;

/// Something that somebody wants to find again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Note {
    pub(crate) ts_ns: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) end_ns: Option<i64>,
    #[serde(rename = "note")]
    pub(crate) text: String,
}

/// Where notes are kept; nowhere for who has no home.
#[derive(Debug)]
pub(crate) struct Notes(Option<PathBuf>);

impl Notes {
    /// Below a state folder.
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
}
