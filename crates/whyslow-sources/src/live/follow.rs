//! Selects the recorder for `@live`: a running recorder, or our own.

use whyslow_base::args::TalkArgs;
use whyslow_base::failure::Failure;
use whyslow_base::talk;
use whyslow_record::{FollowError, Following, Purpose, Topic};

use super::plan::Plan;
use super::recorder_choice::RecorderChoice;

/// The recorder to follow; `None` to start a new one.
pub(super) fn to_follow(plan: &Plan, talk: &TalkArgs) -> Result<Option<Following>, Failure> {
    let found = match plan.choice {
        RecorderChoice::New => return Ok(None),
        RecorderChoice::Nonsense => {
            return Err(Failure::usage(
                "cannot parse the source: `@live:` requires a PID or `new`",
            )
            .hint("use @live to follow a running recorder or start a new one"));
        }
        RecorderChoice::Process(pid) => Some(whyslow_record::follow(pid).map_err(failure)?),
        RecorderChoice::Any => {
            let running = whyslow_record::running();
            running.into_iter().find(|running| has_all(running, plan))
        }
    };
    if let Some(found) = &found {
        print_source(found, plan, talk);
    }
    Ok(found)
}

/// Whether its answers would equal those of our own recorder.
fn has_all(running: &Following, plan: &Plan) -> bool {
    let about = running.about();
    // A recorder that runs for another @live query ends with that query.
    about.purpose != Purpose::Live && about.is_of_all && about.topics.is_superset(&plan.topics)
}

fn print_source(found: &Following, plan: &Plan, talk: &TalkArgs) {
    let about = found.about();
    let missing: Vec<_> = plan
        .topics
        .difference(&about.topics)
        .map(|topic: &Topic| topic.name())
        .collect();
    if !missing.is_empty() {
        talk::line(&format!(
            "note: process {} does not record: {}",
            found.pid(),
            missing.join(", ")
        ));
    }
    if !about.is_of_all {
        talk::line(&format!(
            "note: process {} records only some processes or calls",
            found.pid()
        ));
    }
    if talk.quiet {
        return;
    }
    let what = match about.purpose {
        Purpose::Record => "the recorder",
        Purpose::Flight => "the flight recorder",
        Purpose::Live => "another @live",
    };
    talk::line(&format!(
        "following {what} of process {}; use @live:new to start a new recorder",
        found.pid()
    ));
}

pub(super) fn failure(error: FollowError) -> Failure {
    let hint = match &error {
        FollowError::NotFound { .. } => {
            "use @live to follow a suitable recorder or start a new one"
        }
        FollowError::Spool { .. } => "set TMPDIR to another directory",
        _ => "use @live:new to start a new recorder",
    };
    Failure::new(error.to_string())
        .caused_by_chain(&error)
        .hint(hint)
}
