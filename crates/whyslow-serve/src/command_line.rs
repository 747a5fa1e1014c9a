//! What is asked of the server, in the words of the command line: the program above reads them by its own
//! definitions, so that what can be asked, and how it is said to be wrong, cannot differ.

use std::ffi::OsString;
use std::sync::Arc;

use whyslow_analysis::Weight;
use whyslow_base::args::OutputArgs;
use whyslow_base::failure::Failure;
use whyslow_base::time::{Calendar, Zone};
use whyslow_explain::Report;
use whyslow_export::flame::FlameGraph;
use whyslow_export::stacks::Weight as StackWeight;
use whyslow_model::Ns;
use whyslow_model::answer::Answer;
use whyslow_sources::lake::Request;
use whyslow_sources::recording::Opened;
use whyslow_store::Tables;

/// Reads the words of a command line. `None` means that they are another command than the one asked for.
pub trait CommandLine: Send + Sync {
    /// The definition of a command: `io top`, `explain`.
    fn definition(&self, path: &[&str]) -> Option<clap::Command>;

    /// `io top`, and every other kind and view.
    fn question(&self, words: &[OsString]) -> Result<Option<Box<dyn Question>>, clap::Error>;

    /// `explain`.
    fn explanation(&self, words: &[OsString]) -> Result<Option<Box<dyn Explanation>>, clap::Error>;

    /// `export svg`.
    fn flame_graph(
        &self,
        words: &[OsString],
    ) -> Result<Option<Box<dyn FlameGraphQuestion>>, clap::Error>;

    /// `fleet QUESTION`.
    fn lake_question(
        &self,
        words: &[OsString],
    ) -> Result<Option<Box<dyn LakeQuestion>>, clap::Error>;
}

/// A question about a recording.
pub trait Question: Send + Sync {
    /// The answer from `tables`, which are those of `opened` with limits, in at most `rows_max` rows.
    fn answer(
        &self,
        opened: &Opened,
        tables: &dyn Tables,
        rows_max: usize,
    ) -> Result<(Answer, Zone), Failure>;

    /// How the answer is to be written.
    fn output(&self) -> &OutputArgs;

    /// What makes a cell of a heat map dark.
    fn weight(&self) -> Weight;
}

/// Opens the recording of a name.
pub type Opener<'o> = dyn Fn(&str) -> Result<Arc<Opened>, Failure> + 'o;

/// What is asked of `explain`.
pub trait Explanation: Send + Sync {
    /// Opens the recordings that are named beside: by `--vs`, and by `--across`.
    fn open(
        self: Box<Self>,
        versus: &Opener<'_>,
        across: &Opener<'_>,
    ) -> Result<Box<dyn Explained>, Failure>;
}

/// The same, with all recordings open.
pub trait Explained: Send + Sync {
    /// The recording of `--vs`, if it names one.
    fn versus(&self) -> Option<&Opened>;

    /// The recordings of `--across`.
    fn across(&self) -> Vec<&Opened>;

    /// What is found in `opened`; the tables are those of the recordings, with limits, in the same order.
    fn report(
        &self,
        opened: &Opened,
        tables: &dyn Tables,
        versus: Option<&dyn Tables>,
        across: &[&dyn Tables],
    ) -> Result<(Report, Calendar), Failure>;

    /// How the report is to be written.
    fn output(&self) -> &OutputArgs;
}

/// Stacks of a recording merged.
pub trait FlameGraphQuestion: Send + Sync {
    /// The graph from `tables`, which are those of `opened` with limits, and what is counted in it.
    fn graph(
        &self,
        opened: &Opened,
        tables: &dyn Tables,
    ) -> Result<(FlameGraph, StackWeight), Failure>;
}

/// A question about a lake.
pub trait LakeQuestion: Send + Sync {
    /// The window that is asked for, if one is.
    fn window(&self, zone: &Zone) -> Result<Option<(Ns, Ns)>, Failure>;

    /// What the Python package is asked.
    fn request(&self, lake: String, window: Option<(Ns, Ns)>) -> Request;

    /// The answer in the Arrow stream that the Python package returns.
    fn answer(&self, stream: &[u8]) -> Result<Answer, Failure>;

    /// How the answer is to be written.
    fn output(&self) -> &OutputArgs;
}
