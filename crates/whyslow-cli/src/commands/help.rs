//! `help` and `version`.

use std::ffi::OsString;

use whyslow_base::failure::Failure;
use whyslow_render::{to_pager, to_stdout};

use crate::cli::{Cli, HelpArgs, command_for};

/// The topic that is no command: the table of `import --formats`.
const FORMATS: &str = "formats";

pub(super) fn run(args: &HelpArgs) -> Result<(), Failure> {
    if args.topic == [FORMATS] {
        return super::import::print_formats();
    }
    print(&args.topic)
}

/// Prints the help of a command, in the pager if it is long.
pub(super) fn print(topic: &[String]) -> Result<(), Failure> {
    let topic: Vec<&str> = topic.iter().map(String::as_str).collect();
    to_pager(&text(&topic)?)
}

/// The help of a command, with the escape sequences of a terminal if standard output is one.
fn text(topic: &[&str]) -> Result<String, Failure> {
    // A tool that is emulated: `help iostat` is `help as iostat`.
    let help = help_of(topic).or_else(|| match topic {
        [tool] => help_of(&["as", tool]),
        _ => None,
    });
    help.ok_or_else(|| {
        let failure = Failure::usage(format!(
            "cannot print the help of `{}`: there is no such command",
            topic.join(" ")
        ));
        let words: Vec<String> = topic.iter().map(ToString::to_string).collect();
        let is_root = rustix::process::geteuid().is_root();
        failure.hint(match command_for(&words, is_root) {
            Some(command) => format!("this does what the tool does: {command}"),
            None => "list all commands: whyslow help".to_owned(),
        })
    })
}

fn help_of(topic: &[&str]) -> Option<String> {
    let args: Vec<OsString> = topic.iter().map(OsString::from).collect();
    let mut command = Cli::naming(&args);
    command.build();
    let mut command = &mut command;
    for name in topic {
        command = command.find_subcommand_mut(name)?;
    }
    let help = command.render_long_help();
    let is_coloured = whyslow_render::is_on_terminal()
        && whyslow_render::wants_color(whyslow_base::args::ColorChoice::Auto, true);
    Some(if is_coloured {
        help.ansi().to_string()
    } else {
        help.to_string()
    })
}

pub(super) fn version() -> Result<(), Failure> {
    to_stdout(&Cli::naming(&[]).render_version())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_and_emulated_tool_has_help() {
        let check = |topic: &[&str], part: &str| {
            let text = text(topic).expect("a topic");
            assert!(text.contains(part), "{topic:?}: {text}");
        };
        check(&[], "Commands:");
        check(&["io", "top"], "--window");
        check(&["man"], "whyslow man");
        check(&["as", "iostat"], "sysstat");
        check(&["iostat"], "sysstat");
    }

    #[test]
    fn an_unknown_topic_has_a_hint() {
        let check = |topic: &[&str], part: &str| {
            let failure = text(topic).expect_err("no topic");
            let (_, _, hint) = failure.into_parts();
            let hint = hint.expect("a hint");
            assert!(hint.contains(part), "{topic:?}: {hint}");
        };
        check(&["vmstat"], "whyslow use @live 1");
        check(&["io", "slowest"], "whyslow help");
    }
}
