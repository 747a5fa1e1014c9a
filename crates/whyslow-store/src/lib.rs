//! A recording on disk: a directory with a manifest and sorted Parquet tables.
//!
//! `docs/format.md` is the specification for other programs: keys, tables and columns. This page
//! explains the reasons for the format, the guarantees of each part, and where the code implements
//! and checks them.
//!
//! # Layout
//!
//! ```text
//! NAME.wsl/                    mode 0700, every file 0600
//!   manifest.json              written last: without it there is no recording
//!   checksums                  a CRC-32 of each 16 KiB of every table file
//!   <table>.parquet            main file: rows in key order
//!   <table>-00001.parquet, …   further main files, each of at most 100,000,000 rows
//!   <table>_long.parquet, …    late rows, also sorted; only if there are any
//!   derived/                   caches such as `derived/tiles-vN`; not part of the recording
//! ```
//!
//! The directory is flat, and the manifest lists every file; other files are ignored. There is no
//! symbol file: names of functions, paths and commands are text columns of the tables. In memory, a
//! text is a [`Sym`](whyslow_model::Sym), a number in the symbol table of one import; on disk each
//! column chunk has its own dictionary, so files can be read independently. `derived/` belongs to
//! the crate that fills it (`whyslow-tiles`, `place.rs`): it has no checksums and no entry in the
//! manifest, is not packed, and can be removed at any time.
//!
//! # Manifest
//!
//! `manifest.json` is [`RecordingInfo`] in JSON (`manifest::to_json`): format version, version of
//! the writer, sources with size and BLAKE3 digest, host and time zone, first and last time, and
//! for each table a [`TableInfo`] with its row count, its files and data for window scans. `cut`
//! exists only in a snapshot of another recording ([`Cut`]), `redacted` only if texts were
//! replaced. `manifest::parse` reads the version before anything else, because another version may
//! differ in everything else, and rejects file names that lead out of the directory. Files are
//! opened relative to the directory, never through a symbolic link, and only if they are regular
//! files (`manifest::open_file`).
//!
//! The manifest itself has no checksum. [`Recording::digest`] identifies a recording by the BLAKE3
//! of manifest and checksums, which covers all tables; caches are keyed by it.
//!
//! # Tables
//!
//! Every table of [`whyslow_model::tables::ALL`] has a main file, even without rows. Columns, types
//! and nullability follow the declaration of the table (`schema::arrow_schema`): `INT64`, `INT32`,
//! `DOUBLE`, `BOOLEAN` and UTF-8 `BYTE_ARRAY`, no nesting, no unsigned numbers. The Arrow schema is
//! not embedded, so that each reader chooses its own types.
//!
//! **Order.** Intervals and points are sorted by (`ts`, id), entities by id
//! (`schema::key_columns`); the footer declares these as sorting columns. An interval is known only
//! when it ends, so rows arrive out of order: `table_writer` buffers 8 MiB of rows per table and
//! writes the older half when the buffer is full. A row whose position has already been written is
//! *late*. Late rows are sorted in runs in an unnamed temporary file (`spill`) and merged into the
//! `_long` files at the end. [`Tables::scan`] merges main and `_long` files into one order
//! (`merge`); [`Tables::parts`] reads them in parallel, without an order.
//!
//! **Intervals.** `ts_end` is null if the end was not recorded, `dur` if the start or the end was
//! not; `cut` states which. A row without a start has the first time at which its owner was known in
//! `ts`. [`TableInfo::unfinished`] counts null `ts_end`, [`TableInfo::dur_max_ns`] is the greatest
//! `ts_end - ts` of the main files, and [`TableInfo::ends_follow`] states that `ts + dur = ts_end`
//! wherever all three are known: then the reader decodes only two of the columns
//! (`TableFile::end_as_sum`).
//!
//! **Row groups.** The first 1,048,576 rows of a file are in groups of 131,072, so that small
//! tables are read in parallel; later groups have 1,048,576 rows. 64 MiB of encoded bytes end a
//! group early (`series`). Data pages hold 20,000 rows, or 1 MiB of text outside of the dictionary.
//!
//! **Encodings** (`encode`). Times, durations, sectors, 64-bit ids and the id of the table itself
//! are `DELTA_BINARY_PACKED` (`schema::is_delta`); other integers and all text have a dictionary
//! per column chunk, up to 4 MiB, and `PLAIN` pages after that; floats and booleans are `PLAIN`.
//! Pages are version 1, compressed with zstd level 1. Pages are encoded here, because text is
//! already numbered; page headers, indexes and footer come from the Parquet library.
//!
//! **Indexes.** Each column has an offset index; `ts` and `ts_end` also have a column index with
//! the bounds of each page (`schema::has_page_bounds`). `prune::select` skips row groups and pages
//! that start after a window or end before it; a page with a null `ts_end` has no upper bound.
//! Column chunks of integers have minimum and maximum, those of text only the null count, because
//! nearly every chunk has nearly every name.
//!
//! # Checksums
//!
//! Parquet decoders trust their input: a flipped bit in compressed numbers becomes other numbers.
//! So `checksums::Summing` checksums each file in blocks of 16 KiB while it is written, and `pread`
//! verifies every block that it reads before anything is decoded. The layout is described in
//! `checksums.rs`. What is verified when:
//!
//! | when | what |
//! |---|---|
//! | [`Recording::open`] | the manifest: version, JSON, names of files |
//! | first use of any table | `checksums`, whose last four bytes sum the rest |
//! | first use of a table | sizes of its files, their columns, row counts of footers and manifest |
//! | every read | the CRC-32 of each 16 KiB block it touches, footer and indexes included |
//! | [`Recording::verify`] | every block of every table, before programs without checksums read it |
//! | [`packed::unpack`] | every block, and the checksum of the zstd frame |
//!
//! A mismatch is [`StoreError::Damaged`], in a packed recording [`StoreError::Packed`]. CRCs detect
//! accidents, not forgery: invalid content with valid checksums makes the decoder fail, and its
//! panics are caught (`table_file::guarded`).
//!
//! # Packed recordings
//!
//! `NAME.wsl.tar.zst` is the same recording as one file: a `ustar` archive (`packed/header.rs`) in
//! one zstd frame with a checksum, first `manifest.json` and `checksums`, then the table files by
//! name. It contains no timestamps or owners, so equal recordings give equal bytes.
//! [`packed::unpack`] knows names and sizes from the first two entries and rejects everything else:
//! other entries, duplicates, directories, links, wrong sizes, trailing bytes. It writes the
//! manifest last. A packed recording is not read in place; it is unpacked first.
//!
//! # Versions
//!
//! [`FORMAT_VERSION`] is raised when an older program could misread the new format; a newer version
//! is [`StoreError::TooNew`], one that lacks data for queries is [`StoreError::TooOld`]. Columns and
//! words that were renamed since version 2 are translated while they are read (`renamed`). Within a
//! version, tables and nullable columns may be added: unknown ones are ignored, a missing table has
//! no rows, and a missing nullable column reads as null (`table_file::check_columns`,
//! `Recording::open_files`).
//!
//! # After a crash
//!
//! [`RecordingWriter`] writes into `NAME.wsl.tmp-RANDOM` next to the target (`staging`). Each file
//! is synced when it is complete, followed by `checksums`, the manifest and a sync of the
//! directory, one rename, and a sync of the parent. So `NAME.wsl` exists completely or not at all,
//! even after a power loss. With [`Existing::Replace`] the rename exchanges the two directories, so
//! the old recording stays intact until the new one is complete; a file system that cannot exchange
//! reports an error. A reader of the old recording keeps the files it has opened; opening further
//! ones fails.
//!
//! - An error, a panic or a cancelled import removes the temporary directory when the writer is
//!   dropped.
//! - After `SIGKILL` or a crash it stays. Without `manifest.json` it does not open as a recording.
//!   It is complete only between the last write and the end of the commit: then it is the new
//!   recording, or, after the exchange, the replaced one.
//! - The unnamed file of late rows disappears with the process.
//! - The cache of imported traces removes such directories after a day (`whyslow_ingest::cache`).
//!   Elsewhere the user has to remove them.
//!
//! # Limits
//!
//! [`Limits`] and `limits.rs` contain the limits: a manifest has at most 16 MiB, checksums have at
//! most 1 GiB (a recording of 4 TiB). A packed recording unpacks to at most 64 GiB and leaves 256
//! MiB of the disk free ([`packed::Unpacking::into`]); names in it have at most 100 bytes. Memory
//! of a writer: for each table the buffered rows (8 MiB) and late rows (4 MiB), the blocks in its
//! queue, and one encoded row group; 16 MiB to merge the late rows of a table.

mod buffered;
mod cells;
mod checksums;
mod encode;
mod error;
#[cfg(test)]
mod hostile_tests;
mod limits;
mod manifest;
mod memory;
mod merge;
pub mod packed;
mod pread;
mod prune;
mod recording;
pub mod renamed;
mod rows;
mod schema;
mod series;
mod source;
mod spill;
mod staging;
mod table_file;
mod table_writer;
mod window_cache;
mod writer;

pub use error::StoreError;
pub use limits::Limits;
pub use manifest::FORMAT_VERSION;
pub use memory::MemoryTables;
pub use recording::Recording;
pub use rows::{each_row, rows};
pub use source::{Cut, Part, RecordingInfo, Scan, SourceInfo, TableInfo, Tables, Visit};
pub use staging::Existing;
pub use writer::RecordingWriter;

// The tests refer to the crate by its public name.
#[cfg(test)]
extern crate self as whyslow_store;
#[cfg(test)]
#[path = "../tests/it/main.rs"]
mod it;
