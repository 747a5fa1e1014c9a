//! Which address is answered by what.

use axum::Router;
use axum::middleware;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use tower_http::CompressionLevel;
use tower_http::compression::CompressionLayer;

use super::reply::Refusal;
use super::{Shared, assets, guard, questions, recordings, told};

pub(super) fn router(shared: Shared) -> Router {
    let api = Router::new()
        .route("/recordings", get(recordings::recordings))
        .route("/status", get(recordings::status))
        .route("/table", get(questions::table))
        .route("/hist", get(questions::hist))
        .route("/heat", get(questions::heat))
        .route("/explain", get(told::explain))
        .route("/why", get(told::mechanism))
        .route("/tracks", get(not_yet))
        .route("/tile", get(not_yet))
        .route("/series", get(not_yet))
        .fallback(nothing);
    Router::new()
        .nest("/api/v1", api)
        .route("/api", get(nothing))
        .route("/api/{*rest}", get(nothing))
        .fallback(assets::page)
        .layer(CompressionLayer::new().quality(CompressionLevel::Fastest))
        .layer(middleware::from_fn_with_state(shared.clone(), guard::check))
        .with_state(shared)
}

async fn nothing() -> Response {
    Refusal::new(
        axum::http::StatusCode::NOT_FOUND,
        "there is no such question",
    )
    .hint("/api/v1/openapi.json lists all")
    .into_response()
}

async fn not_yet() -> Response {
    let status = axum::http::StatusCode::SERVICE_UNAVAILABLE;
    Refusal::new(status, "building").into_response()
}
