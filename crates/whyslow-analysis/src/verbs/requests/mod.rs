//! Views that only requests have.

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

use std::cmp::Reverse;

use whyslow_model::{Ns, Window};

use crate::AnalysisError;
use crate::context::Context;
use crate::fold::in_order;
use crate::kinds::REQUESTS;
use crate::query::Filter;

/// A request, and the matching one on the server if a client's request was joined.
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
    /// From its start to its end, or to the end of the recording.
    fn window(&self, context: &Context<'_>) -> Window {
        let end = self.ts_end.unwrap_or_else(|| context.recording_end());
        Window::new(self.ts, end.max(self.ts + 1))
    }
}

/// The request selected by the query, otherwise the longest one that passes the filter.
fn chosen(context: &Context<'_>) -> Result<Option<Request>, AnalysisError> {
    let wanted = context.query.request;
    let (filter, window) = match wanted {
        Some(_) => (&Filter::default(), None),
        None => (&context.query.filter, context.selected()),
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
            format!("unknown request {id}"),
            "use an id printed by `whyslow requests top` or `log` for this recording",
        ));
    }
    if let (Some(request), None) = (&found, wanted) {
        context.note(format!(
            "showing the longest request, request:{} (select another with -w request:ID)",
            request.id
        ));
    }
    Ok(found)
}
