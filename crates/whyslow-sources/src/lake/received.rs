//! Converts an Arrow stream of the Python package to an answer.

use std::io::Cursor;

use arrow_array::cast::AsArray as _;
use arrow_array::types::{Float64Type, Int32Type, Int64Type};
use arrow_array::{Array, RecordBatch};
use arrow_ipc::reader::StreamReader;
use arrow_schema::DataType;
use serde::Deserialize;
use serde_json::Value as Json;
use whyslow_base::failure::Failure;
use whyslow_model::answer::{Answer, AnswerColumn, AnswerTable, LossNote, Measure, Value};

use super::cell_text;

/// Key in the schema's metadata.
const KEY: &str = "whyslow";

/// The description in the stream.
#[derive(Debug, Default, Deserialize)]
struct About {
    #[serde(default)]
    query: String,
    #[serde(default)]
    title: String,
    #[serde(default)]
    caveats: Vec<String>,
    #[serde(default)]
    facts: serde_json::Map<String, Json>,
    #[serde(default)]
    columns: serde_json::Map<String, Json>,
    #[serde(default)]
    next: Option<String>,
}

/// Lost events of the queried recordings.
#[derive(Debug, Deserialize)]
struct Lost {
    /// Number of events, as far as known.
    events: i64,
    /// Time range of these recordings.
    begin_ns: i64,
    end_ns: i64,
}

/// Reads an Arrow stream of the package.
pub fn answer(stream: &[u8]) -> Result<Answer, Failure> {
    let wrong = |why: String| {
        Failure::new("cannot parse the output of the Python package")
            .caused_by(&std::io::Error::other(why))
    };
    let reader = StreamReader::try_new(Cursor::new(stream), None)
        .map_err(|error| wrong(error.to_string()))?;
    let schema = reader.schema();
    let about = schema
        .metadata()
        .get(KEY)
        .map_or(Ok(About::default()), |text| serde_json::from_str(text));
    let about: About = about.map_err(|error| wrong(error.to_string()))?;
    let columns = schema.fields().iter().enumerate().map(|(place, field)| {
        let named = about.columns.get(field.name()).and_then(Json::as_str);
        let measure = named
            .and_then(measure)
            .unwrap_or_else(|| plain(field.data_type()));
        let title = title(field.name(), measure);
        // The SQL puts the most important column first.
        let priority = u8::try_from(place).unwrap_or(u8::MAX);
        AnswerColumn::new(field.name(), &title, measure)
            .priority(priority)
            .long(measure == Measure::Text && place > 0)
    });
    let name = if about.query.is_empty() {
        "rows"
    } else {
        &about.query
    };
    let mut table = AnswerTable::new(name, &about.title, columns.collect());
    for batch in reader {
        let batch = batch.map_err(|error| wrong(error.to_string()))?;
        for row in 0..batch.num_rows() {
            let cells: Result<Vec<Value>, String> = batch
                .columns()
                .iter()
                .map(|column| cell(column, row))
                .collect();
            table.rows.push(cells.map_err(wrong)?);
        }
        mark(&batch, &mut table);
    }
    facts(&about, &mut table);
    let lost = about.facts.get("lost").cloned().map(serde_json::from_value);
    let lost: Option<Option<Lost>> = lost.transpose().map_err(|error| wrong(error.to_string()))?;
    let loss = |lost: Lost| LossNote {
        begin: lost.begin_ns,
        end: Some(lost.end_ns),
        cpu: None,
        kind: "events".into(),
        count: Some(lost.events).filter(|events| *events > 0),
    };
    Ok(Answer {
        query: format!("fleet {name}"),
        losses: lost.flatten().map(loss).into_iter().collect(),
        tables: vec![table],
        caveats: about.caveats,
        next: about.next,
        ..Answer::default()
    })
}

fn facts(about: &About, table: &mut AnswerTable) {
    for (name, value) in &about.facts {
        let (measure, value) = match value {
            Json::Number(number) if number.is_i64() => {
                (of_fact(name), Value::Int(number.as_i64().unwrap_or(0)))
            }
            Json::Number(number) => (
                Measure::Number,
                Value::Float(number.as_f64().unwrap_or(0.0)),
            ),
            Json::String(text) => (Measure::Text, Value::Text(text.clone())),
            Json::Bool(flag) => (Measure::Text, Value::Bool(*flag)),
            _ => continue,
        };
        let column = AnswerColumn::new(name, &name.replace('_', " "), measure);
        table.facts.push((name.clone(), column, value));
    }
}

/// Marks rows that deviate as outliers.
fn mark(batch: &RecordBatch, table: &mut AnswerTable) {
    let begin = table.rows.len() - batch.num_rows();
    let Some(deviates) = batch
        .column_by_name("deviates")
        .and_then(|column| column.as_boolean_opt())
    else {
        return;
    };
    let marked =
        (0..batch.num_rows()).filter(|row| deviates.is_valid(*row) && deviates.value(*row));
    table.outliers.extend(marked.map(|row| begin + row));
}

fn of_fact(name: &str) -> Measure {
    if name.contains("bytes") {
        Measure::Bytes
    } else if name.ends_with("_ns") {
        Measure::Duration
    } else {
        Measure::Count
    }
}

/// Column title without unit.
fn title(name: &str, measure: Measure) -> String {
    let bare = match measure {
        Measure::Time | Measure::Duration => name.strip_suffix("_ns").unwrap_or(name),
        Measure::Bytes => name.strip_suffix("_bytes").unwrap_or(name),
        _ => name,
    };
    bare.replace('_', " ")
}

fn measure(name: &str) -> Option<Measure> {
    Some(match name {
        "Text" => Measure::Text,
        "Path" => Measure::Path,
        "Count" => Measure::Count,
        "Time" => Measure::Time,
        "Duration" => Measure::Duration,
        "Bytes" => Measure::Bytes,
        "Ratio" => Measure::Ratio,
        "Rate" => Measure::Rate,
        "ByteRate" => Measure::ByteRate,
        "Number" => Measure::Number,
        "Id" => Measure::Id,
        _ => return None,
    })
}

fn plain(kind: &DataType) -> Measure {
    match kind {
        DataType::Int64 | DataType::Int32 => Measure::Count,
        DataType::Float64 => Measure::Number,
        _ => Measure::Text,
    }
}

fn cell(column: &dyn Array, row: usize) -> Result<Value, String> {
    if column.is_null(row) {
        return Ok(Value::Null);
    }
    Ok(match column.data_type() {
        DataType::Null => Value::Null,
        DataType::Int64 => Value::Int(column.as_primitive::<Int64Type>().value(row)),
        DataType::Int32 => Value::Int(i64::from(column.as_primitive::<Int32Type>().value(row))),
        DataType::Float64 => Value::Float(column.as_primitive::<Float64Type>().value(row)),
        DataType::Boolean => Value::Bool(column.as_boolean().value(row)),
        DataType::Utf8 => Value::Text(column.as_string::<i32>().value(row).to_owned()),
        DataType::LargeUtf8 => Value::Text(column.as_string::<i64>().value(row).to_owned()),
        // Custom SQL may return any type.
        _ => Value::Text(cell_text::text(column, row)?),
    })
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::sync::Arc;

    use arrow_array::{BooleanArray, Int64Array, StringArray, UInt64Array};
    use arrow_ipc::writer::StreamWriter;
    use arrow_schema::{Field, Schema};

    use super::*;

    #[test]
    fn cells_measures_and_caveats_are_those_that_were_sent() {
        let about = r#"{"query": "deviations", "title": "hosts", "caveats": ["two hosts were not judged"],
            "facts": {"bytes_read": 7, "engine": "duckdb", "lost": {"events": 0, "begin_ns": 1, "end_ns": 2}}, "columns": {"host": "Text", "value_ns": "Duration"}}"#;
        let fields = vec![
            Field::new("host", DataType::Utf8, true),
            Field::new("value_ns", DataType::Int64, true),
            Field::new("deviates", DataType::Boolean, true),
            Field::new("odd", DataType::UInt64, true),
        ];
        let metadata = HashMap::from([(KEY.to_owned(), about.to_owned())]);
        let schema = Arc::new(Schema::new_with_metadata(fields, metadata));
        let batch = RecordBatch::try_new(
            Arc::clone(&schema),
            vec![
                Arc::new(StringArray::from(vec![Some("web-1"), None])),
                Arc::new(Int64Array::from(vec![Some(5), None])),
                Arc::new(BooleanArray::from(vec![Some(false), Some(true)])),
                Arc::new(UInt64Array::from(vec![Some(9), None])),
            ],
        )
        .unwrap();
        let mut stream = Vec::new();
        let mut writer = StreamWriter::try_new(&mut stream, &schema).unwrap();
        writer.write(&batch).unwrap();
        writer.write(&batch).unwrap();
        writer.finish().unwrap();
        drop(writer);
        let answer = answer(&stream).unwrap();
        assert_eq!(answer.query, "fleet deviations");
        assert_eq!(answer.caveats, ["two hosts were not judged"]);
        let table = &answer.tables[0];
        assert_eq!(table.rows.len(), 4);
        assert_eq!(
            table.rows[0],
            [Value::from("web-1"), 5.into(), false.into(), "9".into()]
        );
        assert_eq!(
            table.rows[1],
            [Value::Null, Value::Null, true.into(), Value::Null]
        );
        assert_eq!(table.outliers, [1, 3]);
        assert_eq!(
            (table.columns[1].title.as_str(), table.columns[1].measure),
            ("value", Measure::Duration)
        );
        assert_eq!(table.facts.len(), 2);
        // The number is unknown.
        let losses: Vec<_> = answer
            .losses
            .iter()
            .map(|loss| (loss.begin, loss.end, loss.count))
            .collect();
        assert_eq!(losses, [(1, Some(2), None)]);
    }

    #[test]
    fn something_else_is_no_answer() {
        assert!(answer(b"").is_err());
        assert!(answer(b"hello, this is no Arrow").is_err());
    }
}
