//! Writes an answer to the destination and in the format that the flags specify.

use std::io::{self, BufWriter, IsTerminal, Write};
use std::time::Duration;

use whyslow_analysis::Weight;
use whyslow_base::args::{Format, OutputArgs, TalkArgs, UnitChoice};
use whyslow_base::failure::Failure;
use whyslow_base::time::Zone;
use whyslow_model::Ns;
use whyslow_model::answer::{Answer, AnswerTable};
use whyslow_model::text::{long_duration, shown};

use crate::destination::{BUFFER_BYTES, to_file, to_stdout};
use crate::select::Selection;
use crate::style::TextStyle;
use crate::subject::Subject;
use crate::terminal::wants_color;
use crate::{columnar, csv, json, markup, pager, quantity, select, terminal, text};

/// Writes an answer to the destination and in the format that the flags specify.
pub fn write(
    mut answer: Answer,
    subject: &Subject,
    zone: Zone,
    weight: Weight,
    args: &OutputArgs,
    talk: &TalkArgs,
) -> Result<(), Failure> {
    let selection = args
        .cols
        .as_deref()
        .map(Selection::parse)
        .unwrap_or_default();
    choose_table(&mut answer, args.table.as_deref())?;
    if selection.help {
        return to_stdout(&format!("{}\n", select::names(&answer)));
    }
    selection.apply(&mut answer).map_err(Failure::usage)?;
    let size = match &args.output {
        Some(_) => None,
        None => terminal::size(),
    };
    let format = args.chosen_format();
    let style = TextStyle {
        weight,
        rel: answer.window.map(|(begin, _)| begin).filter(|_| args.rel),
        ..style(zone, &selection, size, args, talk)
    };
    if format == Format::Text && args.output.is_none() {
        let text = text::render(&answer, subject, &style);
        let is_long = size.is_some_and(|(_, rows)| text.lines().count() >= rows);
        if is_long && !args.no_pager && io::stdin().is_terminal() {
            return pager::show(&text).map_err(Failure::from);
        }
        return to_stdout(&text);
    }
    if matches!(format, Format::Arrow | Format::Parquet) && args.output.is_none() {
        refuse_terminal(&style)?;
    }
    if let Some(path) = &args.output {
        to_file(path, |out| encode(&answer, subject, &style, format, out))?;
    } else {
        let mut out = BufWriter::with_capacity(BUFFER_BYTES, io::stdout());
        encode(&answer, subject, &style, format, &mut out)?;
        out.flush()?;
    }
    if !has_room_for_notes(format) {
        print_notes(&answer, &style);
    }
    // An answer may have hundreds of thousands of strings: do not wait until they are freed.
    rayon::spawn(move || drop(answer));
    Ok(())
}

/// The same for another program: writes to `out`, whatever standard output is. The caller reports
/// what the format cannot hold.
pub fn write_into(
    answer: &mut Answer,
    subject: &Subject,
    (zone, weight): (Zone, Weight),
    args: &OutputArgs,
    out: &mut (impl Write + Send),
) -> Result<(), Failure> {
    let selection = args.cols.as_deref().map(Selection::parse);
    let selection = selection.unwrap_or_default();
    choose_table(answer, args.table.as_deref())?;
    if selection.help {
        out.write_all(select::names(answer).as_bytes())?;
        return Ok(());
    }
    selection.apply(answer).map_err(Failure::usage)?;
    let style = TextStyle {
        weight,
        rel: answer.window.map(|(begin, _)| begin).filter(|_| args.rel),
        ascii: args.ascii,
        ..style(zone, &selection, None, args, &TalkArgs::silent())
    };
    encode(answer, subject, &style, args.chosen_format(), out)
}

/// Whether losses and caveats are part of a format.
pub fn has_room_for_notes(format: Format) -> bool {
    !matches!(
        format,
        Format::Csv | Format::Tsv | Format::Arrow | Format::Parquet
    )
}

pub(crate) fn style(
    zone: Zone,
    selection: &Selection,
    size: Option<(usize, usize)>,
    args: &OutputArgs,
    talk: &TalkArgs,
) -> TextStyle {
    let format = args.chosen_format();
    TextStyle {
        zone,
        rel: None,
        unit: args.unit,
        si: args.si,
        ascii: args.ascii || !terminal::locale_is_utf8(),
        color: format == Format::Text && wants_color(talk.color, size.is_some()),
        width: size
            .map(|(columns, _)| columns)
            .filter(|_| !args.wide && format == Format::Text),
        group: size.is_some(),
        weight: Weight::default(),
        details: args.wide || selection.names_columns(),
        part: args.part,
        keep: selection.keep.clone(),
    }
}

fn encode(
    answer: &Answer,
    subject: &Subject,
    style: &TextStyle,
    format: Format,
    out: &mut (impl Write + Send),
) -> Result<(), Failure> {
    match format {
        // Other code draws pictures.
        Format::Text
        | Format::Svg
        | Format::Collapsed
        | Format::Speedscope
        | Format::Openmetrics => {
            out.write_all(text::render(answer, subject, style).as_bytes())?;
        }
        Format::Json => json::write_document(answer, subject, out)?,
        Format::Ndjson => json::write_lines(answer, subject, out)?,
        Format::Md => markup::write_markdown(answer, subject, style, out)?,
        Format::Html => markup::write_html(answer, subject, style, out)?,
        Format::Csv | Format::Tsv => {
            let separator = match format {
                Format::Csv => csv::Separator::Comma,
                _ => csv::Separator::Tab,
            };
            match style.part {
                None => csv::write(&answer.tables, separator, style.group, out)?,
                Some(number) => {
                    let table = only_table(answer)?;
                    if number == 0 {
                        csv::write_header(table, separator, style.group, out)?;
                    }
                    csv::write_rows(table, separator, style.group, out)?;
                }
            }
        }
        Format::Arrow => columnar::write_arrow(answer, only_table(answer)?, out)?,
        Format::Parquet => columnar::write_parquet(answer, only_table(answer)?, out)?,
    }
    Ok(())
}

/// Prints the losses and caveats that the format cannot hold.
pub(crate) fn print_notes(answer: &Answer, style: &TextStyle) {
    for loss in &answer.losses {
        whyslow_base::talk::line(&text::loss_line(loss, answer.window, style));
    }
    for caveat in &answer.caveats {
        whyslow_base::talk::line(&format!("note: {}", shown(caveat, style.ascii)));
    }
}

/// The same for text that is not a format of an answer.
pub fn print_messages(answer: &Answer, zone: Zone) {
    let style = TextStyle {
        zone,
        rel: None,
        unit: UnitChoice::Auto,
        si: false,
        ascii: !terminal::locale_is_utf8(),
        color: false,
        width: None,
        group: false,
        weight: Weight::default(),
        details: false,
        part: None,
        keep: Vec::new(),
    };
    print_notes(answer, &style);
}

/// A single duration: `500 ms`.
pub fn duration(length: Duration) -> String {
    let ns = Ns::try_from(length.as_nanos()).unwrap_or(Ns::MAX);
    long_duration(ns).unwrap_or_else(|| quantity::duration_alone(ns as f64, UnitChoice::Auto))
}

pub(crate) fn choose_table(answer: &mut Answer, name: Option<&str>) -> Result<(), Failure> {
    let Some(name) = name else {
        return Ok(());
    };
    if !answer.tables.iter().any(|table| table.name == name) {
        return Err(Failure::usage(format!(
            "unknown table `{name}`; tables of this answer: {}",
            table_names(answer)
        )));
    }
    answer.tables.retain(|table| table.name == name);
    Ok(())
}

fn only_table(answer: &Answer) -> Result<&AnswerTable, Failure> {
    match answer.tables.as_slice() {
        [table] => Ok(table),
        [] => Err(Failure::new("cannot write an answer without a table")),
        [first, ..] => Err(Failure::usage(format!(
            "cannot write several tables in this format: {}",
            table_names(answer)
        ))
        .hint(format!("add --table {}", first.name))),
    }
}

fn table_names(answer: &Answer) -> String {
    let names: Vec<&str> = answer
        .tables
        .iter()
        .map(|table| table.name.as_str())
        .collect();
    names.join(", ")
}

fn refuse_terminal(style: &TextStyle) -> Result<(), Failure> {
    if style.group && io::stdout().is_terminal() {
        return Err(Failure::usage("cannot write a binary format to a terminal")
            .hint("add -o FILE, or pipe the output into a program"));
    }
    Ok(())
}
