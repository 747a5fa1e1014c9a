//! Bounds of an import, beside those that a reader keeps for its own format.

/// Events between two looks at the flag that cancels.
pub(crate) const EVENTS_PER_CHECK: u32 = 4096;
/// Text sources are held in memory while they are merged.
pub(crate) const TEXT_BYTES_MAX: u64 = 256 << 20;
/// Profiles are held in memory while they are merged.
pub(crate) const PROFILE_BYTES_MAX: u64 = 4 << 30;
/// Examples of bad records that the log keeps for each kind.
pub(crate) const LOG_EXAMPLES_MAX: usize = 5;
/// A line of a log of requests; what a server writes of one request is shorter.
pub(crate) const REQUEST_LINE_BYTES_MAX: u64 = 1 << 20;
/// Requests of one file that wait for those that began before them and end later.
pub(crate) const REQUESTS_HELD_MAX: usize = 1 << 16;
/// Texts of these.
pub(crate) const REQUESTS_HELD_BYTES_MAX: usize = 128 << 20;
/// Bytes of one text of a request.
pub(crate) const REQUEST_TEXT_BYTES_MAX: usize = 4 << 10;
/// Distinct texts of requests: what asks for another address each time must not fill the memory.
pub(crate) const REQUEST_TEXTS_BYTES_MAX: usize = 256 << 20;
/// Folders in folders of a source.
pub(crate) const SOURCE_DEPTH_MAX: usize = 24;
pub(crate) const SOURCE_FILES_MAX: usize = 1 << 20;
pub(crate) const DIGEST_BUFFER_BYTES: usize = 256 << 10;
/// Recordings kept in the cache, together.
pub(crate) const CACHE_BYTES_MAX: u64 = 8 << 30;
/// A cached recording that was used this recently is never removed: somebody may be reading it.
pub(crate) const CACHE_IN_USE_SECONDS: u64 = 600;
/// What an interrupted import left in the cache is removed after this time.
pub(crate) const CACHE_LEFTOVER_SECONDS: u64 = 24 * 3600;
