//! What to record.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use crate::memory::PROGRAM_BYTES;
use crate::probes::ProbeSpec;
use crate::programs::{Form, Topic};
use crate::targets::{ControlGroup, Names};

/// Everything that defines a recording; [`Options::new`] sets the defaults.
#[derive(Debug, Clone)]
pub struct Options {
    /// Directory of the spool.
    pub spool: PathBuf,
    /// Topics to record; [`Topic::DEFAULT`] unless chosen.
    pub topics: BTreeSet<Topic>,
    /// Processes whose calls are recorded, with their descendants; all processes if empty.
    pub pids: Vec<i32>,
    /// Processes with threads of these names are recorded as well, …
    pub names: Vec<Names>,
    /// … and so are those in these control groups, all of one hierarchy.
    pub groups: Vec<ControlGroup>,
    /// Record calls of these processes only, even while there are none.
    pub only_pids: bool,
    /// Shorter calls are not recorded, unless they blocked.
    pub call_min: Duration,
    /// Record the stack of threads that were off-CPU for at least this long; `None` records no
    /// stacks.
    pub stack_min: Option<Duration>,
    /// On-CPU stack samples per second and CPU; 0 disables sampling.
    pub sample_hz: u32,
    /// Interval of wall-clock sampling of every thread; `None` disables it.
    pub wall: Option<Duration>,
    /// Total ring buffer size over all CPUs; rounded up to powers of two.
    pub buffer_bytes: u64,
    /// Total memory that recording uses, including the buffers ([`crate::Memory`]).
    pub memory_bytes_max: u64,
    /// The recording stops when the spool reaches this size.
    pub spool_bytes_max: u64,
    /// Functions (uprobes) and USDT probes to record.
    pub probes: Vec<ProbeSpec>,
    /// Program forms not to try, as if the kernel rejected them: to compare the coverage and cost
    /// of the others.
    pub refuse: Vec<Form>,
    /// The recording may continue in further spools ([`crate::Step::Turn`]): what the arguments of
    /// calls in progress point at is kept for them.
    pub may_turn: bool,
}

/// Holds some hundred milliseconds of events of the busiest machine seen.
pub const BUFFER_BYTES: u64 = 64 << 20;
/// Several times a minute of a busy server, compressed.
pub const KEPT_BYTES: u64 = 256 << 20;
/// Default of [`Options::spool_bytes_max`].
pub const SPOOL_BYTES_MAX: u64 = 16 << 30;
/// Waits that users notice.
pub const STACK_MIN: Duration = Duration::from_millis(1);
/// Shorter lock waits are too frequent to be useful …
pub(crate) const LOCK_MIN: Duration = Duration::from_micros(10);
/// … and taking a stack adds some microseconds while the lock is held.
pub(crate) const LOCK_STACK_MIN: Duration = Duration::from_micros(100);

impl Options {
    /// The defaults, with a spool that must not exist yet.
    pub fn new(spool: impl Into<PathBuf>) -> Self {
        Self {
            spool: spool.into(),
            topics: Topic::DEFAULT.iter().copied().collect(),
            pids: Vec::new(),
            names: Vec::new(),
            groups: Vec::new(),
            only_pids: false,
            call_min: Duration::ZERO,
            stack_min: Some(STACK_MIN),
            sample_hz: 0,
            wall: None,
            buffer_bytes: BUFFER_BYTES,
            memory_bytes_max: PROGRAM_BYTES + BUFFER_BYTES,
            spool_bytes_max: SPOOL_BYTES_MAX,
            probes: Vec::new(),
            refuse: Vec::new(),
            may_turn: false,
        }
    }
}
