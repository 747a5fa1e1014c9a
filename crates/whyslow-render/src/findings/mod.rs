//! Findings of `explain` as text, Markdown and JSON.

mod drawing;
mod evidence;
mod head;
mod markdown;
mod page;
mod wrapped;

#[cfg(test)]
mod tests;

use whyslow_base::args::{Format, OutputArgs, TalkArgs, UnitChoice};
use whyslow_base::failure::Failure;
use whyslow_base::time::Calendar;
use whyslow_explain::Report;
use whyslow_model::Ns;

use crate::destination::{to_file, to_stdout};
use crate::select::Selection;
use crate::style::TextStyle;
use crate::subject::Subject;
use crate::write::style;
use crate::{pager, quantity, terminal};

/// Writes a report to the destination and in the format that the flags specify.
pub fn write(
    report: &Report,
    subject: &Subject,
    calendar: &Calendar,
    args: &OutputArgs,
    talk: &TalkArgs,
) -> Result<(), Failure> {
    let size = match &args.output {
        Some(_) => None,
        None => terminal::size(),
    };
    let style = TextStyle {
        rel: args.rel.then_some(report.begin_ns),
        ..style(
            calendar.zone.clone(),
            &Selection::default(),
            size,
            args,
            talk,
        )
    };
    let text = encode(report, subject, &style, args.chosen_format())?;
    if let Some(path) = &args.output {
        return to_file(path, |out| {
            std::io::Write::write_all(out, text.as_bytes()).map_err(Failure::from)
        });
    }
    let is_long = size.is_some_and(|(_, rows)| text.lines().count() >= rows);
    if is_long && !args.no_pager && std::io::IsTerminal::is_terminal(&std::io::stdin()) {
        return pager::show(&text).map_err(Failure::from);
    }
    to_stdout(&text)
}

/// A report as a string, for another program.
pub fn to_text(
    report: &Report,
    subject: &Subject,
    calendar: &Calendar,
    args: &OutputArgs,
) -> Result<String, Failure> {
    let style = TextStyle {
        ascii: args.ascii,
        rel: args.rel.then_some(report.begin_ns),
        ..style(
            calendar.zone.clone(),
            &Selection::default(),
            None,
            args,
            &TalkArgs::silent(),
        )
    };
    encode(report, subject, &style, args.chosen_format())
}

fn encode(
    report: &Report,
    subject: &Subject,
    style: &TextStyle,
    format: Format,
) -> Result<String, Failure> {
    match format {
        Format::Text => Ok(page::text(report, subject, style)),
        Format::Md => Ok(markdown::text(report, subject, style)),
        Format::Json => {
            let mut text = serde_json::to_string_pretty(report)
                .map_err(|error| Failure::new(format!("cannot write JSON: {error}")))?;
            text.push('\n');
            Ok(text)
        }
        _ => Err(Failure::usage(
            "cannot write findings in this format: supported are text, json and md",
        )),
    }
}

fn length(ns: Ns) -> String {
    quantity::duration_alone(ns as f64, UnitChoice::Auto)
}
