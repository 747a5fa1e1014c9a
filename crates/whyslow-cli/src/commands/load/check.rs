//! `load check`: assertions on requests, for CI.

use whyslow_analysis::Weight;
use whyslow_analysis::before_after::{Assertion, Outcome, check, check_table};
use whyslow_base::args::TalkArgs;
use whyslow_base::failure::Failure;
use whyslow_base::time::Zone;
use whyslow_model::Window;
use whyslow_model::answer::Answer;
use whyslow_sources::recording::Opened;
use whyslow_store::Tables;

use crate::cli::LoadCheckArgs;

pub(super) fn run(args: &LoadCheckArgs, talk: &TalkArgs) -> Result<(), Failure> {
    let opened = Opened::find(args.recording.as_deref(), talk)?;
    let zone = if args.output.utc {
        Some(Zone::utc())
    } else {
        args.output.tz.clone()
    };
    let calendar = opened.calendar(zone);
    let window = opened.window(args.window.text().as_ref(), &calendar)?;
    let source = (&*opened.tables, window);
    let outcomes = outcomes(source, &args.assertions, !args.by.is_empty())?;
    let answer = Answer {
        query: "load check".into(),
        tables: vec![check_table(&outcomes)],
        ..Answer::default()
    };
    whyslow_render::write(
        answer,
        &opened.subject(),
        calendar.zone,
        Weight::Count,
        &args.output,
        talk,
    )?;
    verdict(&outcomes)
}

pub(super) fn outcomes(
    (tables, window): (&dyn Tables, Option<Window>),
    assertions: &[Assertion],
    by_endpoint: bool,
) -> Result<Vec<Outcome>, Failure> {
    if assertions.is_empty() {
        return Ok(Vec::new());
    }
    Ok(check(tables, window, assertions, by_endpoint)?)
}

/// Fails if one of them does not hold or cannot be evaluated.
pub(super) fn verdict(outcomes: &[Outcome]) -> Result<(), Failure> {
    let broken = outcomes.iter().filter(|one| !one.holds);
    let broken: Vec<String> = broken
        .map(|one| format!("{} ({})", one.assertion, one.endpoint))
        .collect();
    if broken.is_empty() {
        return Ok(());
    }
    Err(Failure::asserted(format!(
        "assertion failed: {}",
        broken.join(", ")
    )))
}
