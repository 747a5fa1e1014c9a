//! Parses headers, and splits lines into their columns.
//!
//! Column widths vary with the content, and thread names may contain spaces: a line is split so
//! that each field fits the type of its column.

mod field;
mod row;
mod tool;

pub(super) use field::Field;
use field::Shape;
pub(super) use row::Row;
pub(super) use tool::Tool;

/// Maximum number of words in a thread name.
const COMM_WORDS_MAX: usize = 8;

#[derive(Debug)]
pub(super) struct Header {
    pub(super) tool: Tool,
    columns: Vec<Field>,
    is_csv: bool,
}

impl Header {
    pub(super) fn read(line: &str) -> Option<Self> {
        let is_csv = line.contains(',') && !line.contains(' ');
        let mut columns = Vec::new();
        let names: Vec<&str> = if is_csv {
            line.split(',').collect()
        } else {
            line.split_whitespace().collect()
        };
        if names.len() < 2 || names.len() > 16 {
            return None;
        }
        for name in &names {
            // runqslower -P: the previously running thread, whose name may contain spaces.
            if *name == "PREV" {
                columns.push(Field::Rest);
                break;
            }
            columns.push(Field::of(name)?);
        }
        let has = |fields: &[Field]| fields.iter().all(|field| columns.contains(field));
        let tool = tool::TOOLS
            .iter()
            .find(|(_, _, fields)| has(fields))
            .map(|(tool, ..)| *tool);
        let tool = match tool {
            None if has(&[Field::Call]) => Tool::Sync,
            // The two headers differ in the width of the first column only.
            Some(Tool::Open) if line.contains("PID     COMM") => Tool::Stat,
            // tcpconnect prints the local address first, tcpaccept the remote one.
            Some(Tool::TcpAccept) if is_before(&columns, Field::Local, Field::Remote) => {
                Tool::TcpConnect
            }
            tool => tool?,
        };
        let comms = columns
            .iter()
            .filter(|field| **field == Field::Comm)
            .count();
        (comms <= 1).then_some(Self {
            tool,
            columns,
            is_csv,
        })
    }

    /// The fields of a line, if they match the header.
    pub(super) fn row<'l>(&self, line: &'l str) -> Option<Row<'l>> {
        if self.is_csv {
            let count = self.columns.len();
            let fields: Vec<&str> = line.splitn(count, ',').collect();
            let fields = self.columns.iter().copied().zip(fields);
            let row = Row {
                fields: fields.collect(),
            };
            let fits = |(field, text): &(Field, &str)| field.shape().fits(text);
            return (row.fields.len() == count && row.fields.iter().all(fits)).then_some(row);
        }
        let words = words(line);
        let lengths = (1..=COMM_WORDS_MAX).chain([0]);
        let has_comm = self.columns.contains(&Field::Comm);
        let mut lengths = lengths.take(if has_comm { COMM_WORDS_MAX + 1 } else { 1 });
        lengths.find_map(|length| self.cut(line, &words, length))
    }

    fn cut<'l>(&self, line: &'l str, words: &[(usize, &'l str)], comm: usize) -> Option<Row<'l>> {
        let mut fields = Vec::with_capacity(self.columns.len());
        let mut next = 0;
        for field in &self.columns {
            let text = match field.shape() {
                Shape::Comm if comm == 0 => "",
                Shape::Comm => {
                    let (begin, _) = words.get(next)?;
                    let (end, last) = words.get(next + comm - 1)?;
                    next += comm;
                    line.get(*begin..end + last.len())?
                }
                Shape::Rest => {
                    let begin = words.get(next).map_or(line.len(), |(begin, _)| *begin);
                    next = words.len();
                    line.get(begin..)?
                }
                shape => {
                    let (_, text) = words.get(next)?;
                    next += 1;
                    shape.fits(text).then_some(*text)?
                }
            };
            fields.push((*field, text));
        }
        (next == words.len()).then_some(Row { fields })
    }
}

fn is_before(columns: &[Field], first: Field, second: Field) -> bool {
    let place = |of| columns.iter().position(|field| *field == of);
    place(first) < place(second)
}

/// Words with their offsets.
fn words(line: &str) -> Vec<(usize, &str)> {
    let base = line.as_ptr() as usize;
    line.split_whitespace()
        .map(|word| (word.as_ptr() as usize - base, word))
        .collect()
}
