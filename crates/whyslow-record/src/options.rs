//! What to record.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use crate::memory::PROGRAM_BYTES;
use crate::probes::ProbeSpec;
use crate::programs::{Form, Topic};
use crate::targets::{ControlGroup, Names};

/// Everything that a recording is started with; [`Options::new`] has the defaults.
#[derive(Debug, Clone)]
pub struct Options {
    /// Folder that the spool will be.
    pub spool: PathBuf,
    /// What is recorded; [`Topic::DEFAULT`] unless chosen.
    pub topics: BTreeSet<Topic>,
    /// Processes whose calls are recorded, with those they start; all if there are none.
    pub pids: Vec<i32>,
    /// Processes with threads of these names, and
    pub names: Vec<Names>,
    /// those in these control groups, all of one hierarchy, are recorded as well.
    pub groups: Vec<ControlGroup>,
    /// Record calls of none but these processes, also if there are none (yet).
    pub only_pids: bool,
    /// Shorter calls are left out, unless their thread gave up the CPU in them.
    pub call_min: Duration,
    /// Threads that were away from the CPU for so long are recorded with their stack; none if none.
    pub stack_min: Option<Duration>,
    /// Stacks of what runs, so many times a second on each CPU; none if 0.
    pub sample_hz: u32,
    /// Between two looks at what every thread does; none if there is none.
    pub wall: Option<Duration>,
    /// Memory for events on their way, all CPUs together; rounded up to powers of two.
    pub buffer_bytes: u64,
    /// All that recording takes of memory; the buffer is part of it ([`crate::Memory`]).
    pub memory_bytes_max: u64,
    /// The recording ends when its spool has so many bytes.
    pub spool_bytes_max: u64,
    /// Functions and static probes of programs that are recorded.
    pub probes: Vec<ProbeSpec>,
    /// Forms of programs that are not tried, as on kernels that refuse them: to compare what the
    /// others tell and cost.
    pub refuse: Vec<Form>,
    /// The recording may go on in other spools ([`crate::Step::Turn`]): what calls under way point at
    /// is remembered for them.
    pub may_turn: bool,
}

/// So many bytes last for some hundred milliseconds of the busiest machine seen.
pub const BUFFER_BYTES: u64 = 64 << 20;
/// A minute of a busy server, compressed, several times over.
pub const KEPT_BYTES: u64 = 256 << 20;
/// Default of [`Options::spool_bytes_max`].
pub const SPOOL_BYTES_MAX: u64 = 16 << 30;
/// Waits that people notice.
pub const STACK_MIN: Duration = Duration::from_millis(1);
/// Shorter waits for locks are as many as nobody wants to know of …
pub(crate) const LOCK_MIN: Duration = Duration::from_micros(10);
/// … and a stack takes some microseconds while the lock is held.
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
