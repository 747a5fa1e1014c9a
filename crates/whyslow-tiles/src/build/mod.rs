//! Tiles from tables, in one pass.

mod axis;
mod block;
mod heat;
mod lanes;
mod locks;
mod rows;
mod series;
mod tracks;
mod tree;
mod waiting;

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
use heat::HeatBuilder;
pub(crate) use heat::{UNKNOWN, WIDTHS, bounds};
use lanes::LanesBuilder;
use rows::Work;
pub(crate) use series::LINES;
use series::SeriesBuilder;
use waiting::Store;

/// Builds into an empty folder that only this user can enter. What is there is complete when this
/// returns, and no sooner.
pub fn build(
    tables: &dyn Tables,
    out: &Path,
    progress: &dyn Fn(f64),
    cancel: &AtomicBool,
) -> Result<(), TilesError> {
    build_of(tables, "", out, progress, cancel)
}

/// The same, of a recording with that digest.
pub(crate) fn build_of(
    tables: &dyn Tables,
    recording: &str,
    out: &Path,
    progress: &dyn Fn(f64),
    cancel: &AtomicBool,
) -> Result<(), TilesError> {
    let work = Work::new(tables, progress, cancel, &tracks::READ);
    let pages = Mutex::new(PageWriter::create(out)?);
    let mut directory = all(&work, &pages)?;
    let mut pages = pages.into_inner().unwrap_or_else(PoisonError::into_inner);
    directory.tracks.sort_unstable_by_key(|track| track.track);
    let (offset, bytes) = pages.summed(&directory.encode());
    let mut end = Vec::new();
    end.extend(offset.to_le_bytes());
    end.extend(bytes.to_le_bytes());
    end.extend(crc32fast::hash(&end).to_le_bytes());
    end.extend(MAGIC);
    pages.write(&end);
    let bytes = pages.finish()?;
    About::new(recording, bytes).write(out)?;
    progress(1.0);
    Ok(())
}

fn all(work: &Work<'_>, pages: &Mutex<PageWriter>) -> Result<Directory, TilesError> {
    let axis = Axis::of(work.tables.info());
    let column_bits = heat::column_bits(axis.length);
    let mut series = SeriesBuilder::new(column_bits, axis.length);
    let store = |track| Store::new(track, pages, limits::PENDING_BYTES);
    let check = || {
        let mut pages = pages.lock().unwrap_or_else(PoisonError::into_inner);
        pages.check()
    };
    let mut tracks = Vec::new();

    let mut watch = |interval: &Interval| {
        if interval.value == tracks::UNINTERRUPTIBLE {
            series.blocked(interval.begin, interval.end);
        }
    };
    let mut lanes = LanesBuilder::new(axis, store(kinds::STATES), &mut watch);
    tracks::states(work, &mut lanes)?;
    tracks.push(lanes.finish(tracks::plain));
    check()?;

    let mut watch = |interval: &Interval| series.busy(interval.begin, interval.end);
    let mut lanes = LanesBuilder::new(axis, store(kinds::CPUS), &mut watch);
    tracks::cpus(work, &mut lanes)?;
    let cpus = lanes.finish(tracks::plain);
    let known = work.tables.info().tables.get("cpu");
    let known = known.map_or(0, |table| table.rows);
    let cpus_all = known.max(cpus.all.len() as u64);
    tracks.push(cpus);
    check()?;

    let mut heat = HeatBuilder::new(column_bits, store(kinds::HEAT_IO));
    let mut watch = |_: &Interval| ();
    let mut lanes = LanesBuilder::new(axis, store(kinds::CALLS), &mut watch);
    tracks::calls(work, axis, &mut lanes, &mut heat, &mut series)?;
    tracks.extend([lanes.finish(tracks::plain), heat.finish(|id| id)]);
    check()?;

    let mut watch = |_: &Interval| ();
    let mut lanes = LanesBuilder::new(axis, store(kinds::LOCKS), &mut watch);
    locks::locks(work, &mut lanes)?;
    tracks.push(lanes.finish(tracks::plain));
    check()?;

    tracks.extend(requests(work, (axis, column_bits), store, &mut series)?);
    let is_recorded = [
        "sched_slice",
        "thread_state",
        "block_io",
        "block_io",
        "syscall",
    ]
    .map(|table| work.has(table));
    let mut pages = pages.lock().unwrap_or_else(PoisonError::into_inner);
    let series = series
        .finish(is_recorded, &mut pages)
        .map_err(|error| TilesError::io("write", FILE_NAME, error))?;
    pages.check()?;
    Ok(Directory {
        begin: axis.begin,
        length: axis.length,
        series,
        column_bits,
        cpus: cpus_all,
        tracks,
    })
}

fn requests<'p>(
    work: &Work<'_>,
    (axis, column_bits): (Axis, u8),
    store: impl Fn(u8) -> Store<'p>,
    series: &mut SeriesBuilder,
) -> Result<[Lanes; 2], TilesError> {
    let mut heat = HeatBuilder::new(column_bits, store(kinds::HEAT_BLOCK));
    let mut watch = |_: &Interval| ();
    let mut lanes = LanesBuilder::new(axis, store(kinds::BLOCK), &mut watch);
    let devices = block::block(work, axis, &mut lanes, &mut heat, series)?;
    let (places, found) = (devices.places(), devices.found());
    let lanes = lanes.finish(|slot| {
        let slot = slot as usize;
        (places[slot], Some(found[slot].clone()))
    });
    let heat = heat.finish(|id| {
        let (slot, op) = (id / OPS_OF_DEVICE, id % OPS_OF_DEVICE);
        places[slot as usize] * OPS_OF_DEVICE + op
    });
    Ok([lanes, heat])
}
