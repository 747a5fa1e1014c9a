//! The user's directories for caches and for state.

use std::path::PathBuf;

/// Both are below a home directory, which services may lack.
#[derive(Debug, Clone, Default)]
pub(crate) struct Folders {
    /// For data that can be rebuilt.
    pub(crate) cache: Option<PathBuf>,
    /// For notes.
    pub(crate) state: Option<PathBuf>,
}

impl Folders {
    pub(crate) fn of_user() -> Self {
        Self {
            cache: whyslow_ingest::cache::default_folder().ok(),
            state: whyslow_sources::recording::state_folder(),
        }
    }
}
