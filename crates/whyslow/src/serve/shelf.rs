//! The recordings that a server shows: those it was started with, and no others.

use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};

use axum::http::StatusCode;

use super::reply::Refusal;
use super::words::Query;
use crate::cli::TalkArgs;
use crate::failure::Failure;
use crate::recording::Opened;

/// What tells a recording from all others, in hexadecimal digits.
const DIGEST_DIGITS: usize = 32;

/// A recording as it is now.
pub(super) struct Held {
    pub(super) opened: Arc<Opened>,
    /// Of its content: what was made from it before can be used again.
    pub(super) digest: String,
}

impl Held {
    pub(super) fn new(opened: Opened) -> Result<Self, Failure> {
        let manifest = opened.path().join("manifest.json");
        let content =
            std::fs::read(&manifest).map_err(|error| Failure::reading(&manifest, error))?;
        let digest = blake3::hash(&content).to_hex()[..DIGEST_DIGITS].to_owned();
        Ok(Self {
            opened: Arc::new(opened),
            digest,
        })
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

pub(super) struct Shelf(Vec<Book>);

impl Shelf {
    pub(super) fn open(words: &[String], talk: &TalkArgs) -> Result<Self, Failure> {
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
                held: RwLock::new(Arc::new(Held::new(opened)?)),
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
