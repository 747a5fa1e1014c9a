//! Error names. The numbers are those of x86, ARM and RISC-V; recordings contain only numbers.

/// Returns `ENOENT` for 2, or the number itself if it has no name.
pub fn name(number: i64) -> String {
    usize::try_from(number)
        .ok()
        .and_then(|number| NAMES.get(number.checked_sub(1)?))
        .filter(|name| !name.is_empty())
        .map_or_else(|| restarts(number), |name| (*name).to_owned())
}

/// Returns 2 for `ENOENT`.
pub fn number(name: &str) -> Option<i64> {
    let listed = NAMES.iter().position(|known| *known == name);
    let listed = listed.filter(|_| !name.is_empty());
    let numbers = [512, 513, 514, 516, 529];
    let alone = || numbers.into_iter().find(|number| restarts(*number) == name);
    listed.map(|at| at as i64 + 1).or_else(alone)
}

/// Kernel-internal numbers, which user space never sees but a trace of return values shows.
fn restarts(number: i64) -> String {
    match number {
        512 => "ERESTARTSYS".into(),
        513 => "ERESTARTNOINTR".into(),
        514 => "ERESTARTNOHAND".into(),
        516 => "ERESTART_RESTARTBLOCK".into(),
        529 => "EIOCBQUEUED".into(),
        number => number.to_string(),
    }
}

#[rustfmt::skip]
const NAMES: [&str; 133] = [
    "EPERM", "ENOENT", "ESRCH", "EINTR", "EIO", "ENXIO", "E2BIG", "ENOEXEC", "EBADF", "ECHILD",
    "EAGAIN", "ENOMEM", "EACCES", "EFAULT", "ENOTBLK", "EBUSY", "EEXIST", "EXDEV", "ENODEV", "ENOTDIR",
    "EISDIR", "EINVAL", "ENFILE", "EMFILE", "ENOTTY", "ETXTBSY", "EFBIG", "ENOSPC", "ESPIPE", "EROFS",
    "EMLINK", "EPIPE", "EDOM", "ERANGE", "EDEADLK", "ENAMETOOLONG", "ENOLCK", "ENOSYS", "ENOTEMPTY", "ELOOP",
    "", "ENOMSG", "EIDRM", "ECHRNG", "EL2NSYNC", "EL3HLT", "EL3RST", "ELNRNG", "EUNATCH", "ENOCSI",
    "EL2HLT", "EBADE", "EBADR", "EXFULL", "ENOANO", "EBADRQC", "EBADSLT", "", "EBFONT", "ENOSTR",
    "ENODATA", "ETIME", "ENOSR", "ENONET", "ENOPKG", "EREMOTE", "ENOLINK", "EADV", "ESRMNT", "ECOMM",
    "EPROTO", "EMULTIHOP", "EDOTDOT", "EBADMSG", "EOVERFLOW", "ENOTUNIQ", "EBADFD", "EREMCHG", "ELIBACC", "ELIBBAD",
    "ELIBSCN", "ELIBMAX", "ELIBEXEC", "EILSEQ", "ERESTART", "ESTRPIPE", "EUSERS", "ENOTSOCK", "EDESTADDRREQ", "EMSGSIZE",
    "EPROTOTYPE", "ENOPROTOOPT", "EPROTONOSUPPORT", "ESOCKTNOSUPPORT", "EOPNOTSUPP", "EPFNOSUPPORT", "EAFNOSUPPORT", "EADDRINUSE", "EADDRNOTAVAIL", "ENETDOWN",
    "ENETUNREACH", "ENETRESET", "ECONNABORTED", "ECONNRESET", "ENOBUFS", "EISCONN", "ENOTCONN", "ESHUTDOWN", "ETOOMANYREFS", "ETIMEDOUT",
    "ECONNREFUSED", "EHOSTDOWN", "EHOSTUNREACH", "EALREADY", "EINPROGRESS", "ESTALE", "EUCLEAN", "ENOTNAM", "ENAVAIL", "EISNAM",
    "EREMOTEIO", "EDQUOT", "ENOMEDIUM", "EMEDIUMTYPE", "ECANCELED", "ENOKEY", "EKEYEXPIRED", "EKEYREVOKED", "EKEYREJECTED", "EOWNERDEAD",
    "ENOTRECOVERABLE", "ERFKILL", "EHWPOISON",
];

#[cfg(test)]
mod tests {
    use super::{name, number};

    #[test]
    fn numbers_have_the_names_of_errno_h() {
        for (number, expected) in [
            (1, "EPERM"),
            (2, "ENOENT"),
            (11, "EAGAIN"),
            (38, "ENOSYS"),
            (84, "EILSEQ"),
            (110, "ETIMEDOUT"),
            (115, "EINPROGRESS"),
            (133, "EHWPOISON"),
            (512, "ERESTARTSYS"),
            (41, "41"),
            (0, "0"),
            (-1, "-1"),
        ] {
            assert_eq!(name(number), expected);
        }
    }

    #[test]
    fn names_have_numbers() {
        for number_of in (1..134)
            .chain([512, 529])
            .filter(|one| !matches!(one, 41 | 58))
        {
            assert_eq!(number(&name(number_of)), Some(number_of));
        }
        assert_eq!(number(""), None);
        assert_eq!(number("ENONE"), None);
    }
}
