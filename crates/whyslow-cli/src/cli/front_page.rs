//! The help of the program: what to type first (`-h`), and all commands by purpose (`--help`).

use std::fmt::Write as _;

use clap::builder::StyledStr;
use clap::{ArgAction, Command};

/// What `-h` and the program without arguments print.
const FIRST: &str = "\
Find out why something on a Linux machine was slow, and what caused it.

  sudo whyslow now                 record 10 s, explain what was slow
  sudo whyslow record --for 30s    record without explaining; Ctrl-C ends it
  whyslow explain                  what was slow, why, and the culprit
  whyslow serve                    show the recording in the browser

Which process writes to the disk now?
  sudo whyslow io usage @live 2 1    one answer, after two seconds
Why was that HTTP request slow two minutes ago?
  sudo whyslow record --ring 5m -o flight.wsl    leave this running
  sudo whyslow explain @flight                   later, in another terminal
Which thread holds the lock that others wait for?
  sudo whyslow now

More: whyslow --help            all commands
      whyslow help io top       one command, with its options
      whyslow doctor            what can be recorded on this machine
Names of tools work, too: whyslow iostat -x 1 prints the equivalent command.";

const EXAMPLES: &str = "\
Examples:
  sudo whyslow                           record 10 s, explain what was slow
  sudo whyslow record --for 30s          record this machine for 30 s
  whyslow import trace/ -o web.wsl       import an LTTng kernel trace
  whyslow explain                        what was slow, why, and the culprit
  whyslow explain --last 5m              only the last five minutes of the recording
  whyslow io usage                       bytes read and written by each process
  whyslow io stats                       latency of opens, reads, writes and syncs
  whyslow io top --op open -n 5          the five slowest opens, with file names
  whyslow io top -w op:17                other operations while operation 17 ran
  whyslow block hist --dev sda --vs sdb  latency of two disks side by side
  sudo whyslow io usage @live 1          I/O of this machine, every second until Ctrl-C";

const NOTES: &str = "\
A recording is a directory NAME.wsl. In place of a recording, commands also accept a trace of \
another tool (imported into a cache), @last (the newest recording in the working directory, \
otherwise the last one used in this terminal) and @flight (a new recording of what the running \
flight recorder keeps in memory).

Queries, `as`, `info` and `sql` also accept @live: they record this machine (needs root) into a \
private temporary directory, print each interval as it ends, and keep nothing. If a running \
recorder already records what is needed, @live follows that recorder; @live:new always starts a \
new one, and @live:PID follows the recorder with process id PID.";

/// Commands by purpose, in the order of the help. Views of recordings that are not listed belong to
/// the group without names.
const GROUPS: &[(&str, &[&str])] = &[
    ("start here", &["now", "record", "explain", "serve"]),
    ("query a recording, or this machine with @live", &[]),
    ("import traces of other tools", &["import"]),
    ("share", &["export"]),
    ("many hosts, load generation", &["fleet", "load"]),
    (
        "more",
        &[
            "doctor",
            "mark",
            "help",
            "man",
            "completions",
            "schema",
            "version",
        ],
    ),
];

/// Width of the list of commands; narrower terminals are rare.
const WIDTH: usize = 80;
/// Columns before the description of a command.
const INDENT: usize = 15;

/// Sets the help of the program.
pub(super) fn add(command: Command) -> Command {
    let header = command.get_styles().get_header();
    let mut long = format!(
        "Find out why something on a Linux machine was slow, and what caused it\n\n{EXAMPLES}\n\n\
         {header}Usage:{header:#} whyslow [OPTIONS] [COMMAND]\n\n\
         {header}Commands:{header:#}\n",
    );
    for (title, names) in GROUPS {
        let _ = writeln!(long, " {header}{title}{header:#}");
        for one in of_group(&command, names) {
            let about = one.get_about().map(ToString::to_string);
            push_entry(&mut long, one.get_name(), &about.unwrap_or_default());
        }
    }
    let _ = writeln!(long, "\n{header}Global options:{header:#}");
    for argument in command.get_arguments() {
        let about = argument.get_help().map(ToString::to_string);
        let _ = writeln!(long, "{:<25}{}", flag(argument), about.unwrap_or_default());
    }
    long.push_str("  -h, --help             Print a summary; --help prints all options\n");
    long.push_str("  -V, --version          Print the version");
    command
        .help_template("{before-help}{after-help}")
        .before_help(FIRST)
        .before_long_help(StyledStr::from(long))
        .after_long_help(NOTES)
}

/// The commands with these names; without names, those of no group.
fn of_group<'c>(command: &'c Command, names: &'c [&str]) -> Vec<&'c Command> {
    if !names.is_empty() {
        let found = names
            .iter()
            .filter_map(|name| command.find_subcommand(name));
        return found.collect();
    }
    let is_elsewhere = |name: &str| GROUPS.iter().any(|(_, names)| names.contains(&name));
    let others = command.get_subcommands();
    others
        .filter(|one| !one.is_hide_set() && !is_elsewhere(one.get_name()))
        .collect()
}

/// `  -q, --quiet`
fn flag(argument: &clap::Arg) -> String {
    let mut text = match argument.get_short() {
        Some(short) => format!("  -{short}, "),
        None => " ".repeat(6),
    };
    let _ = write!(text, "--{}", argument.get_long().unwrap_or_default());
    if matches!(argument.get_action(), ArgAction::Set)
        && let Some([name, ..]) = argument.get_value_names()
    {
        let _ = write!(text, "={name}");
    }
    text
}

/// A name and its description, wrapped at words.
fn push_entry(out: &mut String, name: &str, about: &str) {
    let mut line = format!("  {name:<width$}", width = INDENT - 2);
    for word in about.split(' ') {
        if line.chars().count() + word.chars().count() >= WIDTH {
            let _ = writeln!(out, "{}", line.trim_end());
            line = " ".repeat(INDENT);
        }
        line.push_str(word);
        line.push(' ');
    }
    let _ = writeln!(out, "{}", line.trim_end());
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use super::super::Cli;
    use super::*;

    #[test]
    fn the_first_screen_fits_a_terminal() {
        let text = Cli::whole().render_help().to_string();
        assert!(text.lines().count() <= 24, "{text}");
        assert!(text.lines().all(|line| line.len() < 80), "{text}");
        for part in ["disk", "HTTP request", "lock", "whyslow now"] {
            assert!(text.contains(part), "`{part}` is not in {text}");
        }
    }

    /// Every command that the first screen shows is one that the program accepts.
    #[test]
    fn commands_of_the_first_screen_are_accepted() {
        let mut count = 0;
        for line in FIRST.lines().chain(EXAMPLES.lines()) {
            let Some(command) = line.strip_prefix("  ") else {
                continue;
            };
            let command = command.trim_start();
            let command = command.strip_prefix("sudo ").unwrap_or(command);
            let command = command.split("  ").next().unwrap_or(command);
            if !command.starts_with("whyslow ") || command.trim() == "whyslow" {
                continue;
            }
            let command = command.replace("PID", "1").replace('\'', "");
            let args: Vec<OsString> = command.split_whitespace().map(OsString::from).collect();
            if args.len() == 1 {
                continue;
            }
            if let Err(error) = Cli::read(&args) {
                panic!("{command}: {error}");
            }
            count += 1;
        }
        assert!(count >= 16, "{count}");
    }

    #[test]
    fn the_help_lists_each_command_once() {
        let whole = Cli::whole();
        let mut listed: Vec<&str> = GROUPS
            .iter()
            .flat_map(|(_, names)| of_group(&whole, names))
            .map(Command::get_name)
            .collect();
        let named: usize = GROUPS.iter().map(|(_, names)| names.len()).sum();
        listed.sort_unstable();
        let visible = whole.get_subcommands().filter(|one| !one.is_hide_set());
        let mut wanted: Vec<&str> = visible.map(Command::get_name).collect();
        wanted.sort_unstable();
        assert_eq!(listed, wanted);
        assert!(listed.len() > named, "views are listed");
        let text = Cli::whole().render_long_help().to_string();
        for name in listed {
            let lines = text.lines();
            let count = lines
                .filter(|line| line.starts_with(&format!("  {name} ")))
                .count();
            assert_eq!(count, 1, "{name}: {text}");
        }
        for option in ["--quiet", "--color", "--progress", "--no-progress"] {
            assert!(text.contains(option), "{option}: {text}");
        }
    }

    #[test]
    fn descriptions_are_wrapped_at_words() {
        let mut text = String::new();
        push_entry(&mut text, "io", &"word ".repeat(20));
        assert!(text.lines().all(|line| line.len() < WIDTH), "{text}");
        assert!(
            text.lines()
                .skip(1)
                .all(|line| line.starts_with(&" ".repeat(INDENT)))
        );
        assert_eq!(text.split_whitespace().count(), 21);
    }
}
