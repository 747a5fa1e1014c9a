//! Memory use of the recorder: its anonymous and file-mapped pages, and its BPF maps in the kernel.
//!
//! The kernel counts the pages of a ring buffer as mapped file pages, and twice, because they are
//! mapped twice in a row. Here they count once.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

const ALL: [&str; 3] = ["RssAnon:", "RssFile:", "RssShmem:"];

/// Checks memory use now and then.
#[derive(Debug)]
pub(crate) struct Meter {
    pub(crate) max: u64,
    /// BPF maps.
    kernel: u64,
    /// Ring buffers, as counted among the pages of this process.
    mapped: u64,
    pub(crate) most: u64,
    /// Number of checks that found too much.
    pub(crate) short: u64,
}

impl Meter {
    /// Called once all maps are created and mapped.
    pub(crate) fn new(max: u64, rings: u64) -> Self {
        let mut meter = Self {
            max,
            kernel: maps(Path::new("/proc/self/fdinfo")),
            mapped: 2 * rings,
            most: 0,
            short: 0,
        };
        meter.check();
        meter
    }

    /// Bytes beyond the limit.
    pub(crate) fn check(&mut self) -> u64 {
        let taken = self.kernel + pages(&status(), &ALL).saturating_sub(self.mapped);
        self.most = self.most.max(taken);
        let excess = taken.saturating_sub(self.max);
        self.short += u64::from(excess > 0);
        excess
    }
}

fn status() -> String {
    fs::read_to_string("/proc/self/status").unwrap_or_default()
}

/// Bytes of a process's resident pages.
fn pages(status: &str, parts: &[&str]) -> u64 {
    let of = |part: &&str| {
        let text = status.lines().find_map(|line| line.strip_prefix(*part))?;
        text.split_whitespace().next()?.parse::<u64>().ok()
    };
    parts.iter().filter_map(of).sum::<u64>() * 1024
}

/// Bytes of the BPF maps to which a process has descriptors.
fn maps(fdinfo: &Path) -> u64 {
    let mut maps = BTreeMap::new();
    for entry in fs::read_dir(fdinfo).into_iter().flatten().flatten() {
        let about = fs::read_to_string(entry.path()).unwrap_or_default();
        let number = |name: &str| {
            let text = about.lines().find_map(|line| line.strip_prefix(name))?;
            text.trim().parse::<u64>().ok()
        };
        if let (Some(id), Some(bytes)) = (number("map_id:"), number("memlock:")) {
            maps.insert(id, bytes);
        }
    }
    maps.values().sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_of_all_kinds_count_and_a_map_once() {
        let status = "VmRSS:\t  99 kB\nRssAnon:\t  10 kB\nRssFile:\t   5 kB\nRssShmem:\t 1 kB\n";
        assert_eq!(pages(status, &ALL), 16 * 1024);
        assert_eq!(pages("", &ALL), 0);
        let folder = tempfile::TempDir::new().expect("a temporary folder");
        let write = |name: &str, text: &str| {
            fs::write(folder.path().join(name), text).expect("a disk");
        };
        write(
            "3",
            "pos:\t0\nmap_type:\t27\nmemlock:\t8433992\nmap_id:\t4\n",
        );
        write(
            "4",
            "pos:\t0\nmap_type:\t27\nmemlock:\t8433992\nmap_id:\t4\n",
        );
        write("5", "pos:\t0\nmap_type:\t1\nmemlock:\t8\nmap_id:\t5\n");
        write("6", "pos:\t0\nprog_type:\t1\nmemlock:\t4096\nprog_id:\t5\n");
        assert_eq!(maps(folder.path()), 8_434_000);
    }

    #[test]
    fn what_is_too_much_is_told() {
        let mut meter = Meter::new(1 << 40, 0);
        assert_eq!(meter.check(), 0);
        assert!(meter.most > 1 << 20);
        meter.max = meter.most / 2;
        assert!(meter.check() > 0);
    }
}
