//! Finds the interpreter that a process runs, and the addresses of its variables.
//!
//! The files are opened through the process (`/proc/PID/map_files`, else its root), so that
//! processes in containers are found as well. Mappings and their names are untrusted: each file is
//! examined once, a few at most, and only regular ones are opened.

use std::collections::{HashMap, HashSet};
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::ops::Range;
use std::path::Path;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use crate::libraries::elf::{self, Extent};
use crate::plain;

/// A mapped file of an interpreter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Image {
    pub(super) name: String,
    /// Load bias: added to addresses of the file's symbols.
    bias: u64,
    symbols: HashMap<&'static str, Extent>,
}

impl Image {
    pub(super) fn address(&self, symbol: &str) -> Option<u64> {
        Some(self.symbols.get(symbol)?.address.wrapping_add(self.bias))
    }

    /// Address ranges of functions; a file has some of the alternative names.
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
/// Maximum number of files named like an interpreter; it has a program and a library or two.
const FILES_MAX: usize = 8;

/// The mapped file that has the first of these symbols, among those with one of these names.
pub(super) fn find(pid: i32, names: &[&str], symbols: &'static [&'static str]) -> Option<Image> {
    let mut maps = Vec::new();
    let file = File::open(format!("/proc/{pid}/maps")).ok()?;
    file.take(TEXT_MAX).read_to_end(&mut maps).ok()?;
    let maps = String::from_utf8_lossy(&maps);
    candidates(&maps, names).into_iter().find_map(|mapped| {
        // A deleted or unreadable file has no symbols; another one may.
        let file = open(pid, &mapped).ok()?;
        let found = elf::named(&file, symbols).ok()??;
        let symbols: HashMap<_, _> = found.found.iter().copied().collect();
        (!symbols.is_empty()).then(|| Image {
            name: mapped.name.to_owned(),
            bias: mapped.begin.wrapping_sub(found.begin),
            symbols,
        })
    })
}

/// Mapping of the start of a file.
#[derive(Debug, PartialEq, Eq)]
struct Mapped<'m> {
    range: &'m str,
    begin: u64,
    device: &'m str,
    inode: u64,
    path: &'m str,
    name: &'m str,
    is_deleted: bool,
}

/// Files with one of these names, each where it is mapped first.
fn candidates<'m>(maps: &'m str, names: &[&str]) -> Vec<Mapped<'m>> {
    let mut seen = HashSet::new();
    let begins = maps.lines().filter_map(first_of_file);
    let called = begins.filter(|mapped| names.iter().any(|name| mapped.name.starts_with(name)));
    let new = called.filter(|mapped| seen.insert((mapped.device, mapped.inode)));
    new.take(FILES_MAX).collect()
}

fn open(pid: i32, mapped: &Mapped<'_>) -> io::Result<File> {
    match plain::open_mapped(pid, mapped.range) {
        // Kernels before 5.9 require CAP_SYS_ADMIN for map_files.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied && !mapped.is_deleted => {
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
            let root = rustix::fs::open(format!("/proc/{pid}/root"), flags, Mode::empty())?;
            let (file, about) = plain::open_within(root, Path::new(mapped.path))?;
            // The path may lead to another file now.
            if about.st_ino != mapped.inode {
                return Err(Errno::NOENT.into());
            }
            Ok(file)
        }
        opened => opened,
    }
}

fn first_of_file(line: &str) -> Option<Mapped<'_>> {
    let mut words = line.split_ascii_whitespace();
    let range = words.next()?;
    let offset = words.nth(1)?;
    let (device, inode) = (words.next()?, words.next()?.parse().ok()?);
    let path = line.get(line.find('/')?..)?;
    if inode == 0 || u64::from_str_radix(offset, 16) != Ok(0) {
        return None;
    }
    let (begin, _) = range.split_once('-')?;
    let there = path.strip_suffix(" (deleted)");
    let is_deleted = there.is_some();
    let path = there.unwrap_or(path);
    Some(Mapped {
        range,
        begin: u64::from_str_radix(begin, 16).ok()?,
        device,
        inode,
        path,
        name: path.rsplit('/').next().unwrap_or(path),
        is_deleted,
    })
}

/// Maximum number of threads per process.
pub(super) const THREADS_MAX: usize = 4096;

/// Threads of a process by their ids in its own PID namespace.
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
        let expected = Mapped {
            range: "7f10-7f20",
            begin: 0x7f10,
            device: "08:01",
            inode: 42,
            path: "/usr/lib/libpython3.11.so.1.0",
            name: "libpython3.11.so.1.0",
            is_deleted: true,
        };
        assert_eq!(first_of_file(line), Some(expected));
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
    fn each_file_is_looked_at_once_and_few_are() {
        let mut maps = String::new();
        for number in 0..1000 {
            let line = format!("{number:x}000-{number:x}fff r--p 00000000 08:01 42 /a/python3\n");
            maps.push_str(&line);
        }
        maps.push_str("f000000-f001000 r--p 00000000 08:02 42 /a/libpython3.so\n");
        let found = candidates(&maps, &["python", "libpython"]);
        let begins: Vec<_> = found.iter().map(|mapped| mapped.begin).collect();
        assert_eq!(begins, [0, 0xf00_0000]);
        let line = |inode| format!("1000-2000 r--p 0 08:01 {inode} /python\n");
        let many: Vec<String> = (0..1000).map(line).collect();
        assert_eq!(candidates(&many.concat(), &["python"]).len(), FILES_MAX);
    }

    #[test]
    fn a_pipe_in_the_place_of_a_file_is_not_waited_for() {
        let root = tempfile::TempDir::new().expect("a folder");
        let pipe = root.path().join("python3");
        let kind = rustix::fs::FileType::Fifo;
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, kind, Mode::RUSR, 0).expect("a pipe");
        let opened = rustix::fs::open(root.path(), OFlags::PATH, Mode::empty());
        let opened = plain::open_within(opened.expect("it is there"), Path::new("/python3"));
        assert_eq!(opened.err(), Some(Errno::INVAL));
    }

    #[test]
    fn threads_of_this_process_have_their_numbers() {
        let pid = std::process::id() as i32;
        let tids = Tids::of(pid);
        assert!(tids.0.values().any(|tid| *tid == pid));
    }
}
