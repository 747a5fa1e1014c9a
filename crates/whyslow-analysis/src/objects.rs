//! Classes of objects that bytes are transferred to and from, as distinguished by `usage`.
//!
//! | sort | file descriptor classes |
//! |---|---|
//! | file | file, directory, block, memfd |
//! | net | inet, inet6 |
//! | other | pipe, unix, netlink, eventfd, epoll, timerfd, signalfd, inotify, tty, proc, sys, dev, anon |
//! | unknown | unknown, socket (of unknown family), none |

/// A class of objects; the number is its index in totals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sort {
    File = 0,
    Net = 1,
    Other = 2,
    Unknown = 3,
}

impl Sort {
    pub(crate) const ALL: [Sort; 4] = [Sort::File, Sort::Net, Sort::Other, Sort::Unknown];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Sort::File => "file",
            Sort::Net => "net",
            Sort::Other => "other",
            Sort::Unknown => "unknown",
        }
    }

    /// By `fd_class`.
    pub(crate) fn of_class(class: Option<&str>) -> Sort {
        match class {
            Some("file" | "directory" | "block" | "memfd") => Sort::File,
            Some("inet" | "inet6") => Sort::Net,
            None | Some("unknown" | "socket") => Sort::Unknown,
            Some(_) => Sort::Other,
        }
    }

    /// By name, for objects known by their name only: the second one of splice, sendfile,
    /// copy_file_range.
    pub(crate) fn of_name(name: Option<&str>) -> Sort {
        let in_dir =
            |path: &str, dir: &str| path.strip_prefix(dir).is_some_and(|r| r.starts_with('/'));
        match name {
            Some(path) if path.starts_with('/') => {
                let special = ["/proc", "/sys", "/dev"];
                if special.iter().any(|dir| in_dir(path, dir)) {
                    Sort::Other
                } else {
                    Sort::File
                }
            }
            Some(name) if name.parse::<std::net::SocketAddr>().is_ok() => Sort::Net,
            Some(name) if name.starts_with("pipe:") || name.starts_with("anon_inode:") => {
                Sort::Other
            }
            _ => Sort::Unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Sort;

    #[test]
    fn second_objects_are_sorted_by_name() {
        for (name, sort) in [
            (Some("/var/log/x"), Sort::File),
            (Some("/proc/self/maps"), Sort::Other),
            (Some("/procession"), Sort::File),
            (Some("10.0.0.1:443"), Sort::Net),
            (Some("[::1]:80"), Sort::Net),
            (Some("pipe:[17]"), Sort::Other),
            (Some("socket:[17]"), Sort::Unknown),
            (None, Sort::Unknown),
        ] {
            assert_eq!(Sort::of_name(name), sort, "{name:?}");
        }
    }
}
