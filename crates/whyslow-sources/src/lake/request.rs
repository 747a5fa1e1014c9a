//! The request to the Python package.

use serde::{Deserialize, Serialize};
use whyslow_model::Ns;

/// A request in the format of the package.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Request {
    /// Directory or URL of the lake.
    pub lake: String,
    /// A query of `sql/fleet/`, or …
    #[serde(skip_serializing_if = "Option::is_none")]
    pub query: Option<String>,
    /// … a SQL statement.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sql: Option<String>,
    /// Parameters of the query, by name.
    pub parameters: serde_json::Map<String, serde_json::Value>,
    /// Start and end; `None` for all times.
    pub window: Option<(Ns, Ns)>,
    /// Globs; empty for all hosts.
    pub hosts: Vec<String>,
    /// Glob; `None` for all clusters.
    pub cluster: Option<String>,
    /// `duckdb`, or the address of a Spark server.
    pub engine: String,
    /// Memory limit of the engine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<String>,
    /// Thread limit of the engine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub threads: Option<u32>,
    /// Whether the lake is a temporary one for this query, which hints must not name.
    #[serde(default)]
    pub passing: bool,
}
