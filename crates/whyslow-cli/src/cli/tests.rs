//! The command line as a whole: what is accepted, and what the help and the documents promise.

use super::*;

#[test]
fn the_command_tree_is_consistent() {
    Cli::whole().debug_assert();
}

/// The help of a command does not depend on which other commands are complete.
#[test]
fn a_command_that_is_asked_for_is_complete() {
    let help = |command: &clap::Command, names: &[&str]| {
        let find = |found: &clap::Command, name| found.find_subcommand(name).cloned();
        let found = names
            .iter()
            .try_fold(command.clone(), |found, name| find(&found, name));
        let mut found = found.expect("it exists");
        [found.render_help(), found.render_long_help()].map(|text| text.to_string())
    };
    let mut whole = Cli::whole();
    whole.build();
    let check = |names: &[&str]| {
        let args: Vec<OsString> = names.iter().map(OsString::from).collect();
        let mut named = Cli::of(NamedCommands::Among(&args));
        named.build();
        assert_eq!(help(&named, names), help(&whole, names), "{names:?}");
    };
    check(&[]);
    let mut count = 0;
    for command in whole.get_subcommands() {
        let name = command.get_name();
        check(&[name]);
        for inner in command.get_subcommands() {
            check(&[name, inner.get_name()]);
            count += 1;
        }
    }
    assert!(count > 100, "{count}");
}

#[test]
fn only_root_on_a_terminal_records_without_a_command() {
    assert!(is_explained_at_once(1, true, true));
    for (count, is_root, is_on_terminal) in [(2, true, true), (1, false, true), (1, true, false)] {
        assert!(!is_explained_at_once(count, is_root, is_on_terminal));
    }
}

fn parsed(words: &[&str]) -> Result<Command, ErrorKind> {
    let args: Vec<OsString> = words.iter().map(OsString::from).collect();
    Cli::read(&args)
        .map(|cli| cli.command)
        .map_err(|error| error.kind())
}

#[test]
fn report_is_another_word_for_explain() {
    let parsed = parsed(&["whyslow", "report", "web.wsl", "-c", "mysqld,nginx"]);
    let Ok(Command::Explain(args)) = parsed else {
        panic!("{parsed:?}");
    };
    assert_eq!(args.recording.as_deref(), Some("web.wsl"));
    assert_eq!(args.comm, ["mysqld", "nginx"]);
}

#[test]
fn last_is_a_window_and_the_only_one() {
    use whyslow_base::time::WindowText;
    for words in [
        &["whyslow", "explain", "--last", "5m"][..],
        &["whyslow", "explain", "-w", "last 5m"],
    ] {
        let Ok(Command::Explain(args)) = parsed(words) else {
            panic!("{words:?}");
        };
        let five_minutes = WindowText::Last(300_000_000_000);
        assert_eq!(args.window.text(), Some(five_minutes), "{words:?}");
    }
    assert!(parsed(&["whyslow", "io", "top", "web.wsl", "--last", "5m"]).is_ok());
    for other in [
        &["-w", "+1s..+2s"][..],
        &["--begin", "+1s"],
        &["--end", "-1s"],
    ] {
        for command in [&["explain"][..], &["io", "top"], &["use"]] {
            let words = [&["whyslow"], command, &["--last", "5m"], other].concat();
            let kind = parsed(&words).expect_err("two windows");
            assert_eq!(kind, ErrorKind::ArgumentConflict, "{words:?}");
        }
    }
    let request = parsed(&["whyslow", "explain", "--request", "3", "--last", "5m"]);
    assert_eq!(
        request.expect_err("two windows"),
        ErrorKind::ArgumentConflict
    );
    let zero = parsed(&["whyslow", "io", "top", "--last", "0s"]);
    assert_eq!(zero.expect_err("no window"), ErrorKind::ValueValidation);
}

/// Words of a command as a shell would split it; without comments and redirections.
fn split(command: &str) -> Vec<OsString> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut quote = None;
    for c in command.chars().chain([' ']) {
        match (c, quote) {
            ('\'' | '"', None) => quote = Some(c),
            (c, Some(open)) if c == open => quote = None,
            (' ', None) => {
                if !word.is_empty() {
                    words.push(OsString::from(std::mem::take(&mut word)));
                }
            }
            ('#', None) if word.is_empty() => break,
            ('|' | '>' | '&', None) => break,
            (c, _) => word.push(c),
        }
    }
    words
}

/// Every command in the documents is one that the program accepts.
#[test]
fn commands_of_the_documents_are_accepted() {
    let mut refused = Vec::new();
    let mut count = 0;
    for document in [
        include_str!("../../../../docs/guide.md"),
        include_str!("../../../../README.md"),
    ] {
        for line in document.lines() {
            let line = line.strip_prefix("    ").or(line.strip_prefix("$ "));
            let line = line.unwrap_or_default().trim_start();
            let command = line.strip_prefix("sudo ").unwrap_or(line);
            // Some are incomplete, or a pattern.
            if !command.starts_with("whyslow ") || command.contains(['…', '[']) {
                continue;
            }
            // A comment follows two spaces.
            let command = command.split("  ").next().unwrap_or(command);
            let words = split(&command.replace("PID", "1"));
            // `whyslow` alone prints its help here, which is not a terminal.
            if words.len() == 1 {
                continue;
            }
            if let Err(error) = Cli::read(&words) {
                refused.push(format!("{command}: {error}"));
            }
            count += 1;
        }
    }
    assert!(count > 100, "{count}");
    assert!(refused.is_empty(), "{}", refused.join("\n"));
}

/// Every command that a topic shows as an example is one that the program accepts.
#[test]
fn examples_of_topics_are_accepted() {
    let examples = whyslow_analysis::TOPICS
        .iter()
        .flat_map(|topic| topic.examples.lines());
    let mut refused = Vec::new();
    let mut count = 0;
    for line in examples {
        let line = line.trim_start();
        let command = line.strip_prefix("sudo ").unwrap_or(line);
        // Quotes need a shell, and a comment follows two spaces.
        if !command.starts_with("whyslow ") || command.contains(['\'', '"', '|', '>']) {
            continue;
        }
        let command = command.split("  ").next().unwrap_or(command);
        let args: Vec<OsString> = command.split_whitespace().map(OsString::from).collect();
        if let Err(error) = Cli::read(&args) {
            refused.push(format!("{command}: {error}"));
        }
        count += 1;
    }
    assert!(count > 50, "{count}");
    assert!(refused.is_empty(), "{}", refused.join("\n"));
}
