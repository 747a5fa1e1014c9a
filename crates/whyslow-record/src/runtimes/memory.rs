//! Memory of another process, read while it runs.
//!
//! The process is not stopped, so the data may be inconsistent. A [`Log`] stores what a walk read;
//! if all of it reads the same a second time, the walk saw one state. In the next round, the same
//! comparison shows with one system call that a thread has not moved.

use std::io::{IoSlice, IoSliceMut};

/// Source of a walk: a process, or an image in tests.
pub(crate) trait Memory {
    /// Reads these ranges into consecutive bytes. `false` unless all were read.
    fn read(&self, places: &[(u64, usize)], into: &mut [u8]) -> bool;
}

/// The memory of a process, by pid.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ProcessMemory(pub(crate) i32);

/// The kernel's limit of ranges per call.
const PLACES_MAX: usize = 1024;

impl Memory for ProcessMemory {
    fn read(&self, places: &[(u64, usize)], into: &mut [u8]) -> bool {
        let mut rest = into;
        for places in places.chunks(PLACES_MAX) {
            let wanted = places.iter().map(|(_, count)| count).sum();
            let Some((now, later)) = rest.split_at_mut_checked(wanted) else {
                return false;
            };
            if vm_read(self.0, places, now) != Some(wanted) {
                return false;
            }
            rest = later;
        }
        true
    }
}

#[allow(unsafe_code)] // no library wraps this call
fn vm_read(pid: i32, places: &[(u64, usize)], into: &mut [u8]) -> Option<usize> {
    let remote = |(address, count): &(u64, usize)| libc::iovec {
        iov_base: *address as usize as *mut libc::c_void,
        iov_len: *count,
    };
    let remote: Vec<libc::iovec> = places.iter().map(remote).collect();
    let mut local = [IoSliceMut::new(into)];
    // SAFETY: the kernel writes only to `local`, which has the layout of an iovec (guaranteed) and
    // lives until the call returns; addresses in `remote` belong to another address space, and are
    // never dereferenced in this one.
    let count = unsafe {
        libc::process_vm_readv(
            pid,
            local.as_mut_ptr().cast::<libc::iovec>(),
            1,
            remote.as_ptr(),
            remote.len() as libc::c_ulong,
            0,
        )
    };
    const { assert!(size_of::<IoSlice<'_>>() == size_of::<libc::iovec>()) };
    usize::try_from(count).ok()
}

/// Maximum size of a log, more than any real stack needs.
const LOG_BYTES_MAX: usize = 1 << 20;

/// What a walk read, in order.
#[derive(Debug, Default, Clone)]
pub(crate) struct Log {
    places: Vec<(u64, usize)>,
    bytes: Vec<u8>,
}

impl Log {
    pub(crate) fn clear(&mut self) {
        self.places.clear();
        self.bytes.clear();
    }

    /// Reads, and stores the result.
    pub(crate) fn bytes(&mut self, memory: &dyn Memory, from: u64, count: usize) -> Option<&[u8]> {
        let begin = self.bytes.len();
        if begin + count > LOG_BYTES_MAX || from.checked_add(count as u64).is_none() {
            return None;
        }
        self.bytes.resize(begin + count, 0);
        if !memory.read(&[(from, count)], &mut self.bytes[begin..]) {
            self.bytes.truncate(begin);
            return None;
        }
        self.places.push((from, count));
        Some(&self.bytes[begin..])
    }

    pub(crate) fn word(&mut self, memory: &dyn Memory, from: u64) -> Option<u64> {
        let bytes = self.bytes(memory, from, 8)?;
        Some(u64::from_le_bytes(bytes.try_into().ok()?))
    }

    pub(crate) fn half(&mut self, memory: &dyn Memory, from: u64) -> Option<u32> {
        let bytes = self.bytes(memory, from, 4)?;
        Some(u32::from_le_bytes(bytes.try_into().ok()?))
    }

    /// Whether all of it reads the same again.
    pub(crate) fn holds(&self, memory: &dyn Memory, scratch: &mut Vec<u8>) -> bool {
        scratch.clear();
        scratch.resize(self.bytes.len(), 0);
        memory.read(&self.places, scratch) && *scratch == self.bytes
    }

    /// Bytes that were read.
    pub(crate) fn size(&self) -> usize {
        self.bytes.len()
    }

    /// Memory of the log.
    pub(crate) fn kept(&self) -> usize {
        self.places.capacity() * size_of::<(u64, usize)>() + self.bytes.capacity()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.places.is_empty()
    }
}

/// Reads integers from bytes, which may be too short.
pub(crate) fn word_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..)?.first_chunk().copied()?))
}

pub(crate) fn half_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..)?.first_chunk().copied()?))
}

/// Reads without storing: for data that is validated otherwise, or never changes.
pub(crate) fn bytes_of(memory: &dyn Memory, from: u64, count: usize) -> Option<Vec<u8>> {
    from.checked_add(count as u64)?;
    let mut bytes = vec![0; count];
    memory.read(&[(from, count)], &mut bytes).then_some(bytes)
}

pub(crate) fn word_of(memory: &dyn Memory, from: u64) -> Option<u64> {
    word_at(&bytes_of(memory, from, 8)?, 0)
}

pub(crate) fn half_of(memory: &dyn Memory, from: u64) -> Option<u32> {
    half_at(&bytes_of(memory, from, 4)?, 0)
}
