//! What handlers were busy with while a request waited for one.
//!
//! Of a broker's log: `request_queue` is the wait, `local` what a handler had a request for, and each comes after the
//! other. Which handler took which request is not told, so this is who was being served meanwhile, not who was first
//! in the queue.

use rustc_hash::FxHashMap;
use whyslow_analysis::AnalysisError;
use whyslow_analysis::before_after::Request;
use whyslow_model::tables::RequestPhaseRow;
use whyslow_model::{Ns, Symbols, Window};
use whyslow_store::{Tables, each_row};

/// The wait for a handler.
pub(super) const PHASE: &str = "request_queue";
/// What a handler does itself.
const SERVED: &str = "local";

/// Who was served meanwhile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Ahead {
    pub(super) others: usize,
    /// Id of the one that took most of the wait, and how much of it.
    pub(super) most: i64,
    pub(super) most_ns: Ns,
}

/// None where no other was served while it waited.
pub(super) fn ahead(
    tables: &dyn Tables,
    request: &Request,
) -> Result<Option<Ahead>, AnalysisError> {
    let mut symbols = Symbols::new();
    let mut wait = None;
    let length = request.dur.unwrap_or(0).saturating_add(1);
    let whole = Window {
        begin: request.ts,
        end: request.ts.saturating_add(length),
    };
    each_row::<RequestPhaseRow>(tables, Some(whole), &mut symbols, |row, symbols| {
        if row.request == request.id && symbols.get(row.phase) == PHASE {
            wait = row.dur.map(|dur| (row.ts, row.ts.saturating_add(dur)));
        }
        Ok(())
    })?;
    let Some((begin, end)) = wait else {
        return Ok(None);
    };
    let mut served: FxHashMap<i64, Ns> = FxHashMap::default();
    each_row::<RequestPhaseRow>(
        tables,
        Some(Window { begin, end }),
        &mut symbols,
        |row, symbols| {
            let last = row.ts.saturating_add(row.dur.unwrap_or(0)).min(end);
            let meanwhile = last.saturating_sub(row.ts.max(begin));
            if meanwhile > 0 && row.request != request.id && symbols.get(row.phase) == SERVED {
                *served.entry(row.request).or_default() += meanwhile;
            }
            Ok(())
        },
    )?;
    let longest = served.iter().max_by_key(|(id, ns)| (**ns, -**id));
    Ok(longest.map(|(most, most_ns)| Ahead {
        others: served.len(),
        most: *most,
        most_ns: *most_ns,
    }))
}
