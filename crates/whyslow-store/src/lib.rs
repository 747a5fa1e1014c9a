//! A recording on disk: a directory with a manifest and sorted Parquet tables.
//!
//! `docs/format.md` is the contract for other programs: keys, tables and columns. This page says
//! why the format is so, what each part guarantees, and where in the code it is made and checked.
//!
//! # Layout
//!
//! ```text
//! NAME.wsl/                    mode 0700, every file 0600
//!   manifest.json              written last: without it there is no recording
//!   checksums                  a CRC-32 of each 16 KiB of every table file
//!   <table>.parquet            main file: rows in the order of their keys
//!   <table>-00001.parquet, …   further main files, each of at most 100,000,000 rows
//!   <table>_long.parquet, …    late rows, sorted too; only where there were any
//!   derived/                   caches such as `derived/tiles-vN`; not part of the recording
//! ```
//!
//! The directory is flat, and the manifest names every file; what it does not name is ignored.
//! There is no symbol file: names of functions, paths and commands are text columns of the tables.
//! In memory a text is a [`Sym`](whyslow_model::Sym), a number in the symbol table of one import;
//! on disk each column chunk has its own dictionary, so files can be read one by one.
//! `derived/` belongs to the crate that fills it (`whyslow-tiles`, `place.rs`): it has neither
//! checksums nor a place in the manifest, is not packed, and can be removed at any time.
//!
//! # Manifest
//!
//! `manifest.json` is [`RecordingInfo`] in JSON (`manifest::to_json`): format version, program that
//! wrote it, sources with size and BLAKE3 digest, host and time zone, first and last time, and for
//! each table a [`TableInfo`] with its row count, its files and what a reader of a window needs.
//! `cut` is there only in a part of another recording ([`Cut`]), `redacted` only where texts were
//! replaced. `manifest::parse` reads the version before anything else, because another version may
//! have changed the rest, and refuses names of files that lead out of the directory. Files are
//! opened relative to the directory, never through a symbolic link, and only if they are regular
//! files (`manifest::open_file`).
//!
//! The manifest itself has no checksum. [`Recording::digest`] identifies a recording by BLAKE3 over
//! manifest and checksums, and with the latter over all tables; caches are keyed by it.
//!
//! # Tables
//!
//! Every table of [`whyslow_model::tables::ALL`] has a main file, also without rows. Columns, types
//! and nullability follow the declaration of the table (`schema::arrow_schema`): `INT64`, `INT32`,
//! `DOUBLE`, `BOOLEAN` and UTF-8 `BYTE_ARRAY`, no nesting, no unsigned numbers. The Arrow schema is
//! not embedded, so that each reader chooses its own types.
//!
//! **Order.** Intervals and points are sorted by (`ts`, id), entities by id
//! (`schema::key_columns`); the footer declares it as sorting columns. An interval is known only
//! when it ends, so rows come out of order: `table_writer` holds back 8 MiB of rows for each table
//! and writes the older half when these are full. A row whose place is written by then is *late*.
//! Late rows are sorted in runs in an unnamed temporary file (`spill`) and merged into the `_long`
//! files at the end. [`Tables::scan`] merges main and `_long` files into one order (`merge`);
//! [`Tables::parts`] reads them in parallel, without an order.
//!
//! **Intervals.** `ts_end` is null if the end was not recorded, `dur` if the begin or the end was
//! not; `cut` says which. A row without a begin has in `ts` the first time at which its owner was
//! known. [`TableInfo::unfinished`] counts null `ts_end`, [`TableInfo::dur_max_ns`] is the greatest
//! `ts_end - ts` of the main files, and [`TableInfo::ends_follow`] says that `ts + dur = ts_end`
//! wherever all three are known: then the reader decodes two of the columns and adds
//! (`TableFile::end_as_sum`).
//!
//! **Row groups.** The first 1,048,576 rows of a file lie in groups of 131,072, so that small
//! tables are read in parallel; later groups have 1,048,576 rows. 64 MiB of encoded bytes end a
//! group early (`series`). Data pages hold 20,000 rows, or 1 MiB of text outside of the dictionary.
//!
//! **Encodings** (`encode`). Times, durations, sectors, 64-bit ids and the id of the table itself
//! are `DELTA_BINARY_PACKED` (`schema::is_delta`); other integers and all text have a dictionary
//! for each column chunk, up to 4 MiB, and `PLAIN` pages after that; floats and booleans are
//! `PLAIN`. Pages are version 1, compressed with zstd level 1. The pages are encoded here, because
//! text is numbered already; page headers, indexes and footer come from the Parquet library.
//!
//! **Indexes.** Each column has an offset index, `ts` and `ts_end` also a column index with the
//! bounds of each page (`schema::has_page_bounds`). `prune::select` leaves out row groups and pages
//! that begin after a window or end before it; a page with a null `ts_end` reaches to the end of
//! everything. Column chunks of integers have least and greatest value, those of text only the
//! number of nulls, because nearly every chunk has nearly every name.
//!
//! # Checksums
//!
//! Parquet decoders trust their input: a flipped bit in compressed numbers becomes other numbers.
//! So `checksums::Summing` sums each file in blocks of 16 KiB while it is written, and `pread`
//! compares every block that it reads before anything is decoded. The layout is at the head of
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
//! A difference is [`StoreError::Damaged`], in a packed recording [`StoreError::Packed`]. CRCs
//! detect accidents, not forgery: content that is impossible although its sums match makes the
//! decoder fail, and its panics are caught (`table_file::guarded`).
//!
//! # Packed recordings
//!
//! `NAME.wsl.tar.zst` is the same recording as one file to send: a `ustar` archive
//! (`packed/header.rs`) in one zstd frame with a checksum, first `manifest.json` and `checksums`,
//! then the table files by name. It holds nothing of the time or the user, so equal recordings are
//! equal bytes. [`packed::unpack`] knows names and sizes from the first two entries and refuses
//! everything else: other entries, duplicates, folders, links, wrong sizes, bytes after the end. It
//! writes the manifest last. A packed recording is not read in place; it is unpacked first.
//!
//! # Versions
//!
//! [`FORMAT_VERSION`] is raised when an older program could misread what is written now; a newer
//! version is [`StoreError::TooNew`], one that lacks what answers need is [`StoreError::TooOld`].
//! Within a version tables and nullable columns may be added: unknown ones are ignored, a missing
//! table has no rows, and a missing nullable column reads as null (`table_file::check_columns`,
//! `Recording::open_files`).
//!
//! # What a crash leaves
//!
//! [`RecordingWriter`] writes into `NAME.wsl.tmp-RANDOM` next to the target (`staging`). Each file
//! is synced when it is complete; then come `checksums`, the manifest and a sync of the directory,
//! one rename, and a sync of the parent. So `NAME.wsl` is there whole, or not at all, also after a
//! loss of power. With [`Existing::Replace`] the rename exchanges the two directories, so the old
//! recording stays whole until the new one is; a file system that cannot exchange reports an error.
//! A reader of the old one keeps the files it has opened; opening another one fails.
//!
//! - An error, a panic or a cancelled import removes the temporary directory when the writer is
//!   dropped.
//! - After `SIGKILL` or a crash it stays. Without `manifest.json` it does not open as a recording.
//!   Only between the last write and the end of the commit is it complete: the new recording, or,
//!   after the exchange, the one that was replaced.
//! - The unnamed file of late rows goes with the process.
//! - The cache of imported traces removes such directories after a day (`whyslow_ingest::cache`).
//!   Elsewhere nothing does: they are the user's to remove.
//!
//! # Limits
//!
//! [`Limits`] and `limits.rs` hold the bounds: a manifest has at most 16 MiB, checksums have at
//! most 1 GiB (a recording of 4 TiB). A packed recording unpacks to at most 64 GiB and leaves 256
//! MiB of the disk free ([`packed::Unpacking::into`]); names in it have at most 100 bytes. Memory
//! of a writer: for each table the rows held back (8 MiB) and late ones (4 MiB), the blocks in its
//! queue, and one encoded row group; 16 MiB to merge the late rows of a table.

mod cells;
mod checksums;
mod encode;
mod error;
mod held;
#[cfg(test)]
mod hostile_tests;
mod kept;
mod limits;
mod manifest;
mod memory;
mod merge;
pub mod packed;
mod pread;
mod prune;
mod recording;
mod rows;
mod schema;
mod series;
mod source;
mod spill;
mod staging;
mod table_file;
mod table_writer;
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

// The tests name the crate as its users do.
#[cfg(test)]
extern crate self as whyslow_store;
#[cfg(test)]
#[path = "../tests/it/main.rs"]
mod it;
