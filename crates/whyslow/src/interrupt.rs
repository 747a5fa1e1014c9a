//! Ctrl-C while something is written: stop, clean up, exit with 130. A second one ends at once.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

use crate::failure::Failure;

const EXIT_INTERRUPTED: i32 = 130;

/// A flag that is set by Ctrl-C or a request to end.
pub(crate) fn flag() -> Result<Arc<AtomicBool>, Failure> {
    let cancel = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        // In this order: the first signal finds the flag unset and only sets it.
        flag::register_conditional_shutdown(signal, EXIT_INTERRUPTED, Arc::clone(&cancel))
            .and_then(|_| flag::register(signal, Arc::clone(&cancel)))
            .map_err(|error| Failure::new("failed to watch for signals").caused_by(&error))?;
    }
    Ok(cancel)
}
