//! The recordings that a server shows: those it was started with, and no others.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use axum::http::StatusCode;
use whyslow_base::args::TalkArgs;
use whyslow_base::failure::Failure;
use whyslow_sources::live::Whom;
use whyslow_sources::recording::{self, Opened};
use whyslow_store::StoreError;
use whyslow_tiles::Place;

use super::charts::Charts;
use super::lanes::Names;
use super::live::Live;
use super::reply::Refusal;
use super::words::Query;

/// A recording as it is now.
pub(super) struct Held {
    pub(super) opened: Arc<Opened>,
    /// Of its content: what was made from it before can be used again.
    pub(super) digest: String,
    pub(super) charts: Charts,
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
pub(super) struct Slot(RwLock<Arc<Held>>);

impl Slot {
    pub(super) fn new(held: Held) -> Self {
        Self(RwLock::new(Arc::new(held)))
    }

    pub(super) fn put(&self, held: Held) {
        let held = Arc::new(held);
        let before = {
            let mut place = self.0.write().unwrap_or_else(PoisonError::into_inner);
            std::mem::replace(&mut *place, held)
        };
        drop(before);
    }

    fn now(&self) -> Arc<Held> {
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Held {
    /// `cache` is the user's folder for what can be made again.
    pub(super) fn new(opened: Opened, cache: Option<&Path>) -> Result<Self, Failure> {
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
    pub(super) fn passing(recording: &Path) -> Result<Self, Failure> {
        let opened = Opened::unremembered(recording)?;
        Ok(Self {
            _passing: Some(Passing(recording.to_owned())),
            ..Self::new(opened, None)?
        })
    }

    /// What explanations of it are known by: they have its name in them.
    pub(super) fn identity(&self) -> String {
        format!("{} {}", self.digest, self.opened.name())
    }

    /// Names of threads, read when they are first asked for.
    pub(super) fn names(&self) -> Result<Arc<Names>, StoreError> {
        if let Some(names) = self.names.get() {
            return Ok(Arc::clone(names));
        }
        let names = Arc::new(Names::read(&*self.opened.tables)?);
        Ok(Arc::clone(self.names.get_or_init(|| names)))
    }

    /// Makes what charts are drawn from, or opens what was made before.
    pub(super) fn prepare(&self, is_over: &AtomicBool) {
        self.charts
            .prepare(&self.place, &*self.opened.tables, is_over);
    }
}

/// One recording, which goes on if it is live.
pub(super) struct Book {
    pub(super) id: String,
    /// As it was named when the server began.
    pub(super) word: String,
    pub(super) live: Option<Arc<Live>>,
    slot: Arc<Slot>,
}

impl Book {
    pub(super) fn now(&self) -> Arc<Held> {
        self.slot.now()
    }

    pub(super) fn is_live(&self) -> bool {
        self.live.is_some()
    }
}

/// Where they lie that are named so; what is live lies nowhere yet.
pub(super) fn places(words: &[String]) -> Result<Vec<PathBuf>, Failure> {
    match words {
        [] => Ok(vec![recording::place(None)?]),
        words => words
            .iter()
            .filter(|word| Whom::of(word).is_none())
            .map(|word| recording::place(Some(word)))
            .collect(),
    }
}

pub(super) struct Shelf(Vec<Book>);

impl Shelf {
    pub(super) fn open(
        words: &[String],
        (cache, live): (Option<&Path>, Option<&Arc<Live>>),
        talk: &TalkArgs,
    ) -> Result<Self, Failure> {
        let mut books: Vec<Book> = Vec::new();
        let words: Vec<Option<&str>> = match words {
            [] => vec![None],
            words => words.iter().map(|word| Some(word.as_str())).collect(),
        };
        let mut remembered = false;
        for word in words {
            if let (Some(word), Some(live)) = (word.filter(|word| Whom::of(word).is_some()), live) {
                books.push(Book {
                    id: free_id(word, &books),
                    word: word.to_owned(),
                    slot: live.first()?,
                    live: Some(Arc::clone(live)),
                });
                continue;
            }
            let opened = match word.filter(|_| remembered) {
                Some(word) => Opened::beside(word, talk)?,
                None => Opened::find(word, talk)?,
            };
            remembered = true;
            let id = free_id(opened.name(), &books);
            let shown = word.map_or_else(|| opened.path().display().to_string(), str::to_owned);
            books.push(Book {
                id,
                word: shown,
                live: None,
                slot: Arc::new(Slot::new(Held::new(opened, cache)?)),
            });
        }
        Ok(Self(books))
    }

    pub(super) fn books(&self) -> &[Book] {
        &self.0
    }

    /// The one that is asked for, or the first.
    pub(super) fn find(&self, query: &Query) -> Result<&Book, Refusal> {
        let found = match query.get("rec") {
            None => self.0.first(),
            Some(id) => self.0.iter().find(|book| book.id == id),
        };
        found.ok_or_else(|| {
            Refusal::new(StatusCode::NOT_FOUND, "there is no such recording")
                .hint("`recordings` lists those that the server was started with")
        })
    }

    /// The recording of this id, or at this place.
    pub(super) fn named(&self, name: &str) -> Option<Arc<Held>> {
        let is_it = |book: &&Book| book.id == name || book.now().opened.path() == Path::new(name);
        self.0.iter().find(is_it).map(Book::now)
    }
}

/// The name, and a number behind it if there is one of that name already.
fn free_id(name: &str, books: &[Book]) -> String {
    let is_free = |id: &String| books.iter().all(|book| book.id != *id);
    let numbered = (2..).map(|number| format!("{name}~{number}"));
    std::iter::once(name.to_owned())
        .chain(numbered)
        .find(is_free)
        .expect("there are more numbers than recordings")
}
