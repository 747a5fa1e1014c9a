//! Arrow IPC and Parquet: one table with typed columns. The rest of the answer is in the schema's
//! metadata.

use std::collections::HashMap;
use std::io::Write;
use std::sync::Arc;

use arrow_array::builder::{ListBuilder, StringBuilder};
use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type};
use arrow_array::{
    Array, ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, StringArray,
};
use arrow_ipc::writer::StreamWriter;
use arrow_schema::{ArrowError, DataType, Field, Schema};
use parquet::arrow::{ArrowSchemaConverter, add_encoded_arrow_schema_to_metadata};
use parquet::data_type::{self, ByteArray};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
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
    let schema = batch.schema();
    let parquet = ArrowSchemaConverter::new().convert(&schema)?;
    let mut properties = WriterProperties::builder().build();
    add_encoded_arrow_schema_to_metadata(&schema, &mut properties);
    let mut file = SerializedFileWriter::new(out, parquet.root_schema_ptr(), properties.into())?;
    let mut group = file.next_row_group()?;
    for array in batch.columns() {
        if let Some(mut column) = group.next_column()? {
            write_column(&mut column, array)?;
            column.close()?;
        }
    }
    group.close()?;
    file.close()?;
    Ok(())
}

/// Writes one column of the types that [`array`] builds.
///
/// Not by the `ArrowWriter` of the parquet crate: it handles every type of Arrow, and brings almost a
/// megabyte of code for that.
fn write_column(
    column: &mut SerializedColumnWriter<'_>,
    array: &ArrayRef,
) -> Result<(), ParquetError> {
    let levels: Vec<i16> = present(array).collect();
    match array.data_type() {
        DataType::Boolean => {
            let values: Vec<bool> = array.as_boolean().iter().flatten().collect();
            let typed = column.typed::<data_type::BoolType>();
            typed.write_batch(&values, Some(&levels), None)?;
        }
        DataType::Int64 => {
            let values: Vec<i64> = array.as_primitive::<Int64Type>().iter().flatten().collect();
            let typed = column.typed::<data_type::Int64Type>();
            typed.write_batch(&values, Some(&levels), None)?;
        }
        DataType::Float64 => {
            let values = array.as_primitive::<Float64Type>().iter().flatten();
            let values: Vec<f64> = values.collect();
            let typed = column.typed::<data_type::DoubleType>();
            typed.write_batch(&values, Some(&levels), None)?;
        }
        DataType::List(_) => {
            // Definition levels: 0 for no list, 1 for an empty one, 2 for an item that is null, 3 for
            // any other. Repetition levels: 0 for the first item of a list, 1 for the following ones.
            let (mut definition, mut repetition, mut values) = (Vec::new(), Vec::new(), Vec::new());
            for list in array.as_list::<i32>() {
                match list {
                    Some(items) if !items.is_empty() => {
                        definition.extend(present(&items).map(|is_present| 2 + is_present));
                        repetition.extend((0..items.len()).map(|item| i16::from(item > 0)));
                        values.extend(bytes(&items));
                    }
                    none_or_empty => {
                        definition.push(i16::from(none_or_empty.is_some()));
                        repetition.push(0);
                    }
                }
            }
            let typed = column.typed::<data_type::ByteArrayType>();
            typed.write_batch(&values, Some(&definition), Some(&repetition))?;
        }
        _ => {
            let values: Vec<ByteArray> = bytes(array).collect();
            let typed = column.typed::<data_type::ByteArrayType>();
            typed.write_batch(&values, Some(&levels), None)?;
        }
    }
    Ok(())
}

/// 1 for each value, 0 for each null.
fn present(array: &ArrayRef) -> impl Iterator<Item = i16> {
    (0..array.len()).map(|row| i16::from(array.is_valid(row)))
}

fn bytes(texts: &ArrayRef) -> impl Iterator<Item = ByteArray> {
    texts
        .as_string::<i32>()
        .iter()
        .flatten()
        .map(ByteArray::from)
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
        ("whyslow.query", answer.query.clone()),
        ("whyslow.table", table.name.clone()),
        ("whyslow.lost_ranges", answer.losses.len().to_string()),
        ("whyslow.caveats", answer.caveats.join("\n")),
    ];
    if let Some(state) = &answer.state {
        entries.push(("whyslow.state", state.name().to_owned()));
    }
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

#[cfg(test)]
pub(crate) mod tests {
    use whyslow_model::answer::AnswerColumn;

    use super::*;

    /// The one batch of a Parquet file, with the schema of the file.
    pub(crate) fn parquet_rows(bytes: &[u8]) -> RecordBatch {
        let bytes = bytes::Bytes::copy_from_slice(bytes);
        let reader = parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder::try_new(bytes);
        let reader = reader.expect("a Parquet file");
        let schema = Arc::clone(reader.schema());
        let mut reader = reader.build().expect("a reader");
        let batch = reader.next().expect("one batch").expect("rows");
        assert!(reader.next().is_none());
        batch.with_schema(schema).expect("the same types")
    }

    #[test]
    fn parquet_keeps_nulls_and_lists_of_every_shape() {
        let column = |name: &str, measure| AnswerColumn::new(name, name, measure);
        let columns = vec![
            column("flag", Measure::Text),
            column("count", Measure::Count),
            column("share", Measure::Ratio),
            column("name", Measure::Text),
            column("names", Measure::Text),
        ];
        let list = |items: &[Option<&str>]| {
            Value::List(
                items
                    .iter()
                    .map(|item| item.map_or(Value::Null, Value::from))
                    .collect(),
            )
        };
        let mut table = AnswerTable::new("shapes", "", columns);
        table.rows = vec![
            vec![
                Value::Bool(true),
                1.into(),
                Value::Float(0.5),
                "a".into(),
                list(&[Some("x"), None, Some("")]),
            ],
            vec![Value::Null; 5],
            vec![
                Value::Bool(false),
                i64::MIN.into(),
                7.into(),
                "".into(),
                list(&[]),
            ],
            vec![
                Value::Null,
                Value::Null,
                Value::Float(-0.0),
                Value::Null,
                list(&[None]),
            ],
        ];
        let answer = Answer {
            tables: vec![table],
            ..Answer::default()
        };
        let (mut arrow, mut parquet) = (Vec::new(), Vec::new());
        write_arrow(&answer, &answer.tables[0], &mut arrow).expect("memory takes it");
        write_parquet(&answer, &answer.tables[0], &mut parquet).expect("memory takes it");
        let mut stream =
            arrow_ipc::reader::StreamReader::try_new(arrow.as_slice(), None).expect("a stream");
        let wanted = stream.next().expect("one batch").expect("rows");
        assert_eq!(parquet_rows(&parquet).columns(), wanted.columns());
    }
}
