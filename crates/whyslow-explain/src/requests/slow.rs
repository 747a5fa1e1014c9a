//! Slow requests as servers saw them, including those known from sockets only.

use rustc_hash::FxHashMap;
use whyslow_analysis::AnalysisError;
use whyslow_analysis::before_after::Requests;
use whyslow_model::{Ns, Window};
use whyslow_store::Tables;

/// Minimum number of requests to an endpoint for a usual duration …
const LIKE_MIN: usize = 20;
/// … and how many times longer a slow one takes.
const MEDIANS: Ns = 3;
/// Shorter requests are never slow, …
const SLOW_MIN: Ns = 1_000_000;
/// … and without a usual duration, only longer ones are.
const ALONE_MIN: Ns = 100_000_000;
/// Servers of terminals: a session is one long response to each key.
pub(super) const TERMINALS: [&str; 3] = ["sshd", "mosh-server", "tmux"];

/// One slow request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SlowRequest {
    pub(crate) id: i64,
    pub(crate) ts: Ns,
    pub(crate) dur: Ns,
    /// Method and endpoint, if known.
    pub(crate) what: String,
}

/// Slow requests that servers logged or, without logs, that were seen at their sockets; in order of
/// their start.
pub(crate) fn slow_ones(
    tables: &dyn Tables,
    window: Option<Window>,
) -> Result<Vec<SlowRequest>, AnalysisError> {
    let mut requests = Requests::of_servers(tables, window, false)?;
    if requests.rows.is_empty() {
        requests = Requests::of_servers(tables, window, true)?;
    }
    // Requests without an endpoint are distinguished by the server.
    let mut lengths: FxHashMap<(u32, &str), Vec<Ns>> = FxHashMap::default();
    let mut rows = Vec::new();
    for row in &requests.rows {
        let comm = row.comm.map_or("", |comm| requests.symbols.get(comm));
        let is_terminal = TERMINALS.iter().any(|name| comm.starts_with(name));
        if let Some(dur) = row.dur.filter(|_| !is_terminal) {
            lengths.entry((row.key, comm)).or_default().push(dur);
            rows.push((row, dur, comm));
        }
    }
    let least: FxHashMap<(u32, &str), Ns> = lengths
        .into_iter()
        .map(|(key, mut lengths)| {
            lengths.sort_unstable();
            let median = lengths[(lengths.len() - 1) / 2];
            let has_usual = lengths.len() >= LIKE_MIN;
            let usual = median.saturating_mul(MEDIANS).max(SLOW_MIN);
            (key, if has_usual { usual } else { ALONE_MIN })
        })
        .collect();
    let slow = rows
        .into_iter()
        .filter(|(row, dur, comm)| {
            least
                .get(&(row.key, *comm))
                .is_some_and(|least| dur >= least)
        })
        .map(|(row, dur, _)| SlowRequest {
            id: row.id,
            ts: row.ts,
            dur,
            what: requests
                .keys
                .get(row.key as usize)
                .cloned()
                .unwrap_or_default(),
        });
    Ok(slow.collect())
}
