//! Objects of descriptors and paths: their classes, and why some are unknown.

use whyslow_model::event::SocketAddress;
use whyslow_model::{Sym, Symbols};

use super::socket::SocketText;

/// Class of an object; its name is the `fd_class` column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum FdClass {
    File,
    Directory,
    Pipe,
    Unix,
    Inet,
    Inet6,
    Netlink,
    Socket,
    Eventfd,
    Epoll,
    Timerfd,
    Signalfd,
    Inotify,
    Memfd,
    Tty,
    Proc,
    Sys,
    Dev,
    Block,
    Anon,
    Unknown,
}

impl FdClass {
    pub(super) fn name(self) -> &'static str {
        match self {
            FdClass::File => "file",
            FdClass::Directory => "directory",
            FdClass::Pipe => "pipe",
            FdClass::Unix => "unix",
            FdClass::Inet => "inet",
            FdClass::Inet6 => "inet6",
            FdClass::Netlink => "netlink",
            FdClass::Socket => "socket",
            FdClass::Eventfd => "eventfd",
            FdClass::Epoll => "epoll",
            FdClass::Timerfd => "timerfd",
            FdClass::Signalfd => "signalfd",
            FdClass::Inotify => "inotify",
            FdClass::Memfd => "memfd",
            FdClass::Tty => "tty",
            FdClass::Proc => "proc",
            FdClass::Sys => "sys",
            FdClass::Dev => "dev",
            FdClass::Block => "block",
            FdClass::Anon => "anon",
            FdClass::Unknown => "unknown",
        }
    }

    /// Whether it is part of a file system, under a path that others can use, too.
    pub(super) fn has_file(self) -> bool {
        matches!(
            self,
            FdClass::File
                | FdClass::Directory
                | FdClass::Tty
                | FdClass::Proc
                | FdClass::Sys
                | FdClass::Dev
                | FdClass::Block
        )
    }

    pub(super) fn is_socket(self) -> bool {
        matches!(
            self,
            FdClass::Unix | FdClass::Inet | FdClass::Inet6 | FdClass::Netlink | FdClass::Socket
        )
    }

    /// By address family (`AF_*`).
    pub(super) fn of_family(family: i32) -> FdClass {
        match family {
            1 => FdClass::Unix,
            2 => FdClass::Inet,
            10 => FdClass::Inet6,
            16 => FdClass::Netlink,
            _ => FdClass::Socket,
        }
    }

    /// Class of the object at a path. Mount points can be anywhere; these are the usual ones.
    /// Everything else is assumed to be a file until proven otherwise.
    pub(super) fn of_path(path: &str) -> FdClass {
        let below = |root: &str| {
            path.strip_prefix(root)
                .filter(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        if below("/proc").is_some() {
            FdClass::Proc
        } else if below("/sys").is_some() {
            FdClass::Sys
        } else if let Some(name) = below("/dev") {
            of_device(name.trim_start_matches('/'))
        } else {
            FdClass::File
        }
    }
}

fn of_device(name: &str) -> FdClass {
    const TTYS: [&str; 5] = ["tty", "pts", "ptmx", "console", "hvc"];
    const DISKS: [&str; 14] = [
        "sd", "vd", "xvd", "hd", "sr", "nvme", "mmcblk", "loop", "dm-", "md", "mapper/", "disk/",
        "zram", "nbd",
    ];
    let begins = |names: &[&str]| names.iter().any(|prefix| name.starts_with(prefix));
    if begins(&TTYS) {
        FdClass::Tty
    } else if name.is_empty() {
        FdClass::Directory
    } else if name.starts_with("shm/") {
        FdClass::File // tmpfs
    } else if begins(&DISKS) {
        FdClass::Block
    } else {
        FdClass::Dev
    }
}

/// Why an object is unknown; its text is the `unknown_reason` column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reason {
    BeforeRecording,
    Passed,
    Lost,
    EntryLost,
    ThreadUnknown,
    PathUnread,
    DirectoryUnknown,
    OtherProcess,
    ByHandle,
    NotSeen,
}

impl Reason {
    pub(super) fn name(self) -> &'static str {
        match self {
            Reason::BeforeRecording => "opened before the recording",
            Reason::Passed => "possibly passed over a socket",
            Reason::Lost => "lost events",
            Reason::EntryLost => "entry not recorded",
            Reason::ThreadUnknown => "thread unknown",
            Reason::PathUnread => "path not recorded",
            Reason::DirectoryUnknown => "relative to an unknown directory",
            Reason::OtherProcess => "taken from another process",
            Reason::ByHandle => "opened by handle",
            Reason::NotSeen => "opening not seen",
        }
    }
}

/// An object, as far as it is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Object {
    pub(super) class: FdClass,
    pub(super) path: Option<Sym>,
    pub(super) reason: Option<Reason>,
}

impl Object {
    pub(super) fn known(class: FdClass, path: Sym) -> Self {
        Self {
            class,
            path: Some(path),
            reason: None,
        }
    }

    pub(super) fn unknown(reason: Reason) -> Self {
        Self {
            class: FdClass::Unknown,
            path: None,
            reason: Some(reason),
        }
    }

    /// Parses the text used by `/proc/PID/fd` and state dumps. Also returns whether the file was
    /// unlinked.
    pub(super) fn of_link(text: &[u8], symbols: &mut Symbols) -> (Self, bool) {
        let text = String::from_utf8_lossy(text);
        let (path, deleted) = match text.strip_suffix(" (deleted)") {
            Some(path) => (path, true),
            None => (&*text, false),
        };
        if path.is_empty() {
            return (Self::unknown(Reason::PathUnread), deleted);
        }
        if let Some(socket) = SocketText::parse(path) {
            return (socket.object(symbols), false);
        }
        let class = class_of_link(path);
        let deleted = deleted && class.has_file();
        (Self::known(class, symbols.intern(path)), deleted)
    }

    /// An endpoint. A family alone defines the class, without a name.
    pub(super) fn of_address(address: &SocketAddress<'_>, symbols: &mut Symbols) -> Self {
        let (class, text) = match *address {
            SocketAddress::Inet { address, port } => {
                let ip = std::net::Ipv4Addr::from(address);
                (FdClass::Inet, format!("{ip}:{port}"))
            }
            SocketAddress::Inet6 { address, port } => {
                let ip = std::net::Ipv6Addr::from(address);
                (FdClass::Inet6, format!("[{ip}]:{port}"))
            }
            // A name that starts with a zero byte is abstract: shown like in ss(8).
            SocketAddress::Unix {
                path: [0, name @ ..],
            } => (FdClass::Unix, format!("@{}", String::from_utf8_lossy(name))),
            SocketAddress::Unix { path } if !path.is_empty() => {
                (FdClass::Unix, String::from_utf8_lossy(path).into_owned())
            }
            SocketAddress::Unix { .. } => return Self::of_socket(FdClass::Unix, symbols),
            SocketAddress::Family(family) => {
                return Self::of_socket(FdClass::of_family(family), symbols);
            }
        };
        Self::known(class, symbols.intern(&text))
    }

    /// A socket without an address.
    pub(super) fn of_socket(class: FdClass, symbols: &mut Symbols) -> Self {
        let text = match class {
            FdClass::Unix => "socket:unix",
            FdClass::Inet => "socket:inet",
            FdClass::Inet6 => "socket:inet6",
            FdClass::Netlink => "socket:netlink",
            _ => "socket",
        };
        Self::known(class, symbols.intern_static(text))
    }
}

fn class_of_link(path: &str) -> FdClass {
    match path {
        _ if path.starts_with("socket:") => FdClass::Socket,
        _ if path.starts_with("pipe:") => FdClass::Pipe,
        _ if path.starts_with("/memfd:") => FdClass::Memfd,
        "anon_inode:[eventfd]" => FdClass::Eventfd,
        "anon_inode:[eventpoll]" => FdClass::Epoll,
        "anon_inode:[timerfd]" => FdClass::Timerfd,
        "anon_inode:[signalfd]" => FdClass::Signalfd,
        "inotify" | "anon_inode:inotify" | "anon_inode:[inotify]" => FdClass::Inotify,
        // Texts without a path: `anon_inode:[…]`, `[eventfd]` of older tracers, `net:[…]`.
        _ if !path.starts_with('/') => match path.trim_matches(['[', ']']) {
            "eventfd" => FdClass::Eventfd,
            "eventpoll" => FdClass::Epoll,
            "timerfd" => FdClass::Timerfd,
            "signalfd" => FdClass::Signalfd,
            _ => FdClass::Anon,
        },
        _ => FdClass::of_path(path),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_have_the_class_of_their_place() {
        let check = |path, class| assert_eq!(FdClass::of_path(path), class, "{path}");
        check("/etc/passwd", FdClass::File);
        check("/process/x", FdClass::File);
        check("/proc/self/maps", FdClass::Proc);
        check("/sys/class", FdClass::Sys);
        check("/dev/pts/3", FdClass::Tty);
        check("/dev/null", FdClass::Dev);
        check("/dev/nvme0n1p1", FdClass::Block);
        check("/dev/shm/sem.a", FdClass::File);
        check("relative", FdClass::File);
    }

    #[test]
    fn links_of_the_state_dump_tell_class_name_and_deletion() {
        let mut symbols = Symbols::new();
        let mut check = |text: &str, class, path: &str, deleted| {
            let (object, gone) = Object::of_link(text.as_bytes(), &mut symbols);
            let got = (object.class, symbols.get(object.path.unwrap()), gone);
            assert_eq!(got, (class, path, deleted));
        };
        check("/tmp/x (deleted)", FdClass::File, "/tmp/x", true);
        check("/memfd:a (deleted)", FdClass::Memfd, "/memfd:a", false);
        check("socket:[12]", FdClass::Socket, "socket:[12]", false);
        check(
            "anon_inode:[eventpoll]",
            FdClass::Epoll,
            "anon_inode:[eventpoll]",
            false,
        );
        check("[timerfd]", FdClass::Timerfd, "[timerfd]", false);
        check("/dev/pts/0", FdClass::Tty, "/dev/pts/0", false);
    }

    #[test]
    fn addresses_are_written_as_they_are_typed() {
        let mut symbols = Symbols::new();
        let mut check = |address, class, text: &str| {
            let object = Object::of_address(&address, &mut symbols);
            assert_eq!(
                (object.class, symbols.get(object.path.unwrap())),
                (class, text)
            );
        };
        let mut loopback = [0; 16];
        loopback[15] = 1;
        let (address, port) = ([10, 0, 0, 1], 80);
        check(
            SocketAddress::Inet { address, port },
            FdClass::Inet,
            "10.0.0.1:80",
        );
        let address = loopback;
        check(
            SocketAddress::Inet6 { address, port },
            FdClass::Inet6,
            "[::1]:80",
        );
        check(
            SocketAddress::Unix { path: b"/run/x" },
            FdClass::Unix,
            "/run/x",
        );
        check(
            SocketAddress::Unix { path: b"\0bus" },
            FdClass::Unix,
            "@bus",
        );
        check(
            SocketAddress::Family(16),
            FdClass::Netlink,
            "socket:netlink",
        );
    }
}
