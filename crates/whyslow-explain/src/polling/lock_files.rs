//! Lock files: a program that creates a file which must not exist holds the lock until it removes it.
//!
//! `git` (`index.lock`), mail programs and package managers lock like this, and so do scripts with
//! `mkdir`. Others are refused with EEXIST, sleep and try again.

use crate::report::Grade;
use crate::window_slice::{Call, Utid, WindowSlice};

pub(crate) const EEXIST: i32 = 17;
/// Calls that create the file that their path names.
pub(crate) const CREATES: [&str; 5] = ["open", "openat", "openat2", "mkdir", "mkdirat"];
const O_CREAT: i64 = 0o100;
const O_EXCL: i64 = 0o200;

/// The thread that created the lock file because of which `refused` was refused: the last one before.
pub(super) fn creator(slice: &WindowSlice, refused: &Call) -> Option<(Utid, Grade)> {
    let path = refused.path.filter(|_| refused.errno == Some(EEXIST))?;
    let creations = slice.creations(path);
    let before = creations.take_while(|call| call.begin < refused.end);
    let done = before.filter(|call| call.errno.is_none() && !call.is_open);
    let last = done.filter(|call| may_create(slice, call)).last()?;
    if last.utid == refused.utid {
        return None;
    }
    let is_sure = is_exclusive(slice, last) && !slice.is_lossy(None, (last.begin, refused.end));
    Some((last.utid, if is_sure { Grade::B } else { Grade::C }))
}

fn may_create(slice: &WindowSlice, call: &Call) -> bool {
    let flags = call.flags.unwrap_or(O_CREAT);
    !slice.text(call.name).starts_with("open") || flags & O_CREAT != 0
}

/// Whether a call that returned has created its file.
fn is_exclusive(slice: &WindowSlice, call: &Call) -> bool {
    let flags = call.flags.unwrap_or(0);
    !slice.text(call.name).starts_with("open") || flags & O_EXCL != 0
}
