//! Threads that the freezer of their cgroup holds, and writers of a frozen file system.
//!
//! A frozen thread sleeps in the kernel until its cgroup is thawed, whatever call it was in. The
//! culprit is the thread that wrote to the file which froze the cgroup.
//!
//! Writers of a file system that is frozen for a snapshot wait until it is thawed, by another
//! process than the one that froze it.

use whyslow_model::Ns;

use crate::blame_target::{BlameTarget, Object, Proof, Reason};
use crate::classify::stack_has;
use crate::report::Grade;
use crate::window_slice::{Call, Segment, WindowSlice};

/// Threads of a cgroup stop at most this long after the write to its file.
const STOPS_NS: Ns = 50_000_000;

/// Commands of `ioctl` that freeze and thaw a file system.
pub(crate) const FIFREEZE: i64 = 0xc004_5877;
pub(crate) const FITHAW: i64 = 0xc004_5878;
/// Functions of the lock that writers of a file system share, and its freezing takes exclusively.
const FREEZE_LOCK: [&str; 3] = [
    "percpu_rwsem_wait",
    "__percpu_down_read",
    "percpu_down_read",
];

/// The reason of a sleep in the freezer.
pub(crate) fn frozen(slice: &WindowSlice, sleep: &Segment) -> Reason {
    let before = slice.freezes().filter(|call| call.begin <= sleep.begin);
    let cgroup = slice.thread_table.cgroup(sleep.utid);
    let is_of_it = |call: &&Call| {
        call.path
            .is_some_and(|path| holds(slice.text(path), cgroup))
    };
    let calls: Vec<&Call> = before.collect();
    let own = calls.iter().copied().rfind(is_of_it);
    // The cgroup of the thread is not known, or it was moved.
    let last = calls
        .last()
        .copied()
        .filter(|call| sleep.begin - call.begin <= STOPS_NS);
    let (call, grade) = match (own, last) {
        (Some(own), _) => (own, Grade::A),
        (None, Some(last)) => (last, Grade::B),
        (None, None) => {
            // The thread that thaws a cgroup is usually the one that froze it.
            let waker = sleep.waker.map(BlameTarget::Thread);
            let target = waker.unwrap_or(BlameTarget::Unknown);
            return Reason::new("frozen", target, Grade::B);
        }
    };
    Reason::new("frozen", BlameTarget::Thread(call.utid), grade)
        .about(call.path.map(Object::File))
        .by(Proof::Call(call.id))
}

/// The reason of a wait for a file system to be thawed: the thread that froze it.
pub(crate) fn file_system(slice: &WindowSlice, sleep: &Segment) -> Option<Reason> {
    if !stack_has(slice, sleep.utid, (sleep.begin, sleep.end), &FREEZE_LOCK) {
        return None;
    }
    let waiting = slice.call_at(sleep.utid, sleep.begin)?;
    let path = waiting.path.map(|path| slice.text(path));
    let is_above = |folder: &str| {
        path.is_some_and(|path| {
            let rest = path.strip_prefix(folder.trim_end_matches('/'));
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        })
    };
    let (mut own, mut any) = (None, None);
    for call in slice.fs_freezes().filter(|call| call.begin <= sleep.begin) {
        let is_ok = call.errno.is_none();
        let freezes = call.flags == Some(FIFREEZE) && is_ok;
        let thaws = call.flags == Some(FITHAW) && is_ok;
        let folder = call.path.map_or("", |path| slice.text(path));
        if freezes {
            any = Some(call);
        } else if thaws {
            any = None;
        }
        if is_above(folder) {
            own = if freezes {
                Some(call)
            } else {
                own.filter(|_| !thaws)
            };
        }
    }
    let found = own.map(|call| (call, Grade::A));
    let (call, grade) = found.or_else(|| Some((any.filter(|_| path.is_none())?, Grade::B)))?;
    let reason = Reason::new("fs_frozen", BlameTarget::Thread(call.utid), grade);
    Some(
        reason
            .about(call.path.map(Object::File))
            .by(Proof::Call(call.id)),
    )
}

/// Whether a file of the freezer is that of a cgroup or of one above it: the file in
/// `/sys/fs/cgroup/a/b` freezes `/a/b/c`, too.
fn holds(file: &str, cgroup: &str) -> bool {
    let folder = file.rsplit_once('/').map_or("", |(folder, _)| folder);
    let Some(below) = folder.strip_prefix("/sys/fs/cgroup") else {
        return false;
    };
    let is_above = |above: &str| {
        let rest = cgroup.strip_prefix(above).filter(|_| above.len() > 1);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    let of_v1 = below.strip_prefix("/freezer");
    is_above(below) || of_v1.is_some_and(is_above)
}

#[cfg(test)]
mod tests {
    use super::holds;

    #[test]
    fn a_cgroup_is_frozen_with_those_above_it() {
        let file = "/sys/fs/cgroup/shop/web/cgroup.freeze";
        for cgroup in ["/shop/web", "/shop/web/worker", "/shop/web/"] {
            assert!(holds(file, cgroup), "{cgroup}");
        }
        for cgroup in ["/shop/db", "/shop/web2", "/web", "/", "", "/shop"] {
            assert!(!holds(file, cgroup), "{cgroup}");
        }
        assert!(holds("/sys/fs/cgroup/freezer/a/freezer.state", "/a"));
        assert!(!holds("cgroup.freeze", "/a"));
    }
}
