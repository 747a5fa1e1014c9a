//! Ctrl-C or SIGTERM while something is being written: stop, clean up, and exit with 128 plus the
//! signal number, as shells do. A second signal exits at once.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, Once, PoisonError};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use signal_hook::{flag, low_level};

use crate::failure::Failure;
use crate::signal::{RECEIVED, exit_code_of};

/// A flag that is set by Ctrl-C or SIGTERM.
pub fn flag() -> Result<Arc<AtomicBool>, Failure> {
    IS_POLLED.store(true, Ordering::Relaxed);
    let cancel = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        // The order matters: the first signal finds the flag unset and only sets it.
        flag::register_conditional_shutdown(signal, exit_code_of(signal), Arc::clone(&cancel))
            .and_then(|_| flag::register_usize(signal, Arc::clone(&RECEIVED), signal as usize))
            .and_then(|_| flag::register(signal, Arc::clone(&cancel)))
            .map_err(|error| Failure::new("cannot handle signals").caused_by(&error))?;
    }
    Ok(cancel)
}

/// Directories to remove at exit.
static TEMPORARY: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());
/// The flag is polled by code that then shuts down in order.
static IS_POLLED: AtomicBool = AtomicBool::new(false);

/// Registers a directory for removal when the program exits, by itself or by a signal.
pub fn remove_at_end(folder: &Path) -> Result<(), Failure> {
    static WATCHING: Once = Once::new();
    let folders = || TEMPORARY.lock().unwrap_or_else(PoisonError::into_inner);
    folders().push(folder.to_owned());
    let mut watched = Ok(());
    WATCHING.call_once(|| watched = watch());
    watched.map_err(|error| Failure::new("cannot handle signals").caused_by(&error))
}

/// Removes the registered directories that still exist.
pub fn remove_all() {
    let mut folders = TEMPORARY.lock().unwrap_or_else(PoisonError::into_inner);
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
                if signal == SIGHUP || !IS_POLLED.load(Ordering::Relaxed) {
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
