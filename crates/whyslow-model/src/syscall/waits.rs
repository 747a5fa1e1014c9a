//! Waits for work: calls that last until another thread, a peer or a timer has something for the
//! thread to do. Their duration shows how long there was nothing to do, not how slow anything was.
//!
//! Calls that do something for their caller are not among them, however long they block: fsync,
//! flock, connect, writes to a full pipe or socket, reads of files and devices, and `io_getevents`
//! and `io_uring_enter`, which end with a request of the caller.

use super::{Op, call};

/// Calls that wait for work, whatever they operate on.
const CALLS: [&str; 32] = [
    "accept",
    "accept4",
    "poll",
    "ppoll",
    "select",
    "pselect6",
    "epoll_wait",
    "epoll_wait_old",
    "epoll_pwait",
    "epoll_pwait2",
    "recv",
    "recvfrom",
    "recvmsg",
    "recvmmsg",
    "msgrcv",
    "mq_timedreceive",
    "semop",
    "semtimedop",
    "futex",
    "futex_wait",
    "futex_waitv",
    "nanosleep",
    "clock_nanosleep",
    "pause",
    "rt_sigtimedwait",
    "rt_sigsuspend",
    "sigsuspend",
    "wait4",
    "waitid",
    "waitpid",
    // The caller waits for the child.
    "vfork",
    // Continues one of the above.
    "restart_syscall",
];

/// Classes of objects that another process, a peer or a timer fills (column `fd_class`).
const FILLED_BY_OTHERS: [&str; 12] = [
    "pipe", "unix", "inet", "inet6", "netlink", "socket", "eventfd", "epoll", "timerfd",
    "signalfd", "inotify", "tty",
];

/// Whether calls of this name wait for work, whatever they operate on.
pub fn is_wait(name: &str) -> bool {
    let plain = match call(name).name {
        "" => name,
        plain => plain,
    };
    CALLS.contains(&plain)
}

/// Whether calls of this name read an object: they wait for work if others fill it.
pub fn is_read(name: &str) -> bool {
    matches!(call(name).op, Op::Read | Op::ReadWrite)
}

/// Whether another process, a peer or a timer fills objects of this class.
pub fn is_filled_by_others(class: &str) -> bool {
    FILLED_BY_OTHERS.contains(&class)
}

/// Whether a device (class `dev`) is filled by others. What the names of standard streams refer to
/// is not known; usually it is a pipe (of make or cargo, for example).
pub fn is_filled_device(path: &str) -> bool {
    path == "/dev/fuse" || path.starts_with("/dev/fd/") || path.starts_with("/dev/std")
}

/// Whether others fill the object with this class and path.
pub fn is_filled(class: Option<&str>, path: Option<&str>) -> bool {
    class.is_some_and(|class| {
        is_filled_by_others(class) || (class == "dev" && path.is_some_and(is_filled_device))
    })
}

/// Whether a call waits for work: by its name and the class and path of its object.
pub fn waits_for_work(name: &str, class: Option<&str>, path: Option<&str>) -> bool {
    is_wait(name) || (is_read(name) && is_filled(class, path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_that_end_when_there_is_work() {
        for name in [
            "accept4",
            "epoll_wait",
            "_newselect",
            "ppoll_time64",
            "futex",
            "futex_time64",
            "clock_nanosleep",
            "recvfrom",
            "waitid",
            "restart_syscall",
        ] {
            assert!(waits_for_work(name, None, None), "{name}");
        }
    }

    #[test]
    fn calls_that_work_for_their_caller() {
        for name in [
            "fsync",
            "flock",
            "connect",
            "io_getevents",
            "io_uring_enter",
            "openat",
            "sendto",
            "read",
            "unknown_call",
        ] {
            assert!(!waits_for_work(name, None, None), "{name}");
        }
        assert!(!waits_for_work("write", Some("pipe"), None));
        assert!(!waits_for_work("sendmsg", Some("unix"), None));
        assert!(!waits_for_work("connect", Some("inet"), None));
    }

    #[test]
    fn reads_wait_for_work_if_others_fill_the_object() {
        for class in [
            "pipe", "tty", "inet", "eventfd", "timerfd", "inotify", "netlink",
        ] {
            assert!(waits_for_work("read", Some(class), None), "{class}");
            assert!(waits_for_work("readv", Some(class), None), "{class}");
        }
        for class in ["file", "block", "proc", "dev", "unknown"] {
            assert!(
                !waits_for_work("read", Some(class), Some("/dev/sda")),
                "{class}"
            );
        }
        assert!(waits_for_work("read", Some("dev"), Some("/dev/fuse")));
        assert!(!waits_for_work("write", Some("dev"), Some("/dev/fuse")));
    }
}
