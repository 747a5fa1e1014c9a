//! Every bound of this crate, in one place.

/// What a writer may hold, and how it cuts its files. The defaults suit every recording; tests
/// make them small.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Rows a table holds back so that late ones still find their place, in bytes of rows.
    pub reorder_bytes: usize,
    /// Late rows a table holds before it writes them out as one sorted run, in bytes of rows.
    pub late_bytes: usize,
    /// Rows of a full row group.
    pub row_group_rows: u64,
    /// Rows of a row group as long as the file is small, so that small tables are read in parallel.
    pub row_group_rows_small: u64,
    /// A file is small up to so many rows.
    pub small_file_rows: u64,
    /// Rows of a data page, the unit of pruning.
    pub page_rows: usize,
    /// Bytes of plain text that end a data page early.
    pub page_bytes: usize,
    /// Dictionary of a column chunk; beyond it values are stored plainly.
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

/// Memory for reading all runs of late rows of one table back at once.
pub(crate) const MERGE_BYTES: usize = 16 << 20;
/// Least read buffer of one run.
pub(crate) const MERGE_RUN_BYTES_MIN: usize = 4 << 10;
/// Rows handed to an encoder at once: columns that stay in the cache from one thread to
/// the other.
pub(crate) const BATCH_ROWS: usize = 8192;
/// Batches waiting for an encoder thread.
pub(crate) const BATCHES_QUEUED: usize = 8;
/// Encoded bytes that end a row group early, whatever its rows.
pub(crate) const ROW_GROUP_BYTES: usize = 64 << 20;
/// Compression level of zstd.
pub(crate) const ZSTD_LEVEL: i32 = 1;
/// Rows of a batch handed to whoever reads.
pub(crate) const READ_BATCH_ROWS: usize = 16_384;
/// Parts that a scan is cut into at least, where it has the rows: windows and small recordings have
/// one or two row groups, and one thread would read them.
pub(crate) const PARTS: usize = 2;
/// Rows of a part that is cut off: dictionaries are read once for each.
pub(crate) const PART_ROWS_MIN: usize = 25_000;
/// The same of a window whose columns stay in memory, where a part costs nothing: threads that come
/// from other tables of an answer find something left to do.
pub(crate) const KEPT_PARTS: usize = 8;
pub(crate) const KEPT_PART_ROWS_MIN: usize = 10_000;
/// Rows of a window whose columns stay in memory: some ten MiB.
pub(crate) const KEPT_ROWS: u64 = 1 << 18;
/// Bytes of a manifest, which names a few dozen files.
pub(crate) const MANIFEST_BYTES: u64 = 16 << 20;
/// Bytes of all checksums, which are one part in 4096 of a recording.
pub(crate) const CHECKSUMS_BYTES: u64 = 1 << 30;
