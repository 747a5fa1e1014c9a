//! Who records for `@live`: a recorder that runs anyway, or one of our own.

use whyslow_base::args::TalkArgs;
use whyslow_base::failure::Failure;
use whyslow_base::talk;
use whyslow_record::{FollowError, Following, Purpose, Topic};

use super::Plan;

/// What stands for this machine now, …
const LIVE: &str = "@live";
/// … when it is to be recorded for this alone.
const NEW: &str = "new";

/// As it was named.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Whom {
    /// A recorder that has all that is needed, or a new one.
    #[default]
    Any,
    New,
    /// The recorder that is this process.
    Process(i32),
    /// Something after the colon that means nothing.
    Nonsense,
}

impl Whom {
    /// `@live`, `@live:new`, `@live:PID`; nothing if the word names a recording.
    pub(crate) fn of(word: &str) -> Option<Self> {
        let rest = word.strip_prefix(LIVE)?;
        if rest.is_empty() {
            return Some(Self::Any);
        }
        Some(match rest.strip_prefix(':')? {
            NEW => Self::New,
            pid => pid.parse().map_or(Self::Nonsense, Self::Process),
        })
    }

    /// The recorder to follow, if not a new one is to be begun.
    pub(super) fn find(self, plan: &Plan, talk: &TalkArgs) -> Result<Option<Following>, Failure> {
        let found = match self {
            Self::New => return Ok(None),
            Self::Nonsense => {
                return Err(
                    Failure::usage("`@live:` is followed by a process or by `new`")
                        .hint("@live takes a recorder that runs already, or begins a new one"),
                );
            }
            Self::Process(pid) => Some(whyslow_record::follow(pid).map_err(failure)?),
            Self::Any => {
                let running = whyslow_record::running();
                running.into_iter().find(|running| has_all(running, plan))
            }
        };
        if let Some(found) = &found {
            tell(found, plan, talk);
        }
        Ok(found)
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_live_is_told_from_names_of_recordings() {
        assert_eq!(Whom::of("@live"), Some(Whom::Any));
        assert_eq!(Whom::of("@live:new"), Some(Whom::New));
        assert_eq!(Whom::of("@live:77"), Some(Whom::Process(77)));
        for word in ["@live:", "@live:x", "@live:7 7"] {
            assert_eq!(Whom::of(word), Some(Whom::Nonsense), "{word}");
        }
        for word in ["", "live", "@lives", "@last", "web.wsl", "@live.wsl"] {
            assert_eq!(Whom::of(word), None, "{word}");
        }
    }
}
