//! A command line that cannot be parsed, in the form of all other errors: message and one hint.

use clap::error::ErrorKind;
use whyslow_base::failure::Failure;

/// Help and the version, which are no errors, are printed; the program ends.
pub(super) fn failure(error: &clap::Error) -> Failure {
    if matches!(
        error.kind(),
        ErrorKind::DisplayHelp
            | ErrorKind::DisplayVersion
            | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
    ) {
        error.exit();
    }
    let (message, hint) = parts(&error.render().to_string());
    Failure::usage(message).hint(hint)
}

/// The message, and the most useful hint, of an error as clap prints it.
fn parts(text: &str) -> (String, String) {
    let mut paragraphs = text.trim_end().split("\n\n");
    let message = paragraphs.next().unwrap_or_default();
    let message = message.strip_prefix("error: ").unwrap_or(message);
    let mut command = "whyslow";
    let mut tip = None;
    for paragraph in paragraphs {
        if let Some(usage) = paragraph.strip_prefix("Usage: ") {
            command = up_to_arguments(usage);
        } else if let Some(line) = paragraph.trim_start().strip_prefix("tip: ") {
            // Words that look like an option are rarely meant as a value.
            let line = line.lines().next().unwrap_or_default();
            tip = tip.or((!line.starts_with("to pass ")).then(|| line.to_owned()));
        }
    }
    let hint = tip.unwrap_or_else(|| format!("see all options: {command} --help"));
    (message.to_owned(), hint)
}

/// `whyslow io top` of `whyslow io top [OPTIONS] [RECORDING]`.
fn up_to_arguments(usage: &str) -> &str {
    let is_argument = |word: &str| word.starts_with(['[', '<', '-']);
    let mut end = 0;
    for word in usage.split_inclusive([' ', '\n']) {
        if is_argument(word) {
            break;
        }
        end += word.len();
    }
    usage[..end].trim_end()
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use super::super::Cli;
    use super::*;

    fn refused(line: &str) -> (String, String) {
        let args: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        let error = Cli::read(&args).expect_err(line);
        let (message, _, hint) = failure(&error).into_parts();
        (message, hint.expect("a hint"))
    }

    #[test]
    fn each_refused_command_line_has_one_hint() {
        let check = |line: &str, message: &str, hint: &str| {
            let (got, got_hint) = refused(line);
            assert!(got.contains(message), "{line}: {got}");
            assert_eq!(got_hint, hint, "{line}");
        };
        check(
            "whyslow io top --zzz",
            "unexpected argument '--zzz' found",
            "see all options: whyslow io top --help",
        );
        check(
            "whyslow io top --last 5m -w +1s..+2s",
            "cannot be used with",
            "see all options: whyslow io top --help",
        );
        check(
            "whyslow import",
            "the following required arguments were not provided",
            "see all options: whyslow import --help",
        );
        let (_, hint) = refused("whyslow explains");
        assert_eq!(hint, "a similar subcommand exists: 'explain'");
        let (message, _) = refused("whyslow io top --format yaml");
        assert!(message.contains("possible values: "), "{message}");
    }
}
