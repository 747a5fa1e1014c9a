//! Things that have a name: files that are made, read once and deleted; logs that flood a disk; others
//! that synchronise in a loop; storms of names looked up; old data read while new is written.
//!
//! Each is found by counting, in one pass over the calls and one over the files; what is remembered
//! grows with the number of programs and patterns of paths.

mod callers;
mod calls;
mod cold;
pub(crate) mod devices;
mod floods;
mod template;
mod temporary;
pub(crate) mod told;

use whyslow_analysis::AnalysisError;
use whyslow_model::{Ns, Window};
use whyslow_store::Tables;

use crate::report::{Actor, ActorKind, Finding};
use calls::Counted;
pub use template::of_path as template_of;

/// All that is found in the window, what took most time or bytes first.
pub(crate) fn run(
    tables: &dyn Tables,
    window: Option<Window>,
    recording: &str,
) -> Result<Vec<Finding>, AnalysisError> {
    let counted = Counted::read(tables, window)?;
    let mut found = temporary::find(tables, window, &counted, recording)?;
    found.extend(floods::find(&counted, recording));
    found.splice(0..0, devices::find(tables, window, &[], recording)?);
    found.extend(cold::find(tables, window, &counted, recording)?);
    found.extend(told::find(tables, window, recording)?);
    Ok(found)
}

/// A process as a culprit, and the thread of it that did most.
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
