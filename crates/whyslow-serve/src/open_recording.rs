use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use whyslow_analysis::{AnalysisError, TOPICS, topic_state};
use whyslow_base::failure::Failure;
use whyslow_model::topic_state::TopicState;
use whyslow_sources::recording::Opened;
use whyslow_store::StoreError;
use whyslow_tiles::Place;

use crate::charts::Charts;
use crate::thread_names::Names;

/// The current state of a recording.
pub(crate) struct OpenRecording {
    pub(crate) opened: Arc<Opened>,
    /// Digest of its content, the key of data derived from it.
    pub(crate) digest: String,
    pub(crate) charts: Charts,
    place: Place,
    names: OnceLock<Arc<Names>>,
    /// State of each kind, in the order of [`TOPICS`].
    topic_states: OnceLock<Vec<TopicState>>,
    /// Deletes a live recording with its last user.
    _passing: Option<Passing>,
}

/// A directory that is deleted on drop.
struct Passing(PathBuf);

impl Drop for Passing {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A recording that may be replaced by a newer one.
pub(crate) struct Slot(RwLock<Arc<OpenRecording>>);

impl Slot {
    pub(crate) fn new(current: OpenRecording) -> Self {
        Self(RwLock::new(Arc::new(current)))
    }

    pub(crate) fn put(&self, current: OpenRecording) {
        let current = Arc::new(current);
        let before = {
            let mut place = self.0.write().unwrap_or_else(PoisonError::into_inner);
            std::mem::replace(&mut *place, current)
        };
        drop(before);
    }

    pub(crate) fn now(&self) -> Arc<OpenRecording> {
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }
}

impl OpenRecording {
    /// `cache` is the user's directory for data that can be rebuilt.
    pub(crate) fn new(opened: Opened, cache: Option<&Path>) -> Result<Self, Failure> {
        let place = Place::of(opened.path(), cache)?;
        Ok(Self {
            opened: Arc::new(opened),
            digest: place.digest().to_owned(),
            place,
            charts: Charts::new(),
            names: OnceLock::new(),
            topic_states: OnceLock::new(),
            _passing: None,
        })
    }

    /// A recording of the last moments of this machine, in its own directory.
    pub(crate) fn passing(recording: &Path) -> Result<Self, Failure> {
        let opened = Opened::unremembered(recording)?;
        Ok(Self {
            _passing: Some(Passing(recording.to_owned())),
            ..Self::new(opened, None)?
        })
    }

    /// Identity for cached explanations, which contain the name.
    pub(crate) fn identity(&self) -> String {
        format!("{} {}", self.digest, self.opened.name())
    }

    /// Thread names, read on first use.
    pub(crate) fn names(&self) -> Result<Arc<Names>, StoreError> {
        if let Some(names) = self.names.get() {
            return Ok(Arc::clone(names));
        }
        let names = Arc::new(Names::read(&*self.opened.tables)?);
        Ok(Arc::clone(self.names.get_or_init(|| names)))
    }

    /// State of each kind in the order of [`TOPICS`], determined on first use.
    pub(crate) fn topic_states(&self) -> Result<&[TopicState], AnalysisError> {
        if let Some(states) = self.topic_states.get() {
            return Ok(states);
        }
        let states = TOPICS.iter();
        let states = states.map(|topic| topic_state(&*self.opened.tables, topic.kind));
        let states: Vec<TopicState> = states.collect::<Result<_, _>>()?;
        Ok(self.topic_states.get_or_init(|| states))
    }

    /// Builds the data for charts, or opens existing data.
    pub(crate) fn prepare(&self, is_over: &AtomicBool) {
        self.charts
            .prepare(&self.place, &*self.opened.tables, is_over);
    }
}
