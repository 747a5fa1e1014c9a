//! Results of requests: only those with the same result show how long one usually takes. A reply
//! from a cache (304), or an error page, does not show how long it takes to generate a page.

use whyslow_analysis::before_after::{Request, Requests};

/// First digit of the status code; 0 without a status.
pub(super) fn result_of(request: &Request) -> u32 {
    let status = request.status.and_then(|status| u32::try_from(status).ok());
    status.filter(|one| (100..600).contains(one)).unwrap_or(0) / 100
}

/// Whether the results of two requests are of one class: of one class of status codes, or, if one
/// of them has none, of the same outcome. One without an end is compared with those that succeeded.
pub(super) fn is_same(request: &Request, other: &Request) -> bool {
    if request.dur.is_none() {
        return !other.failed;
    }
    let results = (result_of(request), result_of(other));
    results.0 == results.1 && (results.0 != 0 || request.outcome == other.outcome)
}

/// The result of a request, as [`Baseline::result`](crate::report::Baseline::result) names it.
pub(super) fn named(requests: &Requests, request: &Request) -> String {
    if request.dur.is_none() {
        return "ok".to_owned();
    }
    match (result_of(request), requests.symbols.get(request.outcome)) {
        (0, "unknown") => String::new(),
        (0, outcome) => outcome.to_owned(),
        (class, _) => format!("{class}xx"),
    }
}
