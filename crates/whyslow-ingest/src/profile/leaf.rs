//! Classifies the activity of a thread by the innermost frames of its stack.

use super::{CodeFrame, CodeKind};

/// Cause of a sampling gap, by the innermost frame of the sample that ended it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Leaf {
    /// A system call with uninterruptible waits.
    FileCall,
    /// Code that accesses memory which may have to be read from a file.
    Memory,
    /// A system call whose wait ends on a signal.
    Interruptible,
    /// Anything else: the thread was computing.
    Code,
}

/// System calls for files and memory.
const FILE_CALLS: &[&str] = &[
    "read",
    "pread",
    "readv",
    "preadv",
    "write",
    "pwrite",
    "writev",
    "pwritev",
    "sendfile",
    "splice",
    "copy_file_range",
    "fsync",
    "fdatasync",
    "msync",
    "sync_file_range",
    "sync",
    "syncfs",
    "open",
    "openat",
    "close",
    "stat",
    "lstat",
    "fstat",
    "fstatat",
    "newfstatat",
    "statx",
    "xstat",
    "fxstat",
    "access",
    "faccessat",
    "rename",
    "renameat",
    "unlink",
    "unlinkat",
    "rmdir",
    "link",
    "symlink",
    "readlink",
    "ftruncate",
    "truncate",
    "fallocate",
    "posix_fallocate",
    "mkdir",
    "mkdirat",
    "getdents",
    "readdir",
    "chmod",
    "chown",
    "utimensat",
    "mmap",
    "munmap",
    "mprotect",
    "madvise",
    "mremap",
    "brk",
    "lseek",
    "flock",
    "execve",
    "ioctl",
];

/// System calls that a signal interrupts.
const INTERRUPTIBLE: &[&str] = &[
    "futex",
    "futex_abstimed_wait_common",
    "lll_lock_wait",
    "epoll_wait",
    "epoll_pwait",
    "poll",
    "ppoll",
    "select",
    "pselect",
    "nanosleep",
    "clock_nanosleep",
    "usleep",
    "sleep",
    "accept",
    "accept4",
    "recv",
    "recvfrom",
    "recvmsg",
    "send",
    "sendto",
    "sendmsg",
    "connect",
    "sem_wait",
    "sem_timedwait",
    "new_sem_wait_slow",
    "pthread_cond_wait",
    "pthread_cond_timedwait",
    "pthread_mutex_lock",
    "wait",
    "wait4",
    "waitpid",
    "waitid",
    "sigwait",
    "sigtimedwait",
    "pause",
    "sched_yield",
    "io_getevents",
    "syscall",
];

/// JDK methods that make such calls, for profiles without native frames.
const JAVA_FILE_CALLS: &[&str] = &[
    "sun.nio.ch.FileDispatcherImpl.",
    "sun.nio.ch.UnixFileDispatcherImpl.",
    "sun.nio.ch.FileChannelImpl.transferTo",
    "sun.nio.ch.FileChannelImpl.map0",
    "java.io.FileInputStream.",
    "java.io.FileOutputStream.",
    "java.io.RandomAccessFile.",
    "java.io.UnixFileSystem.",
    "sun.nio.fs.UnixNativeDispatcher.",
    "java.nio.MappedMemoryUtils.force0",
    "java.nio.MappedByteBuffer.force0",
];

const JAVA_INTERRUPTIBLE: &[&str] = &[
    "jdk.internal.misc.Unsafe.park",
    "sun.misc.Unsafe.park",
    "java.lang.Object.wait",
    "java.lang.Thread.sleep",
    "sun.nio.ch.EPoll.",
    "sun.nio.ch.EPollArrayWrapper.",
    "sun.nio.ch.Net.",
    "sun.nio.ch.SocketDispatcher.",
    "java.net.SocketInputStream.",
    "java.net.SocketOutputStream.",
    "java.net.PlainSocketImpl.",
    "java.lang.ref.Reference.waitForReferencePendingList",
];

const MEMORY: &[&str] = &[
    "memcpy",
    "memmove",
    "memset",
    "Unsafe_CopyMemory",
    "Copy::",
    "page_fault",
];

/// Kernel and library frames that do not indicate the cause of the wait.
const BELOW_MAX: usize = 12;

/// Classifies a stack, innermost frame first.
pub fn leaf<'f>(mut frames: impl Iterator<Item = &'f CodeFrame>) -> Leaf {
    // Kernel frames end in the system call entry, followed by the frame of the call.
    let frame = frames
        .by_ref()
        .take(BELOW_MAX)
        .find(|frame| frame.kind != CodeKind::Kernel);
    let Some(frame) = frame else {
        return Leaf::Code;
    };
    if frame.kind == CodeKind::Managed {
        let is_of = |names: &[&str]| names.iter().any(|name| frame.function.starts_with(name));
        if is_of(JAVA_FILE_CALLS) {
            return Leaf::FileCall;
        }
        if is_of(JAVA_INTERRUPTIBLE) {
            return Leaf::Interruptible;
        }
        let is_mapped = std::iter::once(frame).chain(frames.take(2)).any(|frame| {
            frame.function.contains("MappedByteBuffer")
                || frame.function.contains("Unsafe.copyMemory")
        });
        return if is_mapped { Leaf::Memory } else { Leaf::Code };
    }
    if MEMORY.iter().any(|name| frame.function.contains(name)) {
        return Leaf::Memory;
    }
    match call_of(&frame.function) {
        Some(call) if FILE_CALLS.contains(&call) => Leaf::FileCall,
        Some(call) if INTERRUPTIBLE.contains(&call) => Leaf::Interruptible,
        _ => Leaf::Code,
    }
}

/// Maps a function of the C library to its system call: `__libc_pwrite64` to `pwrite`.
pub fn call_of(function: &str) -> Option<&str> {
    // Removes suffixes of symbol versions, and of functions split by the compiler.
    let name = function.split(['@', '.', '(']).next()?;
    let name = name.trim_start_matches('_');
    let name = ["libc_", "GI_", "internal_", "new_"]
        .iter()
        .find_map(|prefix| name.strip_prefix(prefix).filter(|_| *prefix != "new_"))
        .unwrap_or(name);
    let name = name.trim_start_matches('_');
    let name = name.strip_suffix("_nocancel").unwrap_or(name);
    let name = name.strip_suffix("_2").unwrap_or(name);
    let is_call = |name: &str| FILE_CALLS.contains(&name) || INTERRUPTIBLE.contains(&name);
    if is_call(name) {
        return Some(name);
    }
    let short = name.strip_suffix("64").unwrap_or(name);
    is_call(short).then_some(short)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_of_the_c_library_are_known_by_their_calls() {
        for (function, call) in [
            ("write", Some("write")),
            ("__write", Some("write")),
            ("__libc_pwrite64", Some("pwrite")),
            ("__GI___fdatasync", Some("fdatasync")),
            ("sendfile64", Some("sendfile")),
            ("__read_nocancel", Some("read")),
            ("__open64_2", Some("open")),
            (
                "__futex_abstimed_wait_common",
                Some("futex_abstimed_wait_common"),
            ),
            (
                "__new_sem_wait_slow64.constprop.0",
                Some("new_sem_wait_slow"),
            ),
            ("___pthread_cond_timedwait", Some("pthread_cond_timedwait")),
            ("fsync@plt", Some("fsync")),
            ("writer", None),
            ("", None),
        ] {
            assert_eq!(call_of(function), call, "{function}");
        }
    }

    #[test]
    fn the_innermost_frame_tells() {
        let frame = |kind, function: &str| CodeFrame {
            kind,
            function: function.to_owned(),
            module: None,
            line: None,
        };
        let native = |function| frame(CodeKind::User, function);
        let java = |function| frame(CodeKind::Managed, function);
        for (frames, wanted) in [
            (vec![native("__write"), java("a.B.c")], Leaf::FileCall),
            (
                vec![java("sun.nio.ch.FileDispatcherImpl.force0")],
                Leaf::FileCall,
            ),
            (vec![java("sun.nio.ch.EPoll.wait")], Leaf::Interruptible),
            (vec![native("__memcpy_avx_unaligned")], Leaf::Memory),
            (
                vec![java("a.B.get"), java("java.nio.DirectMappedByteBuffer.get")],
                Leaf::Memory,
            ),
            (vec![java("a.B.write")], Leaf::Code),
            (
                vec![frame(CodeKind::Kernel, "schedule"), native("fsync")],
                Leaf::FileCall,
            ),
            (vec![], Leaf::Code),
        ] {
            assert_eq!(leaf(frames.iter()), wanted, "{frames:?}");
        }
    }
}
