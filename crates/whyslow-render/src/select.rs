//! `--cols`: selection of table columns.

use whyslow_model::answer::{Answer, AnswerTable, Value};

/// A list of columns as typed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Selection {
    only: Vec<String>,
    pub keep: Vec<String>,
    drop: Vec<String>,
    pub help: bool,
}

impl Selection {
    pub(crate) fn parse(text: &str) -> Self {
        let mut selection = Selection::default();
        for item in text
            .split(',')
            .map(str::trim)
            .filter(|item| !item.is_empty())
        {
            match (item.strip_prefix('+'), item.strip_prefix('-')) {
                (Some(name), _) => selection.keep.push(name.into()),
                (_, Some(name)) => selection.drop.push(name.into()),
                _ if item == "help" => selection.help = true,
                _ => selection.only.push(item.into()),
            }
        }
        selection
    }

    /// Whether columns are listed by name.
    pub(crate) fn names_columns(&self) -> bool {
        !self.only.is_empty()
    }

    /// Reduces the tables of an answer; an unknown column name is an error that lists the known
    /// ones.
    pub(crate) fn apply(&self, answer: &mut Answer) -> Result<(), String> {
        for name in self.only.iter().chain(&self.keep).chain(&self.drop) {
            let known = |table: &AnswerTable| table.columns.iter().any(|c| c.name == *name);
            if !answer.tables.iter().any(known) {
                return Err(format!(
                    "unknown column `{name}`; columns of this answer: {}",
                    names(answer)
                ));
            }
        }
        for table in &mut answer.tables {
            self.apply_to(table);
        }
        Ok(())
    }

    fn apply_to(&self, table: &mut AnswerTable) {
        let position = |name: &String| table.columns.iter().position(|c| c.name == *name);
        let wanted: Vec<usize> = if self.only.is_empty() {
            (0..table.columns.len()).collect()
        } else {
            self.only
                .iter()
                .chain(&self.keep)
                .filter_map(position)
                .collect()
        };
        let wanted: Vec<usize> = wanted
            .into_iter()
            .filter(|&at| !self.drop.contains(&table.columns[at].name))
            .collect();
        if wanted.iter().copied().eq(0..table.columns.len()) {
            for row in &mut table.rows {
                row.resize(wanted.len(), Value::Null);
            }
            return;
        }
        table.columns = wanted.iter().map(|&at| table.columns[at].clone()).collect();
        for row in &mut table.rows {
            *row = wanted
                .iter()
                .map(|&at| row.get(at).cloned().unwrap_or(Value::Null))
                .collect();
        }
    }
}

/// Unique columns of all tables, in order.
pub(crate) fn names(answer: &Answer) -> String {
    let mut names: Vec<&str> = Vec::new();
    for column in answer.tables.iter().flat_map(|table| &table.columns) {
        if !names.contains(&column.name.as_str()) {
            names.push(&column.name);
        }
    }
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use whyslow_model::answer::{AnswerColumn, Measure};

    fn answer() -> Answer {
        let columns = ["a", "b", "c"].map(|name| AnswerColumn::new(name, name, Measure::Count));
        let mut table = AnswerTable::new("t", "", columns.to_vec());
        table.rows.push(vec![1.into(), 2.into(), 3.into()]);
        Answer {
            tables: vec![table],
            ..Answer::default()
        }
    }

    #[test]
    fn columns_are_chosen_added_and_left_out() {
        let check = |text: &str, want: Result<&str, &str>| {
            let mut answer = answer();
            let got = Selection::parse(text).apply(&mut answer);
            match (got, want) {
                (Ok(()), Ok(want)) => {
                    assert_eq!(names(&answer), want, "{text}");
                    assert_eq!(
                        answer.tables[0].rows[0].len(),
                        answer.tables[0].columns.len()
                    );
                }
                (Err(message), Err(part)) => assert!(message.contains(part), "{message}"),
                (got, want) => panic!("{text}: {got:?}, not {want:?}"),
            }
        };
        check("", Ok("a, b, c"));
        check("c,a", Ok("c, a"));
        check("-b", Ok("a, c"));
        check("+b", Ok("a, b, c"));
        check("a,+c", Ok("a, c"));
        check("a,b,-a", Ok("b"));
        check(
            "x",
            Err("unknown column `x`; columns of this answer: a, b, c"),
        );
    }
}
