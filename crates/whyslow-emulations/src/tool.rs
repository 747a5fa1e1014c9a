use clap::{ArgMatches, Command};
use whyslow_base::args::TalkArgs;
use whyslow_base::failure::Failure;
use whyslow_sources::live::Segment;
use whyslow_sources::recording::Opened;

/// A tool that is imitated.
pub(crate) struct Tool {
    pub(crate) name: &'static str,
    /// Another name, which means its machine form.
    pub(crate) machine_name: Option<&'static str>,
    pub(crate) about: &'static str,
    pub(crate) args: fn(Command) -> Command,
    pub(crate) run: fn(&Call<'_>) -> Result<(), Failure>,
}

/// One use of a tool.
pub(crate) struct Call<'c> {
    pub(crate) matches: &'c ArgMatches,
    pub(crate) talk: &'c TalkArgs,
    /// Called by the name of its machine form.
    pub(crate) machine: bool,
    /// What it is about, if that is this machine now.
    pub(crate) segment: Option<&'c Segment<'c>>,
}

impl Call<'_> {
    /// The recording of this name, or of this machine now.
    pub(crate) fn recording(&self, name: Option<&str>) -> Result<Opened, Failure> {
        match self.segment {
            Some(segment) => Opened::live(segment),
            None => Opened::find(name, self.talk),
        }
    }
}
