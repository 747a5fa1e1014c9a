//! `info --devices`: how block devices are stacked, and where they are mounted.

use std::collections::{BTreeMap, BTreeSet};

use whyslow_analysis::Volumes;
use whyslow_model::Symbols;
use whyslow_model::answer::{AnswerColumn, AnswerTable, Form, Measure, Value};
use whyslow_model::tables::{DeviceLinkRow, DeviceRow};
use whyslow_store::{StoreError, Tables, rows};

/// Deeper than any real stack of volumes; stops at cycles in damaged input.
const DEPTH_MAX: usize = 16;
/// Lines of all trees together.
const LINES_MAX: usize = 10_000;

struct Device {
    name: String,
    numbers: String,
    kind: Option<String>,
    size: Option<i64>,
    rotational: Option<bool>,
    label: Option<String>,
    backing: Option<String>,
}

pub(super) fn table(tables: &dyn Tables) -> Result<AnswerTable, StoreError> {
    let column = AnswerColumn::new;
    let columns = vec![
        column("path", "device", Measure::Path),
        column("name", "name", Measure::Text).priority(9),
        column("depth", "depth", Measure::Count),
        column("number", "number", Measure::Text).priority(2),
        column("kind", "type", Measure::Text),
        column("size_bytes", "size", Measure::Bytes),
        column("rotational", "rotational", Measure::Text).priority(3),
        column("label", "label", Measure::Text).priority(1),
        column("mount_points", "mounted at", Measure::Path),
        column("backing", "file", Measure::Path).priority(4),
    ];
    let mut table = AnswerTable::new("devices", "devices", columns);
    table.form = Form::Tree;
    let tree = Tree::read(tables)?;
    for dev in tree.roots() {
        tree.put(dev, (0, String::new()), &mut table);
    }
    Ok(table)
}

/// Whether the machine has volumes or arrays.
pub(super) fn has_volumes(tables: &dyn Tables) -> Result<bool, StoreError> {
    let mut symbols = Symbols::new();
    let links = rows::<DeviceLinkRow>(tables, &mut symbols)?;
    Ok(links.iter().any(|link| symbols.get(link.kind) == "member"))
}

#[derive(Default)]
struct Tree {
    devices: BTreeMap<i64, Device>,
    /// Devices stacked on a device, in order.
    above: BTreeMap<i64, BTreeSet<i64>>,
    mounted: BTreeMap<i64, BTreeSet<String>>,
}

impl Tree {
    fn read(tables: &dyn Tables) -> Result<Self, StoreError> {
        let mut symbols = Symbols::new();
        let mut tree = Self::default();
        let rows_of_devices = rows::<DeviceRow>(tables, &mut symbols)?;
        for row in &rows_of_devices {
            let text = |sym| symbols.get(sym).to_owned();
            let device = Device {
                name: text(row.name),
                numbers: format!("{}:{}", row.major, row.minor),
                kind: row.kind.map(text),
                size: row.size,
                rotational: row.rotational,
                label: row.label.map(text),
                backing: row.backing.map(text),
            };
            tree.devices.insert(row.dev, device);
        }
        let volumes = Volumes::read(tables)?;
        // The backing file of a loop device has its own column, as in lsblk.
        (tree.above, tree.mounted) = (volumes.above, volumes.mounted);
        Ok(tree)
    }

    /// Devices at the bottom of a stack, except empty loop devices.
    fn roots(&self) -> Vec<i64> {
        let below: BTreeSet<i64> = self.above.values().flatten().copied().collect();
        let is_empty_loop =
            |device: &Device| device.kind.as_deref() == Some("loop") && device.backing.is_none();
        let devices = self.devices.iter();
        let mut roots: Vec<(&str, i64)> = devices
            .filter(|(dev, device)| !below.contains(dev) && !is_empty_loop(device))
            .map(|(dev, device)| (device.name.as_str(), *dev))
            .collect();
        roots.sort_unstable();
        roots.into_iter().map(|(_, dev)| dev).collect()
    }

    fn put(&self, dev: i64, (depth, prefix): (usize, String), table: &mut AnswerTable) {
        let Some(device) = self.devices.get(&dev) else {
            return;
        };
        if depth > DEPTH_MAX || table.rows.len() >= LINES_MAX {
            return;
        }
        let path = format!("{prefix}{}", device.name);
        let points = self.mounted.get(&dev);
        let points: Vec<Value> = points
            .into_iter()
            .flatten()
            .map(|point| point.as_str().into())
            .collect();
        table.rows.push(vec![
            path.as_str().into(),
            device.name.as_str().into(),
            (depth as i64).into(),
            device.numbers.as_str().into(),
            device.kind.clone().into(),
            device.size.into(),
            device
                .rotational
                .map(|turns| if turns { "yes" } else { "no" })
                .into(),
            device.label.clone().into(),
            if points.is_empty() {
                Value::Null
            } else {
                Value::List(points)
            },
            device.backing.clone().into(),
        ]);
        for above in self.above.get(&dev).into_iter().flatten() {
            self.put(*above, (depth + 1, format!("{path}/")), table);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn device(name: &str, kind: &str) -> Device {
        Device {
            name: name.into(),
            numbers: "8:0".into(),
            kind: Some(kind.into()),
            size: None,
            rotational: None,
            label: None,
            backing: None,
        }
    }

    fn shown(links: &[(i64, i64)]) -> Vec<String> {
        let names = [
            (1, "sda", "disk"),
            (2, "sda1", "part"),
            (3, "sdb", "disk"),
            (4, "md0", "raid1"),
            (5, "loop7", "loop"),
        ];
        let mut tree = Tree::default();
        for (dev, name, kind) in names {
            tree.devices.insert(dev, device(name, kind));
        }
        for (dev, below) in links {
            tree.above.entry(*below).or_default().insert(*dev);
        }
        let mut table = AnswerTable::new("devices", "devices", Vec::new());
        for dev in tree.roots() {
            tree.put(dev, (0, String::new()), &mut table);
        }
        let path = |row: &Vec<Value>| match &row[0] {
            Value::Text(path) => path.clone(),
            other => panic!("{other:?}"),
        };
        table.rows.iter().map(path).collect()
    }

    #[test]
    fn an_array_stands_below_each_of_its_members() {
        let links = [(2, 1), (4, 2), (4, 3), (9, 3)];
        assert_eq!(
            shown(&links),
            ["sda", "sda/sda1", "sda/sda1/md0", "sdb", "sdb/md0"]
        );
    }

    #[test]
    fn a_circle_ends() {
        // A cycle has no root, unless another device is below it.
        assert!(shown(&[(1, 2), (2, 1), (3, 4), (4, 3)]).is_empty());
        assert!(shown(&[(2, 1), (4, 2), (2, 4)]).len() <= DEPTH_MAX + 2);
    }
}
