//! Processes, their threads and descriptors, from `/proc`.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use whyslow_model::spool::{Encoder, Kind};

use super::sockets::Sockets;
use crate::clock::{self, Clocks};

/// Stands for the working directory, as in calls with a directory descriptor.
const AT_FDCWD: i32 = -100;

/// Describes these processes, and those that the recorder started: before anything is recorded,
/// because they may exit before the snapshot reaches them.
pub(super) fn first(encoder: &mut Encoder, proc: &Path, pids: &[i32]) {
    let begin = clock::clocks();
    let tasks = proc.join("self/task");
    let children = numbers(&tasks).into_iter().flat_map(|tid| {
        let path = tasks.join(tid.to_string()).join("children");
        let text = fs::read_to_string(path).unwrap_or_default();
        let numbers = text.split_whitespace().map(str::parse);
        numbers.filter_map(Result::ok).collect::<Vec<i32>>()
    });
    let children: BTreeSet<i32> = children.collect();
    for pid in children
        .iter()
        .chain(pids)
        .copied()
        .collect::<BTreeSet<_>>()
    {
        let folder = proc.join(pid.to_string());
        if about(encoder, &folder, pid, &begin) {
            directory(encoder, &folder, pid);
            // A command that is held before exec does not have its final name yet.
            if !children.contains(&pid) {
                threads(encoder, &folder, pid);
            }
        }
    }
}

/// Records of a process for a snapshot that started at `begin`.
pub(super) fn one(
    encoder: &mut Encoder,
    (proc, pid): (&Path, i32),
    begin: &Clocks,
    sockets: &mut Sockets,
) {
    let folder = &proc.join(pid.to_string());
    if about(encoder, folder, pid, begin) {
        threads(encoder, folder, pid);
        directory(encoder, folder, pid);
        descriptors(encoder, folder, pid, sockets);
    }
}

/// A process that existed when the snapshot started is described as of that time, so that processes
/// it started meanwhile inherit its state.
pub(super) fn about(encoder: &mut Encoder, folder: &Path, pid: i32, begin: &Clocks) -> bool {
    // Later changes are reported by events.
    let now = clock::monotonic();
    let Some(stat) = Stat::read(folder) else {
        return false;
    };
    let status = fs::read_to_string(folder.join("status")).unwrap_or_default();
    let uid = status.lines().find_map(|line| line.strip_prefix("Uid:"));
    let uid = uid.and_then(|uids| uids.split_whitespace().next()?.parse().ok());
    let tick = 1_000_000_000 / rustix::param::clock_ticks_per_second().max(1);
    let started = stat.started.saturating_mul(tick);
    let was_there = started.saturating_add(tick) <= begin.boot;
    let ts = if was_there { begin.monotonic } else { now };
    // An exited process is no longer in a control group of its own.
    let cgroup = if matches!(stat.state, b'Z' | b'X') {
        Vec::new()
    } else {
        fs::read(folder.join("cgroup")).unwrap_or_default()
    };
    let executable = fs::read_link(folder.join("exe")).unwrap_or_default();
    group(encoder, ts, (Path::new(UNIFIED), &cgroup));
    let root = root(folder);
    encoder
        .begin(Kind::Process, ts, (pid, pid))
        .u32(stat.ppid as u32)
        .u32(uid.unwrap_or(u32::MAX))
        .u64(started)
        .u32(mount_ns(folder).unwrap_or(0))
        .text(executable.as_os_str().as_bytes())
        .text(&fs::read(folder.join("cmdline")).unwrap_or_default())
        .text(&cgroup)
        .end();
    if let Some(root) = root {
        put_root(encoder, ts, (pid, &root));
    }
    true
}

pub(crate) fn put_root(encoder: &mut Encoder, ts: u64, (pid, root): (i32, &[u8])) {
    encoder.begin(Kind::Root, ts, (pid, pid)).text(root).end();
}

/// The root directory of a process, if it differs from that of its mount namespace.
pub(super) fn root(folder: &Path) -> Option<Vec<u8>> {
    any_root(folder).filter(|root| root != b"/")
}

/// The same in any case.
pub(crate) fn any_root(folder: &Path) -> Option<Vec<u8>> {
    let root = fs::read_link(folder.join("root")).ok()?;
    let root = root.as_os_str().as_bytes();
    root.starts_with(b"/").then(|| root.to_vec())
}

/// A path of `/proc/PID` as the process itself sees it: the kernel shows it relative to the root of
/// the namespace.
fn below<'p>(path: &'p [u8], root: Option<&[u8]>) -> &'p [u8] {
    let rest = root.and_then(|root| path.strip_prefix(root));
    match rest {
        Some(b"") => b"/",
        Some(rest) if rest.starts_with(b"/") => rest,
        _ => path,
    }
}

fn threads(encoder: &mut Encoder, folder: &Path, pid: i32) {
    for tid in numbers(&folder.join("task")) {
        // The time before reading: a thread that exits meanwhile must not reappear after its exit.
        let now = clock::monotonic();
        let Some(stat) = Stat::read(&folder.join("task").join(tid.to_string())) else {
            continue;
        };
        encoder
            .begin(Kind::Thread, now, (pid, tid))
            .u32(stat.state.into())
            .text(&stat.comm)
            .end();
    }
}

/// The working directory.
fn directory(encoder: &mut Encoder, folder: &Path, pid: i32) {
    let now = clock::monotonic();
    if let Ok(directory) = fs::read_link(folder.join("cwd")) {
        let root = root(folder);
        encoder
            .begin(Kind::Fd, now, (pid, pid))
            .u32(AT_FDCWD as u32)
            .u64(0)
            .text(below(directory.as_os_str().as_bytes(), root.as_deref()))
            .end();
    }
}

fn descriptors(encoder: &mut Encoder, folder: &Path, pid: i32, sockets: &mut Sockets) {
    let root = root(folder);
    for fd in numbers(&folder.join("fd")) {
        // The time before reading: if the descriptor is closed meanwhile, that event is later, and
        // it does not stay open.
        let now = clock::monotonic();
        let Ok(target) = fs::read_link(folder.join("fd").join(fd.to_string())) else {
            continue;
        };
        let target = target.as_os_str().as_bytes();
        let socket = sockets.describe(folder, target);
        let path = socket
            .as_deref()
            .unwrap_or_else(|| below(target, root.as_deref()));
        let about = fs::read_to_string(folder.join("fdinfo").join(fd.to_string()));
        encoder
            .begin(Kind::Fd, now, (pid, pid))
            .u32(fd as u32)
            .u64(about.ok().and_then(|about| flags(&about)).unwrap_or(0))
            .text(path)
            .end();
    }
}

/// Number of the mount namespace: `mnt:[4026531841]`.
pub(crate) fn mount_ns(folder: &Path) -> Option<u32> {
    let link = fs::read_link(folder.join("ns/mnt")).ok()?;
    let number = link.to_str()?.strip_prefix("mnt:[")?.strip_suffix(']')?;
    number.parse().ok()
}

/// Mount point of the unified cgroup hierarchy, if there is no other.
const UNIFIED: &str = "/sys/fs/cgroup";

/// Inode of a process's control group, by which events refer to it.
fn group(encoder: &mut Encoder, ts: u64, (root, cgroup): (&Path, &[u8])) {
    let path = cgroup.strip_prefix(b"0::/").map(<[u8]>::trim_ascii_end);
    let Some(path) = path.filter(|_| root.join("cgroup.controllers").exists()) else {
        return;
    };
    if let Ok(about) = fs::metadata(root.join(OsStr::from_bytes(path))) {
        encoder
            .begin(Kind::Cgroup, ts, (0, 0))
            .u64(about.ino())
            .text(&[b"/", path].concat())
            .end();
    }
}

/// Open flags, which are octal in `/proc/PID/fdinfo/FD`.
fn flags(about: &str) -> Option<u64> {
    let line = about.lines().find_map(|line| line.strip_prefix("flags:"))?;
    u64::from_str_radix(line.trim(), 8).ok()
}

/// Numeric entries of a directory, ascending.
pub(crate) fn numbers(folder: &Path) -> Vec<i32> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut numbers: Vec<i32> = entries
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect();
    numbers.sort_unstable();
    numbers
}

/// The required fields of `/proc/PID/stat`.
#[derive(Debug, PartialEq, Eq)]
struct Stat {
    comm: Vec<u8>,
    state: u8,
    ppid: i32,
    /// In clock ticks since boot.
    started: u64,
}

impl Stat {
    fn read(folder: &Path) -> Option<Self> {
        Self::parse(&fs::read(folder.join("stat")).ok()?)
    }

    /// The name is in parentheses, and may contain some itself.
    fn parse(text: &[u8]) -> Option<Self> {
        let begin = text.iter().position(|byte| *byte == b'(')?;
        let end = text.iter().rposition(|byte| *byte == b')')?;
        let rest = std::str::from_utf8(text.get(end + 1..)?).ok()?;
        let fields: Vec<&str> = rest.split_whitespace().collect();
        Some(Self {
            comm: text.get(begin + 1..end)?.to_vec(),
            state: *fields.first()?.as_bytes().first()?,
            ppid: fields.get(1)?.parse().ok()?,
            started: fields.get(19)?.parse().ok()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use whyslow_model::spool::{HostRecord, Record, records};

    #[test]
    fn a_name_may_look_like_the_rest() {
        let text = b"7 (a) S 1 (b) R 3 7 7 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 1 0 99 1 2\n";
        let expected = Stat {
            comm: b"a) S 1 (b".to_vec(),
            state: b'R',
            ppid: 3,
            started: 99,
        };
        assert_eq!(Stat::parse(text), Some(expected));
        assert_eq!(Stat::parse(b"7 (a"), None);
        assert_eq!(Stat::parse(b")("), None);
    }

    /// The record carries the time before the read, however long the read takes.
    #[test]
    fn what_ends_while_it_is_read_is_told_of_before_it_ends() {
        use rustix::fs::{CWD, FileType, Mode, mknodat};
        let root = tempfile::TempDir::new().unwrap();
        let slow = |folder: &str, name: &str| {
            let folder = root.path().join(folder);
            fs::create_dir_all(&folder).unwrap();
            let path = folder.join(name);
            mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
            path
        };
        let (stat, about) = (slow("task/7", "stat"), slow("fdinfo", "3"));
        fs::create_dir(root.path().join("fd")).unwrap();
        std::os::unix::fs::symlink("/a", root.path().join("fd/3")).unwrap();
        let writer = std::thread::spawn(move || {
            [
                (
                    stat,
                    "7 (a) S 1 7 7 0 -1 0 1 2 3 4 5 6 7 8 20 0 1 0 99 1 2\n",
                ),
                (about, "flags:\t02\n"),
            ]
            .map(|(path, text)| {
                // The reader is waiting once the file is open; then the process exits.
                let mut file = fs::File::options().write(true).open(path).unwrap();
                std::thread::sleep(std::time::Duration::from_millis(1));
                let ended = clock::monotonic();
                std::io::Write::write_all(&mut file, text.as_bytes()).unwrap();
                ended
            })
        });
        let mut encoder = Encoder::default();
        threads(&mut encoder, root.path(), 7);
        descriptors(&mut encoder, root.path(), 7, &mut Sockets::default());
        let times = records(encoder.payload()).map(|(_, record)| record.unwrap().0.ts);
        let times: Vec<u64> = times.collect();
        let ended = writer.join().unwrap();
        assert_eq!(times.len(), 2);
        assert!(times.iter().zip(ended).all(|(ts, ended)| *ts < ended));
    }

    #[test]
    fn paths_are_those_below_the_root_of_a_process() {
        let check = |path: &str, root: Option<&str>, expected: &str| {
            let found = below(path.as_bytes(), root.map(str::as_bytes));
            assert_eq!(found, expected.as_bytes(), "{path}");
        };
        check("/srv/jail/etc/passwd", Some("/srv/jail"), "/etc/passwd");
        check("/srv/jail", Some("/srv/jail"), "/");
        // Opened before.
        check("/srv/jailed", Some("/srv/jail"), "/srv/jailed");
        check("/srv/jail/x", None, "/srv/jail/x");
        check("pipe:[7]", Some("/srv/jail"), "pipe:[7]");
    }

    #[test]
    fn a_group_has_a_number_where_there_is_one_hierarchy_only() {
        let root = tempfile::TempDir::new().unwrap();
        let recorded = |cgroup: &[u8]| {
            let mut encoder = Encoder::default();
            group(&mut encoder, 7, (root.path(), cgroup));
            let found = records(encoder.payload()).next();
            found.map(|(_, record)| match record.unwrap().1 {
                Record::Host(HostRecord::Cgroup { id, path }) => (id, path.to_vec()),
                other => panic!("{other:?}"),
            })
        };
        fs::create_dir_all(root.path().join("a/b")).unwrap();
        assert_eq!(recorded(b"0::/a/b\n"), None);
        fs::write(root.path().join("cgroup.controllers"), "").unwrap();
        let ino = |path: &str| fs::metadata(root.path().join(path)).unwrap().ino();
        assert_eq!(recorded(b"0::/a/b\n"), Some((ino("a/b"), b"/a/b".to_vec())));
        assert_eq!(recorded(b"0::/\n"), Some((ino(""), b"/".to_vec())));
        for other in [&b"0::/a/gone\n"[..], b"", b"1:cpu:/a\n0::/a\n"] {
            assert_eq!(recorded(other), None);
        }
    }

    #[test]
    fn this_process_is_seen_with_its_descriptors() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let pid = std::process::id() as i32;
        let mut encoder = Encoder::default();
        let sockets = &mut Sockets::default();
        one(
            &mut encoder,
            (Path::new("/proc"), pid),
            &clock::clocks(),
            sockets,
        );
        let found: Vec<_> = records(encoder.payload())
            .map(|(_, record)| record.unwrap().1)
            .collect();
        let is_open = |record: &Record<'_>| matches!(record, Record::Fd { path, .. } if *path == file.path().as_os_str().as_bytes());
        assert!(found.iter().any(is_open));
        let is_self = |record: &Record<'_>| {
            matches!(record, Record::Process { executable, uid, .. }
                if !executable.is_empty() && *uid == rustix::process::getuid().as_raw())
        };
        assert!(found.iter().any(is_self));
    }
}
