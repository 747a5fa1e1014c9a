//! `serve @live`: the last minute of this machine, which goes on.

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
use whyslow_sources::live::{Room, Shown, Whom, roll};

use crate::confine;
use crate::held::{Held, Slot};

const LOOK_EVERY: Duration = Duration::from_millis(50);

/// A recorder of our own, or one that is followed.
pub(crate) struct Live {
    room: PathBuf,
    /// The first recording, or why there is none.
    begun: Mutex<Receiver<Result<Arc<Slot>, Failure>>>,
    slot: OnceLock<Arc<Slot>>,
    /// Of all that was recorded since the beginning.
    metrics: Arc<Mutex<Metrics>>,
    /// Why it does not go on.
    ended: Arc<OnceLock<String>>,
    is_over: Arc<AtomicBool>,
}

/// What goes on, and the thread that sees to it.
type Begun = (Arc<Live>, JoinHandle<()>);

impl Live {
    /// Begins to record if one of the words means this machine.
    pub(crate) fn start(
        words: &[String],
        is_over: &Arc<AtomicBool>,
        talk: &TalkArgs,
    ) -> Result<Option<Begun>, Failure> {
        let mut named = words.iter().filter_map(|word| Whom::of(word));
        let Some(whom) = named.next() else {
            return Ok(None);
        };
        if named.next().is_some() {
            return Err(Failure::usage("this machine can be served live once"));
        }
        let room = Room::new()?;
        if !talk.quiet {
            talk::line("recording: the address comes with the first seconds");
        }
        let place = room.path().to_owned();
        let ended = Arc::new(OnceLock::new());
        let metrics = Arc::new(Mutex::new(Metrics::default()));
        let (sender, begun) = channel();
        let thread = {
            let (is_over, ended) = (Arc::clone(is_over), Arc::clone(&ended));
            let (talk, metrics) = (talk.clone(), Arc::clone(&metrics));
            thread::spawn(move || {
                let followed = (sender, &*metrics);
                record(whom, &room, (&is_over, &talk), &followed, &ended);
            })
        };
        let live = Self {
            room: place,
            begun: Mutex::new(begun),
            slot: OnceLock::new(),
            metrics,
            ended,
            is_over: Arc::clone(is_over),
        };
        Ok(Some((Arc::new(live), thread)))
    }

    /// Where its recordings lie.
    pub(crate) fn room(&self) -> &Path {
        &self.room
    }

    /// Waits for the first recording.
    pub(crate) fn first(&self) -> Result<Arc<Slot>, Failure> {
        if let Some(slot) = self.slot.get() {
            return Ok(Arc::clone(slot));
        }
        let begun = self.begun.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            match begun.recv_timeout(LOOK_EVERY) {
                Ok(slot) => {
                    let slot = slot?;
                    return Ok(Arc::clone(self.slot.get_or_init(|| slot)));
                }
                Err(RecvTimeoutError::Timeout) if !self.is_over.load(Ordering::Relaxed) => {}
                Err(_) => return Err(Failure::interrupted()),
            }
        }
    }

    /// Counters of all that was recorded since the server began.
    pub(crate) fn metrics(&self) -> Metrics {
        let metrics = self.metrics.lock().unwrap_or_else(PoisonError::into_inner);
        metrics.clone()
    }

    /// Why it does not go on, if it does not.
    pub(crate) fn ended(&self) -> Option<&str> {
        self.ended.get().map(String::as_str)
    }
}

/// Until the server ends, or nobody records any more.
fn record(
    whom: Whom,
    room: &Room,
    (is_over, talk): (&Arc<AtomicBool>, &TalkArgs),
    (sender, metrics): &(Sender<Result<Arc<Slot>, Failure>>, &Mutex<Metrics>),
    ended: &OnceLock<String>,
) {
    let mut slot: Option<Arc<Slot>> = None;
    let mut show = |recording: &Path| {
        let held = Held::passing(recording)?;
        // What is shown has its charts.
        held.prepare(is_over);
        let mut counted = metrics
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        counted.follow(&*held.opened.tables)?;
        *metrics.lock().unwrap_or_else(PoisonError::into_inner) = counted;
        if let Some(slot) = &slot {
            slot.put(held);
        } else {
            let first = Arc::new(Slot::new(held));
            slot = Some(Arc::clone(&first));
            // Who does not wait for it any more ends.
            let _ = sender.send(Ok(first));
        }
        Ok(())
    };
    let shown = Shown {
        begin: &|| confine::to_room(room.path()),
        each: &mut show,
    };
    let rolled = roll(whom, room, is_over, talk, shown);
    let why = match rolled {
        Ok(()) => "recording ended".to_owned(),
        Err(failure) if slot.is_none() => {
            let _ = sender.send(Err(failure));
            return;
        }
        Err(failure) => failure.message().to_owned(),
    };
    if !is_over.load(Ordering::Relaxed) {
        talk::line(&format!(
            "note: {why}; what was recorded last is still served"
        ));
    }
    let _ = ended.set(why);
    // What was recorded last lies in the room, and not all of it was opened yet.
    while !is_over.load(Ordering::Relaxed) {
        thread::sleep(LOOK_EVERY);
    }
}
