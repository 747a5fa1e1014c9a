//! Which files that run on this machine have the functions that look up names, and those that were
//! asked for.
//!
//! Looked for in a thread of its own, because files of others may answer late: `/proc/PID/map_files`
//! leads to the file that a process has mapped, wherever its mount namespace has it, and also if it
//! was deleted or another one has its name.

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

/// What a process has mapped is read up to here.
const MAPS_MAX: u64 = 8 << 20;
/// Files are remembered up to this count.
const FILES_MAX: usize = 100_000;

/// A file whose functions are to be watched.
#[derive(Debug)]
pub(crate) struct Library {
    pub(crate) file: File,
    /// For people.
    pub(crate) path: String,
    pub(crate) functions: Vec<(Function, u64)>,
    /// Those that were asked for.
    pub(crate) spots: Vec<Spot>,
}

/// What is looked for.
#[derive(Debug, Clone, Default)]
pub(crate) struct Wanted {
    pub(crate) lookups: bool,
    pub(crate) probes: Arc<[ProbeSpec]>,
}

/// What the search found.
#[derive(Debug)]
pub(crate) enum Found {
    Library(Library),
    /// A program of 32 bits, whose functions are called otherwise.
    Narrow,
    /// A file that was asked for has nothing of it, and why or what is near: by its number among what
    /// was asked for.
    Lacking {
        number: usize,
        path: String,
        lacking: Lacking,
    },
    /// No file has that name; names that are near.
    NoFile {
        number: usize,
        near: Vec<String>,
    },
    /// A round is over.
    Done,
}

/// A search that goes on as long as this lives.
pub(crate) struct Finder {
    pids: Sender<Vec<i32>>,
    pub(crate) found: Receiver<Found>,
}

impl Finder {
    /// Begins with all processes that there are.
    pub(crate) fn start(wanted: Wanted) -> io::Result<Self> {
        let (pids, asked) = mpsc::channel::<Vec<i32>>();
        let (tell, found) = mpsc::channel();
        thread::Builder::new()
            .name("libraries".into())
            .spawn(move || search(wanted, &asked, &tell))?;
        Ok(Self { pids, found })
    }

    /// Looks at these processes (again).
    pub(crate) fn look(&self, pids: Vec<i32>) {
        // One that has ended finds nothing more.
        let _ = self.pids.send(pids);
    }
}

fn search(wanted: Wanted, asked: &Receiver<Vec<i32>>, tell: &Sender<Found>) {
    // It reads files of others.
    drop::privileges(false);
    let mut known = Known::new(wanted);
    let mut pids = all();
    if known.look_on_disk(tell).is_err() {
        return;
    }
    loop {
        let mut seen = HashSet::new();
        for pid in &pids {
            if known.look(*pid, &mut seen, tell).is_err() {
                return;
            }
        }
        if known.tell_missing(tell).is_err() || tell.send(Found::Done).is_err() {
            return;
        }
        let Ok(next) = asked.recv() else { return };
        pids = next;
    }
}

fn all() -> Vec<i32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.collect()
}

/// Device, number and time of change: another file of the same number is another one.
type Identity = (u64, u64, i64, i64);

#[derive(Default)]
struct Known {
    files: HashSet<Identity>,
    wanted: Wanted,
    /// Names of files, for what no file was seen for. Only in the first round.
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

    /// Looks at files that were asked for, which nobody may have mapped.
    fn look_on_disk(&mut self, tell: &Sender<Found>) -> Result<(), mpsc::SendError<Found>> {
        let wanted = Arc::clone(&self.wanted.probes);
        for path in wanted.iter().flat_map(|spec| on_disk(&spec.file)) {
            if let Ok(Some(file)) = self.open(&path) {
                self.examine(file, path.display().to_string(), tell)?;
            }
        }
        Ok(())
    }

    /// Once: what had no file.
    fn tell_missing(&mut self, tell: &Sender<Found>) -> Result<(), mpsc::SendError<Found>> {
        for (number, mut near) in self.near.drain(..) {
            each_name(&mut |name| near.see(name));
            let near = near.names();
            tell.send(Found::NoFile { number, near })?;
        }
        Ok(())
    }

    /// Looks for what is wanted in a file.
    fn examine(
        &mut self,
        file: File,
        path: String,
        tell: &Sender<Found>,
    ) -> Result<(), mpsc::SendError<Found>> {
        for (_, near) in &mut self.near {
            near.see(base(&path));
        }
        let specs = &self.wanted.probes;
        let meant = |number: &usize| specs[*number].file.fits(&path);
        let numbers: Vec<usize> = (0..specs.len()).filter(meant).collect();
        self.near.retain(|(number, _)| !numbers.contains(number));
        // What cannot be read has nothing that can be watched.
        let (spots, lacking) = spots::spots(&file, specs, &numbers).unwrap_or_default();
        for (number, lacking) in lacking {
            let path = path.clone();
            tell.send(Found::Lacking {
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
            Lookups::Narrow => tell.send(Found::Narrow),
            Lookups::Functions(functions) if functions.is_empty() && spots.is_empty() => Ok(()),
            Lookups::Functions(functions) => tell.send(Found::Library(Library {
                file,
                path,
                functions,
                spots,
            })),
        }
    }

    /// Looks at what a process runs. `seen` are files of this round, by what maps call them.
    fn look(
        &mut self,
        pid: i32,
        seen: &mut HashSet<(String, u64)>,
        tell: &Sender<Found>,
    ) -> Result<(), mpsc::SendError<Found>> {
        let folder = format!("/proc/{pid}");
        // A process that has ended tells nothing; one of the kernel has mapped nothing.
        for mapping in mappings(Path::new(&folder)).unwrap_or_default() {
            if !seen.insert((mapping.device, mapping.inode)) {
                continue;
            }
            let place = format!("{folder}/map_files/{}", mapping.range);
            let Ok(Some(file)) = self.open(Path::new(&place)) else {
                continue;
            };
            self.examine(file, mapping.path, tell)?;
        }
        Ok(())
    }

    /// Opens a file that was not seen before. Devices are left alone: opening them may do things.
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

/// Functions of a file that look up names.
fn lookups(file: &File) -> Lookups {
    let names = Function::ALL.map(Function::name);
    let functions = match elf::functions(file, &names) {
        Ok(Elf::Functions(functions)) => functions,
        Ok(Elf::Narrow) => return Lookups::Narrow,
        // What cannot be read has nothing that can be watched.
        Ok(Elf::Foreign) | Err(_) => Vec::new(),
    };
    let can_be_read = |(_, offset): &(usize, u64)| is_there(file, *offset);
    let functions = functions.into_iter().filter(can_be_read);
    let functions = functions.map(|(which, offset)| (Function::ALL[which], offset));
    Lookups::Functions(functions.collect())
}

/// The kernel will read it too, and must not have to wait.
fn is_there(file: &File, offset: u64) -> bool {
    file.read_at(&mut [0; 16], offset).is_ok()
}

/// A part of a file that can be executed.
#[derive(Debug, PartialEq, Eq)]
struct Mapping {
    /// As `map_files` calls it.
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
        // Maps fill up with zeros, `map_files` does not.
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
        let (tell, found) = mpsc::channel();
        let mut known = Known::new(Wanted {
            lookups: true,
            ..Wanted::default()
        });
        let pid = std::process::id() as i32;
        for round in 0..2 {
            known.look(pid, &mut HashSet::new(), &tell).unwrap();
            let libraries = found
                .try_iter()
                .filter(|found| matches!(found, Found::Library(_)));
            let count = libraries.count();
            // Not where map_files may not be read, or where libc is part of this program.
            assert!(count <= 2 && (round == 0 || count == 0), "{count}");
        }
        assert!(!known.files.is_empty() || rustix::process::getuid().as_raw() != 0);
    }
}
