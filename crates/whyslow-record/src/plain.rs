//! Opens files of other users, only regular ones: opening a device may have side effects, and a
//! pipe may block.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd as _};
use std::path::Path;

use rustix::fs::{FileType, Mode, OFlags, ResolveFlags, Stat};
use rustix::io::Errno;

/// Reopens a descriptor opened with O_PATH; returns its metadata as well.
pub(crate) fn open(place: impl AsFd) -> Result<(File, Stat), Errno> {
    let about = rustix::fs::fstat(&place)?;
    if !FileType::from_raw_mode(about.st_mode).is_file() {
        return Err(Errno::INVAL);
    }
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let again = format!("/proc/self/fd/{}", place.as_fd().as_raw_fd());
    let file = rustix::fs::open(again, flags, Mode::empty())?;
    Ok((File::from(file), about))
}

/// The file at a path within a root; every symbolic link is resolved there.
pub(crate) fn open_within(root: impl AsFd, path: &Path) -> Result<(File, Stat), Errno> {
    let resolve = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    open(rustix::fs::openat2(
        root,
        path,
        flags,
        Mode::empty(),
        resolve,
    )?)
}

/// The file that a process has mapped at a range, as named in `/proc/PID/map_files`; an error if it
/// is no longer mapped.
pub(crate) fn open_mapped(pid: i32, range: &str) -> io::Result<File> {
    let place = format!("/proc/{pid}/map_files/{range}");
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let place = rustix::fs::open(place, flags, Mode::empty())?;
    Ok(open(place)?.0)
}
