//! What a recording knows of its machine, as far as advice depends on it.

use std::collections::BTreeMap;

use whyslow_analysis::AnalysisError;
use whyslow_model::Symbols;
use whyslow_model::tables::{DeviceRow, MetadataRow};
use whyslow_store::{Tables, rows};

/// Names of devices that are not disks, for sources that do not report the type.
const STACKED: [&str; 7] = ["loop", "dm-", "md", "ram", "zram", "nbd", "sr"];

/// A block device that is no partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Disk {
    pub(crate) name: String,
    /// A physical or virtual disk, not a loop device or volume.
    pub(crate) is_whole: bool,
    /// The I/O scheduler in use; `None` if it was not recorded.
    pub(crate) scheduler: Option<String>,
}

#[derive(Debug, Default)]
pub(crate) struct Machine {
    /// Version of the cgroup hierarchy with the controllers; `None` if it was not recorded.
    pub(crate) cgroup_version: Option<u8>,
    disks: Vec<Disk>,
    /// Disk of each partition, by name.
    partitions: BTreeMap<String, String>,
}

impl Machine {
    pub(crate) fn read(tables: &dyn Tables) -> Result<Self, AnalysisError> {
        let mut symbols = Symbols::new();
        let mut cgroup_version = None;
        let mut schedulers: BTreeMap<String, String> = BTreeMap::new();
        for fact in rows::<MetadataRow>(tables, &mut symbols)? {
            let value = symbols.get(fact.value);
            match symbols.get(fact.key) {
                "cgroup_version" => cgroup_version = value.parse().ok(),
                "io_scheduler" => {
                    let both = value.split_once(' ');
                    schedulers.extend(both.map(|(dev, name)| (dev.to_owned(), name.to_owned())));
                }
                _ => {}
            }
        }
        let devices = rows::<DeviceRow>(tables, &mut symbols)?;
        let name_of: BTreeMap<i64, &str> = devices
            .iter()
            .map(|row| (row.dev, symbols.get(row.name)))
            .collect();
        let (mut disks, mut partitions) = (Vec::new(), BTreeMap::new());
        for row in &devices {
            let (name, kind) = (
                symbols.get(row.name),
                row.kind.map(|kind| symbols.get(kind)),
            );
            if let Some(parent) = row.parent.and_then(|parent| name_of.get(&parent)) {
                partitions.insert(name.to_owned(), (*parent).to_owned());
                continue;
            }
            disks.push(Disk {
                name: name.to_owned(),
                is_whole: kind.map_or_else(|| !is_stacked(name), |kind| kind == "disk"),
                scheduler: schedulers.remove(name),
            });
        }
        Ok(Self {
            cgroup_version,
            disks,
            partitions,
        })
    }

    /// The device with this name, or the disk of that partition.
    pub(crate) fn disk(&self, name: &str) -> Option<&Disk> {
        let name = self.partitions.get(name).map_or(name, String::as_str);
        self.disks.iter().find(|disk| disk.name == name)
    }

    /// Whether there are disks to compare one with.
    pub(crate) fn has_peers(&self, disk: &Disk) -> bool {
        disk.is_whole && self.disks.iter().filter(|one| one.is_whole).count() > 1
    }

    /// The known I/O schedulers of disks.
    pub(crate) fn schedulers(&self) -> impl Iterator<Item = &str> {
        let disks = self.disks.iter().filter(|disk| disk.is_whole);
        disks.filter_map(|disk| disk.scheduler.as_deref())
    }

    #[cfg(test)]
    pub(crate) fn of(cgroup_version: Option<u8>, disks: Vec<Disk>) -> Self {
        let first = |disk: &Disk| (format!("{}1", disk.name), disk.name.clone());
        Self {
            cgroup_version,
            partitions: disks.iter().map(first).collect(),
            disks,
        }
    }
}

fn is_stacked(name: &str) -> bool {
    STACKED.iter().any(|prefix| name.starts_with(prefix))
}
