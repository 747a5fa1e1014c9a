//! Finds the files of running processes that contain the DNS lookup functions and the requested
//! functions.
//!
//! Runs in a separate thread, because other users' file systems may be slow: `/proc/PID/map_files`
//! leads to the file that a process has mapped, in any mount namespace, even if it was deleted or
//! replaced.

pub(crate) mod elf;
mod notes;
mod spots;
mod symbols;

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;

use elf::Elf;
use rustix::fs::{Mode, OFlags};
use whyslow_model::lookup::Function;

use crate::probes::{Near, ProbeSpec, base, each_name, near, on_disk};
use crate::{drop, plain};

pub(crate) use elf::entry;
pub(crate) use spots::{Lacking, SPOTS_MAX, Spot};

/// Maximum bytes read from a process's maps.
const MAPS_MAX: u64 = 8 << 20;
/// Maximum number of known files.
const FILES_MAX: usize = 100_000;

/// A file with functions to probe.
#[derive(Debug)]
pub(crate) struct Library {
    pub(crate) file: File,
    /// For display.
    pub(crate) path: String,
    pub(crate) functions: Vec<(Function, u64)>,
    /// The requested functions and probes.
    pub(crate) spots: Vec<Spot>,
}

/// What to search for.
#[derive(Debug, Clone, Default)]
pub(crate) struct Wanted {
    pub(crate) lookups: bool,
    pub(crate) probes: Arc<[ProbeSpec]>,
}

/// Results of the search.
#[derive(Debug)]
pub(crate) enum Found {
    Library(Library),
    /// A 32-bit program, whose calling convention differs.
    Narrow,
    /// A requested file without the probe, with the reason or similar names; by number of the
    /// request.
    Lacking {
        number: usize,
        path: String,
        lacking: Lacking,
    },
    /// No file has that name; with similar names.
    NoFile {
        number: usize,
        near: Vec<String>,
    },
    /// A round is complete.
    Done,
}

/// A search that runs as long as this lives.
pub(crate) struct Finder {
    pids: Sender<Vec<i32>>,
    pub(crate) found: Receiver<Found>,
}

impl Finder {
    /// Starts with all running processes.
    pub(crate) fn start(wanted: Wanted) -> io::Result<Self> {
        let (pids, requests) = mpsc::channel::<Vec<i32>>();
        let (results, found) = mpsc::channel();
        thread::Builder::new()
            .name("libraries".into())
            .spawn(move || search(wanted, &requests, &results))?;
        Ok(Self { pids, found })
    }

    /// Scans these processes (again).
    pub(crate) fn scan(&self, pids: Vec<i32>) {
        // A search that has ended finds nothing more.
        let _ = self.pids.send(pids);
    }
}

fn search(wanted: Wanted, requests: &Receiver<Vec<i32>>, results: &Sender<Found>) {
    // It reads other users' files.
    drop::privileges(false);
    let mut known = Known::new(wanted);
    let mut pids = all();
    if known.scan_disk(results).is_err() {
        return;
    }
    loop {
        let mut seen = HashSet::new();
        for pid in &pids {
            if known.scan_process(*pid, &mut seen, results).is_err() {
                return;
            }
        }
        if known.report_missing(results).is_err() || results.send(Found::Done).is_err() {
            return;
        }
        let Ok(next) = requests.recv() else { return };
        pids = next;
    }
}

fn all() -> Vec<i32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.collect()
}

/// Device, inode and change time: inode numbers are reused.
type Identity = (u64, u64, i64, i64);

#[derive(Default)]
struct Known {
    files: HashSet<Identity>,
    wanted: Wanted,
    /// Similar file names for requests without a file. Only in the first round.
    near: Vec<(usize, Near)>,
}

impl Known {
    fn new(wanted: Wanted) -> Self {
        let files = wanted.probes.iter().enumerate();
        let near = files.map(|(number, spec)| (number, near(spec.file.shown())));
        Self {
            files: HashSet::new(),
            near: near.collect(),
            wanted,
        }
    }

    /// Searches requested files on disk, which no process may have mapped.
    fn scan_disk(&mut self, results: &Sender<Found>) -> Result<(), mpsc::SendError<Found>> {
        let wanted = Arc::clone(&self.wanted.probes);
        for path in wanted.iter().flat_map(|spec| on_disk(&spec.file)) {
            if let Ok(Some(file)) = self.open(&path) {
                self.examine(file, path.display().to_string(), results)?;
            }
        }
        Ok(())
    }

    /// Reports, once, requests without a file.
    fn report_missing(&mut self, results: &Sender<Found>) -> Result<(), mpsc::SendError<Found>> {
        for (number, mut near) in self.near.drain(..) {
            each_name(&mut |name| near.see(name));
            let near = near.names();
            results.send(Found::NoFile { number, near })?;
        }
        Ok(())
    }

    /// Searches a file for the functions and probes.
    fn examine(
        &mut self,
        file: File,
        path: String,
        results: &Sender<Found>,
    ) -> Result<(), mpsc::SendError<Found>> {
        for (_, near) in &mut self.near {
            near.see(base(&path));
        }
        let specs = &self.wanted.probes;
        let meant = |number: &usize| specs[*number].file.fits(&path);
        let numbers: Vec<usize> = (0..specs.len()).filter(meant).collect();
        self.near.retain(|(number, _)| !numbers.contains(number));
        // An unreadable file has nothing to probe.
        let (spots, lacking) = spots::spots(&file, specs, &numbers).unwrap_or_default();
        for (number, lacking) in lacking {
            let path = path.clone();
            results.send(Found::Lacking {
                number,
                path,
                lacking,
            })?;
        }
        let functions = if self.wanted.lookups {
            lookups(&file)
        } else {
            Lookups::Functions(Vec::new())
        };
        match functions {
            Lookups::Narrow => results.send(Found::Narrow),
            Lookups::Functions(functions) if functions.is_empty() && spots.is_empty() => Ok(()),
            Lookups::Functions(functions) => results.send(Found::Library(Library {
                file,
                path,
                functions,
                spots,
            })),
        }
    }

    /// Searches the files that a process has mapped. `seen` are the files of this round, as in
    /// maps.
    fn scan_process(
        &mut self,
        pid: i32,
        seen: &mut HashSet<(String, u64)>,
        results: &Sender<Found>,
    ) -> Result<(), mpsc::SendError<Found>> {
        let folder = format!("/proc/{pid}");
        // An exited process or a kernel thread has no mappings.
        for mapping in mappings(Path::new(&folder)).unwrap_or_default() {
            if !seen.insert((mapping.device, mapping.inode)) {
                continue;
            }
            let place = format!("{folder}/map_files/{}", mapping.range);
            let Ok(Some(file)) = self.open(Path::new(&place)) else {
                continue;
            };
            self.examine(file, mapping.path, results)?;
        }
        Ok(())
    }

    /// Opens a file that was not seen before. Devices are skipped: opening them may have side
    /// effects.
    fn open(&mut self, place: &Path) -> io::Result<Option<File>> {
        let path = rustix::fs::open(place, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
        let path = File::from(path);
        let about = path.metadata()?;
        let identity = (about.dev(), about.ino(), about.mtime(), about.mtime_nsec());
        let is_new = self.files.len() < FILES_MAX && self.files.insert(identity);
        if !about.is_file() || !is_new {
            return Ok(None);
        }
        Ok(Some(plain::open(&path)?.0))
    }
}

enum Lookups {
    Functions(Vec<(Function, u64)>),
    Narrow,
}

/// DNS lookup functions in a file.
fn lookups(file: &File) -> Lookups {
    let names = Function::ALL.map(Function::name);
    let functions = match elf::functions(file, &names) {
        Ok(Elf::Functions(functions)) => functions,
        Ok(Elf::Narrow) => return Lookups::Narrow,
        // An unreadable file has nothing to probe.
        Ok(Elf::Foreign) | Err(_) => Vec::new(),
    };
    let can_be_read = |(_, offset): &(usize, u64)| is_there(file, *offset);
    let functions = functions.into_iter().filter(can_be_read);
    let functions = functions.map(|(which, offset)| (Function::ALL[which], offset));
    Lookups::Functions(functions.collect())
}

/// The kernel will read it as well, and must not have to wait.
fn is_there(file: &File, offset: u64) -> bool {
    file.read_at(&mut [0; 16], offset).is_ok()
}

/// An executable mapping of a file.
#[derive(Debug, PartialEq, Eq)]
struct Mapping {
    /// As named in `map_files`.
    range: String,
    device: String,
    inode: u64,
    path: String,
}

fn mappings(folder: &Path) -> io::Result<Vec<Mapping>> {
    let mut text = Vec::new();
    let maps = File::open(folder.join("maps"))?;
    maps.take(MAPS_MAX).read_to_end(&mut text)?;
    let lines = text.split(|byte| *byte == b'\n');
    Ok(lines.filter_map(Mapping::parse).collect())
}

impl Mapping {
    /// `7f01a000-7f02b000 r-xp 00026000 fe:00 12345    /lib/libc.so.6`
    fn parse(line: &[u8]) -> Option<Self> {
        let line = String::from_utf8_lossy(line);
        let mut words = line.splitn(6, ' ');
        let (range, flags) = (words.next()?, words.next()?);
        let (_, device) = (words.next()?, words.next()?);
        let mut ends = range.split('-').map(|end| u64::from_str_radix(end, 16));
        // Maps pads addresses with zeros, `map_files` does not.
        let range = format!("{:x}-{:x}", ends.next()?.ok()?, ends.next()?.ok()?);
        let inode = words.next()?.parse().ok().filter(|inode| *inode != 0)?;
        flags.contains('x').then(|| Self {
            range,
            device: device.into(),
            inode,
            path: words.next().unwrap_or_default().trim_start().into(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_code_of_files_counts() {
        let check = |line: &str, expected: Option<(&str, u64, &str)>| {
            let found = Mapping::parse(line.as_bytes());
            let found = found
                .as_ref()
                .map(|found| (found.range.as_str(), found.inode, found.path.as_str()));
            assert_eq!(found, expected, "{line}");
        };
        check(
            "00007f0-7f1 r-xp 00026000 fe:00 12345                     /lib/a b.so (deleted)",
            Some(("7f0-7f1", 12345, "/lib/a b.so (deleted)")),
        );
        check("7f0-7f1 r--p 00026000 fe:00 12345 /lib/a.so", None);
        check("7f0-7f1 r-xp 00000000 00:00 0 [vdso]", None);
        check("7f0-7f1 r-xp 00000000 00:00 0", None);
        check("", None);
        check("7f0-7f1 r-xp", None);
        check("7fx-7f1 r-xp 00026000 fe:00 12345 /lib/a.so", None);
    }

    #[test]
    fn a_file_that_this_process_runs_is_opened_once() {
        let (results, found) = mpsc::channel();
        let mut known = Known::new(Wanted {
            lookups: true,
            ..Wanted::default()
        });
        let pid = std::process::id() as i32;
        for round in 0..2 {
            known
                .scan_process(pid, &mut HashSet::new(), &results)
                .unwrap();
            let libraries = found
                .try_iter()
                .filter(|found| matches!(found, Found::Library(_)));
            let count = libraries.count();
            // None where map_files is not readable, or where libc is linked statically.
            assert!(count <= 2 && (round == 0 || count == 0), "{count}");
        }
        assert!(!known.files.is_empty() || rustix::process::getuid().as_raw() != 0);
    }
}
