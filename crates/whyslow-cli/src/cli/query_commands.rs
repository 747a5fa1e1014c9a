//! Query commands: one command per kind with one subcommand per view, generated from the table of
//! queries. A new query needs no change here.

use clap::error::ErrorKind;
use clap::{ArgMatches, Args, Command, Error, FromArgMatches, Subcommand};
use whyslow_analysis::{Kind, TOPICS, Topic, Verb, View};
use whyslow_base::args::{Format, NamedCommands};

use super::query_args::{
    DiffersArgs, DumpArgs, FlameArgs, HeatArgs, HistArgs, OpenArgs, QueryArgs, RequestArgs,
    VersusArgs,
};

/// A query as typed.
#[derive(Debug, Clone)]
pub(crate) struct QueryCommand {
    pub(crate) kind: Kind,
    pub(crate) verb: Verb,
    pub(crate) args: ViewArgs,
    pub(crate) versus: Option<String>,
    pub(crate) requests: Option<RequestArgs>,
}

/// Arguments of a view.
#[derive(Debug, Clone)]
pub(crate) enum ViewArgs {
    Plain(QueryArgs),
    Hist(HistArgs),
    Heat(HeatArgs),
    Open(OpenArgs),
    Dump(DumpArgs),
    Flame(FlameArgs),
    Differs(DiffersArgs),
}

impl Subcommand for QueryCommand {
    fn augment_subcommands(command: Command) -> Command {
        let topics = TOPICS.iter().map(|topic| of_topic(topic));
        topics.fold(command, Command::subcommand)
    }

    fn augment_subcommands_for_update(command: Command) -> Command {
        Self::augment_subcommands(command)
    }

    fn has_subcommand(name: &str) -> bool {
        TOPICS.iter().any(|topic| topic.kind.name() == name)
    }
}

fn of_topic(topic: &'static Topic) -> Command {
    Command::new(topic.kind.name()).about(topic.about)
}

/// Adds the arguments of a topic and its views, if it was named.
pub(super) fn complete(command: Command, named: NamedCommands<'_>) -> Command {
    let is_it = |topic: &&&Topic| topic.kind.name() == command.get_name();
    match TOPICS.iter().find(is_it) {
        Some(topic) if named.has(command.get_name()) => with_views(command, topic, named),
        _ => command,
    }
}

fn with_views(command: Command, topic: &'static Topic, named: NamedCommands<'_>) -> Command {
    let command = command.before_help(format!("Examples:\n{}", topic.examples));
    let command = match topic.default {
        Some(verb) => with_args(command, topic.kind, verb, topic.about)
            .args_conflicts_with_subcommands(true)
            .after_help(format!(
                "Without a subcommand, this is `{} {}`.",
                topic.kind.name(),
                verb.name()
            )),
        None => command
            .subcommand_required(true)
            .arg_required_else_help(true),
    };
    let views = topic.views.iter().map(|view| of_view(topic, view, named));
    views.fold(command, Command::subcommand)
}

/// Alias of `hist`.
const FREQ: &str = "freq";
/// Alias of `log` for requests.
const LIST: &str = "list";

fn of_view(topic: &Topic, view: &'static View, named: NamedCommands<'_>) -> Command {
    let name = view.verb.name();
    let command = Command::new(name).about(view.about);
    let (command, is_named) = match view.verb {
        Verb::Hist => (
            command.visible_alias(FREQ),
            named.has(name) || named.has(FREQ),
        ),
        Verb::Log if topic.kind == Kind::Requests => (
            command.visible_alias(LIST),
            named.has(name) || named.has(LIST),
        ),
        _ => (command, named.has(name)),
    };
    if is_named {
        with_args(command, topic.kind, view.verb, view.about)
    } else {
        command
    }
}

fn with_args(command: Command, kind: Kind, verb: Verb, about: &'static str) -> Command {
    let command = match verb {
        Verb::Hist => HistArgs::augment_args(command),
        Verb::Heat => HeatArgs::augment_args(command),
        Verb::Open => OpenArgs::augment_args(command),
        Verb::Dump => DumpArgs::augment_args(command),
        Verb::Flame => FlameArgs::augment_args(command).mut_arg("format", |arg| {
            arg.value_parser(Format::with(&Format::GRAPHS))
        }),
        Verb::Differs => DiffersArgs::augment_args(command),
        Verb::Stats if kind == Kind::Dns => QueryArgs::augment_args(command)
            .mut_arg("format", |arg| {
                arg.value_parser(Format::with(&Format::COUNTED))
            }),
        _ => QueryArgs::augment_args(command),
    };
    let command = if takes_versus(kind, verb) {
        VersusArgs::augment_args(command)
    } else {
        command
    };
    let command = if kind == Kind::Requests {
        RequestArgs::augment_args(command)
    } else {
        command
    };
    // Last, because flattened arguments set their own comment as the description.
    command.about(about).long_about(None)
}

/// Two devices can be compared if a view has one table per device.
fn takes_versus(kind: Kind, verb: Verb) -> bool {
    kind == Kind::Block && verb == Verb::Hist
}

impl FromArgMatches for QueryCommand {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let unknown = || Error::raw(ErrorKind::InvalidSubcommand, "unknown query");
        let (kind, matches) = matches.subcommand().ok_or_else(unknown)?;
        let is_it = |topic: &&&Topic| topic.kind.name() == kind;
        let topic = TOPICS.iter().find(is_it).ok_or_else(unknown)?;
        let (verb, matches) = match (matches.subcommand(), topic.default) {
            (Some((name, matches)), _) => {
                let named = |view: &&View| view.verb.name() == name;
                let view = topic.views.iter().find(named).ok_or_else(unknown)?;
                (view.verb, matches)
            }
            (None, Some(verb)) => (verb, matches),
            (None, None) => return Err(unknown()),
        };
        let args = match verb {
            Verb::Hist => ViewArgs::Hist(HistArgs::from_arg_matches(matches)?),
            Verb::Heat => ViewArgs::Heat(HeatArgs::from_arg_matches(matches)?),
            Verb::Open => ViewArgs::Open(OpenArgs::from_arg_matches(matches)?),
            Verb::Dump => ViewArgs::Dump(DumpArgs::from_arg_matches(matches)?),
            Verb::Flame => ViewArgs::Flame(FlameArgs::from_arg_matches(matches)?),
            Verb::Differs => ViewArgs::Differs(DiffersArgs::from_arg_matches(matches)?),
            _ => ViewArgs::Plain(QueryArgs::from_arg_matches(matches)?),
        };
        let versus = if takes_versus(topic.kind, verb) {
            VersusArgs::from_arg_matches(matches)?.vs
        } else {
            None
        };
        let requests = match topic.kind {
            Kind::Requests => Some(RequestArgs::from_arg_matches(matches)?),
            _ => None,
        };
        Ok(Self {
            kind: topic.kind,
            verb,
            args,
            versus,
            requests,
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole() -> Command {
        let command = QueryCommand::augment_subcommands(Command::new("whyslow"));
        command.mut_subcommands(|topic| complete(topic, NamedCommands::All))
    }

    fn help(command: &Command) -> [String; 2] {
        let mut command = command.clone();
        let short = command.render_help().to_string();
        [short, command.render_long_help().to_string()]
    }

    #[test]
    fn the_help_of_every_question_says_what_it_is_about() {
        let commands = whole();
        for topic in TOPICS {
            let of_topic = commands
                .find_subcommand(topic.kind.name())
                .expect("a command");
            for text in help(of_topic) {
                assert!(text.contains(topic.about), "{}: {text}", topic.kind.name());
            }
            for view in topic.views {
                let of_view = of_topic
                    .find_subcommand(view.verb.name())
                    .expect("a command");
                for text in help(of_view) {
                    let name = (topic.kind.name(), view.verb.name());
                    assert!(text.starts_with(view.about), "{name:?}: {text}");
                }
            }
        }
    }

    #[test]
    fn only_block_hist_compares_two_devices() {
        let of = |words: &[&str]| {
            let matches = whole().try_get_matches_from(words).ok()?;
            QueryCommand::from_arg_matches(&matches).ok()
        };
        let found = of(&["whyslow", "block", "hist", "web.wsl", "--vs", "sdb"]).expect("a query");
        assert_eq!(found.versus.as_deref(), Some("sdb"));
        for topic in TOPICS {
            for view in topic.views {
                let (kind, verb) = (topic.kind.name(), view.verb.name());
                let is_taken = of(&["whyslow", kind, verb, "web.wsl", "--vs", "sdb"]).is_some();
                let has = [("block", "hist")].contains(&(kind, verb));
                assert_eq!(is_taken, has, "{kind} {verb}");
            }
        }
    }
}
