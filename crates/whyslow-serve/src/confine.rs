//! What the server may do is made less before it reads anything: whoever finds a hole in it, or in what
//! reads a hostile recording, finds no other file behind it, and no network.

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use rustix::thread::{
    CapabilitySet, capabilities, remove_capability_from_bounding_set, set_capabilities,
};
use whyslow_base::failure::Failure;
use whyslow_sources::confine::{self, Confined};

use crate::folders::Folders;

/// Of root: recordings of others can be read, where they were named.
const KEPT: CapabilitySet = CapabilitySet::DAC_READ_SEARCH;
const MANIFEST: &str = "manifest.json";
/// Within a recording, for what is made from it.
const DERIVED: &str = "derived";

/// Confines this thread and those it starts, to these recordings and traces, the program that answers in
/// SQL, the folder of what is live, and the user's folders. Whether the kernel does it.
pub(crate) fn to(
    recordings: &[PathBuf],
    (program, room): (Option<&Path>, Option<&Path>),
    folders: &Folders,
) -> Result<bool, Failure> {
    let mut readable = recordings.to_vec();
    // What asks in SQL is this program again, and then looks at itself. Of other processes the kernel
    // shows no memory, environment or files to who is confined.
    readable.extend(std::env::current_exe().ok());
    readable.push(PathBuf::from("/proc"));
    if let Some(program) = program {
        readable.push(program.to_path_buf());
        readable.extend(std::fs::canonicalize(program).ok());
    }
    let folders = [folders.cache.as_deref(), folders.state.as_deref(), room];
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
        // A recording that cannot be written needs no place for what is made from it.
        let _ = builder.recursive(true).mode(0o700).create(folder);
    }
    let confined = confine::to_paths(&readable, &changeable)?;
    drop_capabilities();
    Ok(confined == Confined::Yes)
}

/// Confines this thread, which imports what a recorder wrote into a folder.
pub(crate) fn to_room(room: &Path) {
    // What the kernel cannot do it does not do for the server either, which tells.
    let _ = confine::to_paths(&[PathBuf::from("/proc")], &[room.to_path_buf()]);
    drop_capabilities();
}

/// What cannot be given up stays: nothing depends on it.
fn drop_capabilities() {
    let Ok(mut sets) = capabilities(None) else {
        return;
    };
    // First, because it needs one of those that go.
    for capability in CapabilitySet::all().difference(KEPT).iter() {
        let _ = remove_capability_from_bounding_set(capability);
    }
    sets.effective &= KEPT;
    sets.permitted &= KEPT;
    sets.inheritable = CapabilitySet::empty();
    let _ = set_capabilities(None, sets);
}
