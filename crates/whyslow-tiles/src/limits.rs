//! All limits of this crate.

/// Items of a full block, the unit in which items of a lane are read.
pub(crate) const BLOCK_ITEMS: u32 = 512;
/// Encoded size that ends a block early.
pub(crate) const BLOCK_BYTES: usize = 16 << 10;
/// Uncompressed size of a full page, which small blocks share.
pub(crate) const PAGE_BYTES: usize = 8 << 10;
/// Uncompressed size that a reader allocates at most: a page, and the block that filled it.
pub(crate) const PAGE_BYTES_MAX: usize = PAGE_BYTES + BLOCK_BYTES + (1 << 10);
/// Encoded items of all lanes that are buffered until their block is full; beyond this the largest
/// lanes are written early.
pub(crate) const PENDING_BYTES: usize = 96 << 20;
/// Size of the index of one lane, or of the directory, that a reader allocates at most.
pub(crate) const INDEX_BYTES_MAX: u64 = 512 << 20;
/// Size of `about.json`.
pub(crate) const ABOUT_BYTES_MAX: u64 = 64 << 10;
/// Items of one cell that stay separate, so that a tile can show them; more are summed.
pub(crate) const SEPARATE_ITEMS: usize = 7;
/// Items of an open smallest cell; more are summed early.
pub(crate) const CELL_ITEMS_MAX: usize = 64;
/// Columns of stored heat maps and series: more than any chart has.
pub(crate) const COLUMNS: u64 = 1 << 16;
/// Least average number of rows in a column of a heat map, unless it has few columns.
pub(crate) const ROWS_OF_COLUMN: u64 = 128;
pub(crate) const COLUMNS_LEAST: u64 = 2048;
/// zstd compression level.
pub(crate) const ZSTD_LEVEL: i32 = 1;
/// Size of the manifest and of the checksums of a recording.
pub(crate) const MANIFEST_BYTES_MAX: u64 = 1 << 30;
/// Total size of the tiles in the cache.
pub(crate) const CACHE_BYTES_MAX: u64 = 4 << 30;
/// Tiles in the cache that were opened this recently are never removed.
pub(crate) const IN_USE_SECONDS: u64 = 600;
/// Age at which an unfinished build is removed.
pub(crate) const UNFINISHED_SECONDS: u64 = 24 * 3600;
