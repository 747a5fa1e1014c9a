//! Questions that only requests have, and what joins requests with their phases and threads.

mod burst_test;
mod bursts;
mod outbound;
mod ports;
pub(crate) mod series;
mod stretches;
mod threads;
mod usage;

pub(crate) use bursts::bursts;
pub(crate) use outbound::outbound;
pub(crate) use threads::threads;
pub(crate) use usage::usage;

use std::borrow::Cow;
use std::cmp::Reverse;

use arrow_array::RecordBatch;
use rustc_hash::FxHashSet;
use whyslow_model::row::Row;
use whyslow_model::tables::{RequestPhaseRow, RequestRow, RequestThreadRow};
use whyslow_model::{Ns, Window};

use crate::AnalysisError;
use crate::context::Context;
use crate::fold::{Spot, in_order};
use crate::keys::{Key, label};
use crate::kinds::{REQUESTS, Spec};
use crate::pass::Summing;
use crate::query::{Filter, Question, Verb};
use crate::scan::{ColumnRef, Ints};
use crate::verbs::sharers::Calls;

/// What of a filter is for the rows of phases and threads themselves; the rest chooses requests,
/// whose ids are returned if there is any.
pub(crate) fn split<'f>(
    context: &Context<'_>,
    spec: &Spec,
    filter: &'f Filter,
) -> Result<(Cow<'f, Filter>, Option<FxHashSet<i64>>), AnalysisError> {
    let is_phases = spec.table.name == RequestPhaseRow::TABLE.name;
    if !is_phases && spec.table.name != RequestThreadRow::TABLE.name {
        return Ok((Cow::Borrowed(filter), None));
    }
    let is_own = |key: &str| is_phases && Key::parse(spec, key).is_ok();
    let (own, others): (Vec<_>, Vec<_>) = filter
        .values
        .iter()
        .cloned()
        .partition(|one| is_own(one.key));
    let own = Filter {
        values: own,
        ended_in: filter.ended_in,
        dur_min: filter.dur_min.filter(|_| is_phases),
        dur_max: filter.dur_max.filter(|_| is_phases),
        ops: if is_phases {
            filter.ops.clone()
        } else {
            Vec::new()
        },
        ..Filter::default()
    };
    let mut others = Filter {
        values: others,
        ended_in: None,
        ..filter.clone()
    };
    if is_phases {
        (others.dur_min, others.dur_max) = (None, None);
        others.ops = Vec::new();
    }
    let ids = if others == Filter::default() {
        None
    } else {
        Some(ids(context, &others)?)
    };
    Ok((Cow::Owned(own), ids))
}

/// Whether what two sources tell of one side counts once: unless somebody asks which source told of it, or
/// for one request by its number.
pub(crate) fn counts_once(question: &Question, spec: &Spec, keys: &[Key]) -> bool {
    let source = Key::Source;
    let is_chosen = |by: &str| by == source.name();
    let is_asked = keys.contains(&source)
        || question.by.iter().any(|by| is_chosen(by))
        || question.filter.values.iter().any(|one| is_chosen(one.key))
        || question.request.is_some();
    spec.table.name == RequestRow::TABLE.name && !is_asked
}

/// Says so where requests as several sides saw them are taken together: one request may be two rows.
pub(crate) fn note_roles(context: &Context<'_>, spec: &'static Spec) -> Result<(), AnalysisError> {
    let question = context.question;
    let role = Key::Role.name();
    let is_told_apart = match question.verb {
        Verb::Stats | Verb::Hist | Verb::Top => {
            question.by.is_empty() || question.by.iter().any(|by| by == role)
        }
        Verb::Heat | Verb::Differs | Verb::Bursts => false,
        _ => true,
    };
    let is_chosen = question.filter.values.iter().any(|one| one.key == role);
    if spec.table.name != REQUESTS.table.name || is_told_apart || is_chosen {
        return Ok(());
    }
    let pass = context.pass(spec, &[Key::Role])?;
    let roles = pass.run(context.tables, &Calls)?;
    if roles.len() > 1 {
        let names = roles
            .keys()
            .map(|role| label(&[Key::Role], role, &context.names));
        let names: Vec<String> = names.collect();
        context.note(format!(
            "requests as {} saw them are taken together, and one may be among them twice: --role \
             chooses",
            names.join(" and ")
        ));
    }
    Ok(())
}

/// Requests that pass a filter, whenever they were.
fn ids(context: &Context<'_>, filter: &Filter) -> Result<FxHashSet<i64>, AnalysisError> {
    let mut pass = context.pass_in(&REQUESTS, &[], filter, None)?;
    let ids = Ids(pass.projection.need("id"));
    let found = pass.run(context.tables, &ids)?;
    Ok(found.into_values().flatten().collect())
}

struct Ids(ColumnRef);

impl Summing for Ids {
    type Columns<'b> = Ints<'b>;
    type Sum = Vec<i64>;

    fn columns<'b>(&self, batch: &'b RecordBatch, _: Spot) -> Result<Ints<'b>, AnalysisError> {
        self.0.ints(batch)
    }

    fn add(&self, sum: &mut Vec<i64>, ids: &Ints<'_>, row: u32) {
        sum.push(ids.at(row));
    }

    fn merge(&self, sum: &mut Vec<i64>, other: Vec<i64>) {
        sum.extend(other);
    }
}

/// One request, and that of the server where a client's was matched with it.
#[derive(Debug, Clone)]
struct Request {
    id: i64,
    server: Option<i64>,
    ts: Ns,
    ts_end: Option<Ns>,
    utid: Option<i64>,
    title: String,
}

impl Request {
    /// Its time, up to the end of the recording where it has no end.
    fn window(&self, context: &Context<'_>) -> Window {
        let end = self.ts_end.unwrap_or_else(|| context.recording_end());
        Window::new(self.ts, end.max(self.ts + 1))
    }
}

/// The request that is asked for, else the longest that passes the filter.
fn chosen(context: &Context<'_>) -> Result<Option<Request>, AnalysisError> {
    let wanted = context.question.request;
    let (filter, window) = match wanted {
        Some(_) => (&Filter::default(), None),
        None => (&context.question.filter, context.selected()),
    };
    let mut pass = context.pass_in(&REQUESTS, &[], filter, window)?;
    let need = |name| pass.projection.need(name);
    let [id, server, ts, ts_end, utid, status] =
        ["id", "server_request", "ts", "ts_end", "utid", "status"].map(need);
    let words = ["method", "endpoint", "outcome"].map(|name| pass.projection.need(name));
    let mut verdicts = pass.selector.verdicts();
    let (mut rows, mut found): (Vec<u32>, Option<Request>) = (Vec::new(), None);
    let whole_end = context.recording_end();
    let length = |request: &Request| request.ts_end.unwrap_or(whole_end) - request.ts;
    in_order(context.tables, &pass.projection.scan(window), |batch| {
        pass.selector.select(&mut verdicts, batch, &mut rows)?;
        let [id, server, ts] = [id.ints(batch)?, server.ints(batch)?, ts.ints(batch)?];
        let [ts_end, utid, status] = [ts_end.ints(batch)?, utid.ints(batch)?, status.ints(batch)?];
        let words = [
            words[0].texts(batch)?,
            words[1].texts(batch)?,
            words[2].texts(batch)?,
        ];
        for row in rows.iter().copied() {
            if wanted.is_some_and(|wanted| wanted != id.at(row)) {
                continue;
            }
            let mut request = Request {
                id: id.at(row),
                server: server.get(row),
                ts: ts.at(row),
                ts_end: ts_end.get(row),
                utid: utid.get(row),
                title: String::new(),
            };
            let rank = |request: &Request| (length(request), Reverse(request.id));
            if found
                .as_ref()
                .is_none_or(|known| rank(&request) > rank(known))
            {
                let status = status.get(row).map(|status| status.to_string());
                let words = words.iter().filter_map(|word| word.get(row));
                let words: Vec<&str> = words.chain(status.as_deref()).collect();
                request.title = words.join(" ");
                found = Some(request);
            }
        }
        Ok(std::ops::ControlFlow::Continue(()))
    })?;
    if let (None, Some(id)) = (&found, wanted) {
        return Err(AnalysisError::query(
            format!("the recording has no request {id}"),
            "ids are those of this recording's `whyslow requests top` and `log`",
        ));
    }
    if let (Some(request), None) = (&found, wanted) {
        context.note(format!(
            "shown is the longest request, request:{}: -w request:ID shows another one",
            request.id
        ));
    }
    Ok(found)
}
