/// What an answer is about.
#[derive(Debug, Clone, Default)]
pub struct Subject {
    /// What the recording is called.
    pub name: String,
    /// The recorded host.
    pub host: Option<String>,
    /// Zone of that host.
    pub zone: Option<String>,
    /// What the JSON document says besides.
    pub more: serde_json::Map<String, serde_json::Value>,
}
