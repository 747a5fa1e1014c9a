//! Why nothing can be recorded.

use std::io;
use std::path::PathBuf;

use crate::programs::Off;

/// Why a recording cannot begin, or has to end.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecordError {
    /// Loading BPF programs needs root, or CAP_BPF and CAP_PERFMON.
    #[error("the kernel takes no eBPF programs from this user")]
    NotPermitted,
    /// The kernel is built without BTF, which the programs find fields of kernel structures by.
    #[error("the kernel does not describe its types (no /sys/kernel/btf/vmlinux)")]
    NoTypes,
    /// The process runs in a pid namespace of its own, and ids would not match.
    #[error("this container has process ids of its own, and the kernel tells those of the host")]
    Container,
    /// libbpf refuses the object with all programs.
    #[error("failed to load the programs")]
    Load(#[source] libbpf_rs::Error),
    /// The kernel refuses every program in all of its forms.
    #[error("the kernel refuses all programs")]
    AllRefused {
        /// Each program and the reason of the kernel.
        off: Vec<Off>,
    },
    /// The object lacks its section of settings: it was not built from this source.
    #[error("the programs have no settings")]
    Settings,
    /// The ring buffers do not fit in memory, or in `RLIMIT_MEMLOCK` on kernels before 5.11.
    #[error("failed to reserve memory for events")]
    Buffer(#[source] libbpf_rs::Error),
    /// A function or static probe cannot be attached.
    #[error("{what}")]
    Probe {
        /// What cannot be attached and why, a whole sentence.
        what: String,
        /// What to do about it; empty if nothing helps.
        hint: String,
    },
    /// The map of processes to record could not be filled.
    #[error("failed to choose processes")]
    Targets(#[source] libbpf_rs::Error),
    /// The ring buffers cannot be read.
    #[error("failed to read events from the kernel")]
    Consume(#[source] libbpf_rs::Error),
    /// The search for files with the functions of DNS lookups could not begin.
    #[error("failed to look for files that have the functions")]
    Search(#[source] io::Error),
    /// Wall-clock sampling cannot begin.
    #[error("failed to look at all threads")]
    Wall(#[source] io::Error),
    /// The spool cannot be created or written.
    #[error("failed to write the spool `{}`", path.display())]
    Spool {
        /// The spool, or a file in it.
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
    /// [`Options::spool_bytes_max`](crate::Options::spool_bytes_max) is below the size of the first
    /// snapshot.
    #[error("{bytes_max} bytes are not enough for what a spool begins with")]
    SpoolRoom {
        /// The limit that was given.
        bytes_max: u64,
    },
}
