//! Builds tiles from tables in one pass.

mod axis;
mod block;
mod buffer;
mod heat;
mod lanes;
mod locks;
mod merge;
mod rows;
mod samples;
mod series;
#[cfg(test)]
mod tests;
mod tracks;
mod tree;

use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, PoisonError};

use whyslow_store::Tables;

use crate::TilesError;
use crate::about::About;
use crate::item::Interval;
use crate::kinds::{self, OPS_OF_DEVICE};
use crate::limits;
use crate::store::directory::{Directory, Lanes};
use crate::store::pages::PageWriter;
use crate::store::{FILE_NAME, MAGIC};
use axis::Axis;
use buffer::Store;
use heat::HeatBuilder;
pub(crate) use heat::{UNKNOWN, WIDTHS, bounds};
use lanes::LanesBuilder;
use rows::Work;
pub(crate) use series::LINES;
use series::SeriesBuilder;

/// Builds tiles in `out`, an empty folder accessible to the current user only. The tiles are
/// incomplete until this returns.
pub fn build(
    tables: &dyn Tables,
    out: &Path,
    progress: &dyn Fn(f64),
    cancel: &AtomicBool,
) -> Result<(), TilesError> {
    let options = BuildOptions {
        recording: "",
        out,
        buffered_max: limits::PENDING_BYTES,
    };
    build_within(tables, &options, progress, cancel).map(drop)
}

/// Where a build writes, and its memory limit.
pub(crate) struct BuildOptions<'o> {
    /// Digest of the recording.
    pub(crate) recording: &'o str,
    pub(crate) out: &'o Path,
    /// Limit of buffered items, in bytes.
    pub(crate) buffered_max: usize,
}

/// Builds within a memory limit; returns the most bytes ever buffered.
pub(crate) fn build_within(
    tables: &dyn Tables,
    options: &BuildOptions<'_>,
    progress: &dyn Fn(f64),
    cancel: &AtomicBool,
) -> Result<usize, TilesError> {
    let work = Work::new(tables, progress, cancel, &tracks::READ);
    let pages = Mutex::new(PageWriter::create(options.out)?);
    let mut builder = Builder::new(&work, &pages, options.buffered_max);
    builder.states()?;
    builder.cpus()?;
    builder.calls()?;
    builder.locks()?;
    builder.block()?;
    builder.samples()?;
    let buffered_peak = builder.buffered_peak;
    let directory = builder.finish()?;
    let mut pages = pages.into_inner().unwrap_or_else(PoisonError::into_inner);
    let (offset, bytes) = pages.checksummed(&directory.encode());
    let mut end = Vec::new();
    end.extend(offset.to_le_bytes());
    end.extend(bytes.to_le_bytes());
    end.extend(crc32fast::hash(&end).to_le_bytes());
    end.extend(MAGIC);
    pages.write(&end);
    let bytes = pages.finish()?;
    About::new(options.recording, bytes).write(options.out)?;
    progress(1.0);
    Ok(buffered_peak)
}

struct Builder<'b> {
    work: &'b Work<'b>,
    pages: &'b Mutex<PageWriter>,
    buffered_max: usize,
    buffered_peak: usize,
    axis: Axis,
    column_bits: u8,
    cpus: u64,
    series: SeriesBuilder,
    tracks: Vec<Lanes>,
}

impl<'b> Builder<'b> {
    fn new(work: &'b Work<'b>, pages: &'b Mutex<PageWriter>, buffered_max: usize) -> Self {
        let axis = Axis::of(work.tables.info());
        let column_bits = heat::column_bits(axis.length);
        let cpus = work.tables.info().tables.get("cpu");
        Self {
            work,
            pages,
            buffered_max,
            buffered_peak: 0,
            axis,
            column_bits,
            cpus: cpus.map_or(0, |table| table.rows),
            series: SeriesBuilder::new(column_bits, axis.length),
            tracks: Vec::new(),
        }
    }

    fn store(&self, track: u8) -> Store<'b> {
        Store::new(track, self.pages, self.buffered_max)
    }

    fn heat(&self, track: u8, table: &str) -> HeatBuilder<'b> {
        let rows = self.work.tables.info().tables.get(table);
        let rows = rows.map_or(0, |table| table.rows);
        HeatBuilder::new(self.column_bits, rows, self.store(track))
    }

    fn done(&mut self, (lanes, buffered_peak): (Lanes, usize)) -> Result<(), TilesError> {
        self.buffered_peak = self.buffered_peak.max(buffered_peak);
        self.tracks.push(lanes);
        let mut pages = self.pages.lock().unwrap_or_else(PoisonError::into_inner);
        pages.check()
    }

    fn states(&mut self) -> Result<(), TilesError> {
        let store = self.store(kinds::STATES);
        let series = &mut self.series;
        let mut watch = |interval: &Interval| {
            if interval.value == tracks::UNINTERRUPTIBLE {
                series.blocked(interval.begin, interval.end);
            }
        };
        let mut lanes = LanesBuilder::new(self.axis, store, &mut watch);
        tracks::states(self.work, &mut lanes)?;
        let lanes = lanes.finish(tracks::plain);
        self.done(lanes)
    }

    fn cpus(&mut self) -> Result<(), TilesError> {
        let store = self.store(kinds::CPUS);
        let series = &mut self.series;
        let mut watch = |interval: &Interval| series.busy(interval.begin, interval.end);
        let mut lanes = LanesBuilder::new(self.axis, store, &mut watch);
        tracks::cpus(self.work, &mut lanes)?;
        let lanes = lanes.finish(tracks::plain);
        self.cpus = self.cpus.max(lanes.0.all.len() as u64);
        self.done(lanes)
    }

    fn calls(&mut self) -> Result<(), TilesError> {
        let mut heat = self.heat(kinds::HEAT_IO, "syscall");
        let mut watch = |_: &Interval| ();
        let mut lanes = LanesBuilder::new(self.axis, self.store(kinds::CALLS), &mut watch);
        let series = &mut self.series;
        tracks::calls(self.work, self.axis, &mut lanes, &mut heat, series)?;
        let lanes = lanes.finish(tracks::plain);
        self.done(lanes)?;
        self.done(heat.finish(|id| id))
    }

    fn locks(&mut self) -> Result<(), TilesError> {
        let mut watch = |_: &Interval| ();
        let mut lanes = LanesBuilder::new(self.axis, self.store(kinds::LOCKS), &mut watch);
        locks::locks(self.work, &mut lanes)?;
        let lanes = lanes.finish(tracks::plain);
        self.done(lanes)
    }

    fn samples(&mut self) -> Result<(), TilesError> {
        let mut watch = |_: &Interval| ();
        let mut lanes = LanesBuilder::new(self.axis, self.store(kinds::SAMPLES), &mut watch);
        // Samples without timestamps cannot be drawn.
        if self.work.has("stack_sample") && !samples::without_times(self.work.tables)? {
            samples::samples(self.work, &mut lanes)?;
        }
        let lanes = lanes.finish(tracks::plain);
        self.done(lanes)
    }

    fn block(&mut self) -> Result<(), TilesError> {
        let mut heat = self.heat(kinds::HEAT_BLOCK, "block_io");
        let mut watch = |_: &Interval| ();
        let mut lanes = LanesBuilder::new(self.axis, self.store(kinds::BLOCK), &mut watch);
        let series = &mut self.series;
        let devices = block::block(self.work, self.axis, &mut lanes, &mut heat, series)?;
        let (indices, found) = (devices.indices(), devices.found());
        let lanes = lanes.finish(|slot| {
            let slot = slot as usize;
            (indices[slot], Some(found[slot].clone()))
        });
        self.done(lanes)?;
        self.done(heat.finish(|id| {
            let (slot, op) = (id / OPS_OF_DEVICE, id % OPS_OF_DEVICE);
            indices[slot as usize] * OPS_OF_DEVICE + op
        }))
    }

    fn finish(mut self) -> Result<Directory, TilesError> {
        let tables = [
            "sched_slice",
            "thread_state",
            "block_io",
            "block_io",
            "syscall",
        ];
        let is_recorded = tables.map(|table| self.work.has(table));
        let mut pages = self.pages.lock().unwrap_or_else(PoisonError::into_inner);
        let series = self
            .series
            .finish(is_recorded, &mut pages)
            .map_err(|error| TilesError::io("write", FILE_NAME, error))?;
        pages.check()?;
        self.tracks.sort_unstable_by_key(|track| track.track);
        Ok(Directory {
            begin: self.axis.begin,
            length: self.axis.length,
            series,
            column_bits: self.column_bits,
            cpus: self.cpus,
            tracks: self.tracks,
        })
    }
}
