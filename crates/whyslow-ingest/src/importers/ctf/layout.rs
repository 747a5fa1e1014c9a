//! Finds the traces below a path.
//!
//! A trace is a directory with a file `metadata`; every other file in it, except hidden ones, is a
//! stream. LTTng writes `SESSION/kernel`, `SESSION/ust/uid/UID/BITS` or `SESSION/ust/pid/APP`,
//! below `HOST/` for network streaming, in `snapshot-N-DATE/` for a snapshot, and in
//! `archives/BEGIN-END-N/` for a rotated session; so any directory is searched for all traces below
//! it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use rustc_hash::FxHashSet;
use whyslow_model::sort::IndexSort;

use super::error::CtfError;

const METADATA_NAME: &str = "metadata";
const INDEX_NAME: &str = "index";
const DEPTH_MAX: usize = 24;
const FILES_MAX: usize = 1 << 20;

/// A directory with a trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TraceFolder {
    pub(super) path: PathBuf,
    /// Relative to the searched path, with `/`.
    pub(super) layout: String,
    /// In the order of their names.
    pub(super) streams: Vec<PathBuf>,
}

impl TraceFolder {
    pub(super) fn metadata(&self) -> PathBuf {
        self.path.join(METADATA_NAME)
    }
}

/// Whether there is a trace at or below this directory.
pub fn has_trace(path: &Path) -> bool {
    find_traces(path).is_ok_and(|traces| !traces.is_empty())
}

/// All traces at or below a directory, in the order of their paths. Links to directories are
/// followed; each directory is searched once.
pub(super) fn find_traces(root: &Path) -> Result<Vec<TraceFolder>, CtfError> {
    let mut search = Search {
        root,
        visited: FxHashSet::default(),
        files: 0,
        found: Vec::new(),
    };
    search.folder(root, 0)?;
    let mut found = search.found;
    found.index_sort_by(|a, b| a.layout.cmp(&b.layout));
    Ok(found)
}

struct Search<'a> {
    root: &'a Path,
    visited: FxHashSet<PathBuf>,
    files: usize,
    found: Vec<TraceFolder>,
}

impl Search<'_> {
    fn folder(&mut self, path: &Path, depth: usize) -> Result<(), CtfError> {
        let place = fs::canonicalize(path).map_err(|error| CtfError::open(path, error))?;
        if depth > DEPTH_MAX || !self.visited.insert(place) {
            return Ok(());
        }
        let (files, folders) = self.entries(path)?;
        if files.iter().any(|file| file.ends_with(METADATA_NAME)) {
            let is_stream = |file: &PathBuf| {
                let name = file.file_name().unwrap_or_default().as_encoded_bytes();
                name != METADATA_NAME.as_bytes() && !name.starts_with(b".")
            };
            let layout = path.strip_prefix(self.root).unwrap_or(path);
            self.found.push(TraceFolder {
                path: path.to_owned(),
                layout: layout.to_string_lossy().into_owned(),
                streams: files.into_iter().filter(is_stream).collect(),
            });
        }
        for folder in folders {
            self.folder(&folder, depth + 1)?;
        }
        Ok(())
    }

    /// Files and directories of a directory, by name. Unreadable entries are left out, like
    /// dangling links.
    fn entries(&mut self, path: &Path) -> Result<(Vec<PathBuf>, Vec<PathBuf>), CtfError> {
        let failed = |error: io::Error| CtfError::open(path, error);
        let (mut files, mut folders) = (Vec::new(), Vec::new());
        for entry in fs::read_dir(path).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            self.files += 1;
            if self.files > FILES_MAX {
                return Err(CtfError::TooManyFiles {
                    path: self.root.to_owned(),
                    limit: FILES_MAX,
                });
            }
            let Ok(about) = fs::metadata(entry.path()) else {
                continue;
            };
            if about.is_file() {
                files.push(entry.path());
            } else if about.is_dir() && entry.file_name() != INDEX_NAME {
                folders.push(entry.path());
            }
        }
        files.index_sort();
        folders.index_sort();
        Ok((files, folders))
    }
}
