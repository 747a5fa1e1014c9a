//! `load diff`: compares requests before and after a change.

use whyslow_analysis::Weight;
use whyslow_analysis::before_after::{CompareOptions, Verdict, compare_requests};
use whyslow_base::args::TalkArgs;
use whyslow_base::failure::Failure;
use whyslow_base::time::{WindowText, Zone};
use whyslow_model::Window;
use whyslow_model::answer::{Answer, AnswerColumn, AnswerTable, Measure};
use whyslow_sources::recording::Opened;
use whyslow_store::Tables;

use super::check;
use crate::cli::LoadDiffArgs;

pub(super) fn run(args: &LoadDiffArgs, talk: &TalkArgs) -> Result<(), Failure> {
    let before = Opened::beside(&args.before, talk)?;
    let after = match &args.after {
        Some(after) => Some(Opened::beside(after, talk)?),
        None => None,
    };
    if after.is_none() && args.versus.is_none() {
        return Err(
            Failure::usage("cannot compare: there is only one recording and one window")
                .hint("name a second recording, or a second window: -w A..B --vs C..D"),
        );
    }
    let later = after.as_ref().unwrap_or(&before);
    let calendar = later.calendar(zone(args));
    let window = |opened: &Opened, text: Option<&WindowText>| {
        opened.window(text, &opened.calendar(zone(args)))
    };
    let text = args.window.text();
    let windows = [
        window(&before, text.as_ref())?,
        window(later, args.versus.as_ref().or(text.as_ref()))?,
    ];
    let comparison = CompareOptions {
        by_endpoint: !args.by.is_empty(),
        slow: args.slow,
        least: args.least,
    };
    let sides = [(&*before.tables, windows[0]), (&*later.tables, windows[1])];
    let mut compared = compare_requests(sides[0], sides[1], comparison)?;
    causes(&mut compared.answer, sides, (before.name(), later.name()))?;
    let outcomes = check::outcomes(sides[1], &args.assertions, comparison.by_endpoint)?;
    if !outcomes.is_empty() {
        let table = whyslow_analysis::before_after::check_table(&outcomes);
        compared.answer.tables.push(table);
    }
    let (verdict, is_worse) = (compared.verdict, args.fail_if_worse);
    whyslow_render::write(
        compared.answer,
        &later.subject(),
        calendar.zone,
        Weight::Count,
        &args.output,
        talk,
    )?;
    if is_worse && matches!(verdict, Verdict::Worse | Verdict::Mixed) {
        return Err(Failure::asserted(format!(
            "requests are {}",
            verdict.words()
        )));
    }
    check::verdict(&outcomes)
}

/// Where requests spend their time, if both recordings show what threads did for requests.
fn causes(
    answer: &mut Answer,
    [before, after]: [(&dyn Tables, Option<Window>); 2],
    names: (&str, &str),
) -> Result<(), Failure> {
    let found = whyslow_explain::requests_versus(before, after, names)?;
    let Some(found) = found else {
        return Ok(());
    };
    let columns = vec![
        AnswerColumn::new("mechanism", "cause", Measure::Text),
        AnswerColumn::new("culprit", "culprit", Measure::Text),
        AnswerColumn::new("before_ns", "before", Measure::Duration),
        AnswerColumn::new("after_ns", "after", Measure::Duration),
        AnswerColumn::new("difference_ns", "difference", Measure::Duration),
    ];
    let title = format!(
        "causes (mean of {} requests before, {} after)",
        found.there, found.here
    );
    let mut table = AnswerTable::new("causes", &title, columns);
    for one in &found.differences {
        table.rows.push(vec![
            one.mechanism.as_str().into(),
            one.culprit.name.as_str().into(),
            one.there_ns.into(),
            one.here_ns.into(),
            (one.here_ns - one.there_ns).into(),
        ]);
    }
    answer.tables.push(table);
    Ok(())
}

fn zone(args: &LoadDiffArgs) -> Option<Zone> {
    if args.output.utc {
        Some(Zone::utc())
    } else {
        args.output.tz.clone()
    }
}
