//! All limits of this crate.

/// Limits of a writer's buffers and files. The defaults suit every recording; tests use small
/// values.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Size of the rows a table buffers, so that late rows can still be sorted in.
    pub reorder_bytes: usize,
    /// Size of the late rows a table buffers before they are written as a sorted run.
    pub late_bytes: usize,
    /// Rows of a full row group.
    pub row_group_rows: u64,
    /// Rows of a row group while the file is small, so that small tables are read in parallel.
    pub row_group_rows_small: u64,
    /// A file is small up to this number of rows.
    pub small_file_rows: u64,
    /// Rows of a data page, the unit of pruning.
    pub page_rows: usize,
    /// Bytes of plain text that end a data page early.
    pub page_bytes: usize,
    /// Maximum size of the dictionary of a column chunk; further values are stored plainly.
    pub dictionary_bytes: usize,
    /// Rows of a file.
    pub file_rows: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            reorder_bytes: 8 << 20,
            late_bytes: 4 << 20,
            row_group_rows: 1 << 20,
            row_group_rows_small: 1 << 17,
            small_file_rows: 1 << 20,
            page_rows: 20_000,
            page_bytes: 1 << 20,
            dictionary_bytes: 4 << 20,
            file_rows: 100_000_000,
        }
    }
}

/// Memory for reading all runs of late rows of a table back at once.
pub(crate) const MERGE_BYTES: usize = 16 << 20;
/// Minimum read buffer of a run.
pub(crate) const MERGE_RUN_BYTES_MIN: usize = 4 << 10;
/// Rows passed to an encoder at once: columns that stay in the cache when another thread takes
/// over.
pub(crate) const BATCH_ROWS: usize = 8192;
/// Blocks waiting for an encoder thread.
pub(crate) const BATCHES_QUEUED: usize = 8;
/// Encoded bytes that end a row group early, whatever its rows.
pub(crate) const ROW_GROUP_BYTES: usize = 64 << 20;
/// Compression level of zstd.
pub(crate) const ZSTD_LEVEL: i32 = 1;
/// Rows of a batch passed to readers.
pub(crate) const READ_BATCH_ROWS: usize = 16_384;
/// Minimum number of parts of a scan, if it has enough rows: windows and small recordings have one
/// or two row groups, which one thread would read.
pub(crate) const PARTS: usize = 2;
/// Minimum rows of such a part, since each part decodes the dictionaries again.
pub(crate) const PART_ROWS_MIN: usize = 25_000;
/// The same for a window with cached columns, where a part costs nothing: threads that finish other
/// tables of an answer find work to do.
pub(crate) const CACHED_PARTS: usize = 8;
pub(crate) const CACHED_PART_ROWS_MIN: usize = 10_000;
/// Maximum rows of a cached window: about ten MiB.
pub(crate) const CACHED_ROWS: u64 = 1 << 18;
/// Maximum size of a manifest, which lists a few dozen files.
pub(crate) const MANIFEST_BYTES: u64 = 16 << 20;
/// Maximum size of all checksums, which are 1/4096 of a recording.
pub(crate) const CHECKSUMS_BYTES: u64 = 1 << 30;
