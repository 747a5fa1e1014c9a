//! DNS lookup statistics, for any length of time: the kernel counts lookups by host and mount
//! namespace (`bpf/lookups.bpf.c`), and the counters are read once an interval.
//!
//! The kernel's counters only grow. The increase since the last reading is added to the series of
//! the host and of the resolver at that time, so that a changed `resolv.conf` starts another
//! series, and no series ever decreases. Rejected: reading `resolv.conf` on demand, which
//! attributes to the new server what the old one answered.

mod counts;
mod load;
mod places;
mod series;
mod watch;

use std::time::Duration;

pub use series::LookupSeries;
pub use watch::watch_lookups;

use crate::programs::Off;

/// Upper bound of each bucket in ns: from a name found in a file to one for which three servers
/// were queried in vain. The default timeout of a resolver, 5 s, is between two bounds, so that a
/// lookup with a timeout is above it.
pub const LOOKUP_EDGES: [u64; 18] = [
    100_000,
    250_000,
    500_000,
    1_000_000,
    2_500_000,
    5_000_000,
    10_000_000,
    25_000_000,
    50_000_000,
    100_000_000,
    250_000_000,
    500_000_000,
    1_000_000_000,
    2_500_000_000,
    5_000_000_000,
    10_000_000_000,
    20_000_000_000,
    30_000_000_000,
];

/// The resolver configuration in a `resolv.conf`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resolving {
    /// Addresses, for display.
    pub servers: String,
    /// Timeout of a query to a server.
    pub patience: Duration,
}

/// What [`watch_lookups`] counts, and for how long.
#[derive(Debug, Clone)]
pub struct LookupOptions {
    /// Time between two [`LookupNews::Period`].
    pub interval: Duration,
    /// Number of intervals; `None` is unlimited.
    pub count: Option<u64>,
    /// Parses the text of a `resolv.conf`, empty if there is no such file.
    pub resolving: fn(&str) -> Resolving,
}

/// State when counting starts.
#[derive(Debug)]
pub struct LookupReady<'r> {
    /// BPF programs that do not run, with reasons.
    pub off: &'r [Off],
    /// Number of files with probes.
    pub files: usize,
}

/// Counters since counting started.
#[derive(Debug)]
pub struct LookupPeriod<'p> {
    /// By host and resolver.
    pub series: Vec<&'p LookupSeries>,
    /// Lookups that were not counted for lack of memory.
    pub uncounted: u64,
    /// Hosts in the kernel's map, counted per mount namespace.
    pub hosts: usize,
    /// Capacity of the kernel's map; lookups of further hosts are in `uncounted` or `(other)`.
    pub hosts_max: usize,
    /// Number of files with probes.
    pub files: usize,
    /// Files beyond the limit.
    pub files_over: u64,
    /// 32-bit programs and libraries, whose lookups are not seen.
    pub narrow: u64,
}

/// An event of the watch.
#[derive(Debug)]
pub enum LookupNews<'n> {
    /// An interval is over.
    Period(&'n LookupPeriod<'n>),
    /// Nothing happened for a moment; lets the caller stop.
    Nothing,
}
