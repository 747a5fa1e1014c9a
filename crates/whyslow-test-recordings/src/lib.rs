//! Recordings that tests make from text and from fixtures. Only ever a `dev-dependency`.

use std::path::Path;

use tempfile::TempDir;
use whyslow_ingest::{ImportOptions, InMemory, import, import_in_memory};
use whyslow_store::Recording;
use whyslow_testkit::fixture;

/// A recording, and the folder that goes with it.
pub struct Recorded {
    /// What was imported.
    pub recording: Recording,
    folder: TempDir,
}

impl Recorded {
    /// Of events in the text format; its first line is written for them.
    pub fn of_text(events: &str) -> Self {
        let (folder, trace) = written(events);
        Self::imported(&trace, folder)
    }

    /// Of a file of `fixtures/`.
    pub fn of_fixture(name: &str) -> Self {
        Self::imported(&fixture(name), room())
    }

    /// One that stands in this folder.
    pub fn within(folder: TempDir, recording: Recording) -> Self {
        Self { recording, folder }
    }

    /// Where more can be written that goes with it.
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

/// What events in the text format become, without a file.
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
