//! Ctrl-C, SIGTERM or the hangup of the terminal while something is being written: stop, clean up,
//! and exit with 128 plus the signal number, as shells do. A second Ctrl-C or SIGTERM exits at once;
//! a second hangup does not, because shells and session managers send several signals in a row.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, Once, PoisonError};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use signal_hook::{flag, low_level};

use crate::failure::Failure;
use crate::signal::{RECEIVED, exit_code_of, is_ignored, received};

/// A flag that is set by Ctrl-C, SIGTERM or a hangup.
pub fn flag() -> Result<Arc<AtomicBool>, Failure> {
    let cancel = Arc::new(AtomicBool::new(false));
    register(&Arc::default(), &cancel, &cancel)?;
    Ok(cancel)
}

/// The same for a command that finishes its work in two steps after a signal: the second step can be
/// cancelled by another signal.
#[derive(Debug, Default)]
pub struct Stop {
    requested: Arc<AtomicBool>,
    hung_up: Arc<AtomicBool>,
}

impl Stop {
    /// Handles the signals from now on.
    pub fn new() -> Result<Self, Failure> {
        let stop = Self::default();
        register(&stop.requested, &stop.requested, &stop.hung_up)?;
        Ok(stop)
    }

    /// Whether a signal has requested the end.
    pub fn is_requested(&self) -> bool {
        self.requested.load(Ordering::Relaxed) || self.hung_up.load(Ordering::Relaxed)
    }

    /// Name of the signal, unless it was Ctrl-C, with which a user ends it deliberately.
    pub fn from_outside(&self) -> Option<&'static str> {
        let signal = received().filter(|signal| *signal != SIGINT)?;
        self.is_requested()
            .then(|| low_level::signal_name(signal).unwrap_or("a signal"))
    }

    /// The first step is over. The returned flag is set by the next Ctrl-C or SIGTERM, but not by a
    /// hangup: the second step does not need the terminal.
    pub fn next_step(&self) -> Arc<AtomicBool> {
        self.requested.store(false, Ordering::Relaxed);
        Arc::clone(&self.requested)
    }
}

/// Exits at the second Ctrl-C or SIGTERM: when `again` is already set.
fn register(
    again: &Arc<AtomicBool>,
    requested: &Arc<AtomicBool>,
    hung_up: &Arc<AtomicBool>,
) -> Result<(), Failure> {
    IS_POLLED.store(true, Ordering::Relaxed);
    let failed = |error: std::io::Error| Failure::new("cannot handle signals").caused_by(&error);
    for signal in [SIGINT, SIGTERM] {
        // The order matters: the first signal finds the flag unset and only sets it.
        flag::register_conditional_shutdown(signal, exit_code_of(signal), Arc::clone(again))
            .and_then(|_| flag::register_usize(signal, Arc::clone(&RECEIVED), signal as usize))
            .and_then(|_| flag::register(signal, Arc::clone(again)))
            .and_then(|_| flag::register(signal, Arc::clone(requested)))
            .map_err(failed)?;
    }
    // `nohup` lets the program ignore it.
    if !is_ignored(SIGHUP) {
        flag::register_usize(SIGHUP, Arc::clone(&RECEIVED), SIGHUP as usize)
            .and_then(|_| flag::register(SIGHUP, Arc::clone(hung_up)))
            .map_err(failed)?;
    }
    Ok(())
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
    let all = [SIGHUP, SIGINT, SIGTERM].into_iter();
    let mut signals = Signals::new(all.filter(|signal| !is_ignored(*signal)))?;
    std::thread::Builder::new()
        .name("signals".into())
        .spawn(move || {
            for signal in signals.forever() {
                if !IS_POLLED.load(Ordering::Relaxed) {
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

    /// One test, because signals reach the handlers of all tests of a process: a second SIGTERM
    /// would end it.
    #[test]
    fn a_request_to_end_sets_the_flag_and_the_exit_code() {
        let raise = |signal| low_level::raise(signal).expect("a signal to ourselves");
        let cancel = flag().expect("signals can be watched");
        let stop = Stop::new().expect("signals can be watched");
        assert!(!stop.is_requested() && stop.from_outside().is_none());
        // The process that runs the tests may ignore it.
        if !is_ignored(SIGHUP) {
            raise(SIGHUP);
            raise(SIGHUP);
            assert!(cancel.swap(false, Ordering::Relaxed) && stop.is_requested());
            assert_eq!((exit_code(), stop.from_outside()), (129, Some("SIGHUP")));
            let next = stop.next_step();
            raise(SIGHUP);
            assert!(!next.load(Ordering::Relaxed));
        }
        let next = stop.next_step();
        raise(SIGTERM);
        assert!(cancel.load(Ordering::Relaxed) && next.load(Ordering::Relaxed));
        assert_eq!((exit_code(), stop.from_outside()), (143, Some("SIGTERM")));
    }
}
