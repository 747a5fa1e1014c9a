//! Settings of the allocator, where it is the GNU C library's: what is given back goes back to the kernel.

/// Blocks of what is kept, tables of symbols and the like are mappings of their own.
#[cfg(target_env = "gnu")]
const MAPPING_BYTES_MIN: i32 = 32 << 10;
/// Threads share their heaps: each of its own would keep what it once needed.
#[cfg(target_env = "gnu")]
const HEAPS_MAX: i32 = 2;

/// Before any thread begins.
#[cfg(target_env = "gnu")]
#[allow(unsafe_code)]
pub(crate) fn set() {
    // SAFETY: both are numbers that the library takes at any time.
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, HEAPS_MAX);
        libc::mallopt(libc::M_MMAP_THRESHOLD, MAPPING_BYTES_MIN);
    }
}

/// Gives back what is free.
#[cfg(target_env = "gnu")]
#[allow(unsafe_code)]
pub(crate) fn trim() {
    // SAFETY: nothing that is in use is touched.
    unsafe {
        libc::malloc_trim(0);
    }
}

#[cfg(not(target_env = "gnu"))]
pub(crate) fn set() {}

#[cfg(not(target_env = "gnu"))]
pub(crate) fn trim() {}
