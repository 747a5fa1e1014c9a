//! Lookups of host names in numbers, for as long as somebody wants: the kernel counts them by host and
//! mount namespace (`bpf/lookups.bpf.c`), and what it has counted is read once an interval.
//!
//! What the kernel counts only grows. What came since the last look is added to the series of the host
//! and of who was asked by then, so that a changed `resolv.conf` begins another series, and none ever
//! gets smaller. Rejected: to read the files when somebody asks, which puts down to the new
//! server what the old one has answered.

mod counts;
mod load;
mod places;
mod series;
mod watch;

use std::time::Duration;

pub use series::LookupSeries;
pub use watch::watch_lookups;

use crate::programs::Off;

/// Longest lookup of each bucket, ns: from a name found in a file to one that three servers were asked
/// for in vain. Between two is what a resolver waits for an answer if nobody says otherwise, 5 s, so
/// that one that was waited for in vain lies above.
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

/// Who is asked where a `resolv.conf` applies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resolving {
    /// Addresses, for people.
    pub servers: String,
    /// How long each is waited for.
    pub patience: Duration,
}

/// What [`watch_lookups`] counts, and for how long.
#[derive(Debug, Clone)]
pub struct LookupOptions {
    /// Time between two [`LookupNews::Period`].
    pub interval: Duration,
    /// Intervals; none is until somebody says stop.
    pub count: Option<u64>,
    /// Understands the text of a `resolv.conf`, empty where there is no such file.
    pub resolving: fn(&str) -> Resolving,
}

/// What is known when counting begins.
#[derive(Debug)]
pub struct LookupReady<'r> {
    /// BPF programs that do not run, and why.
    pub off: &'r [Off],
    /// Files whose functions are watched.
    pub files: usize,
}

/// What was counted since counting began.
#[derive(Debug)]
pub struct LookupPeriod<'p> {
    /// By host and resolver.
    pub series: Vec<&'p LookupSeries>,
    /// Lookups that there was no memory to count.
    pub uncounted: u64,
    /// Hosts that the kernel counts, each in its mount namespace, and how many it has room for.
    pub hosts: usize,
    /// Hosts that the kernel has room for; what comes after is in `uncounted` or `(other)`.
    pub hosts_max: usize,
    /// Files whose functions are watched, and those that were too many.
    pub files: usize,
    /// Files that were too many to be watched.
    pub files_over: u64,
    /// Programs and libraries of 32 bits, whose lookups are not seen.
    pub narrow: u64,
}

/// Something happened.
#[derive(Debug)]
pub enum LookupNews<'n> {
    /// An interval is over.
    Period(&'n LookupPeriod<'n>),
    /// Nothing did for a moment.
    Nothing,
}
