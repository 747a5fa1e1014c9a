//! An answer as text: header line, tables, losses, caveats.

use std::fmt::Write as _;

use whyslow_model::Ns;
use whyslow_model::answer::{Answer, AnswerTable, Form, LossNote};
use whyslow_model::tables::CUT_UNCERTAIN;
use whyslow_model::text::shown;
use whyslow_model::topic_state::TopicState;

use crate::style::{Paint, TextStyle};
use crate::subject::Subject;
use crate::{facts, heat, histogram, printed, table, timestamps, tree};

/// Lost ranges that are printed individually; the others are summed up.
const LOSSES_SHOWN: usize = 5;

pub(super) fn render(answer: &Answer, subject: &Subject, style: &TextStyle) -> String {
    let mut out = String::new();
    header(answer, subject, style, &mut out);
    let mut dropped: Vec<String> = Vec::new();
    for (i, table) in answer.tables.iter().enumerate() {
        let has_heading = answer.tables.len() > 1 && !table.title.is_empty();
        if i > 0 {
            out.push('\n');
        }
        if has_heading {
            out.push_str(&style.paint(Paint::Header, &shown(&table.title, style.ascii)));
            out.push('\n');
        }
        for header in body(table, answer, style, &mut out) {
            if !dropped.contains(&header) {
                dropped.push(header);
            }
        }
    }
    let is_unavailable =
        |caveat: &String| caveat.contains(" unavailable: ") || caveat.starts_with("cannot tell");
    if answer.tables.is_empty() && !answer.caveats.iter().any(is_unavailable) {
        out.push_str(&empty(answer));
    }
    losses(answer, style, &mut out);
    // Instead of a table it is shown that nothing happened.
    for caveat in answer.limitations() {
        let text = format!("note: {}", shown(caveat, style.ascii));
        out.push_str(&style.paint(Paint::Aside, &text));
        out.push('\n');
    }
    if !dropped.is_empty() {
        let text = format!(
            "not shown for lack of width (--wide): {}",
            dropped.join(", ")
        );
        out.push_str(&style.paint(Paint::Aside, &text));
        out.push('\n');
    }
    out
}

/// `web.wsl  2015-01-15 12:18:37.216 .. 12:18:53.821 -05:00 (16.605 s, host x, lost 0)`
fn header(answer: &Answer, subject: &Subject, style: &TextStyle, out: &mut String) {
    let mut text = shown(&subject.name, style.ascii).into_owned();
    if let Some((begin, end)) = answer.window {
        let _ = write!(text, "  {}", timestamps::range((begin, end), style));
        if !style.zone.known {
            text.push_str(" (time zone of the host not recorded)");
        }
        let _ = write!(text, " ({}", timestamps::length(end.saturating_sub(begin)));
        if let Some(host) = &subject.host {
            let _ = write!(text, ", host {}", shown(host, style.ascii));
        }
        let _ = write!(text, ", lost {})", lost_sum(&answer.losses, style));
    }
    out.push_str(&style.paint(Paint::Header, &text));
    out.push('\n');
}

/// Sum of lost events; `?` if the number of some losses is unknown.
fn lost_sum(losses: &[LossNote], style: &TextStyle) -> String {
    let known: i64 = losses.iter().filter_map(|loss| loss.count).sum();
    let unknown = losses.iter().any(|loss| loss.count.is_none());
    match (known, unknown) {
        (0, true) => "?".into(),
        (_, true) => format!("{}+?", printed::count(known, style)),
        (_, false) => printed::count(known, style),
    }
}

/// Instead of a table without rows: whether the filter or the recording is the reason.
fn empty(answer: &Answer) -> String {
    match &answer.state {
        Some(TopicState::NoneHappened { why }) => format!("({why})\n"),
        _ => "(nothing matches)\n".into(),
    }
}

fn body(table: &AnswerTable, answer: &Answer, style: &TextStyle, out: &mut String) -> Vec<String> {
    let dropped = match table.form {
        Form::Facts => {
            facts::render(table, style, out);
            return Vec::new();
        }
        _ if table.rows.is_empty() => {
            out.push_str(&empty(answer));
            Vec::new()
        }
        Form::Table => table::render(table, answer.window, style, out),
        Form::Tree => tree::render(table, answer.window, style, out),
        Form::Histogram => {
            histogram::render(table, style, out);
            Vec::new()
        }
        Form::HeatMap => {
            heat::render(table, answer.window, style, out);
            Vec::new()
        }
    };
    if !table.cut.is_empty() {
        let footnote = style.paint(Paint::Aside, &cut_footnote(table));
        let _ = writeln!(out, "{} {footnote}", style.paint(Paint::Cut, "*"));
    }
    facts::below(table, style, out);
    dropped
}

/// Meaning of the mark `*` for the rows that have it.
fn cut_footnote(table: &AnswerTable) -> String {
    let has = |edge: &str| {
        table
            .cut
            .iter()
            .any(|(_, cut)| *cut == edge || *cut == "both")
    };
    let is_lost = |(_, cut): &(usize, &str)| *cut == CUT_UNCERTAIN;
    let edges = match (has("begin"), has("end")) {
        (true, false) => "started before the window",
        (false, true) => "still in progress at the end of the window",
        _ => "started before the window, or still in progress at its end",
    };
    let lost = "uncertain, as events were lost between start and end";
    match table.cut.iter().filter(|cut| is_lost(cut)).count() {
        0 => edges.to_owned(),
        all if all == table.cut.len() => lost.to_owned(),
        _ => format!("{edges}, or {lost}"),
    }
}

fn losses(answer: &Answer, style: &TextStyle, out: &mut String) {
    let losses = &answer.losses;
    for loss in losses.iter().take(LOSSES_SHOWN) {
        let line = loss_line(loss, answer.window, style);
        out.push_str(&style.paint(Paint::Loss, &line));
        out.push('\n');
    }
    let rest = losses.get(LOSSES_SHOWN..).unwrap_or_default();
    if !rest.is_empty() {
        let text = format!(
            "! {} lost in {} further ranges (all in table lost_events)",
            lost_sum(rest, style),
            rest.len()
        );
        out.push_str(&style.paint(Paint::Loss, &text));
        out.push('\n');
    }
}

/// `! 7 002 events lost 12:18:51.200-12:18:51.300 on CPU 1`
pub(super) fn loss_line(loss: &LossNote, window: Option<(Ns, Ns)>, style: &TextStyle) -> String {
    let clock = |ts: Ns, beside: Option<Ns>| match beside {
        Some(day) => timestamps::beside(ts, day, style, 3),
        None => timestamps::clock_face(ts, style, 3, true),
    };
    let day = window.map(|(begin, _)| begin);
    let begin = clock(loss.begin, day);
    let range = match loss.end {
        Some(end) => format!("{begin}-{}", clock(end, day.or(Some(loss.begin)))),
        None => format!("from {begin}"),
    };
    let what = match loss.count {
        Some(count) => format!(
            "{} {}",
            printed::count(count, style),
            shown(&loss.kind, style.ascii)
        ),
        None => format!("an unknown number of {}", shown(&loss.kind, style.ascii)),
    };
    let place = loss
        .cpu
        .map_or_else(String::new, |cpu| format!(" on CPU {cpu}"));
    format!("! {what} lost {range}{place}")
}
