//! What the recorder may do is made less when its programs run, for whoever finds a hole in it.
//!
//! What stays is for snapshots of other users' processes (and what only root may read of their
//! programs), for programs that are attached later, and for files in folders of others.

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

/// What some kernels want for functions that are watched: not in effect but for that.
const RAISED: CapabilitySet = CapabilitySet::SYS_ADMIN;

/// Of this thread and those it starts. What cannot be given up stays: nothing depends on it.
pub(crate) fn privileges(will_watch: bool) {
    let _ = set_no_new_privs(true);
    let Ok(mut sets) = capabilities(None) else {
        return;
    };
    // First, because it needs one of those that go.
    for capability in CapabilitySet::all().difference(KEPT).iter() {
        let _ = remove_capability_from_bounding_set(capability);
    }
    sets.effective &= KEPT;
    sets.permitted &= if will_watch { KEPT | RAISED } else { KEPT };
    sets.inheritable &= KEPT;
    let _ = set_capabilities(None, sets);
}

/// With what may be raised for it, where it is not in effect anyway.
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
