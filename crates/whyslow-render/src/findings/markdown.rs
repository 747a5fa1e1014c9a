//! Findings as Markdown, for tickets and mails.

use std::fmt::Write as _;

use whyslow_explain::{AdviceKind, Finding, Report, ResourceState};
use whyslow_model::text::shown;

use super::evidence::{excess_lines, versus_lines};
use super::head::{cannot_tell, head, separator, time_of_day, timestamp};
use super::{drawing, length, page};
use crate::labels::{about, actor, call, grade};
use crate::style::TextStyle;
use crate::subject::Subject;
use crate::triggered;

/// Width of a drawing, which is a code block.
const DRAWING: usize = 100;

/// Text with the special characters of Markdown escaped.
fn plain(text: &str, style: &TextStyle) -> String {
    let text = shown(text, style.ascii).into_owned();
    text.replace('|', "\\|")
        .replace('<', "&lt;")
        .replace('`', "'")
}

/// The report.
pub(super) fn text(report: &Report, subject: &Subject, style: &TextStyle) -> String {
    let plain = |text: &str| plain(text, style);
    let first = cannot_tell(report);
    let first = first.map_or_else(String::new, |line| format!("{}\n\n", plain(&line)));
    let mut out = format!(
        "{first}# {}\n",
        plain(&head(report, subject, style).join(separator(style)))
    );
    for line in triggered::lines(report, &|ts| timestamp(style, ts)) {
        let _ = writeln!(out, "\n{}", plain(&line));
    }
    for (number, finding) in report.findings.iter().enumerate() {
        one_finding(&mut out, number + 1, finding, style);
    }
    for observation in &report.observations {
        let _ = write!(out, "\n## {}\n\n", plain(&observation.summary));
    }
    resources(&mut out, report, style);
    for pattern in &report.patterns {
        let _ = writeln!(out, "\nPattern: {}", plain(&pattern.summary));
    }
    for caveat in &report.caveats {
        let _ = writeln!(out, "\nNote: {}", plain(caveat));
    }
    out
}

fn resources(out: &mut String, report: &Report, style: &TextStyle) {
    for (label, states) in [
        ("High", &[ResourceState::High][..]),
        (
            "Fine",
            &[ResourceState::Fine, ResourceState::NoneHappened][..],
        ),
        ("Not recorded", &[ResourceState::NotRecorded][..]),
    ] {
        let of_state = report.fine.iter().filter(|one| states.contains(&one.state));
        let resources: Vec<&str> = of_state.map(|one| one.summary.as_str()).collect();
        if !resources.is_empty() {
            let _ = writeln!(out, "\n{label}: {}", plain(&resources.join(", "), style));
        }
    }
}

fn one_finding(out: &mut String, number: usize, finding: &Finding, style: &TextStyle) {
    let plain = |text: &str| plain(text, style);
    let page = &finding.page;
    let _ = write!(out, "\n## {number}. {}\n\n", plain(&page.why));
    let _ = writeln!(out, "- **Who:** {}", plain(&page.who));
    let _ = writeln!(out, "- **Sure:** {}", plain(&page.sure));
    let _ = writeln!(out, "- **Now:** {}", plain(&page::now(finding, style)));
    for advice in &page.advice {
        let text = plain(&advice.text);
        let _ = match (advice.kind, &advice.command) {
            (AdviceKind::Now, _) => Ok(()),
            (AdviceKind::Fix, _) => writeln!(out, "- **Fix:** {text}"),
            (AdviceKind::Next, None) => writeln!(out, "- **Next:** {text}"),
            (AdviceKind::Next, Some(command)) => {
                writeln!(out, "- **Next:** {text}: `{}`", plain(command))
            }
        };
    }
    let plain_style = TextStyle {
        color: false,
        ..style.clone()
    };
    let drawing = drawing::lines(&page.timeline, 0, DRAWING, &plain_style);
    // Not every renderer treats tags in a code block as text.
    let drawing: Vec<String> = drawing
        .iter()
        .map(|line| line.replace('<', "\\x3c").replace('`', "'"))
        .collect();
    if !drawing.is_empty() {
        // A name cannot end the block.
        let drawing = drawing.join("\n").replace("```", "'''");
        let _ = write!(out, "\n```\n{drawing}\n```\n");
    }
    evidence(out, finding, style);
}

/// The parts of a finding as a table.
fn parts(out: &mut String, finding: &Finding, style: &TextStyle) {
    out.push_str(
        "| time | share | grade | mechanism | culprit and object |\n|---:|---:|---|---|---|\n",
    );
    for part in &finding.parts {
        let _ = writeln!(
            out,
            "| {} | {:.1} % | {} | {} | {} |",
            length(part.dur_ns),
            part.share * 100.0,
            grade(part),
            part.mechanism,
            plain(&about(part), style)
        );
    }
}

fn evidence(out: &mut String, finding: &Finding, style: &TextStyle) {
    let plain = |text: &str| plain(text, style);
    let _ = writeln!(
        out,
        "\nConfidence {}, unexplained {}, removing it saves at most {}.\n",
        format!("{:?}", finding.confidence).to_lowercase(),
        length(finding.unexplained_ns),
        length(finding.saved_at_most_ns)
    );
    let compared = finding.group.as_ref().map(excess_lines).unwrap_or_default();
    let versus = finding.versus.as_ref();
    let versus = versus.map(|versus| versus_lines(versus, style));
    for line in compared.iter().chain(versus.iter().flatten()) {
        let _ = writeln!(out, "- {}", plain(line.trim_start()));
    }
    if !compared.is_empty() || versus.is_some() {
        out.push('\n');
    }
    parts(out, finding, style);
    out.push('\n');
    for hop in &finding.chain {
        let _ = writeln!(
            out,
            "- {} .. {} {} {}: {}{}",
            time_of_day(style, hop.begin_ns),
            time_of_day(style, hop.end_ns),
            plain(&actor(&hop.actor)),
            hop.what,
            hop.mechanism,
            hop.activity
                .as_ref()
                .map_or_else(String::new, |activity| format!(
                    ", in {}",
                    plain(&call(activity))
                ))
        );
    }
    for did in &finding.did {
        let _ = writeln!(
            out,
            "- did: {} {}, {} ({:.1} %), longest {}",
            did.count,
            plain(&format!(
                "{}({})",
                did.call,
                did.path.as_deref().unwrap_or("")
            )),
            length(did.dur_ns),
            did.share * 100.0,
            did.id
        );
    }
    for crossing in &finding.across {
        let _ = writeln!(out, "- across: {}", plain(&crossing.summary));
    }
    for other in &finding.alternatives {
        let _ = writeln!(out, "- also: {}", plain(&other.summary));
    }
    for caveat in &finding.caveats {
        let _ = writeln!(out, "- note: {}", plain(caveat));
    }
}
