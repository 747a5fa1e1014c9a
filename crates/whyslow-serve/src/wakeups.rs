//! `wakeups`: wakers and wakees, for arrows between lanes.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use axum::extract::{Request, State};
use axum::response::Response;
use serde_json::{Value, json};
use whyslow_analysis::read::{Projection, in_order};
use whyslow_model::tables::WakeupRow;
use whyslow_model::{Row as _, Window};
use whyslow_store::Tables;

use crate::limited::Limited;
use crate::query::Query;
use crate::reply::{self, Refusal};
use crate::server::Shared;

const ROWS: usize = 2_000;
const ROWS_MAX: usize = 20_000;

pub(crate) async fn wakeups(
    State(shared): State<Shared>,
    request: Request,
) -> Result<Response, Refusal> {
    let query = Query::of(request.uri())?;
    query.only(&["w", "lanes", "limit", "digest"])?;
    let current = shared.recordings.find(&query)?.now();
    let window = query.window(&current.opened)?;
    let lanes: BTreeSet<i64> = query.numbers("lanes")?.into_iter().collect();
    let rows_max = query.number("limit", ROWS)?.clamp(1, ROWS_MAX);
    let found = shared.queue.run(move |gauge| {
        let tables = Limited::new(&*current.opened.tables, gauge);
        find(&tables, window, &lanes, rows_max)
    });
    let (rows, is_cut) = found.await?;
    reply::json_document(&json!({"rows": rows, "cut": is_cut}))
}

/// Wakeups of or by these threads; of all threads if none are specified.
fn find(
    tables: &dyn Tables,
    window: Option<Window>,
    lanes: &BTreeSet<i64>,
    rows_max: usize,
) -> Result<(Vec<Value>, bool), Refusal> {
    let mut projection = Projection::new(WakeupRow::TABLE);
    let [ts, utid, waker] = ["ts", "utid", "waker_utid"].map(|name| projection.need(name));
    let [context, cause] = ["context", "cause"].map(|name| projection.need(name));
    let cause_id = projection.need("cause_id");
    let (mut rows, mut is_cut) = (Vec::new(), false);
    in_order(tables, &projection.scan(window), |batch| {
        let (ts, utid, waker) = (ts.ints(batch)?, utid.ints(batch)?, waker.ints(batch)?);
        let (context, cause) = (context.texts(batch)?, cause.texts(batch)?);
        let cause_id = cause_id.ints(batch)?;
        for row in 0..batch.num_rows() as u32 {
            let at = ts.at(row);
            if window.is_some_and(|window| at < window.begin || at >= window.end) {
                continue;
            }
            let context = context.get(row);
            // The thread that ran when an interrupt arrived is not the waker.
            let waker = waker.get(row).filter(|_| context == Some("task"));
            let is_of = |utid: Option<i64>| utid.is_some_and(|utid| lanes.contains(&utid));
            if !lanes.is_empty() && !is_of(utid.get(row)) && !is_of(waker) {
                continue;
            }
            if rows.len() == rows_max {
                is_cut = true;
                return Ok(ControlFlow::Break(()));
            }
            rows.push(json!({
                "ts_ns": at,
                "utid": utid.get(row),
                "waker_utid": waker,
                "context": context,
                "cause": cause.get(row),
                "cause_id": cause_id.get(row),
            }));
        }
        Ok(ControlFlow::Continue(()))
    })?;
    Ok((rows, is_cut))
}
