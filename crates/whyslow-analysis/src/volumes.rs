//! What is on a block device: partitions, volumes, arrays, loop devices backed by its files, and
//! mounts of any of these.

use std::collections::{BTreeMap, BTreeSet};

use whyslow_model::Symbols;
use whyslow_model::tables::{DeviceLinkRow, DeviceRow, MetadataRow, MountRow};
use whyslow_store::{StoreError, Tables, rows};

/// The stacking of devices, and their mount points.
#[derive(Debug, Default)]
pub struct Volumes {
    /// Devices stacked on each device, such as partitions and arrays.
    pub above: BTreeMap<i64, BTreeSet<i64>>,
    /// Loop devices by the device that holds their backing file.
    pub by_file: BTreeMap<i64, BTreeSet<i64>>,
    /// Mount points of each device itself.
    pub mounted: BTreeMap<i64, BTreeSet<String>>,
    names: BTreeMap<String, i64>,
    /// Disk of each partition.
    disks: BTreeMap<i64, i64>,
}

impl Volumes {
    /// Reads devices, links and mounts; mount points are those of the recorder's mount namespace.
    pub fn read(tables: &dyn Tables) -> Result<Self, StoreError> {
        let mut symbols = Symbols::new();
        let mut volumes = Self::default();
        for row in rows::<DeviceRow>(tables, &mut symbols)? {
            if let Some(disk) = row.parent {
                volumes.disks.insert(row.dev, disk);
                volumes.above.entry(disk).or_default().insert(row.dev);
            }
            let name = symbols.get(row.name).to_owned();
            volumes.names.insert(name, row.dev);
        }
        for row in rows::<DeviceLinkRow>(tables, &mut symbols)? {
            let links = match symbols.get(row.kind) {
                "file" => &mut volumes.by_file,
                _ => &mut volumes.above,
            };
            links.entry(row.below).or_default().insert(row.dev);
        }
        let own_ns = own_ns(tables, &mut symbols)?;
        let mounts = rows::<MountRow>(tables, &mut symbols)?;
        volumes.mount(&mounts, &symbols, own_ns);
        Ok(volumes)
    }

    /// As seen in the recorder's namespace; mounts that only exist in others are taken from there.
    fn mount(&mut self, mounts: &[MountRow], symbols: &Symbols, own_ns: Option<i64>) {
        let known: BTreeSet<i64> = self.names.values().copied().collect();
        // File systems over several devices have device numbers of their own.
        let dev_of = |row: &MountRow| {
            if known.contains(&row.dev) {
                return Some(row.dev);
            }
            let name = symbols.get(row.source).strip_prefix("/dev/")?;
            self.names.get(name).copied()
        };
        let (own, others): (Vec<_>, Vec<_>) = mounts
            .iter()
            .partition(|row| own_ns.is_none_or(|ns| ns == row.mount_ns));
        let mut mounted: BTreeMap<i64, BTreeSet<String>> = BTreeMap::new();
        let mut put = |row: &MountRow, dev: i64| {
            let point = symbols.get(row.mount_point).to_owned();
            mounted.entry(dev).or_default().insert(point);
        };
        let mut seen = BTreeSet::new();
        for row in own {
            if let Some(dev) = dev_of(row) {
                seen.insert(dev);
                put(row, dev);
            }
        }
        for row in others {
            if let Some(dev) = dev_of(row).filter(|dev| !seen.contains(dev)) {
                put(row, dev);
            }
        }
        self.mounted = mounted;
    }

    /// For each disk the other disks of its volume or array, with itself; of the largest one if it is
    /// in several. Disks without a volume are left out.
    pub(crate) fn fellows(&self) -> BTreeMap<&str, BTreeSet<&str>> {
        let names: BTreeMap<i64, &str> = self
            .names
            .iter()
            .map(|(name, dev)| (*dev, name.as_str()))
            .collect();
        let mut members: BTreeMap<i64, BTreeSet<&str>> = BTreeMap::new();
        for (below, above) in &self.above {
            let disk = self.disks.get(below).unwrap_or(below);
            let Some(name) = names.get(disk) else {
                continue;
            };
            let volumes = above.iter().filter(|dev| !self.disks.contains_key(dev));
            for volume in volumes {
                members.entry(*volume).or_default().insert(name);
            }
        }
        let mut fellows: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for disks in members.into_values() {
            for disk in &disks {
                let known = fellows.entry(disk).or_default();
                if disks.len() > known.len() {
                    known.clone_from(&disks);
                }
            }
        }
        fellows
    }

    /// Mount points of anything on the device with this name, in order.
    pub(crate) fn mount_points(&self, name: &str) -> Vec<&str> {
        let mut devices: Vec<i64> = self.names.get(name).copied().into_iter().collect();
        let mut seen: BTreeSet<i64> = devices.iter().copied().collect();
        let mut points = BTreeSet::new();
        while let Some(dev) = devices.pop() {
            points.extend(self.mounted.get(&dev).into_iter().flatten());
            let above = [&self.above, &self.by_file].map(|links| links.get(&dev));
            // Visited devices are skipped, which ends cycles in damaged input.
            let new = above.into_iter().flatten().flatten();
            devices.extend(new.filter(|dev| seen.insert(**dev)));
        }
        points.into_iter().map(String::as_str).collect()
    }
}

/// The mount namespace of the recorder.
fn own_ns(tables: &dyn Tables, symbols: &mut Symbols) -> Result<Option<i64>, StoreError> {
    let facts = rows::<MetadataRow>(tables, symbols)?;
    let mut found = facts
        .iter()
        .filter(|row| symbols.get(row.key) == "mount_ns")
        .filter_map(|row| symbols.get(row.value).parse().ok());
    Ok(found.next())
}
