//! Timer ticks on each CPU, to report long calls before they end, and to take samples.

use std::os::fd::{FromRawFd, IntoRawFd, OwnedFd};

use libbpf_rs::{Link, ProgramMut};
use perf_event_open_sys as perf;

/// Ticks per second: cheap, and frequent enough to bound how far back a record reaches.
pub(crate) const FREQUENCY: u32 = 20;

/// Attaches the program to a timer on every online CPU.
pub(crate) fn attach(
    program: &ProgramMut<'_>,
    frequency: u32,
) -> Result<Vec<Link>, libbpf_rs::Error> {
    let cpus = libbpf_rs::num_possible_cpus()?;
    let mut links = Vec::new();
    let mut failed = None;
    for cpu in 0..cpus as i32 {
        match open(cpu, frequency) {
            Ok(clock) => {
                // The link closes the event when dropped.
                links.push(program.attach_perf_event(clock.into_raw_fd())?);
            }
            // An offline CPU has no timer.
            Err(error) => failed = Some(error),
        }
    }
    match failed {
        Some(error) if links.is_empty() => Err(error.into()),
        _ => Ok(links),
    }
}

#[allow(unsafe_code)]
fn open(cpu: i32, frequency: u32) -> std::io::Result<OwnedFd> {
    let mut attributes = perf::bindings::perf_event_attr {
        type_: perf::bindings::PERF_TYPE_SOFTWARE,
        size: size_of::<perf::bindings::perf_event_attr>() as u32,
        config: u64::from(perf::bindings::PERF_COUNT_SW_CPU_CLOCK),
        ..Default::default()
    };
    attributes.__bindgen_anon_1.sample_freq = u64::from(frequency);
    attributes.set_freq(1);
    let flags = u64::from(perf::bindings::PERF_FLAG_FD_CLOEXEC);
    // SAFETY: the attributes have the size they state, and live until the call returns.
    let fd = unsafe { perf::perf_event_open(&raw mut attributes, -1, cpu, -1, flags) };
    if fd < 0 {
        return Err(std::io::Error::last_os_error());
    }
    // SAFETY: the kernel just opened it for us.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}
