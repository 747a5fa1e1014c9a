//! A word that is no command but another tool: the command that shows what the tool shows.

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use whyslow_base::failure::Failure;
use whyslow_emulations::equivalents;
use whyslow_render::quoted;

use super::Cli;

/// The error for a command line that starts with the name of a tool: `whyslow iostat -x 1`, or
/// `whyslow as vmstat`.
pub(super) fn failure_of(error: &clap::Error, args: &[OsString], is_root: bool) -> Option<Failure> {
    if error.kind() != ErrorKind::InvalidSubcommand {
        return None;
    }
    let Some(ContextValue::String(name)) = error.get(ContextKind::InvalidSubcommand) else {
        return None;
    };
    let at = args
        .iter()
        .skip(1)
        .position(|arg| arg.to_str() == Some(name))?
        + 1;
    // After `io` and other commands, the word is meant as a view.
    let mut before = args[1..at].iter().filter_map(|arg| arg.to_str());
    if before.any(|arg| !arg.starts_with('-') && arg != "as") {
        return None;
    }
    let words: Option<Vec<String>> = args[at..]
        .iter()
        .map(|arg| arg.to_str().map(str::to_owned))
        .collect();
    let hint = command_for(&words?, is_root)?;
    Some(
        Failure::usage(format!(
            "cannot run `{name}`: it is not a command of whyslow"
        ))
        .hint(hint),
    )
}

/// The command that shows what a tool with these arguments shows.
pub(crate) fn command_for(words: &[String], is_root: bool) -> Option<String> {
    let (tool, args) = words.split_first()?;
    let found = equivalents(tool, args);
    let found = found.iter().find(|words| is_valid(words))?;
    let words: Vec<String> = found
        .iter()
        .map(|word| match word.as_str() {
            "&&" => word.clone(),
            word => quoted(word),
        })
        .collect();
    // Recording needs root.
    let records = found.iter().any(|word| word.starts_with("@live")) || found[0] == "record";
    let sudo = if records && !is_root { "sudo " } else { "" };
    Some(format!("{sudo}whyslow {}", words.join(" ")))
}

fn is_valid(words: &[String]) -> bool {
    let commands = words.split(|word| word == "&&");
    commands.enumerate().all(|(number, words)| {
        let name = (number == 0).then(|| OsString::from("whyslow"));
        let args: Vec<OsString> = name
            .into_iter()
            .chain(words.iter().map(OsString::from))
            .collect();
        Cli::read(&args).is_ok()
    })
}

#[cfg(test)]
mod tests {
    use whyslow_emulations::known_tools;

    use super::*;

    fn hint(line: &str, is_root: bool) -> Option<String> {
        let args: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        let error = Cli::read(&args).expect_err("not a command");
        let failure = failure_of(&error, &args, is_root)?;
        failure.into_parts().2
    }

    #[test]
    fn a_tool_is_answered_with_the_command_that_works() {
        let check = |line: &str, want: &str| {
            assert_eq!(hint(line, true).as_deref(), Some(want), "{line}");
        };
        check("whyslow iostat -x 1", "whyslow as iostat @live -x 1");
        check("whyslow -q iostat -x 1", "whyslow as iostat @live -x 1");
        check("whyslow iotop", "whyslow as iotop @live");
        check("whyslow strace -p 5", "whyslow syscalls log @live 1 -p 5");
        check("whyslow as vmstat 1", "whyslow use @live 1");
        // Options that the emulation lacks are left out.
        check("whyslow iostat --nonsense", "whyslow as iostat @live");
        let as_user = hint("whyslow iostat", false);
        assert_eq!(as_user.as_deref(), Some("sudo whyslow as iostat @live"));
        let reading = hint("whyslow perf report", false);
        assert_eq!(reading.as_deref(), Some("whyslow explain"));
        for line in [
            "whyslow slowest",
            "whyslow io vmstat",
            "whyslow explain x y",
        ] {
            assert_eq!(hint(line, true), None, "{line}");
        }
    }

    #[test]
    fn every_known_tool_has_a_valid_command() {
        let tools = known_tools();
        assert!(tools.len() > 60, "{}", tools.len());
        for words in tools {
            for command in equivalents(&words[0], &words[1..]) {
                assert!(is_valid(&command), "{words:?}: {command:?}");
            }
            assert!(command_for(&words, true).is_some(), "{words:?}");
        }
    }
}
