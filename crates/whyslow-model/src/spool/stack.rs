//! Records of stacks, lock waits and symbols.
//!
//! A stack contains only addresses. They are symbolized while the processes are still alive, some
//! time after the stack was recorded; the symbols are separate records, one for each address of a
//! program. A program is identified by its process and the time at which the process started to run
//! it: the time of the last [`Kind::Exec`](super::Kind::Exec) or [`Kind::Fork`](super::Kind::Fork)
//! before the stack, or 0 if none was recorded. The kernel is process 0.

use super::record::{Cursor, RecordError};

/// Return addresses of a stack, innermost first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Addresses<'b>(&'b [u8]);

impl<'b> Addresses<'b> {
    /// Addresses in order, without zeros.
    pub fn iter(self) -> impl Iterator<Item = u64> + 'b {
        let of = |bytes: &[u8]| bytes.try_into().map_or(0, u64::from_le_bytes);
        // If frame pointers are invalid, the kernel reports a caller at address 0.
        self.0
            .chunks_exact(8)
            .map(of)
            .filter(|address| *address != 0)
    }

    /// Whether no address was recorded.
    pub fn is_empty(self) -> bool {
        self.0.is_empty()
    }
}

/// A stack of the head's thread, which runs again, returned from a call, or was sampled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StackRecord<'b> {
    /// Time at which it went off-CPU or entered the call; for a sample, one period before the
    /// event.
    pub since: u64,
    /// State while off-CPU, as in a switch record.
    pub state: u32,
    /// Kernel addresses.
    pub kernel: Addresses<'b>,
    /// User addresses; empty if they follow in a record of kind `UserStack`.
    pub user: Addresses<'b>,
}

/// A lock wait of the head's thread, at its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LockRecord<'b> {
    /// Start of the wait, CLOCK_MONOTONIC in ns.
    pub since: u64,
    /// Address of the lock.
    pub lock: u64,
    /// Flags of the kernel's `contention_begin`.
    pub flags: u32,
    /// 0, or a negative errno if the wait failed.
    pub ret: i32,
    /// Empty if the wait was short.
    pub kernel: Addresses<'b>,
}

impl LockRecord<'_> {
    /// `LCB_F_SPIN`: a spin lock; without [`LockRecord::READ`] and [`LockRecord::WRITE`] not a
    /// reader-writer lock.
    pub const SPIN: u32 = 1;
    /// `LCB_F_READ`: a reader-writer lock, taken for reading.
    pub const READ: u32 = 2;
    /// `LCB_F_WRITE`: a reader-writer lock, taken for writing.
    pub const WRITE: u32 = 4;
    /// `LCB_F_RT`: an `rt_mutex`, or a lock implemented by one on a real-time kernel.
    pub const RT: u32 = 8;
    /// `LCB_F_PERCPU`: a `percpu_rw_semaphore`.
    pub const PERCPU: u32 = 16;
    /// `LCB_F_MUTEX`: a `mutex`.
    pub const MUTEX: u32 = 32;
}

/// Symbol of an address in a program of the head's process, or in the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NameRecord<'b> {
    /// Time at which the process started to run the program.
    pub since: u64,
    /// Address in the process, or in the kernel for process 0.
    pub address: u64,
    /// Offset in bytes from the start of the function, or of the file if the function is unknown.
    pub distance: u64,
    /// Empty if unknown.
    pub function: &'b [u8],
    /// File that contains the code; empty if unknown.
    pub module: &'b [u8],
}

/// Runs of a BPF program of the recorder that the kernel skipped, from the time in the head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MissedRecord<'b> {
    /// End of the range, CLOCK_MONOTONIC in ns.
    pub to: u64,
    /// Skipped runs in that range.
    pub count: u64,
    /// Name of the BPF program.
    pub program: &'b [u8],
}

pub(super) fn addresses<'b>(at: &mut Cursor<'b>, count: u32) -> Result<Addresses<'b>, RecordError> {
    let bytes = (count as usize).checked_mul(8);
    let bytes = bytes.ok_or(RecordError::Short(at.kind))?;
    at.take(bytes).map(Addresses)
}

pub(super) fn stack<'b>(at: &mut Cursor<'b>) -> Result<StackRecord<'b>, RecordError> {
    let (since, state) = (at.u64()?, at.u32()?);
    let (kernel, user) = (at.u16()?, at.u16()?);
    Ok(StackRecord {
        since,
        state,
        kernel: addresses(at, kernel.into())?,
        user: addresses(at, user.into())?,
    })
}

pub(super) fn lock<'b>(at: &mut Cursor<'b>) -> Result<LockRecord<'b>, RecordError> {
    let (since, lock, flags, ret) = (at.u64()?, at.u64()?, at.u32()?, at.i32()?);
    let count = at.u32()?;
    at.u32()?;
    Ok(LockRecord {
        since,
        lock,
        flags,
        ret,
        kernel: addresses(at, count)?,
    })
}

pub(super) fn name<'b>(at: &mut Cursor<'b>) -> Result<NameRecord<'b>, RecordError> {
    Ok(NameRecord {
        since: at.u64()?,
        address: at.u64()?,
        distance: at.u64()?,
        function: at.text()?,
        module: at.text()?,
    })
}

pub(super) fn missed<'b>(at: &mut Cursor<'b>) -> Result<MissedRecord<'b>, RecordError> {
    Ok(MissedRecord {
        to: at.u64()?,
        count: at.u64()?,
        program: at.text()?,
    })
}

#[cfg(test)]
mod tests {
    use super::super::{Encoder, Kind, Record, RecordError, records};

    fn stack(kernel: u16, user: u16, addresses: &[u64]) -> Encoder {
        let mut encoder = Encoder::default();
        let record = encoder.begin(Kind::Sample, 90, (3, 4));
        record.u64(40).u32(2).u16(kernel).u16(user);
        for address in addresses {
            record.u64(*address);
        }
        record.end();
        encoder
    }

    #[test]
    fn addresses_of_the_kernel_come_before_those_of_the_program() {
        let encoder = stack(2, 1, &[7, 8, 9]);
        let found: Vec<_> = records(encoder.payload()).collect();
        let [(0, Ok((_, Record::Stack(stack))))] = found.as_slice() else {
            panic!("{found:?}");
        };
        assert_eq!(stack.kernel.iter().collect::<Vec<_>>(), [7, 8]);
        assert_eq!(stack.user.iter().collect::<Vec<_>>(), [9]);
        assert_eq!((stack.since, stack.state), (40, 2));
    }

    #[test]
    fn a_stack_that_claims_more_addresses_than_it_has_is_damaged() {
        for (kernel, user) in [(3, 1), (0, 4), (u16::MAX, u16::MAX)] {
            let encoder = stack(kernel, user, &[7, 8, 9]);
            let found = records(encoder.payload()).next();
            let is_short = matches!(found, Some((_, Err(RecordError::Short(Kind::Sample)))));
            assert!(is_short, "{found:?}");
        }
        let mut encoder = Encoder::default();
        let record = encoder.begin(Kind::Lock, 90, (3, 4));
        record
            .u64(40)
            .u64(5)
            .u32(1)
            .u32(0)
            .u32(u32::MAX)
            .u32(0)
            .end();
        let found = records(encoder.payload()).next();
        assert!(matches!(found, Some((_, Err(RecordError::Short(_))))));
    }
}
