//! `@flight`: saves what the running flight recorder keeps, as a new recording.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use whyslow_base::args::TalkArgs;
use whyslow_base::failure::Failure;
use whyslow_base::{interrupt, talk};
use whyslow_model::text::shown;
use whyslow_record::{Purpose, SaveError, SaveReply};

const FLIGHT: &str = "@flight";
/// Pause before a recorder that is busy is tried again.
const RETRY_INTERVAL: Duration = Duration::from_millis(500);
/// Saving usually takes a second; after this time, the user learns what is waited for.
const PATIENCE: Duration = Duration::from_secs(3);

/// The recorder that is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FlightChoice {
    /// The only one of this user.
    Only,
    /// The one with this PID: `@flight:PID`.
    Process(i32),
    /// An invalid word after the colon.
    Invalid,
}

impl FlightChoice {
    /// `None` if the word names a recording.
    pub(super) fn of(word: &str) -> Option<Self> {
        let rest = word.strip_prefix(FLIGHT)?;
        if rest.is_empty() {
            return Some(Self::Only);
        }
        let pid = rest.strip_prefix(':')?;
        Some(pid.parse().map_or(Self::Invalid, Self::Process))
    }
}

/// Path of the new recording.
pub(super) fn save(choice: FlightChoice, args: &TalkArgs) -> Result<PathBuf, Failure> {
    let pid = match choice {
        FlightChoice::Only => only()?,
        FlightChoice::Process(pid) => pid,
        FlightChoice::Invalid => {
            return Err(
                Failure::usage("cannot parse the source: `@flight:` requires a PID")
                    .hint("use @flight to save from the only flight recorder"),
            );
        }
    };
    let stop = interrupt::flag()?;
    let begun = Instant::now();
    let mut has_reported = args.quiet;
    let mut goes_on = || {
        if !has_reported && begun.elapsed() >= PATIENCE {
            has_reported = true;
            talk::line(&format!(
                "waiting for the flight recorder of process {pid} to save; press Ctrl-C to stop waiting"
            ));
        }
        !stop.load(Ordering::Relaxed)
    };
    loop {
        match whyslow_record::save(pid, &mut goes_on) {
            Ok(SaveReply::Saved {
                recording,
                triggered,
            }) => {
                if !args.quiet {
                    print_saved(&recording, triggered.as_ref(), pid);
                }
                return Ok(near(&recording));
            }
            Ok(SaveReply::Busy) => {
                if !goes_on() {
                    return Err(Failure::interrupted());
                }
                thread::sleep(RETRY_INTERVAL);
            }
            Ok(SaveReply::Failed(why)) => {
                let message = format!("the flight recorder of process {pid} did not save: {why}");
                return Err(Failure::new(message));
            }
            Err(SaveError::Cancelled { .. }) => return Err(Failure::interrupted()),
            Err(error) => {
                let message = error.to_string();
                return Err(Failure::new(message).caused_by_chain(&error).hint(START));
            }
        }
    }
}

const START: &str = "start a flight recorder: sudo whyslow record --ring 5m -o flight.wsl";

/// The sockets of root's recorders are in a directory that other users cannot enter.
fn where_to_look() -> &'static str {
    let is_root = fs::metadata("/proc/self").is_ok_and(|process| process.uid() == 0);
    if !is_root && Path::new("/run/whyslow").is_dir() {
        "run it as the user that records: sudo whyslow explain @flight"
    } else {
        START
    }
}

/// PID of the only flight recorder of this user.
fn only() -> Result<i32, Failure> {
    let running = whyslow_record::running();
    let flights = running
        .iter()
        .filter(|running| running.about().purpose == Purpose::Flight);
    let mut pids: Vec<i32> = flights.map(whyslow_record::Following::pid).collect();
    pids.sort_unstable();
    match *pids.as_slice() {
        [pid] => Ok(pid),
        [] => Err(Failure::new("no flight recorder of this user is running").hint(where_to_look())),
        [first, ..] => {
            let listed: Vec<String> = pids.iter().map(ToString::to_string).collect();
            let message = format!(
                "{} flight recorders are running: processes {}",
                pids.len(),
                listed.join(", ")
            );
            Err(Failure::usage(message).hint(format!("name one: {FLIGHT}:{first}")))
        }
    }
}

fn print_saved(recording: &Path, triggered: Option<&(PathBuf, String)>, pid: i32) {
    let name = |path: &Path| shown(&near(path).display().to_string(), false).into_owned();
    talk::line(&format!(
        "saved {} (flight recorder, pid {pid})",
        name(recording)
    ));
    if let Some((earlier, what)) = triggered {
        talk::line(&format!(
            "note: a condition was met earlier and saved {}: {}",
            name(earlier),
            shown(what, false)
        ));
    }
}

/// The path below the working directory if it is there, so that it is short.
fn near(path: &Path) -> PathBuf {
    let folder = std::env::current_dir().ok();
    let below = folder.and_then(|folder| Some(path.strip_prefix(folder).ok()?.to_owned()));
    below.unwrap_or_else(|| path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flight_recorder_is_distinguished_from_names_of_recordings() {
        assert_eq!(FlightChoice::of("@flight"), Some(FlightChoice::Only));
        assert_eq!(
            FlightChoice::of("@flight:77"),
            Some(FlightChoice::Process(77))
        );
        for word in ["@flight:", "@flight:x"] {
            assert_eq!(FlightChoice::of(word), Some(FlightChoice::Invalid));
        }
        for word in ["flight.wsl", "@flights", "@flight.wsl", "@last", "@live"] {
            assert_eq!(FlightChoice::of(word), None, "{word}");
        }
    }

    #[test]
    fn paths_are_shown_from_the_working_directory() {
        let folder = std::env::current_dir().expect("a directory");
        assert_eq!(near(&folder.join("a.wsl")), Path::new("a.wsl"));
        assert_eq!(
            near(Path::new("/nowhere/a.wsl")),
            Path::new("/nowhere/a.wsl")
        );
    }
}
