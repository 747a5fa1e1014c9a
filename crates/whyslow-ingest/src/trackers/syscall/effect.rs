//! Effects of system calls on descriptors, files and mappings, by name.

use super::super::object::FdClass;

pub(super) const AT_FDCWD: i64 = -100;
pub(super) const EBADF: i64 = 9;
pub(super) const ENOENT: i64 = 2;
pub(super) const EINPROGRESS: i64 = 115;

pub(super) const O_CREAT: i64 = 0o100;
pub(super) const O_EXCL: i64 = 0o200;
pub(super) const O_DIRECTORY: i64 = 0o200_000;
/// Equals `SOCK_CLOEXEC`, `EFD_CLOEXEC` and relatives.
pub(super) const O_CLOEXEC: i64 = 0o2_000_000;
pub(super) const O_TMPFILE: i64 = 0o20_000_000;
pub(super) const CLONE_FILES: i64 = 0x400;
pub(super) const MAP_ANONYMOUS: i64 = 0x20;
pub(super) const RENAME_EXCHANGE: i64 = 2;
pub(super) const CLOSE_RANGE_UNSHARE: i64 = 2;
pub(super) const CLOSE_RANGE_CLOEXEC: i64 = 4;
pub(super) const F_SETFD: i64 = 2;
pub(super) const FIOCLEX: i64 = 0x5451;
pub(super) const FIONCLEX: i64 = 0x5450;
/// Succeeds only on terminals.
pub(super) const TCGETS: i64 = 0x5401;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Effect {
    /// Acts on the object of its path or descriptor without changing a table.
    Plain,
    Open,
    Creat,
    /// Creates a descriptor of an object without a file; `cloexec` is the flag for close-on-exec,
    /// −1 if it is the default.
    Fresh(Fresh),
    /// Like [`Effect::Fresh`] if called with descriptor −1; otherwise changes that descriptor.
    Signalfd,
    /// Creates a descriptor of an object named by the path argument, which is not a path.
    Memfd,
    MqOpen,
    OpenByHandle,
    PidfdGetfd,
    Socket,
    SocketPair,
    Accept,
    Connect,
    Bind,
    Getpeername,
    Getsockname,
    Pipe,
    Dup,
    Fcntl,
    Ioctl,
    Close,
    CloseRange,
    Unlink,
    Rename,
    Link,
    Symlink,
    /// mkdir, mknod.
    Make,
    Chdir,
    Chroot,
    Fchdir,
    Mmap,
    Munmap,
    Mremap,
    Unshare,
    /// Returns a second time, in the child, without an entry.
    Fork,
    Exec,
    /// Does not return.
    Exit,
    Sigreturn,
    SocketCall,
    RecvMsg,
    SendTo,
    RecvFrom,
    /// Mount and other calls whose path is not the object of an I/O.
    Unresolved,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Fresh {
    pub(super) class: FdClass,
    pub(super) name: &'static str,
    pub(super) origin: &'static str,
    pub(super) cloexec: i64,
}

fn fresh(class: FdClass, name: &'static str, origin: &'static str, cloexec: i64) -> Effect {
    Effect::Fresh(Fresh {
        class,
        name,
        origin,
        cloexec,
    })
}

pub(super) const SIGNALFD: Fresh = Fresh {
    class: FdClass::Signalfd,
    name: "anon_inode:[signalfd]",
    origin: "signalfd",
    cloexec: O_CLOEXEC,
};

impl Effect {
    /// Looks up a call by its name in the table of calls.
    pub(super) fn of(name: &str) -> Effect {
        use FdClass::{Anon, Epoll, Eventfd, Inotify, Timerfd};
        match name {
            "open" | "openat" | "openat2" | "open_tree" | "open_tree_attr" => Effect::Open,
            "creat" => Effect::Creat,
            "open_by_handle_at" => Effect::OpenByHandle,
            "memfd_create" => Effect::Memfd,
            "mq_open" => Effect::MqOpen,
            "memfd_secret" => fresh(FdClass::Memfd, "/memfd:secretmem", "memfd", O_CLOEXEC),
            "eventfd" | "eventfd2" => fresh(Eventfd, "anon_inode:[eventfd]", "eventfd", O_CLOEXEC),
            "epoll_create" | "epoll_create1" => {
                fresh(Epoll, "anon_inode:[eventpoll]", "epoll_create", O_CLOEXEC)
            }
            "timerfd_create" => fresh(Timerfd, "anon_inode:[timerfd]", "timerfd_create", O_CLOEXEC),
            "inotify_init" | "inotify_init1" => {
                fresh(Inotify, "anon_inode:inotify", "inotify_init", O_CLOEXEC)
            }
            "fanotify_init" => fresh(Inotify, "anon_inode:[fanotify]", "fanotify_init", 1),
            "userfaultfd" => fresh(Anon, "anon_inode:[userfaultfd]", "userfaultfd", O_CLOEXEC),
            "perf_event_open" => fresh(Anon, "anon_inode:[perf_event]", "perf_event_open", 8),
            "pidfd_open" => fresh(Anon, "anon_inode:[pidfd]", "pidfd_open", -1),
            "io_uring_setup" => fresh(Anon, "anon_inode:[io_uring]", "io_uring_setup", -1),
            "landlock_create_ruleset" => {
                fresh(Anon, "anon_inode:[landlock-ruleset]", "landlock", -1)
            }
            "fsopen" | "fspick" => fresh(Anon, "anon_inode:[fscontext]", "fsopen", 1),
            "fsmount" => fresh(Anon, "anon_inode:[mount]", "fsmount", 1),
            "signalfd" | "signalfd4" => Effect::Signalfd,
            "pidfd_getfd" => Effect::PidfdGetfd,
            "socket" => Effect::Socket,
            "socketpair" => Effect::SocketPair,
            "accept" | "accept4" => Effect::Accept,
            "connect" => Effect::Connect,
            "bind" => Effect::Bind,
            "getpeername" => Effect::Getpeername,
            "getsockname" => Effect::Getsockname,
            "pipe" | "pipe2" => Effect::Pipe,
            "dup" | "dup2" | "dup3" => Effect::Dup,
            "fcntl" => Effect::Fcntl,
            "ioctl" => Effect::Ioctl,
            "close" => Effect::Close,
            "close_range" => Effect::CloseRange,
            "unlink" | "unlinkat" | "rmdir" => Effect::Unlink,
            "rename" | "renameat" | "renameat2" => Effect::Rename,
            "link" | "linkat" => Effect::Link,
            "symlink" | "symlinkat" => Effect::Symlink,
            "mkdir" | "mkdirat" | "mknod" | "mknodat" => Effect::Make,
            "chdir" => Effect::Chdir,
            "fchdir" => Effect::Fchdir,
            "chroot" => Effect::Chroot,
            "mmap" | "mmap2" => Effect::Mmap,
            "munmap" => Effect::Munmap,
            "mremap" => Effect::Mremap,
            "unshare" => Effect::Unshare,
            "clone" | "clone3" | "fork" | "vfork" => Effect::Fork,
            "execve" | "execveat" => Effect::Exec,
            "exit" | "exit_group" => Effect::Exit,
            "rt_sigreturn" | "sigreturn" => Effect::Sigreturn,
            "socketcall" => Effect::SocketCall,
            "recvmsg" | "recvmmsg" => Effect::RecvMsg,
            "sendto" => Effect::SendTo,
            "recvfrom" => Effect::RecvFrom,
            "mount" | "umount2" | "move_mount" | "pivot_root" | "quotactl" => Effect::Unresolved,
            _ => Effect::Plain,
        }
    }
}

/// Class of a descriptor, as implied by a successful call on it.
pub(super) fn implied_class(name: &str) -> Option<FdClass> {
    match name {
        "getdents" | "getdents64" | "fchdir" => Some(FdClass::Directory),
        "recv" | "recvfrom" | "recvmsg" | "recvmmsg" | "send" | "sendto" | "sendmsg"
        | "sendmmsg" | "listen" | "shutdown" | "getsockopt" | "setsockopt" | "getsockname"
        | "getpeername" | "bind" | "connect" | "accept" | "accept4" => Some(FdClass::Socket),
        "epoll_wait" | "epoll_pwait" | "epoll_pwait2" | "epoll_ctl" => Some(FdClass::Epoll),
        "timerfd_settime" | "timerfd_gettime" => Some(FdClass::Timerfd),
        "inotify_add_watch" | "inotify_rm_watch" => Some(FdClass::Inotify),
        "ftruncate" | "fallocate" => Some(FdClass::File),
        _ => None,
    }
}
