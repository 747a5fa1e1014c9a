//! Drops privileges before the server reads any data: an exploit of the server, or of a parser of a
//! hostile recording, reaches no other files and no network.

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use rustix::thread::{
    CapabilitySet, capabilities, remove_capability_from_bounding_set, set_capabilities,
};
use whyslow_base::failure::Failure;
use whyslow_sources::confine::{self, Confined};

use crate::folders::Folders;

/// Capabilities kept by root: recordings of other users, if specified, stay readable.
const KEPT: CapabilitySet = CapabilitySet::DAC_READ_SEARCH;
const MANIFEST: &str = "manifest.json";
/// Directory in a recording for derived data.
const DERIVED: &str = "derived";

/// Confines this thread and the threads it starts to these recordings and traces, the program for
/// SQL, the directory of the live recording, and the user's directories. Returns whether the kernel
/// supports it.
pub(crate) fn to(
    recordings: &[PathBuf],
    (program, live_folder): (Option<&Path>, Option<&Path>),
    folders: &Folders,
) -> Result<bool, Failure> {
    let mut readable = recordings.to_vec();
    // SQL runs in a new process of this program, which inspects itself. The kernel hides memory,
    // environment and files of other processes from a confined process.
    readable.extend(std::env::current_exe().ok());
    readable.push(PathBuf::from("/proc"));
    if let Some(program) = program {
        readable.push(program.to_path_buf());
        readable.extend(std::fs::canonicalize(program).ok());
    }
    let folders = [
        folders.cache.as_deref(),
        folders.state.as_deref(),
        live_folder,
    ];
    let folders = folders.into_iter().flatten().map(Path::to_path_buf);
    let mut changeable: Vec<PathBuf> = folders.collect();
    for recording in recordings {
        if recording.join(MANIFEST).exists() {
            changeable.push(recording.join(DERIVED));
        } else {
            // Archives are unpacked there.
            changeable.push(std::env::temp_dir());
        }
    }
    for folder in &changeable {
        let mut builder = DirBuilder::new();
        // A read-only recording needs no directory for derived data.
        let _ = builder.recursive(true).mode(0o700).create(folder);
    }
    let confined = confine::to_paths(&readable, &changeable)?;
    drop_capabilities();
    Ok(confined == Confined::Yes)
}

/// Confines this thread, which imports what a recorder wrote into a directory.
pub(crate) fn to_folder(live_folder: &Path) {
    // If the kernel does not support it, the server has already reported that.
    let _ = confine::to_paths(&[PathBuf::from("/proc")], &[live_folder.to_path_buf()]);
    drop_capabilities();
}

/// Errors are ignored: nothing depends on dropping capabilities.
fn drop_capabilities() {
    let Ok(mut sets) = capabilities(None) else {
        return;
    };
    // First, because it needs one of the capabilities that are dropped next.
    for capability in CapabilitySet::all().difference(KEPT).iter() {
        let _ = remove_capability_from_bounding_set(capability);
    }
    sets.effective &= KEPT;
    sets.permitted &= KEPT;
    sets.inheritable = CapabilitySet::empty();
    let _ = set_capabilities(None, sets);
}
