//! Questions about a recording: kinds (what is measured) × verbs (how it is shown).

mod context;
mod errno;
mod error;
mod facts;
mod filter;
mod histogram;
mod keys;
mod kinds;
mod losses;
mod objects;
mod pass;
mod pattern;
mod query;
mod rows;
mod scan;
mod sweep;
mod threads;
mod verbs;

pub use error::AnalysisError;
pub use query::{Bins, DeviceRef, Filter, Kind, Question, Sort, Verb, Weight};
pub use rows::interval_of;

use std::ops::ControlFlow;

use whyslow_model::answer::{Answer, AnswerTable};
use whyslow_store::Tables;

use context::Context;
use keys::Key;
use kinds::{BLOCK, FILES, IO, STATES, Spec};

/// Rows of `log` that [`ask`] collects unless the question names a limit.
pub const LOG_ROWS_MAX: usize = 100_000;

/// Answers a question from what was recorded.
pub fn ask(tables: &dyn Tables, question: &Question) -> Result<Answer, AnalysisError> {
    let context = Context::new(tables, question)?;
    let mut answer = header(&context)?;
    if question.verb == Verb::Log {
        let limit = context.limit(LOG_ROWS_MAX);
        let mut whole: Option<AnswerTable> = None;
        log(&context, limit.saturating_add(1), &mut |table| {
            match &mut whole {
                None => whole = Some(table),
                Some(whole) => append(whole, table),
            }
            ControlFlow::Continue(())
        })?;
        if let Some(mut table) = whole {
            let more = table.rows.len() > limit;
            rows::truncate(&mut table, limit);
            if more && question.limit.is_none() {
                answer
                    .caveats
                    .push(format!("only the first {limit} rows are shown"));
            }
            context.finish(&mut table, limit);
            answer.tables.push(table);
        }
    } else {
        answer.tables = answer_tables(&context)?;
    }
    rows::check_sort(&answer.tables, question.sort.as_ref())?;
    Ok(answer)
}

/// Like [`ask`], but rows of `log` are handed on as they are read, a table at a time, with the
/// answer's header; other answers come as they are. All rows unless the question names a limit.
/// Returns the header.
pub fn ask_streaming(
    tables: &dyn Tables,
    question: &Question,
    each: &mut dyn FnMut(&Answer, AnswerTable) -> ControlFlow<()>,
) -> Result<Answer, AnalysisError> {
    if question.verb != Verb::Log || question.sort.is_some() {
        let mut answer = ask(tables, question)?;
        for table in std::mem::take(&mut answer.tables) {
            if each(&answer, table).is_break() {
                break;
            }
        }
        return Ok(answer);
    }
    let context = Context::new(tables, question)?;
    let answer = header(&context)?;
    log(&context, context.limit(0), &mut |table| {
        each(&answer, table)
    })?;
    Ok(answer)
}

fn header(context: &Context<'_>) -> Result<Answer, AnalysisError> {
    let question = context.question;
    Ok(Answer {
        question: format!("{} {}", question.kind.name(), question.verb.name()),
        window: Some((context.span.begin, context.span.end)),
        losses: losses::inside(context)?,
        ..Answer::default()
    })
}

fn log(
    context: &Context<'_>,
    limit: usize,
    each: &mut dyn FnMut(AnswerTable) -> ControlFlow<()>,
) -> Result<(), AnalysisError> {
    verbs::log::stream(context, spec(context.question.kind)?, limit, each)
}

fn append(whole: &mut AnswerTable, table: AnswerTable) {
    let before = whole.rows.len();
    whole.rows.extend(table.rows);
    let cut = table.cut.into_iter();
    whole
        .cut
        .extend(cut.map(|(row, edge)| (row + before, edge)));
}

fn answer_tables(context: &Context<'_>) -> Result<Vec<AnswerTable>, AnalysisError> {
    let question = context.question;
    let spec = spec(question.kind)?;
    let keys = |default: &[Key]| Key::parse_all(spec, &question.by, default);
    match question.verb {
        Verb::Stats => stats(context, spec),
        Verb::Usage => usage(context, spec),
        Verb::Top => verbs::top::tables(context, spec, &keys(spec.group)?),
        Verb::Hist => verbs::hist::tables(context, spec, &keys(spec.group)?),
        Verb::Heat => verbs::heat::tables(context, spec, &keys(&[])?),
        _ => Err(no_such_view(question)),
    }
}

fn stats(context: &Context<'_>, spec: &'static Spec) -> Result<Vec<AnswerTable>, AnalysisError> {
    let question = context.question;
    let keys = Key::parse_all(spec, &question.by, spec.group)?;
    let table =
        |spec, name, title, keys: &[Key]| verbs::stats::table(context, spec, name, title, keys);
    if !question.by.is_empty() {
        return Ok(vec![table(spec, "stats", spec.rows, &keys)?]);
    }
    match spec.kind {
        Kind::Block if question.interval.is_some() => Ok(vec![verbs::devices::table(context)?]),
        Kind::Block => Ok(vec![
            table(spec, "devices", "devices", &[Key::Dev])?,
            table(spec, "stats", "operations", &keys)?,
        ]),
        Kind::Io if context.has("block_io") && applies(spec, &BLOCK, &question.filter) => Ok(vec![
            table(spec, "stats", spec.rows, &keys)?,
            table(&BLOCK, "devices", "block devices", &[Key::Dev])?,
        ]),
        _ => Ok(vec![table(spec, "stats", spec.rows, &keys)?]),
    }
}

fn usage(context: &Context<'_>, spec: &'static Spec) -> Result<Vec<AnswerTable>, AnalysisError> {
    let question = context.question;
    let keys = |default: &[Key]| Key::parse_all(spec, &question.by, default);
    match spec.kind {
        Kind::Block if question.by.is_empty() || question.by == ["dev"] => {
            Ok(vec![verbs::devices::table(context)?])
        }
        Kind::Block => {
            let table = verbs::stats::table(context, spec, "usage", spec.rows, &keys(&[])?)?;
            Ok(vec![table])
        }
        Kind::States => {
            let table = verbs::states::table(context, &keys(&[Key::Comm, Key::Pid, Key::Tid])?)?;
            Ok(vec![table])
        }
        Kind::Files => {
            let keys = keys(&[Key::File])?;
            Ok(vec![verbs::usage::table(
                context, spec, "usage", "files", &keys,
            )?])
        }
        _ if !question.by.is_empty() => {
            let table = verbs::usage::table(context, spec, "usage", "usage", &keys(&[])?)?;
            Ok(vec![table])
        }
        _ => {
            let mut tables = vec![
                verbs::usage::table(context, spec, "processes", "processes", &[Key::Process])?,
                verbs::usage::table(context, spec, "files", "files", &[Key::File])?,
            ];
            if context.has("block_io") && applies(spec, &BLOCK, &question.filter) {
                tables.push(verbs::devices::table(context)?);
            }
            if question.filter == Filter::default() {
                tables.extend(verbs::interfaces::table(context)?);
            }
            Ok(tables)
        }
    }
}

/// Whether the filter of a question about one kind means something for another.
fn applies(asked: &Spec, other: &Spec, filter: &Filter) -> bool {
    let of_one = asked.kind != other.kind && !filter.ops.is_empty();
    !of_one && filter.files.is_empty() && !filter.errors_only
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
