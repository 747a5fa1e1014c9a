//! `@last`: the newest recording of the working directory, else the last one that this terminal
//! made or used, else the user. Histories of both are kept in the user's state directory.
//!
//! Several people may be logged in as the same user: recordings that only another terminal made or
//! used are not taken from the working directory.

use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use whyslow_base::failure::Failure;

use super::history::{Entry, History, forget_old, others};
use super::opened::MANIFEST;
use super::terminal;

/// File with the history of the user, and directory with those of the terminals.
const OF_USER: &str = "recordings";
const OF_TERMINALS: &str = "terminals";
const ENDINGS: [&str; 2] = [".wsl", ".wsl.tar.zst"];

/// Remembers a recording. Errors are ignored: the user can always specify it.
pub fn remember(recording: &Path) {
    let (Some(folder), Ok(recording)) = (state_folder(), std::path::absolute(recording)) else {
        return;
    };
    let directory = std::env::current_dir().unwrap_or_default();
    remember_in(
        &folder,
        terminal::session().as_deref(),
        &recording,
        directory,
    );
}

fn remember_in(folder: &Path, session: Option<&str>, recording: &Path, directory: PathBuf) {
    let entry = Entry {
        recording: recording.to_owned(),
        directory,
    };
    let terminals = folder.join(OF_TERMINALS);
    if let Some(session) = session {
        History::add(&terminals.join(session), entry.clone());
        forget_old(&terminals);
    }
    History::add(&folder.join(OF_USER), entry);
}

pub(super) fn recall() -> Result<PathBuf, Failure> {
    let hint = "specify a recording or trace, or make one: whyslow import TRACE";
    let session = terminal::session();
    let directory = std::env::current_dir().unwrap_or_default();
    let path = choose(state_folder().as_deref(), session.as_deref(), &directory);
    let Some(path) = path else {
        return Err(Failure::usage(
            "cannot open a recording: none specified, and none was used before",
        )
        .hint(hint));
    };
    if !path.exists() {
        return Err(Failure::new(format!(
            "cannot open the last used recording: `{}` no longer exists",
            path.display()
        ))
        .hint(hint));
    }
    Ok(path)
}

fn choose(folder: Option<&Path>, session: Option<&str>, directory: &Path) -> Option<PathBuf> {
    let user = folder.map(|folder| History::read(&folder.join(OF_USER)));
    let user = user.unwrap_or_default();
    let (own, others) = match folder.zip(session) {
        Some((folder, session)) => {
            let terminals = folder.join(OF_TERMINALS);
            let file = terminals.join(session);
            (History::read(&file), others(&terminals, &file))
        }
        None => (user.clone(), Vec::new()),
    };
    let is_of_others = |path: &Path| !own.has(path) && others.iter().any(|other| other.has(path));
    let mut found: Vec<(SystemTime, PathBuf)> = stored_in(directory)
        .filter(|(_, path)| !is_of_others(path))
        .collect();
    let used = own.entries.iter().filter(|entry| entry.is_in(directory));
    found.extend(used.filter_map(|entry| {
        let is_last = own.entries.first() == Some(entry);
        let used = own.used.filter(|_| is_last && entry.recording.exists());
        let time = used.or_else(|| time_of(&entry.recording).ok())?;
        Some((time, entry.recording.clone()))
    }));
    let newest = found.into_iter().max().map(|(_, path)| path);
    let last = |history: &History| {
        let first = history.entries.first();
        first.map(|entry| entry.recording.clone())
    };
    newest.or_else(|| last(&own)).or_else(|| last(&user))
}

/// The recordings in a directory, with the times at which they were made. Those of other users are
/// ignored: in /tmp they may have been planted.
fn stored_in(directory: &Path) -> impl Iterator<Item = (SystemTime, PathBuf)> {
    let own = rustix::process::geteuid().as_raw();
    let behind_sudo = std::env::var("SUDO_UID").ok();
    let behind_sudo = behind_sudo.and_then(|uid| uid.parse::<u32>().ok());
    let is_trusted = move |uid: u32| uid == own || uid == 0 || behind_sudo == Some(uid);
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let paths = entries.filter_map(|entry| {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let is_named = ENDINGS.iter().any(|ending| name.ends_with(ending));
        is_named.then(|| entry.path())
    });
    paths.filter_map(move |path| {
        let about = std::fs::symlink_metadata(&path).ok()?;
        let is_one = !about.is_symlink() && is_trusted(about.uid());
        let time = is_one.then(|| time_of(&path))?.ok()?;
        Some((time, path))
    })
}

/// When a recording was made.
fn time_of(recording: &Path) -> io::Result<SystemTime> {
    let about = std::fs::metadata(recording)?;
    if !about.is_dir() {
        return about.modified();
    }
    match std::fs::metadata(recording.join(MANIFEST)) {
        Ok(manifest) => manifest.modified(),
        // Opening it reports that it is not readable.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => about.modified(),
        Err(error) => Err(error),
    }
}

/// The user's state directory, if there is a home directory.
pub fn state_folder() -> Option<PathBuf> {
    let absolute = |name: &str| {
        std::env::var_os(name)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    };
    absolute("XDG_STATE_HOME")
        .or_else(|| absolute("HOME").map(|home| home.join(".local/state")))
        .map(|folder| folder.join("whyslow"))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::time::Duration;

    use whyslow_base::private_folder::PrivateFolder;

    use super::*;

    const A: Option<&str> = Some("34816-10");
    const B: Option<&str> = Some("34817-20");

    struct Machine {
        place: PrivateFolder,
        made: u64,
    }

    impl Machine {
        fn new() -> Self {
            let place = PrivateFolder::new(&std::env::temp_dir(), "whyslow-test-last-");
            let place = place.expect("a temporary folder");
            for folder in ["root", "data"] {
                fs::create_dir(place.path().join(folder)).expect("a disk");
            }
            Self { place, made: 0 }
        }

        fn path(&self, name: &str) -> PathBuf {
            self.place.path().join(name)
        }

        /// A recording that is later than those before.
        fn make(&mut self, name: &str) -> PathBuf {
            let path = self.path(name);
            fs::create_dir(&path).expect("a disk");
            let manifest = fs::File::create(path.join(MANIFEST)).expect("a disk");
            self.made += 1;
            // In the past, so that any use is later.
            let time = SystemTime::UNIX_EPOCH + Duration::from_secs(self.made);
            manifest.set_modified(time).expect("it is ours");
            path
        }

        fn remember(&self, session: Option<&str>, recording: &Path, directory: &str) {
            let state = self.path("state");
            remember_in(&state, session, recording, self.path(directory));
        }

        fn last(&self, session: Option<&str>, directory: &str) -> Option<PathBuf> {
            choose(Some(&self.path("state")), session, &self.path(directory))
        }
    }

    #[test]
    fn the_newest_recording_of_the_working_directory_comes_first() {
        let mut machine = Machine::new();
        assert_eq!(machine.last(A, "root"), None);
        let elsewhere = machine.make("data/a.wsl");
        machine.remember(A, &elsewhere, "data");
        assert_eq!(machine.last(A, "root"), Some(elsewhere.clone()));
        // Of another program, or copied.
        machine.make("root/old.wsl");
        let new = machine.make("root/new.wsl");
        assert_eq!(machine.last(A, "root"), Some(new));
        assert_eq!(machine.last(None, "data"), Some(elsewhere.clone()));
        // Made in the working directory, but stored elsewhere.
        machine.remember(A, &elsewhere, "root");
        assert_eq!(machine.last(A, "root"), Some(elsewhere));
        // A directory that is not a recording.
        fs::create_dir(machine.path("root/none.wsl")).expect("a disk");
        assert!(
            machine
                .last(B, "root")
                .is_some_and(|path| path.ends_with("new.wsl"))
        );
    }

    #[test]
    fn a_recording_that_was_used_since_is_preferred() {
        let mut machine = Machine::new();
        let first = machine.make("root/first.wsl");
        let second = machine.make("root/second.wsl");
        machine.remember(A, &second, "root");
        machine.remember(A, &first, "root");
        assert_eq!(machine.last(A, "root"), Some(first.clone()));
        machine.remember(None, &first, "root");
        assert_eq!(machine.last(None, "root"), Some(first));
    }

    #[test]
    fn two_people_who_are_root_have_their_own_recordings() {
        let mut machine = Machine::new();
        let first = machine.make("root/a.wsl");
        machine.remember(A, &first, "root");
        let others = [machine.make("root/b1.wsl"), machine.make("root/b2.wsl")];
        for other in &others {
            machine.remember(B, other, "root");
        }
        assert_eq!(machine.last(A, "root"), Some(first.clone()));
        assert_eq!(machine.last(A, "data"), Some(first.clone()));
        assert_eq!(machine.last(B, "root"), Some(others[1].clone()));
        assert_eq!(machine.last(B, "data"), Some(others[1].clone()));
        // A third terminal has none: that of the user, which is printed.
        let third = machine.last(Some("34818-30"), "root");
        assert_eq!(third, Some(others[1].clone()));
        // What was used here is no longer only the other's.
        machine.remember(A, &others[0], "root");
        assert_eq!(machine.last(A, "root"), Some(others[0].clone()));
    }

    #[test]
    fn a_recording_that_is_gone_is_not_the_newest() {
        let mut machine = Machine::new();
        let left = machine.make("root/left.wsl");
        let gone = machine.make("root/gone.wsl");
        machine.remember(A, &gone, "root");
        fs::remove_dir_all(&gone).expect("it is ours");
        assert_eq!(machine.last(A, "root"), Some(left));
        assert_eq!(machine.last(A, "data"), Some(gone));
    }
}
