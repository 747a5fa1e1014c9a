//! Stack memory, read as needed.

use std::io;

/// Bytes per read.
const CHUNK: usize = 16 << 10;
/// Maximum bytes read of one stack.
const BYTES_MAX: usize = 512 << 10;

pub(super) struct Memory {
    /// `None` if it is a copy.
    pid: Option<i32>,
    begin: u64,
    bytes: Vec<u8>,
    read: usize,
}

impl Memory {
    pub(super) fn copied(sp: u64, bytes: &[u8]) -> Self {
        Self {
            pid: None,
            begin: sp,
            bytes: bytes.to_vec(),
            read: 0,
        }
    }

    pub(super) fn of(pid: i32, sp: u64) -> Self {
        let mut memory = Self {
            pid: Some(pid),
            begin: sp & !7,
            bytes: Vec::new(),
            read: 0,
        };
        memory.fetch(sp & !7);
        memory
    }

    pub(super) fn is_there(&self) -> bool {
        !self.bytes.is_empty()
    }

    /// The word at an address.
    pub(super) fn at(&mut self, address: u64) -> Option<u64> {
        if let Some(found) = self.known(address) {
            return Some(found);
        }
        if self.pid.is_none() || self.read >= BYTES_MAX {
            return None;
        }
        self.fetch(address & !7);
        self.known(address)
    }

    fn known(&self, address: u64) -> Option<u64> {
        let place = usize::try_from(address.checked_sub(self.begin)?).ok()?;
        let bytes = self.bytes.get(place..place.checked_add(8)?)?;
        Some(u64::from_le_bytes(bytes.try_into().ok()?))
    }

    fn fetch(&mut self, from: u64) {
        let Some(pid) = self.pid else { return };
        self.begin = from;
        self.bytes.resize(CHUNK, 0);
        let read = read(pid, from, &mut self.bytes).unwrap_or(0);
        self.bytes.truncate(read);
        // Unreadable memory must not be requested again and again.
        self.read += read.max(CHUNK / 4);
    }
}

/// Reads memory of another process, up to the first unreadable page.
#[allow(unsafe_code)]
pub(super) fn read(pid: i32, from: u64, to: &mut [u8]) -> io::Result<usize> {
    const PAGE: u64 = 4096;
    const PARTS: usize = CHUNK / PAGE as usize + 1;
    let local = libc::iovec {
        iov_base: to.as_mut_ptr().cast(),
        iov_len: to.len(),
    };
    // One part per page: a part is read completely or not at all.
    let mut parts = [libc::iovec {
        iov_base: std::ptr::null_mut(),
        iov_len: 0,
    }; PARTS];
    let (mut at, mut left, mut count) = (from, to.len() as u64, 0);
    while left > 0 && count < PARTS {
        let length = (PAGE - at % PAGE).min(left);
        parts[count] = libc::iovec {
            iov_base: at as usize as *mut libc::c_void,
            iov_len: length as usize,
        };
        at = at.checked_add(length).ok_or(io::ErrorKind::InvalidInput)?;
        left -= length;
        count += 1;
    }
    // SAFETY: `local` is writable memory of ours; the kernel checks the addresses of the other
    // process against its mappings.
    let read = unsafe {
        libc::process_vm_readv(
            pid,
            &raw const local,
            1,
            parts.as_ptr(),
            count as libc::c_ulong,
            0,
        )
    };
    usize::try_from(read).map_err(|_| io::Error::last_os_error())
}
