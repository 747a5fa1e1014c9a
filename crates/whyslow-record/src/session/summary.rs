//! What a recording reports to its caller: at the start, while it runs and at the end.

use std::path::PathBuf;
use std::time::Duration;

use crate::programs::Off;

/// Progress of a recording.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Progress {
    /// Records so far.
    pub records: u64,
    /// Bytes of records.
    pub bytes: u64,
    /// Size of the spool: of the current one if there were several, or in memory.
    pub spool_bytes: u64,
    /// Completed spools of a recording that continued in another one.
    pub turns: u64,
    /// Records that did not fit into a buffer.
    pub lost: u64,
    /// Calls of the requested functions and hits of the requested USDT probes in the last second.
    pub calls_per_second: u64,
    /// Runs of BPF programs that the kernel skipped.
    pub missed: u64,
    /// Time since the recording started.
    pub elapsed: Duration,
    /// Peak memory of the recording, in bytes.
    pub memory: u64,
    /// Memory that recording may take, in bytes: [`crate::Options::memory_bytes_max`].
    pub memory_max: u64,
    /// Memory checks that found too much in use, so that some was released.
    pub memory_short: u64,
    /// CPU time of the recorder itself; its BPF programs are charged to other threads.
    pub own_cpu: Duration,
}

impl Progress {
    /// CPU time of the recorder per elapsed time: 1 is one CPU.
    pub fn cpu_share(&self) -> f64 {
        self.own_cpu.as_secs_f64() / self.elapsed.as_secs_f64().max(1e-3)
    }
}

/// State at the start of a recording.
#[derive(Debug)]
pub struct Ready<'r> {
    /// BPF programs that do not run, with reasons.
    pub off: &'r [Off],
}

/// What to do next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Continue recording.
    GoOn,
    /// End the spool and continue in a new one. Happens once the current spool has its snapshot;
    /// [`Progress::turns`] shows when. Paths of calls in progress are known in the new spool if
    /// [`crate::Options::may_turn`] is set.
    Turn(PathBuf),
    /// Take the last snapshot and complete the spool.
    End,
}

/// Summary of a finished recording.
#[derive(Debug)]
pub struct Summary {
    /// Counts at the end.
    pub progress: Progress,
    /// BPF programs that did not run, with reasons.
    pub off: Vec<Off>,
    /// Records beyond the size limit of the spool.
    pub unwritten: Option<Unwritten>,
}

/// Records that were not written, and the time that they span.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unwritten {
    /// Number of records.
    pub records: u64,
    /// From the first of them to the end of the recording.
    pub length: Duration,
}
