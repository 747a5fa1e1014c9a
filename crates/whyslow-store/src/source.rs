//! The one door between analysis and what was recorded: the files of a recording, or the
//! in-memory tail of a running one.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use arrow_array::RecordBatch;
use serde::{Deserialize, Serialize};
use whyslow_model::{Table, Window};

use crate::StoreError;

/// What a recording says of itself.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RecordingInfo {
    /// [`FORMAT_VERSION`](crate::FORMAT_VERSION) of the writer.
    pub format_version: u32,
    /// Program version that wrote it.
    pub written_by: String,
    /// Traces, spools and other files that were imported, in the order given; empty for recordings
    /// that were not made by an import.
    pub sources: Vec<SourceInfo>,
    /// Name of the recorded host (`uname -n`); `None` if no source had it.
    pub host: Option<String>,
    /// IANA name or fixed offset (`+01:00`) of the recorded host, where a source told.
    pub zone: Option<String>,
    /// First and last time in the recording, ns since the epoch.
    pub begin_ns: i64,
    /// Last time in the recording, ns since the epoch, inclusive.
    pub end_ns: i64,
    /// By table name; a table that is not here has no rows.
    pub tables: BTreeMap<String, TableInfo>,
    /// If it is a part of another recording.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut: Option<Cut>,
    /// What was hidden in its texts: `texts`, or `names` too; none if nothing was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub redacted: Option<String>,
}

/// Where a part of a recording was cut out. The part holds every row that touches the time of its
/// manifest, whole, and what these rows name.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Cut {
    /// Of the manifest and checksums of the whole recording.
    pub digest: String,
    /// Its first and last time.
    pub begin_ns: i64,
    /// Last time of the whole recording, ns since the epoch.
    pub end_ns: i64,
    /// What was asked for: the rest was kept around it, and is not looked at unless asked for.
    pub focus_begin_ns: i64,
    /// End of that window, exclusive.
    pub focus_end_ns: i64,
    /// Rows of the tables of the whole: what was recorded at all, and how densely.
    pub rows: BTreeMap<String, u64>,
    /// What else tells what was recorded at all: the words of columns by `table.column`, and by `table`
    /// the columns that count anything.
    pub told: BTreeMap<String, BTreeSet<String>>,
}

impl RecordingInfo {
    /// From the first to the last time of what was recorded, of which a cut has a part.
    pub fn whole(&self) -> Window {
        let kept = Window::new(self.begin_ns, self.end_ns);
        self.cut
            .as_ref()
            .map_or(kept, |cut| Window::new(cut.begin_ns, cut.end_ns))
    }

    /// What questions are about that name no window; all of it if none.
    pub fn focus(&self) -> Option<Window> {
        let cut = self.cut.as_ref()?;
        Some(Window::new(cut.focus_begin_ns, cut.focus_end_ns))
    }

    /// Rows that a table has in what was recorded, of which a cut has a part.
    pub fn rows_of_whole(&self, table: &str) -> u64 {
        let here = || self.tables.get(table).map_or(0, |table| table.rows);
        match &self.cut {
            Some(cut) => cut.rows.get(table).copied().unwrap_or(0),
            None => here(),
        }
    }
}

/// A trace, spool or other file that a recording was imported from.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SourceInfo {
    /// Path at the time of import; it may not exist any more.
    pub path: String,
    /// `lttng`, `ctf`, `text`, …
    pub kind: String,
    /// Bytes of all files of the source.
    pub bytes: u64,
    /// BLAKE3 of the source's files in order of their names.
    pub digest: String,
}

/// Rows and files of one table, as the manifest has them.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct TableInfo {
    /// Rows of all files, main and `_long`.
    pub rows: u64,
    /// Greatest finished length in the main file, so that a window knows how far to look back.
    pub dur_max_ns: Option<i64>,
    /// Files relative to the recording, in time order; `long` ones hold rows that came too late
    /// for their place, sorted too.
    pub files: Vec<String>,
    /// Files of late rows; empty where no row came too late.
    pub long_files: Vec<String>,
    /// Rows without an end lie at these ids or are few: their number.
    pub unfinished: u64,
    /// Whether the end of every row is its begin and length together, where all are known: then a
    /// reader that wants them decodes two of the three. Not known of earlier recordings.
    #[serde(default)]
    pub ends_follow: bool,
}

/// What to read of a table.
#[derive(Debug, Clone)]
pub struct Scan {
    /// Table to read.
    pub table: &'static Table,
    /// Columns wanted, in the order they will have in the batches.
    pub columns: Vec<&'static str>,
    /// Only parts that may hold rows overlapping this window are read (pruning); the reader of the
    /// batches still filters row by row.
    pub window: Option<Window>,
}

/// Called with each batch; `Break` ends the scan.
pub type Visit<'v> = dyn FnMut(&RecordBatch) -> Result<ControlFlow<()>, StoreError> + 'v;

/// A piece of a table that can be read on any thread; rows inside are in (`ts`, id) order.
pub trait Part: Send + Sync {
    /// Number of rows that [`read`](Part::read) shows.
    fn rows(&self) -> u64;
    /// Shows the rows in batches; `Break` from `visit` ends it without an error. Fails if a file
    /// cannot be read or is damaged, and with whatever error `visit` returns.
    fn read(&self, visit: &mut Visit<'_>) -> Result<(), StoreError>;
    /// Only some of the rows that `read` shows: those of these numbers, which count from 0 and
    /// ascend. What nobody asked for is not decoded where that can be helped.
    fn read_rows(&self, numbers: &[u64], visit: &mut Visit<'_>) -> Result<(), StoreError>;
}

/// A source of tables. Times are `Int64`, ids `Int32` or `Int64`, and every text column comes as
/// `Dictionary<Int32, Utf8>`, so that grouping by text is grouping by number within a batch.
pub trait Tables: Send + Sync {
    /// The manifest; for tables in memory what stands in its place.
    fn info(&self) -> &RecordingInfo;

    /// Pieces for parallel folds, without an order between them; all rows exactly once. Another
    /// scan of the same table and window has the same pieces in the same places of the list.
    fn parts<'t>(&'t self, scan: &Scan) -> Result<Vec<Box<dyn Part + 't>>, StoreError>;

    /// The words that rows of a text column have, each once; `None` where only the rows tell.
    fn words(
        &self,
        table: &'static Table,
        column: &str,
    ) -> Result<Option<BTreeSet<String>>, StoreError>;

    /// All rows in (`ts`, id) order, late rows merged in.
    fn scan(&self, scan: &Scan, visit: &mut Visit<'_>) -> Result<(), StoreError>;
}
