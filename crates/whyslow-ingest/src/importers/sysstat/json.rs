//! `iostat -o JSON`, `mpstat -o JSON`, `sadf -j`.
//!
//! A file is a list of samples, which are parsed one at a time: all complete samples of an
//! unfinished or damaged file are used, and memory is that of one sample. Names are those of the
//! text output ([`super::names`]), so that the same counters result from each output format of sar.

use serde_json::{Map, Value};
use whyslow_model::Ns;

use super::super::stamp::{self, DateOrder, SECOND_NS, Stamp};
use super::names::{named, subject};
use super::{Of, ReportWriter};

const LIST: &str = "\"statistics\"";
const TIME: &str = "\"timestamp\"";
/// Maximum nesting depth of groups.
const DEPTH_MAX: usize = 12;

pub(super) fn read(report: &str, writer: &mut ReportWriter) {
    let mut at = 0;
    let mut is_known = false;
    while let Some(list) = report[at..].find(LIST) {
        is_known = true;
        machine(&report[at..at + list], writer);
        at = samples(report, at + list + LIST.len(), writer);
    }
    if !is_known {
        writer.bad_at(report, report.len(), "the report is truncated".to_owned());
    }
}

/// The text before the samples: host, kernel, and a date for times without one.
fn machine(before: &str, writer: &mut ReportWriter) {
    if let Some(name) = text_of(before, "nodename") {
        writer.fact("hostname", &name);
    }
    if let Some(release) = text_of(before, "release") {
        writer.fact("kernel_release", &release);
    }
    let date = text_of(before, "date").or_else(|| text_of(before, "file-date"));
    if let Some(date) = date.and_then(|date| stamp::date(&date, writer.dates)) {
        writer.clock.set_date(date);
    }
}

fn text_of(before: &str, key: &str) -> Option<String> {
    let (_, value) = before.rsplit_once(&format!("\"{key}\""))?;
    let value = value.trim_start().strip_prefix(':')?.trim_start();
    let end = value.strip_prefix('"')?.find('"')? + 2;
    serde_json::from_str(value.get(..end)?).ok()
}

/// Reads samples up to the end of their list; returns the offset after it.
fn samples(report: &str, begin: usize, writer: &mut ReportWriter) -> usize {
    let mut times = Times::new(report, begin);
    let mut at = behind_signs(report, begin);
    let mut series = Series {
        is_since_boot: !leaves_out_first(&report[begin..at]),
        ..Series::default()
    };
    loop {
        at = behind_signs(report, at);
        let text = &report[at..];
        if text.starts_with(']') {
            return at + 1;
        }
        // A sample ends before the time of the next one, so no text is read twice.
        let next = times.after(at).map(|next| next - at);
        let sample = object(&text[..next.unwrap_or(text.len())]);
        let parsed = sample.map(|sample| (sample.len(), serde_json::from_str(sample)));
        let what = match parsed {
            Some((length, Ok(groups))) => {
                if let Err(what) = series.sample(&groups, writer) {
                    writer.bad_at(report, at, what);
                }
                at += length;
                continue;
            }
            Some((_, Err(error))) => format!("invalid JSON in a sample: {error}"),
            None if next.is_none() => "the report is truncated".to_owned(),
            None => "unexpected text between two samples".to_owned(),
        };
        writer.bad_at(report, at, what);
        let Some(next) = next else {
            return report.len();
        };
        at += text[..next].rfind('{').filter(|at| *at > 0).unwrap_or(next);
        if at + TIME.len() <= report.len() && report[at..].starts_with(TIME) {
            let what = "timestamp without a sample".to_owned();
            writer.bad_at(report, at, what);
            at += TIME.len();
        }
    }
}

/// Skips separators between two samples.
fn behind_signs(report: &str, at: usize) -> usize {
    let text = &report[at..];
    let text = text.trim_start_matches([' ', '\t', '\r', '\n', ',', ':', '[']);
    report.len() - text.len()
}

/// With `-y` iostat prints the line end, in some versions with a comma, of the omitted first
/// sample.
fn leaves_out_first(before: &str) -> bool {
    before.contains(',') || before.matches('\n').count() > 1
}

/// Offsets of times, each searched once regardless of the number of samples without one.
struct Times<'r> {
    report: &'r str,
    /// The next one, and the one after it.
    own: Option<usize>,
    next: Option<usize>,
}

impl<'r> Times<'r> {
    fn new(report: &'r str, begin: usize) -> Self {
        let mut times = Self {
            report,
            own: None,
            next: None,
        };
        times.own = times.find(begin);
        times.next = times.own.and_then(|own| times.find(own + TIME.len()));
        times
    }

    fn find(&self, from: usize) -> Option<usize> {
        self.report[from..].find(TIME).map(|at| from + at)
    }

    /// The second time from `at` on.
    fn after(&mut self, at: usize) -> Option<usize> {
        while self.own.is_some_and(|own| own < at) {
            self.own = self.next;
            self.next = self.own.and_then(|own| self.find(own + TIME.len()));
        }
        self.next
    }
}

/// The group at the start of a text, if complete.
fn object(text: &str) -> Option<&str> {
    let (mut depth, mut is_text, mut is_escaped) = (0_u32, false, false);
    if !text.starts_with('{') {
        return None;
    }
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if is_text => is_escaped = true,
            b'"' => is_text = !is_text,
            _ if is_text => {}
            b'{' | b'[' => depth += 1,
            b'}' | b']' => {
                depth -= 1;
                if depth == 0 {
                    return Some(&text[..=at]);
                }
            }
            _ => {}
        }
    }
    None
}

/// State from the previous samples.
#[derive(Debug, Default)]
struct Series {
    /// The first sample of iostat is an average since boot.
    is_since_boot: bool,
    before: Option<Ns>,
}

/// Time of a sample.
#[derive(Clone, Copy)]
struct When<'a> {
    tool: &'a str,
    at: Ns,
    interval: Option<Ns>,
}

impl Series {
    fn sample(
        &mut self,
        groups: &Map<String, Value>,
        writer: &mut ReportWriter,
    ) -> Result<(), String> {
        let is_since_boot = std::mem::take(&mut self.is_since_boot);
        let Some(time) = groups.get("timestamp") else {
            writer.done.untimed += 1;
            return Ok(());
        };
        let (time, reported) = time_of(time, writer.dates).ok_or("invalid time".to_owned())?;
        let at = writer.at(time);
        let is_iostat =
            groups.contains_key("avg-cpu") || reported.is_none() && groups.contains_key("disk");
        let tool = match reported {
            Some(_) => "sar",
            None if is_iostat => "iostat",
            None => "mpstat",
        };
        let before = self.before.replace(at);
        if is_iostat && is_since_boot {
            writer.done.since_boot += 1;
            return Ok(());
        }
        let interval = reported.or_else(|| before.map(|before| at.saturating_sub(before)));
        let when = When { tool, at, interval };
        // An error in one group does not affect the others.
        let mut result = Ok(());
        for (name, group) in groups {
            if name != "timestamp"
                && let Err(what) = walk((name, group), 0, when, writer)
            {
                result = Err(what);
            }
        }
        result
    }
}

/// The time, and the interval if the file has it.
fn time_of(time: &Value, dates: Option<DateOrder>) -> Option<(Stamp, Option<Ns>)> {
    let complete_stamp = |text: &str| {
        let words: Vec<&str> = text.split_whitespace().collect();
        let (stamp, taken) = stamp::stamp(&words, dates)?;
        (taken == words.len()).then_some(stamp)
    };
    if let Some(text) = time.as_str() {
        return Some((complete_stamp(text)?, None));
    }
    let (date, of_day) = (time["date"].as_str()?, time["time"].as_str()?);
    let stamp = complete_stamp(&format!("{date} {of_day}"))?;
    let is_utc = time["utc"].as_i64() == Some(1);
    let stamp = match stamp {
        Stamp::Wall(at) if is_utc => Stamp::Epoch(at),
        stamp => stamp,
    };
    let interval = time["interval"].as_i64().unwrap_or(0);
    Some((stamp, Some(interval.saturating_mul(SECOND_NS))))
}

fn walk(
    (group, value): (&str, &Value),
    depth: usize,
    when: When<'_>,
    writer: &mut ReportWriter,
) -> Result<(), String> {
    if depth > DEPTH_MAX {
        return Err("groups nested too deeply".to_owned());
    }
    match value {
        Value::Array(items) => {
            for item in items {
                walk((group, item), depth + 1, when, writer)?;
            }
        }
        Value::Object(values) => {
            let subject = subject(group, values);
            let mut counters = String::new();
            for (key, value) in values {
                match value {
                    Value::Number(number) => {
                        if let Some((name, scale)) = named(group, key) {
                            scale.push(&mut counters, &name, &number.to_string())?;
                        }
                    }
                    Value::Array(lines) if key == "intr" => interrupts(lines, &mut counters)?,
                    Value::Array(_) | Value::Object(_) => {
                        walk((key, value), depth + 1, when, writer)?;
                    }
                    _ => {}
                }
            }
            let of = Of {
                tool: when.tool,
                subject: subject.as_deref(),
                ..Of::default()
            };
            writer.row(&of, (when.at, when.interval), &counters);
        }
        _ => {}
    }
    Ok(())
}

/// `[{"name": "24", "value": 0.00}, …]` of one CPU.
fn interrupts(lines: &[Value], counters: &mut String) -> Result<(), String> {
    for line in lines {
        if let (Some(name), Some(value)) = (line["name"].as_str(), line["value"].as_number()) {
            let name = format!("{name}/s");
            super::columns::Scale::of(&name).push(counters, &name, &value.to_string())?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::{Form, translate};

    #[test]
    fn samples_without_times_are_not_searched_through_again_and_again() {
        // With a search to the end for each of them this would take minutes.
        let samples = "{},".repeat(1 << 18);
        let report = format!("{{\"sysstat\":{{\"hosts\":[{{\"statistics\":[{samples}]}}]}}}}");
        let done = translate(Form::Json, &report, None, 5);
        assert_eq!((done.untimed, done.bad_count), (1 << 18, 0));
    }

    #[test]
    fn the_first_sample_is_used_where_iostat_left_out_the_one_since_boot() {
        let sample = |second| {
            let time = format!("\"timestamp\": \"11/25/26 04:13:{second}\"");
            format!("\t{{\n{time},\n\"avg-cpu\": {{\"user\": 82.46}}\n}}")
        };
        let rows = |begin: &str| {
            let samples = format!("{},\n{}", sample(32), sample(33));
            let report =
                format!("{{\"sysstat\": {{\n\"statistics\": [\n{begin}{samples}\n]\n}}}}\n");
            let done = translate(Form::Json, &report, None, 5);
            assert_eq!(done.bad_count, 0);
            (done.rows, done.since_boot)
        };
        assert_eq!(rows(""), (1, 1));
        assert_eq!(rows("\n"), (2, 0));
        assert_eq!(rows(",\n"), (2, 0));
    }
}
