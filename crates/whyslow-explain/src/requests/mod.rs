//! Findings of requests. For the set: which pattern of slowness it is, and how slow requests differ.
//! For one: what the threads that served it waited for. If no thread is known, phases show where
//! the time went, but not why.

mod activities;
mod bursts;
mod contrasts;
mod findings;
mod handlers;
mod local;
mod meanwhile;
mod queued;
mod representative;
mod results;
mod set;
mod slow;
pub(crate) mod threads;

use whyslow_analysis::AnalysisError;
use whyslow_analysis::before_after::{Request, Requests};
use whyslow_model::Window;
use whyslow_model::sort::IndexSort;
use whyslow_store::Tables;

use crate::group_excess::WALKED;
use crate::report::{Finding, Report, Versus};
use crate::versus::{Other, Per, versus};
use findings::RequestExplainer;
pub(crate) use slow::slow_ones;
use threads::Threads;

/// Adds all requests of the window at the top of the report.
pub(crate) fn add(
    tables: &dyn Tables,
    query: &crate::query::Query,
    other: Option<&Other<'_>>,
    report: &mut Report,
) -> Result<(), AnalysisError> {
    let requests = Requests::read(tables, query.window)?;
    if !requests.rows.is_empty() {
        let found = bursts::find(tables, query, &requests)?;
        report.observations.splice(0..0, found);
    }
    // Requests seen at sockets only are usually covered by the findings of the calls that waited for
    // them.
    if requests.rows.is_empty() || requests.is_of_sockets && !query.with_sockets {
        return Ok(());
    }
    let there = match other {
        Some(other) => Requests::read(other.tables, other.window)?,
        None => Requests::default(),
    };
    let threads = Threads::read(tables, query.window)?;
    let explainer = RequestExplainer {
        tables,
        requests: &requests,
        threads: &threads,
        recording: &query.recording,
    };
    let verdict = set::judge_set(&explainer, query, &there)?;
    if let Some(finding) = set::finding(&explainer, &verdict)? {
        report.findings.insert(0, finding);
    }
    if !verdict.is_insufficient() || other.is_some() || !verdict.slow().is_empty() {
        report.patterns.insert(0, verdict.pattern());
    }
    Ok(())
}

/// One request.
pub(crate) fn one(tables: &dyn Tables, id: i64, recording: &str) -> Result<Finding, AnalysisError> {
    let requests = threads::with(tables, id)?;
    let Some(request) = requests.rows.iter().find(|request| request.id == id) else {
        return Err(AnalysisError::Query {
            message: format!("no request {id} in this recording"),
            hint: Some("list them with `whyslow requests list`".into()),
        });
    };
    let threads = Threads::read(tables, None)?;
    let explainer = RequestExplainer {
        tables,
        requests: &requests,
        threads: &threads,
        recording,
    };
    explainer.one(request)
}

/// Compares what the threads that served requests spend their time on, for a sample of requests of
/// all durations of each side. `None` if a side does not show which threads these were, or what
/// they did.
pub fn requests_versus(
    before: (&dyn Tables, Option<Window>),
    after: (&dyn Tables, Option<Window>),
    (name_before, name_after): (&str, &str),
) -> Result<Option<Versus>, AnalysisError> {
    let walked = |(tables, window): (&dyn Tables, Option<Window>), recording: &str| {
        let threads = Threads::read(tables, window)?;
        if threads.is_empty() {
            return Ok(Vec::new());
        }
        let requests = Requests::read(tables, window)?;
        let explainer = RequestExplainer {
            tables,
            requests: &requests,
            threads: &threads,
            recording,
        };
        let mut served: Vec<&Request> = requests
            .rows
            .iter()
            .filter(|request| request.dur.is_some() && threads.longest(request).is_some())
            .collect();
        served.index_sort_by_ints(|request| [request.dur.unwrap_or(i64::MIN), request.id, 0]);
        explainer.walked(&spread(&served, 2 * WALKED))
    };
    let there: Vec<Finding> = walked(before, name_before)?;
    let here = walked(after, name_after)?;
    if there.is_empty() || here.is_empty() {
        return Ok(None);
    }
    let other = Other {
        tables: before.0,
        window: before.1,
        recording: name_before,
        is_same: false,
    };
    Ok(Some(versus(&here, &there, Per::Call, &other)))
}

/// At most `most` of these, evenly over their order.
fn spread<'r>(requests: &[&'r Request], most: usize) -> Vec<&'r Request> {
    let count = requests.len().min(most);
    let place = |number: usize| (2 * number + 1) * requests.len() / (2 * count);
    (0..count).map(|number| requests[place(number)]).collect()
}
