//! Names of flags and commands of system calls, as in their manual pages.
//!
//! The meaning of the `flags` column depends on the call; calls that are not listed here show a
//! number. Four flags of `open` have other values on ARM than elsewhere. The machine is inferred
//! from the kernel release; if that is inconclusive, these four are shown as a number.

/// Numbering of the flags of `open` that differ between machines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Machine {
    X86,
    Arm,
    #[default]
    Unknown,
}

impl Machine {
    /// By kernel release: `6.1.0-50-amd64`. `generic` kernels are assumed to be x86.
    pub(crate) fn of_release(release: &str) -> Self {
        let has = |words: &[&str]| words.iter().any(|word| release.contains(word));
        if has(&["aarch64", "arm", "raspi", "-v7", "-v8"]) {
            Machine::Arm
        } else if has(&["amd64", "x86_64", "i686", "i386", "generic"]) {
            Machine::X86
        } else {
            Machine::Unknown
        }
    }
}

/// The `flags` column of a call as text.
pub(crate) fn shown(call: &str, flags: i64, machine: Machine) -> String {
    match call {
        "open" | "openat" | "mq_open" | "open_by_handle_at" => open(flags, machine),
        "pipe2" | "dup3" => bits(flags, &[(0o2_000_000, "O_CLOEXEC"), (0o4000, "O_NONBLOCK")]),
        "mmap" | "mmap2" => mmap(flags),
        "msync" => bits(
            flags,
            &[(1, "MS_ASYNC"), (2, "MS_INVALIDATE"), (4, "MS_SYNC")],
        ),
        "accept4" => bits(
            flags,
            &[(0o2_000_000, "SOCK_CLOEXEC"), (0o4000, "SOCK_NONBLOCK")],
        ),
        "eventfd2" => bits(
            flags,
            &[
                (1, "EFD_SEMAPHORE"),
                (0o2_000_000, "EFD_CLOEXEC"),
                (0o4000, "EFD_NONBLOCK"),
            ],
        ),
        "poll" | "epoll_wait" | "epoll_pwait" if flags < 0 => "timeout none".to_owned(),
        "poll" | "epoll_wait" | "epoll_pwait" => format!("timeout {flags} ms"),
        "epoll_create1" => bits(flags, &[(0o2_000_000, "EPOLL_CLOEXEC")]),
        "recvfrom" | "recvmsg" | "recv" | "recvmmsg" | "sendto" | "sendmsg" | "send"
        | "sendmmsg" => bits(flags, &MESSAGE),
        "newfstatat" | "fstatat64" | "statx" | "unlinkat" | "linkat" | "fchownat"
        | "faccessat2" | "utimensat" | "execveat" => bits(flags, at_flags(call)),
        "renameat2" => bits(
            flags,
            &[
                (1, "RENAME_NOREPLACE"),
                (2, "RENAME_EXCHANGE"),
                (4, "RENAME_WHITEOUT"),
            ],
        ),
        "splice" | "tee" | "vmsplice" => bits(
            flags,
            &[
                (1, "SPLICE_F_MOVE"),
                (2, "SPLICE_F_NONBLOCK"),
                (4, "SPLICE_F_MORE"),
                (8, "SPLICE_F_GIFT"),
            ],
        ),
        "access" | "faccessat" => match flags {
            0 => "F_OK".into(),
            _ => bits(flags, &[(4, "R_OK"), (2, "W_OK"), (1, "X_OK")]),
        },
        "creat" | "mkdir" | "mkdirat" | "chmod" | "fchmod" | "fchmodat" | "mknod" | "mknodat" => {
            format!("{flags:#05o}").replacen("0o", "0", 1)
        }
        "futex" => futex(flags),
        "fcntl" | "fcntl64" => one_of(flags, &FCNTL),
        "epoll_ctl" => one_of(
            flags,
            &[
                (1, "EPOLL_CTL_ADD"),
                (2, "EPOLL_CTL_DEL"),
                (3, "EPOLL_CTL_MOD"),
            ],
        ),
        "lseek" | "_llseek" => one_of(
            flags,
            &[
                (0, "SEEK_SET"),
                (1, "SEEK_CUR"),
                (2, "SEEK_END"),
                (3, "SEEK_DATA"),
                (4, "SEEK_HOLE"),
            ],
        ),
        _ if flags.unsigned_abs() < 10 => flags.to_string(),
        _ => format!("{flags:#x}"),
    }
}

const AT_COMMON: [(i64, &str); 4] = [
    (0x100, "AT_SYMLINK_NOFOLLOW"),
    (0x400, "AT_SYMLINK_FOLLOW"),
    (0x800, "AT_NO_AUTOMOUNT"),
    (0x1000, "AT_EMPTY_PATH"),
];

/// The meaning of a bit depends on the call.
fn at_flags(call: &str) -> &'static [(i64, &'static str)] {
    match call {
        "unlinkat" => &[(0x200, "AT_REMOVEDIR")],
        "faccessat2" => &[
            (0x100, "AT_SYMLINK_NOFOLLOW"),
            (0x200, "AT_EACCESS"),
            (0x1000, "AT_EMPTY_PATH"),
        ],
        "statx" => &[
            (0x100, "AT_SYMLINK_NOFOLLOW"),
            (0x800, "AT_NO_AUTOMOUNT"),
            (0x1000, "AT_EMPTY_PATH"),
            (0x2000, "AT_STATX_FORCE_SYNC"),
            (0x4000, "AT_STATX_DONT_SYNC"),
        ],
        _ => &AT_COMMON,
    }
}

const MESSAGE: [(i64, &str); 9] = [
    (0x1, "MSG_OOB"),
    (0x2, "MSG_PEEK"),
    (0x20, "MSG_TRUNC"),
    (0x40, "MSG_DONTWAIT"),
    (0x80, "MSG_EOR"),
    (0x100, "MSG_WAITALL"),
    (0x4000, "MSG_NOSIGNAL"),
    (0x8000, "MSG_MORE"),
    (0x4000_0000, "MSG_CMSG_CLOEXEC"),
];

const FCNTL: [(i64, &str); 12] = [
    (0, "F_DUPFD"),
    (1, "F_GETFD"),
    (2, "F_SETFD"),
    (3, "F_GETFL"),
    (4, "F_SETFL"),
    (5, "F_GETLK"),
    (6, "F_SETLK"),
    (7, "F_SETLKW"),
    (1030, "F_DUPFD_CLOEXEC"),
    (1031, "F_SETPIPE_SZ"),
    (1033, "F_ADD_SEALS"),
    (1034, "F_GET_SEALS"),
];

fn open(flags: i64, machine: Machine) -> String {
    const SAME: [(i64, &str); 8] = [
        (0o100, "O_CREAT"),
        (0o200, "O_EXCL"),
        (0o400, "O_NOCTTY"),
        (0o1000, "O_TRUNC"),
        (0o2000, "O_APPEND"),
        (0o4000, "O_NONBLOCK"),
        (0o1_000_000, "O_NOATIME"),
        (0o2_000_000, "O_CLOEXEC"),
    ];
    const X86: [(i64, &str); 4] = [
        (0o40_000, "O_DIRECT"),
        (0o100_000, "O_LARGEFILE"),
        (0o200_000, "O_DIRECTORY"),
        (0o400_000, "O_NOFOLLOW"),
    ];
    const ARM: [(i64, &str); 4] = [
        (0o40_000, "O_DIRECTORY"),
        (0o100_000, "O_NOFOLLOW"),
        (0o200_000, "O_DIRECT"),
        (0o400_000, "O_LARGEFILE"),
    ];
    // The longer flags include the bits of shorter ones.
    let directory = match machine {
        Machine::Arm => 0o40_000,
        _ => 0o200_000,
    };
    let mut known: Vec<(i64, &str)> = Vec::new();
    if machine != Machine::Unknown {
        known.push((0o20_000_000 | directory, "O_TMPFILE"));
    }
    known.extend([(0o4_010_000, "O_SYNC"), (0o10_000, "O_DSYNC")]);
    known.push((0o10_000_000, "O_PATH"));
    known.extend(SAME);
    match machine {
        Machine::X86 => known.extend(X86),
        Machine::Arm => known.extend(ARM),
        Machine::Unknown => {}
    }
    let way = match flags & 3 {
        0 => "O_RDONLY",
        1 => "O_WRONLY",
        2 => "O_RDWR",
        _ => "O_ACCMODE",
    };
    match flags & !3 {
        0 => way.into(),
        rest => format!("{way}|{}", bits(rest, &known)),
    }
}

fn mmap(flags: i64) -> String {
    const BITS: [(i64, &str); 8] = [
        (0x10, "MAP_FIXED"),
        (0x20, "MAP_ANONYMOUS"),
        (0x800, "MAP_DENYWRITE"),
        (0x2000, "MAP_LOCKED"),
        (0x4000, "MAP_NORESERVE"),
        (0x8000, "MAP_POPULATE"),
        (0x2_0000, "MAP_STACK"),
        (0x10_0000, "MAP_FIXED_NOREPLACE"),
    ];
    let sharing = match flags & 0xf {
        1 => "MAP_SHARED",
        2 => "MAP_PRIVATE",
        3 => "MAP_SHARED_VALIDATE",
        _ => return bits(flags, &BITS),
    };
    match flags & !0xf {
        0 => sharing.into(),
        rest => format!("{sharing}|{}", bits(rest, &BITS)),
    }
}

fn futex(command: i64) -> String {
    const COMMANDS: [&str; 14] = [
        "FUTEX_WAIT",
        "FUTEX_WAKE",
        "FUTEX_FD",
        "FUTEX_REQUEUE",
        "FUTEX_CMP_REQUEUE",
        "FUTEX_WAKE_OP",
        "FUTEX_LOCK_PI",
        "FUTEX_UNLOCK_PI",
        "FUTEX_TRYLOCK_PI",
        "FUTEX_WAIT_BITSET",
        "FUTEX_WAKE_BITSET",
        "FUTEX_WAIT_REQUEUE_PI",
        "FUTEX_CMP_REQUEUE_PI",
        "FUTEX_LOCK_PI2",
    ];
    let marks = command & 0x180;
    let name = usize::try_from(command & !0x180).ok();
    let Some(name) = name.and_then(|place| COMMANDS.get(place)) else {
        return format!("{command:#x}");
    };
    if marks == 0 {
        return (*name).into();
    }
    let known = [
        (0x80, "FUTEX_PRIVATE_FLAG"),
        (0x100, "FUTEX_CLOCK_REALTIME"),
    ];
    format!("{name}|{}", bits(marks, &known))
}

fn one_of(value: i64, known: &[(i64, &str)]) -> String {
    let found = known.iter().find(|(number, _)| *number == value);
    found.map_or_else(|| format!("{value:#x}"), |(_, name)| (*name).into())
}

/// Names of the bits, joined by `|`; unnamed bits follow as a number. 0 is `0`.
fn bits(flags: i64, known: &[(i64, &str)]) -> String {
    let mut rest = flags;
    let mut names: Vec<String> = Vec::new();
    for (bit, name) in known {
        if rest & bit == *bit {
            rest &= !bit;
            names.push((*name).into());
        }
    }
    if rest != 0 || names.is_empty() {
        names.push(if rest == 0 {
            "0".into()
        } else {
            format!("{rest:#x}")
        });
    }
    names.join("|")
}

#[cfg(test)]
mod tests {
    use super::{Machine, shown};

    #[test]
    fn flags_have_the_names_of_their_call() {
        for (call, flags, expected) in [
            ("openat", 0, "O_RDONLY"),
            ("openat", 0x241, "O_WRONLY|O_CREAT|O_TRUNC"),
            (
                "openat",
                0x9_0800,
                "O_RDONLY|O_NONBLOCK|O_CLOEXEC|O_DIRECTORY",
            ),
            ("open", 0x10_1001, "O_WRONLY|O_SYNC"),
            ("open", 0x1002, "O_RDWR|O_DSYNC"),
            ("openat", 0x41_0002, "O_RDWR|O_TMPFILE"),
            ("openat", 0x4000_0000, "O_RDONLY|0x40000000"),
            ("mmap", 0x22, "MAP_PRIVATE|MAP_ANONYMOUS"),
            ("mmap", 0x812, "MAP_PRIVATE|MAP_FIXED|MAP_DENYWRITE"),
            ("futex", 0x80, "FUTEX_WAIT|FUTEX_PRIVATE_FLAG"),
            (
                "futex",
                0x189,
                "FUTEX_WAIT_BITSET|FUTEX_PRIVATE_FLAG|FUTEX_CLOCK_REALTIME",
            ),
            ("fcntl", 3, "F_GETFL"),
            ("fcntl", 77, "0x4d"),
            ("unlinkat", 0x200, "AT_REMOVEDIR"),
            ("newfstatat", 0x100, "AT_SYMLINK_NOFOLLOW"),
            ("newfstatat", 0, "0"),
            ("access", 4, "R_OK"),
            ("access", 0, "F_OK"),
            ("mkdir", 0o755, "0755"),
            ("chmod", 0o1777, "01777"),
            ("lseek", 2, "SEEK_END"),
            ("sendto", 0x4000, "MSG_NOSIGNAL"),
            ("ioctl", 0x5401, "0x5401"),
        ] {
            assert_eq!(
                shown(call, flags, Machine::X86),
                expected,
                "{call} {flags:#x}"
            );
        }
    }

    #[test]
    fn flags_that_differ_between_machines_are_named_only_where_it_is_known() {
        let flags = 0x1_0000;
        assert_eq!(shown("openat", flags, Machine::X86), "O_RDONLY|O_DIRECTORY");
        assert_eq!(shown("openat", flags, Machine::Arm), "O_RDONLY|O_DIRECT");
        assert_eq!(shown("openat", flags, Machine::Unknown), "O_RDONLY|0x10000");
        for (release, machine) in [
            ("6.1.0-50-amd64", Machine::X86),
            ("4.4.0-21-generic", Machine::X86),
            ("5.10.0-8-arm64", Machine::Arm),
            ("3.10.17", Machine::Unknown),
        ] {
            assert_eq!(Machine::of_release(release), machine, "{release}");
        }
    }
}
