//! Recordings made from text and from fixtures. Only used as a `dev-dependency`.

pub mod thinned;

use std::path::Path;

use tempfile::TempDir;
use whyslow_ingest::{ImportOptions, InMemory, import, import_in_memory};
use whyslow_store::Recording;
use whyslow_testkit::fixture;

/// A recording, and its directory, which is deleted on drop.
pub struct Recorded {
    /// The imported recording.
    pub recording: Recording,
    folder: TempDir,
}

impl Recorded {
    /// Imports events in the text format; the first line of the file is added.
    pub fn of_text(events: &str) -> Self {
        let (folder, trace) = written(events);
        Self::imported(&trace, folder)
    }

    /// Imports a file of `fixtures/`.
    pub fn of_fixture(name: &str) -> Self {
        Self::imported(&fixture(name), room())
    }

    /// Imports a trace.
    pub fn of_trace(trace: &Path) -> Self {
        Self::imported(trace, room())
    }

    /// A recording that exists in this directory.
    pub fn within(folder: TempDir, recording: Recording) -> Self {
        Self { recording, folder }
    }

    /// Directory for further files.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    fn imported(source: &Path, folder: TempDir) -> Self {
        let output = folder.path().join("made.wsl");
        let options = ImportOptions::new(&output);
        import(&[source.to_owned()], &options, &mut |_| {}).expect("it can be imported");
        let recording = Recording::open(&output).expect("it was just written");
        Self::within(folder, recording)
    }
}

/// Imports events in the text format in memory.
pub fn text_in_memory(events: &str) -> InMemory {
    let (_folder, trace) = written(events);
    import_in_memory(&[trace]).expect("it can be imported")
}

fn written(events: &str) -> (TempDir, std::path::PathBuf) {
    let folder = room();
    let trace = folder.path().join("made.txt");
    std::fs::write(&trace, format!("whyslow-text 1\n{events}")).expect("there is room");
    (folder, trace)
}

fn room() -> TempDir {
    tempfile::tempdir().expect("there is room")
}
