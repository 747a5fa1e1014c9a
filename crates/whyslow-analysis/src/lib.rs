//! Queries over a recording: kinds (what is measured) × verbs (how it is shown).

mod arguments;
mod arrange;
pub mod before_after;
mod caveats;
mod context;
mod creation;
mod damage;
mod error;
mod facts;
mod failures;
mod filter;
mod flags;
mod fold;
mod globs;
mod grouping;
mod host_paths;
mod idle_sleeps;
mod interner;
mod interval;
mod key;
mod keys;
mod kinds;
mod losses;
mod lost_ends;
mod mapped;
mod needs;
mod next;
mod objects;
mod outlier_baseline;
mod owners;
mod pass;
mod pattern;
mod query;
mod recorded;
mod recorder;
mod refuse;
mod resolvers;
pub mod rollup;
mod rows;
mod scan;
mod spec;
mod stack_choice;
pub mod statistics;
mod sweep;
mod threads;
mod topic_state;
mod uncertain;
mod verbs;
mod volumes;
mod waits;
mod wall_samples;

/// Which of several similar objects (devices, hosts, files …) deviates, after adjusting for its
/// workload.
pub mod outliers {
    pub use crate::outlier_baseline::{Deviation, Operation, deviations, driver};
}

/// Clients with far more requests or errors than usual, and when.
pub mod bursts {
    pub use crate::verbs::requests::series::{Burst, BurstOf, Series, part_width};
}

/// Typed reading of tables, for other crates.
pub mod read {
    pub use crate::fold::in_order;
    pub use crate::globs::thread_names;
    pub use crate::lost_ends::{Length, LostEnds};
    pub use crate::scan::{ColumnRef, Ints, PerWord, Projection, Texts};
    pub use crate::uncertain::{Uncertain, UncertainRows};
    pub use crate::wall_samples::{Observed, WallSamples};
}

pub use creation::Creation;
pub use damage::damage;
pub use error::AnalysisError;
pub use host_paths::HostPaths;
pub use interval::interval_of;
pub use kinds::TOPICS;
pub use pattern::{Common, pattern_of, pool_of};
pub use query::{Bins, DeviceRef, Filter, KeyFilter, Kind, Query, Sort, Verb, Weight};
pub use recorder::Recorder;
pub use resolvers::{Resolver, resolvers};
pub use spec::{Topic, View};
pub use topic_state::{is_recorded, table_state, topic_state};
pub use verbs::log::LogRow;
pub use verbs::summed::{Counts, StackSum};
pub use volumes::Volumes;

use std::ops::ControlFlow;

use whyslow_model::answer::{Answer, AnswerTable, LeftOut};
use whyslow_model::topic_state::TopicState;
use whyslow_store::Tables;

use context::Context;
use keys::Key;
use kinds::BLOCK;
use spec::Spec;
use verbs::devices::Detail;

/// Maximum number of `log` rows that [`evaluate`] collects if the query has no limit.
pub const LOG_ROWS_MAX: usize = 100_000;

/// Runs a query on a recording.
pub fn evaluate(tables: &dyn Tables, query: &Query) -> Result<Answer, AnalysisError> {
    let context = Context::new(tables, query)?;
    let spec = spec(query)?;
    let mut answer = header(&context)?;
    if let Some(missing) = topic_state::missing(&context, spec) {
        add_state(&mut answer, missing);
        return Ok(answer);
    }
    caveats::note_sides(&context, spec)?;
    if query.verb == Verb::Log {
        let limit = context.limit(LOG_ROWS_MAX);
        let mut whole = log_table(&context, spec, limit)?;
        if arrange::truncate(&mut whole, limit) && query.limit.is_none() {
            context.note(format!("only the first {limit} rows are shown"));
        }
        context.finish(&mut whole, limit);
        answer.tables.push(whole);
    } else {
        answer.tables = answer_tables(&context, spec)?;
        answer.left_out = waits::left_out(&context, spec)?;
    }
    if answer.tables.iter().all(|table| table.rows.is_empty()) {
        refuse::unknown_devices(&context)?;
    }
    arrange::check_sort(&answer.tables, query.sort.as_ref())?;
    let state = topic_state::of_answer(&context, spec, &answer.tables)?;
    add_state(&mut answer, state);
    answer
        .caveats
        .extend(caveats::about(&context, spec, &answer.tables)?);
    answer
        .caveats
        .extend(answer.left_out.as_ref().map(LeftOut::sentence));
    answer.next = next::step(query, &answer.tables);
    Ok(answer)
}

/// Like [`evaluate`], but passes rows of `log` on as they are read, one table at a time, together with
/// the header of the answer; other answers are passed on as a whole. All rows unless the query has
/// a limit. Returns the header.
pub fn evaluate_streaming(
    tables: &dyn Tables,
    query: &Query,
    each: &mut dyn FnMut(&Answer, AnswerTable) -> ControlFlow<()>,
) -> Result<Answer, AnalysisError> {
    if query.verb != Verb::Log || query.sort.is_some() {
        let mut answer = evaluate(tables, query)?;
        for table in std::mem::take(&mut answer.tables) {
            if each(&answer, table).is_break() {
                break;
            }
        }
        return Ok(answer);
    }
    let context = Context::new(tables, query)?;
    let spec = spec(query)?;
    let mut answer = header(&context)?;
    if let Some(missing) = topic_state::missing(&context, spec) {
        add_state(&mut answer, missing);
        return Ok(answer);
    }
    let state = topic_state::of_stream(&context, spec)?;
    add_state(&mut answer, state);
    answer.caveats.extend(caveats::about(&context, spec, &[])?);
    let limit = context.limit(0);
    let filter = &query.filter;
    verbs::log::stream(&context, spec, filter, limit, &mut |table| {
        each(&answer, table)
    })?;
    Ok(answer)
}

/// Visits the rows of a `log` with the given columns (numbers, names and paths), in order of start.
/// Returns the header of the answer.
pub fn each_row(
    tables: &dyn Tables,
    query: &Query,
    columns: &[&'static str],
    each: &mut dyn FnMut(&LogRow<'_>) -> ControlFlow<()>,
) -> Result<Answer, AnalysisError> {
    let context = Context::new(tables, query)?;
    let spec = spec(query)?;
    let mut answer = header(&context)?;
    if let Some(missing) = topic_state::missing(&context, spec) {
        add_state(&mut answer, missing);
        return Ok(answer);
    }
    let state = topic_state::of_stream(&context, spec)?;
    add_state(&mut answer, state);
    answer.caveats.extend(caveats::about(&context, spec, &[])?);
    verbs::log::each_row(&context, spec, columns, each)?;
    Ok(answer)
}

/// Samples of a stack query added up by thread, state and stack, in order of first occurrence, with
/// the header of the answer.
pub fn sum_stacks<C: Counts>(
    tables: &dyn Tables,
    query: &Query,
    counts: &C,
) -> Result<(Answer, Vec<StackSum>), AnalysisError> {
    let context = Context::new(tables, query)?;
    let spec = spec(query)?;
    let mut answer = header(&context)?;
    if let Some(missing) = topic_state::missing(&context, spec) {
        add_state(&mut answer, missing);
        return Ok((answer, Vec::new()));
    }
    let state = topic_state::of_stream(&context, spec)?;
    add_state(&mut answer, state);
    answer.caveats.extend(caveats::about(&context, spec, &[])?);
    let sums = verbs::summed::stacks(&context, counts)?;
    Ok((answer, sums))
}

fn header(context: &Context<'_>) -> Result<Answer, AnalysisError> {
    let query = context.query;
    Ok(Answer {
        query: format!("{} {}", query.kind.name(), query.verb.name()),
        window: Some((context.span.begin, context.span.end)),
        losses: losses::inside(context)?,
        caveats: damage(context.tables)?.into_iter().collect(),
        ..Answer::default()
    })
}

/// Sets the state of the answer, which is a caveat if there are no events.
fn add_state(answer: &mut Answer, state: TopicState) {
    answer.caveats.extend(state.caveat());
    answer.state = Some(state);
}

/// Up to one row more than `limit`, to detect whether there are more.
fn log_table(
    context: &Context<'_>,
    spec: &'static Spec,
    limit: usize,
) -> Result<AnswerTable, AnalysisError> {
    let mut whole = verbs::top::row_table(spec, "log", spec.rows);
    let filter = &context.query.filter;
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

/// The rows that the view shows.
fn spec(query: &Query) -> Result<&'static Spec, AnalysisError> {
    let topic = query.kind.topic();
    let view = topic.views.iter().find(|view| view.verb == query.verb);
    let (kind, verb) = (query.kind.name(), query.verb.name());
    let view = view.ok_or_else(|| {
        let views: Vec<&str> = topic.views.iter().map(|view| view.verb.name()).collect();
        AnalysisError::query(
            format!("unknown view `{verb}` of {kind}"),
            format!("use one of {}", views.join(", ")),
        )
    })?;
    if query.interval.is_some() && !view.by_time {
        let views = topic.views.iter().filter(|view| view.by_time);
        let views: Vec<&str> = views.map(|view| view.verb.name()).collect();
        let others = match views.as_slice() {
            [] => "omit the interval, or select a window with -w".into(),
            views => format!("use a view of {kind} that takes one: {}", views.join(", ")),
        };
        return Err(AnalysisError::query(
            format!("`{kind} {verb}` takes no interval"),
            others,
        ));
    }
    let spec = view.spec;
    Ok((spec.hooks.instead)(query).unwrap_or(spec))
}

fn answer_tables(
    context: &Context<'_>,
    spec: &'static Spec,
) -> Result<Vec<AnswerTable>, AnalysisError> {
    let keys = |default: &[Key]| Key::parse_all(spec, &context.query.by, default);
    match (context.query.kind, context.query.verb) {
        (Kind::Files, Verb::Top) => Ok(vec![verbs::files::top(context, &keys(&[Key::File])?)?]),
        (Kind::Syscalls, Verb::Stats) | (_, Verb::Syscalls) => {
            Ok(vec![verbs::syscalls::table(context, &keys(spec.group)?)?])
        }
        (Kind::Stacks, Verb::Top) | (_, Verb::Stacks) => {
            Ok(vec![verbs::stacks::table(context, spec, &keys(&[])?)?])
        }
        (Kind::Dns, Verb::Stats) => with_resolvers(context, spec, stats(context, spec)?),
        (Kind::Dns, Verb::Usage) => with_resolvers(context, spec, usage(context, spec)?),
        (Kind::Requests, Verb::Usage) => verbs::requests::usage(context, &keys(&[Key::Client])?),
        (_, Verb::Threads) => verbs::requests::threads(context),
        (_, Verb::Outbound) => Ok(vec![verbs::requests::outbound(context)?]),
        (_, Verb::Bursts) => Ok(vec![verbs::requests::bursts(
            context,
            &keys(&[Key::Client])?,
        )?]),
        (_, Verb::Stats) => stats(context, spec),
        (_, Verb::Usage) => usage(context, spec),
        (_, Verb::Top) => verbs::top::tables(context, spec, &keys(spec.series)?),
        (_, Verb::Hist) => verbs::hist::tables(context, spec, &keys(spec.series)?),
        (_, Verb::Heat) => Ok(vec![verbs::heat::table(context, spec, &keys(&[])?)?]),
        (_, Verb::Tree) => Ok(vec![verbs::files::tree(context)?]),
        (_, Verb::Open) => Ok(vec![verbs::files::open(context)?]),
        (_, Verb::List) if !context.query.by.is_empty() => {
            Ok(vec![verbs::pools::table(context, &keys(&[])?)?])
        }
        (_, Verb::List) => Ok(vec![verbs::threads::table(context)?]),
        (_, Verb::States) => Ok(vec![verbs::states::table(context, &keys(THREAD_KEYS)?)?]),
        (_, Verb::Timeline) => {
            let keys = keys(&[Key::Thread])?;
            Ok(vec![verbs::timeline::table(context, &keys)?])
        }
        (_, Verb::Dump) => Ok(vec![verbs::dump::table(context)?]),
        (_, Verb::Gaps) => verbs::gaps::tables(context),
        (_, Verb::Chains) => verbs::chains::tables(context),
        // The caller merges the rows into a tree.
        (_, Verb::Flame) => Ok(vec![verbs::stacks::table(context, spec, &keys(&[])?)?]),
        (_, Verb::Differs) => Ok(vec![verbs::differs::table(context, spec, &keys(&[])?)?]),
        (_, Verb::Outliers) => verbs::outliers::tables(context),
        (_, Verb::Log) => Ok(Vec::new()),
    }
}

fn with_resolvers(
    context: &Context<'_>,
    spec: &'static Spec,
    mut tables: Vec<AnswerTable>,
) -> Result<Vec<AnswerTable>, AnalysisError> {
    tables.extend(verbs::resolvers::table(context, spec)?);
    Ok(tables)
}

/// Keys that identify a thread to the reader.
const THREAD_KEYS: &[Key] = &[Key::Comm, Key::Pid, Key::Tid];

fn stats(context: &Context<'_>, spec: &'static Spec) -> Result<Vec<AnswerTable>, AnalysisError> {
    let query = context.query;
    let keys = Key::parse_all(spec, &query.by, spec.group)?;
    let table =
        |spec, name, title, keys: &[Key]| verbs::stats::table(context, spec, name, title, keys);
    if !query.by.is_empty() {
        return Ok(vec![table(spec, "stats", spec.rows, &keys)?]);
    }
    match spec.kind {
        Kind::Block if query.interval.is_some() => Ok(vec![devices(context)?]),
        Kind::Block => {
            let names = [("devices", "devices"), ("stats", "operations")];
            let mut tables = verbs::stats::tables(context, spec, names, &keys)?;
            verbs::mounted::add_column(context, &mut tables[0])?;
            Ok(tables)
        }
        Kind::Io if context.has("block_io") && applies(spec, &BLOCK, &query.filter) => Ok(vec![
            table(spec, "stats", spec.rows, &keys)?,
            table(&BLOCK, "devices", "block devices", &[Key::Dev])?,
        ]),
        _ => Ok(vec![table(spec, "stats", spec.rows, &keys)?]),
    }
}

/// Devices like iostat, and what is mounted from each.
fn devices(context: &Context<'_>) -> Result<AnswerTable, AnalysisError> {
    let mut table = verbs::devices::table(context, Detail::Whole)?;
    verbs::mounted::add_column(context, &mut table)?;
    Ok(table)
}

fn usage(context: &Context<'_>, spec: &'static Spec) -> Result<Vec<AnswerTable>, AnalysisError> {
    let query = context.query;
    let keys = |default: &[Key]| Key::parse_all(spec, &query.by, default);
    match spec.kind {
        Kind::Block if query.by.is_empty() || query.by == ["dev"] => Ok(vec![devices(context)?]),
        Kind::Block => {
            let table = verbs::stats::table(context, spec, "usage", spec.rows, &keys(&[])?)?;
            Ok(vec![table])
        }
        Kind::States => Ok(vec![verbs::states::table(context, &keys(THREAD_KEYS)?)?]),
        Kind::Cpu => verbs::cpu::tables(context, &keys(spec.group)?),
        Kind::Irq => Ok(vec![verbs::irq::table(context, &keys(&[Key::Process])?)?]),
        Kind::Mem => Ok(vec![verbs::mem::table(context, &keys(spec.group)?)?]),
        Kind::Dns
        | Kind::NameServers
        | Kind::Functions
        | Kind::Locks
        | Kind::Stacks
        | Kind::Work
        | Kind::Tcp => {
            // Samples are not waits.
            let default: &[Key] = match spec.kind {
                Kind::Stacks => &[Key::Process, Key::Kind],
                _ => &[Key::Process],
            };
            let keys = keys(default)?;
            let table = verbs::stats::table(context, spec, "usage", spec.rows, &keys)?;
            Ok(vec![table])
        }
        Kind::Net => Ok(vec![verbs::net::table(context)?]),
        Kind::Usdt => {
            let keys = keys(spec.group)?;
            Ok(vec![verbs::passes::table(context, spec, &keys)?])
        }
        Kind::Use => Ok(vec![verbs::resources::table(context)?]),
        Kind::Files => {
            let keys = keys(&[Key::File])?;
            let table = verbs::usage::table(context, spec, ("usage", "files", &keys))?;
            Ok(vec![table])
        }
        _ if !query.by.is_empty() => {
            let keys = keys(&[])?;
            let table = verbs::usage::table(context, spec, ("usage", "usage", &keys))?;
            Ok(vec![table])
        }
        _ => {
            let wanted = [
                ("processes", "processes", [Key::Process].as_slice()),
                ("files", "files", &[Key::File]),
            ];
            let has_devices = context.has("block_io") && applies(spec, &BLOCK, &query.filter);
            let calls = |context: &Context<'_>| verbs::usage::tables(context, spec, wanted);
            let others = |context: &Context<'_>| {
                let devices = has_devices.then(|| devices(context)).transpose()?;
                let interfaces = if query.filter == Filter::default() {
                    verbs::interfaces::table(context)?
                } else {
                    None
                };
                Ok(devices.into_iter().chain(interfaces).collect::<Vec<_>>())
            };
            let (mut tables, others) = context.both(calls, others)?;
            tables.extend(others);
            Ok(tables)
        }
    }
}

/// Whether the filter of a query for one kind is meaningful for another.
fn applies(spec: &Spec, other: &Spec, filter: &Filter) -> bool {
    let has_own = !filter.ops.is_empty() || !filter.names.is_empty();
    let of_one = spec.kind != other.kind && has_own;
    !of_one && filter.files.is_empty() && !filter.errors_only
}

// The tests refer to the crate by its public name.
#[cfg(test)]
extern crate self as whyslow_analysis;
#[cfg(test)]
#[path = "../tests/it/main.rs"]
mod it;
