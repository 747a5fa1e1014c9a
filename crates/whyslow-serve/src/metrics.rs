//! `/metrics`: counters and histograms for scrapers.

use axum::extract::{Request, State};
use axum::http::header;
use axum::response::{IntoResponse as _, Response};
use whyslow_analysis::Filter;
use whyslow_base::failure::Failure;
use whyslow_export::openmetrics::{MEDIA_TYPE, Metrics};

use crate::limited::Limited;
use crate::query::Query;
use crate::reply::Refusal;
use crate::server::Shared;

/// Since the server started if live; otherwise of the recording or a window.
pub(crate) async fn metrics(
    State(shared): State<Shared>,
    request: Request,
) -> Result<Response, Refusal> {
    let query = Query::of(request.uri())?;
    query.only(&["w"])?;
    let served = shared.recordings.find(&query)?;
    let current = served.now();
    let live = served.live.clone();
    if live.is_some() && query.get("w").is_some() {
        return Err(Refusal::wrong(
            "cannot use a window with @live: its counters are cumulative",
        ));
    }
    let window = query.window(&current.opened)?;
    let written = shared.queue.run(move |gauge| {
        let metrics = if let Some(live) = live {
            live.metrics()
        } else {
            let tables = Limited::new(&*current.opened.tables, gauge);
            let mut metrics = Metrics::default();
            metrics
                .add(&tables, window, &Filter::default())
                .map_err(Failure::from)?;
            metrics
        };
        let mut text = Vec::new();
        metrics.write(&mut text).map_err(Failure::from)?;
        Ok(text)
    });
    let text = written.await?;
    Ok(([(header::CONTENT_TYPE, MEDIA_TYPE)], text).into_response())
}
