//! Runs SQL queries with DuckDB over the Parquet files of a recording and compares the results with
//! answers.
//!
//! The recording is written with small limits, so that tables have many row groups and late rows,
//! and answers are assembled from many parts.

use std::cell::RefCell;
use std::fmt::Write;
use std::fs::File;
use std::io::{BufRead, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::Value as Json;
use whyslow_analysis::{Kind, Query, Verb, evaluate};
use whyslow_model::answer::{Answer, Value};
use whyslow_model::{Symbols, Window};
use whyslow_store::{Existing, Limits, Recording, RecordingInfo, RecordingWriter, Tables};
use whyslow_testkit::{Need, skip_unless_installed};

use crate::it::made::{self, Amount};
use crate::it::shown;

const LIMITS: Limits = Limits {
    reorder_bytes: 40_000,
    late_bytes: 20_000,
    row_group_rows: 4000,
    row_group_rows_small: 900,
    small_file_rows: 3000,
    page_rows: 128,
    page_bytes: 4096,
    dictionary_bytes: 2048,
    file_rows: 30_000,
};

/// A recording on disk, with the views that DuckDB creates for it.
pub(crate) struct Written {
    pub(crate) recording: Recording,
    session: RefCell<Session>,
    _guard: tempfile::TempDir,
}

/// `None`, with a skip message, if DuckDB is not available.
pub(crate) fn written(amount: Amount) -> Option<Written> {
    written_by(|symbols, writer| {
        made::make(amount, symbols, writer, |writer, symbols| {
            writer.flush_ready(symbols).unwrap();
        })
    })
}

/// The same for rows from another generator.
pub(crate) fn written_by(
    make: impl FnOnce(&mut Symbols, &mut RecordingWriter) -> RecordingInfo,
) -> Option<Written> {
    if !has_duckdb() {
        return None;
    }
    let guard = tempfile::tempdir().unwrap();
    let directory = guard.path().join("made.wsl");
    let mut symbols = Symbols::new();
    let mut writer = RecordingWriter::create_within(&directory, Existing::Refuse, LIMITS).unwrap();
    let info = make(&mut symbols, &mut writer);
    writer.finish(&symbols, info).unwrap();
    let recording = Recording::open(&directory).unwrap();
    let session = RefCell::new(Session::start(&directory, &views(&recording, &directory)));
    Some(Written {
        recording,
        session,
        _guard: guard,
    })
}

pub(crate) fn views(recording: &Recording, directory: &Path) -> String {
    let mut views = String::new();
    for (name, table) in &recording.info().tables {
        let files = table.files.iter().chain(&table.long_files);
        let files: Vec<String> = files
            .map(|file| format!("'{}'", directory.join(file).display()))
            .collect();
        if !files.is_empty() {
            let files = files.join(", ");
            writeln!(views, "CREATE VIEW {name} AS FROM read_parquet([{files}]);").unwrap();
        }
    }
    views
}

/// Printed after each result.
const END_OF_RESULT: &str = "-- end of result";

/// One DuckDB for all queries of a recording: starting it and reading the Parquet footers takes longer
/// than a query.
struct Session {
    child: Child,
    /// Dropped first, which ends DuckDB.
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    errors: PathBuf,
}

impl Session {
    fn start(directory: &Path, views: &str) -> Self {
        let errors = directory.with_extension("errors");
        let mut child = Command::new("duckdb")
            .args(["-json", "-bail"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(File::create(&errors).unwrap())
            .spawn()
            .unwrap();
        let input = child.stdin.take();
        let output = BufReader::new(child.stdout.take().unwrap());
        let mut session = Self {
            child,
            input,
            output,
            errors,
        };
        let none = session.run(&format!("{views}{}", oracle_file("prelude.sql")));
        assert_eq!(none, "");
        session
    }

    /// What the statements print.
    fn run(&mut self, statements: &str) -> String {
        let input = self.input.as_mut().unwrap();
        writeln!(input, "{statements}\n;\n.print '{END_OF_RESULT}'").unwrap();
        let mut printed = String::new();
        while !printed.ends_with(&format!("{END_OF_RESULT}\n")) {
            let read = self.output.read_line(&mut printed).unwrap();
            let errors = std::fs::read_to_string(&self.errors).unwrap();
            assert!(read > 0 && errors.is_empty(), "{errors}\n{statements}");
        }
        printed.truncate(printed.len() - END_OF_RESULT.len() - 1);
        printed
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.input = None;
        let _ = self.child.wait();
    }
}

fn oracle_file(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/duckdb_oracle");
    std::fs::read_to_string(folder.join(name)).unwrap()
}

fn has_duckdb() -> bool {
    skip_unless_installed(Need::DuckDb, "duckdb", "--version")
}

/// Runs a query of the directory, with the words in braces replaced.
pub(crate) fn sql(
    written: &Written,
    query: &Query,
    file: &str,
    words: &[(&str, &str)],
) -> Vec<Json> {
    let mut text = oracle_file(file);
    for (word, replacement) in words {
        text = text.replace(&format!("{{{word}}}"), replacement);
    }
    let info = written.recording.info();
    let recording = Window::new(info.begin_ns, info.end_ns);
    let span = query.window.unwrap_or(recording);
    let bound = |bound: Option<i64>| bound.map_or("NULL::BIGINT".into(), |ns| ns.to_string());
    let window = query.window;
    let variables = format!(
        "SET VARIABLE win_begin = {}; SET VARIABLE win_end = {}; SET VARIABLE span_begin = {};
         SET VARIABLE span_end = {}; SET VARIABLE rec_begin = {}; SET VARIABLE rec_end = {};",
        bound(window.map(|window| window.begin)),
        bound(window.map(|window| window.end)),
        span.begin.max(info.begin_ns),
        span.end.min(info.end_ns),
        info.begin_ns,
        info.end_ns
    );
    let printed = written
        .session
        .borrow_mut()
        .run(&format!("{variables}\n{text}"));
    if printed.trim().is_empty() {
        return Vec::new();
    }
    serde_json::from_str(&printed).unwrap_or_else(|error| panic!("{file}: {error}: {printed}"))
}

/// Compares the columns of the SQL result, row by row.
pub(crate) fn check(
    written: &Written,
    query: &Query,
    of: Rows,
    file: &str,
    words: &[(&str, &str)],
) {
    let expected = sql(written, query, file, words);
    let answer = evaluate(&written.recording, query).unwrap();
    let found = of.of(&answer);
    let what = format!("{} {file} {words:?}", answer.query);
    assert!(
        !expected.is_empty(),
        "{what}: the text finds nothing, so it proves nothing"
    );
    for (number, (row, expected)) in found.iter().zip(&expected).enumerate() {
        for (name, json) in expected.as_object().unwrap() {
            let value = row.iter().find(|(column, _)| column == name);
            let value = value.unwrap_or_else(|| panic!("{what}: no column {name}"));
            let (value, json) = same_form(&value.1, json);
            assert_eq!(
                value, json,
                "{what}: row {number}, column {name}\n{row:?}\n{expected}"
            );
        }
    }
    assert_eq!(found.len(), expected.len(), "{what}: number of rows");
}

pub(crate) type NamedRow = Vec<(String, Value)>;

/// Selects the rows of an answer that a query covers.
#[derive(Clone, Copy)]
pub(crate) enum Rows<'n> {
    /// Rows of the table with this name.
    Table(&'n str),
    /// Rows with a count, of all tables whose name has this prefix; their titles as column
    /// `series`.
    Series(&'n str),
    /// Rows of that table with a value in the first column, in its order.
    ByFirst(&'n str),
}

impl Rows<'_> {
    fn of(self, answer: &Answer) -> Vec<NamedRow> {
        let (name, prefix) = match self {
            Rows::Table(name) | Rows::ByFirst(name) => (name, false),
            Rows::Series(name) => (name, true),
        };
        let tables = answer
            .tables
            .iter()
            .filter(|table| table.name == name || prefix && table.name.starts_with(name));
        let mut rows: Vec<NamedRow> = tables
            .flat_map(|table| {
                let cuts = |row: usize| {
                    let cut = table.cut.iter().find(|(cut, _)| *cut == row);
                    cut.map(|(_, edge)| *edge).into()
                };
                table.rows.iter().enumerate().map(move |(number, row)| {
                    let names = table.columns.iter().map(|column| column.name.clone());
                    let mut row: NamedRow = names.zip(row.iter().cloned()).collect();
                    row.push(("series".into(), table.title.as_str().into()));
                    row.push(("cut".into(), cuts(number)));
                    row
                })
            })
            .collect();
        match self {
            Rows::Series("hist") => {
                rows.retain(|row| !row.contains(&("count".into(), Value::Int(0))));
            }
            Rows::ByFirst(_) => {
                rows.retain(|row| row[0].1 != Value::Null);
                rows.sort_by_key(|row| shown::cell(&row[0].1));
            }
            _ => {}
        }
        rows
    }
}

pub(crate) fn same_form(value: &Value, json: &Json) -> (String, String) {
    let number = |json: &Json| json.as_f64();
    // Equal but for the order of a sum: a tie between two digits may be rounded either way.
    if let (Value::Float(ours), Some(theirs)) = (value, number(json))
        && (ours - theirs).abs() <= 1e-12 * ours.abs()
    {
        return (shown::cell(value), shown::cell(value));
    }
    let shown = match (value, json) {
        (_, Json::Null) => "NULL".into(),
        (Value::Float(_), json) => number(json).map_or_else(|| json.to_string(), shown::float),
        (_, Json::Number(json)) => json.to_string(),
        (_, Json::String(json)) => json.clone(),
        (_, json) => json.to_string(),
    };
    (shown::cell(value), shown)
}

pub(crate) fn query(kind: Kind, verb: Verb) -> Query {
    Query {
        limit: Some(0),
        // The SQL has all rows.
        waits: true,
        ..Query::new(kind, verb)
    }
}

pub(crate) fn by(keys: &[&str], query: Query) -> Query {
    Query {
        by: keys.iter().map(ToString::to_string).collect(),
        ..query
    }
}

/// A window in the middle, and the whole recording.
pub(crate) fn windows(amount: Amount, query: &Query) -> [Query; 2] {
    let length = (amount.syscalls * amount.gap_ns) as i64;
    let window = Window::new(made::BEGIN + length / 3 + 17, made::BEGIN + length / 2 + 1);
    [
        query.clone(),
        Query {
            window: Some(window),
            ..query.clone()
        },
    ]
}

/// Enough for several threads.
pub(crate) fn amount() -> Amount {
    Amount {
        syscalls: 45_000,
        blocks: 6000,
        states: 4000,
        paths: 2500,
        gap_ns: 20_000,
        seed: 7,
    }
}
