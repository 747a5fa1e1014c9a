//! Arrow IPC and Parquet: one table with typed columns. The rest of the answer is in the schema's
//! metadata.

use std::collections::HashMap;
use std::io::Write;
use std::sync::Arc;

use arrow_array::builder::{ListBuilder, StringBuilder};
use arrow_array::{ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, StringArray};
use arrow_ipc::writer::StreamWriter;
use arrow_schema::{ArrowError, DataType, Field, Schema};
use parquet::arrow::ArrowWriter;
use parquet::errors::ParquetError;
use whyslow_model::answer::{Answer, AnswerTable, Measure, Value};

use crate::json::{self, SCHEMA_VERSION};
use crate::marks::Marks;

pub(super) fn write_arrow(
    answer: &Answer,
    table: &AnswerTable,
    out: &mut dyn Write,
) -> Result<(), ArrowError> {
    let batch = batch(answer, table)?;
    let mut writer = StreamWriter::try_new(out, &batch.schema())?;
    writer.write(&batch)?;
    writer.finish()
}

pub(super) fn write_parquet(
    answer: &Answer,
    table: &AnswerTable,
    out: &mut (dyn Write + Send),
) -> Result<(), ParquetError> {
    let batch = batch(answer, table)?;
    let mut writer = ArrowWriter::try_new(out, batch.schema(), None)?;
    writer.write(&batch)?;
    writer.close()?;
    Ok(())
}

fn batch(answer: &Answer, table: &AnswerTable) -> Result<RecordBatch, ArrowError> {
    let mut fields = Vec::new();
    let mut arrays: Vec<ArrayRef> = Vec::new();
    for (at, column) in table.columns.iter().enumerate() {
        let cells: Vec<&Value> = table
            .rows
            .iter()
            .map(|row| row.get(at).unwrap_or(&Value::Null))
            .collect();
        let array = array(column.measure, &cells);
        fields.push(Field::new(&column.name, array.data_type().clone(), true));
        arrays.push(array);
    }
    let marks = Marks::of(table);
    if marks.exist() {
        let rows = || (0..table.rows.len()).filter_map(|row| marks.get(row));
        let outliers: Vec<bool> = rows().map(|mark| mark.outlier).collect();
        let overlaps: Vec<Option<&str>> = rows().map(|mark| mark.overlap).collect();
        fields.push(Field::new("outlier", DataType::Boolean, true));
        arrays.push(Arc::new(BooleanArray::from(outliers)));
        fields.push(Field::new("overlap", DataType::Utf8, true));
        arrays.push(Arc::new(StringArray::from(overlaps)));
    }
    let schema = Schema::new_with_metadata(fields, metadata(answer, table));
    RecordBatch::try_new(Arc::new(schema), arrays)
}

fn metadata(answer: &Answer, table: &AnswerTable) -> HashMap<String, String> {
    let mut entries = vec![
        ("whyslow.schema_version", SCHEMA_VERSION.to_string()),
        ("whyslow.question", answer.question.clone()),
        ("whyslow.table", table.name.clone()),
        ("whyslow.lost_ranges", answer.losses.len().to_string()),
        ("whyslow.caveats", answer.caveats.join("\n")),
    ];
    if let Some((begin, end)) = answer.window {
        entries.push(("whyslow.window_begin_ns", begin.to_string()));
        entries.push(("whyslow.window_end_ns", end.to_string()));
    }
    entries
        .into_iter()
        .map(|(key, value)| (key.to_owned(), value))
        .collect()
}

/// The type depends on the measure alone, so it is the same with and without rows. A column whose
/// cells do not fit the type becomes text.
fn array(measure: Measure, cells: &[&Value]) -> ArrayRef {
    let is =
        |test: fn(&Value) -> bool| cells.iter().all(|cell| **cell == Value::Null || test(cell));
    let has_rows = cells.iter().any(|cell| **cell != Value::Null);
    if has_rows && is(|cell| matches!(cell, Value::Bool(_))) {
        return Arc::new(
            cells
                .iter()
                .map(|cell| match cell {
                    Value::Bool(flag) => Some(*flag),
                    _ => None,
                })
                .collect::<BooleanArray>(),
        );
    }
    if has_rows && is(|cell| matches!(cell, Value::List(_))) {
        return lists(cells);
    }
    let is_real = matches!(
        measure,
        Measure::Ratio | Measure::Rate | Measure::ByteRate | Measure::Number
    );
    let is_text = matches!(measure, Measure::Text | Measure::Path | Measure::Id);
    if !is_text && !is_real && is(|cell| matches!(cell, Value::Int(_))) {
        return Arc::new(
            cells
                .iter()
                .map(|cell| match cell {
                    Value::Int(number) => Some(*number),
                    _ => None,
                })
                .collect::<Int64Array>(),
        );
    }
    if !is_text && is(|cell| matches!(cell, Value::Int(_) | Value::Float(_))) {
        return Arc::new(
            cells
                .iter()
                .map(|cell| match cell {
                    Value::Int(number) => Some(*number as f64),
                    Value::Float(number) => Some(*number),
                    _ => None,
                })
                .collect::<Float64Array>(),
        );
    }
    Arc::new(cells.iter().map(|cell| text(cell)).collect::<StringArray>())
}

fn lists(cells: &[&Value]) -> ArrayRef {
    let mut builder = ListBuilder::new(StringBuilder::new());
    for cell in cells {
        match cell {
            Value::List(items) => {
                for item in items {
                    builder.values().append_option(text(item));
                }
                builder.append(true);
            }
            _ => builder.append(false),
        }
    }
    Arc::new(builder.finish())
}

fn text(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::Text(text) => Some(text.clone()),
        other => Some(json::value(other).to_string()),
    }
}
