//! The user's folders: for what can be made again, and for what cannot.

use std::path::PathBuf;

/// Both are below a home, which services may lack.
#[derive(Debug, Clone, Default)]
pub(crate) struct Folders {
    /// For what can be made again.
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
