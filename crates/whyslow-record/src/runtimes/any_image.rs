//! Walks over memory of arbitrary bytes, for fuzzing.

use super::memory::{Log, Memory};
use super::python::Python;
use super::ruby::Ruby;
use super::texts::Names;

/// Every address is readable: otherwise few of them would be.
struct Ring<'b>(&'b [u8]);

impl Memory for Ring<'_> {
    fn read(&self, places: &[(u64, usize)], into: &mut [u8]) -> bool {
        let mut rest = into;
        for (address, count) in places {
            let begin = (address % self.0.len().max(1) as u64) as usize;
            let there = begin.checked_add(*count);
            let there = there.and_then(|end| self.0.get(begin..end));
            let Some((now, later)) = rest.split_at_mut_checked(*count) else {
                return false;
            };
            match there {
                Some(there) => now.copy_from_slice(there),
                None => return false,
            }
            rest = later;
        }
        true
    }
}

const THREADS_MAX: usize = 4;

/// Walks an image, the first byte of which selects the runtime; returns the number of bytes that
/// the walks read.
pub fn walk_image(bytes: &[u8]) -> usize {
    const VERSIONS: &[&str] = &[
        "2.7.8", "3.0.1", "3.1.2", "3.2.0", "3.3.0", "4.0.0", "4.0.9",
    ];
    let Some((which, bytes)) = bytes.split_first() else {
        return 0;
    };
    let memory = Ring(bytes);
    let which = usize::from(*which);
    match which % 13 {
        minor @ 0..=4 => python(Python::of_version(0, minor as u32 + 8), &memory),
        5 => python(Python::from_runtime(&memory, 0), &memory),
        version => ruby(VERSIONS.get(version - 6), &memory),
    }
}

fn python(python: Option<Python>, memory: &dyn Memory) -> usize {
    let Some(mut python) = python else { return 0 };
    let threads = python.threads(memory).unwrap_or_default();
    let addresses = threads.iter().map(|thread| thread.address);
    let addresses = addresses.take(THREADS_MAX).chain([0]);
    let mut names = Names::default();
    let read = addresses.map(|at| {
        let mut log = Log::default();
        // Correctness is not checked here.
        let _ = python.stack(memory, at, (&mut log, &mut names));
        log.size()
    });
    read.sum()
}

fn ruby(version: Option<&&str>, memory: &dyn Memory) -> usize {
    let Some(mut ruby) = version.and_then(|version| Ruby::of_version(0, version)) else {
        return 0;
    };
    let threads = ruby.threads(memory).unwrap_or_default();
    let addresses = threads.iter().map(|thread| thread.address);
    let addresses = addresses.take(THREADS_MAX).chain([0]);
    let mut names = Names::default();
    let read = addresses.map(|at| {
        let mut log = Log::default();
        // Correctness is not checked here.
        let _ = ruby.stack(memory, at, (&mut log, &mut names));
        log.size()
    });
    read.sum()
}
