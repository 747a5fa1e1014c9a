//! The spool: written by the recorder during recording, read by `import`.
//!
//! A spool is a directory of files, each a sequence of blocks ([`Block`]). The payload of a block
//! is a sequence of records ([`Record`]): events from the kernel in order of arrival, and what the
//! recorder read in `/proc` and elsewhere (snapshots). The records of a ring buffer are nearly
//! sorted by time; a block states the time up to which all records are present
//! ([`Block::complete_until`]).
//!
//! Numbers are little-endian. Times are nanoseconds of CLOCK_MONOTONIC; [`Record::Clock`] relates
//! them to wall-clock time.

mod block;
mod block_io;
mod cursor;
mod encode;
mod fill;
mod flags;
mod host;
mod lookup;
mod net;
mod probe;
mod record;
mod signal;
mod stack;
mod wall;
mod work;

pub use block::{BLOCK_BYTES, Block, BlockError, FILE_SUFFIX, MAGIC, PAYLOAD_MAX};
pub use block_io::BlockIo;
pub use encode::Encoder;
pub use fill::{FillBy, FillRecord};
pub use flags::{COMPAT, ELSEWHERE, ENTRY_RECORDED, IN_HARDIRQ, IN_SOFTIRQ, IN_TASK, SLEPT, TAIL};
pub use host::{CountersRecord, DeviceAbout, HostRecord, MountRecord, Program, ResolverFileRecord};
pub use lookup::LookupRecord;
pub use net::{NetRecord, TcpRecord};
pub use probe::{FunctionEndRecord, FunctionRecord, ProbeRecord, TEXT_BYTES, UsdtRecord};
pub use record::{
    HEAD_BYTES, Head, Kind, Record, RecordError, Switch, SyscallRecord, Task, TextRecord, Wakeup,
    records,
};
pub use stack::{Addresses, LockRecord, MissedRecord, NameRecord, StackRecord};
pub use wall::{
    CodeKind, CodeRecord, NO_ADDRESS, NO_ADDRESS_END, RoundRecord, WallEnd, WallRecord,
};
pub use work::{ReclaimRecord, WorkItemRecord, WorkRecord};
