//! `sql`: DuckDB in a process of its own, confined as on the command line.

use std::path::PathBuf;

use serde_json::{Value, json};

use crate::commands::sql::duckdb;

/// The program that answers, or why there is none.
#[derive(Debug)]
pub(super) struct Sql(Result<PathBuf, String>);

impl Sql {
    pub(super) fn find() -> Self {
        Self(duckdb::find().map_err(|failure| {
            let (message, _, hint) = failure.into_parts();
            match hint {
                Some(hint) => format!("{message}: {hint}"),
                None => message,
            }
        }))
    }

    pub(super) fn about(&self) -> Value {
        match &self.0 {
            Ok(_) => json!({"available": true}),
            Err(hint) => json!({"available": false, "hint": hint}),
        }
    }
}
