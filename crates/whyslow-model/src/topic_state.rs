//! Whether a recording can have events of a kind, and whether it has any.

/// State of a kind in a recording, or in a window of it. Without events there are three different
/// answers: they would have been recorded, they would not, or the source does not state it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TopicState {
    /// Such events were not recorded.
    NotRecorded {
        /// As a caveat: `lock contention unavailable: lock waits not recorded`.
        why: String,
        /// What to add to the recording: `--what +locks`; `None` if no option records it.
        record_with: Option<String>,
    },
    /// The source does not state whether such events were recorded. Shown like `NotRecorded`.
    Unknown {
        /// As a caveat: `cannot tell whether lock waits were recorded: …`.
        why: String,
        /// What records them for certain; `None` if no option does.
        record_with: Option<String>,
    },
    /// Such events were recorded, but none happened.
    NoneHappened {
        /// As a caveat: `no lock waits: none happened`.
        why: String,
    },
    /// Number of events.
    Recorded(u64),
}

impl TopicState {
    /// Stable name in machine-readable formats.
    pub fn name(&self) -> &'static str {
        match self {
            Self::NotRecorded { .. } => "not_recorded",
            Self::Unknown { .. } => "unknown",
            Self::NoneHappened { .. } => "none_happened",
            Self::Recorded(_) => "recorded",
        }
    }

    /// For people: `not recorded`, `cannot tell`, `none happened`, `recorded`.
    pub fn title(&self) -> &'static str {
        match self {
            Self::NotRecorded { .. } => "not recorded",
            Self::Unknown { .. } => "cannot tell",
            Self::NoneHappened { .. } => "none happened",
            Self::Recorded(_) => "recorded",
        }
    }

    /// Why there are no events; `None` if there are some.
    pub fn reason(&self) -> Option<&str> {
        match self {
            Self::NotRecorded { why, .. }
            | Self::Unknown { why, .. }
            | Self::NoneHappened { why } => Some(why),
            Self::Recorded(_) => None,
        }
    }

    /// What records such events.
    pub fn record_with(&self) -> Option<&str> {
        match self {
            Self::NotRecorded { record_with, .. } | Self::Unknown { record_with, .. } => {
                record_with.as_deref()
            }
            Self::NoneHappened { .. } | Self::Recorded(_) => None,
        }
    }

    /// Number of events; `None` if it is not known to be a number.
    pub fn count(&self) -> Option<u64> {
        match self {
            Self::NotRecorded { .. } | Self::Unknown { .. } => None,
            Self::NoneHappened { .. } => Some(0),
            Self::Recorded(count) => Some(*count),
        }
    }

    /// Whether such events would be in the recording.
    pub fn is_recorded(&self) -> bool {
        matches!(self, Self::NoneHappened { .. } | Self::Recorded(_))
    }

    /// The caveat of an answer without rows; `None` if there are events.
    pub fn caveat(&self) -> Option<String> {
        let why = self.reason()?;
        Some(match self.record_with() {
            Some(with) if with.starts_with("--") => format!("{why} (add `{with}`)"),
            Some(with) => format!("{why} ({with})"),
            None => why.to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_missing_events_have_a_caveat() {
        let none = TopicState::NoneHappened {
            why: "no lock waits: none happened".into(),
        };
        assert_eq!(none.caveat().as_deref(), none.reason());
        assert_eq!((none.count(), none.record_with()), (Some(0), None));
        let some = TopicState::Recorded(7);
        assert_eq!((some.caveat(), some.count()), (None, Some(7)));
        let absent = |record_with: Option<&str>| TopicState::NotRecorded {
            why: "lock contention unavailable: lock waits not recorded".into(),
            record_with: record_with.map(str::to_owned),
        };
        let said = "lock contention unavailable: lock waits not recorded";
        assert_eq!(absent(None).caveat().as_deref(), Some(said));
        assert_eq!(
            absent(Some("--what +locks")).caveat(),
            Some(format!("{said} (add `--what +locks`)"))
        );
        assert_eq!(
            absent(Some("import a JFR file")).caveat(),
            Some(format!("{said} (import a JFR file)"))
        );
        assert_eq!(absent(None).count(), None);
    }
}
