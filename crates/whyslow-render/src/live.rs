//! What is written while it happens: rows one by one, each whole and on its way at once.

use std::fmt::Write as _;
use std::io::Write as _;

use whyslow_base::args::{Format, OutputArgs, TalkArgs};
use whyslow_base::failure::Failure;
use whyslow_base::time::Zone;
use whyslow_model::answer::{AnswerTable, Measure, Value};
use whyslow_model::text::shown;

use crate::look::Paint;
use crate::moments::clock_face;
use crate::select::Selection;
use crate::write::look;
use crate::{json, printed, terminal};

/// Decimals of a second in the times of lines.
const DECIMALS: usize = 3;

/// The flags of an answer that is one of many: no pager, and one object a line.
pub fn args_of_many(args: &OutputArgs) -> Result<OutputArgs, Failure> {
    if args.output.is_some() {
        return Err(
            Failure::usage("answer after answer is written to standard output")
                .hint("redirect it: > FILE"),
        );
    }
    let format = match args.chosen_format() {
        Format::Json | Format::Ndjson => Format::Ndjson,
        format @ (Format::Text | Format::Csv | Format::Tsv) => format,
        _ => {
            return Err(
                Failure::usage("this form holds one answer, not one after the other")
                    .hint("say --json or --csv, or leave the interval out"),
            );
        }
    };
    Ok(OutputArgs {
        format,
        json: false,
        csv: false,
        no_pager: true,
        ..args.clone()
    })
}

/// Writes each row as a line: an object, or the titles of columns with their values.
pub fn write_rows_alone(
    table: &AnswerTable,
    zone: Zone,
    args: &OutputArgs,
    talk: &TalkArgs,
) -> Result<(), Failure> {
    let mut stdout = std::io::stdout().lock();
    if args.chosen_format() == Format::Ndjson {
        json::write_row_lines(table, &mut stdout)?;
        return stdout.flush().map_err(Failure::from);
    }
    let look = look(zone, &Selection::default(), terminal::size(), args, talk);
    for row in &table.rows {
        let mut line = String::new();
        for (column, value) in table.columns.iter().zip(row) {
            let text = match (value, column.measure) {
                (Value::Null, _) => continue,
                (Value::Int(ts), Measure::Time) => clock_face(*ts, &look, DECIMALS, false),
                _ => printed::single(column, value, &look),
            };
            let title = shown(&column.title, look.ascii);
            let _ = match column.measure {
                Measure::Time => write!(line, "  {text}"),
                _ => write!(line, "  {title} {text}"),
            };
        }
        let name = look.paint(Paint::Outlier, &table.title);
        writeln!(stdout, "{name}{line}")?;
    }
    stdout.flush().map_err(Failure::from)
}
