//! What system calls, process events and snapshots do to descriptors, as far as it affects
//! requests.

use whyslow_model::syscall::{self, Abi};

use crate::raw::Raw;

/// Upper limit of system call numbers.
const CALLS_MAX: usize = 512;
/// Local sockets on which nothing is a request: logs of services, broadcast messages, desktop
/// programs.
const ONE_WAY: &[&str] = &[
    "/run/systemd/",
    "/run/dbus/",
    "/var/run/dbus/",
    "/run/udev/",
    "/run/user/",
    "/tmp/.X11-unix/",
    "@/tmp/.X11-unix/",
    "/tmp/.ICE-unix/",
    "@/tmp/.ICE-unix/",
];

/// Effect of a successful call on descriptors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Class {
    #[default]
    Nothing,
    Listen,
    Accept,
    Read,
    Write,
    Close,
    CloseRange,
    Dup,
    Control,
    /// Writes to the first argument, from a file.
    SendFile,
    /// Reads from the first argument, writes to the third.
    Splice,
    /// Returns a descriptor of another type.
    Other,
}

const CLASSES: &[(Class, &[&str])] = &[
    (Class::Listen, &["listen"]),
    (Class::Accept, &["accept", "accept4"]),
    (
        Class::Read,
        &[
            "read",
            "readv",
            "recv",
            "recvfrom",
            "recvmsg",
            "recvmmsg",
            "recvmmsg_time64",
        ],
    ),
    (
        Class::Write,
        &["write", "writev", "send", "sendto", "sendmsg", "sendmmsg"],
    ),
    (Class::Close, &["close"]),
    (Class::CloseRange, &["close_range"]),
    (Class::Dup, &["dup", "dup2", "dup3"]),
    (Class::Control, &["fcntl", "fcntl64"]),
    (Class::SendFile, &["sendfile", "sendfile64"]),
    (Class::Splice, &["splice"]),
    (
        Class::Other,
        &[
            "open",
            "openat",
            "openat2",
            "creat",
            "socket",
            "eventfd",
            "eventfd2",
            "timerfd_create",
            "epoll_create",
            "epoll_create1",
            "memfd_create",
            "signalfd4",
            "inotify_init1",
        ],
    ),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum What {
    Accepted {
        listener: i32,
    },
    /// A snapshot lists a connection, with the inode number of its socket …
    Open {
        number: u64,
    },
    /// … or a listener whose connections do not count.
    OneWay,
    Read,
    Wrote,
    Closed,
    ClosedTo {
        last: i32,
    },
    Copied {
        to: i32,
    },
    Forked {
        child: i32,
    },
    Began,
    Ended,
}

/// An operation on a descriptor, to be processed in time order.
#[derive(Debug, Clone, Copy)]
pub(super) struct SocketOp {
    pub(super) ts: u64,
    pub(super) pid: i32,
    pub(super) tid: i32,
    pub(super) fd: i32,
    pub(super) what: What,
}

impl SocketOp {
    pub(super) fn of(raw: Raw<'_>, fd: i32, what: What) -> Self {
        // Another thread may get the same number as soon as the kernel starts to close it.
        let is_close = matches!(what, What::Closed | What::ClosedTo { .. });
        Self {
            ts: if is_close { raw.entered() } else { raw.ts() },
            pid: raw.pid(),
            tid: raw.tid(),
            fd,
            what,
        }
    }
}

/// Classes of calls by number, for the native and the 32-bit table.
#[derive(Debug)]
pub(super) struct Classes([Vec<Class>; 2]);

impl Classes {
    pub(super) fn new(abi: Abi) -> Self {
        Self([abi, abi.compat()].map(|abi| {
            let mut classes = vec![Class::Nothing; CALLS_MAX];
            for (class, names) in CLASSES {
                for name in *names {
                    let nr = syscall::number_of(abi, name).unwrap_or(-1);
                    let place = usize::try_from(nr).ok();
                    if let Some(place) = place.and_then(|nr| classes.get_mut(nr)) {
                        *place = *class;
                    }
                }
            }
            classes
        }))
    }

    #[inline]
    pub(super) fn of(&self, raw: Raw<'_>, is_compat: bool) -> Class {
        let class = self.0[usize::from(is_compat)].get(raw.u32(16) as usize);
        class.copied().unwrap_or_default()
    }
}

/// Effects of a returned call of the class; two if it moved data.
pub(super) fn of_call(class: Class, raw: Raw<'_>) -> [Option<SocketOp>; 2] {
    let ret = raw.u64(8) as i64;
    let [first, second, third] = [24, 32, 40].map(|at| raw.u64(at) as i32);
    let new = i32::try_from(ret).unwrap_or(-1);
    let one = |fd, what| [Some(SocketOp::of(raw, fd, what)), None];
    match class {
        // The number is free even if the call failed; descriptors that were not open are not
        // tracked.
        Class::Close => one(first, What::Closed),
        _ if ret < 0 => [None; 2],
        Class::Accept => one(new, What::Accepted { listener: first }),
        Class::Read if ret > 0 => one(first, What::Read),
        Class::Write | Class::SendFile if ret > 0 => one(first, What::Wrote),
        Class::Splice if ret > 0 => [
            Some(SocketOp::of(raw, first, What::Read)),
            Some(SocketOp::of(raw, third, What::Wrote)),
        ],
        // With flags it takes effect at exec.
        Class::CloseRange if third == 0 => {
            // The argument is unsigned: a negative value is the maximum.
            let last = if second < 0 { i32::MAX } else { second };
            one(first, What::ClosedTo { last })
        }
        Class::Dup => one(first, What::Copied { to: new }),
        Class::Control if syscall::FCNTL_DUP.contains(&i64::from(second)) => {
            one(first, What::Copied { to: new })
        }
        Class::Other => one(new, What::Closed),
        _ => [None; 2],
    }
}

/// What a snapshot records about a socket descriptor (`snapshot/sockets.rs`), and the inode number
/// of the socket. Of a listener only whether its connections do not count.
pub(super) fn from_snapshot(path: &[u8]) -> Option<(Option<What>, u64)> {
    let path = std::str::from_utf8(path).ok()?;
    let (number, about) = path.strip_prefix("socket:[")?.split_once("] ")?;
    let number = number.parse().ok().filter(|number| *number > 0)?;
    let (family, about) = about.split_once(' ')?;
    let (role, name) = about.split_once(' ')?;
    let is_one_way = family == "unix" && ONE_WAY.iter().any(|place| name.starts_with(place));
    let what = match role {
        "listen" if is_one_way => Some(What::OneWay),
        "listen" => None,
        "accepted" if is_one_way => return None,
        "accepted" => Some(What::Open { number }),
        _ => return None,
    };
    Some((what, number))
}
