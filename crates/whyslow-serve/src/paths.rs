/// Where those who collect figures expect them.
pub(crate) const METRICS_PATH: &str = "/metrics";
/// The only place that takes anything.
pub(crate) const NOTES_PATH: &str = "/api/v1/notes";
