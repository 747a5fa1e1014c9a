//! Lists of markers written by hand (deployments, configuration changes): CSV with the header
//! `time`, `text` and optionally `name`, or JSON with these keys, as an array or one object per
//! line.
//!
//! Grafana annotations (`GET /api/annotations`) are such a list, recognised by their `tags`.
//!
//! A time is ISO 8601 with a zone, or a number of seconds or milliseconds since 1970. Each marker
//! becomes a `marker` line of the text format ([`super::text`]), the same as from `whyslow mark`;
//! the name is put in front of the text.

use std::fmt::Write as _;

use serde_json::Value;
use whyslow_model::Ns;

use super::Bad;
use super::requests::{fields, timestamp};
use super::sysstat::quoted;
use super::text;

/// Numbers from here on are milliseconds: in seconds they would be in the year 5138.
const MILLISECONDS_FROM: f64 = 1e11;
/// Name of all manual markers.
const NAME: &str = "mark";

/// A file in the text format.
#[derive(Debug, Default)]
pub struct Translated {
    /// Its lines, for [`super::text`].
    pub text: String,
    /// Examples of lines that cannot be parsed, the first ones.
    pub bad: Vec<Bad>,
    /// Number of all such lines.
    pub bad_count: u64,
}

/// Whether a file starting with `head` is a marker list.
pub fn is_list(head: &str) -> bool {
    let begin = head.trim_start();
    if begin.starts_with('{') || begin.starts_with('[') {
        let begin = begin.trim_start_matches(['[', ' ', '\n', '\r', '\t']);
        let mut values = serde_json::Deserializer::from_str(begin).into_iter::<Value>();
        let Some(Ok(Value::Object(first))) = values.next() else {
            return false;
        };
        let is_annotation = first.get("time").is_some_and(Value::is_number)
            && first.get("text").is_some_and(Value::is_string)
            && first.get("tags").is_some_and(Value::is_array);
        return is_annotation || columns_fit(&mut first.keys().map(String::as_str));
    }
    let line = begin.lines().next().unwrap_or_default();
    columns_fit(&mut fields(line).iter().map(|name| name.trim()))
}

fn columns_fit(names: &mut dyn Iterator<Item = &str>) -> bool {
    let names: Vec<&str> = names.collect();
    let known = ["time", "text", "name"];
    names.contains(&"time")
        && names.contains(&"text")
        && names.iter().all(|name| known.contains(name))
}

/// Keeps at most `bad_max` examples of lines that cannot be parsed.
pub fn translate(list: &str, bad_max: usize) -> Translated {
    let mut done = Translated {
        text: format!("{}\n", text::MAGIC),
        ..Translated::default()
    };
    let begin = list.trim_start();
    if begin.starts_with('{') || begin.starts_with('[') {
        json(list, bad_max, &mut done);
    } else {
        csv(list, bad_max, &mut done);
    }
    done
}

impl Translated {
    fn mark(&mut self, time: &str, name: &str, text: &str) -> Result<(), String> {
        let at = time_of(time.trim()).ok_or_else(|| {
            let time: String = time.chars().take(40).collect();
            format!("invalid time {time:?}: expected ISO 8601 with a zone, or a number since 1970")
        })?;
        let label = match (name, text) {
            ("", text) => text.to_owned(),
            (name, "") => name.to_owned(),
            (name, text) => format!("{name}: {text}"),
        };
        let (sign, size) = (if at < 0 { "-" } else { "" }, at.unsigned_abs());
        let (seconds, rest) = (size / 1_000_000_000, size % 1_000_000_000);
        let _ = writeln!(
            self.text,
            "{sign}{seconds}.{rest:09} [-] marker name={NAME} text={}",
            quoted(&label)
        );
        Ok(())
    }

    fn bad(&mut self, bad: Bad, bad_max: usize) {
        self.bad_count += 1;
        if self.bad.len() < bad_max {
            self.bad.push(bad);
        }
    }
}

fn time_of(time: &str) -> Option<Ns> {
    let Ok(number) = time.parse::<f64>() else {
        return timestamp(&time.replacen(' ', "T", 1));
    };
    let unit = if number.abs() < MILLISECONDS_FROM {
        1e9
    } else {
        1e6
    };
    let ns = (number * unit).round();
    (ns.abs() < 9e18).then_some(ns as Ns)
}

fn csv(list: &str, bad_max: usize, done: &mut Translated) {
    let mut columns: Vec<String> = Vec::new();
    let mut offset = 0;
    for (number, line) in list.split_inclusive('\n').enumerate() {
        let fields = fields(line.trim_end_matches(['\n', '\r']));
        let text = |name: &str| {
            let at = columns.iter().position(|column| column == name);
            at.and_then(|at| fields.get(at))
                .map_or("", |field| &**field)
        };
        if columns.is_empty() {
            columns = fields.iter().map(|name| name.trim().to_owned()).collect();
        } else if !line.trim().is_empty()
            && let Err(what) = done.mark(text("time"), text("name"), text("text"))
        {
            let line = number + 1;
            done.bad(Bad { line, offset, what }, bad_max);
        }
        offset += line.len();
    }
}

fn json(list: &str, bad_max: usize, done: &mut Translated) {
    let mut values = serde_json::Deserializer::from_str(list).into_iter::<Value>();
    loop {
        let before = values.byte_offset();
        let marks = match values.next() {
            None => return,
            Some(Ok(Value::Array(marks))) => marks,
            Some(Ok(mark)) => vec![mark],
            Some(Err(error)) => {
                let what = error.to_string();
                let (line, offset) = (error.line(), before);
                return done.bad(Bad { line, offset, what }, bad_max);
            }
        };
        for (number, mark) in marks.iter().enumerate() {
            let text = |key: &str| match mark.get(key) {
                Some(Value::String(text)) => text.clone(),
                Some(Value::Null) | None => String::new(),
                Some(other) => other.to_string(),
            };
            if let Err(what) = done.mark(&text("time"), &text("name"), &text("text")) {
                let what = format!("marker {} of this list: {what}", number + 1);
                let line = 1 + memchr::memchr_iter(b'\n', &list.as_bytes()[..before]).count();
                let offset = before;
                done.bad(Bad { line, offset, what }, bad_max);
            }
        }
    }
}
