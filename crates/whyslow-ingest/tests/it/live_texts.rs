//! Shared by tests of the text output of live tools.

use std::fs::{self, File};
use std::path::PathBuf;
use std::time::{Duration, UNIX_EPOCH};

use tempfile::TempDir;
use whyslow_ingest::{InMemory, import_in_memory};
use whyslow_model::Sym;

pub(crate) const SECOND: i64 = 1_000_000_000;
/// The day of the fixtures, 2026-11-25.
pub(crate) const DAY: i64 = 1_795_564_800 * SECOND;

/// `04:13:33` of the day of the fixtures.
pub(crate) fn at(time: &str) -> i64 {
    let mut parts = time
        .split(':')
        .map(|part| part.parse::<i64>().expect("a number"));
    let mut next = || parts.next().expect("three numbers");
    DAY + (next() * 3600 + next() * 60 + next()) * SECOND
}

pub(crate) fn fixture(name: &str) -> String {
    let folder = whyslow_testkit::fixture("live-tools");
    fs::read_to_string(folder.join(name)).expect("a fixture")
}

/// A file with a given modification time, from which the time zone is inferred.
pub(crate) struct Report {
    folder: TempDir,
    pub(crate) path: PathBuf,
}

impl Report {
    pub(crate) fn now(content: impl AsRef<[u8]>) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("report.txt");
        fs::write(&path, content).expect("a temporary folder takes it");
        Self { folder, path }
    }

    /// Modified long after its last line: its times are assumed to be UTC.
    pub(crate) fn new(content: impl AsRef<[u8]>) -> Self {
        Self::now(content).written(DAY + 9 * 86_400 * SECOND + 450 * SECOND)
    }

    pub(crate) fn written(self, ns: i64) -> Self {
        let file = File::options()
            .append(true)
            .open(&self.path)
            .expect("the file");
        let time = UNIX_EPOCH + Duration::from_nanos(ns.unsigned_abs());
        file.set_modified(time).expect("a time of a file");
        self
    }

    #[allow(dead_code, reason = "not used by every test file")]
    pub(crate) fn written_ns(&self) -> i64 {
        let about = fs::metadata(&self.path).and_then(|about| about.modified());
        let since = about.expect("the file").duration_since(UNIX_EPOCH);
        i64::try_from(since.expect("a time since 1970").as_nanos()).expect("a time of this century")
    }

    pub(crate) fn import(&self) -> InMemory {
        assert!(self.folder.path().is_dir());
        import_in_memory(std::slice::from_ref(&self.path)).expect("it can be imported")
    }

    /// The import error.
    pub(crate) fn refused(&self) -> String {
        match import_in_memory(std::slice::from_ref(&self.path)) {
            Ok(_) => panic!("it can be imported"),
            Err(error) => error.to_string(),
        }
    }
}

pub(crate) fn import(content: impl AsRef<[u8]>) -> InMemory {
    Report::new(content).import()
}

/// A text column of a row.
pub(crate) fn text(import: &InMemory, sym: Option<Sym>) -> &str {
    sym.map_or("", |sym| import.symbols.get(sym))
}

/// Number of occurrences of an anomaly.
pub(crate) fn met(import: &InMemory, name: &str) -> u64 {
    let met = import.anomalies.iter().filter(|one| one.name == name);
    met.map(|one| one.count).sum()
}

/// Tries damaged versions of a file: truncated in many places, flipped bits, zeros, repeated.
pub(crate) fn damaged(content: &[u8]) -> Vec<Vec<u8>> {
    let step = (content.len() / 37).max(1);
    let cuts = (0..content.len())
        .step_by(step)
        .map(|end| content[..end].to_vec());
    let mut all: Vec<Vec<u8>> = cuts.collect();
    // A fixed series, so that failures are reproducible.
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % below.max(1) as u64) as usize
    };
    for round in 0..40 {
        let mut bytes = content.to_vec();
        for _ in 0..=round {
            let place = random(bytes.len());
            bytes[place] ^= 1 << random(8);
        }
        all.push(bytes);
    }
    for _ in 0..8 {
        let mut bytes = content.to_vec();
        let begin = random(bytes.len());
        let end = (begin + 1 + random(400)).min(bytes.len());
        bytes[begin..end].fill(0);
        all.push(bytes);
    }
    all.push([content, content].concat());
    all.push([content, &content[..content.len() / 2]].concat());
    all
}
