//! Drops privileges once the programs run, to limit the damage of a vulnerability in the recorder.
//!
//! The remaining ones serve snapshots of other users' processes (and of binaries that only root can
//! read), programs that are attached later, and files in other users' directories.

use rustix::thread::{
    CapabilitySet, capabilities, remove_capability_from_bounding_set, set_capabilities,
    set_no_new_privs,
};

const KEPT: CapabilitySet = CapabilitySet::BPF
    .union(CapabilitySet::PERFMON)
    .union(CapabilitySet::SYSLOG)
    .union(CapabilitySet::SYS_PTRACE)
    .union(CapabilitySet::CHECKPOINT_RESTORE)
    .union(CapabilitySet::DAC_READ_SEARCH)
    .union(CapabilitySet::DAC_OVERRIDE);

/// Required by some kernels to attach uprobes; raised only for that.
const RAISED: CapabilitySet = CapabilitySet::SYS_ADMIN;

/// For this thread and the threads that it starts. Errors are ignored: nothing depends on the drop.
pub(crate) fn privileges(will_watch: bool) {
    let _ = set_no_new_privs(true);
    let Ok(mut sets) = capabilities(None) else {
        return;
    };
    // First, because it requires one of the capabilities that are dropped below.
    for capability in CapabilitySet::all().difference(KEPT).iter() {
        let _ = remove_capability_from_bounding_set(capability);
    }
    sets.effective &= KEPT;
    sets.permitted &= if will_watch { KEPT | RAISED } else { KEPT };
    sets.inheritable &= KEPT;
    let _ = set_capabilities(None, sets);
}

/// Runs `work` with the raised capability, if it is not in effect anyway.
pub(crate) fn raised<T>(work: impl FnOnce() -> T) -> T {
    let before = capabilities(None).ok();
    if let Some(mut sets) = before {
        sets.effective |= sets.permitted & RAISED;
        let _ = set_capabilities(None, sets);
    }
    let done = work();
    if let Some(before) = before {
        let _ = set_capabilities(None, before);
    }
    done
}
