//! JSON: one document, or (NDJSON) one object per line.
//!
//! Times and durations are integers in ns, sizes in bytes. Keys are only ever added. Table rows
//! have `outlier` and `overlap` (`begin`, `end`, `both`, or null) for the marks `!` and `*`.

use std::io::{self, Write};
use std::ops::Range;

use rayon::iter::{IntoParallelRefIterator, ParallelIterator};
use serde::ser::{Serialize, Serializer};
use serde_json::{Map, Value as Json, json};
use whyslow_model::answer::{Answer, AnswerTable, Form, LossNote, Value};
use whyslow_model::text::is_hostile;
use whyslow_model::topic_state::TopicState;

use crate::facts::series_label;
use crate::marks::Marks;
use crate::subject::Subject;

/// Version of the machine-readable formats. Keys are only ever added, so it increases only when the
/// meaning of a key changes.
pub const SCHEMA_VERSION: u32 = 2;

pub(super) fn write_document(
    answer: &Answer,
    subject: &Subject,
    out: &mut dyn Write,
) -> io::Result<()> {
    out.write_all(b"{\n")?;
    for (key, value) in &head(answer, subject) {
        write_entry("  ", key, value, ",", out)?;
    }
    write_list("  ", "tables", &answer.tables, ",", out, write_table)?;
    let losses = answer.losses.iter().map(loss);
    write_list("  ", "losses", losses, ",", out, write_item)?;
    write_list("  ", "caveats", &answer.caveats, ",", out, write_item)?;
    write_entry("  ", "next", &answer.next, "", out)?;
    out.write_all(b"}\n")
}

/// A key on its own line.
fn write_entry(
    indent: &str,
    key: &str,
    value: &impl Serialize,
    end: &str,
    out: &mut dyn Write,
) -> io::Result<()> {
    write!(out, "{indent}\"{key}\": ")?;
    serde_json::to_writer(Escaping(out), value)?;
    writeln!(out, "{end}")
}

/// A key with a list whose items start on their own lines.
fn write_list<T>(
    indent: &str,
    key: &str,
    items: impl IntoIterator<Item = T>,
    end: &str,
    out: &mut dyn Write,
    write: impl Fn(T, &mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    write!(out, "{indent}\"{key}\": [")?;
    let mut separator = "\n";
    for item in items {
        write!(out, "{separator}{indent}  ")?;
        write(item, out)?;
        separator = ",\n";
    }
    if separator != "\n" {
        write!(out, "\n{indent}")?;
    }
    writeln!(out, "]{end}")
}

fn write_item(item: impl Serialize, out: &mut dyn Write) -> io::Result<()> {
    Ok(serde_json::to_writer(Escaping(out), &item)?)
}

fn write_table(table: &AnswerTable, out: &mut dyn Write) -> io::Result<()> {
    let indent = "      ";
    out.write_all(b"{\n")?;
    write_entry(indent, "name", &table.name, ",", out)?;
    write_entry(indent, "title", &table.title, ",", out)?;
    write_entry(indent, "form", &form_name(&table.form), ",", out)?;
    let columns = table.columns.iter().map(|column| {
        json!({
            "name": column.name,
            "title": column.title,
            "measure": measure_name(column.measure),
        })
    });
    write_list(indent, "columns", columns, ",", out, write_item)?;
    write!(out, "{indent}\"rows\": [")?;
    Rows::of(table)?.write("", ("\n        ", ",\n        "), out)?;
    let end = if table.rows.is_empty() {
        ""
    } else {
        "\n      "
    };
    writeln!(out, "{end}],")?;
    write_entry(indent, "facts", &facts(table), "", out)?;
    out.write_all(b"    }")
}

/// Lines of `type` answer, row, facts, loss, caveat; each is self-contained.
pub(super) fn write_lines(
    answer: &Answer,
    subject: &Subject,
    out: &mut dyn Write,
) -> io::Result<()> {
    write_first_line(answer, subject, out)?;
    for table in &answer.tables {
        write_row_lines(table, out)?;
        if !table.facts.is_empty() {
            let mut object = Map::new();
            object.insert("table".into(), json!(table.name));
            object.insert("facts".into(), Json::Object(facts(table)));
            write_line("facts", object, out)?;
        }
    }
    write_last_lines(answer, out)
}

pub(super) fn write_first_line(
    answer: &Answer,
    subject: &Subject,
    out: &mut dyn Write,
) -> io::Result<()> {
    write_line("answer", head(answer, subject), out)
}

pub(super) fn write_row_lines(table: &AnswerTable, out: &mut dyn Write) -> io::Result<()> {
    let name = Json::from(table.name.as_str());
    let entries = format!("\"type\":\"row\",\"table\":{name},");
    Rows::of(table)?.write(&entries, ("", "\n"), out)?;
    let end = if table.rows.is_empty() { "" } else { "\n" };
    out.write_all(end.as_bytes())
}

pub(super) fn write_last_lines(answer: &Answer, out: &mut dyn Write) -> io::Result<()> {
    for note in &answer.losses {
        if let Json::Object(object) = loss(note) {
            write_line("loss", object, out)?;
        }
    }
    for caveat in &answer.caveats {
        let object = Map::from_iter([("text".to_owned(), json!(caveat))]);
        write_line("caveat", object, out)?;
    }
    Ok(())
}

fn write_line(kind: &str, object: Map<String, Json>, out: &mut dyn Write) -> io::Result<()> {
    let mut line = Map::from_iter([("type".to_owned(), json!(kind))]);
    line.extend(object);
    serde_json::to_writer(Escaping(out), &line)?;
    out.write_all(b"\n")
}

fn head(answer: &Answer, subject: &Subject) -> Map<String, Json> {
    let mut head = Map::new();
    head.insert("schema_version".into(), json!(SCHEMA_VERSION));
    head.insert("query".into(), json!(answer.query));
    head.insert("recording".into(), json!(subject.name));
    head.insert("host".into(), json!(subject.host));
    head.insert("zone".into(), json!(subject.zone));
    let window = answer
        .window
        .map(|(begin, end)| json!({"begin_ns": begin, "end_ns": end}));
    head.insert("window".into(), window.into());
    let state = answer.state.as_ref();
    let state_name = state.map(TopicState::name);
    head.insert("state".into(), state_name.into());
    let reason = state.and_then(TopicState::reason);
    head.insert("reason".into(), reason.into());
    let record_with = state.and_then(TopicState::record_with);
    head.insert("record_with".into(), record_with.into());
    if let Some(left_out) = &answer.left_out {
        let by_name = left_out
            .by_name
            .iter()
            .map(|(name, count, total)| json!({"name": name, "count": count, "total_ns": total}));
        let object = json!({
            "what": left_out.what,
            "count": left_out.count,
            "total_ns": left_out.total_ns,
            "by_name": by_name.collect::<Vec<_>>(),
            "option": left_out.option,
        });
        head.insert("left_out".into(), object);
    }
    head.extend(subject.more.clone());
    head
}

// An answer may have a hundred thousand rows: they are serialized directly, without intermediate
// JSON values.

/// Number of rows encoded sequentially; more are distributed over threads.
const ROWS_ENCODED: usize = 500;
/// Encoded pieces per thread that may wait for the writer.
const PIECES_PER_THREAD: usize = 8;

struct Rows<'a> {
    table: &'a AnswerTable,
    marks: Marks,
    /// The text before each value, encoded once: unique keys in the order of the columns, each with
    /// the column that it shows. JSON allows one value per key, so the last of two columns with the
    /// same name is used.
    keys: Vec<(Vec<u8>, usize)>,
}

impl<'a> Rows<'a> {
    fn of(table: &'a AnswerTable) -> io::Result<Self> {
        let mut keys: Vec<(&str, usize)> = Vec::with_capacity(table.columns.len());
        for (at, column) in table.columns.iter().enumerate() {
            match keys.iter_mut().find(|(name, _)| *name == column.name) {
                Some((_, shown)) => *shown = at,
                None => keys.push((&column.name, at)),
            }
        }
        let encoded = keys.into_iter().map(|(name, at)| {
            let mut key = Vec::new();
            serde_json::to_writer(Escaping(&mut key), name)?;
            key.push(b':');
            Ok((key, at))
        });
        Ok(Self {
            table,
            marks: Marks::of(table),
            keys: encoded.collect::<io::Result<_>>()?,
        })
    }

    /// Writes each row as an object with these entries first, after the text for the first row or
    /// for every other row.
    fn write(
        &self,
        entries: &str,
        (first, other): (&str, &str),
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let encoded = |rows: &Range<usize>| -> io::Result<Vec<u8>> {
            let mut text = Vec::new();
            for index in rows.clone() {
                let before = if index == 0 { first } else { other };
                text.extend_from_slice(before.as_bytes());
                text.push(b'{');
                text.extend_from_slice(entries.as_bytes());
                self.write_cells(index, &mut text)?;
                match text.last_mut() {
                    Some(last) if *last == b',' => *last = b'}',
                    _ => text.push(b'}'),
                }
            }
            Ok(text)
        };
        let rows = self.table.rows.len();
        let at_once = if self.has_long_lists() {
            1
        } else {
            ROWS_ENCODED
        };
        let piece = |begin| begin..rows.min(begin + at_once);
        let pieces: Vec<Range<usize>> = (0..rows).step_by(at_once).map(piece).collect();
        if let [only] = pieces.as_slice() {
            return out.write_all(&encoded(only)?);
        }
        for pieces in pieces.chunks(PIECES_PER_THREAD * rayon::current_num_threads()) {
            let texts: Vec<_> = pieces.par_iter().map(encoded).collect();
            for text in texts {
                out.write_all(&text?)?;
            }
        }
        Ok(())
    }

    /// Whether ten rows may take longer than thousands otherwise: a file row lists all its users.
    fn has_long_lists(&self) -> bool {
        let is_long =
            |cell: &Value| matches!(cell, Value::List(items) if items.len() > ROWS_ENCODED);
        let mut rows = self.table.rows.iter();
        rows.any(|row| row.iter().any(is_long))
    }

    /// Entries of a row with its marks, each followed by a comma.
    fn write_cells(&self, index: usize, text: &mut Vec<u8>) -> io::Result<()> {
        let cells = &self.table.rows[index];
        for (key, at) in &self.keys {
            if let Some(cell) = cells.get(*at) {
                text.extend_from_slice(key);
                match cell {
                    // Numbers need no escaping.
                    Value::Int(number) => serde_json::to_writer(&mut *text, number)?,
                    cell => serde_json::to_writer(Escaping(text), &Cell(cell))?,
                }
                text.push(b',');
            }
        }
        if let Some(mark) = self.marks.get(index) {
            write!(text, "\"outlier\":{},\"overlap\":", mark.outlier)?;
            serde_json::to_writer(&mut *text, &mark.overlap)?;
            text.push(b',');
        }
        Ok(())
    }
}

struct Cell<'a>(&'a Value);

impl Serialize for Cell<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Value::Null => serializer.serialize_unit(),
            Value::Int(number) => serializer.serialize_i64(*number),
            Value::Float(number) => serializer.serialize_f64(*number), // NaN and infinities: null
            Value::Text(text) => serializer.serialize_str(text),
            Value::Bool(flag) => serializer.serialize_bool(*flag),
            Value::List(items) => serializer.collect_seq(items.iter().map(Cell)),
        }
    }
}

/// Facts by name; facts of several series are distinguished by their label.
fn facts(table: &AnswerTable) -> Map<String, Json> {
    let mut object = Map::new();
    for (label, column, fact) in &table.facts {
        let label = series_label(label, column);
        let key = if label.is_empty() {
            column.name.clone()
        } else {
            format!("{label}.{}", column.name)
        };
        object.insert(key, value(fact));
    }
    object
}

fn loss(loss: &LossNote) -> Json {
    json!({
        "kind": loss.kind,
        "count": loss.count,
        "cpu": loss.cpu,
        "begin_ns": loss.begin,
        "end_ns": loss.end,
    })
}

pub(super) fn value(value: &Value) -> Json {
    match value {
        Value::Null => Json::Null,
        Value::Int(number) => json!(number),
        Value::Float(number) => json!(number), // NaN and infinities become null
        Value::Text(text) => json!(text),
        Value::Bool(flag) => json!(flag),
        Value::List(items) => items.iter().map(self::value).collect(),
    }
}

fn form_name(form: &Form) -> &'static str {
    match form {
        Form::Table => "table",
        Form::Histogram => "histogram",
        Form::HeatMap => "heat_map",
        Form::Tree => "tree",
        Form::Facts => "facts",
    }
}

fn measure_name(measure: whyslow_model::answer::Measure) -> &'static str {
    use whyslow_model::answer::Measure;
    match measure {
        Measure::Text => "text",
        Measure::Path => "path",
        Measure::Count => "count",
        Measure::Time => "time_ns",
        Measure::Duration => "duration_ns",
        Measure::Bytes => "bytes",
        Measure::Ratio => "ratio",
        Measure::Rate => "per_second",
        Measure::ByteRate => "bytes_per_second",
        Measure::Number => "number",
        Measure::Id => "id",
    }
}

/// JSON with the characters escaped that a terminal would interpret. The serializer passes whole
/// characters and has already escaped controls below 0x20 inside strings: a line end is always
/// between tokens.
struct Escaping<'o>(&'o mut dyn Write);

impl Write for Escaping<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let plain = |byte: &u8| matches!(byte, b' '..=b'~' | b'\n');
        if bytes.iter().all(plain) {
            self.0.write_all(bytes)?;
            return Ok(bytes.len());
        }
        let text = std::str::from_utf8(bytes).map_err(io::Error::other)?;
        let mut rest = text;
        while let Some(at) = rest.find(|c: char| is_hostile(c) && c != '\n') {
            self.0.write_all(&rest.as_bytes()[..at])?;
            let hostile = rest[at..].chars().next().unwrap_or_default();
            let mut units = [0_u16; 2];
            for unit in hostile.encode_utf16(&mut units) {
                write!(self.0, "\\u{unit:04x}")?;
            }
            rest = &rest[at + hostile.len_utf8()..];
        }
        self.0.write_all(rest.as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}
