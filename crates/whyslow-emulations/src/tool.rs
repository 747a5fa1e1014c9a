use clap::{ArgMatches, Command};
use whyslow_base::args::TalkArgs;
use whyslow_base::failure::Failure;
use whyslow_sources::live::Segment;
use whyslow_sources::recording::Opened;

/// An emulated tool.
pub(crate) struct Tool {
    pub(crate) name: &'static str,
    /// Alternative name that selects the machine-readable form.
    pub(crate) machine_name: Option<&'static str>,
    pub(crate) about: &'static str,
    pub(crate) args: fn(Command) -> Command,
    pub(crate) run: fn(&Call<'_>) -> Result<(), Failure>,
}

/// One invocation of a tool.
pub(crate) struct Call<'c> {
    pub(crate) matches: &'c ArgMatches,
    pub(crate) talk: &'c TalkArgs,
    /// Invoked by the name of its machine-readable form.
    pub(crate) machine: bool,
    /// The live segment to show, if the source is this machine.
    pub(crate) segment: Option<&'c Segment<'c>>,
}

impl Call<'_> {
    /// The recording with this name, or the live segment.
    pub(crate) fn recording(&self, name: Option<&str>) -> Result<Opened, Failure> {
        match self.segment {
            Some(segment) => Opened::live(segment),
            None => Opened::find(name, self.talk),
        }
    }
}
