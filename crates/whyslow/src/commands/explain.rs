use std::fmt::Write as _;

use whyslow_explain::{MECHANISMS_TOLD, Question, explain, why};
use whyslow_model::mechanism::MECHANISMS;

use crate::cli::{ExplainArgs, TalkArgs};
use crate::failure::Failure;
use crate::output;
use crate::recording::Opened;
use crate::time::{WindowText, Zone};

pub(super) fn run(args: &ExplainArgs, talk: &TalkArgs) -> Result<(), Failure> {
    if let Some(mechanism) = &args.why {
        return told(mechanism);
    }
    let opened = Opened::find(args.recording.as_deref(), talk)?;
    let wanted = if args.output.utc {
        Some(Zone::utc())
    } else {
        args.output.tz.clone()
    };
    let calendar = opened.calendar(wanted);
    let mut question = Question {
        recording: opened.subject().name,
        tids: args.tid.clone(),
        pids: args.pid.clone(),
        limit: args.limit,
        devices: args.dev.clone(),
        ..Question::default()
    };
    if let Some(slow) = &args.slow {
        question.calls.clone_from(&slow.calls);
        question.min = Some(slow.min);
    }
    match args.window.text() {
        Some(WindowText::Operation(operation)) => {
            question.operation = Some((operation.table.to_owned(), operation.id));
        }
        Some(text) => {
            let window = text.resolve(&calendar, |operation| opened.window_of(operation))?;
            question.window = Some(window);
        }
        None => {}
    }
    let report = explain(&*opened.tables, &question)?;
    output::stories::write(&report, &opened.subject(), &calendar, &args.output, talk)
}

/// What is known of a mechanism in general.
fn told(id: &str) -> Result<(), Failure> {
    let short = |id: &str| {
        MECHANISMS
            .iter()
            .find(|(of, _)| *of == id)
            .map_or("", |(_, meaning)| meaning)
    };
    let mut text = String::new();
    if id == "list" {
        for mechanism in MECHANISMS_TOLD {
            let _ = writeln!(text, "{:<20} {}", mechanism.id, short(mechanism.id));
        }
        return output::to_stdout(&text);
    }
    let Some(mechanism) = why(id) else {
        return Err(Failure::usage(format!("there is no mechanism `{id}`"))
            .hint("`whyslow explain --why list` names all"));
    };
    let _ = writeln!(text, "{}: {}\n", mechanism.id, short(id));
    let _ = writeln!(text, "{}\n", mechanism.what);
    let _ = writeln!(text, "How it is recognised: {}", mechanism.recognised);
    for advice in mechanism.advice {
        let _ = writeln!(text, "Try: {advice}");
    }
    let _ = writeln!(text, "See: {}", mechanism.reference);
    output::to_stdout(&text)
}
