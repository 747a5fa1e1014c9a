//! I/O of devices without a request queue: volumes of the device-mapper, arrays, bcache. What serves
//! it are requests to the devices below.

use rustc_hash::{FxHashMap, FxHashSet};
use whyslow_model::row::Row;
use whyslow_model::tables::DeviceLinkRow;
use whyslow_store::Tables;

use super::columns::{Result, rows};
use super::{Request, WindowSlice};

/// Names of drivers that pass their I/O on to other devices.
const STACKED: [&str; 5] = ["dm-", "md", "bcache", "drbd", "loop"];

/// I/O of a slice that is not a request to a disk, and what is below its devices.
#[derive(Debug, Default)]
pub(crate) struct Bios {
    rows: Vec<Request>,
    place_of: FxHashMap<i64, usize>,
    /// Devices below each one, as far as a snapshot shows them.
    below: FxHashMap<i64, FxHashSet<i64>>,
}

impl Bios {
    pub(super) fn of(rows: Vec<Request>, tables: &dyn Tables) -> Result<Self> {
        let places = rows.iter().enumerate();
        let mut bios = Self {
            place_of: places.map(|(place, row)| (row.id, place)).collect(),
            rows,
            below: FxHashMap::default(),
        };
        if !bios.rows.is_empty() {
            bios.load_links(tables)?;
        }
        Ok(bios)
    }

    fn load_links(&mut self, tables: &dyn Tables) -> Result<()> {
        let columns = (&["dev", "below"][..], &["kind"][..]);
        let below = &mut self.below;
        rows(tables, DeviceLinkRow::TABLE, columns, None, |cells, row| {
            if cells.text(0, row) != "partition" {
                let of = below.entry(cells.ints[0].at(row)).or_default();
                of.insert(cells.ints[1].at(row));
            }
        })
    }

    pub(super) fn get(&self, id: i64) -> Option<&Request> {
        self.place_of.get(&id).map(|place| &self.rows[*place])
    }
}

impl WindowSlice {
    /// Whether the device of a request passes its I/O on to other devices.
    pub(crate) fn is_stacked(&self, request: &Request) -> bool {
        let name = self.text(request.dev_name);
        self.bios.get(request.id).is_some()
            && (self.bios.below.contains_key(&request.dev)
                || STACKED.iter().any(|driver| name.starts_with(driver)))
    }

    /// I/O without a request queue on a device that completed in the range.
    pub(crate) fn bios_of(
        &self,
        dev: i64,
        (begin, end): (i64, i64),
    ) -> impl Iterator<Item = &Request> {
        let rows = self.bios.rows.iter();
        rows.filter(move |row| row.dev == dev && row.end > begin && row.end <= end)
    }

    /// I/O of other devices that can be a part of this I/O of a stacked device, in order of start:
    /// started and completed within it, and submitted by the same thread or by a kernel worker.
    pub(crate) fn below(&self, upper: &Request) -> Vec<&Request> {
        let devices = self.bios.below.get(&upper.dev);
        let is_device_below = |dev: i64| {
            devices.is_none_or(|devices| {
                devices
                    .iter()
                    .any(|below| self.disk_of(*below) == dev || *below == dev)
            })
        };
        let is_part = |lower: &&Request| {
            let is_of_worker = lower
                .utid
                .is_none_or(|utid| self.thread_table.is_kernel(utid));
            lower.id > upper.id
                && lower.dev != upper.dev
                && lower.op == upper.op
                && lower.begin >= upper.begin
                && lower.end <= upper.end
                && (lower.utid == upper.utid || is_of_worker)
                && is_device_below(lower.dev)
        };
        let all = self.requests.iter().chain(&self.bios.rows);
        let mut parts: Vec<&Request> = all.filter(is_part).collect();
        parts.sort_unstable_by_key(|lower| (lower.begin, lower.id));
        parts
    }

    /// The I/O of a stacked device that was waiting at a time and of which a request to a device
    /// below is a part.
    pub(crate) fn above(&self, request: &Request, at: i64) -> Option<&Request> {
        let is_around = |upper: &&Request| {
            upper.begin <= at
                && upper.id < request.id
                && upper.dev != request.dev
                && upper.op == request.op
                && upper.end >= request.end
                && self.is_stacked(upper)
                && self.below(upper).iter().any(|lower| lower.id == request.id)
        };
        self.bios.rows.iter().find(is_around)
    }
}
