//! Recordings for other tools: trace viewers, profilers, and people elsewhere.

pub mod redact;
