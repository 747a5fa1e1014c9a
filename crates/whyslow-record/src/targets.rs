//! Processes to record, selected by name or control group. The BPF programs add threads that take
//! the name or are moved into a group. This module finds those that already match at the start, and
//! those created inside a group, for which the kernel has no event.

use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use libbpf_rs::{MapCore as _, MapFlags};

use whyslow_model::sort::IndexSort;

use crate::error::RecordError;
use crate::options::Options;
use crate::skeleton::{RecorderSkel, types};

/// Thread names are shorter than this, in bytes.
const COMM_MAX: usize = 16;
/// Maximum number of name patterns, limited by the BPF map.
pub const NAMES_MAX: usize = 8;
/// Interval of scans for processes in control groups.
const SCAN_INTERVAL: Duration = Duration::from_millis(250);
/// Deeper than control groups are nested in practice.
const DEPTH_MAX: usize = 32;

/// A thread name, or a prefix of thread names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Names {
    text: String,
    is_prefix: bool,
}

impl Names {
    /// `nginx`, or `php*`; `None` if the kernel has no such names.
    pub fn parse(text: &str) -> Option<Self> {
        let (text, is_prefix) = match text.strip_suffix('*') {
            Some(begin) => (begin, true),
            None => (text, false),
        };
        let is_name = !text.is_empty() && text.len() < COMM_MAX && !text.contains(['*', '?', '[']);
        is_name.then(|| Self {
            text: text.to_owned(),
            is_prefix,
        })
    }

    fn have(&self, name: &[u8]) -> bool {
        let text = self.text.as_bytes();
        name == text || self.is_prefix && name.starts_with(text)
    }

    pub(crate) fn pattern(&self) -> types::comm_pattern {
        let mut pattern = types::comm_pattern {
            len: self.text.len() as u8,
            is_prefix: self.is_prefix.into(),
            ..types::comm_pattern::default()
        };
        for (to, from) in pattern.bytes.iter_mut().zip(self.text.bytes()) {
            *to = from as _;
        }
        pattern
    }
}

/// A control group with its descendants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ControlGroup {
    folder: PathBuf,
    /// 0 for cgroup v2.
    pub(crate) hierarchy: i32,
}

impl ControlGroup {
    /// Finds a control group by its directory, or by its path in any hierarchy as in
    /// `/proc/PID/cgroup`.
    pub fn find(path: &Path) -> Option<Self> {
        let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
        let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
        let mounts: Vec<Mount<'_>> = mounts.lines().filter_map(Mount::parse).collect();
        let relative = path.strip_prefix("/").unwrap_or(path);
        let places = mounts
            .iter()
            .map(|mount| Path::new(mount.point).join(relative));
        let mut places = std::iter::once(path.to_owned()).chain(places);
        places.find_map(|folder| {
            let folder = fs::canonicalize(folder).ok()?;
            let is_group = folder.join("cgroup.procs").exists();
            let mount = mounts
                .iter()
                .rev()
                .find(|mount| folder.starts_with(mount.point));
            let hierarchy = mount.filter(|_| is_group)?.hierarchy(&groups)?;
            Some(Self { folder, hierarchy })
        })
    }
}

/// Where a cgroup hierarchy is mounted.
#[derive(Debug, PartialEq, Eq)]
struct Mount<'t> {
    point: &'t str,
    is_unified: bool,
    options: &'t str,
}

impl<'t> Mount<'t> {
    /// `36 25 0:30 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu`
    fn parse(line: &'t str) -> Option<Self> {
        let (place, about) = line.split_once(" - ")?;
        let mut about = about.split(' ');
        let is_unified = match about.next()? {
            "cgroup2" => true,
            "cgroup" => false,
            _ => return None,
        };
        Some(Self {
            point: place.split(' ').nth(4)?,
            is_unified,
            options: about.nth(1)?,
        })
    }

    /// Hierarchy number, which precedes the controllers: `4:cpu,cpuacct:/`.
    fn hierarchy(&self, groups: &str) -> Option<i32> {
        if self.is_unified {
            return Some(0);
        }
        groups.lines().find_map(|line| {
            let (number, rest) = line.split_once(':')?;
            let (controllers, _) = rest.split_once(':')?;
            let is_among = |option: &str| controllers.split(',').any(|name| name == option);
            let is_same = !controllers.is_empty() && self.options.split(',').any(is_among);
            is_same.then(|| number.parse().ok())?
        })
    }
}

/// Finds the processes.
#[derive(Debug)]
pub(crate) struct Targets {
    names: Vec<Names>,
    groups: Vec<ControlGroup>,
    scanned: Instant,
}

impl Targets {
    pub(crate) fn new(options: &Options) -> Self {
        Self {
            names: options.names.clone(),
            groups: options.groups.clone(),
            scanned: Instant::now(),
        }
    }

    /// Processes that match when the programs start.
    pub(crate) fn find(&self, skeleton: &RecorderSkel<'_>) -> Result<Vec<i32>, RecordError> {
        let mut pids = named(Path::new("/proc"), &self.names);
        pids.retain(|pid| *pid != std::process::id());
        add(skeleton, &pids)?;
        pids.extend(self.of_groups(skeleton)?);
        Ok(pids
            .into_iter()
            .filter_map(|pid| pid.try_into().ok())
            .collect())
    }

    /// Adds processes that no event reported; to be called often.
    pub(crate) fn scan(&mut self, skeleton: &RecorderSkel<'_>) -> Result<(), RecordError> {
        if !self.groups.is_empty() && self.scanned.elapsed() >= SCAN_INTERVAL {
            self.scanned = Instant::now();
            self.of_groups(skeleton)?;
        }
        Ok(())
    }

    fn of_groups(&self, skeleton: &RecorderSkel<'_>) -> Result<Vec<u32>, RecordError> {
        let (mut nodes, mut pids) = (Vec::new(), Vec::new());
        for group in &self.groups {
            members(&group.folder, DEPTH_MAX, &mut nodes, &mut pids);
        }
        for node in nodes {
            let cgroups = &skeleton.maps.cgroups;
            cgroups
                .update(&node.to_ne_bytes(), &[1], MapFlags::ANY)
                .map_err(RecordError::Targets)?;
        }
        pids.retain(|pid| *pid != std::process::id());
        add(skeleton, &pids)?;
        Ok(pids)
    }
}

fn add(skeleton: &RecorderSkel<'_>, pids: &[u32]) -> Result<(), RecordError> {
    for pid in pids {
        let targets = &skeleton.maps.targets;
        targets
            .update(&pid.to_ne_bytes(), &[1], MapFlags::ANY)
            .map_err(RecordError::Targets)?;
    }
    Ok(())
}

/// Processes with a thread of that name.
fn named(proc: &Path, names: &[Names]) -> Vec<u32> {
    if names.is_empty() {
        return Vec::new();
    }
    let is_named = |task: &PathBuf| {
        let comm = fs::read(task.join("comm")).unwrap_or_default();
        names.iter().any(|names| names.have(comm.trim_ascii_end()))
    };
    let has_one = |pid: &u32| {
        let tasks = entries(&proc.join(pid.to_string()).join("task"));
        tasks.iter().any(is_named)
    };
    let pids = entries(proc);
    let pids = pids
        .iter()
        .filter_map(|path| path.file_name()?.to_str()?.parse().ok());
    pids.filter(has_one).collect()
}

/// Inodes of a control group and its descendants, and the processes of all of them.
fn members(folder: &Path, depth: usize, nodes: &mut Vec<u64>, pids: &mut Vec<u32>) {
    let Ok(about) = fs::metadata(folder) else {
        return;
    };
    nodes.push(about.ino());
    let text = fs::read_to_string(folder.join("cgroup.procs")).unwrap_or_default();
    pids.extend(
        text.split_whitespace()
            .filter_map(|pid| pid.parse::<u32>().ok()),
    );
    if depth == 0 {
        return;
    }
    for path in entries(folder) {
        // Nearly all regular files here have a dot in their names; anything that is no directory is
        // skipped.
        if fs::symlink_metadata(&path).is_ok_and(|about| about.is_dir()) {
            members(&path, depth - 1, nodes, pids);
        }
    }
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    paths.index_sort_by(|one, other| one.as_os_str().as_bytes().cmp(other.as_os_str().as_bytes()));
    paths
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_whole_or_begin() {
        let have =
            |text: &str, name: &str| Names::parse(text).map(|names| names.have(name.as_bytes()));
        assert_eq!(have("nginx", "nginx"), Some(true));
        assert_eq!(have("nginx", "nginx2"), Some(false));
        assert_eq!(have("php*", "php-fpm8.2"), Some(true));
        assert_eq!(have("php*", "ph"), Some(false));
        for text in ["", "*", "a*b", "[a]", "sixteen-letters-"] {
            assert_eq!(have(text, ""), None, "{text}");
        }
    }

    #[test]
    fn hierarchies_have_their_numbers() {
        let groups = "12:name=systemd:/\n4:cpu,cpuacct:/a\n0::/b\nx\n";
        let number = |line: &str| Mount::parse(line).and_then(|mount| mount.hierarchy(groups));
        let line = "36 25 0:30 / /sys/fs/cgroup/cpu rw shared:9 - cgroup cgroup rw,cpu,cpuacct";
        assert_eq!(number(line), Some(4));
        assert_eq!(
            number("36 25 0:30 / /c rw - cgroup none rw,name=systemd"),
            Some(12)
        );
        assert_eq!(number("36 25 0:30 / /c rw - cgroup2 none rw"), Some(0));
        assert_eq!(number("36 25 0:30 / /c rw - cgroup none rw,blkio"), None);
        assert_eq!(number("36 25 0:30 / /c rw - ext4 none rw"), None);
        assert_eq!(number("36 25 - cgroup"), None);
    }
}
