//! The recordings that a terminal, or a user, made or used: the most recent first.

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// Entries that are kept.
const ENTRIES_MAX: usize = 32;
/// Terminals that were not used for this time are forgotten.
const AGE_MAX: Duration = Duration::from_hours(30 * 24);

/// A recording, and the directory in which the command ran.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) recording: PathBuf,
    pub(super) directory: PathBuf,
}

impl Entry {
    /// Whether it is stored in a directory, or was made or used there.
    pub(super) fn is_in(&self, directory: &Path) -> bool {
        self.directory == directory || self.recording.parent() == Some(directory)
    }
}

#[derive(Debug, Clone, Default)]
pub(super) struct History {
    pub(super) entries: Vec<Entry>,
    /// When the first entry was added.
    pub(super) used: Option<SystemTime>,
}

impl History {
    pub(super) fn read(file: &Path) -> Self {
        let words = fs::read(file).unwrap_or_default();
        let mut words = words
            .split(|byte| *byte == 0)
            .filter(|word| !word.is_empty());
        let mut path = || {
            let word = words.next()?.to_vec();
            Some(PathBuf::from(OsString::from_vec(word)))
        };
        let mut entries = Vec::new();
        while let (Some(recording), Some(directory)) = (path(), path()) {
            entries.push(Entry {
                recording,
                directory,
            });
        }
        let used = fs::metadata(file).and_then(|about| about.modified());
        Self {
            entries,
            used: used.ok(),
        }
    }

    pub(super) fn has(&self, recording: &Path) -> bool {
        let mut entries = self.entries.iter();
        entries.any(|entry| entry.recording == recording)
    }

    /// Adds a recording in front. Errors are ignored: the user can always specify it.
    pub(super) fn add(file: &Path, entry: Entry) {
        let mut entries = Self::read(file).entries;
        entries.retain(|known| known.recording != entry.recording);
        entries.insert(0, entry);
        entries.truncate(ENTRIES_MAX);
        let mut bytes = Vec::new();
        for entry in &entries {
            for path in [&entry.recording, &entry.directory] {
                bytes.extend_from_slice(path.as_os_str().as_bytes());
                bytes.push(0);
            }
        }
        if let Some(folder) = file.parent() {
            let _ = fs::create_dir_all(folder);
        }
        let _ = fs::write(file, bytes);
    }
}

/// The histories of all terminals but one.
pub(super) fn others(folder: &Path, own: &Path) -> Vec<History> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let files = entries.map(|entry| entry.path());
    let files = files.filter(|file| file != own);
    files.map(|file| History::read(&file)).collect()
}

/// Deletes the histories of terminals that were not used for long.
pub(super) fn forget_old(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let modified = entry.metadata().and_then(|about| about.modified());
        let is_old = modified.is_ok_and(|at| at.elapsed().is_ok_and(|age| age > AGE_MAX));
        if is_old {
            let _ = fs::remove_file(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use whyslow_base::private_folder::PrivateFolder;

    use super::*;

    #[test]
    fn a_history_has_each_recording_once_and_the_last_one_first() {
        let folder = PrivateFolder::new(&std::env::temp_dir(), "whyslow-test-history-");
        let folder = folder.expect("a temporary folder");
        let file = folder.path().join("terminals/1-2");
        let add = |name: &str| {
            let entry = Entry {
                recording: PathBuf::from(format!("/data/{name}")),
                directory: "/root".into(),
            };
            History::add(&file, entry);
        };
        for number in 0..40 {
            add(&format!("{number}.wsl"));
        }
        add("39.wsl");
        add("with\nnewline.wsl");
        let history = History::read(&file);
        assert_eq!(history.entries.len(), ENTRIES_MAX);
        let first = &history.entries[0];
        assert_eq!(first.recording, Path::new("/data/with\nnewline.wsl"));
        assert!(first.is_in(Path::new("/root")) && first.is_in(Path::new("/data")));
        assert!(!first.is_in(Path::new("/")));
        assert_eq!(history.entries[1].recording, Path::new("/data/39.wsl"));
        assert_eq!(history.entries[2].recording, Path::new("/data/38.wsl"));
        assert!(history.has(Path::new("/data/20.wsl")) && history.used.is_some());
        assert!(!history.has(Path::new("/data/2.wsl")));
        assert!(
            History::read(&folder.path().join("none"))
                .entries
                .is_empty()
        );
    }
}
