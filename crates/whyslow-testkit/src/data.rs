use std::path::{Path, PathBuf};

use crate::{Need, skip};

/// A file or folder of `fixtures/`.
pub fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../fixtures")
        .join(name)
}

/// The folder `name` of the development data, which `WHYSLOW_DATA` names; skips where it does not.
#[track_caller]
pub fn data_folder(name: &str) -> Option<PathBuf> {
    let data = std::env::var_os("WHYSLOW_DATA").filter(|data| !data.is_empty());
    if data.is_none() {
        skip(
            Need::Data,
            "WHYSLOW_DATA does not name the folder with the traces",
        );
    }
    Some(PathBuf::from(data?).join(name))
}
