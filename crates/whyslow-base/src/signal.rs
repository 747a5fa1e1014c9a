//! Which signal ended the program, and the corresponding exit code.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};

use signal_hook::consts::SIGINT;

/// The signal that was received, or 0.
pub(crate) static RECEIVED: LazyLock<Arc<AtomicUsize>> = LazyLock::new(Arc::default);

/// The exit code after an interruption.
pub(crate) fn exit_code() -> u8 {
    let signal = match RECEIVED.load(Ordering::Relaxed) {
        0 => SIGINT,
        signal => signal as i32,
    };
    exit_code_of(signal) as u8
}

/// 128 plus the signal number, as shells do.
pub(crate) fn exit_code_of(signal: i32) -> i32 {
    128 + signal
}
