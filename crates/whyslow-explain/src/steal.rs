//! Time that the hypervisor took, by the counter of the kernel: evidence about CPUs that stood still.

use whyslow_analysis::AnalysisError;
use whyslow_model::row::Row;
use whyslow_model::tables::CounterRow;
use whyslow_model::{Ns, Window};
use whyslow_store::Tables;

use crate::report::Finding;
use crate::sentence::length;
use crate::window_slice::columns::rows;

/// Counter of all CPUs.
const STEAL: &str = "cpu_steal";
/// Values this far from a stall are used.
const AROUND_NS: Ns = 10_000_000_000;

/// Adds what the counter shows to findings whose culprit is a CPU that stood still.
pub(crate) fn cite(tables: &dyn Tables, findings: &mut [Finding]) -> Result<(), AnalysisError> {
    for finding in findings {
        let part = finding.culprit.and_then(|place| finding.parts.get(place));
        let Some(part) = part.filter(|part| part.root == "cpu_stalled") else {
            continue;
        };
        let window = Window::new(finding.target.begin_ns, finding.target.end_ns);
        let Some(stolen) = stolen(tables, window)? else {
            continue;
        };
        finding.caveats.push(if stolen * 2 >= part.dur_ns {
            format!(
                "the hypervisor took {} from all CPUs around that time (counter {STEAL}): steal",
                length(stolen)
            )
        } else {
            format!(
                "only {} of steal time was counted around that time (counter {STEAL}): \
                 an SMI or disabled interrupts are more likely",
                length(stolen)
            )
        });
    }
    Ok(())
}

/// Increase of the counter from its last value before the window to its first value after it. A
/// value is recorded when it changes. `None` if there is no value before the window.
fn stolen(tables: &dyn Tables, window: Window) -> Result<Option<Ns>, AnalysisError> {
    let around = Window::new(window.begin - AROUND_NS, window.end + AROUND_NS);
    let (mut before, mut after) = (None, None);
    let columns = (&["ts", "value"][..], &["name", "reported_by"][..]);
    rows(
        tables,
        CounterRow::TABLE,
        columns,
        Some(around),
        |cells, row| {
            if cells.text(0, row) != STEAL || !cells.text(1, row).is_empty() {
                return;
            }
            let (ts, value) = (cells.ints[0].at(row), cells.ints[1].at(row));
            if ts <= window.begin {
                before = Some(value);
            } else if after.is_none_or(|(ts, _)| ts < window.end) {
                after = Some((ts, value));
            }
        },
    )?;
    Ok(before.map(|before| after.map_or(0, |(_, after)| after - before)))
}
