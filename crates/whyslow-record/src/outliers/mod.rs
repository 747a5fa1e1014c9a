//! Slow requests to block devices as they complete, and statistics of all requests. Suitable for
//! weeks of monitoring, because the kernel aggregates, and only slow requests are passed to user
//! space.

mod devices;
mod histogram;
mod load;
mod watch;

use std::time::Duration;

pub use devices::{device_by_name, device_name};
pub use watch::watch_outliers;

use crate::programs::Off;

/// What to watch.
#[derive(Debug, Clone, Default)]
pub struct OutlierOptions {
    /// Requests that take at least this long are reported.
    pub slow_min: Duration,
    /// Time between two [`OutlierEvent::Period`].
    pub interval: Duration,
    /// Number of intervals; `None` is unlimited.
    pub count: Option<u64>,
    /// Device numbers (`dev_t`) of disks; all disks if empty.
    pub devices: Vec<u32>,
    /// `BlockIo::OP` of the requests to watch; all if empty.
    pub ops: Vec<u32>,
    /// Minimum size in bytes.
    pub bytes_min: u32,
    /// Maximum size in bytes; `None` is unlimited.
    pub bytes_max: Option<u32>,
}

/// State when watching starts.
#[derive(Debug)]
pub struct OutlierReady<'r> {
    /// BPF programs that do not run, with reasons.
    pub off: &'r [Off],
}

/// A slow request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SlowRequest {
    /// Completion time, ns since the epoch.
    pub ts_end: i64,
    /// From queueing, or from issue if the queueing was not seen, to completion.
    pub dur: Duration,
    /// Time until the driver received it; `None` if it was not seen before.
    pub queue: Option<Duration>,
    /// Disk, kernel `dev_t` with 20 minor bits.
    pub dev: u32,
    /// First 512-byte sector.
    pub sector: u64,
    /// Length in bytes.
    pub bytes: u32,
    /// See `BlockIo`.
    pub rwbs: u32,
    /// Result as reported by the kernel: see
    /// [`BlockIo::errno`](whyslow_model::spool::BlockIo::errno).
    pub error: i32,
    /// Thread, process and name of the submitter, if that was seen.
    pub submitter: Option<(i32, i32, String)>,
}

/// Requests of a device that completed in an interval.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceTimes {
    /// Disk, kernel `dev_t` with 20 minor bits.
    pub dev: u32,
    /// Number of requests.
    pub count: u64,
    /// Sum of their latencies.
    pub sum: Duration,
    /// Minimum and maximum.
    pub extremes: Option<(Duration, Duration)>,
    /// Relative error at most 1/32.
    pub p50: Option<Duration>,
    /// Relative error at most 1/32, like `p50`.
    pub p99: Option<Duration>,
    /// Requests that took [`OutlierOptions::slow_min`] or longer.
    pub slow: u64,
    /// Requests still in flight that are slow already.
    pub open: u64,
}

/// What was not counted or not reported, for lack of memory.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Missed {
    /// Requests that were not counted, because too many were in flight.
    pub requests: u64,
    /// Requests that were not counted, because there were too many devices.
    pub devices: u64,
    /// Slow requests that are counted, but were not reported individually.
    pub lines: u64,
}

/// A completed interval.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Period {
    /// ns since the epoch
    pub begin: i64,
    /// End of the interval, ns since the epoch.
    pub end: i64,
    /// The caller stopped before its end.
    pub is_cut: bool,
    /// In order of the device number.
    pub devices: Vec<DeviceTimes>,
    /// What the interval is missing.
    pub missed: Missed,
}

/// An event of the watch.
#[derive(Debug)]
pub enum OutlierEvent<'t> {
    /// A slow request completed.
    Slow(&'t SlowRequest),
    /// An interval is over.
    Period(&'t Period),
    /// Nothing happened for a moment; lets the caller stop.
    Nothing,
}
