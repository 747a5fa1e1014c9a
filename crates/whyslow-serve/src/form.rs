//! Content negotiation: the format of an answer.

use axum::http::{HeaderMap, StatusCode, header};
use clap::ValueEnum as _;
use whyslow_base::args::Format;

use crate::query::Query;
use crate::reply::{JSON, Refusal};

const ARROW: &str = "application/vnd.apache.arrow.stream";

/// The format of `format=`, otherwise the best one of `Accept`.
pub(crate) fn of(headers: &HeaderMap, query: &Query) -> Result<Format, Refusal> {
    if let Some(name) = query.get("format") {
        return match Format::from_str(name, false) {
            // HTML with content from a recording must not be served from this origin.
            Ok(Format::Html) | Err(_) => Err(Refusal::wrong(format!("unknown format `{name}`"))
                .hint("use json, ndjson, csv, tsv, md, text, arrow or parquet")),
            Ok(format) => Ok(format),
        };
    }
    let accepted = headers.get_all(header::ACCEPT).iter();
    let accepted: Vec<&str> = accepted.filter_map(|value| value.to_str().ok()).collect();
    match accepted.join(",").trim() {
        "" => Ok(Format::Json),
        text => accepted_of(text).ok_or_else(|| {
            let error = format!("cannot serve any of the types `{text}`");
            Refusal::new(StatusCode::NOT_ACCEPTABLE, error)
                .hint(format!("accept {JSON}, text/csv or {ARROW}"))
        }),
    }
}

fn accepted_of(text: &str) -> Option<Format> {
    let mut best: Option<(f32, Format)> = None;
    for range in text.split(',') {
        let mut parts = range.split(';').map(str::trim);
        let format = match parts.next()?.to_ascii_lowercase().as_str() {
            JSON | "application/*" | "*/*" => Format::Json,
            "text/csv" | "text/*" => Format::Csv,
            ARROW => Format::Arrow,
            "application/x-ndjson" => Format::Ndjson,
            "text/tab-separated-values" => Format::Tsv,
            "text/markdown" => Format::Md,
            "text/plain" => Format::Text,
            "application/vnd.apache.parquet" => Format::Parquet,
            _ => continue,
        };
        let weight = parts.find_map(|part| part.strip_prefix("q="));
        let weight = weight.map_or(1.0, |weight| weight.parse().unwrap_or(0.0));
        if weight > 0.0 && best.is_none_or(|(other, _)| weight > other) {
            best = Some((weight, format));
        }
    }
    best.map(|(_, format)| format)
}

pub(crate) fn media_type(format: Format) -> &'static str {
    match format {
        Format::Json => JSON,
        Format::Ndjson => "application/x-ndjson",
        Format::Csv => "text/csv; charset=utf-8",
        Format::Tsv => "text/tab-separated-values; charset=utf-8",
        Format::Md => "text/markdown; charset=utf-8",
        Format::Text
        | Format::Html
        | Format::Svg
        | Format::Collapsed
        | Format::Speedscope
        | Format::Openmetrics => "text/plain; charset=utf-8",
        Format::Arrow => ARROW,
        Format::Parquet => "application/vnd.apache.parquet",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_form_is_the_best_of_what_is_accepted() {
        let check =
            |text: &str, want: Option<Format>| assert_eq!(accepted_of(text), want, "{text}");
        check("*/*", Some(Format::Json));
        check("text/csv", Some(Format::Csv));
        check("application/vnd.apache.arrow.stream", Some(Format::Arrow));
        check("text/csv;q=0.5, application/json", Some(Format::Json));
        check("text/csv;q=0.5, */*;q=0.1", Some(Format::Csv));
        check(
            "text/html, application/xhtml+xml, */*;q=0.8",
            Some(Format::Json),
        );
        check("image/png", None);
        check("application/json;q=0", None);
        check(",;,", None);
    }
}
