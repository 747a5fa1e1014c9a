//! `fleet`: questions of a lake, asked by a process that may.

use std::sync::PoisonError;

use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::Response;
use serde_json::json;
use whyslow_analysis::Weight;
use whyslow_base::args::OutputArgs;
use whyslow_base::time::Zone;
use whyslow_render::{Subject, quoted};
use whyslow_sources::lake::{QUESTIONS, Unanswered};

use crate::command_line::{CommandLine, LakeQuestion};
use crate::form;
use crate::limited::Stop;
use crate::query::Query;
use crate::questions::Bounded;
use crate::reply::{self, Refusal};
use crate::server::Shared;

/// Bytes of an answer.
const BYTES_MAX: usize = 64 << 20;
/// Keys that every question takes.
const COMMON: [&str; 3] = ["hosts", "cluster", "window"];

pub(crate) async fn fleet(
    State(shared): State<Shared>,
    request: Request,
) -> Result<Response, Refusal> {
    let query = Query::of(request.uri())?;
    let Some(question) = query.get("question").map(str::to_owned) else {
        query.only(&[])?;
        return reply::json_document(&shared.fleet.about());
    };
    let Some(lake) = shared.fleet.lake.clone() else {
        let refusal = Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "this server has no lake");
        return Err(refusal.hint("start it with --lake s3://traces/lake"));
    };
    let format = form::of(request.headers(), &query)?;
    let asked = asked(&*shared.command_line, &question, &query)?;
    let said = asked
        .words
        .iter()
        .map(String::as_str)
        .chain(["--lake", &lake]);
    let command = said.map(quoted).collect::<Vec<_>>().join(" ");
    let (shown, server) = (command.clone(), shared.clone());
    let written = shared.slow.ask(move |_| {
        let window = asked.question.window(&Zone::utc())?;
        let request = asked.question.request(lake.clone(), window);
        let mut keeper = server
            .fleet
            .keeper
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let keeper = keeper
            .as_mut()
            .ok_or_else(|| Refusal::wrong("this server has no lake"))?;
        let stream = keeper.ask(request, server.fleet.time).map_err(unanswered)?;
        let mut found = asked.question.answer(&stream)?;
        found.window = window;
        let mut subject = Subject {
            name: lake,
            ..Subject::default()
        };
        subject.more.insert("cli".into(), json!(shown));
        let args = OutputArgs {
            format,
            json: false,
            csv: false,
            ..asked.question.output().clone()
        };
        let mut out = Bounded::new(BYTES_MAX);
        whyslow_render::write_into(
            &mut found,
            &subject,
            (Zone::utc(), Weight::Count),
            &args,
            &mut out,
        )?;
        Ok(out.bytes)
    });
    Ok(reply::with_command(
        form::media_type(format),
        &command,
        written.await?,
    ))
}

fn unanswered(why: Unanswered) -> Refusal {
    match why {
        Unanswered::TooLong => Refusal::stopped(Stop::Time),
        Unanswered::Failed(failure) => failure.into(),
    }
}

struct LakeQuery {
    words: Vec<String>,
    question: Box<dyn LakeQuestion>,
}

/// The words of the command line, read by its definitions.
fn asked(command_line: &dyn CommandLine, name: &str, query: &Query) -> Result<LakeQuery, Refusal> {
    let question = QUESTIONS
        .iter()
        .find(|question| question.name == name)
        .ok_or_else(|| {
            let error = format!("there is no question `{name}` of a fleet");
            Refusal::new(StatusCode::NOT_FOUND, error).hint("`fleet` without a question lists all")
        })?;
    let names = question.parameters.iter().map(|one| one.name.as_str());
    let mut known: Vec<&str> = COMMON.iter().copied().chain(names).collect();
    known.extend(["question", "format"]);
    query.only(&known)?;
    let mut words = vec!["whyslow".to_owned(), "fleet".to_owned(), name.to_owned()];
    for key in COMMON {
        if let Some(value) = query.get(key) {
            words.push(format!("--{key}={value}"));
        }
    }
    for parameter in &question.parameters {
        match query.get(&parameter.name) {
            Some("true" | "1" | "") if parameter.is_flag() => {
                words.push(format!("--{}", parameter.flag));
            }
            Some(_) if parameter.is_flag() => {}
            Some(value) => words.push(format!("--{}={value}", parameter.flag)),
            None => {}
        }
    }
    let os: Vec<std::ffi::OsString> = words.iter().map(Into::into).collect();
    let question = command_line
        .lake_question(&os)
        .map_err(crate::questions::wrong_words)?
        .ok_or_else(|| Refusal::wrong("that is no question"))?;
    Ok(LakeQuery { words, question })
}
