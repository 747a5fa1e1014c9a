use std::path::{Path, PathBuf};

use crate::{Need, skip};

/// A file or directory of `fixtures/`.
pub fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../fixtures")
        .join(name)
}

/// The directory `name` of the development data in `WHYSLOW_DATA`; skips if it is not set.
#[track_caller]
pub fn data_folder(name: &str) -> Option<PathBuf> {
    let data = std::env::var_os("WHYSLOW_DATA").filter(|data| !data.is_empty());
    if data.is_none() {
        skip(
            Need::Data,
            "WHYSLOW_DATA is not set to the directory with the traces",
        );
    }
    Some(PathBuf::from(data?).join(name))
}
