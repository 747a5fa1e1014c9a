//! The recording a command is about.

mod last;

use std::path::{Path, PathBuf};

use whyslow_model::Window;
use whyslow_store::{Recording, Tables};

use crate::cli::TalkArgs;
use crate::failure::Failure;
use crate::output::Subject;
use crate::time::{Calendar, OperationRef, Zone};

pub(crate) use last::remember;

/// Name that stands for the recording written or used last.
const LAST: &str = "@last";

/// An opened recording.
pub(crate) struct Opened {
    pub(crate) tables: Box<dyn Tables>,
    path: PathBuf,
    /// As the user would name it.
    name: String,
}

impl Opened {
    /// Opens what the argument names: a recording, a trace (imported into the cache), or @last.
    pub(crate) fn find(argument: Option<&str>, talk: &TalkArgs) -> Result<Self, Failure> {
        let path = match argument {
            None | Some(LAST) => last::recall()?,
            Some(path) => PathBuf::from(path),
        };
        let name = path.file_name().map_or_else(
            || path.display().to_string(),
            |name| name.to_string_lossy().into_owned(),
        );
        let recording = open(&path, talk)?;
        remember(recording.path());
        Ok(Self {
            path: recording.path().to_path_buf(),
            tables: Box::new(recording),
            name,
        })
    }

    pub(crate) fn subject(&self) -> Subject {
        let info = self.tables.info();
        Subject {
            name: self.name.clone(),
            host: info.host.clone(),
            zone: info.zone.clone(),
        }
    }

    /// Directory of the recording.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// From begin to end of an operation.
    pub(crate) fn window_of(&self, operation: &OperationRef) -> Result<Window, Failure> {
        let (_, window) =
            whyslow_analysis::interval_of(&*self.tables, operation.table, operation.id)?;
        Ok(window)
    }

    /// Range and zone of the recording; a zone nobody knows (an abbreviation, say) counts as none.
    pub(crate) fn calendar(&self, wanted: Option<Zone>) -> Calendar {
        let info = self.tables.info();
        let recorded = || info.zone.as_deref().and_then(|zone| Zone::parse(zone).ok());
        Calendar {
            begin: info.begin_ns,
            end: info.end_ns,
            zone: wanted.or_else(recorded).unwrap_or_else(Zone::unknown),
        }
    }
}

fn open(path: &Path, talk: &TalkArgs) -> Result<Recording, Failure> {
    let _ = talk;
    Recording::open(path).map_err(Failure::from)
}
