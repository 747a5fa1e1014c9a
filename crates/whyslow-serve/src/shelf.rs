//! The recordings that a server shows: those it was started with, and no others.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use axum::http::StatusCode;
use whyslow_base::args::TalkArgs;
use whyslow_base::failure::Failure;
use whyslow_sources::live::Whom;
use whyslow_sources::recording::{self, Opened};

use crate::held::{Held, Slot};
use crate::live::Live;
use crate::query::Query;
use crate::reply::Refusal;

/// One recording, which goes on if it is live.
pub(crate) struct Book {
    pub(crate) id: String,
    /// As it was named when the server began.
    pub(crate) word: String,
    pub(crate) live: Option<Arc<Live>>,
    slot: Arc<Slot>,
}

impl Book {
    pub(crate) fn now(&self) -> Arc<Held> {
        self.slot.now()
    }

    pub(crate) fn is_live(&self) -> bool {
        self.live.is_some()
    }
}

/// Where they lie that are named so; what is live lies nowhere yet.
pub(crate) fn places(words: &[String]) -> Result<Vec<PathBuf>, Failure> {
    match words {
        [] => Ok(vec![recording::place(None)?]),
        words => words
            .iter()
            .filter(|word| Whom::of(word).is_none())
            .map(|word| recording::place(Some(word)))
            .collect(),
    }
}

pub(crate) struct Shelf(Vec<Book>);

impl Shelf {
    pub(crate) fn open(
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

    pub(crate) fn books(&self) -> &[Book] {
        &self.0
    }

    /// The one that is asked for, or the first.
    pub(crate) fn find(&self, query: &Query) -> Result<&Book, Refusal> {
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
    pub(crate) fn named(&self, name: &str) -> Option<Arc<Held>> {
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
