//! Live output: each row is written and flushed as soon as it is complete.

use std::fmt::Write as _;
use std::io::Write as _;

use whyslow_base::args::{Format, OutputArgs, TalkArgs};
use whyslow_base::failure::Failure;
use whyslow_base::time::Zone;
use whyslow_model::answer::{AnswerTable, Measure, Value};
use whyslow_model::text::shown;

use crate::select::Selection;
use crate::style::Paint;
use crate::timestamps::clock_face;
use crate::write::style;
use crate::{json, printed, terminal};

/// Decimals of the seconds in timestamps of lines.
const DECIMALS: usize = 3;

/// The flags of an answer that is one of many: no pager, and one JSON object per line.
pub fn args_of_many(args: &OutputArgs) -> Result<OutputArgs, Failure> {
    if args.output.is_some() {
        return Err(
            Failure::usage("cannot write the answers of several intervals to a file")
                .hint("redirect standard output instead of -o: > FILE"),
        );
    }
    let format = match args.chosen_format() {
        Format::Json | Format::Ndjson => Format::Ndjson,
        format @ (Format::Text | Format::Csv | Format::Tsv) => format,
        _ => {
            return Err(Failure::usage(
                "cannot write several intervals in this format: it holds one answer",
            )
            .hint("use --json or --csv, or omit the interval"));
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

/// Writes each row as a line: a JSON object, or column titles with their values.
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
    let style = style(zone, &Selection::default(), terminal::size(), args, talk);
    for row in &table.rows {
        let mut line = String::new();
        for (column, value) in table.columns.iter().zip(row) {
            let text = match (value, column.measure) {
                (Value::Null, _) => continue,
                (Value::Int(ts), Measure::Time) => clock_face(*ts, &style, DECIMALS, false),
                _ => printed::single(column, value, &style),
            };
            let title = shown(&column.title, style.ascii);
            let _ = match column.measure {
                Measure::Time => write!(line, "  {text}"),
                _ => write!(line, "  {title} {text}"),
            };
        }
        let name = style.paint(Paint::Outlier, &table.title);
        writeln!(stdout, "{name}{line}")?;
    }
    stdout.flush().map_err(Failure::from)
}
