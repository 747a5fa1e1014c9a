//! `as TOOL`: a recording in the columns, units and options of a tool that people know.
//!
//! Each tool is one file with its name, its options and what it prints. What it prints is made from
//! the answers of the same questions as everything else, so that the two never say different things.

mod asked;
mod bcc;
mod df;
mod front;
mod iotop;
mod live;
mod lttng;
mod sysstat;
mod top;

use clap::error::ErrorKind;
use clap::{ArgMatches, Command, Error, FromArgMatches, Subcommand};
use whyslow_base::args::{NamedCommands, TalkArgs};
use whyslow_base::failure::Failure;
use whyslow_sources::live::Segment;
use whyslow_sources::recording::Opened;

/// A tool that is imitated.
pub(crate) struct Tool {
    name: &'static str,
    /// Another name, which means its machine form.
    machine_name: Option<&'static str>,
    about: &'static str,
    args: fn(Command) -> Command,
    run: fn(&Call<'_>) -> Result<(), Failure>,
}

/// One use of a tool.
struct Call<'c> {
    matches: &'c ArgMatches,
    talk: &'c TalkArgs,
    /// Called by the name of its machine form.
    machine: bool,
    /// What it is about, if that is this machine now.
    segment: Option<&'c Segment<'c>>,
}

impl Call<'_> {
    /// The recording of this name, or of this machine now.
    fn recording(&self, name: Option<&str>) -> Result<Opened, Failure> {
        match self.segment {
            Some(segment) => Opened::live(segment),
            None => Opened::find(name, self.talk),
        }
    }
}

/// Every tool, in the order of the help.
fn tools() -> impl Iterator<Item = &'static Tool> {
    let live: [&Tool; 5] = [
        &sysstat::iostat::TOOL,
        &sysstat::pidstat::TOOL,
        &iotop::TOOL,
        &top::TOOL,
        &df::TOOL,
    ];
    let live = live.into_iter().chain(bcc::TOOLS.iter().copied());
    live.chain(lttng::TOOLS.iter().copied())
}

/// The tool of this name, or with this machine form.
fn named(name: &str) -> Option<&'static Tool> {
    tools().find(|tool| tool.name == name || tool.machine_name == Some(name))
}

/// Adds the options of those tools that are asked for.
pub(crate) fn complete(command: Command, asked: NamedCommands<'_>) -> Command {
    command.mut_subcommands(|command| match named(command.get_name()) {
        // Afterwards: options that are flattened bring their own comment as what it is about.
        Some(tool) if asked.has(command.get_name()) => {
            (tool.args)(command).about(tool.about).long_about(None)
        }
        _ => command,
    })
}

/// `as TOOL …` as typed.
#[derive(Debug, Clone)]
pub(crate) struct AsCommand {
    name: String,
    matches: ArgMatches,
}

impl AsCommand {
    pub(crate) fn run(&self, talk: &TalkArgs) -> Result<(), Failure> {
        let tool = named(&self.name)
            .ok_or_else(|| Failure::usage(format!("`{}` is no tool known here", self.name)))?;
        let call = |segment: Option<&Segment<'_>>| {
            (tool.run)(&Call {
                matches: &self.matches,
                talk,
                machine: tool.machine_name == Some(self.name.as_str()),
                segment,
            })
        };
        match live::plan(tool.name, &self.matches)? {
            None => call(None),
            Some(plan) => {
                whyslow_sources::live::run(&plan, talk, &mut |segment| call(Some(segment)))
            }
        }
    }
}

impl Subcommand for AsCommand {
    fn augment_subcommands(command: Command) -> Command {
        let commands = tools().flat_map(|tool| {
            let command = |name| Command::new(name).about(tool.about);
            let plain = command(tool.name);
            let machine = tool.machine_name.map(|name| command(name).hide(true));
            [Some(plain), machine].into_iter().flatten()
        });
        commands.fold(command, Command::subcommand)
    }

    fn augment_subcommands_for_update(command: Command) -> Command {
        Self::augment_subcommands(command)
    }

    fn has_subcommand(name: &str) -> bool {
        named(name).is_some()
    }
}

impl FromArgMatches for AsCommand {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let (name, matches) = matches
            .subcommand()
            .ok_or_else(|| Error::raw(ErrorKind::MissingSubcommand, "no tool named"))?;
        Ok(Self {
            name: name.to_owned(),
            matches: matches.clone(),
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}
