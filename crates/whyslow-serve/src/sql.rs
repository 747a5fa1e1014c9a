//! `sql`: DuckDB in its own process, confined as on the command line, and killed when it takes too
//! long, returns too much, or the client disconnects.

use std::io::{BufRead as _, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::thread;
use std::time::Duration;

use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::Response;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use whyslow_render::quoted;
use whyslow_sources::duckdb::views;

use crate::limited::{Gauge, Stop};
use crate::query::Query;
use crate::reply::{self, Refusal};
use crate::server::Shared;

const ROWS_MAX: usize = 10_000;
const BYTES_MAX: usize = 64 << 20;
const STATEMENT_BYTES_MAX: usize = 15 << 10;
/// Maximum size of error messages.
const ERROR_BYTES_MAX: u64 = 16 << 10;
const MEMORY: &str = "1GiB";
/// Interval of the checks whether to continue.
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// Maximum number of unprocessed lines.
const LINES_WAITING: usize = 1_000;
/// Separates the columns of a result from its rows.
const MARK: &str = "whyslow_rows_follow";

pub(crate) async fn sql(
    State(shared): State<Shared>,
    request: Request,
) -> Result<Response, Refusal> {
    let query = Query::of(request.uri())?;
    query.only(&["q", "tables", "digest"])?;
    if query.get("tables").is_some() {
        return reply::json_document(&json!({"text": views::describe()}));
    }
    let statement = query.need("q")?.trim().to_owned();
    if statement.is_empty() || statement.len() > STATEMENT_BYTES_MAX {
        let error = format!("the statement must have between 1 and {STATEMENT_BYTES_MAX} bytes");
        return Err(Refusal::wrong(error));
    }
    let program = match &shared.sql.0 {
        Ok(program) => program.clone(),
        Err(hint) => {
            let error = "SQL unavailable: DuckDB not found";
            let refusal = Refusal::new(StatusCode::SERVICE_UNAVAILABLE, error);
            return Err(refusal.hint(hint.clone()));
        }
    };
    let served = shared.recordings.find(&query)?;
    let current = served.now();
    let (name, statement_word) = (quoted(&served.word), quoted(&statement));
    let command = format!("whyslow sql {name} {statement_word}");
    let found = shared.queue.run(move |gauge| {
        let place = std::path::absolute(current.opened.path()).unwrap_or_default();
        run(&program, &place, &statement, gauge)
    });
    let mut document = found.await?;
    document["cli"] = json!(command);
    let body = serde_json::to_vec(&document).unwrap_or_default();
    Ok(reply::with_command(reply::JSON, &command, body))
}

/// A process that is killed on drop.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn run(program: &Path, recording: &Path, statement: &str, gauge: &Gauge) -> Result<Value, Refusal> {
    let failed = |error: std::io::Error| {
        let status = StatusCode::INTERNAL_SERVER_ERROR;
        Refusal::new(status, format!("cannot run DuckDB: {error}"))
    };
    let child = Command::new("/proc/self/exe")
        .args(["sql", "--quiet", "--memory", MEMORY, "--format", "ndjson"])
        .arg("--at")
        .arg(recording)
        .arg("--")
        .args([recording.as_os_str(), with_columns(statement).as_ref()])
        .env("WHYSLOW_DUCKDB", program)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(failed)?;
    let mut running = Running(child);
    let stdout = running.0.stdout.take();
    let stderr = running.0.stderr.take();
    let errors = thread::spawn(move || {
        let mut text = Vec::new();
        if let Some(stderr) = stderr {
            let _ = stderr.take(ERROR_BYTES_MAX).read_to_end(&mut text);
        }
        String::from_utf8_lossy(&text).into_owned()
    });
    let mut table = Table::default();
    let is_cut = read(stdout, gauge, &mut table)?;
    if is_cut {
        drop(running);
    } else {
        let ended = running.0.wait().map_err(failed)?;
        let errors = errors.join().unwrap_or_default();
        refuse(ended, &errors)?;
    }
    Ok(table.into_document(is_cut))
}

/// The statement, preceded by a description of its columns and types if possible.
fn with_columns(statement: &str) -> String {
    let bare = statement.trim_end_matches([';', ' ', '\n', '\t', '\r']);
    let first = bare.split_whitespace().next().unwrap_or("");
    let is_query = ["select", "with", "from"]
        .iter()
        .any(|word| first.eq_ignore_ascii_case(word));
    if !is_query || bare.contains(';') {
        return statement.to_owned();
    }
    // A comment at the end must not swallow what follows.
    format!("DESCRIBE\n{bare}\n; SELECT true AS {MARK}; {bare}\n;")
}

/// Reads lines until the end or a limit; returns whether a limit was reached.
fn read(
    stdout: Option<impl Read + Send + 'static>,
    gauge: &Gauge,
    table: &mut Table,
) -> Result<bool, Refusal> {
    let (sender, lines) = sync_channel::<String>(LINES_WAITING);
    thread::spawn(move || {
        let Some(stdout) = stdout else {
            return;
        };
        let mut reader = BufReader::new(stdout.take(BYTES_MAX as u64 + 1));
        loop {
            let mut line = String::new();
            match reader.read_line(&mut line) {
                Ok(0) | Err(_) => return,
                Ok(_) if sender.send(line).is_err() => return,
                Ok(_) => {}
            }
        }
    });
    let mut bytes = 0;
    loop {
        if gauge.check().is_err() {
            return Err(Refusal::stopped(gauge.verdict().unwrap_or(Stop::Unwanted)));
        }
        match lines.recv_timeout(POLL_INTERVAL) {
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Ok(false),
            Ok(line) => {
                bytes += line.len();
                if bytes > BYTES_MAX || table.rows.len() == ROWS_MAX {
                    return Ok(true);
                }
                table.take(&line);
            }
        }
    }
}

fn refuse(ended: ExitStatus, errors: &str) -> Result<(), Refusal> {
    if ended.success() {
        return Ok(());
    }
    let text = errors.trim();
    let text = text.strip_prefix("error: ").unwrap_or(text);
    Err(match without_first_line(text).as_str() {
        "" => Refusal::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            format!("DuckDB failed without a message: {ended}"),
        ),
        text => Refusal::wrong(text).hint("see `sql?tables` for the views and their columns"),
    })
}

/// Adjusts the line number of an error, since a line was inserted before the statement.
fn without_first_line(text: &str) -> String {
    let Some((before, rest)) = text.split_once("\nLINE ") else {
        return text.to_owned();
    };
    let Some((number, rest)) = rest.split_once(':') else {
        return text.to_owned();
    };
    match number.parse::<u32>() {
        Ok(number) if number > 1 => format!("{before}\nLINE {}:{rest}", number - 1),
        _ => text.to_owned(),
    }
}

/// A result that is parsed row by row.
#[derive(Debug, Default)]
struct Table {
    columns: Vec<(String, Option<String>)>,
    rows: Vec<Vec<Value>>,
}

#[derive(Deserialize)]
struct Described {
    column_name: String,
    column_type: String,
}

impl Table {
    fn take(&mut self, line: &str) {
        let Ok(object) = serde_json::from_str::<Map<String, Value>>(line) else {
            return;
        };
        if object.len() == 1 && object.contains_key(MARK) {
            self.begin();
            return;
        }
        if self.columns.is_empty() {
            let names = object.keys().map(|name| (name.clone(), None));
            self.columns = names.collect();
        }
        let is_it = |(name, _): &(String, Option<String>)| object.contains_key(name);
        if object.len() != self.columns.len() || !self.columns.iter().all(is_it) {
            // Of several statements, the last one counts.
            self.columns = object.keys().map(|name| (name.clone(), None)).collect();
            self.rows.clear();
        }
        let cells = self.columns.iter();
        let cells = cells.map(|(name, _)| object.get(name).cloned().unwrap_or_default());
        self.rows.push(cells.collect());
    }

    /// The rows so far describe the columns of the following rows.
    fn begin(&mut self) {
        let names: Vec<&str> = self.columns.iter().map(|(name, _)| name.as_str()).collect();
        let rows = std::mem::take(&mut self.rows).into_iter();
        let described = rows.filter_map(|row| {
            let object: Map<String, Value> =
                names.iter().map(ToString::to_string).zip(row).collect();
            serde_json::from_value::<Described>(Value::Object(object)).ok()
        });
        self.columns = described
            .map(|described| (described.column_name, Some(described.column_type)))
            .collect();
    }

    fn into_document(self, is_cut: bool) -> Value {
        let columns = self.columns.iter();
        let columns: Vec<Value> = columns
            .map(|(name, kind)| json!({"name": name, "type": kind}))
            .collect();
        json!({"columns": columns, "rows": self.rows, "cut": is_cut})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_queries_are_described() {
        let check = |text: &str, is_described: bool| {
            let found = with_columns(text);
            assert_eq!(found.starts_with("DESCRIBE\n"), is_described, "{found}");
        };
        check("SELECT 1", true);
        check("  with x AS (SELECT 1) FROM x ;\n", true);
        check("from io -- all of it", true);
        check("SELECT 1; SELECT 2", false);
        check("PRAGMA version", false);
        check("COPY io TO '/tmp/x'", false);
        assert!(with_columns("SELECT 1 -- x").ends_with("-- x\n;"));
        assert_eq!(
            without_first_line("x\n\nLINE 2: y\n ^"),
            "x\n\nLINE 1: y\n ^"
        );
        assert_eq!(without_first_line("x"), "x");
    }

    #[test]
    fn columns_have_their_types_and_rows_their_order() {
        let mut table = Table::default();
        for line in [
            r#"{"column_name":"b","column_type":"BIGINT","null":"YES"}"#,
            r#"{"column_name":"a","column_type":"VARCHAR","null":"YES"}"#,
            r#"{"whyslow_rows_follow":true}"#,
            r#"{"b":9007199254740993,"a":"<b>"}"#,
            "nonsense",
            r#"{"b":null,"a":null}"#,
        ] {
            table.take(line);
        }
        let want = json!({
            "columns": [{"name": "b", "type": "BIGINT"}, {"name": "a", "type": "VARCHAR"}],
            "rows": [[9007199254740993_i64, "<b>"], [null, null]],
            "cut": false,
        });
        assert_eq!(table.into_document(false), want);
    }

    #[test]
    fn of_several_results_the_last_counts() {
        let mut table = Table::default();
        for line in [r#"{"a":1}"#, r#"{"b":2,"c":3}"#, r#"{"b":4,"c":5}"#] {
            table.take(line);
        }
        assert_eq!(table.rows, [[json!(2), json!(3)], [json!(4), json!(5)]]);
    }
}
