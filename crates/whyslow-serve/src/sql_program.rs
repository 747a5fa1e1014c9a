use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use whyslow_sources::duckdb::program;

/// The DuckDB program, or why there is none.
#[derive(Debug)]
pub(crate) struct Sql(pub(crate) Result<PathBuf, String>);

impl Sql {
    pub(crate) fn find() -> Self {
        Self(program::find().map_err(|failure| {
            let (message, _, hint) = failure.into_parts();
            match hint {
                Some(hint) => format!("{message}: {hint}"),
                None => message,
            }
        }))
    }

    pub(crate) fn program(&self) -> Option<&Path> {
        self.0.as_deref().ok()
    }

    pub(crate) fn about(&self) -> Value {
        match &self.0 {
            Ok(_) => json!({"available": true}),
            Err(hint) => json!({"available": false, "hint": hint}),
        }
    }
}
