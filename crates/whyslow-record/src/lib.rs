//! Records a live machine: programs in the kernel tell what happens, snapshots what is there, and
//! both go to a spool ([`whyslow_model::spool`]), which `import` turns into a recording.
//!
//! The only crate that needs privileges.

mod clock;
mod error;
mod libraries;
mod load;
mod options;
mod preflight;
mod programs;
mod session;
#[allow(
    unsafe_code,
    missing_debug_implementations,
    unreachable_pub,
    clippy::all,
    clippy::pedantic,
    clippy::unwrap_used
)]
mod skeleton {
    include!(concat!(env!("OUT_DIR"), "/recorder.skel.rs"));
}
mod snapshot;
mod specs;
mod spool;
mod tick;
mod watch;
#[cfg(test)]
mod wire_tests;

pub use error::RecordError;
pub use options::{BUFFER_BYTES, Options, SPOOL_BYTES_MAX};
pub use preflight::{Check, State, checks};
pub use programs::{Off, Topic};
pub use session::{Progress, Ready, Summary, record};
