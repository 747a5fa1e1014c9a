//! What the Python package is asked.

use serde::{Deserialize, Serialize};
use whyslow_model::Ns;

/// What is asked, as the package reads it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Request {
    pub lake: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub question: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sql: Option<String>,
    pub parameters: serde_json::Map<String, serde_json::Value>,
    pub window: Option<(Ns, Ns)>,
    pub hosts: Vec<String>,
    pub cluster: Option<String>,
    pub engine: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub threads: Option<u32>,
    /// Whether the lake is made for this question, and named by no hint.
    #[serde(default)]
    pub passing: bool,
}
