//! `fleet find` and `fleet fetch`: from a row of an answer to the recording it is of.

use std::io::Write as _;
use std::path::PathBuf;

use tempfile::NamedTempFile;
use whyslow_analysis::Weight;
use whyslow_base::args::TalkArgs;
use whyslow_base::failure::Failure;
use whyslow_base::talk;
use whyslow_base::time::Zone;
use whyslow_fleet::lake::{Found, Lake};
use whyslow_model::answer::{Answer, AnswerColumn, AnswerTable, Form, Measure, Value};
use whyslow_model::text::shown;
use whyslow_render::{Subject, quoted};

use super::ask::lake_of;
use super::failed::failed;
use crate::cli::{FleetFetchArgs, FleetFindArgs};

pub(super) fn find(args: &FleetFindArgs, told: &TalkArgs) -> Result<(), Failure> {
    let (lake, found) = found(args.lake.as_deref(), &args.recording)?;
    let next = next(&lake, &found, &args.recording);
    let mut answer = Answer {
        question: "fleet find".into(),
        tables: vec![facts(&found, &args.recording, next.as_deref())],
        next,
        ..Answer::default()
    };
    if found.commit.whole.is_none() {
        answer
            .caveats
            .push("the recording itself is not in the lake: push it with --whole".into());
    }
    let subject = Subject {
        name: lake.url().to_owned(),
        ..Subject::default()
    };
    let zone = match (&args.output.tz, args.output.utc) {
        (Some(zone), false) => zone.clone(),
        _ => Zone::utc(),
    };
    whyslow_render::write(answer, &subject, zone, Weight::Count, &args.output, told)
}

fn facts(found: &Found, recording: &str, next: Option<&str>) -> AnswerTable {
    let commit = &found.commit;
    let mut table = AnswerTable::new("recording", "recording", Vec::new());
    table.form = Form::Facts;
    let mut fact = |name: &str, title: &str, measure: Measure, value: Value| {
        if value != Value::Null {
            let column = AnswerColumn::new(name, title, measure);
            table.facts.push((name.to_owned(), column, value));
        }
    };
    fact("recording", "recording", Measure::Id, recording.into());
    fact("host", "host", Measure::Text, commit.host.clone().into());
    fact(
        "cluster",
        "cluster",
        Measure::Text,
        commit.cluster.as_str().into(),
    );
    fact("begin_ns", "begin", Measure::Time, commit.begin_ns.into());
    fact("end_ns", "end", Measure::Time, commit.end_ns.into());
    fact(
        "redacted",
        "hidden",
        Measure::Text,
        commit.redacted.clone().into(),
    );
    fact(
        "digest",
        "digest",
        Measure::Text,
        commit.digest.clone().into(),
    );
    fact(
        "origin",
        "was at",
        Measure::Text,
        commit.origin.clone().into(),
    );
    let whole = commit.whole.as_ref().map(|whole| whole.bytes as i64);
    fact("whole_bytes", "whole", Measure::Bytes, whole.into());
    fact(
        "command",
        "ask it",
        Measure::Text,
        next.map(str::to_owned).into(),
    );
    table
}

/// The command that asks it.
fn next(lake: &Lake, found: &Found, recording: &str) -> Option<String> {
    let commit = &found.commit;
    if commit.whole.is_some() {
        let file = file_of(found, recording).display().to_string();
        let (lake, file) = (quoted(lake.url()), quoted(&file));
        return Some(format!(
            "whyslow fleet fetch {recording} --lake {lake} && whyslow explain {file}"
        ));
    }
    let (host, path) = commit.origin.as_deref()?.split_once(':')?;
    let (host, command) = (quoted(host), format!("whyslow explain {}", quoted(path)));
    // The shell over there takes it apart once more.
    let is_plain = quoted(path) == path;
    let command = if is_plain { command } else { quoted(&command) };
    Some(format!("ssh {host} {command}"))
}

pub(super) fn fetch(args: &FleetFetchArgs, told: &TalkArgs) -> Result<(), Failure> {
    let (lake, found) = found(args.lake.as_deref(), &args.recording)?;
    let target = args
        .output
        .clone()
        .unwrap_or_else(|| file_of(&found, &args.recording));
    if !args.force && target.exists() {
        let message = format!("`{}` exists", shown(&target.display().to_string(), false));
        return Err(
            Failure::usage(message).hint("name another one with -o, or replace it with --force")
        );
    }
    let folder = target
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    let unwritten = |error: std::io::Error| Failure::writing(&target, error);
    let mut file =
        NamedTempFile::new_in(folder.unwrap_or(std::path::Path::new("."))).map_err(unwritten)?;
    let bytes = lake
        .fetch(&found, &mut file)
        .map_err(failed)?
        .ok_or_else(|| {
            let failure = Failure::new("the recording itself is not in the lake");
            match &found.commit.origin {
                Some(origin) => failure.hint(format!(
                    "it was at {origin} when it was pushed; --whole sends all of it"
                )),
                None => failure.hint("push it with --whole"),
            }
        })?;
    file.flush().map_err(unwritten)?;
    file.persist(&target)
        .map_err(|error| unwritten(error.error))?;
    if !told.quiet {
        let name = target.display().to_string();
        let name = shown(&name, false);
        let mebibytes = bytes as f64 / 1024.0 / 1024.0;
        talk::line(&format!(
            "{name}: {mebibytes:.1} MiB; ask it: whyslow explain {name}"
        ));
    }
    Ok(())
}

fn found(lake: Option<&str>, recording: &str) -> Result<(Lake, Found), Failure> {
    let lake = Lake::open(&lake_of(lake)?).map_err(failed)?;
    let found = lake.find(recording).map_err(failed)?.ok_or_else(|| {
        let (recording, url) = (shown(recording, false), shown(lake.url(), false));
        Failure::new(format!("recording {recording} is not in {url}"))
            .hint("answers have ids in the column `recording`")
    })?;
    Ok((lake, found))
}

fn file_of(found: &Found, recording: &str) -> PathBuf {
    let host = found.commit.host.as_deref().unwrap_or("recording");
    PathBuf::from(format!("{host}-{recording}.wsl.tar.zst"))
}
