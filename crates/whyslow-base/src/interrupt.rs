//! Ctrl-C, or a request to end, while something is written: stop, clean up, and exit with 128 + the
//! number of the signal, as shells do. A second one ends at once.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, Once, PoisonError};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use signal_hook::{flag, low_level};

use crate::failure::Failure;
use crate::signal::{CAME, exit_code_of};

/// A flag that is set by Ctrl-C or a request to end.
pub fn flag() -> Result<Arc<AtomicBool>, Failure> {
    IS_AWAITED.store(true, Ordering::Relaxed);
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

/// Folders that must not be left behind.
static PASSING: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());
/// Somebody looks whether a signal came, and ends in order.
static IS_AWAITED: AtomicBool = AtomicBool::new(false);

/// Removes the folder when a signal ends the program, or it ends by itself.
pub fn remove_at_end(folder: &Path) -> Result<(), Failure> {
    static WATCHING: Once = Once::new();
    let folders = || PASSING.lock().unwrap_or_else(PoisonError::into_inner);
    folders().push(folder.to_owned());
    let mut watched = Ok(());
    WATCHING.call_once(|| watched = watch());
    watched.map_err(|error| Failure::new("failed to watch for signals").caused_by(&error))
}

/// What those left who did not come to remove it themselves.
pub fn remove_all() {
    let mut folders = PASSING.lock().unwrap_or_else(PoisonError::into_inner);
    for folder in folders.drain(..) {
        let _ = std::fs::remove_dir_all(folder);
    }
}

fn watch() -> std::io::Result<()> {
    let mut signals = Signals::new([SIGHUP, SIGINT, SIGTERM])?;
    std::thread::Builder::new()
        .name("signals".into())
        .spawn(move || {
            for signal in signals.forever() {
                if signal == SIGHUP || !IS_AWAITED.load(Ordering::Relaxed) {
                    remove_all();
                    let _ = low_level::emulate_default_handler(signal);
                }
            }
        })
        .map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::signal::exit_code;

    #[test]
    fn a_request_to_end_sets_the_flag_and_the_exit_code() {
        let cancel = flag().expect("signals can be watched");
        signal_hook::low_level::raise(SIGTERM).expect("a signal to ourselves");
        assert!(cancel.load(Ordering::Relaxed));
        assert_eq!(exit_code(), 143);
    }
}
