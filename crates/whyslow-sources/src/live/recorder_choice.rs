//! The recorder for `@live`, as specified.

/// This machine as the source, …
const LIVE: &str = "@live";
/// … with a new recorder.
const NEW: &str = "new";

/// The specified recorder.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum RecorderChoice {
    /// A suitable running recorder, or a new one.
    #[default]
    Any,
    /// A new recorder: `@live:new`.
    New,
    /// The recorder with this PID.
    Process(i32),
    /// An invalid word after the colon.
    Nonsense,
}

impl RecorderChoice {
    /// `@live`, `@live:new`, `@live:PID`; `None` if the word names a recording.
    pub fn of(word: &str) -> Option<Self> {
        let rest = word.strip_prefix(LIVE)?;
        if rest.is_empty() {
            return Some(Self::Any);
        }
        Some(match rest.strip_prefix(':')? {
            NEW => Self::New,
            pid => pid.parse().map_or(Self::Nonsense, Self::Process),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_live_is_told_from_names_of_recordings() {
        assert_eq!(RecorderChoice::of("@live"), Some(RecorderChoice::Any));
        assert_eq!(RecorderChoice::of("@live:new"), Some(RecorderChoice::New));
        assert_eq!(
            RecorderChoice::of("@live:77"),
            Some(RecorderChoice::Process(77))
        );
        for word in ["@live:", "@live:x", "@live:7 7"] {
            assert_eq!(
                RecorderChoice::of(word),
                Some(RecorderChoice::Nonsense),
                "{word}"
            );
        }
        for word in ["", "live", "@lives", "@last", "web.wsl", "@live.wsl"] {
            assert_eq!(RecorderChoice::of(word), None, "{word}");
        }
    }
}
