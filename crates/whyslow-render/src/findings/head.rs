//! The first line of a report, and its times.

use whyslow_explain::{Judged, Report};
use whyslow_model::Ns;
use whyslow_model::text::shown;

use super::{drawing, length};
use crate::style::TextStyle;
use crate::subject::Subject;
use crate::timestamps::clock_face;

/// Parts of `storm.wsl · host vm · 2026-11-27 11:23:30.96–11:23:34.86 UTC (3.90 s) · 0 events lost`.
pub(super) fn head(report: &Report, subject: &Subject, style: &TextStyle) -> Vec<String> {
    let mut parts = vec![shown(&subject.name, style.ascii).into_owned()];
    parts.extend(
        subject
            .host
            .as_ref()
            .map(|host| format!("host {}", shown(host, style.ascii))),
    );
    parts.push(window(report, style));
    parts.push(lost(report));
    parts
}

/// How much was lost: `28,455 events lost in 12 % of the time`.
fn lost(report: &Report) -> String {
    let events = match report.lost_events {
        Some(0) => return "0 events lost".to_owned(),
        Some(1) => "1 event lost".to_owned(),
        Some(count) => format!("{} events lost", separated(count)),
        None => "events lost (number unknown)".to_owned(),
    };
    let share = report.lost_share * 100.0;
    if share <= 0.0 {
        events // at single points in time
    } else if share < 1.0 {
        format!("{events} in less than 1 % of the time")
    } else {
        format!("{events} in {share:.0} % of the time")
    }
}

/// The line before all others, if the recording cannot show what was slow.
pub(super) fn cannot_tell(report: &Report) -> Option<String> {
    let reasons = report.reasons.iter();
    let reasons: Vec<String> = reasons
        .map(|reason| format!("{} ({})", reason.summary, reason.next))
        .collect();
    let is_it = report.judged == Judged::CannotTell;
    is_it.then(|| format!("cannot tell: {}", reasons.join("; ")))
}

/// Between parts of a line.
pub(super) fn separator(style: &TextStyle) -> &'static str {
    if style.ascii { " | " } else { " · " }
}

/// A number with thousands separators.
fn separated(number: u64) -> String {
    crate::quantity::grouped(&number.to_string()).replace(' ', ",")
}

fn window(report: &Report, style: &TextStyle) -> String {
    let (begin, end) = (report.begin_ns, report.end_ns);
    let lasted = length(end - begin);
    let decimals = drawing::decimals(end - begin);
    if let Some(origin) = style.rel {
        let seconds = |ts: Ns| format!("{:+.decimals$}", ts.saturating_sub(origin) as f64 / 1e9);
        return format!("{} .. {} ({lasted})", seconds(begin), seconds(end));
    }
    let day = |ts: Ns| style.zone.civil(ts).date();
    let first = clock_face(begin, style, decimals, true);
    let last = clock_face(end, style, decimals, day(begin) != day(end));
    let dash = if style.ascii { " .. " } else { "–" };
    format!("{first}{dash}{last} {} ({lasted})", zone(begin, style))
}

fn zone(ts: Ns, style: &TextStyle) -> String {
    let offset = style.zone.offset(ts);
    match (style.zone.known, offset.as_str()) {
        (false, _) => "UTC, zone of the host not recorded".to_owned(),
        (true, "+00:00") => "UTC".to_owned(),
        (true, _) => offset,
    }
}

/// A point in time with a number of decimals that fits a length of time.
pub(super) fn time(ts: Ns, of: Ns, style: &TextStyle) -> String {
    let decimals = drawing::decimals(of);
    match style.rel {
        Some(origin) => format!("{:+.decimals$}", ts.saturating_sub(origin) as f64 / 1e9),
        None => clock_face(ts, style, decimals, false),
    }
}

pub(super) fn timestamp(style: &TextStyle, ts: Ns) -> String {
    let civil = style.zone.civil(ts);
    format!("{} {}", civil.date(), time_of_day(style, ts))
}

pub(super) fn time_of_day(style: &TextStyle, ts: Ns) -> String {
    match style.rel {
        Some(begin) => format!("{:+.6}", (ts - begin) as f64 / 1e9),
        None => clock_face(ts, style, 6, false),
    }
}
