//! `search`: occurrences of a text in the names of a recording.

mod names;
mod things;

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Request, State};
use axum::response::Response;
use serde::Serialize;
use serde_json::{Value, json};
use whyslow_store::Tables;

use crate::limited::{Gauge, Limited};
use crate::open_recording::OpenRecording;
use crate::query::Query;
use crate::reply::{self, Refusal};
use crate::server::Shared;

/// Hits per kind.
const HITS: usize = 20;
const HITS_MAX: usize = 500;
const TEXT_BYTES_MAX: usize = 1_000;
/// Time limit per event table; hits found until then are returned.
const TIME_MAX: Duration = Duration::from_secs(5);

/// Something with a matching name.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Hit {
    kind: &'static str,
    text: String,
    detail: Option<String>,
    /// Number of occurrences, in its own measure: calls, requests, lookups, threads, stacks.
    count: Option<u64>,
    begin_ns: Option<i64>,
    end_ns: Option<i64>,
    /// Query parameters that select it.
    filter: Value,
}

/// The text to search for.
pub(super) struct Needle {
    lower: String,
    number: Option<i64>,
    hits_max: usize,
}

impl Needle {
    fn new(text: &str, hits_max: usize) -> Self {
        Self {
            lower: text.to_lowercase(),
            number: text.trim().parse().ok(),
            hits_max,
        }
    }

    fn is_in(&self, text: &str) -> bool {
        text.to_lowercase().contains(&self.lower)
    }
}

/// The hits, and whether there are more.
#[derive(Debug, Default)]
struct Found {
    hits: Vec<Hit>,
    is_cut: bool,
}

impl Found {
    /// Adds the most frequent hits of a kind.
    fn add(&mut self, mut hits: Vec<Hit>, hits_max: usize) {
        hits.sort_by(|a, b| b.count.cmp(&a.count).then_with(|| a.text.cmp(&b.text)));
        self.is_cut |= hits.len() > hits_max;
        hits.truncate(hits_max);
        self.hits.append(&mut hits);
    }
}

pub(crate) async fn search(
    State(shared): State<Shared>,
    request: Request,
) -> Result<Response, Refusal> {
    let query = Query::of(request.uri())?;
    query.only(&["q", "limit", "digest"])?;
    let text = query.need("q")?.to_owned();
    if text.trim().is_empty() || text.len() > TEXT_BYTES_MAX {
        let error = format!("the search text must have between 1 and {TEXT_BYTES_MAX} bytes");
        return Err(Refusal::wrong(error));
    }
    let hits_max = query.number("limit", HITS)?.clamp(1, HITS_MAX);
    let current = shared.recordings.find(&query)?.now();
    let explanation = shared.memo.get(&shared.memo.key(&current.identity(), &[]));
    let found = shared.queue.run(move |gauge| {
        let needle = Needle::new(&text, hits_max);
        let findings = explanation.as_deref().map_or(&[][..], Vec::as_slice);
        find(&current, gauge, &needle, findings)
    });
    let Found { hits, is_cut } = found.await?;
    reply::json_document(&json!({"hits": hits, "cut": is_cut}))
}

fn find(
    current: &Arc<OpenRecording>,
    gauge: &Gauge,
    needle: &Needle,
    findings: &[u8],
) -> Result<Found, Refusal> {
    let tables = Limited::new(&*current.opened.tables, gauge);
    let tables: &dyn Tables = &tables;
    let mut found = Found::default();
    found.add(things::findings(findings, needle), needle.hits_max);
    let (processes, threads) = things::tasks(tables, needle)?;
    found.add(processes, needle.hits_max);
    found.add(threads, needle.hits_max);
    found.add(things::devices(tables, needle)?, needle.hits_max);
    for (hits, is_whole) in [names::hosts(tables, needle)?, names::files(tables, needle)?] {
        found.add(hits, needle.hits_max);
        found.is_cut |= !is_whole;
    }
    found.add(things::functions(tables, needle)?, needle.hits_max);
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn case_does_not_matter_and_numbers_are_numbers() {
        let needle = Needle::new("ÄPache", 1);
        assert!(needle.is_in("xäpachex") && !needle.is_in("apache"));
        assert_eq!(Needle::new(" 12 ", 1).number, Some(12));
        assert_eq!(Needle::new("12x", 1).number, None);
    }
}
