//! Answers as text, and as rows by column name.

use whyslow_model::answer::{Answer, AnswerTable, Value};

/// A cell in a form that two programs agree on: numbers with six significant digits.
pub(crate) fn cell(value: &Value) -> String {
    match value {
        Value::Null => "NULL".into(),
        Value::Int(number) => number.to_string(),
        Value::Float(number) => float(*number),
        Value::Text(text) => text.clone(),
        Value::Bool(yes) => yes.to_string(),
        Value::List(values) => values.iter().map(cell).collect::<Vec<_>>().join("; "),
    }
}

pub(crate) fn float(number: f64) -> String {
    if number == 0.0 {
        "0".into()
    } else {
        format!("{number:.6e}")
    }
}

pub(crate) fn table<'a>(answer: &'a Answer, name: &str) -> &'a AnswerTable {
    let found = answer.tables.iter().find(|table| table.name == name);
    found.unwrap_or_else(|| {
        let names: Vec<&str> = answer
            .tables
            .iter()
            .map(|table| table.name.as_str())
            .collect();
        panic!(
            "no table {name} among {names:?}; caveats {:?}",
            answer.caveats
        )
    })
}

/// The named columns of a table, one row per line.
pub(crate) fn columns(table: &AnswerTable, names: &[&str]) -> String {
    let places: Vec<usize> = names.iter().map(|name| place(table, name)).collect();
    let rows = table.rows.iter().map(|row| {
        let cells: Vec<String> = places.iter().map(|place| cell(&row[*place])).collect();
        cells.join(" | ")
    });
    rows.collect::<Vec<_>>().join("\n")
}

pub(crate) fn place(table: &AnswerTable, name: &str) -> usize {
    let found = table.columns.iter().position(|column| column.name == name);
    found.unwrap_or_else(|| {
        let names: Vec<&str> = table
            .columns
            .iter()
            .map(|column| column.name.as_str())
            .collect();
        panic!("no column {name} among {names:?}")
    })
}
