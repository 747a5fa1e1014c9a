//! The recordings that a server serves: those specified at its start, and no others.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use axum::http::StatusCode;
use whyslow_base::args::TalkArgs;
use whyslow_base::failure::Failure;
use whyslow_sources::live::RecorderChoice;
use whyslow_sources::recording::{self, Opened};

use crate::live::Live;
use crate::open_recording::{OpenRecording, Slot};
use crate::query::Query;
use crate::reply::Refusal;

/// One recording, which is replaced from time to time if it is live.
pub(crate) struct ServedRecording {
    pub(crate) id: String,
    /// As specified on the command line.
    pub(crate) word: String,
    pub(crate) live: Option<Arc<Live>>,
    slot: Arc<Slot>,
}

impl ServedRecording {
    pub(crate) fn now(&self) -> Arc<OpenRecording> {
        self.slot.now()
    }

    pub(crate) fn is_live(&self) -> bool {
        self.live.is_some()
    }
}

/// Paths of the recordings; a live recording has no path yet.
pub(crate) fn places(words: &[String]) -> Result<Vec<PathBuf>, Failure> {
    match words {
        [] => Ok(vec![recording::place(None)?]),
        words => words
            .iter()
            .filter(|word| RecorderChoice::of(word).is_none())
            .map(|word| recording::place(Some(word)))
            .collect(),
    }
}

pub(crate) struct RecordingSet(Vec<ServedRecording>);

impl RecordingSet {
    pub(crate) fn open(
        words: &[String],
        (cache, live): (Option<&Path>, Option<&Arc<Live>>),
        talk: &TalkArgs,
    ) -> Result<Self, Failure> {
        let mut served: Vec<ServedRecording> = Vec::new();
        let words: Vec<Option<&str>> = match words {
            [] => vec![None],
            words => words.iter().map(|word| Some(word.as_str())).collect(),
        };
        let mut remembered = false;
        for word in words {
            if let (Some(word), Some(live)) =
                (word.filter(|word| RecorderChoice::of(word).is_some()), live)
            {
                served.push(ServedRecording {
                    id: free_id(word, &served),
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
            let id = free_id(opened.name(), &served);
            let shown = word.map_or_else(|| opened.path().display().to_string(), str::to_owned);
            served.push(ServedRecording {
                id,
                word: shown,
                live: None,
                slot: Arc::new(Slot::new(OpenRecording::new(opened, cache)?)),
            });
        }
        Ok(Self(served))
    }

    pub(crate) fn all(&self) -> &[ServedRecording] {
        &self.0
    }

    /// The requested recording, or the first one.
    pub(crate) fn find(&self, query: &Query) -> Result<&ServedRecording, Refusal> {
        let found = match query.get("rec") {
            None => self.0.first(),
            Some(id) => self.0.iter().find(|served| served.id == id),
        };
        found.ok_or_else(|| {
            Refusal::new(StatusCode::NOT_FOUND, "unknown recording")
                .hint("see `recordings` for the served recordings")
        })
    }

    /// The recording with this id, or at this path.
    pub(crate) fn named(&self, name: &str) -> Option<Arc<OpenRecording>> {
        let is_it = |served: &&ServedRecording| {
            served.id == name || served.now().opened.path() == Path::new(name)
        };
        self.0.iter().find(is_it).map(ServedRecording::now)
    }
}

/// The name, with a number appended if it is taken.
fn free_id(name: &str, served: &[ServedRecording]) -> String {
    let is_free = |id: &String| served.iter().all(|served| served.id != *id);
    let numbered = (2..).map(|number| format!("{name}~{number}"));
    std::iter::once(name.to_owned())
        .chain(numbered)
        .find(is_free)
        .expect("more numbers than recordings")
}
