//! Stories of requests: of the set, which kind of slowness it is and what slow ones differ in; of one,
//! what the threads that served it waited for. Where no thread is known, phases tell where the time
//! lies, and never why.

mod bursts;
mod differs;
mod does;
mod handlers;
mod meanwhile;
mod queued;
mod set;
mod stands;
mod stories;
pub(crate) mod threads;

use whyslow_analysis::AnalysisError;
use whyslow_analysis::before_after::{Request, Requests};
use whyslow_model::Window;
use whyslow_model::sort::IndexSort;
use whyslow_store::Tables;

use crate::many::WALKED;
use crate::report::{Report, Story, Versus};
use crate::versus::{Other, Per, versus};
use stories::Teller;
use threads::Threads;

/// Tells of all requests of the window, before anything else; nothing where there are none.
pub(crate) fn add(
    tables: &dyn Tables,
    question: &crate::ask::Question,
    other: Option<&Other<'_>>,
    report: &mut Report,
) -> Result<(), AnalysisError> {
    let requests = Requests::read(tables, question.window)?;
    if !requests.rows.is_empty() {
        let found = bursts::find(tables, question, &requests)?;
        report.findings.splice(0..0, found);
    }
    // What went over connections is no request that somebody waited for, as a rule: it is told with
    // the calls that did.
    if requests.rows.is_empty() || requests.is_of_sockets && !question.with_sockets {
        return Ok(());
    }
    let there = match other {
        Some(other) => Requests::read(other.tables, other.window)?,
        None => Requests::default(),
    };
    let threads = Threads::read(tables, question.window)?;
    let teller = Teller {
        tables,
        requests: &requests,
        threads: &threads,
        recording: &question.recording,
    };
    let judged = set::judge_set(&teller, question, &there)?;
    if let Some(story) = set::story(&teller, &judged)? {
        report.stories.insert(0, story);
    }
    let is_asked = other.is_some();
    if !judged.is_insufficient() || is_asked || !judged.slow().is_empty() {
        report.patterns.insert(0, judged.pattern());
    }
    Ok(())
}

/// One request.
pub(crate) fn one(tables: &dyn Tables, id: i64, recording: &str) -> Result<Story, AnalysisError> {
    let requests = threads::with(tables, id)?;
    let Some(request) = requests.rows.iter().find(|request| request.id == id) else {
        return Err(AnalysisError::Query {
            message: format!("the recording has no request {id}"),
            hint: Some("`whyslow requests list` shows all".into()),
        });
    };
    let threads = Threads::read(tables, None)?;
    let teller = Teller {
        tables,
        requests: &requests,
        threads: &threads,
        recording,
    };
    teller.one(request)
}

/// What the threads that served requests spend their time on, of some requests of all lengths of each
/// side; `names` are those of the recordings. None where a side does not tell which threads these
/// were, or what they did.
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
        let teller = Teller {
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
        teller.walked(&spread(&served, 2 * WALKED))
    };
    let there: Vec<Story> = walked(before, name_before)?;
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

/// So many of these, evenly over their order.
fn spread<'r>(requests: &[&'r Request], most: usize) -> Vec<&'r Request> {
    let count = requests.len().min(most);
    let place = |number: usize| (2 * number + 1) * requests.len() / (2 * count);
    (0..count).map(|number| requests[place(number)]).collect()
}
