//! T10 and T11: whether one object (device, host, file) deviates from its peers.

use std::collections::BTreeMap;

use whyslow_analysis::outliers::{Deviation, Operation, deviations};

use super::{Item, UNIDENTIFIED};

/// Compares objects within their groups. Groups need at least four objects.
pub(super) fn deviating(items: &[Item], groups: &[u32]) -> Vec<Deviation> {
    let mut by_group: BTreeMap<u32, Vec<Operation>> = BTreeMap::new();
    for item in items.iter().filter(|item| item.object != UNIDENTIFIED) {
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
