//! Ctrl-C, or a request to end, while something is written: stop, clean up, and exit with 128 + the
//! number of the signal, as shells do. A second one ends at once.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

use crate::failure::Failure;

/// The signal that came, if one did.
static CAME: LazyLock<Arc<AtomicUsize>> = LazyLock::new(Arc::default);

/// A flag that is set by Ctrl-C or a request to end.
pub(crate) fn flag() -> Result<Arc<AtomicBool>, Failure> {
    let cancel = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        // In this order: the first signal finds the flag unset and only sets it.
        flag::register_conditional_shutdown(signal, exit_code_of(signal), Arc::clone(&cancel))
            .and_then(|_| flag::register_usize(signal, Arc::clone(&CAME), signal as usize))
            .and_then(|_| flag::register(signal, Arc::clone(&cancel)))
            .map_err(|error| Failure::new("failed to watch for signals").caused_by(&error))?;
    }
    Ok(cancel)
}

/// What to exit with after an interruption.
pub(crate) fn exit_code() -> u8 {
    let signal = match CAME.load(Ordering::Relaxed) {
        0 => SIGINT,
        signal => signal as i32,
    };
    exit_code_of(signal) as u8
}

fn exit_code_of(signal: i32) -> i32 {
    128 + signal
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_to_end_sets_the_flag_and_the_exit_code() {
        let cancel = flag().expect("signals can be watched");
        signal_hook::low_level::raise(SIGTERM).expect("a signal to ourselves");
        assert!(cancel.load(Ordering::Relaxed));
        assert_eq!(exit_code(), 143);
    }
}
