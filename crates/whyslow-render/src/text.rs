//! An answer as text for people: header line, tables, what was lost, what to bear in mind.

use std::fmt::Write as _;

use whyslow_model::answer::{Answer, AnswerTable, Form, LossNote};
use whyslow_model::text::shown;

use crate::look::{Look, Paint};
use crate::moments::clock_face;
use crate::subject::Subject;
use crate::{facts, heat, histogram, printed, table, tree};

/// Lost ranges printed one by one; further ones are summed up.
const LOSSES_SHOWN: usize = 5;

pub(super) fn render(answer: &Answer, subject: &Subject, look: &Look) -> String {
    let mut out = String::new();
    header(answer, subject, look, &mut out);
    let mut dropped: Vec<String> = Vec::new();
    for (i, table) in answer.tables.iter().enumerate() {
        let has_heading = answer.tables.len() > 1 && !table.title.is_empty();
        if i > 0 {
            out.push('\n');
        }
        if has_heading {
            out.push_str(&look.paint(Paint::Header, &shown(&table.title, look.ascii)));
            out.push('\n');
        }
        for header in body(table, answer, look, &mut out) {
            if !dropped.contains(&header) {
                dropped.push(header);
            }
        }
    }
    let is_unavailable =
        |caveat: &String| caveat.contains(" unavailable: ") || caveat.starts_with("cannot tell");
    if answer.tables.is_empty() && !answer.caveats.iter().any(is_unavailable) {
        out.push_str("(nothing matches)\n");
    }
    losses(&answer.losses, look, &mut out);
    for caveat in &answer.caveats {
        let text = format!("note: {}", shown(caveat, look.ascii));
        out.push_str(&look.paint(Paint::Aside, &text));
        out.push('\n');
    }
    if !dropped.is_empty() {
        let text = format!("not shown for width (--wide): {}", dropped.join(", "));
        out.push_str(&look.paint(Paint::Aside, &text));
        out.push('\n');
    }
    out
}

/// `web.wsl  2015-01-15 12:18:37.216 .. 12:18:53.821 -05:00 (16.605 s, host x, lost 0)`
fn header(answer: &Answer, subject: &Subject, look: &Look, out: &mut String) {
    let mut text = shown(&subject.name, look.ascii).into_owned();
    if let Some((begin, end)) = answer.window {
        let (first, last) = (look.zone.civil(begin).date(), look.zone.civil(end).date());
        let _ = write!(
            text,
            "  {} .. {} {}",
            clock_face(begin, look, 3, true),
            clock_face(end, look, 3, first != last),
            look.zone.offset(begin)
        );
        if !look.zone.known {
            text.push_str(" (the host's zone is not recorded)");
        }
        let _ = write!(text, " ({:.3} s", (end - begin) as f64 / 1e9);
        if let Some(host) = &subject.host {
            let _ = write!(text, ", host {}", shown(host, look.ascii));
        }
        let _ = write!(text, ", lost {})", lost_sum(&answer.losses, look));
    }
    out.push_str(&look.paint(Paint::Header, &text));
    out.push('\n');
}

/// Sum of lost events; `?` says that some of the losses have no number.
fn lost_sum(losses: &[LossNote], look: &Look) -> String {
    let known: i64 = losses.iter().filter_map(|loss| loss.count).sum();
    let unknown = losses.iter().any(|loss| loss.count.is_none());
    match (known, unknown) {
        (0, true) => "?".into(),
        (_, true) => format!("{}+?", printed::count(known, look)),
        (_, false) => printed::count(known, look),
    }
}

fn body(table: &AnswerTable, answer: &Answer, look: &Look, out: &mut String) -> Vec<String> {
    let dropped = match table.form {
        Form::Facts => {
            facts::render(table, look, out);
            return Vec::new();
        }
        _ if table.rows.is_empty() => {
            out.push_str("(nothing matches)\n");
            Vec::new()
        }
        Form::Table => table::render(table, answer.window, look, out),
        Form::Tree => tree::render(table, answer.window, look, out),
        Form::Histogram => {
            histogram::render(table, look, out);
            Vec::new()
        }
        Form::HeatMap => {
            heat::render(table, answer.window, look, out);
            Vec::new()
        }
    };
    if !table.cut.is_empty() {
        let footnote = look.paint(Paint::Aside, &cut_footnote(table));
        let _ = writeln!(out, "{} {footnote}", look.paint(Paint::Cut, "*"));
    }
    facts::below(table, look, out);
    dropped
}

/// What the sign `*` means for the rows that have it.
fn cut_footnote(table: &AnswerTable) -> String {
    let has = |edge: &str| {
        table
            .cut
            .iter()
            .any(|(_, cut)| *cut == edge || *cut == "both")
    };
    match (has("begin"), has("end")) {
        (true, false) => "began before the window or the recording",
        (false, true) => "ended after the window or the recording, or not at all",
        _ => "began before, or ended after, the window or the recording",
    }
    .into()
}

fn losses(losses: &[LossNote], look: &Look, out: &mut String) {
    for loss in losses.iter().take(LOSSES_SHOWN) {
        out.push_str(&look.paint(Paint::Loss, &loss_line(loss, look)));
        out.push('\n');
    }
    let rest = losses.get(LOSSES_SHOWN..).unwrap_or_default();
    if !rest.is_empty() {
        let text = format!(
            "! {} lost in {} further ranges (all: whyslow sql, table lost_events)",
            lost_sum(rest, look),
            rest.len()
        );
        out.push_str(&look.paint(Paint::Loss, &text));
        out.push('\n');
    }
}

/// `! 7 002 events lost 12:18:51.200-51.300 on CPU 1`
pub(super) fn loss_line(loss: &LossNote, look: &Look) -> String {
    let begin = clock_face(loss.begin, look, 3, false);
    let range = match loss.end {
        Some(end) => format!("{begin}-{}", clock_face(end, look, 3, false)),
        None => format!("from {begin}"),
    };
    let what = match loss.count {
        Some(count) => format!(
            "{} {}",
            printed::count(count, look),
            shown(&loss.kind, look.ascii)
        ),
        None => format!("an unknown number of {}", shown(&loss.kind, look.ascii)),
    };
    let place = loss
        .cpu
        .map_or_else(String::new, |cpu| format!(" on CPU {cpu}"));
    format!("! {what} lost {range}{place}")
}
