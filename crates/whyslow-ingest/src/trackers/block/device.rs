//! Block devices: names, partitions, and which of them have request queues.

use rustc_hash::FxHashMap;
use whyslow_model::event::StateDevice;
use whyslow_model::row::Emit;
use whyslow_model::tables::DeviceRow;
use whyslow_model::{Sym, Symbols};

/// Maximum number of known devices; a machine has a few hundred at most.
const DEVICES_MAX: usize = 65_536;
const MINOR_BITS: u32 = 20;
/// Major number of partitions beyond the minors of their disk, for any driver, and of NVMe.
const EXTENDED_MAJOR: i64 = 259;

#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Device {
    name: Option<Sym>,
    about: About,
    /// Its disk, according to a snapshot.
    disk: Option<i64>,
    parent: Option<i64>,
    /// Has a request queue: seen in an event of a request.
    pub(super) has_requests: bool,
    /// Events before the issue are recorded for it.
    pub(super) queue_seen: bool,
    /// A partition whose bios have its number but sectors of the disk, as in Linux 5.12 and later.
    in_place: bool,
}

/// Properties of a device, from a snapshot.
#[derive(Debug, Default, Clone, Copy)]
struct About {
    kind: Option<Sym>,
    size: Option<i64>,
    rotational: Option<bool>,
    label: Option<Sym>,
    backing: Option<Sym>,
}

#[derive(Debug, Default)]
pub(super) struct Devices {
    known: FxHashMap<i64, Device>,
    /// Absorbs updates of devices beyond the limit.
    beyond: Device,
    /// In-place partitions whose disk is not known yet.
    orphans: Vec<i64>,
}

impl Devices {
    pub(super) fn get(&mut self, dev: i64) -> &mut Device {
        if self.known.len() >= DEVICES_MAX && !self.known.contains_key(&dev) {
            self.beyond = Device::default();
            return &mut self.beyond;
        }
        self.known.entry(dev).or_default()
    }

    pub(super) fn set_name(&mut self, dev: i64, name: Sym) {
        self.get(dev).name = Some(name);
    }

    pub(super) fn describe(&mut self, about: &StateDevice<'_>, symbols: &mut Symbols) {
        let mut text = |text| symbols.intern_bytes(text);
        self.get(about.dev).about = About {
            kind: Some(text(about.kind)),
            size: about.size,
            rotational: about.rotational,
            label: about.label.map(&mut text),
            backing: about.backing.map(text),
        };
    }

    pub(super) fn set_disk(&mut self, part: i64, disk: i64) {
        self.get(part).disk = Some(disk);
    }

    pub(super) fn has_name(&self, dev: i64) -> bool {
        self.known.get(&dev).is_some_and(|dev| dev.name.is_some())
    }

    /// The name, or `major:minor`.
    pub(super) fn name(&self, dev: i64, symbols: &mut Symbols) -> Sym {
        let known = self.known.get(&dev).and_then(|device| device.name);
        known.unwrap_or_else(|| {
            let (major, minor) = numbers(dev);
            symbols.intern(&format!("{major}:{minor}"))
        })
    }

    /// Disk and partition of a bio sent to `dev`.
    pub(super) fn place(&mut self, dev: i64) -> (i64, Option<i64>) {
        let device = self.get(dev);
        if !device.in_place {
            return (dev, None);
        }
        (device.parent.unwrap_or(dev), Some(dev))
    }

    /// A remap within one device number: `dev` is a partition whose sectors count from the start of
    /// the disk.
    pub(super) fn remapped_in_place(&mut self, dev: i64, symbols: &Symbols) {
        if self.get(dev).in_place {
            return;
        }
        let parent = self.disk_by_name(dev, symbols);
        let device = self.get(dev);
        device.in_place = true;
        device.parent = parent;
        if parent.is_none() && self.orphans.len() < DEVICES_MAX {
            self.orphans.push(dev);
        }
    }

    /// A remap from one device to another. Returns whether it was from a partition to its disk.
    pub(super) fn remapped(&mut self, from: i64, to: i64) -> bool {
        let is_partition = numbers(from).0 == numbers(to).0 || numbers(from).0 == EXTENDED_MAJOR;
        if is_partition {
            self.get(from).parent = Some(to);
        }
        is_partition
    }

    pub(super) fn orphans(&self) -> &[i64] {
        &self.orphans
    }

    pub(super) fn adopt(&mut self, part: i64, disk: i64) {
        self.get(part).parent = Some(disk);
        self.orphans.retain(|&orphan| orphan != part);
    }

    pub(super) fn finish(&self, symbols: &mut Symbols, sink: &mut impl Emit<DeviceRow>) {
        let mut devs: Vec<i64> = self.known.keys().copied().collect();
        devs.sort_unstable();
        for dev in devs {
            let ((major, minor), device) = (numbers(dev), &self.known[&dev]);
            sink.emit(DeviceRow {
                dev,
                major: major as i32,
                minor: minor as i32,
                name: self.name(dev, symbols),
                parent: device.parent.or(device.disk),
                kind: device.about.kind,
                size: device.about.size,
                rotational: device.about.rotational,
                label: device.about.label,
                backing: device.about.backing,
            });
        }
    }

    /// `vda` for `vda1`, `nvme0n1` for `nvme0n1p2`.
    fn disk_by_name(&self, part: i64, symbols: &Symbols) -> Option<i64> {
        let name = symbols.get(self.known.get(&part)?.name?);
        let disk = name.trim_end_matches(|c: char| c.is_ascii_digit());
        let disk = match disk.strip_suffix('p') {
            Some(numbered) if numbered.ends_with(|c: char| c.is_ascii_digit()) => numbered,
            _ => disk,
        };
        let disk = symbols.find(disk)?;
        let named = |(_, device): &(&i64, &Device)| device.name == Some(disk);
        let found = self.known.iter().filter(named).map(|(&dev, _)| dev);
        found.min().filter(|&disk| disk != part)
    }
}

fn numbers(dev: i64) -> (i64, i64) {
    (dev >> MINOR_BITS, dev & ((1 << MINOR_BITS) - 1))
}
