//! Routes of the HTTP API.

use axum::Router;
use axum::http::header;
use axum::middleware;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use tower_http::CompressionLevel;
use tower_http::compression::CompressionLayer;

use crate::reply::{self, Refusal};
use crate::server::Shared;
use crate::{
    assets, explain, flame, fleet, guard, lanes, metrics, notes, queries, recordings, search, sql,
    tiles, wakeups,
};

pub(crate) fn router(shared: Shared) -> Router {
    let api = Router::new()
        .route("/openapi.json", get(description))
        .route("/recordings", get(recordings::recordings))
        .route("/status", get(recordings::status))
        .route("/table", get(queries::table))
        .route("/hist", get(queries::hist))
        .route("/heat", get(queries::heat))
        .route("/metrics", get(metrics::metrics))
        .route("/flame", get(flame::flame))
        .route("/explain", get(explain::explain))
        .route("/why", get(explain::mechanism))
        .route("/tracks", get(lanes::tracks))
        .route("/tile", get(tiles::tile))
        .route("/series", get(tiles::series))
        .route("/wakeups", get(wakeups::wakeups))
        .route("/search", get(search::search))
        .route("/sql", get(sql::sql))
        .route("/fleet", get(fleet::fleet))
        .route("/notes", get(notes::get).put(notes::put))
        .fallback(nothing);
    Router::new()
        .nest("/api/v1", api)
        .route(crate::paths::METRICS_PATH, get(metrics::metrics))
        .route("/api", get(nothing))
        .route("/api/{*rest}", get(nothing))
        .fallback(assets::page)
        .layer(CompressionLayer::new().quality(CompressionLevel::Fastest))
        .layer(middleware::from_fn_with_state(shared.clone(), guard::check))
        .with_state(shared)
}

/// The API description, for programs.
pub const DESCRIPTION: &str = include_str!("../../../docs/openapi.json");

async fn description() -> Response {
    ([(header::CONTENT_TYPE, reply::JSON)], DESCRIPTION).into_response()
}

async fn nothing() -> Response {
    Refusal::new(axum::http::StatusCode::NOT_FOUND, "unknown endpoint")
        .hint("see /api/v1/openapi.json for all endpoints")
        .into_response()
}
