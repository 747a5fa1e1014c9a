//! Errors of a recording.

use std::io;
use std::path::PathBuf;

use crate::programs::Off;

/// Why a recording cannot start, or had to stop.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecordError {
    /// Loading BPF programs needs root, or CAP_BPF and CAP_PERFMON.
    #[error("cannot load BPF programs: permission denied")]
    NotPermitted,
    /// The kernel is built without BTF, which the programs need to locate fields of kernel
    /// structures.
    #[error("cannot load BPF programs: the kernel has no BTF (/sys/kernel/btf/vmlinux is missing)")]
    NoTypes,
    /// The process runs in its own PID namespace, so its ids do not match those of kernel events.
    #[error(
        "cannot record inside a PID namespace: kernel events carry the process ids of the host"
    )]
    Container,
    /// libbpf rejects the object that contains all programs.
    #[error("cannot load BPF programs")]
    Load(#[source] libbpf_rs::Error),
    /// The kernel rejects every form of every program.
    #[error("cannot load BPF programs: the kernel rejects all of them")]
    AllRefused {
        /// Each program and the kernel's reason.
        off: Vec<Off>,
    },
    /// The object has no section for settings: it was not built from this source.
    #[error("cannot load BPF programs: the object has no settings section")]
    Settings,
    /// The ring buffers do not fit in memory, or in `RLIMIT_MEMLOCK` on kernels before 5.11.
    #[error("cannot allocate memory for the ring buffers")]
    Buffer(#[source] libbpf_rs::Error),
    /// A function or USDT probe cannot be attached.
    #[error("{what}")]
    Probe {
        /// What cannot be attached and why, as a complete message.
        what: String,
        /// How to fix it; empty if nothing helps.
        hint: String,
    },
    /// The map of processes to record could not be filled.
    #[error("cannot set up the process filter")]
    Targets(#[source] libbpf_rs::Error),
    /// The ring buffers cannot be read.
    #[error("cannot read events from the kernel")]
    Consume(#[source] libbpf_rs::Error),
    /// The search for files that contain the DNS lookup functions could not start.
    #[error("cannot search for libraries with DNS lookup functions")]
    Search(#[source] io::Error),
    /// Wall-clock sampling cannot start.
    #[error("cannot start wall-clock sampling")]
    Wall(#[source] io::Error),
    /// The spool cannot be created or written.
    #[error("cannot write the spool `{}`", path.display())]
    Spool {
        /// The spool, or a file in it.
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
    /// [`Options::spool_bytes_max`](crate::Options::spool_bytes_max) is smaller than the first
    /// snapshot.
    #[error("cannot start the spool: its first snapshot exceeds the limit of {bytes_max} bytes")]
    SpoolRoom {
        /// The limit.
        bytes_max: u64,
    },
}
