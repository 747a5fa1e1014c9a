//! `sql`: the DuckDB command line on a recording, with views, read-only and sandboxed.
//!
//! The process first restricts itself with Landlock to reading the recording and what programs need
//! to start, then executes `duckdb`. DuckDB gets an in-memory database with views over the files of
//! the recording, may open only these files, and is locked (`.safe_mode`). Neither measure suffices
//! alone: DuckDB can overwrite a file that it may read, if it is configured to use no temporary
//! file, and Landlock does not prevent `.shell`, which would run in the same sandbox. On kernels
//! without Landlock the tables are copied into memory and no file may be opened.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use whyslow_base::args::TalkArgs;
use whyslow_base::failure::Failure;
use whyslow_record::Topic;
use whyslow_render::to_stdout;
use whyslow_sources::confine::{self, Confined};
use whyslow_sources::duckdb::{program, views};
use whyslow_sources::live::{self, Plan, RecorderChoice};
use whyslow_sources::recording::Opened;
use whyslow_store::Recording;

use crate::cli::{SqlArgs, SqlFormat};

pub(super) fn run(args: &SqlArgs, talk: &TalkArgs) -> Result<(), Failure> {
    if args.tables {
        return to_stdout(&views::describe());
    }
    let statement = statement(args)?;
    let opened = match (
        &args.at,
        args.recording.as_deref().and_then(RecorderChoice::of),
    ) {
        (Some(place), _) => Opened::unremembered(place)?,
        (None, Some(choice)) => {
            return live::run(&Plan::of(choice, Topic::DEFAULT), talk, &mut |segment| {
                run_in_child(segment.recording)
            });
        }
        (None, None) => Opened::find(args.recording.as_deref(), talk)?,
    };
    if opened.is_unpacked() {
        return run_in_child(opened.path());
    }
    if let Some(note) = opened
        .note(&opened.calendar(None), None)
        .filter(|_| !talk.quiet)
    {
        whyslow_base::talk::line(&format!("note: {note}"));
    }
    let program = program::find()?;
    // DuckDB does not verify the checksums, and would return damaged data.
    Recording::open(opened.path())?.verify()?;
    let folder = std::path::absolute(opened.path())
        .map_err(|error| Failure::reading(opened.path(), error))?;
    let confined = confine::to_reading(&folder, &program)?;
    let set_up = views::set_up(opened.tables.info(), &folder, confined == Confined::Yes)?;

    let mut command = Command::new(&program);
    command.args(["-no-init", "-bail"]);
    if let Some(form) = form(args) {
        command.arg(form);
    }
    for step in limits(args).iter().chain(&set_up) {
        command.args(["-cmd", step]);
    }
    command.args(["-cmd", ".safe_mode"]);
    if let Some(statement) = statement {
        command.args(["-c", &statement]);
    }
    let error = command.exec();
    Err(Failure::new(format!("cannot run `{}`", program.display())).caused_by(&error))
}

/// Runs the same command on a temporary recording in a child process: a process that sandboxes
/// itself and becomes DuckDB cannot remove the recording afterwards.
fn run_in_child(recording: &Path) -> Result<(), Failure> {
    let mut args: Vec<OsString> = std::env::args_os().skip(1).collect();
    let place = args.iter().position(|arg| arg == "sql").unwrap_or(0);
    let at = ["--at".into(), recording.as_os_str().to_owned()];
    let rest = args.split_off(place + 1);
    args.extend(at.into_iter().chain(rest));
    let status = Command::new("/proc/self/exe").args(args).status();
    let status =
        status.map_err(|error| Failure::new("cannot start another whyslow").caused_by(&error))?;
    if status.success() {
        Ok(())
    } else {
        Err(
            Failure::new("cannot run the query: duckdb reported an error")
                .hint("list the views and their columns: whyslow sql --tables"),
        )
    }
}

fn statement(args: &SqlArgs) -> Result<Option<String>, Failure> {
    match (&args.statement, &args.query_file) {
        (Some(statement), _) => Ok(Some(statement.clone())),
        (None, Some(path)) => std::fs::read_to_string(path)
            .map(Some)
            .map_err(|error| Failure::reading(path, error)),
        (None, None) => Ok(None),
    }
}

fn form(args: &SqlArgs) -> Option<&'static str> {
    let format = match (args.json, args.csv) {
        (true, _) => Some(SqlFormat::Json),
        (_, true) => Some(SqlFormat::Csv),
        _ => args.format,
    };
    format.map(|format| match format {
        SqlFormat::Text => "-box",
        SqlFormat::Json => "-json",
        SqlFormat::Ndjson => "-jsonlines",
        SqlFormat::Csv => "-csv",
        SqlFormat::Md => "-markdown",
        SqlFormat::Html => "-html",
    })
}

/// Resource limits of the query; nothing is spilled to disk.
fn limits(args: &SqlArgs) -> Vec<String> {
    let mut limits = vec![views::limit("memory_limit", &format!("{}B", args.memory))];
    limits.push(views::limit("temp_directory", ""));
    if let Some(threads) = args.threads {
        limits.push(views::limit("threads", &threads.to_string()));
    }
    limits
}
