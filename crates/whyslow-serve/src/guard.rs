//! Access control: requests need the token, and come from pages of this server or from no page at
//! all.
//!
//! The machine may have other users, and their browsers may show arbitrary pages. The token keeps
//! other users out; the check of `Host` keeps out pages whose name resolves to this server (DNS
//! rebinding); the check of `Origin`, and not allowing other origins, keeps out cross-origin
//! requests.

use axum::extract::{Request, State};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::reply::Refusal;
use crate::server::Shared;
use crate::token::Token;

/// Maximum length of path and query.
const URL_BYTES_MAX: usize = 16 << 10;

const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
                      img-src 'self' data: blob:; connect-src 'self'; font-src 'self'; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// Passes allowed requests, and sets the security headers for browsers.
pub(crate) async fn check(State(shared): State<Shared>, request: Request, next: Next) -> Response {
    let path = request.uri().path();
    let is_api = path.starts_with("/api") || path == crate::paths::METRICS_PATH;
    let mut response = match refuse(&request, &shared.token, is_api) {
        Some(refusal) => refusal.into_response(),
        None => next.run(request).await,
    };
    let headers = response.headers_mut();
    for (name, value) in [
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (
            HeaderName::from_static("cross-origin-resource-policy"),
            "same-origin",
        ),
        (
            HeaderName::from_static("cross-origin-opener-policy"),
            "same-origin",
        ),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers
        .entry(header::CACHE_CONTROL)
        .or_insert(HeaderValue::from_static("no-store"));
    response
}

fn refuse(request: &Request, token: &Token, is_api: bool) -> Option<Refusal> {
    let headers = request.headers();
    let url_bytes = request
        .uri()
        .path_and_query()
        .map_or(0, |url| url.as_str().len());
    if url_bytes > URL_BYTES_MAX {
        let error = format!("the URL is longer than {URL_BYTES_MAX} bytes");
        return Some(Refusal::new(StatusCode::URI_TOO_LONG, error));
    }
    let host = only(headers, &header::HOST);
    let Some(host) = host.filter(|host| is_local(host)) else {
        let error = "the Host header must be a loopback address";
        let refusal = Refusal::new(StatusCode::FORBIDDEN, error);
        return Some(refusal.hint("use 127.0.0.1 or localhost"));
    };
    let is_foreign = headers.contains_key(header::ORIGIN)
        && only(headers, &header::ORIGIN).is_none_or(|origin| origin != format!("http://{host}"));
    // Browsers send the site of the requesting page.
    let site = headers.get("sec-fetch-site").map(HeaderValue::as_bytes);
    let is_across = is_api && site.is_some_and(|site| site != b"same-origin" && site != b"none");
    if is_foreign || is_across {
        let error = "cross-origin requests are not allowed";
        return Some(Refusal::new(StatusCode::FORBIDDEN, error));
    }
    if is_api && !bearer(headers).is_some_and(|given| token.is(given)) {
        let refusal = Refusal::new(StatusCode::UNAUTHORIZED, "missing or invalid token");
        return Some(refusal.hint(
            "send `Authorization: Bearer TOKEN` with the token that `whyslow serve` printed",
        ));
    }
    let may_write = is_api && request.uri().path() == crate::paths::NOTES_PATH;
    match *request.method() {
        Method::GET | Method::HEAD => None,
        Method::PUT if may_write => None,
        _ => Some(Refusal::new(
            StatusCode::METHOD_NOT_ALLOWED,
            "method not allowed",
        )),
    }
}

/// The value of a header that occurs exactly once.
fn only<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Option<&'h str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?.to_str().ok()?;
    values.next().is_none().then_some(value)
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let (scheme, token) = only(headers, &header::AUTHORIZATION)?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

/// Whether a name can only refer to this machine.
fn is_local(host: &str) -> bool {
    let Ok(authority) = host.parse::<Authority>() else {
        return false;
    };
    !host.contains('@') && matches!(authority.host(), "127.0.0.1" | "localhost" | "[::1]")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_this_machine_are_local() {
        let check = |host: &str, want: bool| assert_eq!(is_local(host), want, "{host}");
        for host in [
            "127.0.0.1",
            "127.0.0.1:80",
            "localhost",
            "localhost:65535",
            "[::1]",
            "[::1]:80",
        ] {
            check(host, true);
        }
        for host in [
            "",
            "evil.example",
            "127.0.0.1.evil.example",
            "localhost.evil.example",
            "127.0.0.2",
            "user@127.0.0.1",
            "127.0.0.1@evil.example",
            "127.0.0.1:80:80",
            "::1",
            "0.0.0.0",
            "127.1",
            "localhost/",
            "localhost x",
        ] {
            check(host, false);
        }
    }
}
