//! Access to cells of answers by column name.

use whyslow_analysis::LogRow;
use whyslow_model::answer::{Answer, AnswerTable, Value};

/// A row of an answer's table, or a row of a log of which only some columns were read.
#[derive(Clone, Copy)]
pub(crate) enum Row<'a> {
    Answer {
        table: &'a AnswerTable,
        cells: &'a [Value],
        number: usize,
    },
    Log(&'a LogRow<'a>),
}

/// Rows of the tables whose name starts with `name`.
pub(crate) fn rows<'a>(answer: &'a Answer, name: &str) -> Vec<Row<'a>> {
    let tables = answer.tables.iter();
    let tables = tables.filter(|table| table.name.starts_with(name));
    tables.flat_map(rows_of).collect()
}

pub(crate) fn rows_of(table: &AnswerTable) -> impl Iterator<Item = Row<'_>> {
    let rows = table.rows.iter().enumerate();
    rows.map(move |(number, cells)| Row::Answer {
        table,
        cells,
        number,
    })
}

impl<'a> Row<'a> {
    pub(crate) fn value(&self, column: &str) -> &'a Value {
        let Row::Answer { table, cells, .. } = self else {
            return &Value::Null;
        };
        let columns = &table.columns;
        let place = columns.iter().position(|known| known.name == column);
        place
            .and_then(|place| cells.get(place))
            .unwrap_or(&Value::Null)
    }

    pub(crate) fn int(&self, column: &str) -> Option<i64> {
        if let Row::Log(row) = self {
            return row.int(column);
        }
        match self.value(column) {
            Value::Int(number) => Some(*number),
            _ => None,
        }
    }

    pub(crate) fn float(&self, column: &str) -> Option<f64> {
        if let Row::Log(row) = self {
            return row.int(column).map(|number| number as f64);
        }
        match self.value(column) {
            Value::Int(number) => Some(*number as f64),
            Value::Float(number) => Some(*number),
            _ => None,
        }
    }

    pub(crate) fn text(&self, column: &str) -> Option<&'a str> {
        if let Row::Log(row) = self {
            return row.text(column);
        }
        match self.value(column) {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    pub(crate) fn list(&self, column: &str) -> Vec<&'a str> {
        let Value::List(values) = self.value(column) else {
            return Vec::new();
        };
        let texts = values.iter().filter_map(|value| match value {
            Value::Text(text) => Some(text.as_ref()),
            _ => None,
        });
        texts.collect()
    }

    /// Whether the window or the recording cuts the row.
    pub(crate) fn is_cut(&self) -> bool {
        match self {
            // Marks are in row order, and there may be as many as rows.
            Row::Answer { table, number, .. } => {
                let cut = table.cut.binary_search_by_key(number, |(row, _)| *row);
                cut.is_ok()
            }
            Row::Log(_) => false,
        }
    }
}
