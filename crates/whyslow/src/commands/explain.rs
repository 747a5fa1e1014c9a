use whyslow_explain::{Question, explain};

use crate::cli::{ExplainArgs, TalkArgs};
use crate::failure::Failure;
use crate::output;
use crate::recording::Opened;
use crate::time::{WindowText, Zone};

pub(super) fn run(args: &ExplainArgs, talk: &TalkArgs) -> Result<(), Failure> {
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
