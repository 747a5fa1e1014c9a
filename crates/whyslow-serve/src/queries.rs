//! `table`, `hist`, `heat`: all kinds and views, with the answers of the command line.

use std::io::{self, Write};
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::Response;
use serde_json::json;
use whyslow_analysis::{TOPICS, Verb};
use whyslow_base::args::Format;
use whyslow_model::answer::Answer;
use whyslow_render::Subject;

use crate::command_line::ParsedQuery;
use crate::form;
use crate::limited::{Gauge, Limited};
use crate::open_recording::OpenRecording;
use crate::query::{self, Query};
use crate::reply::{self, Refusal};
use crate::server::Shared;

/// Maximum number of rows of an answer, all tables together.
const ROWS_MAX: usize = 200_000;
/// Maximum number of columns of a heat map.
const COLUMNS_MAX: i64 = 10_000;
/// Maximum size of an answer.
const BYTES_MAX: usize = 64 << 20;

pub(crate) async fn table(
    State(shared): State<Shared>,
    request: Request,
) -> Result<Response, Refusal> {
    answer(shared, request, None).await
}

pub(crate) async fn hist(
    State(shared): State<Shared>,
    request: Request,
) -> Result<Response, Refusal> {
    answer(shared, request, Some("hist")).await
}

pub(crate) async fn heat(
    State(shared): State<Shared>,
    request: Request,
) -> Result<Response, Refusal> {
    answer(shared, request, Some("heat")).await
}

async fn answer(shared: Shared, request: Request, view: Option<&str>) -> Result<Response, Refusal> {
    let mut query = Query::of(request.uri())?;
    let format = form::of(request.headers(), &query)?;
    let kind = query.need("what")?.to_owned();
    let kind = kind.as_str();
    let topic = TOPICS.iter().find(|topic| topic.kind.name() == kind);
    let default = topic.and_then(|topic| topic.default);
    let view = view.or_else(|| query.get("view"));
    let view = view.or_else(|| default.map(Verb::name)).map(str::to_owned);
    let view = view.ok_or_else(|| Refusal::wrong("missing parameter `view`"))?;
    if topic.is_none() {
        let error = format!("unknown kind `{kind}`");
        return Err(
            Refusal::new(StatusCode::NOT_FOUND, error).hint("see `recordings` for the kinds")
        );
    }
    let served = shared.recordings.find(&query)?;
    let current = served.now();
    if view == Verb::Heat.name() {
        query = by_columns(query.renamed("band", "dev"), &current)?;
    }
    let place = std::path::absolute(current.opened.path()).unwrap_or_default();
    let command_words = query::command_words(
        &*shared.command_line,
        &[kind, view.as_str()],
        (&place, &served.word),
        &query,
    )?;
    let command = command_words.command;
    let query = shared
        .command_line
        .query(&command_words.words)
        .map_err(wrong_words)?
        .ok_or_else(|| Refusal::wrong("invalid query"))?;
    let shown = command.clone();
    let written = shared
        .queue
        .run(move |gauge| write(&*query, &current, gauge, (format, shown)));
    let (body, notes) = written.await?;
    let mut response = reply::with_command(form::media_type(format), &command, body);
    if let Some(notes) = notes.as_ref().and_then(reply::header_json) {
        response.headers_mut().insert(reply::NOTES, notes);
    }
    Ok(response)
}

/// Replaces a number of time columns by an interval.
fn by_columns(query: Query, current: &OpenRecording) -> Result<Query, Refusal> {
    if query.get("columns").is_none() {
        return Ok(query);
    }
    if query.get("interval").is_some() {
        return Err(Refusal::wrong("cannot use both `columns` and `interval`"));
    }
    let columns = query.number("columns", 0_i64)?;
    if !(1..=COLUMNS_MAX).contains(&columns) {
        return Err(Refusal::wrong(format!(
            "`columns` must be between 1 and {COLUMNS_MAX}"
        )));
    }
    let info = current.opened.tables.info();
    let (begin, end) = match query.window(&current.opened)? {
        Some(window) => (window.begin, window.end),
        None => (info.begin_ns, info.end_ns.saturating_add(1)),
    };
    let width = end.saturating_sub(begin).max(1).div_euclid(columns).max(1);
    // The last column ends at the end of the window or later.
    let width = width.saturating_add(i64::from(
        width.saturating_mul(columns) < end.saturating_sub(begin),
    ));
    Ok(query.with("interval", format!("{width}ns")))
}

/// A parse error, in the words of the command line.
pub(crate) fn wrong_words(error: clap::Error) -> Refusal {
    let text = error.render().to_string();
    let text = text.strip_prefix("error: ").unwrap_or(&text);
    let end = text.find("\n\n").unwrap_or(text.len());
    Refusal::wrong(text[..end].trim())
}

/// The answer in its format, and the notes that the format cannot hold.
fn write(
    query: &dyn ParsedQuery,
    current: &Arc<OpenRecording>,
    gauge: &Gauge,
    (format, command): (Format, String),
) -> Result<(Vec<u8>, Option<serde_json::Value>), Refusal> {
    let opened = &current.opened;
    let tables = Limited::new(&*opened.tables, gauge);
    let (mut answer, zone) = query.answer(opened, &tables, ROWS_MAX)?;
    let mut is_cut = cut(&mut answer, ROWS_MAX);
    let args = whyslow_base::args::OutputArgs {
        format,
        json: false,
        csv: false,
        ..query.output().clone()
    };
    let notes = (!whyslow_render::has_room_for_notes(format)).then(|| notes(&answer, is_cut));
    loop {
        let mut subject = opened.subject();
        add_members(&mut subject, &command, is_cut);
        let mut out = Bounded::new(BYTES_MAX);
        let how = (zone.clone(), query.weight());
        match whyslow_render::write_into(&mut answer, &subject, how, &args, &mut out) {
            Ok(()) => return Ok((out.bytes, notes)),
            Err(_) if out.is_full && halve(&mut answer) => is_cut = true,
            Err(failure) => return Err(failure.into()),
        }
    }
}

fn add_members(subject: &mut Subject, command: &str, is_cut: bool) {
    subject.more.insert("cli".into(), json!(command));
    if is_cut {
        subject.more.insert("cut".into(), json!(true));
    }
}

fn notes(answer: &Answer, is_cut: bool) -> serde_json::Value {
    let mut notes = json!({"caveats": answer.caveats, "lost_ranges": answer.losses.len()});
    if is_cut {
        notes["cut"] = json!(true);
    }
    notes
}

/// Truncates to `rows_max` rows.
fn cut(answer: &mut Answer, rows_max: usize) -> bool {
    let mut left = rows_max;
    let mut is_cut = false;
    for table in &mut answer.tables {
        is_cut |= table.rows.len() > left;
        table.rows.truncate(left);
        left -= table.rows.len();
    }
    if is_cut {
        answer
            .caveats
            .push(format!("only the first {rows_max} rows are returned"));
    }
    is_cut
}

/// Removes half of the longest table; returns whether there was anything to remove.
fn halve(answer: &mut Answer) -> bool {
    let longest = answer
        .tables
        .iter_mut()
        .max_by_key(|table| table.rows.len());
    let Some(table) = longest.filter(|table| table.rows.len() > 1) else {
        return false;
    };
    let rows = table.rows.len() / 2;
    table.rows.truncate(rows);
    let text = format!(
        "only the first {rows} rows of `{}` are returned",
        table.name
    );
    answer
        .caveats
        .retain(|caveat| !caveat.starts_with("only the first "));
    answer.caveats.push(text);
    true
}

/// A buffer of limited size.
pub(crate) struct Bounded {
    pub(crate) bytes: Vec<u8>,
    pub(crate) is_full: bool,
    bytes_max: usize,
}

impl Bounded {
    pub(crate) fn new(bytes_max: usize) -> Self {
        Self {
            bytes: Vec::new(),
            is_full: false,
            bytes_max,
        }
    }
}

impl Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.bytes.len() + bytes.len() > self.bytes_max {
            self.is_full = true;
            return Err(io::Error::other("the answer is too large"));
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use whyslow_model::answer::{AnswerColumn, AnswerTable, Measure};

    use super::*;

    fn answer(rows: &[usize]) -> Answer {
        let table = |(number, rows): (usize, &usize)| AnswerTable {
            rows: (0..*rows).map(|row| vec![(row as i64).into()]).collect(),
            ..AnswerTable::new(
                &format!("t{number}"),
                "",
                vec![AnswerColumn::new("n", "n", Measure::Count)],
            )
        };
        Answer {
            tables: rows.iter().enumerate().map(table).collect(),
            ..Answer::default()
        }
    }

    #[test]
    fn rows_are_cut_and_it_is_told() {
        let check = |rows: &[usize], want: &[usize], is_cut: bool| {
            let mut answer = answer(rows);
            assert_eq!(cut(&mut answer, 10), is_cut, "{rows:?}");
            let left: Vec<usize> = answer.tables.iter().map(|table| table.rows.len()).collect();
            assert_eq!(left, want, "{rows:?}");
            assert_eq!(answer.caveats.len(), usize::from(is_cut), "{rows:?}");
        };
        check(&[], &[], false);
        check(&[10], &[10], false);
        check(&[4, 6], &[4, 6], false);
        check(&[4, 7], &[4, 6], true);
        check(&[11, 3], &[10, 0], true);
    }

    #[test]
    fn the_longest_table_is_halved_until_one_row_is_left() {
        let mut answer = answer(&[3, 8]);
        let mut times = 0;
        while halve(&mut answer) {
            times += 1;
        }
        assert_eq!(times, 4);
        assert_eq!(answer.caveats.len(), 1);
    }
}
