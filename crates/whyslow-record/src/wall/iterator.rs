//! Samples threads with a BPF iterator.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::{AsFd as _, AsRawFd as _, FromRawFd as _, OwnedFd};

use libbpf_rs::Link;

use super::thread_sample::{self, ThreadSample};

/// Bytes per read of the iterator.
const READ_BYTES: usize = 64 << 10;

/// Runs the iterator program of a link.
pub(super) struct Iterator {
    link: OwnedFd,
    buffer: Vec<u8>,
}

impl Iterator {
    pub(super) fn of(link: &Link) -> io::Result<Self> {
        Ok(Self {
            link: link.as_fd().try_clone_to_owned()?,
            buffer: vec![0; READ_BYTES],
        })
    }

    pub(super) fn round(&mut self, found: &mut Vec<ThreadSample>) -> io::Result<()> {
        let mut threads = begin(&self.link)?;
        loop {
            match threads.read(&mut self.buffer) {
                Ok(0) => return Ok(()),
                Ok(count) => thread_sample::parse(&self.buffer[..count], found),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

#[allow(unsafe_code)]
fn begin(link: &OwnedFd) -> io::Result<File> {
    // SAFETY: the descriptor is open; the result is a new descriptor or an error.
    let fd = unsafe { libbpf_rs::libbpf_sys::bpf_iter_create(link.as_raw_fd()) };
    if fd < 0 {
        return Err(io::Error::from_raw_os_error(-fd));
    }
    // SAFETY: the kernel just opened it for us.
    Ok(unsafe { File::from_raw_fd(fd) })
}
