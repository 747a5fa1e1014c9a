//! What made a flight recorder save, and what was slow near the markers of users: the first lines of
//! an explanation.

use whyslow_explain::Report;
use whyslow_model::Ns;

/// One line each, without a newline; `at` shows a time.
pub(crate) fn lines(report: &Report, at: &dyn Fn(Ns) -> String) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(trigger) = &report.trigger {
        let when = trigger
            .ts_ns
            .map_or_else(String::new, |ts| format!(" at {}", at(ts)));
        lines.push(match &trigger.condition {
            Some(condition) => format!("trigger: {condition}{when}: {}", trigger.what),
            None => format!("saved on demand{when}"),
        });
    }
    let notes = report.marks.iter();
    lines.extend(notes.map(|note| {
        let (text, when) = (&note.text, at(note.ts_ns));
        format!("marker `{text}` at {when}: {}", note.summary)
    }));
    lines
}

#[cfg(test)]
mod tests {
    use whyslow_explain::{MarkNote, SCHEMA, Trigger};

    use super::*;

    fn report(condition: Option<&str>, ts_ns: Option<Ns>) -> Report {
        Report {
            schema: SCHEMA,
            recording: "web.wsl".into(),
            begin_ns: 0,
            end_ns: 9,
            trigger: Some(Trigger {
                condition: condition.map(str::to_owned),
                kind: None,
                what: "openat by php 7/8 took 1.50 s".into(),
                ts_ns,
                dur_ns: None,
                pid: None,
                tid: None,
                id: None,
                missing: None,
            }),
            marks: vec![MarkNote {
                ts_ns: 5,
                text: "deployed".into(),
                id: None,
                summary: "no slow request".into(),
            }],
            ..Report::default()
        }
    }

    #[test]
    fn the_trigger_comes_first_then_the_markers() {
        let at = |ts: Ns| format!("12:00:0{ts}");
        assert_eq!(
            lines(&report(Some("open>1s"), Some(3)), &at),
            [
                "trigger: open>1s at 12:00:03: openat by php 7/8 took 1.50 s",
                "marker `deployed` at 12:00:05: no slow request"
            ]
        );
        let requested = lines(&report(None, Some(3)), &at);
        assert_eq!(requested[0], "saved on demand at 12:00:03");
        let old = lines(&report(Some("open>1s"), None), &at);
        assert_eq!(old[0], "trigger: open>1s: openat by php 7/8 took 1.50 s");
    }
}
