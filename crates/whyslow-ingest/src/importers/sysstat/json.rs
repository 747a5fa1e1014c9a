//! `iostat -o JSON`, `mpstat -o JSON`, `sadf -j`.
//!
//! A file is a list of samples, and each of them is read by itself: of a file that nobody finished, or
//! that is damaged in the middle, all samples that are whole are used, and memory is that of one.
//! Names are those of the text forms ([`super::names`]), so that what sar saw is the same counters
//! whichever way it is printed.

use serde_json::{Map, Value};
use whyslow_model::Ns;

use super::super::stamp::{self, DateOrder, SECOND_NS, Stamp};
use super::names::{named, subject};
use super::{Of, Teller};

const LIST: &str = "\"statistics\"";
const TIME: &str = "\"timestamp\"";
/// Groups in groups.
const DEPTH_MAX: usize = 12;

pub(super) fn read(report: &str, teller: &mut Teller) {
    let mut at = 0;
    let mut is_known = false;
    while let Some(list) = report[at..].find(LIST) {
        is_known = true;
        machine(&report[at..at + list], teller);
        at = samples(report, at + list + LIST.len(), teller);
    }
    if !is_known {
        teller.bad_at(report, report.len(), "the report breaks off".to_owned());
    }
}

/// What stands before the samples: host, kernel, and a date for times that have none.
fn machine(before: &str, teller: &mut Teller) {
    if let Some(name) = text_of(before, "nodename") {
        teller.fact("hostname", &name);
    }
    if let Some(release) = text_of(before, "release") {
        teller.fact("kernel_release", &release);
    }
    let date = text_of(before, "date").or_else(|| text_of(before, "file-date"));
    if let Some(date) = date.and_then(|date| stamp::date(&date, teller.dates)) {
        teller.clock.set_date(date);
    }
}

fn text_of(before: &str, key: &str) -> Option<String> {
    let (_, value) = before.rsplit_once(&format!("\"{key}\""))?;
    let value = value.trim_start().strip_prefix(':')?.trim_start();
    let end = value.strip_prefix('"')?.find('"')? + 2;
    serde_json::from_str(value.get(..end)?).ok()
}

/// Reads samples until their list ends; gives the place behind it.
fn samples(report: &str, begin: usize, teller: &mut Teller) -> usize {
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
        // No sample reaches over the time of the one after it, so nothing is read twice.
        let next = times.after(at).map(|next| next - at);
        let sample = object(&text[..next.unwrap_or(text.len())]);
        let parsed = sample.map(|sample| (sample.len(), serde_json::from_str(sample)));
        let what = match parsed {
            Some((length, Ok(groups))) => {
                if let Err(what) = series.sample(&groups, teller) {
                    teller.bad_at(report, at, what);
                }
                at += length;
                continue;
            }
            Some((_, Err(error))) => format!("a sample that is no JSON: {error}"),
            None if next.is_none() => "the report breaks off".to_owned(),
            None => "something between two samples that is none".to_owned(),
        };
        teller.bad_at(report, at, what);
        let Some(next) = next else {
            return report.len();
        };
        at += text[..next].rfind('{').filter(|at| *at > 0).unwrap_or(next);
        if at + TIME.len() <= report.len() && report[at..].starts_with(TIME) {
            let what = "a time that no sample begins with".to_owned();
            teller.bad_at(report, at, what);
            at += TIME.len();
        }
    }
}

/// What stands between two samples.
fn behind_signs(report: &str, at: usize) -> usize {
    let text = &report[at..];
    let text = text.trim_start_matches([' ', '\t', '\r', '\n', ',', ':', '[']);
    report.len() - text.len()
}

/// With `-y` iostat prints the end of the line, in some versions with a comma, of the sample that it leaves out.
fn leaves_out_first(before: &str) -> bool {
    before.contains(',') || before.matches('\n').count() > 1
}

/// Places of times, each looked for once however many samples have none.
struct Times<'r> {
    report: &'r str,
    /// The next one, and that behind it.
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

    /// The time behind the first from here on.
    fn after(&mut self, at: usize) -> Option<usize> {
        while self.own.is_some_and(|own| own < at) {
            self.own = self.next;
            self.next = self.own.and_then(|own| self.find(own + TIME.len()));
        }
        self.next
    }
}

/// The group that a text begins with, if it is whole.
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

/// What was read of the samples before.
#[derive(Debug, Default)]
struct Series {
    /// The first of iostat is since the machine was started.
    is_since_boot: bool,
    before: Option<Ns>,
}

/// The moment that a sample is of.
#[derive(Clone, Copy)]
struct When<'a> {
    tool: &'a str,
    at: Ns,
    interval: Option<Ns>,
}

impl Series {
    fn sample(&mut self, groups: &Map<String, Value>, teller: &mut Teller) -> Result<(), String> {
        let is_since_boot = std::mem::take(&mut self.is_since_boot);
        let Some(time) = groups.get("timestamp") else {
            teller.done.untimed += 1;
            return Ok(());
        };
        let (time, told) =
            time_of(time, teller.dates).ok_or("a time that is not known".to_owned())?;
        let at = teller.at(time);
        let is_iostat =
            groups.contains_key("avg-cpu") || told.is_none() && groups.contains_key("disk");
        let tool = match told {
            Some(_) => "sar",
            None if is_iostat => "iostat",
            None => "mpstat",
        };
        let before = self.before.replace(at);
        if is_iostat && is_since_boot {
            teller.done.since_boot += 1;
            return Ok(());
        }
        let interval = told.or_else(|| before.map(|before| at.saturating_sub(before)));
        let when = When { tool, at, interval };
        // What is wrong with one group says nothing of the others.
        let mut result = Ok(());
        for (name, group) in groups {
            if name != "timestamp"
                && let Err(what) = walk((name, group), 0, when, teller)
            {
                result = Err(what);
            }
        }
        result
    }
}

/// The time, and the length of the interval where it is told.
fn time_of(time: &Value, dates: Option<DateOrder>) -> Option<(Stamp, Option<Ns>)> {
    let whole = |text: &str| {
        let words: Vec<&str> = text.split_whitespace().collect();
        let (stamp, taken) = stamp::stamp(&words, dates)?;
        (taken == words.len()).then_some(stamp)
    };
    if let Some(text) = time.as_str() {
        return Some((whole(text)?, None));
    }
    let (date, of_day) = (time["date"].as_str()?, time["time"].as_str()?);
    let stamp = whole(&format!("{date} {of_day}"))?;
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
    teller: &mut Teller,
) -> Result<(), String> {
    if depth > DEPTH_MAX {
        return Err("groups in too many groups".to_owned());
    }
    match value {
        Value::Array(items) => {
            for item in items {
                walk((group, item), depth + 1, when, teller)?;
            }
        }
        Value::Object(values) => {
            let subject = subject(group, values);
            let mut told = String::new();
            for (key, value) in values {
                match value {
                    Value::Number(number) => {
                        if let Some((name, scale)) = named(group, key) {
                            scale.push(&mut told, &name, &number.to_string())?;
                        }
                    }
                    Value::Array(lines) if key == "intr" => interrupts(lines, &mut told)?,
                    Value::Array(_) | Value::Object(_) => {
                        walk((key, value), depth + 1, when, teller)?;
                    }
                    _ => {}
                }
            }
            let of = Of {
                tool: when.tool,
                subject: subject.as_deref(),
                ..Of::default()
            };
            teller.row(&of, (when.at, when.interval), &told);
        }
        _ => {}
    }
    Ok(())
}

/// `[{"name": "24", "value": 0.00}, …]` of one CPU.
fn interrupts(lines: &[Value], told: &mut String) -> Result<(), String> {
    for line in lines {
        if let (Some(name), Some(value)) = (line["name"].as_str(), line["value"].as_number()) {
            let name = format!("{name}/s");
            super::columns::Scale::of(&name).push(told, &name, &value.to_string())?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::{Form, translate};

    #[test]
    fn samples_without_times_are_not_searched_through_again_and_again() {
        // By a search to the end for each this would take minutes.
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
