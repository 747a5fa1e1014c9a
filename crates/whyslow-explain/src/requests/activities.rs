//! What threads did for requests: system calls, peers and files.

use std::ops::ControlFlow;

use rustc_hash::{FxHashMap, FxHashSet};
use whyslow_analysis::AnalysisError;
use whyslow_analysis::before_after::Request;
use whyslow_analysis::read::{Projection, in_order};
use whyslow_model::row::Row;
use whyslow_model::tables::SyscallRow;
use whyslow_model::{Ns, Window};

use super::findings::RequestExplainer;
use crate::detectors::template_of;

/// Maximum number of distinct activities.
const THINGS_MAX: usize = 5000;

/// Activities by index of the request.
#[derive(Debug, Default)]
pub(super) struct Activities {
    pub(super) of: FxHashMap<usize, Vec<u32>>,
    /// Column and value.
    pub(super) names: Vec<(&'static str, String)>,
}

/// Stretches of one thread: start, end, index of the request.
type Stretches = Vec<(Ns, Ns, usize)>;

pub(super) fn read(
    explainer: &RequestExplainer<'_>,
    requests: &[usize],
) -> Result<Activities, AnalysisError> {
    let mut found = Activities::default();
    let mut of_thread: FxHashMap<i64, Stretches> = FxHashMap::default();
    for place in requests {
        let request: &Request = &explainer.requests.rows[*place];
        for one in explainer.threads.of(request) {
            let stretches = of_thread.entry(i64::from(one.utid)).or_default();
            stretches.push((one.begin, one.end, *place));
        }
    }
    let all = || of_thread.values().flatten();
    let (Some(begin), Some(end)) = (all().map(|one| one.0).min(), all().map(|one| one.1).max())
    else {
        return Ok(found);
    };
    for stretches in of_thread.values_mut() {
        stretches.sort_unstable();
    }
    let mut numbers: FxHashMap<(&'static str, String), u32> = FxHashMap::default();
    let mut seen: FxHashSet<(usize, u32)> = FxHashSet::default();
    let mut projection = Projection::new(SyscallRow::TABLE);
    let [ts, utid] = ["ts", "utid"].map(|name| projection.need(name));
    let [name, class, path] = ["name", "fd_class", "path"].map(|name| projection.need(name));
    let window = Window::new(begin, end.saturating_add(1));
    in_order(explainer.tables, &projection.scan(Some(window)), |batch| {
        let (ts, utid) = (ts.ints(batch)?, utid.ints(batch)?);
        let (name, class, path) = (name.texts(batch)?, class.texts(batch)?, path.texts(batch)?);
        for row in 0..batch.num_rows() as u32 {
            let stretches = utid.get(row).and_then(|utid| of_thread.get(&utid));
            let Some(place) = stretches.and_then(|all| inside(all, ts.at(row))) else {
                continue;
            };
            let is_socket = matches!(class.get(row), Some("inet" | "inet6" | "unix"));
            let object = path.get(row).map(|path| {
                if is_socket {
                    ("peer", path.to_owned())
                } else {
                    ("file", template_of(path))
                }
            });
            let call = name.get(row).map(|name| ("call", name.to_owned()));
            for thing in [call, object].into_iter().flatten() {
                let next = numbers.len() as u32;
                if numbers.len() >= THINGS_MAX && !numbers.contains_key(&thing) {
                    continue;
                }
                let number = *numbers.entry(thing).or_insert_with_key(|thing| {
                    found.names.push(thing.clone());
                    next
                });
                if seen.insert((place, number)) {
                    found.of.entry(place).or_default().push(number);
                }
            }
        }
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(found)
}

/// The request that a thread handled at a time: the one that it started last.
fn inside(stretches: &[(Ns, Ns, usize)], ts: Ns) -> Option<usize> {
    let after = stretches.partition_point(|one| one.0 <= ts);
    let last = stretches[..after].last()?;
    (ts < last.1).then_some(last.2)
}
