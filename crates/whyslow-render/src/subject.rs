/// The source of an answer.
#[derive(Debug, Clone, Default)]
pub struct Subject {
    /// Name of the recording.
    pub name: String,
    /// The recorded host.
    pub host: Option<String>,
    /// Zone of that host.
    pub zone: Option<String>,
    /// Additional members of the JSON document.
    pub more: serde_json::Map<String, serde_json::Value>,
}
