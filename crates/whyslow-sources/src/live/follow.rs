//! Who records for `@live`: a recorder that runs anyway, or one of our own.

use whyslow_base::args::TalkArgs;
use whyslow_base::failure::Failure;
use whyslow_base::talk;
use whyslow_record::{FollowError, Following, Purpose, Topic};

use super::plan::Plan;
use super::whom::Whom;

/// The recorder to follow, if not a new one is to be begun.
pub(super) fn to_follow(plan: &Plan, talk: &TalkArgs) -> Result<Option<Following>, Failure> {
    let found = match plan.whom {
        Whom::New => return Ok(None),
        Whom::Nonsense => {
            return Err(
                Failure::usage("`@live:` is followed by a process or by `new`")
                    .hint("@live takes a recorder that runs already, or begins a new one"),
            );
        }
        Whom::Process(pid) => Some(whyslow_record::follow(pid).map_err(failure)?),
        Whom::Any => {
            let running = whyslow_record::running();
            running.into_iter().find(|running| has_all(running, plan))
        }
    };
    if let Some(found) = &found {
        tell(found, plan, talk);
    }
    Ok(found)
}

/// Whether answers from it are those that a recorder of our own would give.
fn has_all(running: &Following, plan: &Plan) -> bool {
    let about = running.about();
    // One that answers questions ends with them.
    about.purpose != Purpose::Live && about.is_of_all && about.topics.is_superset(&plan.topics)
}

fn tell(found: &Following, plan: &Plan, talk: &TalkArgs) {
    let about = found.about();
    let missing: Vec<_> = plan
        .topics
        .difference(&about.topics)
        .map(|topic: &Topic| topic.name())
        .collect();
    if !missing.is_empty() {
        talk::line(&format!(
            "note: process {} does not record, or not all of: {}",
            found.pid(),
            missing.join(", ")
        ));
    }
    if !about.is_of_all {
        talk::line(&format!(
            "note: process {} records some processes or calls only",
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
        "following {what} of process {}; @live:new would begin one of its own",
        found.pid()
    ));
}

pub(super) fn failure(error: FollowError) -> Failure {
    let hint = match &error {
        FollowError::Nobody { .. } => {
            "`pgrep -ax whyslow` finds them; \
             @live without a number takes one that has what is needed, or begins a new one"
        }
        FollowError::Spool { .. } => "TMPDIR names another place",
        _ => "@live:new records by itself",
    };
    Failure::new(error.to_string())
        .caused_by_chain(&error)
        .hint(hint)
}
