//! Limits of an import, in addition to those that a reader defines for its own format.

/// Events between two checks of the cancellation flag.
pub(crate) const EVENTS_PER_CHECK: u32 = 4096;
/// Text sources are held in memory during merging.
pub(crate) const TEXT_BYTES_MAX: u64 = 256 << 20;
/// Profiles are held in memory during merging.
pub(crate) const PROFILE_BYTES_MAX: u64 = 4 << 30;
/// Maximum number of examples in the log for each kind of bad record.
pub(crate) const LOG_EXAMPLES_MAX: usize = 5;
/// Maximum length of a line of a request log; servers write shorter lines.
pub(crate) const REQUEST_LINE_BYTES_MAX: u64 = 1 << 20;
/// Maximum weight of a JSON value in memory, see `importers::requests::document`: about 1 GiB.
pub(crate) const REQUEST_DOCUMENT_WEIGHT_MAX: u64 = 1 << 24;
/// Maximum number of requests of a file that are buffered until earlier ones have ended.
pub(crate) const REQUESTS_PENDING_MAX: usize = 1 << 16;
/// Maximum size of the texts of these requests.
pub(crate) const REQUESTS_PENDING_BYTES_MAX: usize = 128 << 20;
/// Maximum size of one text of a request.
pub(crate) const REQUEST_TEXT_BYTES_MAX: usize = 4 << 10;
/// Maximum size of distinct texts of requests: URLs that are all different must not fill the
/// memory.
pub(crate) const REQUEST_TEXTS_BYTES_MAX: usize = 256 << 20;
/// Maximum nesting depth of directories in a source.
pub(crate) const SOURCE_DEPTH_MAX: usize = 24;
pub(crate) const SOURCE_FILES_MAX: usize = 1 << 20;
pub(crate) const DIGEST_BUFFER_BYTES: usize = 256 << 10;
/// Maximum total size of cached recordings.
pub(crate) const CACHE_BYTES_MAX: u64 = 8 << 30;
/// A cached recording that was used this recently is never removed, because it may be in use.
pub(crate) const CACHE_IN_USE_SECONDS: u64 = 600;
/// Age at which leftovers of interrupted imports are removed from the cache.
pub(crate) const CACHE_LEFTOVER_SECONDS: u64 = 24 * 3600;
/// Maximum number of CPUs: twice the number that Linux can be built for.
pub(crate) const CPUS_MAX: usize = 1 << 14;
