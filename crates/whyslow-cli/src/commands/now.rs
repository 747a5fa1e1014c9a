//! `now`, and the program without arguments: record, explain, show what is saturated, name the next
//! commands.
//!
//! Each step is the command of that name, with the arguments that a user would type.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use whyslow_analysis::{Kind, Query, Verb, evaluate};
use whyslow_base::args::TalkArgs;
use whyslow_base::failure::Failure;
use whyslow_base::talk;
use whyslow_model::answer::{AnswerTable, Value};
use whyslow_render::{quoted, to_stdout};
use whyslow_sources::recording::{Opened, state_folder};

use super::record::name_of_now;
use super::{explain, record};
use crate::cli::{Cli, Command, NowArgs};

/// Directory of the recordings, in the state directory.
const FOLDER: &str = "now";
/// Recordings that are kept, with the new one.
const KEPT: usize = 5;
/// Resources named when none is saturated.
const NAMED: usize = 4;

pub(super) fn run(args: &NowArgs, talk: &TalkArgs) -> Result<(), Failure> {
    let path = match &args.output {
        Some(path) => path.clone(),
        None => new_path().map_err(|failure| {
            if rustix::process::geteuid().is_root() {
                failure
            } else {
                failure.hint("recording needs root: sudo whyslow now")
            }
        })?,
    };
    if !talk.quiet {
        talk::line(&format!(
            "recording this machine for {} s; press Ctrl-C to explain it earlier",
            args.length as f64 / 1e9
        ));
    }
    // The explanation is the result; `record` reports more for users that keep recordings.
    let quiet = TalkArgs {
        quiet: true,
        ..talk.clone()
    };
    match read(&record_words(args, &path))? {
        Command::Record(args) => {
            record::run(&args, &quiet)?;
        }
        _ => return Err(Failure::new("cannot record: `record` is not a command")),
    }
    let explained = match read(&explain_words(args, &path))? {
        Command::Explain(args) => explain::run(&args, talk),
        _ => return Err(Failure::new("cannot explain: `explain` is not a command")),
    };
    if let Err(failure) = &explained
        && failure.is_interrupted()
    {
        return explained;
    }
    let opened = Opened::find(path.to_str(), talk)?;
    to_stdout(&format!("\n{}", saturation_of(&opened)?))?;
    if !talk.quiet {
        talk::line(&format!("\n{}", next(&path)));
    }
    explained
}

fn read(words: &[OsString]) -> Result<Command, Failure> {
    let cli = Cli::read(words).map_err(|error| Failure::usage(error.kind().to_string()))?;
    Ok(cli.command)
}

fn record_words(args: &NowArgs, path: &Path) -> Vec<OsString> {
    let mut words = ["whyslow", "record", "--for"].map(OsString::from).to_vec();
    words.push(format!("{}ns", args.length).into());
    let mut output = OsString::from("--output=");
    output.push(path);
    words.push(output);
    words
}

fn explain_words(args: &NowArgs, path: &Path) -> Vec<OsString> {
    // A pager would hide the summary below.
    let words = ["whyslow", "explain", "--no-pager"].map(OsString::from);
    let mut words = words.to_vec();
    words.extend(args.pid.iter().map(|pid| format!("--pid={pid}").into()));
    words.extend(args.comm.iter().map(|comm| format!("--comm={comm}").into()));
    words.extend(args.slow.iter().map(|slow| format!("--slow={slow}").into()));
    words.extend(["--".into(), path.into()]);
    words
}

/// A path in the state directory, where older recordings of this command are deleted.
fn new_path() -> Result<PathBuf, Failure> {
    let folder = state_folder().ok_or_else(|| {
        Failure::new("cannot write the recording: there is no state directory (HOME is not set)")
            .hint("name the recording: whyslow now -o now.wsl")
    })?;
    let folder = folder.join(FOLDER);
    fs::create_dir_all(&folder).map_err(|error| Failure::writing(&folder, error))?;
    for path in outdated(&folder, KEPT - 1) {
        // One that cannot be deleted takes space, and harms nothing else.
        let _ = fs::remove_dir_all(path);
    }
    Ok(folder.join(name_of_now()))
}

/// Recordings of `now` except for the newest ones. Other files are left alone.
fn outdated(folder: &Path, kept: usize) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let mut names: Vec<String> = names.filter(|name| is_ours(name)).collect();
    names.sort_unstable();
    names.truncate(names.len().saturating_sub(kept));
    names.iter().map(|name| folder.join(name)).collect()
}

/// `20261127-204042.wsl`
fn is_ours(name: &str) -> bool {
    let digits =
        |text: &str, count| text.len() == count && text.bytes().all(|b| b.is_ascii_digit());
    let parts = name
        .strip_suffix(".wsl")
        .and_then(|stem| stem.split_once('-'));
    parts.is_some_and(|(date, time)| digits(date, 8) && digits(time, 6))
}

/// The lines about resources in use, from the view `use`.
fn saturation_of(opened: &Opened) -> Result<String, Failure> {
    let query = Query::new(Kind::Use, Verb::Usage);
    let answer = evaluate(&*opened.tables, &query)?;
    let table = answer.tables.iter().find(|table| table.name == "resources");
    Ok(table.map_or_else(
        || saturation(&AnswerTable::new("", "", Vec::new())),
        saturation,
    ))
}

/// One line for each resource that is saturated or has errors, or one for all.
fn saturation(table: &AnswerTable) -> String {
    let mut lines = String::new();
    let mut others = Vec::new();
    for (number, row) in table.rows.iter().enumerate() {
        let resource = Resource { table, row };
        let name = resource.text("resource");
        let used = resource.number("util_ratio");
        let percent = used.map(|used| format!("{:.0} %", used * 100.0));
        if table.outliers.contains(&number) {
            let mut facts: Vec<String> =
                percent.iter().map(|used| format!("{used} used")).collect();
            if let Some(waiting) = resource.number("waiting") {
                let what = resource.text("waiting_what");
                facts.push(format!("{waiting:.1} {what} waiting on average"));
            }
            let _ = writeln!(lines, "saturated: {name}: {}", facts.join(", "));
        } else if let Some(used) = percent
            && resource.number("waiting").is_some()
        {
            others.push(format!("{name} {used}"));
        }
        match resource.number("errors") {
            Some(errors) if errors > 0.0 => {
                let plural = if errors > 1.0 { "s" } else { "" };
                let _ = writeln!(lines, "errors: {name}: {errors:.0} failed request{plural}");
            }
            _ => {}
        }
    }
    if !lines.is_empty() {
        return lines;
    }
    if others.is_empty() {
        return "saturation unavailable: CPU time and block I/O not recorded\n".to_owned();
    }
    others.truncate(NAMED);
    format!("no resource saturated ({} used)\n", others.join(", "))
}

/// A row of the table of resources.
struct Resource<'t> {
    table: &'t AnswerTable,
    row: &'t [Value],
}

impl Resource<'_> {
    fn value(&self, column: &str) -> Option<&Value> {
        let columns = &self.table.columns;
        let at = columns.iter().position(|one| one.name == column)?;
        self.row.get(at)
    }

    fn text(&self, column: &str) -> String {
        match self.value(column) {
            Some(Value::Text(text)) => whyslow_model::text::shown(text, false).into_owned(),
            _ => String::new(),
        }
    }

    fn number(&self, column: &str) -> Option<f64> {
        match self.value(column)? {
            Value::Int(number) => Some(*number as f64),
            Value::Float(number) => Some(*number),
            _ => None,
        }
    }
}

/// What to type next.
fn next(path: &Path) -> String {
    let name = quoted(&path.display().to_string());
    format!(
        "recorded in {name}; next:\n  \
         whyslow explain {name} -p PID\n  \
         whyslow io top {name}\n  \
         whyslow serve {name}"
    )
}

#[cfg(test)]
mod tests {
    use whyslow_model::answer::{AnswerColumn, Measure};

    use super::*;

    fn table(rows: &[(&str, f64, Option<f64>, Option<i64>)], outliers: &[usize]) -> AnswerTable {
        let column = AnswerColumn::new;
        let columns = vec![
            column("resource", "", Measure::Text),
            column("util_ratio", "", Measure::Ratio),
            column("waiting", "", Measure::Number),
            column("waiting_what", "", Measure::Text),
            column("errors", "", Measure::Count),
        ];
        let mut table = AnswerTable::new("resources", "resources", columns);
        table.rows = rows
            .iter()
            .map(|(name, used, waiting, errors)| {
                vec![
                    (*name).into(),
                    (*used).into(),
                    (*waiting).into(),
                    "threads".into(),
                    (*errors).into(),
                ]
            })
            .collect();
        table.outliers = outliers.to_vec();
        table
    }

    #[test]
    fn only_saturated_and_failing_resources_are_named() {
        let cpus = ("2 CPUs", 0.984, Some(3.25), None);
        let cpu = ("CPU 0", 0.99, None, None);
        let disk = ("sda", 0.12, Some(0.1), Some(3));
        assert_eq!(
            saturation(&table(&[cpus, cpu, disk], &[0])),
            "saturated: 2 CPUs: 98 % used, 3.2 threads waiting on average\n\
             errors: sda: 3 failed requests\n"
        );
    }

    #[test]
    fn without_saturation_one_line_remains() {
        let rows = [
            ("2 CPUs", 0.45, Some(0.2), None),
            ("CPU 0", 0.5, None, None),
            ("sda", 0.12, Some(0.1), Some(0)),
        ];
        assert_eq!(
            saturation(&table(&rows, &[])),
            "no resource saturated (2 CPUs 45 %, sda 12 % used)\n"
        );
        // Missing data is no good news.
        let nothing = saturation(&table(&[], &[]));
        assert_eq!(
            nothing,
            "saturation unavailable: CPU time and block I/O not recorded\n"
        );
    }

    #[test]
    fn the_steps_are_valid_commands() {
        let words = ["whyslow", "now", "--for", "3s", "-p", "7,8", "-c", "nginx*"];
        let words = words.into_iter().chain(["--slow", "futex>20ms|open>1ms"]);
        let words: Vec<OsString> = words.map(OsString::from).collect();
        let Ok(Command::Now(args)) = read(&words) else {
            panic!("a command");
        };
        let path = Path::new("a b.wsl");
        let Ok(Command::Record(record)) = read(&record_words(&args, path)) else {
            panic!("`record` does not accept its arguments");
        };
        assert_eq!(record.length, Some(3_000_000_000));
        assert_eq!(record.output.as_deref(), Some(path));
        assert!(record.pid.is_empty(), "all processes are recorded");
        let Ok(Command::Explain(explain)) = read(&explain_words(&args, path)) else {
            panic!("`explain` does not accept its arguments");
        };
        assert_eq!(explain.recording.as_deref(), Some("a b.wsl"));
        assert_eq!(
            (explain.pid, explain.comm),
            (vec![7, 8], vec!["nginx*".to_owned()])
        );
        assert_eq!(explain.slow.expect("given").calls, ["futex", "open"]);
        for line in next(Path::new("a b.wsl")).lines().skip(1) {
            let line = line
                .trim()
                .replace("PID", "7")
                .replace("'a b.wsl'", "ab.wsl");
            let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            assert!(read(&words).is_ok(), "{line}");
        }
    }

    #[test]
    fn old_recordings_are_deleted_and_other_files_kept() {
        let folder = tempfile::TempDir::new().expect("a temporary folder");
        for name in [
            "20261127-204043.wsl",
            "20261127-204042.wsl",
            "20261126-204042.wsl",
            "20261126-204042.wsl.spool",
            "mine.wsl",
            "notes.txt",
        ] {
            fs::create_dir(folder.path().join(name)).expect("a temporary folder takes it");
        }
        let names = |paths: Vec<PathBuf>| -> Vec<String> {
            let names = paths.iter().filter_map(|path| path.file_name());
            names
                .map(|name| name.to_string_lossy().into_owned())
                .collect()
        };
        assert!(outdated(folder.path(), 3).is_empty());
        let found = names(outdated(folder.path(), 1));
        assert_eq!(found, ["20261126-204042.wsl", "20261127-204042.wsl"]);
    }
}
