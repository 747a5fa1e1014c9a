//! `fleet find` and `fleet fetch`: find and download the recording of a result row.

use std::io::Write as _;
use std::path::PathBuf;

use tempfile::NamedTempFile;
use whyslow_analysis::Weight;
use whyslow_base::args::TalkArgs;
use whyslow_base::failure::Failure;
use whyslow_base::talk::line;
use whyslow_base::time::Zone;
use whyslow_fleet::lake::{Found, Lake};
use whyslow_model::answer::{Answer, AnswerColumn, AnswerTable, Form, Measure, Value};
use whyslow_model::text::shown;
use whyslow_render::{Subject, quoted};

use super::failed::failed;
use super::query::lake_of;
use crate::cli::{FleetFetchArgs, FleetFindArgs};

pub(super) fn find(args: &FleetFindArgs, talk: &TalkArgs) -> Result<(), Failure> {
    let (lake, found) = found(args.lake.as_deref(), &args.recording)?;
    let next = next(&lake, &found, &args.recording);
    let mut answer = Answer {
        query: "fleet find".into(),
        tables: vec![facts(&found, &args.recording, next.as_deref())],
        next,
        ..Answer::default()
    };
    if found.commit.whole.is_none() {
        answer
            .caveats
            .push("the recording itself is not in the lake (push it with --whole)".into());
    }
    let subject = Subject {
        name: lake.url().to_owned(),
        ..Subject::default()
    };
    let zone = match (&args.output.tz, args.output.utc) {
        (Some(zone), false) => zone.clone(),
        _ => Zone::utc(),
    };
    whyslow_render::write(answer, &subject, zone, Weight::Count, &args.output, talk)
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
    fact("begin_ns", "start", Measure::Time, commit.begin_ns.into());
    fact("end_ns", "end", Measure::Time, commit.end_ns.into());
    fact(
        "redacted",
        "redacted",
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
        "original path",
        Measure::Text,
        commit.origin.clone().into(),
    );
    let whole = commit.whole.as_ref().map(|whole| whole.bytes as i64);
    fact("whole_bytes", "size", Measure::Bytes, whole.into());
    fact(
        "command",
        "next",
        Measure::Text,
        next.map(str::to_owned).into(),
    );
    table
}

/// The command that explains the recording.
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
    // The remote shell splits it again.
    let is_plain = quoted(path) == path;
    let command = if is_plain { command } else { quoted(&command) };
    Some(format!("ssh {host} {command}"))
}

pub(super) fn fetch(args: &FleetFetchArgs, talk: &TalkArgs) -> Result<(), Failure> {
    let (lake, found) = found(args.lake.as_deref(), &args.recording)?;
    let target = args
        .output
        .clone()
        .unwrap_or_else(|| file_of(&found, &args.recording));
    if !args.force && target.exists() {
        let message = format!(
            "cannot write `{}`: it exists",
            shown(&target.display().to_string(), false)
        );
        return Err(
            Failure::usage(message).hint("replace it with --force, or choose another name with -o")
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
                    "copy it from {origin}, or push it again with --whole"
                )),
                None => failure.hint("push it with --whole"),
            }
        })?;
    file.flush().map_err(unwritten)?;
    file.persist(&target)
        .map_err(|error| unwritten(error.error))?;
    if !talk.quiet {
        let name = target.display().to_string();
        let name = shown(&name, false);
        let mebibytes = bytes as f64 / 1024.0 / 1024.0;
        line(&format!(
            "{name}: {mebibytes:.1} MiB; next: whyslow explain {name}"
        ));
    }
    Ok(())
}

fn found(lake: Option<&str>, recording: &str) -> Result<(Lake, Found), Failure> {
    let lake = Lake::open(&lake_of(lake)?).map_err(failed)?;
    let found = lake.find(recording).map_err(failed)?.ok_or_else(|| {
        let (recording, url) = (shown(recording, false), shown(lake.url(), false));
        Failure::new(format!("recording {recording} is not in {url}"))
            .hint("take the id from the column `recording` of a query result")
    })?;
    Ok((lake, found))
}

fn file_of(found: &Found, recording: &str) -> PathBuf {
    let host = found.commit.host.as_deref().unwrap_or("recording");
    PathBuf::from(format!("{host}-{recording}.wsl.tar.zst"))
}
