//! What is told of a recording: tracks, runs of a tile, series, cells of a heat map.

/// Lanes of one sort of thing, each a row of a chart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Track {
    /// `states`, `calls`, `cpus`, `locks`, `block`, `samples`.
    pub name: &'static str,
    /// What a run's `value` counts; empty where the value is a number of its own: a thread (`cpus`),
    /// how many requests were in flight (`block`). Of `samples` the lowest four bits count; the two above
    /// tell the kind of code (1 the kernel's, 2 native, 3 of a language with a runtime), those above that
    /// are a number of the innermost function.
    pub values: Vec<&'static str>,
    /// Names of the four groups; empty for one that the track does not use.
    pub groups: [&'static str; 4],
    /// In order of their ids.
    pub lanes: Vec<Lane>,
    /// Rows of its tables that are not in any lane.
    pub left_out: LeftOut,
}

/// One row of a chart, in which intervals do not overlap.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lane {
    /// Thread (`utid`), CPU, or place in the list of devices.
    pub id: i32,
    /// Of a device, its number in the kernel and its name.
    pub device: Option<(i64, String)>,
    /// Begin of the first interval and end of the last one, ns since the epoch.
    pub first_ns: i64,
    /// End of the last interval, ns since the epoch.
    pub last_ns: i64,
    /// Number of intervals.
    pub intervals: u64,
    /// Time in each group.
    pub times_ns: [u64; 4],
}

/// Rows of tables that a track cannot show as they are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LeftOut {
    /// They begin before the one before has ended: only what follows is shown.
    pub cut: u64,
    /// They lie within the one before.
    pub hidden: u64,
    /// They lie outside of the recording's time.
    pub outside: u64,
    /// They name no lane.
    pub without_lane: u64,
}

/// Cells of one lane, one after another, with the same content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Run {
    /// [`Lane::id`] of its lane.
    pub lane: i32,
    /// First cell, and how many.
    pub x: u16,
    /// Number of cells.
    pub n: u16,
    /// Of the longest interval that touches the cells; the smallest value where several are as long.
    pub value: i32,
    /// Of 255, what part of a cell each group takes.
    pub shares: [u8; 4],
    /// Intervals that begin here, all of them in the first cell.
    pub count: u32,
    /// Length of that longest interval, what lies outside of the cells included.
    pub longest_ns: i64,
}

/// A line over time.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// `cpu`, `blocked`, `block_bytes`, `block_depth`, `calls`.
    pub name: &'static str,
    /// `ratio`, `threads`, `bytes_per_s`, `requests`, `calls_per_s`.
    pub unit: &'static str,
    /// Where the first value begins: at or before the begin of what was asked for.
    pub begin_ns: i64,
    /// What of time each value is about.
    pub step_ns: i64,
    /// One for each step, in `unit`.
    pub values: Vec<f64>,
}

/// A heat map, whose columns lie where those of the stored cells do: it begins at or before what was
/// asked for.
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
    /// Rows that begin in the columns, and have no place because their length is not known.
    pub unknown: u64,
}

/// Rows that begin in one column and last about as long.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeatCell {
    /// Place in the list of devices; of kind `block`.
    pub device: Option<i32>,
    /// Class of operation.
    pub op: &'static str,
    /// Begin of the column.
    pub time_ns: i64,
    /// Bounds of the lengths: `from <= length < to`, as in `whyslow KIND heat`.
    pub from_ns: i64,
    /// Upper bound in ns, exclusive.
    pub to_ns: i64,
    /// Number of rows.
    pub count: u64,
    /// Sum of the lengths.
    pub intensity_ns: i64,
}
