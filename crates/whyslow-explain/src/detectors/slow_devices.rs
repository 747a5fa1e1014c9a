//! Devices that are always slow: in absolute terms, whatever their peers do.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use whyslow_analysis::AnalysisError;
use whyslow_analysis::read::{Projection, in_order};
use whyslow_model::row::Row;
use whyslow_model::tables::BlockIoRow;
use whyslow_model::{Ns, Window};
use whyslow_store::Tables;

use super::seconds;
use crate::report::{Actor, ActorKind, Observation, Thing};
use crate::sentence;
use crate::slow::{Counts, Slow};

/// No disk needs that long for a usual request: neither a spinning one nor one over a network.
const SLOW_NS: Ns = 100_000_000;
/// Minimum number of requests.
const REQUESTS_MIN: u64 = 5;
/// Faster devices that are listed beside it.
const OTHERS: usize = 3;

struct Device {
    counts: Counts,
    first: Ns,
    last: Ns,
    longest: (Ns, i64),
}

/// Devices in which most requests take 100 ms or longer, without those of `reported`.
pub(super) fn find(
    tables: &dyn Tables,
    window: Option<Window>,
    reported: &[Observation],
    recording: &str,
) -> Result<Vec<Observation>, AnalysisError> {
    let devices = read(tables, window)?;
    let is_slow = |device: &Device| {
        device.counts.count() >= REQUESTS_MIN && device.counts.median() as Ns >= SLOW_NS
    };
    let is_new = |name: &str| reported.iter().all(|one| one.culprit.name != name);
    let slow = devices.iter().filter(|(_, device)| is_slow(device));
    let slow = slow.filter(|(name, _)| is_new(name));
    let found = slow.map(|(name, device)| {
        let fast = devices.iter().filter(|(_, other)| !is_slow(other));
        let fast = fast.filter(|(_, other)| other.counts.count() >= REQUESTS_MIN);
        let others: Vec<String> = fast
            .take(OTHERS)
            .map(|(name, other)| {
                let median = sentence::length(other.counts.median() as Ns);
                format!("{name} {median}")
            })
            .collect();
        let others = match others.as_slice() {
            [] => String::new(),
            others => format!(" (other devices: {})", others.join(", ")),
        };
        let (median, (most, id)) = (device.counts.median() as Ns, device.longest);
        Observation {
            kind: "slow_device".into(),
            culprit: Actor {
                kind: ActorKind::Device,
                name: name.clone(),
                pid: None,
                tid: None,
                host: None,
            },
            object: Some(Thing {
                kind: "device".into(),
                name: name.clone(),
            }),
            begin_ns: device.first,
            end_ns: device.last,
            summary: format!(
                "device {name} is always slow: the median of {} requests is {} in the device, the maximum {}{others}",
                device.counts.count(),
                sentence::length(median),
                sentence::length(most),
            ),
            numbers: vec![
                ("count".into(), device.counts.count() as f64),
                ("median_seconds".into(), seconds(median)),
                ("max_seconds".into(), seconds(most)),
            ],
            evidence: vec![format!("block:{id}")],
            shown_by: Some(format!("whyslow block stats {recording} --dev {name}")),
            suggestions: vec![
                "check the device, its path and its limits: kernel log, multipath, io.max of the cgroup".into(),
            ],
        }
    });
    Ok(found.collect())
}

/// Time in the device by its name.
fn read(
    tables: &dyn Tables,
    window: Option<Window>,
) -> Result<BTreeMap<String, Device>, AnalysisError> {
    let mut devices: BTreeMap<String, Device> = BTreeMap::new();
    let mut projection = Projection::new(BlockIoRow::TABLE);
    let [id, ts, end, issue] = ["id", "ts", "ts_end", "ts_issue"].map(|name| projection.need(name));
    let dev = projection.need("dev_name");
    in_order(tables, &projection.scan(window), |batch| {
        let (id, ts) = (id.ints(batch)?, ts.ints(batch)?);
        let (end, issue, dev) = (end.ints(batch)?, issue.ints(batch)?, dev.texts(batch)?);
        for row in 0..batch.num_rows() as u32 {
            let begin = ts.at(row);
            let (Some(end), Some(name)) = (end.get(row), dev.get(row)) else {
                continue;
            };
            if window.is_some_and(|window| !window.contains(begin)) {
                continue;
            }
            let dur = end - issue.get(row).unwrap_or(begin);
            if !devices.contains_key(name) {
                devices.insert(
                    name.to_owned(),
                    Device {
                        counts: Counts::new(),
                        first: begin,
                        last: end,
                        longest: (dur, id.at(row)),
                    },
                );
            }
            if let Some(device) = devices.get_mut(name) {
                device.counts.add(Slow {
                    dur,
                    id: id.at(row),
                    ts: begin,
                    utid: -1,
                    upid: -1,
                });
                device.last = device.last.max(end);
                device.longest = device.longest.max((dur, id.at(row)));
            }
        }
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(devices)
}
