//! T10 and T11: does one object (device, host, file) deviate from its peers?

use std::collections::BTreeMap;

use whyslow_analysis::outliers::{Deviation, Operation, deviations};

use super::{Item, NOBODY};

/// Each group of objects compared inside itself. Groups with no more than three cannot be.
pub(super) fn deviating(items: &[Item], groups: &[u32]) -> Vec<Deviation> {
    let mut by_group: BTreeMap<u32, Vec<Operation>> = BTreeMap::new();
    for item in items.iter().filter(|item| item.object != NOBODY) {
        let group = groups.get(item.object as usize).copied().unwrap_or(0);
        by_group.entry(group).or_default().push(Operation {
            ts: item.ts,
            dur: item.dur,
            object: item.object,
            kind: item.key,
        });
    }
    by_group
        .values()
        .flat_map(|operations| deviations(operations))
        .collect()
}
