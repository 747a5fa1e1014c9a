//! Findings of `explain` as text, Markdown and JSON.

use std::fmt::Write as _;

use whyslow_base::args::{Format, OutputArgs, TalkArgs, UnitChoice};
use whyslow_base::failure::Failure;
use whyslow_base::time::Calendar;
use whyslow_explain::{
    Confidence, Excess, Finding, Group, Hop, Judged, Observation, Report, Versus,
};
use whyslow_model::Ns;
use whyslow_model::text::shown;

use crate::destination::{to_file, to_stdout};
use crate::labels::{about, actor, call, grade};
use crate::select::Selection;
use crate::style::{Paint, TextStyle};
use crate::subject::Subject;
use crate::write::style;
use crate::{pager, quantity, terminal, triggered};

/// Parts and hops of a observation that are shown without `--wide`.
const PARTS: usize = 6;
/// Parts with a smaller share are not shown.
const SHARE: f64 = 0.001;
/// A recorder that uses less of a CPU has no noticeable overhead.
const TRACER_MIN: f64 = 0.01;
/// Stack frames that are shown.
const FRAMES: usize = 4;
const WIDTH: usize = 100;

/// Writes a report to the destination and in the format that the flags specify.
pub fn write(
    report: &Report,
    subject: &Subject,
    calendar: &Calendar,
    args: &OutputArgs,
    talk: &TalkArgs,
) -> Result<(), Failure> {
    let size = match &args.output {
        Some(_) => None,
        None => terminal::size(),
    };
    let style = style(
        calendar.zone.clone(),
        &Selection::default(),
        size,
        args,
        talk,
    );
    let text = encode(report, subject, &style, args.chosen_format())?;
    if let Some(path) = &args.output {
        return to_file(path, |out| {
            std::io::Write::write_all(out, text.as_bytes()).map_err(Failure::from)
        });
    }
    let is_long = size.is_some_and(|(_, rows)| text.lines().count() >= rows);
    if is_long && !args.no_pager && std::io::IsTerminal::is_terminal(&std::io::stdin()) {
        return pager::show(&text).map_err(Failure::from);
    }
    to_stdout(&text)
}

/// A report as a string, for another program.
pub fn to_text(
    report: &Report,
    subject: &Subject,
    calendar: &Calendar,
    args: &OutputArgs,
) -> Result<String, Failure> {
    let style = TextStyle {
        ascii: args.ascii,
        ..style(
            calendar.zone.clone(),
            &Selection::default(),
            None,
            args,
            &TalkArgs::silent(),
        )
    };
    encode(report, subject, &style, args.chosen_format())
}

fn encode(
    report: &Report,
    subject: &Subject,
    style: &TextStyle,
    format: Format,
) -> Result<String, Failure> {
    match format {
        Format::Text => Ok(text(report, subject, style)),
        Format::Md => Ok(markdown(report, subject, style)),
        Format::Json => {
            let mut text = serde_json::to_string_pretty(report)
                .map_err(|error| Failure::new(format!("cannot write JSON: {error}")))?;
            text.push('\n');
            Ok(text)
        }
        _ => Err(Failure::usage(
            "cannot write observations in this format: supported are text, json and md",
        )),
    }
}

fn head(report: &Report, subject: &Subject, style: &TextStyle) -> String {
    let host = subject
        .host
        .as_ref()
        .map_or_else(String::new, |host| format!(", host {host}"));
    format!(
        "{}  {} .. {} ({}{})",
        subject.name,
        timestamp(style, report.begin_ns),
        time_of_day(style, report.end_ns),
        length(report.end_ns - report.begin_ns),
        host
    )
}

/// The first line, if the recording cannot show what was slow.
fn cannot_tell(report: &Report) -> Option<String> {
    let reasons = report.reasons.iter();
    let reasons: Vec<String> = reasons
        .map(|reason| format!("{} ({})", reason.summary, reason.next))
        .collect();
    let is_it = report.judged == Judged::CannotTell;
    is_it.then(|| format!("cannot tell: {}", reasons.join("; ")))
}

fn timestamp(style: &TextStyle, ts: Ns) -> String {
    let civil = style.zone.civil(ts);
    format!("{} {}", civil.date(), time_of_day(style, ts))
}

fn time_of_day(style: &TextStyle, ts: Ns) -> String {
    if let Some(begin) = style.rel {
        return format!("+{:.6}", (ts - begin) as f64 / 1e9);
    }
    let time = style.zone.civil(ts).time();
    format!(
        "{:02}:{:02}:{:02}.{:06}",
        time.hour(),
        time.minute(),
        time.second(),
        time.subsec_nanosecond() / 1000
    )
}

fn length(ns: Ns) -> String {
    quantity::duration_alone(ns as f64, UnitChoice::Auto)
}

fn text(report: &Report, subject: &Subject, style: &TextStyle) -> String {
    let mut out = String::new();
    let push_line = |out: &mut String, line: &str| {
        out.push_str(line);
        out.push('\n');
    };
    if let Some(line) = cannot_tell(report) {
        let mut page = Page {
            style,
            out: &mut out,
        };
        page.wrapped("", &line);
    }
    push_line(
        &mut out,
        &style.paint(
            Paint::Header,
            &shown(&head(report, subject, style), style.ascii),
        ),
    );
    for line in triggered::lines(report, &|ts| timestamp(style, ts)) {
        Page {
            style,
            out: &mut out,
        }
        .wrapped("", &line);
    }
    for (number, finding) in report.findings.iter().enumerate() {
        out.push('\n');
        Page {
            style,
            out: &mut out,
        }
        .finding(number + 1, finding);
    }
    if !report.observations.is_empty() {
        out.push('\n');
        push_line(
            &mut out,
            &style.paint(
                Paint::Header,
                if report.findings.is_empty() {
                    "found"
                } else {
                    "other observations"
                },
            ),
        );
    }
    for observation in &report.observations {
        Page {
            style,
            out: &mut out,
        }
        .observation(observation);
    }
    for pattern in &report.patterns {
        let mut page = Page {
            style,
            out: &mut out,
        };
        page.wrapped("", &format!("pattern: {}", pattern.summary));
    }
    if let Some(share) = report.tracer_share.filter(|share| *share >= TRACER_MIN) {
        let mut page = Page {
            style,
            out: &mut out,
        };
        let words = format!("note: the recorder used {:.1} % of a CPU", share * 100.0);
        page.wrapped("", &words);
    }
    for caveat in &report.caveats {
        let mut page = Page {
            style,
            out: &mut out,
        };
        page.wrapped("", &format!("note: {caveat}"));
    }
    out
}

struct Page<'p> {
    style: &'p TextStyle,
    out: &'p mut String,
}

impl Page<'_> {
    fn line(&mut self, line: &str) {
        self.out.push_str(&shown(line, self.style.ascii));
        self.out.push('\n');
    }

    /// Text wrapped to the terminal's width. The first line starts with `lead`, the others are
    /// indented by its length.
    fn wrapped(&mut self, lead: &str, words: &str) {
        let width = self.style.width.unwrap_or(WIDTH).clamp(40, 160);
        let words = shown(words, self.style.ascii).into_owned();
        let indent = " ".repeat(lead.len());
        let mut line = lead.to_owned();
        let mut is_first = true;
        for word in words.split(' ') {
            let is_full = line.chars().count() + word.chars().count() + 1 > width;
            if is_full && !is_first {
                self.out.push_str(line.trim_end());
                self.out.push('\n');
                line.clone_from(&indent);
                is_first = true;
            }
            if !is_first {
                line.push(' ');
            }
            line.push_str(word);
            is_first = false;
        }
        self.out.push_str(line.trim_end());
        self.out.push('\n');
    }

    fn finding(&mut self, number: usize, finding: &Finding) {
        self.wrapped(&format!("{number}  "), &finding.verdict);
        let confidence = match finding.confidence {
            Confidence::High => "confidence high",
            Confidence::Medium => "confidence medium",
            Confidence::Low => "confidence low",
            Confidence::None => "no culprit identified",
        };
        let mut facts = vec![confidence.to_owned()];
        if finding.saved_at_most_ns > 0 {
            facts.push(format!(
                "removing it saves at most {}",
                length(finding.saved_at_most_ns)
            ));
        }
        facts.push(format!("unexplained {}", length(finding.unexplained_ns)));
        if let Some(group) = finding.group.as_ref().filter(|group| group.count > 1) {
            facts.push(format!(
                "{} such calls were slow, {} in total",
                group.count,
                length(group.dur_ns_total)
            ));
        }
        self.wrapped("   ", &facts.join("; "));
        if let Some(group) = &finding.group {
            for line in excess_lines(group) {
                self.wrapped("   ", &line);
            }
        }
        if let Some(versus) = &finding.versus {
            for line in versus_lines(versus, self.style) {
                self.wrapped("   ", &line);
            }
        }
        self.parts(finding);
        if !finding.chain.is_empty() {
            self.line("   chain");
        }
        for hop in &finding.chain {
            self.hop(hop);
        }
        for crossing in &finding.across {
            self.wrapped("   across: ", &crossing.summary);
        }
        for other in &finding.alternatives {
            self.wrapped("   also: ", &other.summary);
        }
        self.also(finding);
        for neighbour in &finding.neighbours {
            let name = actor(&neighbour.actor);
            self.wrapped("   also busy: ", &format!("{name}: {}", neighbour.what));
        }
        for missing in &finding.missing {
            self.wrapped(
                "   not recorded: ",
                &format!(
                    "{} ({}): {}",
                    missing.events, missing.decides, missing.record_with
                ),
            );
        }
        for caveat in &finding.caveats {
            self.wrapped("   note: ", caveat);
        }
        for suggestion in &finding.suggestions {
            self.wrapped("   next: ", suggestion);
        }
        self.wrapped("   reproduce: ", &finding.reproduce);
    }

    /// Other calls slowed by the same culprit.
    fn also(&mut self, finding: &Finding) {
        for also in &finding.also {
            let words = format!(
                "{} by {}: {} calls, longest {}{}",
                also.what,
                actor(&also.actor),
                also.count,
                length(also.dur_ns),
                also.id
                    .as_ref()
                    .map_or_else(String::new, |id| format!(" ({id})"))
            );
            self.wrapped("   same culprit: ", &words);
        }
    }

    fn parts(&mut self, finding: &Finding) {
        let worth = finding.parts.iter().take_while(|part| part.share >= SHARE);
        let count = if self.style.details {
            finding.parts.len()
        } else {
            worth.count().clamp(1, PARTS)
        };
        self.line("   where the time went");
        for part in finding.parts.iter().take(count) {
            let line = format!(
                "   {:>10} {:>5.1} %  {}  {:<15} {}",
                length(part.dur_ns),
                part.share * 100.0,
                grade(part),
                part.mechanism,
                about(part)
            );
            self.line(line.trim_end());
        }
        let rest = finding.parts.iter().skip(count);
        let (number, sum) = rest.fold((0, 0), |(n, sum), part| (n + 1, sum + part.dur_ns));
        if number > 0 {
            self.line(&format!(
                "   {:>10}          {number} more (--wide)",
                length(sum)
            ));
        }
        if let Some(command) = finding
            .culprit
            .and_then(|place| finding.parts[place].shown_by.as_ref())
        {
            self.wrapped("   evidence: ", command);
        }
    }

    fn hop(&mut self, hop: &Hop) {
        let mut words = format!(
            "{} .. {} ({}) {} {}",
            time_of_day(self.style, hop.begin_ns),
            time_of_day(self.style, hop.end_ns),
            length(hop.end_ns - hop.begin_ns),
            actor(&hop.actor),
            hop.what
        );
        let _ = write!(words, ": {}", hop.mechanism);
        if let Some(object) = &hop.object {
            let _ = write!(words, ", {} {}", object.kind, object.name);
        }
        if let Some(activity) = &hop.activity {
            let _ = write!(words, ", in {}", call(activity));
        }
        if !hop.stack.is_empty() {
            let frames: Vec<&str> = hop.stack.iter().take(FRAMES).map(String::as_str).collect();
            let _ = write!(words, ", stack {}", frames.join(" < "));
        }
        if !hop.program.is_empty() {
            let frames: Vec<&str> = hop
                .program
                .iter()
                .take(FRAMES)
                .map(String::as_str)
                .collect();
            let _ = write!(words, ", below {}", frames.join(" < "));
        }
        let _ = write!(
            words,
            " [{:?}{}]",
            hop.grade,
            if hop.evidence.is_empty() {
                String::new()
            } else {
                format!(": {}", hop.evidence)
            }
        );
        self.wrapped("     ", &words);
    }

    fn observation(&mut self, observation: &Observation) {
        self.wrapped("   ", &observation.summary);
        if let Some(command) = &observation.shown_by {
            self.wrapped("     evidence: ", command);
        }
        for suggestion in &observation.suggestions {
            self.wrapped("     next: ", suggestion);
        }
    }
}

/// What slow calls spend more time on than others of their kind.
fn excess_lines(group: &Group) -> Vec<String> {
    let line = |excess: &Excess| {
        format!(
            "{} of the longest {} calls spend {} more on {} ({}) than {} others: {:.0} % of the excess (95 % CI: {:.0}–{:.0} %)",
            percent(excess.dominance),
            group.walked,
            length(excess.delta_ns),
            excess.mechanism,
            actor(&excess.culprit),
            group.compared,
            excess.share * 100.0,
            excess.share_low * 100.0,
            excess.share_high * 100.0,
        )
    };
    group.excess.iter().map(line).collect()
}

/// A heading, then a line per difference.
fn versus_lines(versus: &Versus, style: &TextStyle) -> Vec<String> {
    let mut lines = vec![format!(
        "versus {} {} .. {}: {}",
        versus.recording,
        timestamp(style, versus.begin_ns),
        time_of_day(style, versus.end_ns),
        match (versus.per.as_str(), versus.mean_there_ns) {
            (_, None) => "nothing to compare with".to_owned(),
            ("call", Some(there)) => format!(
                "{} per call (mean of {}) instead of {} (mean of {})",
                length(versus.mean_here_ns),
                versus.here,
                length(there),
                versus.there
            ),
            _ => "per second".to_owned(),
        }
    )];
    if versus.mean_there_ns.is_some() {
        let differences = versus.differences.iter().take(PARTS).map(|one| {
            format!(
                "  {} ({}): {} instead of {}",
                one.mechanism,
                actor(&one.culprit),
                length(one.here_ns),
                length(one.there_ns)
            )
        });
        lines.extend(differences);
    }
    lines
}

fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

/// Text with the special characters of Markdown escaped.
fn plain(text: &str, style: &TextStyle) -> String {
    let text = shown(text, style.ascii).into_owned();
    text.replace('|', "\\|")
        .replace('<', "&lt;")
        .replace('`', "'")
}

fn markdown_finding(out: &mut String, number: usize, finding: &Finding, style: &TextStyle) {
    let plain = |text: &str| plain(text, style);
    let _ = write!(out, "\n## {}. {}\n\n", number, plain(&finding.verdict));
    let _ = writeln!(
        out,
        "Confidence {}, unexplained {}, removing it saves at most {}.\n",
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
            plain(&about(part))
        );
    }
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
    for crossing in &finding.across {
        let _ = writeln!(out, "- across: {}", plain(&crossing.summary));
    }
    for other in &finding.alternatives {
        let _ = writeln!(out, "- also: {}", plain(&other.summary));
    }
    for caveat in &finding.caveats {
        let _ = writeln!(out, "- note: {}", plain(caveat));
    }
    for suggestion in &finding.suggestions {
        let _ = writeln!(out, "- next: {}", plain(suggestion));
    }
    let _ = write!(
        out,
        "\n```\n{}\n```\n",
        shown(&finding.reproduce, style.ascii)
    );
}

fn markdown(report: &Report, subject: &Subject, style: &TextStyle) -> String {
    let plain = |text: &str| plain(text, style);
    let first = cannot_tell(report);
    let first = first.map_or_else(String::new, |line| format!("{}\n\n", plain(&line)));
    let mut out = format!("{first}# {}\n", plain(&head(report, subject, style)));
    for line in triggered::lines(report, &|ts| timestamp(style, ts)) {
        let _ = writeln!(out, "\n{}", plain(&line));
    }
    for (number, finding) in report.findings.iter().enumerate() {
        markdown_finding(&mut out, number + 1, finding, style);
    }
    for observation in &report.observations {
        let _ = write!(out, "\n## {}\n\n", plain(&observation.summary));
    }
    for pattern in &report.patterns {
        let _ = writeln!(out, "\nPattern: {}", plain(&pattern.summary));
    }
    for caveat in &report.caveats {
        let _ = writeln!(out, "\nNote: {}", plain(caveat));
    }
    out
}
