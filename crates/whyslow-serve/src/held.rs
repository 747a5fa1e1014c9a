use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use whyslow_base::failure::Failure;
use whyslow_sources::recording::Opened;
use whyslow_store::StoreError;
use whyslow_tiles::Place;

use crate::charts::Charts;
use crate::thread_names::Names;

/// A recording as it is now.
pub(crate) struct Held {
    pub(crate) opened: Arc<Opened>,
    /// Of its content: what was made from it before can be used again.
    pub(crate) digest: String,
    pub(crate) charts: Charts,
    place: Place,
    names: OnceLock<Arc<Names>>,
    /// Of what is live: it goes with the last who asks it.
    _passing: Option<Passing>,
}

/// A folder that goes when nobody needs it any more.
struct Passing(PathBuf);

impl Drop for Passing {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A recording that may be another one later.
pub(crate) struct Slot(RwLock<Arc<Held>>);

impl Slot {
    pub(crate) fn new(held: Held) -> Self {
        Self(RwLock::new(Arc::new(held)))
    }

    pub(crate) fn put(&self, held: Held) {
        let held = Arc::new(held);
        let before = {
            let mut place = self.0.write().unwrap_or_else(PoisonError::into_inner);
            std::mem::replace(&mut *place, held)
        };
        drop(before);
    }

    pub(crate) fn now(&self) -> Arc<Held> {
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Held {
    /// `cache` is the user's folder for what can be made again.
    pub(crate) fn new(opened: Opened, cache: Option<&Path>) -> Result<Self, Failure> {
        let place = Place::of(opened.path(), cache)?;
        Ok(Self {
            opened: Arc::new(opened),
            digest: place.digest().to_owned(),
            place,
            charts: Charts::new(),
            names: OnceLock::new(),
            _passing: None,
        })
    }

    /// What was recorded of this machine until a moment ago, at a place of its own.
    pub(crate) fn passing(recording: &Path) -> Result<Self, Failure> {
        let opened = Opened::unremembered(recording)?;
        Ok(Self {
            _passing: Some(Passing(recording.to_owned())),
            ..Self::new(opened, None)?
        })
    }

    /// What explanations of it are known by: they have its name in them.
    pub(crate) fn identity(&self) -> String {
        format!("{} {}", self.digest, self.opened.name())
    }

    /// Names of threads, read when they are first asked for.
    pub(crate) fn names(&self) -> Result<Arc<Names>, StoreError> {
        if let Some(names) = self.names.get() {
            return Ok(Arc::clone(names));
        }
        let names = Arc::new(Names::read(&*self.opened.tables)?);
        Ok(Arc::clone(self.names.get_or_init(|| names)))
    }

    /// Makes what charts are drawn from, or opens what was made before.
    pub(crate) fn prepare(&self, is_over: &AtomicBool) {
        self.charts
            .prepare(&self.place, &*self.opened.tables, is_over);
    }
}
