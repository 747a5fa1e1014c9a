//! Findings as text for people: the page of each, then resources, other findings and notes.

use unicode_width::UnicodeWidthStr;
use whyslow_explain::{Advice, AdviceKind, Finding, Observation, Report, ResourceState, Role};
use whyslow_model::text::shown;

use super::evidence::{excess_lines, versus_lines};
use super::head::{cannot_tell, head, separator, time, timestamp};
use super::{drawing, wrapped};
use crate::style::{Paint, TextStyle};
use crate::subject::Subject;
use crate::triggered;

/// Width of files and pipes.
const WIDTH: usize = 100;
const WIDTH_MIN: usize = 40;
const WIDTH_MAX: usize = 160;
/// A recorder that uses less of a CPU has no noticeable overhead.
const TRACER_MIN: f64 = 0.01;
/// Columns before the text of a block: `1  WHY   `.
const INDENT: usize = 9;
/// Most lines of each block: with four bars 20 lines.
const WHY_LINES: usize = 4;
const WHO_LINES: usize = 3;
const SURE_LINES: usize = 3;
const NOW_LINES: usize = 2;
const FIX_LINES: usize = 2;
/// Differences that are shown without `--wide`: with a comparison, the other blocks are shorter.
const VERSUS_LINES: usize = 4;

/// The report.
pub(super) fn text(report: &Report, subject: &Subject, style: &TextStyle) -> String {
    let mut page = Page::new(style, report.is_single || style.details);
    if let Some(line) = cannot_tell(report) {
        page.text("", &line);
    }
    page.head(&head(report, subject, style));
    for line in triggered::lines(report, &|ts| timestamp(style, ts)) {
        page.text("", &line);
    }
    for (number, finding) in report.findings.iter().enumerate() {
        page.blank();
        page.finding(number + 1, finding);
    }
    if !report.observations.is_empty() {
        page.blank();
        page.header(if report.findings.is_empty() {
            "findings"
        } else {
            "other findings"
        });
    }
    for observation in &report.observations {
        page.observation(observation);
    }
    page.blank();
    page.resources(report);
    for pattern in &report.patterns {
        page.text("pattern: ", &pattern.summary);
    }
    if let Some(share) = report.tracer_share.filter(|share| *share >= TRACER_MIN) {
        let used = format!("the recorder used {:.1} % of a CPU", share * 100.0);
        page.text("note: ", &used);
    }
    for caveat in &report.caveats {
        page.text("note: ", caveat);
    }
    page.out.trim_end_matches('\n').to_owned() + "\n"
}

/// Lines of output so far.
pub(super) struct Page<'p> {
    pub(super) style: &'p TextStyle,
    out: String,
    width: usize,
    /// All evidence is shown, and nothing is cut.
    has_details: bool,
}

impl<'p> Page<'p> {
    fn new(style: &'p TextStyle, has_details: bool) -> Self {
        let width = style.width.unwrap_or(WIDTH);
        Self {
            style,
            out: String::new(),
            width: width.clamp(WIDTH_MIN, WIDTH_MAX),
            has_details,
        }
    }

    fn line(&mut self, line: &str) {
        self.out.push_str(line.trim_end());
        self.out.push('\n');
    }

    fn blank(&mut self) {
        if !self.out.is_empty() && !self.out.ends_with("\n\n") {
            self.out.push('\n');
        }
    }

    /// The first line, broken between its parts where that is enough.
    fn head(&mut self, parts: &[String]) {
        let separator = separator(self.style);
        let mut line = String::new();
        for part in parts {
            if !line.is_empty() && line.width() + separator.width() + part.width() > self.width {
                self.header(&std::mem::take(&mut line));
            }
            if !line.is_empty() {
                line.push_str(separator);
            }
            line.push_str(part);
        }
        self.header(&line);
    }

    fn header(&mut self, text: &str) {
        for line in wrapped::wrapped("", text, self.width) {
            let line = self.style.paint(Paint::Header, &line);
            self.line(&line);
        }
    }

    fn safe(&self, text: &str) -> String {
        let text = shown(text, self.style.ascii).into_owned();
        if self.style.ascii {
            // Marks of this program, not of the recording.
            return text.replace("\\u{2026}", "...").replace("\\u{2013}", "-");
        }
        text
    }

    /// Text after `lead`, wrapped, with the other lines indented by the width of `lead`.
    pub(super) fn text(&mut self, lead: &str, text: &str) {
        let text = self.safe(text);
        for line in wrapped::wrapped(lead, &text, self.width) {
            self.line(&line);
        }
    }

    /// A block of the page; `number` is that of the finding, in its first block.
    fn block(&mut self, (number, label): (Option<usize>, &str), text: &str, count: usize) {
        let lead = lead(number, label);
        let text = self.safe(text);
        let count = if self.has_details { usize::MAX } else { count };
        let size = (self.width, count);
        for line in wrapped::limited(&lead, &text, size, self.style.ascii) {
            self.line(&line);
        }
    }

    fn finding(&mut self, number: usize, finding: &Finding) {
        let page = &finding.page;
        // A comparison takes the lines of the others.
        let less = usize::from(finding.versus.is_some());
        let at = self.out.len();
        self.block((Some(number), "WHY"), &page.why, WHY_LINES - less);
        self.accent(at, finding);
        self.block((None, "WHO"), &page.who, WHO_LINES - less);
        self.block((None, "SURE"), &page.sure, SURE_LINES - less);
        self.compared(finding);
        for line in drawing::lines(&page.timeline, INDENT - 4, self.width, self.style) {
            self.line(&line);
        }
        self.block((None, "NOW"), &now(finding, self.style), NOW_LINES);
        self.fixes(&texts(&page.advice, AdviceKind::Fix));
        self.next(finding);
        if self.has_details {
            self.evidence(finding);
        }
    }

    /// Remedies in one block, as many as fit.
    fn fixes(&mut self, fixes: &[&str]) {
        let count = if self.has_details {
            usize::MAX
        } else {
            FIX_LINES
        };
        let (lead, size) = (lead(None, "FIX"), (self.width, count));
        let mut lines = Vec::new();
        let mut text = String::new();
        for fix in fixes {
            if !text.is_empty() {
                text.push_str(separator(self.style));
            }
            text.push_str(&self.safe(fix));
            let longer = wrapped::wrapped(&lead, &text, self.width);
            if longer.len() > count && !lines.is_empty() {
                break;
            }
            lines = wrapped::limited(&lead, &text, size, self.style.ascii);
        }
        for line in lines {
            self.line(&line);
        }
    }

    /// Colours the culprit, which the first sentence starts with.
    fn accent(&mut self, from: usize, finding: &Finding) {
        let culprit = finding.page.timeline.iter();
        let culprit = culprit.filter(|row| row.role == Role::Culprit);
        let Some(row) = culprit.take(1).next().filter(|_| self.style.color) else {
            return;
        };
        let label = self.safe(&row.label);
        if let Some(place) = self.out[from..].find(&label).filter(|_| !label.is_empty()) {
            let range = from + place..from + place + label.len();
            let painted = self.style.paint(Paint::Culprit, &label);
            self.out.replace_range(range, &painted);
        }
    }

    /// What is different from the other side of a comparison, or from other calls of the kind.
    fn compared(&mut self, finding: &Finding) {
        let mut lines = finding.group.as_ref().map(excess_lines).unwrap_or_default();
        if let Some(versus) = &finding.versus {
            let all = versus_lines(versus, self.style);
            lines.extend(all.into_iter().take(VERSUS_LINES));
        }
        let count = if self.has_details { usize::MAX } else { 1 };
        for (place, line) in lines.iter().enumerate() {
            let label = if place == 0 { "VS" } else { "" };
            self.block((None, label), line, count);
        }
    }

    /// The command for all evidence; on a page with it, other commands.
    fn next(&mut self, finding: &Finding) {
        let next = finding.page.advice.iter();
        let next = next.filter(|advice| advice.kind == AdviceKind::Next);
        // Without a culprit, the second one records what is missing.
        let count = match (self.has_details, finding.culprit) {
            (true, _) => usize::MAX,
            (false, Some(_)) => 1,
            (false, None) => 2,
        };
        for (place, advice) in next.take(count).enumerate() {
            let lead = lead(None, if place == 0 { "NEXT" } else { "" });
            let text = self.safe(&advice.text);
            let Some(command) = &advice.command else {
                self.text(&lead, &advice.text);
                continue;
            };
            let command = self.safe(command);
            let alone = lead.width() + command.width();
            if alone + 4 + text.width() <= self.width {
                self.line(&format!("{lead}{command}    {text}"));
                continue;
            }
            for line in wrapped::command(&lead, &command, self.width) {
                self.line(&line);
            }
        }
    }

    fn observation(&mut self, observation: &Observation) {
        self.text("   ", &observation.summary);
        if !observation.suggestions.is_empty() {
            let fixes = observation.suggestions.iter();
            let fixes: Vec<String> = fixes.map(|fix| self.safe(fix)).collect();
            let text = fixes.join(separator(self.style));
            for line in wrapped::wrapped("     FIX   ", &text, self.width) {
                self.line(&line);
            }
        }
        if let Some(command) = &observation.shown_by {
            let command = self.safe(command);
            for line in wrapped::command("     NEXT  ", &command, self.width) {
                self.line(&line);
            }
        }
    }

    /// `fine: CPU 15 %, vda p99 5.00 ms, memory`, and what is not fine or was not recorded.
    fn resources(&mut self, report: &Report) {
        let of = |states: &[ResourceState]| -> Vec<String> {
            let fine = report.fine.iter().filter(|one| states.contains(&one.state));
            fine.map(|one| match one.record_with {
                Some(with) => format!("{} (add {with})", one.summary),
                None => one.summary.clone(),
            })
            .collect()
        };
        let fine = of(&[ResourceState::Fine, ResourceState::NoneHappened]);
        let high = of(&[ResourceState::High]);
        let missing = of(&[ResourceState::NotRecorded]);
        for (label, resources) in [
            ("high: ", high),
            ("fine: ", fine),
            ("not recorded: ", missing),
        ] {
            if !resources.is_empty() {
                self.text(label, &resources.join(", "));
            }
        }
    }
}

fn lead(number: Option<usize>, label: &str) -> String {
    let number = number.map_or_else(String::new, |number| number.to_string());
    format!("{number:<2} {label:<5} ")
}

fn texts(advice: &[Advice], kind: AdviceKind) -> Vec<&str> {
    let of_kind = advice.iter().filter(|one| one.kind == kind);
    of_kind.map(|one| one.text.as_str()).collect()
}

/// Whether it is over, and what to do at once.
pub(super) fn now(finding: &Finding, style: &TextStyle) -> String {
    let target = &finding.target;
    let rows = finding.page.timeline.iter();
    let first = rows.clone().map(|row| row.begin_ns).min();
    let last = rows.map(|row| row.end_ns).max();
    // As exact as the times of the drawing.
    let shown = last.unwrap_or(target.end_ns) - first.unwrap_or(target.begin_ns);
    let state = match finding.page.ended_ns {
        Some(end) => format!("it ended at {}", time(end, shown, style)),
        None => "still in progress at the end of the recording".to_owned(),
    };
    match texts(&finding.page.advice, AdviceKind::Now).first() {
        Some(advice) if finding.page.ended_ns.is_some() => {
            format!("{state}; if it recurs, {advice}")
        }
        Some(advice) => format!("{state}: {advice}"),
        None => state,
    }
}
