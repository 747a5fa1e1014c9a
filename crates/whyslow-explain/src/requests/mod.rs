//! Findings of requests. For the set: which pattern of slowness it is, and how slow requests differ.
//! For one: what the threads that served it waited for. If no thread is known, phases show where
//! the time went, but not why.

mod activities;
mod bursts;
mod contrasts;
pub(crate) mod did;
mod findings;
mod handlers;
mod idle;
mod local;
mod meanwhile;
mod queued;
mod representative;
mod results;
mod services;
mod set;
mod slow;
pub(crate) mod threads;
mod views;

use whyslow_analysis::AnalysisError;
use whyslow_analysis::before_after::{Request, Requests};
use whyslow_model::sort::IndexSort;
use whyslow_model::{Ns, Window};
use whyslow_store::Tables;

use crate::brief::Brief;
use crate::group_excess::WALKED;
use crate::query::FINDINGS;
use crate::ranked;
use crate::report::{Finding, Observation, Report, Versus};
use crate::versus::{Other, Per, versus};
use findings::RequestExplainer;
pub(crate) use slow::slow_ones;
use threads::Threads;

/// Adds all requests of the window at the top of the report.
pub(crate) fn add(
    tables: &dyn Tables,
    query: &crate::query::Query,
    (other, brief): (Option<&Other<'_>>, Option<&mut Brief>),
    report: &mut Report,
) -> Result<(), AnalysisError> {
    let requests = Requests::read(tables, query.window)?;
    if !requests.rows.is_empty() {
        let found = bursts::find(tables, query, &requests)?;
        report.observations.splice(0..0, found);
    }
    let is_set = !requests.rows.is_empty() && (!requests.is_of_sockets || query.with_sockets);
    let before = report.findings.len();
    if is_set {
        add_set(tables, query, (other, &requests), report)?;
    }
    // A comparison is of the whole set.
    if !(is_set && requests.is_of_sockets) && other.is_none() {
        let mut services = services::find(tables, query, &requests)?;
        if let Some(brief) = brief {
            brief.take_out(&mut services.findings, report.end_ns - report.begin_ns);
        }
        let fixed = report.findings.len() - before;
        if !services.findings.is_empty() {
            ranked::add_requests(&mut report.findings, services.findings, fixed);
            let limit = query.limit.unwrap_or(FINDINGS);
            let limit = if limit == 0 { usize::MAX } else { limit };
            report.findings.truncate(limit.saturating_add(fixed));
        }
        report.caveats.extend(services.notes);
    }
    Ok(())
}

/// Adds the finding of all requests that a load generator or a log reports, and their pattern.
fn add_set(
    tables: &dyn Tables,
    query: &crate::query::Query,
    (other, requests): (Option<&Other<'_>>, &Requests),
    report: &mut Report,
) -> Result<(), AnalysisError> {
    let there = match other {
        Some(other) => Requests::read(other.tables, other.window)?,
        None => Requests::default(),
    };
    let threads = Threads::read(tables, query.window)?;
    let explainer = RequestExplainer {
        tables,
        requests,
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
    let mut finding = explainer.one(request)?;
    finding
        .caveats
        .extend(of_client(tables, &threads, request)?);
    Ok(finding)
}

/// A sentence about the client of a server's request that waited for it for much longer: it was in a
/// queue before the server read it.
fn of_client(
    tables: &dyn Tables,
    threads: &Threads,
    request: &Request,
) -> Result<Option<String>, AnalysisError> {
    if !threads.has_activity() {
        return Ok(None);
    }
    let clients = Requests::of_sockets(tables, None, "client")?;
    let mut clients = clients.rows.iter();
    let client = clients.find(|client| threads.server_of(client) == Some(request.id));
    let waited = client.and_then(|client| Some((client.id, client.dur?)));
    let waited = waited.filter(|(_, waited)| *waited >= 2 * request.dur.unwrap_or(Ns::MAX / 2));
    Ok(waited.map(|(id, waited)| {
        format!(
            "its client waited {} for it, most of that before the server read it: explain the client's side with --request {id}",
            crate::sentence::length(waited)
        )
    }))
}

/// Patterns of behaviour of the processes of a request, and of its culprit, in its time.
pub(crate) fn patterns_of(
    tables: &dyn Tables,
    finding: &Finding,
    recording: &str,
) -> Result<Vec<Observation>, AnalysisError> {
    let target = &finding.target;
    let window = Window::new(target.begin_ns, target.end_ns);
    let parts = finding.parts.iter();
    let pids: Vec<i32> = parts
        .filter_map(|part| part.culprit.pid)
        .chain(target.actor.pid)
        .collect();
    let mut found = crate::detectors::run(tables, Some(window), recording)?;
    found.retain(|one| one.culprit.pid.is_some_and(|pid| pids.contains(&pid)));
    Ok(found)
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
