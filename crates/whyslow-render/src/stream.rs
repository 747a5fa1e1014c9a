//! Streaming output for answers of any length, in formats with a line per row.

use std::io::{self, BufWriter, Write};
use std::ops::ControlFlow;

use whyslow_base::args::{Format, OutputArgs, TalkArgs};
use whyslow_base::failure::Failure;
use whyslow_base::time::Zone;
use whyslow_model::answer::{Answer, AnswerTable};

use crate::csv::{self, Separator};
use crate::destination::{BUFFER_BYTES, to_file};
use crate::select::Selection;
use crate::subject::Subject;
use crate::write::{choose_table, print_notes, style};
use crate::{json, terminal};

/// Receives the next rows of an answer, with its header.
pub type Taker<'t> = dyn FnMut(&Answer, AnswerTable) -> ControlFlow<()> + 't;

/// Whether the format can be written row by row.
pub fn streams(args: &OutputArgs) -> bool {
    let lists_columns = args
        .cols
        .as_deref()
        .is_some_and(|cols| Selection::parse(cols).help);
    !lists_columns && form(args).is_some()
}

#[derive(Debug, Clone, Copy)]
enum Form {
    Lines,
    Cells(Separator),
}

fn form(args: &OutputArgs) -> Option<Form> {
    match args.chosen_format() {
        Format::Ndjson => Some(Form::Lines),
        Format::Csv => Some(Form::Cells(Separator::Comma)),
        Format::Tsv => Some(Form::Cells(Separator::Tab)),
        _ => None,
    }
}

/// Writes the rows that `run_query` produces as the flags specify; returns the result of
/// `run_query`.
pub fn write_streamed(
    (subject, zone): (&Subject, Zone),
    args: &OutputArgs,
    talk: &TalkArgs,
    run_query: impl FnOnce(&mut Taker<'_>) -> Result<Answer, Failure>,
) -> Result<Answer, Failure> {
    let form = form(args).unwrap_or(Form::Lines);
    let size = match &args.output {
        Some(_) => None,
        None => terminal::size(),
    };
    let selection = args
        .cols
        .as_deref()
        .map(Selection::parse)
        .unwrap_or_default();
    let style = style(zone, &selection, size, args, talk);
    let mut answer = None;
    let mut query_failure = None;
    let write = |out: &mut dyn Write| -> Result<(), Failure> {
        let mut rows = Rows {
            form,
            subject,
            selection: &selection,
            only: args.table.as_deref(),
            to_terminal: style.group,
            begun: false,
            goes_on: args.part.is_some_and(|number| number > 0),
            out,
        };
        let mut failure = None;
        let result = run_query(&mut |answer, table| match rows.take(answer, table) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                failure = Some(error);
                ControlFlow::Break(())
            }
        });
        if let Some(failure) = failure {
            return Err(failure);
        }
        let result = match result {
            Ok(result) => result,
            Err(failure) => {
                query_failure = Some(failure);
                return Err(Failure::new("no answer"));
            }
        };
        rows.end(&result)?;
        answer = Some(result);
        Ok(())
    };
    let written = if let Some(path) = &args.output {
        to_file(path, |out| write(out))
    } else {
        let mut out = BufWriter::with_capacity(BUFFER_BYTES, io::stdout());
        write(&mut out).and_then(|()| Ok(out.flush()?))
    };
    // A recording that cannot be read is not a write failure.
    if let Some(failure) = query_failure {
        return Err(failure);
    }
    written?;
    let answer = answer.unwrap_or_default();
    if let Form::Cells(_) = form {
        print_notes(&answer, &style);
    }
    Ok(answer)
}

struct Rows<'r> {
    form: Form,
    subject: &'r Subject,
    selection: &'r Selection,
    only: Option<&'r str>,
    to_terminal: bool,
    begun: bool,
    /// Titles have been written.
    goes_on: bool,
    out: &'r mut dyn Write,
}

impl Rows<'_> {
    fn take(&mut self, answer: &Answer, table: AnswerTable) -> Result<(), Failure> {
        let mut piece = Answer {
            tables: vec![table],
            ..Answer::default()
        };
        choose_table(&mut piece, self.only)?;
        self.selection.apply(&mut piece).map_err(Failure::usage)?;
        let begins = !self.begun;
        self.begun = true;
        for table in &piece.tables {
            match self.form {
                Form::Lines => {
                    if begins {
                        json::write_first_line(answer, self.subject, self.out)?;
                    }
                    json::write_row_lines(table, self.out)?;
                }
                Form::Cells(separator) => {
                    if begins && !self.goes_on {
                        csv::write_header(table, separator, self.to_terminal, self.out)?;
                    }
                    csv::write_rows(table, separator, self.to_terminal, self.out)?;
                }
            }
        }
        Ok(())
    }

    fn end(&mut self, answer: &Answer) -> Result<(), Failure> {
        if let Form::Lines = self.form {
            if !self.begun {
                json::write_first_line(answer, self.subject, self.out)?;
            }
            json::write_last_lines(answer, self.out)?;
        }
        Ok(())
    }
}
