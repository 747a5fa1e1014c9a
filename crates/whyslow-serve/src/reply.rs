//! Responses and errors of the server.

use std::fmt::Write as _;

use axum::body::Body;
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde_json::json;
use whyslow_analysis::AnalysisError;
use whyslow_base::failure::Failure;
use whyslow_store::StoreError;

use crate::limited::Stop;

pub(crate) const CLI: HeaderName = HeaderName::from_static("whyslow-cli");
/// Header for what a format cannot hold: caveats and losses, as JSON.
pub(crate) const NOTES: HeaderName = HeaderName::from_static("whyslow-notes");
pub(crate) const JSON: &str = "application/json";

/// An error response.
#[derive(Debug)]
pub struct Refusal {
    pub(crate) status: StatusCode,
    error: String,
    hint: Option<String>,
    causes: Vec<String>,
}

impl Refusal {
    pub(crate) fn new(status: StatusCode, error: impl Into<String>) -> Self {
        Self {
            status,
            error: error.into(),
            hint: None,
            causes: Vec::new(),
        }
    }

    pub(crate) fn wrong(error: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, error)
    }

    pub(crate) fn hint(self, hint: impl Into<String>) -> Self {
        Self {
            hint: Some(hint.into()),
            ..self
        }
    }

    pub(crate) fn causes(self, causes: Vec<String>) -> Self {
        Self { causes, ..self }
    }

    pub(crate) fn stopped(stop: Stop) -> Self {
        match stop {
            Stop::Time => Self::new(
                StatusCode::REQUEST_TIMEOUT,
                "the query exceeded the time limit",
            )
            .hint("use a shorter window, or restart the server with a longer --query-time"),
            Stop::Memory => Self::new(
                StatusCode::PAYLOAD_TOO_LARGE,
                "the query exceeded the memory limit",
            )
            .hint("use a shorter window, or restart the server with more --query-memory"),
            Stop::Unwanted => Self::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "the server is shutting down",
            ),
        }
    }
}

impl From<Failure> for Refusal {
    fn from(failure: Failure) -> Self {
        let status = if failure.is_usage() {
            StatusCode::BAD_REQUEST
        } else {
            StatusCode::INTERNAL_SERVER_ERROR
        };
        let (error, causes, hint) = failure.into_parts();
        Self {
            status,
            error,
            hint,
            causes,
        }
    }
}

impl From<AnalysisError> for Refusal {
    fn from(error: AnalysisError) -> Self {
        Failure::from(error).into()
    }
}

impl From<StoreError> for Refusal {
    fn from(error: StoreError) -> Self {
        Failure::from(error).into()
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let body = json!({"error": self.error, "hint": self.hint, "causes": self.causes});
        (
            self.status,
            [(header::CONTENT_TYPE, JSON)],
            body.to_string(),
        )
            .into_response()
    }
}

/// A JSON response.
pub(crate) fn json_document(document: &impl Serialize) -> Result<Response, Refusal> {
    let text = serde_json::to_vec(document).map_err(|error| {
        let status = StatusCode::INTERNAL_SERVER_ERROR;
        Refusal::new(status, format!("cannot write JSON: {error}"))
    })?;
    Ok(([(header::CONTENT_TYPE, JSON)], text).into_response())
}

/// A body with its media type, and the equivalent command.
pub(crate) fn with_command(media_type: &'static str, command: &str, body: Vec<u8>) -> Response {
    let mut response = Response::new(Body::from(body));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(media_type));
    // Quoting leaves only printable ASCII.
    if let Ok(command) = HeaderValue::from_str(command) {
        headers.insert(CLI, command);
    }
    response
}

/// ASCII text for a header: JSON with everything else escaped.
pub(crate) fn header_json(document: &serde_json::Value) -> Option<HeaderValue> {
    let mut text = String::new();
    for c in document.to_string().chars() {
        if c.is_ascii() && !c.is_ascii_control() {
            text.push(c);
            continue;
        }
        let mut units = [0_u16; 2];
        for unit in c.encode_utf16(&mut units) {
            let _ = write!(text, "\\u{unit:04x}");
        }
    }
    HeaderValue::from_str(&text).ok()
}
