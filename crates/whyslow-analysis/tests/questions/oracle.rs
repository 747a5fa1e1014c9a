//! Every verb × kind against an independent SQL text that DuckDB runs over the same Parquet files:
//! all rows, in order.
//!
//! The recording is written with small limits, so that tables have many row groups and rows that
//! came late, and answers are made from many parts.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value as Json;
use whyslow_analysis::{Bins, DeviceRef, Kind, Question, Verb, ask};
use whyslow_model::answer::{Answer, Value};
use whyslow_model::{Symbols, Window};
use whyslow_store::{Existing, Limits, Recording, RecordingWriter, Tables};

use crate::made::{self, Amount};
use crate::shown;

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

/// A recording on disk and the views that DuckDB sees of it.
struct Written {
    recording: Recording,
    directory: PathBuf,
    prelude: String,
    _guard: tempfile::TempDir,
}

fn written(amount: Amount) -> Written {
    let guard = tempfile::tempdir().unwrap();
    let directory = guard.path().join("made.wsl");
    let mut symbols = Symbols::new();
    let mut writer = RecordingWriter::create_within(&directory, Existing::Refuse, LIMITS).unwrap();
    let info = made::make(amount, &mut symbols, &mut writer, |writer, symbols| {
        writer.flush_ready(symbols).unwrap();
    });
    writer.finish(&symbols, info).unwrap();
    let recording = Recording::open(&directory).unwrap();
    let prelude = views(&recording, &directory);
    Written {
        recording,
        directory,
        prelude,
        _guard: guard,
    }
}

fn views(recording: &Recording, directory: &Path) -> String {
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

#[expect(clippy::print_stdout, reason = "a skipped test says so")]
fn has_duckdb() -> bool {
    let found = Command::new("duckdb").arg("--version").output().is_ok();
    if !found {
        println!("skipped: the `duckdb` command line is not installed");
    }
    found
}

/// Runs a text of the folder, with words in braces replaced.
fn sql(written: &Written, question: &Question, file: &str, words: &[(&str, &str)]) -> Vec<Json> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/duckdb_oracle");
    let read = |file: &str| std::fs::read_to_string(folder.join(file)).unwrap();
    let mut text = read(file);
    for (word, replacement) in words {
        text = text.replace(&format!("{{{word}}}"), replacement);
    }
    let info = written.recording.info();
    let recording = Window::new(info.begin_ns, info.end_ns);
    let span = question.window.unwrap_or(recording);
    let bound = |bound: Option<i64>| bound.map_or("NULL::BIGINT".into(), |ns| ns.to_string());
    let window = question.window;
    let variables = format!(
        "SET VARIABLE win_begin = {}; SET VARIABLE win_end = {}; SET VARIABLE span_begin = {};
         SET VARIABLE span_end = {}; SET VARIABLE rec_end = {};",
        bound(window.map(|window| window.begin)),
        bound(window.map(|window| window.end)),
        span.begin.max(info.begin_ns),
        span.end.min(info.end_ns),
        info.end_ns
    );
    let script = format!(
        "{variables}\n{}{}\n{text}",
        written.prelude,
        read("prelude.sql")
    );
    let path = written.directory.with_extension("sql");
    std::fs::write(&path, &script).unwrap();
    let run = Command::new("duckdb")
        .args(["-json", "-c"])
        .arg(format!(".read {}", path.display()))
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&run.stderr);
    assert!(
        run.status.success() && stderr.is_empty(),
        "{file}: {stderr}\n{text}"
    );
    let stdout = String::from_utf8(run.stdout).unwrap();
    if stdout.trim().is_empty() {
        return Vec::new();
    }
    serde_json::from_str(&stdout).unwrap_or_else(|error| panic!("{file}: {error}: {stdout}"))
}

/// Compares the columns that the SQL names, row by row.
fn check(written: &Written, question: &Question, of: Rows, file: &str, words: &[(&str, &str)]) {
    let expected = sql(written, question, file, words);
    let answer = ask(&written.recording, question).unwrap();
    let found = of.of(&answer);
    let what = format!("{} {file} {words:?}", answer.question);
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

type NamedRow = Vec<(String, Value)>;

/// Which rows of an answer a text is about.
#[derive(Clone, Copy)]
enum Rows<'n> {
    /// Of the table of that name.
    Table(&'n str),
    /// Those with a count, of all tables whose name begins so; their titles as column `series`.
    Series(&'n str),
    /// Those of that table with something in its first column, in the order of that.
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

fn same_form(value: &Value, json: &Json) -> (String, String) {
    let number = |json: &Json| json.as_f64();
    let shown = match (value, json) {
        (_, Json::Null) => "NULL".into(),
        (Value::Float(_), json) => number(json).map_or_else(|| json.to_string(), shown::float),
        (_, Json::Number(json)) => json.to_string(),
        (_, Json::String(json)) => json.clone(),
        (_, json) => json.to_string(),
    };
    (shown::cell(value), shown)
}

fn question(kind: Kind, verb: Verb) -> Question {
    Question {
        limit: Some(0),
        ..Question::new(kind, verb)
    }
}

fn by(keys: &[&str], question: Question) -> Question {
    Question {
        by: keys.iter().map(ToString::to_string).collect(),
        ..question
    }
}

/// A window in the middle, and the whole recording.
fn windows(amount: Amount, question: &Question) -> [Question; 2] {
    let length = (amount.syscalls * amount.gap_ns) as i64;
    let window = Window::new(made::BEGIN + length / 3 + 17, made::BEGIN + length / 2 + 1);
    [
        question.clone(),
        Question {
            window: Some(window),
            ..question.clone()
        },
    ]
}

/// Enough for several threads.
fn amount() -> Amount {
    Amount {
        syscalls: 45_000,
        blocks: 6000,
        states: 4000,
        paths: 300,
        gap_ns: 20_000,
        seed: 7,
    }
}

const SIZE: &str =
    "coalesce(sum(bytes), 0)::BIGINT AS bytes, coalesce(sum(bytes), 0) / span_s() AS bytes_per_s,";
/// Classes of system calls in the order of answers.
const CLASSES: &str = "['open', 'close', 'read', 'write', 'read_write', 'sync', 'metadata']";
const ERRNO: &str = "count(*) FILTER (WHERE errno > 0) AS errors,";

#[test]
fn stats_equal_sql() {
    if !has_duckdb() {
        return;
    }
    let written = written(amount());
    let dir = "regexp_replace(object, '^(/.*/|/)[^/]*$', '\\1') AS dir";
    for (kind, view, id, keys, expression, error) in [
        (Kind::Io, "io", "op", &["op"][..], "op", ERRNO),
        (Kind::Io, "io", "op", &["comm", "pid"], "comm, pid", ERRNO),
        (
            Kind::Io,
            "io",
            "op",
            &["tid", "fd_class", "cpu"],
            "tid, fd_class, cpu",
            ERRNO,
        ),
        (Kind::Io, "io", "op", &["file"], "object AS file", ERRNO),
        (Kind::Io, "io", "op", &["dir"], dir, ERRNO),
        (
            Kind::Files,
            "files",
            "op",
            &["file", "op"],
            "object AS file, op",
            ERRNO,
        ),
        (
            Kind::Block,
            "block",
            "block",
            &["dev", "op"],
            "dev_name AS dev, op",
            "count(*) FILTER (WHERE error > 0) AS errors,",
        ),
        (
            Kind::Block,
            "block",
            "block",
            &["part"],
            "part_name AS part",
            "",
        ),
        (
            Kind::States,
            "states",
            "state",
            &["state", "comm"],
            "state, comm",
            "",
        ),
    ] {
        let order: Vec<String> = keys
            .iter()
            .map(|key| format!("{key} NULLS FIRST"))
            .collect();
        let size = if kind == Kind::States { "" } else { SIZE };
        let words = [
            ("view", view),
            ("id", id),
            ("keys", expression),
            ("order", &order.join(", ")),
            ("size", size),
            ("errors", error),
        ];
        let asked = by(keys, question(kind, Verb::Stats));
        for question in windows(amount(), &asked) {
            check(
                &written,
                &question,
                Rows::Table("stats"),
                "stats.sql",
                &words,
            );
        }
    }
    for question in windows(amount(), &question(Kind::Block, Verb::Stats)) {
        check(
            &written,
            &question,
            Rows::Table("stats"),
            "stats_stages.sql",
            &[],
        );
    }
    let order = "name NULLS FIRST";
    let words = [
        ("view", "syscalls"),
        ("id", "op"),
        ("keys", "name"),
        ("order", order),
        ("size", SIZE),
        ("errors", ERRNO),
    ];
    for question in windows(amount(), &question(Kind::Io, Verb::Syscalls)) {
        check(
            &written,
            &question,
            Rows::Table("syscalls"),
            "stats.sql",
            &words,
        );
        check(
            &written,
            &question,
            Rows::ByFirst("syscalls"),
            "errnos.sql",
            &[],
        );
    }
}

#[test]
fn usage_equals_sql() {
    if !has_duckdb() {
        return;
    }
    let written = written(amount());
    for (keys, names, shown, with) in [
        (
            &["process"][..],
            "upid",
            "process.comm, process.pid, joined.* EXCLUDE (upid)",
            "LEFT JOIN process USING (upid)",
        ),
        (&["comm", "pid"], "comm, pid", "*", ""),
        (&["tid"], "tid", "*", ""),
    ] {
        let each = |form: &dyn Fn(&str) -> String, separator| {
            let names: Vec<String> = names.split(", ").map(form).collect();
            names.join(separator)
        };
        let either = |name: &str| format!("coalesce(calls.{name}, disk.{name}) AS {name}");
        let same = |name: &str| format!("calls.{name} IS NOT DISTINCT FROM disk.{name}");
        let order = |name: &str| format!("{name} NULLS FIRST");
        let words = [
            ("keys", names),
            ("names", names),
            ("either", &*each(&either, ", ")),
            ("on", &*each(&same, " AND ")),
            ("order", &*each(&order, ", ")),
            ("shown", shown),
            ("with", with),
        ];
        let asked = by(keys, question(Kind::Io, Verb::Usage));
        for question in windows(amount(), &asked) {
            let usage = Rows::Table("usage");
            check(&written, &question, usage, "usage_owner.sql", &words);
        }
    }
    for (kind, view, wanted) in [
        (Kind::Io, "io", "true"),
        (Kind::Files, "files", "path2 LIKE '/%'"),
    ] {
        let by_file = by(&["file"], question(kind, Verb::Usage));
        for question in windows(amount(), &by_file) {
            let words = [
                ("view", view),
                ("wanted", wanted),
                ("name", "file"),
                ("first", "object"),
                ("second", "path2"),
            ];
            let usage = Rows::Table("usage");
            check(&written, &question, usage, "usage_file.sql", &words);
            let users = Rows::ByFirst("usage");
            check(&written, &question, users, "sharers.sql", &words);
        }
    }
    // The patterns of the names that are made.
    let pattern = |path: &str| {
        [
            (r"/[0-9a-f]{8}-[0-9a-f-]{27}/\d+\.txt$", "/<uuid>/<n>.txt"),
            (r"/access-\d+\.log$", "/access-<n>.log"),
            (r"/part-\d+/", "/part-<n>/"),
        ]
        .iter()
        .fold(path.to_owned(), |text, (from, to)| {
            format!("regexp_replace({text}, '{from}', '{to}')")
        })
    };
    let words = [
        ("view", "io"),
        ("wanted", "true"),
        ("name", "pattern"),
        ("first", &*pattern("object")),
        ("second", &*pattern("path2")),
    ];
    let by_pattern = by(&["pattern"], question(Kind::Io, Verb::Usage));
    for question in windows(amount(), &by_pattern) {
        let usage = Rows::Table("usage");
        check(&written, &question, usage, "usage_file.sql", &words);
    }
    for question in windows(amount(), &question(Kind::States, Verb::Usage)) {
        check(
            &written,
            &question,
            Rows::Table("states"),
            "usage_states.sql",
            &[],
        );
    }
    for asked in windows(amount(), &question(Kind::Block, Verb::Usage)) {
        let info = written.recording.info();
        let span = asked
            .window
            .unwrap_or(Window::new(info.begin_ns, info.end_ns));
        let words = [
            ("width", &*format!("{}::BIGINT", span.length())),
            ("time", ""),
            ("order", "read_bytes + write_bytes DESC, dev"),
        ];
        check(
            &written,
            &asked,
            Rows::Table("devices"),
            "devices.sql",
            &words,
        );
        let series = Question {
            interval: Some(7_000_000),
            ..asked
        };
        let words = [
            ("width", "7000000::BIGINT"),
            ("time", "b AS ts_ns,"),
            ("order", "ts_ns, dev"),
        ];
        check(
            &written,
            &series,
            Rows::Table("devices"),
            "devices.sql",
            &words,
        );
    }
}

#[test]
fn distributions_equal_sql() {
    if !has_duckdb() {
        return;
    }
    let written = written(amount());
    let classes = format!("array_position({CLASSES}, series)");
    for (kind, keys, view, label, order) in [
        (Kind::Io, &["op"][..], "io", "op", &*classes),
        (
            Kind::Io,
            &["name", "cpu"],
            "io",
            "name || ' cpu ' || cpu",
            "series",
        ),
        (
            Kind::Block,
            &["dev", "op"],
            "block",
            "dev_name || ' ' || op",
            "series",
        ),
        (Kind::States, &["state"], "states", "state", "series"),
        (Kind::Files, &["file"], "files", "path", "series"),
    ] {
        let words = [
            ("view", view),
            ("label", label),
            ("order", order),
            ("among", "PARTITION BY series"),
            ("width", ""),
        ];
        for question in windows(amount(), &by(keys, question(kind, Verb::Hist))) {
            check(
                &written,
                &question,
                Rows::Series("hist"),
                "hist.sql",
                &words,
            );
            let linear = Question {
                bins: Bins::Linear {
                    count: 20,
                    uniform: false,
                },
                ..question.clone()
            };
            check(
                &written,
                &linear,
                Rows::Series("hist"),
                "hist_linear.sql",
                &words,
            );
            let uniform = Question {
                bins: Bins::Linear {
                    count: 20,
                    uniform: true,
                },
                ..question
            };
            let words = words.map(|(word, text)| (word, if word == "among" { "" } else { text }));
            check(
                &written,
                &uniform,
                Rows::Series("hist"),
                "hist_linear.sql",
                &words,
            );
        }
        for question in windows(amount(), &by(keys, question(kind, Verb::Heat))) {
            let info = written.recording.info();
            let span = question
                .window
                .unwrap_or(Window::new(info.begin_ns, info.end_ns));
            let width = (span.length() + 59) / 60;
            let words = [
                ("view", view),
                ("label", label),
                ("order", order),
                ("width", &*width.to_string()),
            ];
            check(
                &written,
                &question,
                Rows::Series("heat"),
                "heat.sql",
                &words,
            );
            let question = Question {
                interval: Some(10_000_000),
                ..question
            };
            let words =
                words.map(|(word, text)| (word, if word == "width" { "10000000" } else { text }));
            check(
                &written,
                &question,
                Rows::Series("heat"),
                "heat.sql",
                &words,
            );
        }
    }
}

#[test]
fn two_devices_side_by_side_equal_sql() {
    if !has_duckdb() {
        return;
    }
    let written = written(amount());
    let mut asked = question(Kind::Block, Verb::Hist);
    asked.filter.devices = vec![DeviceRef::Name("sda".into())];
    asked.versus = Some(DeviceRef::Number {
        major: 253,
        minor: 0,
    });
    let answer = ask(&written.recording, &asked).unwrap();
    let table = shown::table(&answer, "hist_versus");
    for (column, device) in [("sda", "sda"), ("253:0", "dm-0")] {
        let view = format!("(SELECT * FROM block WHERE dev_name = '{device}')");
        let words = [("view", &*view), ("label", "''"), ("order", "series")];
        let expected = sql(&written, &asked, "hist.sql", &words);
        let (from, count) = (shown::place(table, "from_ns"), shown::place(table, column));
        let rows = table.rows.iter().filter(|row| row[count] != Value::Int(0));
        let found: Vec<_> = rows
            .map(|row| (shown::cell(&row[from]), shown::cell(&row[count])))
            .collect();
        let expected: Vec<_> = expected
            .iter()
            .map(|row| (row["from_ns"].to_string(), row["count"].to_string()))
            .collect();
        assert_eq!(found, expected, "{device}");
    }
}

#[test]
fn rows_equal_sql() {
    if !has_duckdb() {
        return;
    }
    let written = written(amount());
    let error = |column: &str| {
        format!(
            "CASE {column} WHEN 2 THEN 'ENOENT' WHEN 5 THEN 'EIO' WHEN 11 THEN 'EAGAIN' WHEN 13 THEN 'EACCES' END AS error"
        )
    };
    let io = format!(
        "ts AS ts_ns, ts_end AS ts_end_ns, dur AS dur_ns, name, op, bytes, comm, pid, tid, object AS path, fd, path2, fd2, fd_class, cpu, 'op:' || id AS id, {}",
        error("errno")
    );
    let block = format!(
        "ts AS ts_ns, ts_end AS ts_end_ns, dur AS dur_ns, queue_ns, device_ns, dev_name AS dev, part_name AS part, op, rwbs, sector, sectors, bytes, comm, pid, tid, layer, 'block:' || id AS id, {}",
        error("error")
    );
    let states = "ts AS ts_ns, ts_end AS ts_end_ns, dur AS dur_ns, state, comm, pid, tid, cpu, 'state:' || id AS id";
    let edge = "cut_of(ts, ts_end, cut)";
    let state_edge = "cut_of(ts, ts_end, CASE WHEN ts_end IS NULL THEN 'end' END)";
    for (kind, view, columns, edge) in [
        (Kind::Io, "io", &*io, edge),
        (Kind::Block, "block", &*block, edge),
        (Kind::States, "states", states, state_edge),
    ] {
        let words = [
            ("view", view),
            ("columns", columns),
            ("cut", edge),
            ("where", "true"),
        ];
        for question in windows(amount(), &question(kind, Verb::Log)) {
            check(&written, &question, Rows::Table("log"), "log.sql", &words);
        }
    }
    for (kind, view, columns, key, order) in [
        (
            Kind::Io,
            "io",
            &*io,
            "op",
            &*format!("array_position({CLASSES}, op)"),
        ),
        (Kind::States, "states", states, "state", "state"),
    ] {
        let words = [
            ("view", view),
            ("columns", columns),
            ("label", key),
            ("keys", key),
            ("limit", "7"),
            ("order", order),
        ];
        for question in windows(amount(), &question(kind, Verb::Top)) {
            let question = Question {
                limit: Some(7),
                ..question
            };
            check(&written, &question, Rows::Series("top_"), "top.sql", &words);
        }
    }
    let words = [
        ("view", "block"),
        ("columns", &*block),
        ("label", "dev_name || ' ' || op"),
        ("keys", "dev_name, op"),
        ("limit", "7"),
        ("order", "dev_name, op"),
    ];
    for question in windows(amount(), &question(Kind::Block, Verb::Top)) {
        let question = Question {
            limit: Some(7),
            ..question
        };
        check(&written, &question, Rows::Series("top_"), "top.sql", &words);
    }
}

#[test]
fn filters_equal_sql() {
    if !has_duckdb() {
        return;
    }
    let written = written(amount());
    let check_io = |condition: &str, change: &dyn Fn(&mut Question)| {
        let mut question = question(Kind::Io, Verb::Log);
        change(&mut question);
        let words = [
            ("view", "io"),
            ("columns", "'op:' || id AS id"),
            ("cut", "cut_of(ts, ts_end, cut)"),
            ("where", condition),
        ];
        check(&written, &question, Rows::Table("log"), "log.sql", &words);
    };
    check_io("pid = 1003", &|q| q.filter.pids = vec![1003]);
    check_io("tid IN (1003, 1501)", &|q| q.filter.tids = vec![1003, 1501]);
    check_io("comm GLOB 'kw*'", &|q| q.filter.comms = vec!["kw*".into()]);
    check_io("cpu = 2", &|q| q.filter.cpus = vec![2]);
    check_io("op IN ('read', 'read_write')", &|q| {
        q.filter.ops = vec!["read".into()];
    });
    check_io("op = 'sync' OR name = 'openat'", &|q| {
        q.filter.ops = vec!["sync".into(), "openat".into()];
    });
    check_io("bytes IS NULL OR bytes >= 30000", &|q| {
        q.filter.size_min = Some(30_000);
    });
    check_io("bytes IS NULL OR bytes <= 300", &|q| {
        q.filter.size_max = Some(300);
    });
    check_io(
        "coalesce(dur, coalesce(ts_end, getvariable('rec_end')) - ts) >= 100000",
        &|q| q.filter.dur_min = Some(100_000),
    );
    check_io("dur BETWEEN 1000 AND 64000", &|q| {
        q.filter.dur_min = Some(1000);
        q.filter.dur_max = Some(64_000);
    });
    check_io("errno IS NOT NULL", &|q| q.filter.errors_only = true);
    check_io("utid IS NULL OR utid NOT IN (6, 7)", &|q| {
        q.filter.no_tracer = true;
    });
    check_io("path LIKE '/etc/%' OR path2 LIKE '/etc/%'", &|q| {
        q.filter.files = vec!["/etc/*".into()];
    });
    check_io("path LIKE '%.log' OR path2 LIKE '%.log'", &|q| {
        q.filter.files = vec!["*.log".into()];
    });
    check_io(
        "id <> 12345 AND ts < (SELECT coalesce(ts_end, getvariable('rec_end')) FROM syscall WHERE id = 12345)
         AND (ts_end IS NULL OR ts_end > (SELECT ts FROM syscall WHERE id = 12345)
              OR ts_end = ts AND ts = (SELECT ts FROM syscall WHERE id = 12345))",
        &|q| q.overlaps = Some(("syscall".into(), 12_345)),
    );
}

#[test]
fn files_and_threads_equal_sql() {
    if !has_duckdb() {
        return;
    }
    let written = written(amount());
    for (name, key) in [("file", "path"), ("dir", "regexp_extract(path, '^.*/')")] {
        for question in windows(amount(), &by(&[name], question(Kind::Files, Verb::Top))) {
            let (starts, ends) = match question.window {
                None => ("true".into(), "ts_end IS NOT NULL".into()),
                Some(Window { begin, end }) => (
                    format!("ts >= {begin} AND ts < {end}"),
                    format!("ts_end >= {begin} AND ts_end < {end}"),
                ),
            };
            let words = [
                ("name", name),
                ("key", key),
                ("starts", &*starts),
                ("ends", &*ends),
            ];
            check(
                &written,
                &question,
                Rows::Table("files"),
                "files_top.sql",
                &words,
            );
        }
    }
    for wide in [false, true] {
        for question in windows(amount(), &question(Kind::Files, Verb::Tree)) {
            let question = Question { wide, ..question };
            let leaves = wide.to_string();
            let tree = Rows::ByFirst("tree");
            check(
                &written,
                &question,
                tree,
                "files_tree.sql",
                &[("leaves", &*leaves)],
            );
        }
    }
    let at = made::BEGIN + 400_000_000;
    let mut open = question(Kind::Files, Verb::Open);
    open.at = Some(at);
    check(
        &written,
        &open,
        Rows::Table("open"),
        "files_open.sql",
        &[("at", &at.to_string())],
    );
    for question in windows(amount(), &question(Kind::Threads, Verb::List)) {
        check(
            &written,
            &question,
            Rows::Table("threads"),
            "threads.sql",
            &[],
        );
    }
    let lives = "ts AS ts_ns, ts_end AS ts_end_ns, dur AS life_ns, path, created, deleted, opens, reads, writes, bytes_read AS read_bytes, bytes_written AS write_bytes, comm, pid";
    let words = [
        ("view", "file_life"),
        ("columns", lives),
        ("cut", "cut_of(ts, ts_end, NULL)"),
        ("where", "touches(ts, ts_end)"),
    ];
    for question in windows(amount(), &question(Kind::Files, Verb::Log)) {
        check(&written, &question, Rows::Table("log"), "log.sql", &words);
    }
}
