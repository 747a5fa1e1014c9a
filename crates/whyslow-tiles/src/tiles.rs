//! An open set of tiles.

use std::path::Path;

use whyslow_model::Window;

use crate::about::About;
use crate::kinds::{self, KINDS};
use crate::store::directory::{Directory, LaneEntry, Lanes};
use crate::store::reader::{TileFile, open_folder};
use crate::{Heat, Lane, Run, Series, TilesError, Track, heat, series, tile};

/// The tiles of a recording. The list of lanes is kept in memory; everything else is read on
/// demand.
#[derive(Debug)]
pub struct Tiles {
    pub(crate) file: TileFile,
    pub(crate) directory: Directory,
    recording: String,
    tracks: Vec<Track>,
}

impl Tiles {
    /// Opens a complete set of tiles; reads and verifies its directory.
    /// [`Place::open`](crate::Place::open) finds the tiles of a recording.
    pub fn open(folder: &Path) -> Result<Self, TilesError> {
        let handle = open_folder(folder)?;
        let about = About::read(&handle, folder)?;
        let (file, directory) = TileFile::open(&handle, folder, about.bytes)?;
        let tracks = KINDS.iter().map(|kind| Track {
            name: kind.name,
            values: kind.values(),
            groups: kind.groups,
            lanes: lanes(&directory, kind.track).map_or_else(Vec::new, |found| {
                found.all.iter().map(|at| lane(&directory, at)).collect()
            }),
            left_out: lanes(&directory, kind.track)
                .map(|found| found.left_out)
                .unwrap_or_default(),
        });
        Ok(Self {
            tracks: tracks.collect(),
            recording: about.recording,
            file,
            directory,
        })
    }

    /// The same tiles, after their folder was renamed.
    pub(crate) fn at(mut self, folder: &Path) -> Self {
        self.file.at(folder);
        self
    }

    /// Digest of the recording that the tiles were built from; empty if not given.
    pub fn recording(&self) -> &str {
        &self.recording
    }

    /// Start and end of the recording, ns since the epoch.
    pub fn span(&self) -> Window {
        let end = self.directory.timestamp(self.directory.length);
        Window::new(self.directory.begin, end)
    }

    /// All tracks, including those without lanes.
    pub fn tracks(&self) -> &[Track] {
        &self.tracks
    }

    /// Runs of these lanes, in the given order of lanes and in order of time. An unknown lane has
    /// no runs.
    pub fn tile(
        &self,
        track: &str,
        level: u8,
        index: u64,
        lanes: &[i32],
    ) -> Result<Vec<Run>, TilesError> {
        let kind = KINDS.iter().find(|kind| kind.name == track);
        let kind = kind.ok_or_else(|| {
            let known: Vec<&str> = KINDS.iter().map(|kind| kind.name).collect();
            TilesError::NoTrack {
                name: track.to_owned(),
                known: known.join(", "),
            }
        })?;
        tile::tile(self, kind.track, (level, index), lanes)
    }

    /// All time series of a window, each with at most `points` + 1 values.
    pub fn series(&self, window: Window, points: usize) -> Result<Vec<Series>, TilesError> {
        series::series(self, window, points)
    }

    /// Heat map of `block` (by device and operation) or `io` (by operation). `None` if columns
    /// would be narrower than the stored ones: then query the tables.
    pub fn heat(
        &self,
        kind: &str,
        window: Window,
        columns: usize,
    ) -> Result<Option<Heat>, TilesError> {
        let track = match kind {
            "block" => kinds::HEAT_BLOCK,
            "io" => kinds::HEAT_IO,
            _ => {
                let kind = kind.to_owned();
                return Err(TilesError::NoHeat { kind });
            }
        };
        heat::heat(self, track, window, columns)
    }

    /// Index of the narrowest column width of its heat maps.
    pub(crate) fn narrowest(&self, track: u8) -> usize {
        lanes(&self.directory, track).map_or(0, |found| usize::from(found.narrowest))
    }

    pub(crate) fn lanes(&self, track: u8) -> &[LaneEntry] {
        lanes(&self.directory, track).map_or(&[], |found| &found.all)
    }
}

fn lanes(directory: &Directory, track: u8) -> Option<&Lanes> {
    directory.tracks.iter().find(|lanes| lanes.track == track)
}

fn lane(directory: &Directory, at: &LaneEntry) -> Lane {
    Lane {
        id: at.id,
        device: at.device.clone(),
        first_ns: directory.timestamp(at.first),
        last_ns: directory.timestamp(at.last),
        intervals: at.intervals,
        times_ns: at.times_ns,
    }
}
