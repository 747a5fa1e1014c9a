//! Contents of tiles: tracks and lanes, runs of a tile, time series, heat map cells.

/// Lanes of the same kind, each a row of a chart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Track {
    /// `states`, `calls`, `cpus`, `locks`, `block`, `samples`.
    pub name: &'static str,
    /// Names that the `value` of a run is an index into; empty if the value is a plain number: a
    /// thread (`cpus`), or the number of requests in flight (`block`). For `samples`, the lowest
    /// four bits are the index; the next two are the kind of code (1 kernel, 2 native, 3 managed by
    /// a language runtime), and the bits above are a number for the innermost function.
    pub values: Vec<&'static str>,
    /// Names of the four groups; empty if unused by the track.
    pub groups: [&'static str; 4],
    /// In order of their ids.
    pub lanes: Vec<Lane>,
    /// Rows of its tables that the lanes do not show, or only in part.
    pub left_out: LeftOut,
}

/// One row of a chart, in which intervals do not overlap.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lane {
    /// Thread (`utid`), CPU, or index in the list of devices.
    pub id: i32,
    /// For a device, its kernel device number and its name.
    pub device: Option<(i64, String)>,
    /// Start of the first interval, ns since the epoch.
    pub first_ns: i64,
    /// End of the last interval, ns since the epoch.
    pub last_ns: i64,
    /// Number of intervals.
    pub intervals: u64,
    /// Time in each group, in ns.
    pub times_ns: [u64; 4],
}

/// Number of rows that a track cannot show unchanged, by reason.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LeftOut {
    /// Starts before the previous row of the lane ends: only the rest is shown.
    pub cut: u64,
    /// Lies within the previous row of the lane.
    pub hidden: u64,
    /// Lies outside the time of the recording.
    pub outside: u64,
    /// Has no valid lane id.
    pub without_lane: u64,
}

/// Consecutive cells of one lane with the same content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Run {
    /// [`Lane::id`] of its lane.
    pub lane: i32,
    /// First cell.
    pub x: u16,
    /// Number of cells.
    pub n: u16,
    /// Value of the longest interval that touches the cells; the smallest one among equally long
    /// ones.
    pub value: i32,
    /// Share of each group in a cell, in parts of 255.
    pub shares: [u8; 4],
    /// Intervals that start here, all in the first cell.
    pub count: u32,
    /// Duration of that longest interval, including its time outside the cells.
    pub longest_ns: i64,
}

/// A time series.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// `cpu`, `blocked`, `block_bytes`, `block_depth`, `calls`.
    pub name: &'static str,
    /// `ratio`, `threads`, `bytes_per_s`, `requests`, `calls_per_s`.
    pub unit: &'static str,
    /// Start of the first step, at or before the start of the requested window.
    pub begin_ns: i64,
    /// Time that each value covers.
    pub step_ns: i64,
    /// One value for each step, in `unit`.
    pub values: Vec<f64>,
}

/// A heat map. Its columns are aligned to the stored ones: it starts at or before the start of the
/// requested window.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Heat {
    /// Start of the first column, ns since the epoch.
    pub begin_ns: i64,
    /// Width of a column in ns.
    pub width_ns: i64,
    /// Number of columns.
    pub columns: usize,
    /// In order of device, operation, time, latency.
    pub cells: Vec<HeatCell>,
    /// Rows that start in the columns but are in no cell because their duration is unknown.
    pub unknown: u64,
}

/// Rows that start in one column and fall in one duration bucket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeatCell {
    /// Index in the list of devices; only for kind `block`.
    pub device: Option<i32>,
    /// Class of operation.
    pub op: &'static str,
    /// Start of the column, ns since the epoch.
    pub time_ns: i64,
    /// Lower bound of the duration in ns, inclusive, as in `whyslow KIND heat`.
    pub from_ns: i64,
    /// Upper bound in ns, exclusive.
    pub to_ns: i64,
    /// Number of rows.
    pub count: u64,
    /// Sum of the durations in ns.
    pub intensity_ns: i64,
}
