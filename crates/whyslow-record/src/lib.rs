//! Records a live machine: BPF programs report events, snapshots capture the initial state. Both go
//! to a spool ([`whyslow_model::spool`]), which `import` turns into a recording.
//!
//! The only crate that needs privileges.

mod block_writer;
mod clock;
mod drop;
mod error;
mod flight;
mod following;
mod heap;
mod in_flight;
mod libraries;
mod load;
mod lookups;
mod losses;
mod maps;
mod marks;
mod memory;
mod meter;
mod missed;
mod namespaces;
mod naming;
mod options;
mod outliers;
mod packed;
mod pending;
mod percpu;
mod plain;
mod preflight;
mod probe_links;
mod probes;
mod programs;
mod raw;
mod ring;
mod rings;
mod runtimes;
mod sampler;
mod saving;
mod session;
mod skeletons;
mod snapshot;
mod specs;
mod spool;
mod symbols;
mod targets;
mod tick;
mod wall;
mod watch;
mod when;
#[cfg(test)]
mod wire_tests;

pub use error::RecordError;
pub use flight::{FlightOptions, FlightStep, News, fly};
pub use following::{About, FollowError, Following, Purpose, follow, running};
pub use lookups::{
    LOOKUP_EDGES, LookupNews, LookupOptions, LookupPeriod, LookupReady, LookupSeries, Resolving,
    watch_lookups,
};
pub use marks::{MARK_BYTES_MAX, mark};
pub use memory::{Memory, MemoryWish, PROGRAM_BYTES, TooLittleMemory};
pub use options::{BUFFER_BYTES, KEPT_BYTES, Options, SPOOL_BYTES_MAX, STACK_MIN};
pub use outliers::{
    DeviceTimes, Missed, OutlierEvent, OutlierOptions, OutlierReady, Period, SlowRequest,
    device_by_name, device_name, watch_outliers,
};
pub use preflight::{Check, Instead, State, checks, instead};
pub use probes::ProbeSpec;
pub use programs::{Form, Off, StandIn, Topic};
pub use ring::Window;
#[doc(hidden)]
pub use runtimes::walk_image;
pub use saving::{SaveError, SaveReply, SaveRequest, save};
pub use session::{Progress, Ready, Step, Summary, Unwritten, record};
pub use targets::{ControlGroup, NAMES_MAX, Names};
pub use wall::WALL_MIN;
pub use when::{Operation, Term, Trigger, WhenError, parse_when};

use skeletons::recorder as skeleton;
