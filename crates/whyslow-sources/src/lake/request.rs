//! What the Python package is asked.

use serde::{Deserialize, Serialize};
use whyslow_model::Ns;

/// What is asked, as the package reads it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Request {
    /// Folder or address of the lake.
    pub lake: String,
    /// A question of `sql/fleet/`, or …
    #[serde(skip_serializing_if = "Option::is_none")]
    pub question: Option<String>,
    /// … a statement of SQL.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sql: Option<String>,
    /// Flags of the question, by name.
    pub parameters: serde_json::Map<String, serde_json::Value>,
    /// Begin and end; without it all times.
    pub window: Option<(Ns, Ns)>,
    /// Globs; without any all hosts.
    pub hosts: Vec<String>,
    /// Glob; without it all clusters.
    pub cluster: Option<String>,
    /// `duckdb`, or the address of a Spark.
    pub engine: String,
    /// Memory that the engine may use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<String>,
    /// Threads that the engine may use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub threads: Option<u32>,
    /// Whether the lake is made for this question, and named by no hint.
    #[serde(default)]
    pub passing: bool,
}
