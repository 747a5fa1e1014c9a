//! `@last`: the last recording written or used, kept in the user's state directory.

use std::path::{Path, PathBuf};

use whyslow_base::failure::Failure;

const FILE: &str = "last";

/// Remembers a recording. Errors are ignored: the user can always specify it.
pub fn remember(recording: &Path) {
    let (Some(folder), Ok(path)) = (state_folder(), std::path::absolute(recording)) else {
        return;
    };
    let _ = std::fs::create_dir_all(&folder);
    let _ = std::fs::write(folder.join(FILE), path.as_os_str().as_encoded_bytes());
}

pub(super) fn recall() -> Result<PathBuf, Failure> {
    let hint = "specify a recording or trace, or make one: whyslow import TRACE";
    let path = state_folder()
        .and_then(|folder| std::fs::read(folder.join(FILE)).ok())
        .map(|bytes| PathBuf::from(os_string(bytes)))
        .filter(|path| !path.as_os_str().is_empty());
    let Some(path) = path else {
        return Err(Failure::usage("no recording specified, and none was used before").hint(hint));
    };
    if !path.exists() {
        return Err(Failure::new(format!(
            "cannot open the last used recording: `{}` no longer exists",
            path.display()
        ))
        .hint(hint));
    }
    Ok(path)
}

fn os_string(bytes: Vec<u8>) -> std::ffi::OsString {
    std::os::unix::ffi::OsStringExt::from_vec(bytes)
}

/// The user's state directory, if there is a home directory.
pub fn state_folder() -> Option<PathBuf> {
    let absolute = |name: &str| {
        std::env::var_os(name)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    };
    absolute("XDG_STATE_HOME")
        .or_else(|| absolute("HOME").map(|home| home.join(".local/state")))
        .map(|folder| folder.join("whyslow"))
}
