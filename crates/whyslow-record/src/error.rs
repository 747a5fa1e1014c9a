//! Why nothing can be recorded.

use std::io;
use std::path::PathBuf;

use crate::programs::Off;

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecordError {
    #[error("the kernel takes no eBPF programs from this user")]
    NotPermitted,
    #[error("the kernel does not describe its types (no /sys/kernel/btf/vmlinux)")]
    NoTypes,
    #[error("this container has process ids of its own, and the kernel tells those of the host")]
    Container,
    #[error("failed to load the programs")]
    Load(#[source] libbpf_rs::Error),
    #[error("the kernel refuses all programs")]
    AllRefused { off: Vec<Off> },
    #[error("the programs have no settings")]
    Settings,
    #[error("failed to reserve memory for events")]
    Buffer(#[source] libbpf_rs::Error),
    #[error("{what}")]
    Probe { what: String, hint: String },
    #[error("failed to choose processes")]
    Targets(#[source] libbpf_rs::Error),
    #[error("failed to read events from the kernel")]
    Consume(#[source] libbpf_rs::Error),
    #[error("failed to look for files that have the functions")]
    Search(#[source] io::Error),
    #[error("failed to look at all threads")]
    Wall(#[source] io::Error),
    #[error("failed to write the spool `{}`", path.display())]
    Spool { path: PathBuf, source: io::Error },
    #[error("{bytes_max} bytes are not enough for what a spool begins with")]
    SpoolRoom { bytes_max: u64 },
}
