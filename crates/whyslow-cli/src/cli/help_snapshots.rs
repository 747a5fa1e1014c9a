//! Snapshots of `--help` of all commands, so that a rewording is one difference to read:
//! `INSTA_UPDATE=always cargo test -p whyslow-cli help_snapshots` accepts it.
//!
//! An option that several commands have with the same text is shown once, at the first of them;
//! the others have only its name.

use std::collections::HashSet;
use std::fmt::Write as _;

use whyslow_analysis::TOPICS;

use super::Cli;

/// Greatest indentation of the first line of an option.
const OPTION_INDENT_MAX: usize = 6;
/// Indentation of the text of an option; less ends it.
const TEXT_INDENT: usize = 10;

/// Shortens options that were shown before.
#[derive(Default)]
struct Shown {
    options: HashSet<String>,
}

impl Shown {
    fn help(&mut self, text: &str) -> String {
        let mut out = String::new();
        let mut repeated: Vec<String> = Vec::new();
        let mut lines = text.lines().peekable();
        while let Some(line) = lines.next() {
            if !is_option(line) {
                if !line.trim().is_empty() {
                    flush(&mut repeated, &mut out);
                }
                out.push_str(line.trim_end());
                out.push('\n');
                continue;
            }
            let mut option = line.trim_end().to_owned();
            while let Some(next) = lines.next_if(|next| is_text_of_option(next)) {
                option.push('\n');
                option.push_str(next.trim_end());
            }
            let option = option.trim_end().to_owned();
            if self.options.insert(option.clone()) {
                flush(&mut repeated, &mut out);
                out.push_str(&option);
                out.push_str("\n\n");
            } else {
                repeated.push(name(&option).to_owned());
            }
        }
        flush(&mut repeated, &mut out);
        without_blank_runs(&out)
    }
}

fn flush(repeated: &mut Vec<String>, out: &mut String) {
    if !repeated.is_empty() {
        let _ = writeln!(out, "  as before: {}\n", repeated.join(" "));
        repeated.clear();
    }
}

fn indent(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

fn is_option(line: &str) -> bool {
    let indent = indent(line);
    (2..=OPTION_INDENT_MAX).contains(&indent) && line.trim_start().starts_with('-')
}

fn is_text_of_option(line: &str) -> bool {
    line.trim().is_empty() || indent(line) >= TEXT_INDENT
}

/// `--limit`, or `-h` for an option without a long name.
fn name(option: &str) -> &str {
    let first = option.lines().next().unwrap_or_default();
    let mut words = first.split([' ', ',', '=', '[', '<']);
    words
        .clone()
        .find(|word| word.starts_with("--"))
        .or_else(|| words.find(|word| word.starts_with('-')))
        .unwrap_or_default()
}

fn without_blank_runs(text: &str) -> String {
    let mut out = String::new();
    let mut was_blank = true;
    for line in text.lines() {
        let is_blank = line.is_empty();
        if !(is_blank && was_blank) {
            out.push_str(line);
            out.push('\n');
        }
        was_blank = is_blank;
    }
    out.trim_end().to_owned()
}

/// Help of a command and of all commands below it, except hidden ones.
fn add(command: &clap::Command, path: &str, shown: &mut Shown, out: &mut String) {
    let text = command.clone().render_long_help().to_string();
    let _ = writeln!(out, "======== {path} --help\n{}\n", shown.help(&text));
    for below in command.get_subcommands().filter(|one| !one.is_hide_set()) {
        add(below, &format!("{path} {}", below.get_name()), shown, out);
    }
}

fn help_of(is_wanted: impl Fn(&str) -> bool, with_top: bool) -> String {
    let mut whole = Cli::whole().term_width(100);
    whole.build();
    let (mut shown, mut out) = (Shown::default(), String::new());
    if with_top {
        let short = whole.clone().render_help().to_string();
        let _ = writeln!(out, "======== whyslow -h\n{}\n", shown.help(&short));
        let long = whole.clone().render_long_help().to_string();
        let _ = writeln!(out, "======== whyslow --help\n{}\n", shown.help(&long));
    }
    for command in whole.get_subcommands().filter(|one| !one.is_hide_set()) {
        if is_wanted(command.get_name()) {
            let path = format!("whyslow {}", command.get_name());
            add(command, &path, &mut shown, &mut out);
        }
    }
    out
}

fn is_topic(name: &str) -> bool {
    TOPICS.iter().any(|topic| topic.kind.name() == name)
}

/// Their options depend on features of the build.
const BY_FEATURE: [&str; 4] = ["fleet", "load", "record", "serve"];

#[test]
fn help_of_commands() {
    let is_wanted = |name: &str| !is_topic(name) && name != "as" && !BY_FEATURE.contains(&name);
    insta::assert_snapshot!("help", help_of(is_wanted, true));
}

#[test]
fn help_of_queries() {
    insta::assert_snapshot!("help_queries", help_of(is_topic, false));
}

#[test]
fn help_of_emulations() {
    insta::assert_snapshot!("help_as", help_of(|name| name == "as", false));
}

#[cfg(all(feature = "fleet", feature = "load"))]
#[test]
fn help_of_commands_with_features() {
    let is_wanted = |name: &str| BY_FEATURE.contains(&name);
    insta::assert_snapshot!("help_features", help_of(is_wanted, false));
}

#[test]
fn an_option_is_shown_once_and_named_later() {
    let help = "About\n\nOptions:\n      --limit <N>\n          At most N\n\n          \
        More\n\n  -h, --help\n          Print help\n\nMore";
    let mut shown = Shown::default();
    assert_eq!(shown.help(help), help);
    assert_eq!(
        shown.help(help),
        "About\n\nOptions:\n  as before: --limit --help\n\nMore"
    );
    let other = "Options:\n      --limit <N>\n          At most M";
    assert_eq!(shown.help(other), other);
}
