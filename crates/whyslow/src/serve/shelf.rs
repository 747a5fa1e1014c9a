//! The recordings that a server shows: those it was started with, and no others.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use axum::http::StatusCode;
use whyslow_store::StoreError;
use whyslow_tiles::Place;

use super::charts::Charts;
use super::lanes::Names;
use super::reply::Refusal;
use super::words::Query;
use crate::cli::TalkArgs;
use crate::failure::Failure;
use crate::recording::{self, Opened};

/// A recording as it is now.
pub(super) struct Held {
    pub(super) opened: Arc<Opened>,
    /// Of its content: what was made from it before can be used again.
    pub(super) digest: String,
    pub(super) charts: Charts,
    place: Place,
    names: OnceLock<Arc<Names>>,
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

/// One recording, which goes on growing if it is live.
pub(super) struct Book {
    pub(super) id: String,
    /// As it was named when the server began.
    pub(super) word: String,
    pub(super) is_live: bool,
    held: RwLock<Arc<Held>>,
}

impl Book {
    pub(super) fn now(&self) -> Arc<Held> {
        Arc::clone(&self.held.read().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Where they lie that are named so.
pub(super) fn places(words: &[String]) -> Result<Vec<PathBuf>, Failure> {
    match words {
        [] => Ok(vec![recording::place(None)?]),
        words => words
            .iter()
            .map(|word| recording::place(Some(word)))
            .collect(),
    }
}

pub(super) struct Shelf(Vec<Book>);

impl Shelf {
    pub(super) fn open(
        words: &[String],
        cache: Option<&Path>,
        talk: &TalkArgs,
    ) -> Result<Self, Failure> {
        let mut books: Vec<Book> = Vec::new();
        let words: Vec<Option<&str>> = match words {
            [] => vec![None],
            words => words.iter().map(|word| Some(word.as_str())).collect(),
        };
        for word in words {
            let opened = match (word, books.is_empty()) {
                (Some(word), false) => Opened::beside(word, talk)?,
                (word, _) => Opened::find(word, talk)?,
            };
            let id = free_id(opened.name(), &books);
            let shown = word.map_or_else(|| opened.path().display().to_string(), str::to_owned);
            books.push(Book {
                id,
                word: shown,
                is_live: false,
                held: RwLock::new(Arc::new(Held::new(opened, cache)?)),
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
