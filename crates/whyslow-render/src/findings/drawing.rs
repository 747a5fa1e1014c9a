//! The drawing of a finding: what the culprit and its victims did, on one time axis.

use unicode_width::UnicodeWidthStr;
use whyslow_explain::{Role, TimelineRow};
use whyslow_model::Ns;
use whyslow_model::text::shown;

use super::length;
use super::wrapped::shortened;
use crate::style::{Paint, TextStyle};
use crate::timestamps::clock_face;

/// The axis is at most this many times as long as the time of the victims, which are the subject.
const AXIS_MAX: Ns = 4;
const LABEL_MAX: usize = 16;
const WHAT_MAX: usize = 26;
const BAR_MIN: usize = 16;
const BAR_MAX: usize = 60;

/// The lines, each starting with `indent` columns.
pub(super) fn lines(
    rows: &[TimelineRow],
    indent: usize,
    width: usize,
    style: &TextStyle,
) -> Vec<String> {
    let Some(axis) = Axis::of(rows) else {
        return Vec::new();
    };
    let times: Vec<String> = rows
        .iter()
        .map(|row| axis.time(row.begin_ns, style))
        .collect();
    let time_width = times.iter().map(|time| time.width()).max().unwrap_or(0);
    let text = |text: &str| shown(text, style.ascii).into_owned();
    let labels: Vec<String> = rows.iter().map(|row| text(&row.label)).collect();
    let label_width = column(&labels, LABEL_MAX);
    let whats: Vec<String> = rows.iter().map(|row| text(&row.what)).collect();
    let fixed = indent + time_width + 2 + label_width + 2;
    let wanted = column(&whats, WHAT_MAX);
    // The call gives way to the bar.
    let what_width = wanted.min(width.saturating_sub(fixed + 2 + BAR_MIN));
    let bar_width = width
        .saturating_sub(fixed + what_width + 2)
        .clamp(1, BAR_MAX);
    let marks = if style.ascii { &ASCII } else { &BOX };
    let mut lines = Vec::with_capacity(rows.len());
    for (row, ((time, label), what)) in rows.iter().zip(times.iter().zip(&labels).zip(&whats)) {
        let label = shortened(label, label_width, style.ascii);
        let what = shortened(what, what_width, style.ascii);
        let bar = axis.bar(row, bar_width, marks);
        let pad = |text: &str, width: usize| " ".repeat(width.saturating_sub(text.width()));
        let paint = |text: &str| {
            if row.role == Role::Culprit {
                style.paint(Paint::Culprit, text)
            } else {
                text.to_owned()
            }
        };
        let blank = bar.len() - bar.trim_start().len();
        let line = format!(
            "{}{time}{}  {}{}  {what}{}  {}{}",
            " ".repeat(indent),
            pad(time, time_width),
            paint(&label),
            pad(&label, label_width),
            pad(&what, what_width),
            " ".repeat(blank),
            paint(bar.trim()),
        );
        lines.push(line.trim_end().to_owned());
    }
    lines
}

fn column(texts: &[String], most: usize) -> usize {
    let widest = texts.iter().map(|text| text.width()).max();
    widest.unwrap_or(0).min(most)
}

/// Characters of a bar.
struct Marks {
    begin: char,
    line: char,
    end: char,
    /// A bar of one column.
    point: char,
    /// Ends that lie outside of the axis or of the recording.
    before: char,
    after: char,
}

const BOX: Marks = Marks {
    begin: '├',
    line: '─',
    end: '┤',
    point: '│',
    before: '◄',
    after: '►',
};

const ASCII: Marks = Marks {
    begin: '|',
    line: '-',
    end: '|',
    point: '|',
    before: '<',
    after: '>',
};

/// The time of all bars.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Axis {
    begin: Ns,
    end: Ns,
}

impl Axis {
    /// All victims, and as much of the culprit as leaves the victims visible.
    fn of(rows: &[TimelineRow]) -> Option<Self> {
        let hull = |wanted: &dyn Fn(&TimelineRow) -> bool| {
            let rows = rows.iter().filter(|row| wanted(row));
            rows.fold(None, |hull: Option<(Ns, Ns)>, row| {
                let (begin, end) = hull.unwrap_or((row.begin_ns, row.end_ns));
                Some((begin.min(row.begin_ns), end.max(row.end_ns)))
            })
        };
        let all = hull(&|_| true)?;
        let of_victims = hull(&|row| row.role == Role::Victim).unwrap_or(all);
        let shortest = of_victims.1.saturating_sub(of_victims.0).max(1);
        let most = shortest.saturating_mul(AXIS_MAX);
        let (mut begin, mut end) = all;
        if end.saturating_sub(begin) > most {
            // As much before the victims as after them.
            let spare = (most - shortest) / 2;
            begin = begin.max(of_victims.0.saturating_sub(spare));
            end = end.min(of_victims.1.saturating_add(spare));
        }
        let end = end.max(begin + 1);
        Some(Self { begin, end })
    }

    /// With as many decimals as the axis needs.
    fn time(&self, ts: Ns, style: &TextStyle) -> String {
        let decimals = decimals(self.end - self.begin);
        match style.rel {
            Some(origin) => {
                let seconds = ts.saturating_sub(origin) as f64 / 1e9;
                format!("{seconds:+.decimals$}")
            }
            None => clock_face(ts, style, decimals, false),
        }
    }

    fn bar(&self, row: &TimelineRow, width: usize, marks: &Marks) -> String {
        let scale = width as f64 / (self.end - self.begin) as f64;
        let column = |ts: Ns| ((ts - self.begin) as f64 * scale).floor() as usize;
        let first = column(row.begin_ns.clamp(self.begin, self.end)).min(width - 1);
        let last = column(row.end_ns.clamp(self.begin, self.end) - 1).clamp(first, width - 1);
        let is_cut = |end: &str| row.cut.is_some_and(|cut| cut == end || cut == "both");
        let is_before = row.begin_ns < self.begin || is_cut("begin");
        let is_after = row.end_ns > self.end || is_cut("end");
        let drawn = last + 1 - first;
        let label = length(row.end_ns - row.begin_ns);
        let mut bar = vec![marks.line; drawn];
        if drawn == 1 {
            bar[0] = match (is_before, is_after) {
                (true, _) => marks.before,
                (_, true) => marks.after,
                _ => marks.point,
            };
        } else {
            bar[0] = if is_before { marks.before } else { marks.begin };
            bar[drawn - 1] = if is_after { marks.after } else { marks.end };
        }
        let text: Vec<char> = label.chars().collect();
        // Inside with a space on both sides, otherwise beside it where there is room.
        if drawn >= text.len() + 4 {
            let at = (drawn - text.len()) / 2;
            bar[at - 1] = ' ';
            bar[at..at + text.len()].copy_from_slice(&text);
            bar[at + text.len()] = ' ';
            let bar: String = bar.into_iter().collect();
            return format!("{}{bar}", " ".repeat(first));
        }
        let bar: String = bar.into_iter().collect();
        if last + 2 + text.len() <= width {
            return format!("{}{bar} {label}", " ".repeat(first));
        }
        if first > text.len() {
            return format!("{}{label} {bar}", " ".repeat(first - text.len() - 1));
        }
        format!("{}{bar}", " ".repeat(first))
    }
}

/// Decimals of a second for times of an axis of this length.
pub(super) fn decimals(axis: Ns) -> usize {
    match axis {
        1_000_000_000.. => 2,
        100_000_000.. => 3,
        1_000_000.. => 4,
        _ => 6,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Ns = 1_000_000;

    fn row(role: Role, (begin, end): (Ns, Ns), cut: Option<&'static str>) -> TimelineRow {
        TimelineRow {
            role,
            label: "sessiond".to_owned(),
            what: "openat(/srv/sessions/sess_000392)".to_owned(),
            begin_ns: begin * MS,
            end_ns: end * MS,
            cut,
            id: None,
        }
    }

    fn bars(rows: &[TimelineRow], width: usize, marks: &Marks) -> Vec<String> {
        let axis = Axis::of(rows).expect("rows");
        rows.iter().map(|row| axis.bar(row, width, marks)).collect()
    }

    #[test]
    fn bars_share_an_axis_and_contain_their_durations() {
        let rows = [
            row(Role::Culprit, (0, 2000), None),
            row(Role::Victim, (500, 1000), None),
            row(Role::Victim, (1900, 2000), None),
        ];
        assert_eq!(
            bars(&rows, 40, &BOX),
            [
                "├─────────────── 2.00 s ───────────────┤",
                "          ├ 500 ms ┤",
                "                              100 ms ├┤",
            ]
            .map(|bar| bar.replace("100 ms ├┤", " 100 ms ├┤"))
        );
    }

    #[test]
    fn ends_outside_of_the_axis_are_marked() {
        let rows = [
            row(Role::Culprit, (0, 100_000), Some("end")),
            row(Role::Victim, (50_000, 50_100), None),
        ];
        let bars = bars(&rows, 40, &ASCII);
        assert!(
            bars[0].starts_with('<') && bars[0].ends_with('>'),
            "{bars:?}"
        );
        assert!(bars[0].contains(" 100 s "), "{bars:?}");
        // The victim takes a quarter of the axis.
        assert_eq!(bars[1].trim(), "| 100 ms |");
        assert!(bars.iter().all(|bar| bar.is_ascii()));
    }

    #[test]
    fn a_point_is_still_visible() {
        let rows = [
            row(Role::Culprit, (0, 1000), None),
            row(Role::Victim, (1000, 1000), None),
            row(Role::Victim, (0, 0), None),
        ];
        for bar in bars(&rows, 30, &BOX) {
            assert!(bar.width() <= 30 && !bar.trim().is_empty(), "{bar:?}");
        }
    }
}
