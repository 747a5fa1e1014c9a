//! Known patterns of behaviour: temporary files that are read once and deleted; logs that flood a
//! disk; loops of sync calls; metadata storms; reads of old data while new data is written.
//!
//! They are found by counting, in one pass over system calls and one over files. Memory grows with
//! the number of programs and path patterns.

mod callers;
mod calls;
mod cold;
pub(crate) mod counters;
pub(crate) mod devices;
mod floods;
mod slow_devices;
mod template;
mod temporary;

use whyslow_analysis::AnalysisError;
use whyslow_model::{Ns, Window};
use whyslow_store::Tables;

use crate::report::{Actor, ActorKind, Observation};
use calls::Counted;
pub use template::of_path as template_of;

/// All observations in the window, those with the most time or bytes first.
pub(crate) fn run(
    tables: &dyn Tables,
    window: Option<Window>,
    recording: &str,
) -> Result<Vec<Observation>, AnalysisError> {
    let counted = Counted::read(tables, window)?;
    let mut found = temporary::find(tables, window, &counted, recording)?;
    found.extend(floods::find(&counted, recording));
    let mut of_devices = devices::find(tables, window, &[], recording)?;
    let slow = slow_devices::find(tables, window, &of_devices, recording)?;
    of_devices.extend(slow);
    found.splice(0..0, of_devices);
    found.extend(cold::find(tables, window, &counted, recording)?);
    found.extend(counters::find(tables, window, recording)?);
    Ok(found)
}

/// A process as a culprit, with its most active thread.
fn actor(name: &str, pid: Option<i32>, tid: Option<i32>) -> Actor {
    Actor {
        kind: ActorKind::Process,
        name: name.to_owned(),
        pid,
        tid,
        host: None,
    }
}

fn mebibytes(bytes: i64) -> String {
    format!("{:.1} MiB", bytes as f64 / (1 << 20) as f64)
}

fn seconds(ns: Ns) -> f64 {
    ns as f64 / 1e9
}
