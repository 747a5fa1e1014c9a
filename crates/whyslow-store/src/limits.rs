//! Every bound of this crate, in one place.

/// Rows a table holds back so that late ones still find their place, in bytes of rows.
pub(crate) const REORDER_BYTES: usize = 32 << 20;
/// Late rows a table holds before it writes them out as one sorted run.
pub(crate) const LATE_BYTES: usize = 32 << 20;
/// Memory for reading all runs of late rows of one table back at once.
pub(crate) const MERGE_BYTES: usize = 16 << 20;
/// Least read buffer of one run.
pub(crate) const MERGE_RUN_BYTES_MIN: usize = 4 << 10;
/// Rows handed to the Parquet encoder at once.
pub(crate) const BATCH_ROWS: usize = 65_536;
/// Batches waiting for an encoder thread.
pub(crate) const BATCHES_QUEUED: usize = 2;

/// Rows of a full row group.
pub(crate) const ROW_GROUP_ROWS: u64 = 1 << 20;
/// Rows of a row group as long as the table is small, so that small tables are read in parallel.
pub(crate) const ROW_GROUP_ROWS_SMALL: u64 = 1 << 17;
/// A table is small up to so many rows.
pub(crate) const SMALL_TABLE_ROWS: u64 = 1 << 20;
/// Encoded bytes that end a row group early, whatever its rows.
pub(crate) const ROW_GROUP_BYTES: usize = 128 << 20;
/// Rows of a data page, the unit of pruning.
pub(crate) const PAGE_ROWS: usize = 20_000;
/// Dictionary of a column chunk; beyond it values are stored plainly.
pub(crate) const DICTIONARY_BYTES: usize = 4 << 20;
/// Rows of a file.
pub(crate) const FILE_ROWS: u64 = 100_000_000;
/// Compression level of zstd.
pub(crate) const ZSTD_LEVEL: i32 = 3;
