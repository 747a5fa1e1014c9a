//! The command `as`, with a subcommand for each tool.

use clap::error::ErrorKind;
use clap::{ArgMatches, Command, Error, FromArgMatches, Subcommand};
use whyslow_base::args::{NamedCommands, TalkArgs};
use whyslow_base::failure::Failure;
use whyslow_sources::live::Segment;

use crate::list::{named, tools};
use crate::live;
use crate::tool::Call;

/// Adds the options of the requested tools.
pub fn complete(command: Command, requested: NamedCommands<'_>) -> Command {
    command.mut_subcommands(|command| match named(command.get_name()) {
        // Set afterwards, because flattened options override the description.
        Some(tool) if requested.has(command.get_name()) => {
            (tool.args)(command).about(tool.about).long_about(None)
        }
        _ => command,
    })
}

/// `as TOOL …` as typed.
#[derive(Debug, Clone)]
pub struct AsCommand {
    name: String,
    matches: ArgMatches,
}

impl AsCommand {
    /// Prints what the tool would print.
    pub fn run(&self, talk: &TalkArgs) -> Result<(), Failure> {
        let tool = named(&self.name)
            .ok_or_else(|| Failure::usage(format!("unknown tool `{}`", self.name)))?;
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
            .ok_or_else(|| Error::raw(ErrorKind::MissingSubcommand, "no tool specified"))?;
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
