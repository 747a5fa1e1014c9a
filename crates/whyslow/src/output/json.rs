//! JSON: one document, or (NDJSON) one object a line.
//!
//! Times and lengths are integers in ns, sizes in bytes. Keys are only ever added. Rows of tables
//! carry `outlier` and `overlap` (`begin`, `end`, `both`, or null) for the signs `!` and `*`.

use std::io::{self, Write};

use serde_json::{Map, Value as Json, json};
use whyslow_model::answer::{Answer, AnswerTable, Form, LossNote, Value};

use super::escape::is_hostile;
use super::facts::series_label;
use super::{SCHEMA_VERSION, Subject};

pub(super) fn write_document(
    answer: &Answer,
    subject: &Subject,
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut document = head(answer, subject);
    let tables: Vec<Json> = answer.tables.iter().map(table).collect();
    document.insert("tables".into(), tables.into());
    let losses: Vec<Json> = answer.losses.iter().map(loss).collect();
    document.insert("losses".into(), losses.into());
    document.insert("caveats".into(), json!(answer.caveats));
    document.insert("next".into(), json!(answer.next));
    write_json(&Json::Object(document), true, out)?;
    out.write_all(b"\n")
}

/// Lines of `type` answer, row, facts, loss, caveat; each is whole by itself.
pub(super) fn write_lines(
    answer: &Answer,
    subject: &Subject,
    out: &mut dyn Write,
) -> io::Result<()> {
    write_line("answer", head(answer, subject), out)?;
    for table in &answer.tables {
        for index in 0..table.rows.len() {
            let mut object = Map::new();
            object.insert("table".into(), json!(table.name));
            object.extend(row(table, index));
            write_line("row", object, out)?;
        }
        if !table.facts.is_empty() {
            let mut object = Map::new();
            object.insert("table".into(), json!(table.name));
            object.insert("facts".into(), Json::Object(facts(table)));
            write_line("facts", object, out)?;
        }
    }
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
    write_json(&Json::Object(line), false, out)?;
    out.write_all(b"\n")
}

fn head(answer: &Answer, subject: &Subject) -> Map<String, Json> {
    let mut head = Map::new();
    head.insert("schema_version".into(), json!(SCHEMA_VERSION));
    head.insert("question".into(), json!(answer.question));
    head.insert("recording".into(), json!(subject.name));
    head.insert("host".into(), json!(subject.host));
    head.insert("zone".into(), json!(subject.zone));
    let window = answer
        .window
        .map(|(begin, end)| json!({"begin_ns": begin, "end_ns": end}));
    head.insert("window".into(), window.into());
    head
}

fn table(table: &AnswerTable) -> Json {
    let columns: Vec<Json> = table
        .columns
        .iter()
        .map(|column| {
            json!({
                "name": column.name,
                "title": column.title,
                "measure": measure_name(column.measure),
            })
        })
        .collect();
    let rows: Vec<Json> = (0..table.rows.len())
        .map(|index| Json::Object(row(table, index)))
        .collect();
    json!({
        "name": table.name,
        "title": table.title,
        "form": form_name(&table.form),
        "columns": columns,
        "rows": rows,
        "facts": facts(table),
    })
}

/// One row with its marks; keys in the order of the columns.
pub(super) fn row(table: &AnswerTable, index: usize) -> Map<String, Json> {
    let mut object: Map<String, Json> = table
        .columns
        .iter()
        .zip(&table.rows[index])
        .map(|(column, cell)| (column.name.clone(), value(cell)))
        .collect();
    if has_marks(&table.form) {
        object.insert("outlier".into(), table.outliers.contains(&index).into());
        object.insert("overlap".into(), json!(overlap(table, index)));
    }
    object
}

/// Whether rows can stand out or be cut; facts and cells of a heat map cannot.
pub(super) fn has_marks(form: &Form) -> bool {
    matches!(form, Form::Table | Form::Tree | Form::Histogram)
}

pub(super) fn overlap(table: &AnswerTable, index: usize) -> Option<&'static str> {
    let found = table.cut.iter().find(|(row, _)| *row == index);
    found.map(|(_, edge)| *edge)
}

/// Facts by name; those of several series are told apart by their label.
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

/// JSON in which characters a terminal would act upon are escaped.
fn write_json(json: &Json, pretty: bool, out: &mut dyn Write) -> io::Result<()> {
    let text = if pretty {
        serde_json::to_string_pretty(json)?
    } else {
        serde_json::to_string(json)?
    };
    // Line ends and indentation stand between tokens; inside of strings the serializer has
    // escaped controls below 0x20 already.
    let mut rest = text.as_str();
    while let Some(at) = rest.find(|c: char| is_hostile(c) && c != '\n') {
        out.write_all(&rest.as_bytes()[..at])?;
        let hostile = rest[at..].chars().next().unwrap_or_default();
        let mut units = [0_u16; 2];
        for unit in hostile.encode_utf16(&mut units) {
            write!(out, "\\u{unit:04x}")?;
        }
        rest = &rest[at + hostile.len_utf8()..];
    }
    out.write_all(rest.as_bytes())
}
