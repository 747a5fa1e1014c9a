//! Requests in the syntax of the command line: the program that embeds the server parses them with
//! its own definitions, so that both accept the same flags with the same errors.

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

/// Parses the words of a command line. `None` means that they are a different command than the
/// requested one.
pub trait CommandLine: Send + Sync {
    /// The definition of a command: `io top`, `explain`.
    fn definition(&self, path: &[&str]) -> Option<clap::Command>;

    /// `io top`, and all other kinds and views.
    fn query(&self, words: &[OsString]) -> Result<Option<Box<dyn ParsedQuery>>, clap::Error>;

    /// `explain`.
    fn explanation(&self, words: &[OsString]) -> Result<Option<Box<dyn Explanation>>, clap::Error>;

    /// `export svg`.
    fn flame_graph(
        &self,
        words: &[OsString],
    ) -> Result<Option<Box<dyn FlameGraphQuery>>, clap::Error>;

    /// `fleet QUERY`.
    fn lake_query(
        &self,
        words: &[OsString],
    ) -> Result<Option<Box<dyn ParsedLakeQuery>>, clap::Error>;
}

/// A query of a recording.
pub trait ParsedQuery: Send + Sync {
    /// The answer from `tables`, which are those of `opened` with limits, with at most `rows_max`
    /// rows.
    fn answer(
        &self,
        opened: &Opened,
        tables: &dyn Tables,
        rows_max: usize,
    ) -> Result<(Answer, Zone), Failure>;

    /// Output options of the answer.
    fn output(&self) -> &OutputArgs;

    /// Measure that determines the shade of a heat map cell.
    fn weight(&self) -> Weight;
}

/// Opens a recording by name.
pub type Opener<'o> = dyn Fn(&str) -> Result<Arc<Opened>, Failure> + 'o;

/// A request to `explain`.
pub trait Explanation: Send + Sync {
    /// Opens the additional recordings, of `--vs` and `--across`.
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

    /// The findings in `opened`; `tables` are those of the recordings with limits, in the same
    /// order.
    fn report(
        &self,
        opened: &Opened,
        tables: &dyn Tables,
        versus: Option<&dyn Tables>,
        across: &[&dyn Tables],
    ) -> Result<(Report, Calendar), Failure>;

    /// Output options of the report.
    fn output(&self) -> &OutputArgs;
}

/// A query for merged stacks of a recording.
pub trait FlameGraphQuery: Send + Sync {
    /// The graph from `tables`, which are those of `opened` with limits, and its measure.
    fn graph(
        &self,
        opened: &Opened,
        tables: &dyn Tables,
    ) -> Result<(FlameGraph, StackWeight), Failure>;
}

/// A query of a lake.
pub trait ParsedLakeQuery: Send + Sync {
    /// The requested window, if any.
    fn window(&self, zone: &Zone) -> Result<Option<(Ns, Ns)>, Failure>;

    /// The request to the Python package.
    fn request(&self, lake: String, window: Option<(Ns, Ns)>) -> Request;

    /// The answer in the Arrow stream that the Python package returns.
    fn answer(&self, stream: &[u8]) -> Result<Answer, Failure>;

    /// Output options of the answer.
    fn output(&self) -> &OutputArgs;
}
