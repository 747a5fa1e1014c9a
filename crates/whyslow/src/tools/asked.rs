//! Cells of an answer by the names of their columns.

use whyslow_model::answer::{Answer, AnswerTable, Value};

/// A row of an answer's table.
#[derive(Clone, Copy)]
pub(super) struct Row<'a> {
    table: &'a AnswerTable,
    cells: &'a [Value],
    number: usize,
}

/// Rows of the tables whose names begin so.
pub(super) fn rows<'a>(answer: &'a Answer, name: &str) -> Vec<Row<'a>> {
    let tables = answer.tables.iter();
    let tables = tables.filter(|table| table.name.starts_with(name));
    tables.flat_map(rows_of).collect()
}

pub(super) fn rows_of(table: &AnswerTable) -> impl Iterator<Item = Row<'_>> {
    let rows = table.rows.iter().enumerate();
    rows.map(move |(number, cells)| Row {
        table,
        cells,
        number,
    })
}

impl<'a> Row<'a> {
    pub(super) fn value(&self, column: &str) -> &'a Value {
        let columns = &self.table.columns;
        let place = columns.iter().position(|known| known.name == column);
        place
            .and_then(|place| self.cells.get(place))
            .unwrap_or(&Value::Null)
    }

    pub(super) fn int(&self, column: &str) -> Option<i64> {
        match self.value(column) {
            Value::Int(number) => Some(*number),
            _ => None,
        }
    }

    pub(super) fn float(&self, column: &str) -> Option<f64> {
        match self.value(column) {
            Value::Int(number) => Some(*number as f64),
            Value::Float(number) => Some(*number),
            _ => None,
        }
    }

    pub(super) fn text(&self, column: &str) -> Option<&'a str> {
        match self.value(column) {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Whether the window or the recording cuts it.
    pub(super) fn is_cut(&self) -> bool {
        self.table.cut.iter().any(|(row, _)| *row == self.number)
    }
}
