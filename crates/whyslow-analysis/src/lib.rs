//! Questions about a recording: kinds (what is measured) × verbs (how it is shown).

mod caveats;
mod context;
mod errno;
mod error;
mod facts;
mod filter;
mod fold;
mod globs;
mod grouping;
mod histogram;
mod keys;
mod kinds;
mod losses;
mod next;
mod objects;
mod pass;
mod pattern;
mod peers;
mod query;
mod rows;
mod scan;
mod sweep;
mod threads;
mod verbs;
mod words;

pub use error::AnalysisError;
pub use query::{Bins, DeviceRef, Filter, Kind, Question, Sort, Verb, Weight};
pub use rows::interval_of;

use std::ops::ControlFlow;

use whyslow_model::answer::{Answer, AnswerTable};
use whyslow_store::Tables;

use context::Context;
use keys::Key;
use kinds::{BLOCK, DESCRIPTORS, FILES, IO, LIVES, STATES, SYSCALLS, Spec, THREADS};

/// Rows of `log` that [`ask`] collects unless the question names a limit.
pub const LOG_ROWS_MAX: usize = 100_000;

/// Answers a question from what was recorded.
pub fn ask(tables: &dyn Tables, question: &Question) -> Result<Answer, AnalysisError> {
    let context = Context::new(tables, question)?;
    let spec = spec(question)?;
    let mut answer = header(&context)?;
    if let Some(missing) = caveats::missing(&context, spec) {
        answer.caveats.push(missing);
        return Ok(answer);
    }
    if question.verb == Verb::Log {
        let limit = context.limit(LOG_ROWS_MAX);
        let mut whole = log_table(&context, spec, limit)?;
        if rows::truncate(&mut whole, limit) && question.limit.is_none() {
            context.note(format!("only the first {limit} rows are shown"));
        }
        context.finish(&mut whole, limit);
        answer.tables.push(whole);
    } else {
        answer.tables = answer_tables(&context, spec)?;
    }
    rows::check_sort(&answer.tables, question.sort.as_ref())?;
    answer.caveats = caveats::about(&context, spec, &answer.tables)?;
    answer.next = next::step(question, &answer.tables);
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
    let spec = spec(question)?;
    let mut answer = header(&context)?;
    if let Some(missing) = caveats::missing(&context, spec) {
        answer.caveats.push(missing);
        return Ok(answer);
    }
    answer.caveats = caveats::about(&context, spec, &[])?;
    let limit = context.limit(0);
    let filter = &question.filter;
    verbs::log::stream(&context, spec, filter, limit, &mut |table| {
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

/// Up to one row more than `limit`, to tell whether there are more.
fn log_table(
    context: &Context<'_>,
    spec: &'static Spec,
    limit: usize,
) -> Result<AnswerTable, AnalysisError> {
    let mut whole = verbs::top::row_table(spec, "log", spec.rows);
    let filter = &context.question.filter;
    verbs::log::stream(
        context,
        spec,
        filter,
        limit.saturating_add(1),
        &mut |table| {
            let before = whole.rows.len();
            whole.rows.extend(table.rows);
            let cut = table.cut.into_iter();
            whole
                .cut
                .extend(cut.map(|(row, edge)| (row + before, edge)));
            ControlFlow::Continue(())
        },
    )?;
    Ok(whole)
}

/// The kind's table, or that of a view which has its own.
fn spec(question: &Question) -> Result<&'static Spec, AnalysisError> {
    let spec = match (question.kind, question.verb) {
        (Kind::Io, Verb::Syscalls) => &SYSCALLS,
        (Kind::Files, Verb::Log) => &LIVES,
        (Kind::Files, Verb::Open) => &DESCRIPTORS,
        (Kind::Threads, Verb::List) => &THREADS,
        (Kind::Files, Verb::Tree) => &FILES,
        (Kind::Block, Verb::Outliers) => &BLOCK,
        (Kind::Threads, _)
        | (_, Verb::Syscalls | Verb::Open | Verb::List | Verb::Tree | Verb::Outliers) => {
            return Err(no_such_view(question));
        }
        (Kind::Io, _) => &IO,
        (Kind::Files, _) => &FILES,
        (Kind::Block, _) => &BLOCK,
        (Kind::States, _) => &STATES,
    };
    Ok(spec)
}

fn no_such_view(question: &Question) -> AnalysisError {
    let (kind, verb) = (question.kind.name(), question.verb.name());
    AnalysisError::query(
        format!("{kind} has no view `{verb}`"),
        match question.kind {
            Kind::Io => "it has usage, stats, hist, top, log, heat, syscalls",
            Kind::Block => "it has usage, stats, outliers, hist, top, log, heat",
            Kind::States => "it has usage, stats, hist, top, log, heat",
            Kind::Files => "it has top, log, tree, open, usage, stats, hist, heat",
            Kind::Threads => {
                "it has list; what threads did is in `states`, their I/O in `io … --by thread`"
            }
        },
    )
}

fn answer_tables(
    context: &Context<'_>,
    spec: &'static Spec,
) -> Result<Vec<AnswerTable>, AnalysisError> {
    let keys = |default: &[Key]| Key::parse_all(spec, &context.question.by, default);
    match context.question.verb {
        Verb::Stats => stats(context, spec),
        Verb::Usage => usage(context, spec),
        Verb::Top if spec.kind == Kind::Files => {
            Ok(vec![verbs::files::top(context, &keys(&[Key::File])?)?])
        }
        Verb::Top => verbs::top::tables(context, spec, &keys(spec.group)?),
        Verb::Hist => verbs::hist::tables(context, spec, &keys(spec.group)?),
        Verb::Heat => verbs::heat::tables(context, spec, &keys(&[])?),
        Verb::Syscalls => Ok(vec![verbs::syscalls::table(context, &keys(spec.group)?)?]),
        Verb::Tree => Ok(vec![verbs::files::tree(context)?]),
        Verb::Open => Ok(vec![verbs::files::open(context)?]),
        Verb::List => Ok(vec![verbs::threads::table(context)?]),
        Verb::Outliers => verbs::outliers::tables(context),
        Verb::Log => Ok(Vec::new()),
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
            let table = verbs::usage::table(context, spec, ("usage", "files", &keys))?;
            Ok(vec![table])
        }
        _ if !question.by.is_empty() => {
            let keys = keys(&[])?;
            let table = verbs::usage::table(context, spec, ("usage", "usage", &keys))?;
            Ok(vec![table])
        }
        _ => {
            let wanted = [
                ("processes", "processes", [Key::Process].as_slice()),
                ("files", "files", &[Key::File]),
            ];
            let mut tables = verbs::usage::tables(context, spec, wanted)?.to_vec();
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
