//! `serve @live`: a rolling recording of the last minute of this machine.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use whyslow_base::args::TalkArgs;
use whyslow_base::failure::Failure;
use whyslow_base::talk;
use whyslow_export::openmetrics::Metrics;
use whyslow_sources::live::{LiveFolder, RecorderChoice, Shown, roll};

use crate::confine;
use crate::open_recording::{OpenRecording, Slot};

const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Our own recorder, or a recorder that is followed.
pub(crate) struct Live {
    folder: PathBuf,
    /// The first recording, or why there is none.
    begun: Mutex<Receiver<Result<Arc<Slot>, Failure>>>,
    slot: OnceLock<Arc<Slot>>,
    /// Counters since the start.
    metrics: Arc<Mutex<Metrics>>,
    /// Why it ended.
    ended: Arc<OnceLock<String>>,
    is_over: Arc<AtomicBool>,
}

/// The live recording and its thread.
type Begun = (Arc<Live>, JoinHandle<()>);

impl Live {
    /// Starts recording if one of the arguments is this machine.
    pub(crate) fn start(
        words: &[String],
        is_over: &Arc<AtomicBool>,
        talk: &TalkArgs,
    ) -> Result<Option<Begun>, Failure> {
        let mut named = words.iter().filter_map(|word| RecorderChoice::of(word));
        let Some(choice) = named.next() else {
            return Ok(None);
        };
        if named.next().is_some() {
            return Err(Failure::usage("cannot serve @live more than once"));
        }
        let folder = LiveFolder::new()?;
        if !talk.quiet {
            talk::line("recording; the address is printed after the first seconds");
        }
        let place = folder.path().to_owned();
        let ended = Arc::new(OnceLock::new());
        let metrics = Arc::new(Mutex::new(Metrics::default()));
        let (sender, begun) = channel();
        let thread = {
            let (is_over, ended) = (Arc::clone(is_over), Arc::clone(&ended));
            let (talk, metrics) = (talk.clone(), Arc::clone(&metrics));
            thread::spawn(move || {
                let followed = (sender, &*metrics);
                record(choice, &folder, (&is_over, &talk), &followed, &ended);
            })
        };
        let live = Self {
            folder: place,
            begun: Mutex::new(begun),
            slot: OnceLock::new(),
            metrics,
            ended,
            is_over: Arc::clone(is_over),
        };
        Ok(Some((Arc::new(live), thread)))
    }

    /// Directory of its recordings.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Waits for the first recording.
    pub(crate) fn first(&self) -> Result<Arc<Slot>, Failure> {
        if let Some(slot) = self.slot.get() {
            return Ok(Arc::clone(slot));
        }
        let begun = self.begun.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            match begun.recv_timeout(POLL_INTERVAL) {
                Ok(slot) => {
                    let slot = slot?;
                    return Ok(Arc::clone(self.slot.get_or_init(|| slot)));
                }
                Err(RecvTimeoutError::Timeout) if !self.is_over.load(Ordering::Relaxed) => {}
                Err(_) => return Err(Failure::interrupted()),
            }
        }
    }

    /// Counters of everything recorded since the server started.
    pub(crate) fn metrics(&self) -> Metrics {
        let metrics = self.metrics.lock().unwrap_or_else(PoisonError::into_inner);
        metrics.clone()
    }

    /// Why it ended, if it has.
    pub(crate) fn ended(&self) -> Option<&str> {
        self.ended.get().map(String::as_str)
    }
}

/// Runs until the server shuts down or the recorder ends.
fn record(
    choice: RecorderChoice,
    folder: &LiveFolder,
    (is_over, talk): (&Arc<AtomicBool>, &TalkArgs),
    (sender, metrics): &(Sender<Result<Arc<Slot>, Failure>>, &Mutex<Metrics>),
    ended: &OnceLock<String>,
) {
    let mut slot: Option<Arc<Slot>> = None;
    let mut show = |recording: &Path| {
        let current = OpenRecording::passing(recording)?;
        // Build the charts before the recording is shown.
        current.prepare(is_over);
        let mut counted = metrics
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        counted.follow(&*current.opened.tables)?;
        *metrics.lock().unwrap_or_else(PoisonError::into_inner) = counted;
        if let Some(slot) = &slot {
            slot.put(current);
        } else {
            let first = Arc::new(Slot::new(current));
            slot = Some(Arc::clone(&first));
            // The receiver may have been interrupted.
            let _ = sender.send(Ok(first));
        }
        Ok(())
    };
    let shown = Shown {
        begin: &|| confine::to_folder(folder.path()),
        each: &mut show,
    };
    let rolled = roll(choice, folder, is_over, talk, shown);
    let why = match rolled {
        Ok(()) => "recording ended".to_owned(),
        Err(failure) if slot.is_none() => {
            let _ = sender.send(Err(failure));
            return;
        }
        Err(failure) => failure.message().to_owned(),
    };
    if !is_over.load(Ordering::Relaxed) {
        talk::line(&format!("note: {why}; still serving the last recording"));
    }
    let _ = ended.set(why);
    // The last recording is in the directory and not completely open yet: keep the directory.
    while !is_over.load(Ordering::Relaxed) {
        thread::sleep(POLL_INTERVAL);
    }
}
