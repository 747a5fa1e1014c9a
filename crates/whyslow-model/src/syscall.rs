//! The meaning of each system call: its operation class and its arguments.
//!
//! [`call`] finds a call by any name that a source uses, [`number_name`] maps the number of an
//! architecture to a name, and [`members`] lists the calls of a class for the documentation.

mod calls;
mod numbers;
pub mod waits;

use std::sync::LazyLock;

use rustc_hash::FxHashMap;

use crate::event::SyscallArgs;

/// Operation class of a system call. Its name is the `op` column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Op {
    /// Makes or names a descriptor: open, socket, dup, pipe, eventfd, …
    Open,
    /// Connects or names a socket: connect, accept, accept4, bind.
    Connect,
    /// close, close_range.
    Close,
    /// read, pread64, readv, recvfrom, recvmsg, readahead, …
    Read,
    /// write, pwrite64, writev, sendto, sendmsg, …
    Write,
    /// Reads one object and writes another: sendfile, splice, copy_file_range.
    ReadWrite,
    /// sync, fsync, fdatasync, msync, syncfs, sync_file_range.
    Sync,
    /// Operations on names and attributes: stat, rename, unlink, mkdir, truncate, fallocate, …
    Metadata,
    /// Waiting for readiness or completion: poll, select, epoll_wait, io_getevents, …
    Wait,
    /// Asynchronous I/O submission: io_submit, io_uring_enter.
    Submit,
    /// mmap, munmap, mprotect, brk, …
    Memory,
    /// futex and relatives.
    Lock,
    /// nanosleep, clock_nanosleep, pause, …
    Sleep,
    /// clone, execve, exit, wait, kill, …
    Process,
    /// Everything else.
    Other,
}

impl Op {
    /// All classes, in the order of the documentation.
    pub const ALL: [Op; 15] = [
        Op::Open,
        Op::Connect,
        Op::Close,
        Op::Read,
        Op::Write,
        Op::ReadWrite,
        Op::Sync,
        Op::Metadata,
        Op::Wait,
        Op::Submit,
        Op::Memory,
        Op::Lock,
        Op::Sleep,
        Op::Process,
        Op::Other,
    ];

    /// Value of the column `syscall.op`.
    pub fn name(self) -> &'static str {
        match self {
            Op::Open => "open",
            Op::Connect => "connect",
            Op::Close => "close",
            Op::Read => "read",
            Op::Write => "write",
            Op::ReadWrite => "read_write",
            Op::Sync => "sync",
            Op::Metadata => "metadata",
            Op::Wait => "wait",
            Op::Submit => "submit",
            Op::Memory => "memory",
            Op::Lock => "lock",
            Op::Sleep => "sleep",
            Op::Process => "process",
            Op::Other => "other",
        }
    }

    /// Returns the class with that [`Op::name`].
    pub fn by_name(name: &str) -> Option<Op> {
        Op::ALL.into_iter().find(|op| op.name() == name)
    }

    /// Whether the kind `io` includes it.
    pub fn is_io(self) -> bool {
        matches!(
            self,
            Op::Open
                | Op::Connect
                | Op::Close
                | Op::Read
                | Op::Write
                | Op::ReadWrite
                | Op::Sync
                | Op::Metadata
                | Op::Submit
        )
    }
}

/// Meaning of an argument; each is a field of [`SyscallArgs`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// First descriptor; a C `int`.
    Fd,
    /// Second descriptor.
    Fd2,
    /// Directory of the first path, or `AT_FDCWD`.
    Dirfd,
    /// Directory of the second path.
    Dirfd2,
    /// First path.
    Path,
    /// Second path.
    Path2,
    /// Bytes to transfer.
    Count,
    /// File offset in bytes.
    Offset,
    /// An offset in units of 4096-byte pages.
    PageOffset,
    /// Flags as passed.
    Flags,
    /// Command of fcntl, ioctl, futex, epoll_ctl.
    Command,
    /// Value that belongs to the command.
    Value,
    /// Address in the memory of the process.
    Address,
    /// Second address of futex.
    Address2,
    /// Address of a `timespec`; 0 for no timeout.
    Timeout,
    /// Timeout in ms, a C `int`; stored as the command.
    TimeoutMs,
    /// Address family of a socket.
    Family,
    /// Type of a socket.
    SocketType,
}

/// One argument of a call.
#[derive(Debug)]
pub struct Arg {
    /// `None` for arguments that are not used.
    pub role: Option<Role>,
    /// Field names in sources that name the arguments.
    pub fields: &'static [&'static str],
}

/// One system call.
#[derive(Debug)]
pub struct Call {
    /// Name without prefix, as in user-space headers: `pread64`.
    pub name: &'static str,
    /// Class, unless [`Call::op_of`] derives another one from the command.
    pub op: Op,
    /// Whether a successful return value is a number of bytes transferred.
    pub returns_bytes: bool,
    /// In the order of the registers.
    pub args: &'static [Arg],
}

/// Used for all calls that are not in the table.
static UNKNOWN: Call = Call {
    name: "",
    op: Op::Other,
    returns_bytes: false,
    args: &[],
};

/// System call numbering: of an architecture, or of its 32-bit compatibility mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Abi {
    /// 64-bit x86; x32 numbers are not supported.
    X86_64,
    /// 32-bit x86, also of processes on a 64-bit kernel.
    I386,
    /// 32-bit ARM (EABI), also of processes on a 64-bit kernel.
    Arm,
    /// 64-bit ARM.
    Aarch64,
}

impl Abi {
    /// Numbering of calls through the compatibility table.
    pub fn compat(self) -> Abi {
        match self {
            Abi::X86_64 | Abi::I386 => Abi::I386,
            Abi::Aarch64 | Abi::Arm => Abi::Arm,
        }
    }

    /// Whether registers have 64 bits, so that an offset fits into one.
    pub fn is_64_bit(self) -> bool {
        matches!(self, Abi::X86_64 | Abi::Aarch64)
    }
}

static BY_NAME: LazyLock<FxHashMap<&'static str, &'static Call>> = LazyLock::new(|| {
    let mut by_name: FxHashMap<_, _> = calls::CALLS.iter().map(|call| (call.name, call)).collect();
    for &(alias, name) in calls::ALIASES {
        let call = by_name[name]; // a test checks that the call of every alias exists
        by_name.insert(alias, call);
    }
    by_name
});

/// Returns the call with that name. Wider and narrower variants (`stat64`, `chown16`,
/// `futex_time64`) are treated like the plain call; a name that is not in the table is
/// [`Op::Other`].
pub fn call(name: &str) -> &'static Call {
    if let Some(&call) = BY_NAME.get(name) {
        return call;
    }
    let plain = ["_time64", "_time32", "64", "32", "16"]
        .into_iter()
        .find_map(|suffix| name.strip_suffix(suffix))
        .unwrap_or(name);
    BY_NAME.get(plain).copied().unwrap_or(&UNKNOWN)
}

/// Name to display: that of the user-space headers if a source uses the kernel's own.
pub fn canonical_name(name: &str) -> &str {
    let alias = calls::ALIASES.iter().find(|&&(alias, _)| alias == name);
    alias.map_or(name, |&(_, canonical)| canonical)
}

/// Returns the name of a call that a source identifies by number.
pub fn number_name(abi: Abi, nr: i64) -> Option<&'static str> {
    let runs = numbers::runs(abi);
    let run = runs.partition_point(|&(first, _)| i64::from(first) <= nr);
    let (first, names) = runs.get(run.checked_sub(1)?)?;
    names.split(' ').nth((nr - i64::from(*first)) as usize)
}

/// Numbers by name, one table per architecture.
static NUMBERS: LazyLock<[FxHashMap<&'static str, i32>; 4]> = LazyLock::new(|| {
    [Abi::X86_64, Abi::I386, Abi::Arm, Abi::Aarch64].map(|abi| {
        let run = |&(first, names): &(u16, &'static str)| names.split(' ').zip(i32::from(first)..);
        numbers::runs(abi).iter().flat_map(run).collect()
    })
});

/// Returns the number of a call, by the name that [`number_name`] returns.
pub fn number_of(abi: Abi, name: &str) -> Option<i32> {
    NUMBERS[abi as usize].get(name).copied()
}

/// Returns the calls of a class, by name. `fcntl` is classified by command: see [`Call::op_of`].
pub fn members(op: Op) -> impl Iterator<Item = &'static Call> {
    let mut calls: Vec<_> = calls::CALLS.iter().filter(|call| call.op == op).collect();
    calls.sort_by_key(|call| call.name);
    calls.into_iter()
}

/// Commands of `fcntl` that create a descriptor: `F_DUPFD`, `F_DUPFD_CLOEXEC`.
pub const FCNTL_DUP: [i64; 2] = [0, 1030];
/// Commands of `fcntl` for locking: `F_SETLK`, `F_SETLKW`, their 64-bit and `F_OFD_` forms.
const FCNTL_LOCK: [i64; 6] = [6, 7, 13, 14, 37, 38];
const PAGE_BYTES: i64 = 4096;

impl Call {
    /// Class, taking the command into account.
    pub fn op_of(&self, args: &SyscallArgs<'_>) -> Op {
        match (self.name, args.command) {
            ("fcntl", Some(command)) if FCNTL_DUP.contains(&command) => Op::Open,
            ("fcntl", Some(command)) if FCNTL_LOCK.contains(&command) => Op::Lock,
            ("socketcall", Some(command)) => socketcall_op(command),
            _ => self.op,
        }
    }

    /// Arguments from registers. Paths and structures are behind pointers and remain unknown.
    pub fn args_of_registers(&self, registers: [u64; 6], abi: Abi) -> SyscallArgs<'static> {
        let mut args = SyscallArgs {
            raw: Some(registers),
            ..SyscallArgs::default()
        };
        for (arg, register) in self.args.iter().zip(registers) {
            if arg.role == Some(Role::Offset) && !abi.is_64_bit() {
                // Takes two registers, on ARM an even pair, so the following positions vary.
                break;
            }
            if let Some(role) = arg.role {
                args.set(role, register as i64);
            }
        }
        args
    }
}

/// Class of a call multiplexed by `socketcall`, by `SYS_*` of `linux/net.h`.
fn socketcall_op(command: i64) -> Op {
    match command {
        1 | 8 => Op::Open,
        2 | 3 | 5 | 18 => Op::Connect,
        9 | 11 | 16 | 20 => Op::Write,
        10 | 12 | 17 | 19 => Op::Read,
        _ => Op::Other,
    }
}

impl SyscallArgs<'_> {
    /// Stores a number according to its role. Descriptors and socket numbers are C `int`s, so the
    /// upper half of the register is ignored. Paths are not numbers and are left unchanged.
    pub fn set(&mut self, role: Role, value: i64) {
        let int = i64::from(value as i32);
        match role {
            Role::Fd => self.fd = Some(int),
            Role::Fd2 => self.fd2 = Some(int),
            Role::Dirfd => self.dirfd = Some(int),
            Role::Dirfd2 => self.dirfd2 = Some(int),
            Role::Count => self.count = Some(value),
            Role::Offset => self.offset = Some(value),
            Role::PageOffset => self.offset = Some(value.wrapping_mul(PAGE_BYTES)),
            Role::Flags => self.flags = Some(value),
            Role::Command => self.command = Some(value),
            Role::Value => self.value = Some(value),
            Role::Address => self.address = Some(value as u64),
            Role::Address2 => self.address2 = Some(value as u64),
            Role::Timeout => self.timeout = Some(value as u64),
            Role::TimeoutMs => self.command = Some(int),
            Role::Family => self.family = Some(value as i32),
            Role::SocketType => self.socket_type = Some(value as i32),
            Role::Path | Role::Path2 => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_name_calls_of_each_architecture() {
        let check = |abi, nr, name| assert_eq!(number_name(abi, nr), name, "{abi:?} {nr}");
        check(Abi::X86_64, 0, Some("read"));
        check(Abi::X86_64, 312, Some("kcmp"));
        check(Abi::X86_64, 317, Some("seccomp"));
        check(Abi::X86_64, 332, Some("statx"));
        check(Abi::X86_64, 334, Some("rseq"));
        check(Abi::X86_64, 400, None);
        check(Abi::X86_64, 435, Some("clone3"));
        check(Abi::X86_64, 439, Some("faccessat2"));
        check(Abi::X86_64, 462, Some("mseal"));
        check(Abi::X86_64, 5000, None);
        check(Abi::X86_64, -1, None);
        check(Abi::I386, 102, Some("socketcall"));
        check(Abi::I386, 437, Some("openat2"));
        check(Abi::Arm, 322, Some("openat"));
        check(Abi::Aarch64, 56, Some("openat"));
        check(Abi::Aarch64, 441, Some("epoll_pwait2"));
        assert_eq!(number_of(Abi::X86_64, "clone3"), Some(435));
        assert_eq!(number_of(Abi::Aarch64, "open"), None);
    }

    #[test]
    fn every_name_is_there_once_and_is_a_call_of_some_architecture() {
        let abis = [Abi::X86_64, Abi::I386, Abi::Arm, Abi::Aarch64];
        let numbered: Vec<&str> = abis
            .into_iter()
            .flat_map(|abi| numbers::runs(abi).iter())
            .flat_map(|(_, names)| names.split(' '))
            .collect();
        let mut seen = std::collections::HashSet::new();
        for call in calls::CALLS {
            assert!(seen.insert(call.name), "{} twice", call.name);
            assert!(numbered.contains(&call.name), "{} has no number", call.name);
            assert!(call.args.len() <= 6, "{}", call.name);
        }
        for (alias, _) in calls::ALIASES {
            assert!(!seen.contains(alias), "{alias} is a call and an alias");
        }
    }

    #[test]
    fn names_of_sources_find_their_class() {
        let check = |name, op| assert_eq!(call(name).op, op, "{name}");
        check("openat2", Op::Open);
        check("accept4", Op::Connect);
        check("connect", Op::Connect);
        check("socket", Op::Open);
        check("newfstat", Op::Metadata);
        check("fstat64", Op::Metadata);
        check("chown16", Op::Metadata);
        check("futex_time64", Op::Lock);
        check("sendfile64", Op::ReadWrite);
        check("recvmmsg_time32", Op::Read);
        check("io_uring_enter", Op::Submit);
        check("getpid", Op::Other);
        assert_eq!(canonical_name("newlstat"), "lstat");
        assert_eq!(canonical_name("openat"), "openat");
    }

    #[test]
    fn fcntl_is_what_its_command_does() {
        let op = |command| {
            call("fcntl").op_of(&SyscallArgs {
                command: Some(command),
                ..SyscallArgs::default()
            })
        };
        assert_eq!(
            (op(0), op(1030), op(7), op(3)),
            (Op::Open, Op::Open, Op::Lock, Op::Other)
        );
    }

    #[test]
    fn registers_become_arguments_by_position() {
        let read =
            call("pread64").args_of_registers([0xffff_ffff, 9, 4096, 512, 0, 0], Abi::X86_64);
        assert_eq!(
            (read.fd, read.count, read.offset),
            (Some(-1), Some(4096), Some(512))
        );
        let compat = call("pread64").args_of_registers([3, 9, 4096, 512, 0, 0], Abi::I386);
        assert_eq!((compat.count, compat.offset), (Some(4096), None));
        let copy = call("copy_file_range").args_of_registers([3, 0, 4, 0, 100, 0], Abi::X86_64);
        assert_eq!(
            (copy.fd, copy.fd2, copy.count),
            (Some(3), Some(4), Some(100))
        );
    }
}
