//! The interface between analysis and recorded data: the files of a recording, or the in-memory
//! tail of a running one.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use arrow_array::RecordBatch;
use serde::{Deserialize, Serialize};
use whyslow_model::{Table, Window};

use crate::StoreError;

/// Metadata of a recording.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RecordingInfo {
    /// [`FORMAT_VERSION`](crate::FORMAT_VERSION) of the writer.
    pub format_version: u32,
    /// Program version of the writer.
    pub written_by: String,
    /// Traces, spools and other imported files, in the given order; empty for recordings that were
    /// not imported.
    pub sources: Vec<SourceInfo>,
    /// Name of the recorded host (`uname -n`); `None` if no source has it.
    pub host: Option<String>,
    /// IANA name or fixed offset (`+01:00`) of the recorded host, if a source has it.
    pub zone: Option<String>,
    /// First time in the recording, ns since the epoch.
    pub begin_ns: i64,
    /// Last time in the recording, ns since the epoch, inclusive.
    pub end_ns: i64,
    /// By table name; missing tables have no rows.
    pub tables: BTreeMap<String, TableInfo>,
    /// Set if it is a snapshot of another recording.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut: Option<Cut>,
    /// What was redacted: `texts`, or also `names`; `None` if nothing was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub redacted: Option<String>,
}

/// Origin of a snapshot. A snapshot contains all rows that overlap the time of its manifest,
/// complete, and everything that these rows refer to.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Cut {
    /// Digest of the whole recording.
    pub digest: String,
    /// First time of the whole recording.
    pub begin_ns: i64,
    /// Last time of the whole recording, ns since the epoch.
    pub end_ns: i64,
    /// The window it was cut for: the surrounding time is used only on request.
    pub focus_begin_ns: i64,
    /// End of that window, exclusive.
    pub focus_end_ns: i64,
    /// Rows of the tables of the whole recording, which show what was recorded, and how densely.
    pub rows: BTreeMap<String, u64>,
    /// Further data that show what was recorded: words of columns by `table.column`, and by `table`
    /// the columns with non-zero counts.
    #[serde(alias = "told")]
    pub recorded_words: BTreeMap<String, BTreeSet<String>>,
}

impl RecordingInfo {
    /// First to last time of the whole recording.
    pub fn whole(&self) -> Window {
        let kept = Window::new(self.begin_ns, self.end_ns);
        self.cut
            .as_ref()
            .map_or(kept, |cut| Window::new(cut.begin_ns, cut.end_ns))
    }

    /// The default window of queries; `None` for the whole recording.
    pub fn focus(&self) -> Option<Window> {
        let cut = self.cut.as_ref()?;
        Some(Window::new(cut.focus_begin_ns, cut.focus_end_ns))
    }

    /// Rows of a table in the whole recording.
    pub fn rows_of_whole(&self, table: &str) -> u64 {
        let here = || self.tables.get(table).map_or(0, |table| table.rows);
        match &self.cut {
            Some(cut) => cut.rows.get(table).copied().unwrap_or(0),
            None => here(),
        }
    }
}

/// A trace, spool or other imported file.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SourceInfo {
    /// Path at the time of import; it may no longer exist.
    pub path: String,
    /// `lttng`, `ctf`, `text`, …
    pub kind: String,
    /// Size of all files of the source.
    pub bytes: u64,
    /// BLAKE3 of the source's files in order of their names.
    pub digest: String,
}

/// Rows and files of one table, as in the manifest.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct TableInfo {
    /// Rows of all files, main and `_long`.
    pub rows: u64,
    /// Greatest known duration in the main file, so that a window scan knows how far to look back.
    pub dur_max_ns: Option<i64>,
    /// Files relative to the recording, in time order.
    pub files: Vec<String>,
    /// Sorted files of late rows; empty if there are none.
    pub long_files: Vec<String>,
    /// Number of rows without an end.
    pub unfinished: u64,
    /// Whether the end of every row equals start plus duration where all are known: then a reader
    /// decodes only two of the three. False for older recordings.
    #[serde(default)]
    pub ends_follow: bool,
}

/// What to read of a table.
#[derive(Debug, Clone)]
pub struct Scan {
    /// Table to read.
    pub table: &'static Table,
    /// Requested columns, in the order of the batches.
    pub columns: Vec<&'static str>,
    /// Reads only parts that may have rows overlapping this window (pruning); readers of the
    /// batches still filter row by row.
    pub window: Option<Window>,
}

/// Called with each batch; `Break` ends the scan.
pub type Visit<'v> = dyn FnMut(&RecordBatch) -> Result<ControlFlow<()>, StoreError> + 'v;

/// A part of a table that can be read on any thread; its rows are in (`ts`, id) order.
pub trait Part: Send + Sync {
    /// Number of rows that [`read`](Part::read) returns.
    fn rows(&self) -> u64;
    /// Passes on the rows in batches; `Break` from `visit` ends it without an error. Fails if a
    /// file cannot be read or is damaged, and with any error that `visit` returns.
    fn read(&self, visit: &mut Visit<'_>) -> Result<(), StoreError>;
    /// Only some of the rows that `read` returns, by ascending numbers starting at 0. Other rows
    /// are not decoded if this can be avoided.
    fn read_rows(&self, numbers: &[u64], visit: &mut Visit<'_>) -> Result<(), StoreError>;
}

/// A source of tables. Times are `Int64`, ids `Int32` or `Int64`, and all text columns are
/// `Dictionary<Int32, Utf8>`, so that grouping by text is grouping by number within a batch.
pub trait Tables: Send + Sync {
    /// The manifest, or its equivalent for tables in memory.
    fn info(&self) -> &RecordingInfo;

    /// Parts for parallel folds, without an order between them; together they have all rows exactly
    /// once. Another scan of the same table and window has the same parts at the same indexes.
    fn parts<'t>(&'t self, scan: &Scan) -> Result<Vec<Box<dyn Part + 't>>, StoreError>;

    /// The distinct words in a text column; `None` if only the rows can show them.
    fn words(
        &self,
        table: &'static Table,
        column: &str,
    ) -> Result<Option<BTreeSet<String>>, StoreError>;

    /// All rows in (`ts`, id) order, with late rows merged in.
    fn scan(&self, scan: &Scan, visit: &mut Visit<'_>) -> Result<(), StoreError>;
}
