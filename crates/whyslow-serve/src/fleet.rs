//! `fleet`: queries of a lake, run by an unconfined process.

use std::sync::PoisonError;

use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::Response;
use serde_json::json;
use whyslow_analysis::Weight;
use whyslow_base::args::OutputArgs;
use whyslow_base::time::Zone;
use whyslow_render::{Subject, quoted};
use whyslow_sources::lake::{QUERIES, QueryFailure};

use crate::command_line::{CommandLine, ParsedLakeQuery};
use crate::form;
use crate::limited::Stop;
use crate::queries::Bounded;
use crate::query::Query;
use crate::reply::{self, Refusal};
use crate::server::Shared;

/// Maximum size of an answer.
const BYTES_MAX: usize = 64 << 20;
/// Keys that all queries accept.
const COMMON: [&str; 3] = ["hosts", "cluster", "window"];

pub(crate) async fn fleet(
    State(shared): State<Shared>,
    request: Request,
) -> Result<Response, Refusal> {
    let query = Query::of(request.uri())?;
    let Some(name) = query.get("query").map(str::to_owned) else {
        query.only(&[])?;
        return reply::json_document(&shared.fleet.about());
    };
    let Some(lake) = shared.fleet.lake.clone() else {
        let refusal = Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "no lake configured");
        return Err(refusal.hint("restart the server with --lake s3://traces/lake"));
    };
    let format = form::of(request.headers(), &query)?;
    let lake_query = parse_query(&*shared.command_line, &name, &query)?;
    let words = lake_query
        .words
        .iter()
        .map(String::as_str)
        .chain(["--lake", &lake]);
    let command = words.map(quoted).collect::<Vec<_>>().join(" ");
    let (shown, server) = (command.clone(), shared.clone());
    let written = shared.slow.run(move |_| {
        let window = lake_query.query.window(&Zone::utc())?;
        let request = lake_query.query.request(lake.clone(), window);
        let mut worker = server
            .fleet
            .worker
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let worker = worker
            .as_mut()
            .ok_or_else(|| Refusal::wrong("no lake configured"))?;
        let stream = worker
            .query(request, server.fleet.time)
            .map_err(refusal_of)?;
        let mut found = lake_query.query.answer(&stream)?;
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
            ..lake_query.query.output().clone()
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

fn refusal_of(why: QueryFailure) -> Refusal {
    match why {
        QueryFailure::TooLong => Refusal::stopped(Stop::Time),
        QueryFailure::Failed(failure) => failure.into(),
    }
}

struct LakeQuery {
    words: Vec<String>,
    query: Box<dyn ParsedLakeQuery>,
}

/// The words of the command line, parsed with its definitions.
fn parse_query(
    command_line: &dyn CommandLine,
    name: &str,
    query: &Query,
) -> Result<LakeQuery, Refusal> {
    let described = QUERIES
        .iter()
        .find(|described| described.name == name)
        .ok_or_else(|| {
            let error = format!("unknown fleet query `{name}`");
            Refusal::new(StatusCode::NOT_FOUND, error)
                .hint("request `fleet` without a query to list all")
        })?;
    let names = described.parameters.iter().map(|one| one.name.as_str());
    let mut known: Vec<&str> = COMMON.iter().copied().chain(names).collect();
    known.extend(["query", "format"]);
    query.only(&known)?;
    let mut words = vec!["whyslow".to_owned(), "fleet".to_owned(), name.to_owned()];
    for key in COMMON {
        if let Some(value) = query.get(key) {
            words.push(format!("--{key}={value}"));
        }
    }
    for parameter in &described.parameters {
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
    let query = command_line
        .lake_query(&os)
        .map_err(crate::queries::wrong_words)?
        .ok_or_else(|| Refusal::wrong("invalid query"))?;
    Ok(LakeQuery { words, query })
}
