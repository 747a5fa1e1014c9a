//! Which interpreter a process runs, and where its variables are.
//!
//! The files are looked at through the process (`/proc/PID/map_files`, else its root), so a process
//! in a container is found like any other.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::Read as _;
use std::ops::Range;

use crate::libraries::elf::{self, Extent};

/// An interpreter's file, mapped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Image {
    pub(super) name: String,
    /// What addresses of the file's symbols are moved by.
    bias: u64,
    symbols: HashMap<&'static str, Extent>,
}

impl Image {
    pub(super) fn address(&self, symbol: &str) -> Option<u64> {
        Some(self.symbols.get(symbol)?.address.wrapping_add(self.bias))
    }

    /// Addresses of functions that may go by several names, of which a file has some.
    pub(super) fn code(&self, functions: &[&str]) -> Vec<Range<u64>> {
        let known = functions.iter().filter_map(|name| self.symbols.get(name));
        known
            .map(|extent| {
                let begin = extent.address.wrapping_add(self.bias);
                begin..begin.saturating_add(extent.size)
            })
            .collect()
    }
}

const TEXT_MAX: u64 = 8 << 20;

/// The file with the first of these symbols among those that the process has mapped and that are
/// called like one of these.
pub(super) fn find(pid: i32, names: &[&str], symbols: &'static [&'static str]) -> Option<Image> {
    let mut maps = String::new();
    let file = File::open(format!("/proc/{pid}/maps")).ok()?;
    file.take(TEXT_MAX).read_to_string(&mut maps).ok()?;
    for line in maps.lines() {
        let Some((range, begin, path)) = first_of_file(line) else {
            continue;
        };
        let name = path.rsplit('/').next().unwrap_or(path);
        if !names.iter().any(|known| name.starts_with(known)) {
            continue;
        }
        let file = File::open(format!("/proc/{pid}/map_files/{range}"))
            .or_else(|_| File::open(format!("/proc/{pid}/root{path}")));
        // A deleted or unreadable file tells nothing; another one may.
        let Ok(file) = file else { continue };
        let is_file = file.metadata().is_ok_and(|about| about.is_file());
        let found = if is_file {
            elf::named(&file, symbols).unwrap_or_default()
        } else {
            None
        };
        let Some(found) = found else { continue };
        let symbols: HashMap<_, _> = found.found.iter().copied().collect();
        if symbols.is_empty() {
            continue;
        }
        return Some(Image {
            name: name.to_owned(),
            bias: begin.wrapping_sub(found.begin),
            symbols,
        });
    }
    None
}

/// Range, its begin, and path, of a line about the begin of a file.
fn first_of_file(line: &str) -> Option<(&str, u64, &str)> {
    let mut words = line.split_ascii_whitespace();
    let range = words.next()?;
    let offset = words.nth(1)?;
    let inode = words.nth(1)?;
    let path = line.get(line.find('/')?..)?;
    if inode == "0" || u64::from_str_radix(offset, 16) != Ok(0) {
        return None;
    }
    let (begin, _) = range.split_once('-')?;
    let path = path.strip_suffix(" (deleted)").unwrap_or(path);
    Some((range, u64::from_str_radix(begin, 16).ok()?, path))
}

/// More threads than this are not looked at.
pub(super) const THREADS_MAX: usize = 4096;

/// Threads of a process by the number that they have in their own namespace.
#[derive(Debug, Default)]
pub(super) struct Tids(HashMap<i32, i32>);

impl Tids {
    pub(super) fn of(pid: i32) -> Self {
        let tasks = fs::read_dir(format!("/proc/{pid}/task"));
        let numbers = tasks.into_iter().flatten().flatten().filter_map(|task| {
            let outer = task.file_name().to_str()?.parse::<i32>().ok()?;
            let status = fs::read_to_string(task.path().join("status")).ok()?;
            let line = status
                .lines()
                .find_map(|line| line.strip_prefix("NSpid:"))?;
            let inner = line.split_ascii_whitespace().last()?.parse().ok()?;
            Some((inner, outer))
        });
        Self(numbers.take(THREADS_MAX).collect())
    }

    pub(super) fn outer(&self, inner: i32) -> Option<i32> {
        self.0.get(&inner).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_begin_of_a_file_counts() {
        let line = "7f10-7f20 r--p 00000000 08:01 42     /usr/lib/libpython3.11.so.1.0 (deleted)";
        let found = first_of_file(line);
        assert_eq!(
            found,
            Some(("7f10-7f20", 0x7f10, "/usr/lib/libpython3.11.so.1.0"))
        );
        for line in [
            "7f10-7f20 r--p 00001000 08:01 42     /usr/lib/a",
            "7f10-7f20 r--p 00000000 00:00 0      [heap]",
            "7f10-7f20 r--p",
            "",
        ] {
            assert_eq!(first_of_file(line), None, "{line}");
        }
    }

    #[test]
    fn threads_of_this_process_have_their_numbers() {
        let pid = std::process::id() as i32;
        let tids = Tids::of(pid);
        assert!(tids.0.values().any(|tid| *tid == pid));
    }
}
