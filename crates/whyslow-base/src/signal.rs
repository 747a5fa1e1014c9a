//! Which signal ended the program, and the exit code that tells it.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};

use signal_hook::consts::SIGINT;

/// The signal that came, if one did.
pub(crate) static CAME: LazyLock<Arc<AtomicUsize>> = LazyLock::new(Arc::default);

/// What to exit with after an interruption.
pub(crate) fn exit_code() -> u8 {
    let signal = match CAME.load(Ordering::Relaxed) {
        0 => SIGINT,
        signal => signal as i32,
    };
    exit_code_of(signal) as u8
}

/// As shells do: 128 and the number of the signal.
pub(crate) fn exit_code_of(signal: i32) -> i32 {
    128 + signal
}
