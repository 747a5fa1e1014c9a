//! Numbers, flag names and socket addresses.

/// The numeric value of an argument: `10`, `0x7f`, `0644`, `NULL`, `O_RDWR|O_CREAT`, `AT_FDCWD`.
/// None if a part of it is an unknown name.
pub(super) fn number(text: &str) -> Option<i64> {
    let mut sum = 0_i64;
    for part in text.split('|') {
        sum |= one(part.trim())?;
    }
    Some(sum)
}

fn one(text: &str) -> Option<i64> {
    // `1<<2`, `0x1 /* ONE */`
    let text = text.split(" /*").next().unwrap_or_default().trim_end();
    if let Some(hex) = text.strip_prefix("0x") {
        return u64::from_str_radix(hex, 16).ok().map(|value| value as i64);
    }
    let octal = text.strip_prefix('0').filter(|rest| !rest.is_empty());
    if let Some(octal) = octal {
        return i64::from_str_radix(octal, 8).ok();
    }
    if text.starts_with(|c: char| c.is_ascii_digit() || c == '-') {
        let plain = text.parse().ok();
        return plain.or_else(|| text.parse::<u64>().ok().map(|value| value as i64));
    }
    let at = NAMES.binary_search_by_key(&text, |(name, _)| name).ok()?;
    Some(NAMES[at].1)
}

/// Values of x86; four flags of `open` differ on ARM, and a log does not state the machine.
#[rustfmt::skip]
const NAMES: &[(&str, i64)] = &[
    ("AF_INET", 2), ("AF_INET6", 10), ("AF_LOCAL", 1), ("AF_NETLINK", 16), ("AF_PACKET", 17), ("AF_UNIX", 1),
    ("AT_EACCESS", 0x200), ("AT_EMPTY_PATH", 0x1000), ("AT_FDCWD", -100), ("AT_NO_AUTOMOUNT", 0x800),
    ("AT_REMOVEDIR", 0x200), ("AT_STATX_SYNC_AS_STAT", 0), ("AT_SYMLINK_FOLLOW", 0x400),
    ("AT_SYMLINK_NOFOLLOW", 0x100),
    ("EFD_CLOEXEC", 0o2_000_000), ("EFD_NONBLOCK", 0o4000), ("EFD_SEMAPHORE", 1),
    ("EPOLL_CLOEXEC", 0o2_000_000), ("EPOLL_CTL_ADD", 1), ("EPOLL_CTL_DEL", 2), ("EPOLL_CTL_MOD", 3),
    ("FUTEX_CLOCK_REALTIME", 256), ("FUTEX_CMP_REQUEUE", 4), ("FUTEX_CMP_REQUEUE_PRIVATE", 132),
    ("FUTEX_LOCK_PI", 6), ("FUTEX_LOCK_PI_PRIVATE", 134), ("FUTEX_REQUEUE", 3), ("FUTEX_REQUEUE_PRIVATE", 131),
    ("FUTEX_UNLOCK_PI", 7), ("FUTEX_UNLOCK_PI_PRIVATE", 135), ("FUTEX_WAIT", 0), ("FUTEX_WAIT_BITSET", 9),
    ("FUTEX_WAIT_BITSET_PRIVATE", 137), ("FUTEX_WAIT_PRIVATE", 128), ("FUTEX_WAKE", 1), ("FUTEX_WAKE_BITSET", 10),
    ("FUTEX_WAKE_BITSET_PRIVATE", 138), ("FUTEX_WAKE_OP", 5), ("FUTEX_WAKE_OP_PRIVATE", 133),
    ("FUTEX_WAKE_PRIVATE", 129),
    ("F_DUPFD", 0), ("F_DUPFD_CLOEXEC", 1030), ("F_GETFD", 1), ("F_GETFL", 3), ("F_GETLK", 5), ("F_OFD_GETLK", 36),
    ("F_OFD_SETLK", 37), ("F_OFD_SETLKW", 38), ("F_OK", 0), ("F_SETFD", 2), ("F_SETFL", 4), ("F_SETLK", 6),
    ("F_SETLKW", 7),
    ("MAP_ANONYMOUS", 0x20), ("MAP_DENYWRITE", 0x800), ("MAP_FIXED", 0x10), ("MAP_FIXED_NOREPLACE", 0x10_0000),
    ("MAP_GROWSDOWN", 0x100), ("MAP_HUGETLB", 0x4_0000), ("MAP_LOCKED", 0x2000), ("MAP_NONBLOCK", 0x1_0000),
    ("MAP_NORESERVE", 0x4000), ("MAP_POPULATE", 0x8000), ("MAP_PRIVATE", 2), ("MAP_SHARED", 1),
    ("MAP_SHARED_VALIDATE", 3), ("MAP_STACK", 0x2_0000),
    ("MSG_CMSG_CLOEXEC", 0x4000_0000), ("MSG_DONTWAIT", 0x40), ("MSG_ERRQUEUE", 0x2000), ("MSG_MORE", 0x8000),
    ("MSG_NOSIGNAL", 0x4000), ("MSG_OOB", 1), ("MSG_PEEK", 2), ("MSG_TRUNC", 0x20), ("MSG_WAITALL", 0x100),
    ("MS_ASYNC", 1), ("MS_INVALIDATE", 2), ("MS_SYNC", 4),
    ("NULL", 0),
    ("O_ACCMODE", 3), ("O_APPEND", 0o2000), ("O_ASYNC", 0o20_000), ("O_CLOEXEC", 0o2_000_000), ("O_CREAT", 0o100),
    ("O_DIRECT", 0o40_000), ("O_DIRECTORY", 0o200_000), ("O_DSYNC", 0o10_000), ("O_EXCL", 0o200),
    ("O_LARGEFILE", 0o100_000), ("O_NOATIME", 0o1_000_000), ("O_NOCTTY", 0o400), ("O_NOFOLLOW", 0o400_000),
    ("O_NONBLOCK", 0o4000), ("O_PATH", 0o10_000_000), ("O_RDONLY", 0), ("O_RDWR", 2), ("O_SYNC", 0o4_010_000),
    ("O_TMPFILE", 0o20_200_000), ("O_TRUNC", 0o1000), ("O_WRONLY", 1),
    ("PF_INET", 2), ("PF_INET6", 10), ("PF_UNIX", 1),
    ("PROT_EXEC", 4), ("PROT_NONE", 0), ("PROT_READ", 1), ("PROT_WRITE", 2),
    ("RENAME_EXCHANGE", 2), ("RENAME_NOREPLACE", 1), ("RENAME_WHITEOUT", 4),
    ("R_OK", 4),
    ("SEEK_CUR", 1), ("SEEK_DATA", 3), ("SEEK_END", 2), ("SEEK_HOLE", 4), ("SEEK_SET", 0),
    ("SOCK_CLOEXEC", 0o2_000_000), ("SOCK_DGRAM", 2), ("SOCK_NONBLOCK", 0o4000), ("SOCK_RAW", 3),
    ("SOCK_SEQPACKET", 5), ("SOCK_STREAM", 1),
    ("SPLICE_F_GIFT", 8), ("SPLICE_F_MORE", 4), ("SPLICE_F_MOVE", 1), ("SPLICE_F_NONBLOCK", 2),
    ("W_OK", 2), ("X_OK", 1),
];

/// `{sa_family=AF_INET, sin_port=htons(80), sin_addr=inet_addr("127.0.0.1")}` as `127.0.0.1:80`; a
/// Unix socket as its path after `unix:`.
pub(super) fn socket_address(text: &str) -> Option<String> {
    let inner = text.strip_prefix('{')?;
    let quoted_behind = |key: &str| {
        let rest = &inner[inner.find(key)? + key.len()..];
        let rest = &rest[rest.find('"')?..];
        let (bytes, _) = super::args::string(rest)?;
        String::from_utf8(bytes).ok()
    };
    let port = |key: &str| {
        let rest = &inner[inner.find(key)? + key.len()..];
        rest[..rest.find(')')?].parse::<u16>().ok()
    };
    if inner.starts_with("sa_family=AF_INET6") {
        let (address, port) = (quoted_behind("inet_pton(")?, port("sin6_port=htons(")?);
        return Some(format!("[{address}]:{port}"));
    }
    if inner.starts_with("sa_family=AF_INET") {
        let (address, port) = (quoted_behind("sin_addr=")?, port("sin_port=htons(")?);
        return Some(format!("{address}:{port}"));
    }
    if inner.starts_with("sa_family=AF_UNIX") || inner.starts_with("sa_family=AF_LOCAL") {
        // An unnamed socket has no path.
        return Some(format!(
            "unix:{}",
            quoted_behind("sun_path=").unwrap_or_default()
        ));
    }
    None
}

/// `[3, 4]` or `[3<pipe:[1]>, 4<pipe:[1]>]`: two returned descriptors.
pub(super) fn descriptors(text: &str) -> Option<(i64, i64)> {
    let inner = text.strip_prefix('[')?.strip_suffix(']')?;
    let mut parts = super::args::Args::new(inner);
    let mut one = || number(super::args::annotated(parts.next()?).0);
    Some((one()?, one()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_sorted_for_the_search() {
        assert!(NAMES.is_sorted_by(|one, other| one.0 < other.0));
    }

    #[test]
    fn numbers_are_read_as_strace_writes_them() {
        let check = |text: &str, want| assert_eq!(number(text), want, "{text}");
        check("10", Some(10));
        check("-1", Some(-1));
        check("0", Some(0));
        check("0644", Some(0o644));
        check("0x7f", Some(0x7f));
        check("18446744073709551615", Some(-1));
        check("NULL", Some(0));
        check("AT_FDCWD", Some(-100));
        check("O_RDWR|O_CREAT|O_TRUNC", Some(0o1102));
        check("0x1 /* ONE */", Some(1));
        check("O_RDWR|O_NEW", None);
        check("{a=1}", None);
        check("", None);
    }

    #[test]
    fn addresses_of_sockets_are_read() {
        let check = |text: &str, want: Option<&str>| {
            assert_eq!(socket_address(text).as_deref(), want, "{text}");
        };
        check(
            r#"{sa_family=AF_INET, sin_port=htons(80), sin_addr=inet_addr("127.0.0.1")}"#,
            Some("127.0.0.1:80"),
        );
        check(
            r#"{sa_family=AF_INET6, sin6_port=htons(443), sin6_flowinfo=htonl(0), inet_pton(AF_INET6, "::1", &sin6_addr), sin6_scope_id=0}"#,
            Some("[::1]:443"),
        );
        check(
            r#"{sa_family=AF_UNIX, sun_path="/run/x y"}"#,
            Some("unix:/run/x y"),
        );
        check(r#"{sa_family=AF_UNIX, sun_path=@"abc"}"#, Some("unix:abc"));
        check("{sa_family=AF_UNIX}", Some("unix:"));
        check("{sa_family=AF_NETLINK, nl_pid=0}", None);
        check("{sa_family=AF_INET, sin_port=htons(99999)", None);
        check("0x7ffd", None);
        assert_eq!(descriptors("[3, 4]"), Some((3, 4)));
        assert_eq!(descriptors("[3<pipe:[1]>, 4<pipe:[1]>]"), Some((3, 4)));
        assert_eq!(descriptors("[3"), None);
        assert_eq!(descriptors("[3]"), None);
    }
}
