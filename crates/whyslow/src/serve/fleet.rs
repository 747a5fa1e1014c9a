//! `fleet`: questions of a lake, asked by a process that may.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::Response;
use serde_json::{Value, json};
use whyslow_analysis::Weight;
use whyslow_base::args::OutputArgs;
use whyslow_base::failure::Failure;
use whyslow_base::time::Zone;
use whyslow_render::{Subject, quoted};
use whyslow_sources::lake::{Keeper, Parameter, QUESTIONS, Unanswered, answer};

use super::Shared;
use super::form;
use super::limited::Stop;
use super::questions::Bounded;
use super::reply::{self, Refusal};
use super::words::Query;
use crate::cli::{Cli, Command, FleetAsk, FleetCommand};
use crate::commands::lake_request::request_of;

/// Bytes of an answer.
const BYTES_MAX: usize = 64 << 20;
/// Keys that every question takes.
const COMMON: [&str; 3] = ["hosts", "cluster", "window"];

/// A lake, if the server has one.
#[derive(Debug)]
pub(super) struct Fleet {
    lake: Option<String>,
    keeper: Mutex<Option<Keeper>>,
    time: Duration,
}

impl Fleet {
    /// Starts what asks, while it still may have what the server gives up.
    pub(super) fn start(lake: Option<&str>, engine: &str, time: Duration) -> Result<Self, Failure> {
        let keeper = lake.map(|lake| Keeper::start(lake, engine)).transpose()?;
        Ok(Self {
            lake: lake.map(str::to_owned),
            keeper: Mutex::new(keeper),
            time,
        })
    }

    /// Of whoever asks recordings only.
    pub(super) fn none() -> Self {
        Self {
            lake: None,
            keeper: Mutex::new(None),
            time: Duration::ZERO,
        }
    }

    fn about(&self) -> Value {
        let parameter = |one: &Parameter| json!({"name": one.name, "default": one.default, "about": one.about, "flag": one.is_flag()});
        let questions = QUESTIONS.iter().map(|question| {
            let parameters: Vec<Value> = question.parameters.iter().map(parameter).collect();
            json!({"name": question.name, "about": question.about, "more": question.more, "parameters": parameters})
        });
        json!({"lake": self.lake, "questions": questions.collect::<Vec<Value>>()})
    }
}

pub(super) async fn fleet(
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
    let asked = asked(&question, &query)?;
    let said = asked
        .words
        .iter()
        .map(String::as_str)
        .chain(["--lake", &lake]);
    let command = said.map(quoted).collect::<Vec<_>>().join(" ");
    let (shown, server) = (command.clone(), shared.clone());
    let written = shared.slow.ask(move |_| {
        let window = asked.ask.window(&Zone::utc())?;
        let request = request_of(&asked.ask, lake.clone(), window);
        let mut keeper = server
            .fleet
            .keeper
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let keeper = keeper
            .as_mut()
            .ok_or_else(|| Refusal::wrong("this server has no lake"))?;
        let stream = keeper.ask(request, server.fleet.time).map_err(unanswered)?;
        let mut found = answer(&stream)?;
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
            ..asked.ask.args.output.clone()
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

struct Asked {
    words: Vec<String>,
    ask: FleetAsk,
}

/// The words of the command line, read by its definitions.
fn asked(name: &str, query: &Query) -> Result<Asked, Refusal> {
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
    match Cli::read(&os)
        .map_err(super::questions::wrong_words)?
        .command
    {
        Command::Fleet(command) => match *command {
            FleetCommand::Ask(ask) => Ok(Asked { words, ask: *ask }),
            _ => Err(Refusal::wrong("that is no question")),
        },
        _ => Err(Refusal::wrong("that is no question")),
    }
}
