//! The spool: what the recorder writes while it records, and `import` reads.
//!
//! A spool is a directory of files, each a series of blocks ([`Block`]). The payload of a block is a
//! series of records ([`Record`]): events from the kernel as they came, and what the recorder saw in
//! `/proc` and elsewhere (snapshots). Records of one ring are nearly in order of time; a block says
//! up to when everything is told ([`Block::complete_until`]).
//!
//! Numbers are little-endian. Times are nanoseconds of CLOCK_MONOTONIC; [`Record::Clock`] relates
//! them to the calendar.

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
pub use flags::{COMPAT, ELSEWHERE, IN_HARDIRQ, IN_SOFTIRQ, IN_TASK, SLEPT, TAIL, TOLD};
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
