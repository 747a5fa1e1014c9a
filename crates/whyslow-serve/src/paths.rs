/// The conventional path for scrapers.
pub(crate) const METRICS_PATH: &str = "/metrics";
/// The only path that accepts writes.
pub(crate) const NOTES_PATH: &str = "/api/v1/notes";
