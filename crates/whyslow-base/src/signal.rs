//! Which signal ended the program, and the corresponding exit code.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};

use signal_hook::consts::SIGINT;

/// The signal that was received, or 0.
pub(crate) static RECEIVED: LazyLock<Arc<AtomicUsize>> = LazyLock::new(Arc::default);

/// The last signal that was received.
pub(crate) fn received() -> Option<i32> {
    let signal = RECEIVED.load(Ordering::Relaxed) as i32;
    (signal != 0).then_some(signal)
}

/// The exit code after an interruption.
pub(crate) fn exit_code() -> u8 {
    exit_code_of(received().unwrap_or(SIGINT)) as u8
}

/// 128 plus the signal number, as shells do.
pub(crate) fn exit_code_of(signal: i32) -> i32 {
    128 + signal
}

/// Whether this process ignores a signal, because its parent did.
pub(crate) fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    is_in_mask(&status, signal)
}

/// `SigIgn:` is a hexadecimal mask with the lowest bit for signal 1.
fn is_in_mask(status: &str, signal: i32) -> bool {
    let mask = status
        .lines()
        .find_map(|line| line.strip_prefix("SigIgn:"))
        .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask & (1 << (signal - 1)) != 0)
}

#[cfg(test)]
mod tests {
    use signal_hook::consts::{SIGHUP, SIGTERM};

    use super::*;

    #[test]
    fn ignored_signals_are_those_of_the_mask() {
        let status = "SigBlk:\t0000000000000000\nSigIgn:\t0000000000001001\nSigCgt:\t4000\n";
        assert!(is_in_mask(status, SIGHUP));
        assert!(!is_in_mask(status, SIGTERM) && !is_in_mask(status, SIGINT));
        assert!(!is_in_mask("", SIGHUP));
    }
}
