//! Tiles, read.

use std::path::Path;

use whyslow_model::Window;

use crate::about::About;
use crate::kinds::{self, KINDS};
use crate::store::directory::{Directory, LaneAt, Lanes};
use crate::store::reader::{TileFile, open_folder};
use crate::{Heat, Lane, Run, Series, TilesError, Track, heat, series, tile};

/// What was built of a recording. The list of lanes is in memory; everything else is read when it is
/// asked for.
#[derive(Debug)]
pub struct Tiles {
    pub(crate) file: TileFile,
    pub(crate) directory: Directory,
    recording: String,
    tracks: Vec<Track>,
}

impl Tiles {
    /// Opens a complete set of tiles: its directory of lanes is read, and verified, here.
    /// [`Place::open`](crate::Place::open) finds the ones of a recording.
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

    /// The same, in a folder of another name.
    pub(crate) fn at(mut self, folder: &Path) -> Self {
        self.file.at(folder);
        self
    }

    /// Digest of the recording that they were built from; empty if nobody told.
    pub fn recording(&self) -> &str {
        &self.recording
    }

    /// First and last moment, ns since the epoch.
    pub fn span(&self) -> Window {
        let end = self.directory.moment(self.directory.length);
        Window::new(self.directory.begin, end)
    }

    /// All tracks, also those without a lane.
    pub fn tracks(&self) -> &[Track] {
        &self.tracks
    }

    /// Runs of these lanes, in the order of the lanes and of time. A lane that the track does not have
    /// has no runs.
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

    /// What the recording did over time, in up to so many points.
    pub fn series(&self, window: Window, points: usize) -> Result<Vec<Series>, TilesError> {
        series::series(self, window, points)
    }

    /// `block` (by device and operation) or `io` (by operation); `None` where columns would be
    /// narrower than those stored: then ask the tables.
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

    /// The narrowest columns of its heat maps.
    pub(crate) fn narrowest(&self, track: u8) -> usize {
        lanes(&self.directory, track).map_or(0, |found| usize::from(found.narrowest))
    }

    pub(crate) fn lanes(&self, track: u8) -> &[LaneAt] {
        lanes(&self.directory, track).map_or(&[], |found| &found.all)
    }
}

fn lanes(directory: &Directory, track: u8) -> Option<&Lanes> {
    directory.tracks.iter().find(|lanes| lanes.track == track)
}

fn lane(directory: &Directory, at: &LaneAt) -> Lane {
    Lane {
        id: at.id,
        device: at.device.clone(),
        first_ns: directory.moment(at.first),
        last_ns: directory.moment(at.last),
        intervals: at.intervals,
        times_ns: at.times_ns,
    }
}
