//! `export md`: the same findings as text, for tickets and mails.

use whyslow_base::args::TalkArgs;
use whyslow_base::failure::Failure;
use whyslow_serve::Answers;
use whyslow_sources::recording::Opened;

use super::super::snapshot::hidden;
use super::super::target::{Form, window_of, write_to};
use super::contents::with_window;
use super::windows::Span;
use crate::cli::ReportArgs;
use crate::commands::server::Definitions;

const MARKDOWN: &str = "text/markdown";

/// What a colleague asks next, page by page.
const PARTS: &[(&str, &[&str])] = &[
    (
        "Input and output",
        &[
            "table?view=stats&what=io",
            "table?limit=10&view=top&what=io",
            "table?limit=10&view=usage&what=io",
        ],
    ),
    (
        "Block devices",
        &[
            "table?view=stats&what=block",
            "table?limit=10&view=top&what=block",
        ],
    ),
    ("Files", &["table?by=dir&limit=10&view=top&what=files"]),
    (
        "Scheduling",
        &[
            "table?view=stats&what=sched",
            "table?limit=10&view=usage&what=cpu",
        ],
    ),
    ("Threads", &["table?limit=10&view=usage&what=states"]),
    ("Locks", &["table?limit=10&view=usage&what=locks"]),
];

pub(in super::super) fn markdown(args: &ReportArgs, talk: &TalkArgs) -> Result<(), Failure> {
    let hidden = hidden(args.recording.as_deref(), &args.redact, talk)?;
    let recording = super::source(args, hidden.as_ref());
    let opened = Opened::find(recording.as_deref(), talk)?;
    let window = window_of(&args.window, &opened)?;
    let origin = opened.tables.info().begin_ns;
    let span = window.map(|window| Span::of(window.begin, window.end, origin));
    let answers = Answers::without_charts(recording.as_deref(), talk, Definitions::boxed())?;
    let document = written(&answers, span)?;
    write_to(args.output.as_deref(), Form::Text, |out| {
        Ok(out.write_all(document.as_bytes())?)
    })
}

fn written(answers: &Answers, span: Option<Span>) -> Result<String, Failure> {
    let ask = |question: &str| -> Result<Option<String>, Failure> {
        let asked = match span {
            Some(span) => with_window(question, span),
            None => question.to_owned(),
        };
        let bytes = answers.get(&asked, MARKDOWN)?;
        Ok(bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()))
    };
    let mut document = ask("explain")?.unwrap_or_default();
    let mut notes = Vec::new();
    for (title, questions) in PARTS {
        let mut part = String::new();
        for question in *questions {
            if let Some(answer) = ask(question)? {
                take(&answer, &mut part, &mut notes);
            }
        }
        if !part.is_empty() {
            document.extend(["\n## ", title, "\n", &part]);
        }
    }
    notes.sort();
    notes.dedup();
    if !notes.is_empty() {
        document.push_str("\n## Notes\n\n");
        document.extend(notes.iter().flat_map(|note| ["- ", note, "\n"]));
    }
    document.extend([
        "\nMade by whyslow ",
        env!("CARGO_PKG_VERSION"),
        ", from the recording alone.\n",
    ]);
    Ok(document)
}

/// Tables go below the part's own heading; what is said about them is said once, at the end.
fn take(answer: &str, part: &mut String, notes: &mut Vec<String>) {
    let has_table = answer.lines().any(|line| line.starts_with('|'));
    for line in answer.lines() {
        if let Some(note) = line.strip_prefix("note: ") {
            notes.push(note.to_owned());
        } else if has_table && !line.starts_with("### ") {
            // One empty line between blocks, whatever is left out.
            if line.is_empty() && (part.is_empty() || part.ends_with("\n\n")) {
                continue;
            }
            if part.is_empty() {
                part.push('\n');
            }
            part.push_str(line);
            part.push('\n');
        }
    }
    if has_table && !part.ends_with("\n\n") {
        part.push('\n');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_are_gathered_and_headings_left_out() {
        let (mut part, mut notes) = (String::new(), Vec::new());
        let answer = "### a.wsl: io stats\n\n**operations**\n\n| op |\n| --- |\n| open |\n\nnote: 3 events were lost\n";
        take(answer, &mut part, &mut notes);
        take(
            "### a.wsl: locks top\n\nnote: cannot tell\n",
            &mut part,
            &mut notes,
        );
        assert_eq!(part, "\n**operations**\n\n| op |\n| --- |\n| open |\n\n");
        assert_eq!(notes, ["3 events were lost", "cannot tell"]);
    }
}
