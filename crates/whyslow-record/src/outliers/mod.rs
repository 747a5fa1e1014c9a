//! Slow requests to block devices as they happen, and all of them in numbers: what runs for weeks
//! because the kernel counts, and only what is slow leaves it.

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
    /// Requests that take so long are told of.
    pub slow_min: Duration,
    /// Time between two [`Told::Period`].
    pub interval: Duration,
    /// Intervals; none is until somebody says stop.
    pub count: Option<u64>,
    /// Kernel numbers of disks; all if there are none.
    pub devices: Vec<u32>,
    /// `BlockIo::OP` of what is wanted; all if there are none.
    pub ops: Vec<u32>,
    /// Least size in bytes.
    pub bytes_min: u32,
    /// None is any.
    pub bytes_max: Option<u32>,
}

/// What is known when watching begins.
#[derive(Debug)]
pub struct OutlierReady<'r> {
    /// BPF programs that do not run, and why.
    pub off: &'r [Off],
}

/// A request that took long.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SlowRequest {
    /// When it ended, ns since the epoch.
    pub ts_end: i64,
    /// From queueing, or issue where that was not seen, to completion.
    pub dur: Duration,
    /// Until the driver got it; none if it was not seen before.
    pub queue: Option<Duration>,
    /// Disk, kernel `dev_t` with 20 minor bits.
    pub dev: u32,
    /// First 512-byte sector.
    pub sector: u64,
    /// Length in bytes.
    pub bytes: u32,
    /// See `BlockIo`.
    pub rwbs: u32,
    /// Result as the kernel has it: see [`BlockIo::errno`](whyslow_model::spool::BlockIo::errno).
    pub error: i32,
    /// Thread, process and name of who made it, if that was seen.
    pub submitter: Option<(i32, i32, String)>,
}

/// Requests of a device that ended in an interval.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceTimes {
    /// Disk, kernel `dev_t` with 20 minor bits.
    pub dev: u32,
    /// Number of requests.
    pub count: u64,
    /// Sum of their latencies.
    pub sum: Duration,
    /// Shortest and longest.
    pub extremes: Option<(Duration, Duration)>,
    /// Exact to a thirty-second part.
    pub p50: Option<Duration>,
    /// Exact to a thirty-second part, like `p50`.
    pub p99: Option<Duration>,
    /// Requests that took [`OutlierOptions::slow_min`] or longer.
    pub slow: u64,
    /// Not yet ended, and slow already.
    pub open: u64,
}

/// What was not counted or not told, for want of room.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Missed {
    /// Requests that were not counted, because too many were in flight.
    pub requests: u64,
    /// Requests that were not counted, because there was no room for one more device.
    pub devices: u64,
    /// Slow requests that are counted and were not shown one by one.
    pub lines: u64,
}

/// An interval that ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Period {
    /// ns since the epoch
    pub begin: i64,
    /// End of the interval, ns since the epoch.
    pub end: i64,
    /// Somebody said stop before its time.
    pub is_cut: bool,
    /// By number.
    pub devices: Vec<DeviceTimes>,
    /// What the interval lacks.
    pub missed: Missed,
}

/// Something happened.
#[derive(Debug)]
pub enum Told<'t> {
    /// A slow request is complete.
    Slow(&'t SlowRequest),
    /// An interval is over.
    Period(&'t Period),
    /// Nothing did for a moment.
    Nothing,
}
