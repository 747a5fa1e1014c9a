/// What an answer is about.
#[derive(Debug, Clone, Default)]
pub struct Subject {
    pub name: String,
    pub host: Option<String>,
    pub zone: Option<String>,
    /// What the JSON document says besides.
    pub more: serde_json::Map<String, serde_json::Value>,
}
