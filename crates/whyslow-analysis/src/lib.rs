//! Questions about a recording: kinds (what is measured) × verbs (how it is shown).

mod context;
mod errno;
mod error;
mod filter;
mod histogram;
mod keys;
mod kinds;
mod losses;
mod pass;
mod pattern;
mod query;
mod rows;
mod scan;
mod threads;
mod verbs;

pub use error::AnalysisError;
pub use query::{Bins, DeviceRef, Filter, Kind, Question, Sort, Verb, Weight};
pub use rows::interval_of;

use whyslow_model::answer::{Answer, AnswerTable};
use whyslow_store::Tables;

use context::Context;
use keys::Key;
use kinds::{BLOCK, FILES, IO, STATES, Spec};

/// Answers a question from what was recorded.
pub fn ask(tables: &dyn Tables, question: &Question) -> Result<Answer, AnalysisError> {
    let context = Context::new(tables, question)?;
    let mut answer = Answer {
        question: format!("{} {}", question.kind.name(), question.verb.name()),
        window: Some((context.span.begin, context.span.end)),
        losses: losses::inside(&context)?,
        ..Answer::default()
    };
    answer.tables = answer_tables(&context)?;
    rows::check_sort(&answer.tables, question.sort.as_ref())?;
    Ok(answer)
}

fn answer_tables(context: &Context<'_>) -> Result<Vec<AnswerTable>, AnalysisError> {
    let question = context.question;
    let spec = spec(question.kind)?;
    let keys = Key::parse_all(spec, &question.by, spec.group)?;
    match question.verb {
        Verb::Stats => {
            let table = verbs::stats::table(context, spec, "stats", spec.rows, &keys)?;
            Ok(vec![table])
        }
        Verb::Top => verbs::top::tables(context, spec, &keys),
        _ => Err(no_such_view(question)),
    }
}

fn spec(kind: Kind) -> Result<&'static Spec, AnalysisError> {
    match kind {
        Kind::Io => Ok(&IO),
        Kind::Files => Ok(&FILES),
        Kind::Block => Ok(&BLOCK),
        Kind::States => Ok(&STATES),
        Kind::Threads => Err(AnalysisError::query(
            "threads have only `list`",
            "what they did is in `states`, their I/O in `io … --by tid`",
        )),
    }
}

fn no_such_view(question: &Question) -> AnalysisError {
    let (kind, verb) = (question.kind.name(), question.verb.name());
    AnalysisError::query(
        format!("{kind} has no view `{verb}`"),
        format!("`whyslow {kind} --help` lists its views"),
    )
}
