//! Marks of table rows: outliers and rows cut by the window.

use whyslow_model::answer::{AnswerTable, Form};

/// The marks of each row, if rows have any.
pub(super) struct Marks {
    rows: Option<Vec<Mark>>,
}

/// `outlier` and `overlap` of machine-readable formats.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Mark {
    pub(super) outlier: bool,
    pub(super) overlap: Option<&'static str>,
}

impl Marks {
    /// Facts and cells of a heat map have no marks.
    pub(super) fn of(table: &AnswerTable) -> Self {
        if !matches!(table.form, Form::Table | Form::Tree | Form::Histogram) {
            return Self { rows: None };
        }
        let mut rows = vec![Mark::default(); table.rows.len()];
        for row in &table.outliers {
            if let Some(mark) = rows.get_mut(*row) {
                mark.outlier = true;
            }
        }
        for (row, edge) in &table.cut {
            if let Some(mark) = rows.get_mut(*row) {
                mark.overlap.get_or_insert(edge);
            }
        }
        Self { rows: Some(rows) }
    }

    pub(super) fn exist(&self) -> bool {
        self.rows.is_some()
    }

    pub(super) fn get(&self, row: usize) -> Option<Mark> {
        self.rows.as_ref()?.get(row).copied()
    }
}
