//! The embedded web pages. They need no token, because they contain no data.

use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};

use crate::reply::Refusal;

struct Asset {
    name: &'static str,
    gzip: &'static [u8],
    etag: &'static str,
}

include!(concat!(env!("OUT_DIR"), "/assets.rs"));

/// Shown if the pages were not built.
const MISSING: &str = "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<title>whyslow</title>\n\
    <h1>Web pages unavailable</h1>\n\
    <p>This build does not contain the web pages. Run <code>./dev ui</code>, then <code>cargo build</code>.</p>\n\
    <p>The HTTP API works without them: see <code>/api/v1/openapi.json</code>.</p>\n</html>\n";

/// Whether the program contains the pages.
pub(crate) fn are_there() -> bool {
    !ASSETS.is_empty()
}

/// A file of the pages.
pub(crate) fn text(name: &str) -> Option<String> {
    let asset = ASSETS.iter().find(|asset| asset.name == name)?;
    let mut text = String::new();
    let mut decoder = flate2::read::GzDecoder::new(asset.gzip);
    std::io::Read::read_to_string(&mut decoder, &mut text).ok()?;
    Some(text)
}

pub(crate) async fn page(request: Request) -> Response {
    let path = request.uri().path();
    let name = match path.strip_prefix('/') {
        Some("") | None => "index.html",
        Some(name) => name,
    };
    if name == "index.html" && !are_there() {
        let html = HeaderValue::from_static("text/html; charset=utf-8");
        return ([(header::CONTENT_TYPE, html)], MISSING).into_response();
    }
    match ASSETS.iter().find(|asset| asset.name == name) {
        Some(asset) => send(asset, request.headers()),
        None => Refusal::new(StatusCode::NOT_FOUND, "page not found")
            .hint("see /api/v1/openapi.json for the API")
            .into_response(),
    }
}

fn send(asset: &Asset, request_headers: &HeaderMap) -> Response {
    let has_it = request_headers
        .get(header::IF_NONE_MATCH)
        .is_some_and(|tags| {
            let mut tags = tags.to_str().unwrap_or("").split(',');
            tags.any(|tag| tag.trim().trim_start_matches("W/") == asset.etag)
        });
    let mut response = if has_it {
        StatusCode::NOT_MODIFIED.into_response()
    } else {
        body(asset, request_headers)
    };
    let headers = response.headers_mut();
    headers.insert(header::ETAG, HeaderValue::from_static(asset.etag));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert(header::VARY, HeaderValue::from_static("accept-encoding"));
    response
}

fn body(asset: &Asset, request_headers: &HeaderMap) -> Response {
    let takes_gzip = request_headers
        .get_all(header::ACCEPT_ENCODING)
        .iter()
        .any(|value| {
            let value = value.to_str().unwrap_or("");
            value.split(',').any(|coding| {
                let mut parts = coding.split(';').map(str::trim);
                parts.next() == Some("gzip") && parts.next() != Some("q=0")
            })
        });
    let mut response = if takes_gzip {
        Response::new(Body::from(asset.gzip))
    } else {
        let mut plain = Vec::new();
        let mut decoder = flate2::read::GzDecoder::new(asset.gzip);
        if std::io::Read::read_to_end(&mut decoder, &mut plain).is_err() {
            let error = "cannot decompress the embedded page";
            return Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, error).into_response();
        }
        Response::new(Body::from(plain))
    };
    let headers = response.headers_mut();
    if takes_gzip {
        headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static(media_type(asset.name)),
    );
    response
}

fn media_type(name: &str) -> &'static str {
    match name.rsplit_once('.').map(|(_, ending)| ending) {
        Some("html") => "text/html; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        _ => "application/octet-stream",
    }
}
