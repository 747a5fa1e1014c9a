//! Settings of glibc's allocator, so that freed memory returns to the kernel.

/// Kept blocks, symbol tables and the like get their own mappings.
#[cfg(target_env = "gnu")]
const MAPPING_BYTES_MIN: i32 = 32 << 10;
/// Threads share arenas: separate ones would each retain their peak.
#[cfg(target_env = "gnu")]
const HEAPS_MAX: i32 = 2;

/// Before any thread starts.
#[cfg(target_env = "gnu")]
#[allow(unsafe_code)]
pub(crate) fn set() {
    // SAFETY: both options may be set at any time.
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, HEAPS_MAX);
        libc::mallopt(libc::M_MMAP_THRESHOLD, MAPPING_BYTES_MIN);
    }
}

/// Returns free memory to the kernel.
#[cfg(target_env = "gnu")]
#[allow(unsafe_code)]
pub(crate) fn trim() {
    // SAFETY: memory in use is not touched.
    unsafe {
        libc::malloc_trim(0);
    }
}

#[cfg(not(target_env = "gnu"))]
pub(crate) fn set() {}

#[cfg(not(target_env = "gnu"))]
pub(crate) fn trim() {}
