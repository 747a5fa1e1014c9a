//! Tiles, read.

use std::path::Path;

use whyslow_model::Window;

use crate::{Heat, LEVEL_MAX, Run, Series, TilesError, Track};

/// What was built of a recording. Files stay open; what is asked for is read when it is.
#[derive(Debug)]
pub struct Tiles {
    tracks: Vec<Track>,
}

impl Tiles {
    pub fn open(folder: &Path) -> Result<Self, TilesError> {
        Err(TilesError::Unfinished {
            path: folder.to_path_buf(),
            reason: "nothing is built yet".into(),
        })
    }

    pub fn tracks(&self) -> &[Track] {
        &self.tracks
    }

    /// Runs of these lanes, in the order of the lanes and of time. A lane that the track does not have
    /// has no runs.
    pub fn tile(
        &self,
        track: &str,
        level: u8,
        _index: u64,
        _lanes: &[i32],
    ) -> Result<Vec<Run>, TilesError> {
        if level > LEVEL_MAX {
            return Err(TilesError::NoLevel {
                level,
                max: LEVEL_MAX,
            });
        }
        Err(TilesError::NoTrack {
            name: track.to_owned(),
            known: String::new(),
        })
    }

    /// What the recording did over time, in up to so many points.
    pub fn series(&self, _window: Window, _points: usize) -> Result<Vec<Series>, TilesError> {
        Ok(Vec::new())
    }

    /// `block` (by device and operation) or `io` (by operation); `None` where columns would be
    /// narrower than those stored: then ask the tables.
    pub fn heat(
        &self,
        _kind: &str,
        _window: Window,
        _columns: usize,
    ) -> Result<Option<Heat>, TilesError> {
        Ok(None)
    }
}
