//! Every bound of this crate, in one place.

/// Items of a block: what is read of one lane at once.
pub(crate) const BLOCK_ITEMS: u32 = 512;
/// Encoded bytes that end a block early, whatever its items.
pub(crate) const BLOCK_BYTES: usize = 16 << 10;
/// Plain bytes of a page, in which small blocks lie together.
pub(crate) const PAGE_BYTES: usize = 8 << 10;
/// Plain bytes that a reader makes room for: a page, and the block that filled it.
pub(crate) const PAGE_BYTES_MAX: usize = PAGE_BYTES + BLOCK_BYTES + (1 << 10);
/// Encoded items that wait for their block to be full, of all lanes together; beyond it the largest
/// are written as they are.
pub(crate) const PENDING_BYTES: usize = 96 << 20;
/// Bytes of the index of one lane, or of the list of all lanes, that a reader makes room for.
pub(crate) const INDEX_BYTES_MAX: u64 = 512 << 20;
/// Bytes of `about.json`.
pub(crate) const ABOUT_BYTES_MAX: u64 = 64 << 10;
/// Items of one cell that are kept apart before they are added up, as a tile can show them.
pub(crate) const APART: usize = 7;
/// Items of a smallest cell that are held before they are added up.
pub(crate) const HELD: usize = 64;
/// Columns of stored heat maps and series: more than any chart has.
pub(crate) const COLUMNS: u64 = 1 << 16;
/// Rows that a column of a heat map has on average at least, unless there are few columns.
pub(crate) const ROWS_OF_COLUMN: u64 = 128;
pub(crate) const COLUMNS_LEAST: u64 = 2048;
/// Compression level of zstd.
pub(crate) const ZSTD_LEVEL: i32 = 1;
/// Bytes of the files of a recording that say what is in all others.
pub(crate) const TELLING_BYTES_MAX: u64 = 1 << 30;
/// Tiles kept in the cache, together.
pub(crate) const CACHE_BYTES_MAX: u64 = 4 << 30;
/// Tiles in the cache that were opened this recently are never removed.
pub(crate) const IN_USE_SECONDS: u64 = 600;
/// What a build that was killed has left is removed after this time.
pub(crate) const BEGUN_SECONDS: u64 = 24 * 3600;
