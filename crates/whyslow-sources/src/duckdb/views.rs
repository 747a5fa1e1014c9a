//! The statements that set up a session: a view per table, then the views of `sql/views/`.

use std::fmt::Write as _;
use std::path::Path;

use whyslow_base::failure::Failure;
use whyslow_model::{ColumnType, Table, Unit, tables};
use whyslow_store::{RecordingInfo, renamed};

const TABLE: &str = include_str!("../../../../sql/setup/table.sql");
const TABLE_COPY: &str = include_str!("../../../../sql/setup/table_copy.sql");
const TABLE_EMPTY: &str = include_str!("../../../../sql/setup/table_empty.sql");
const COLUMN_EMPTY: &str = include_str!("../../../../sql/setup/column_empty.sql");
const COLUMN_RENAMED: &str = include_str!("../../../../sql/setup/column_renamed.sql");
const WORDS_RENAMED: &str = include_str!("../../../../sql/setup/words_renamed.sql");
const WORD_RENAMED: &str = include_str!("../../../../sql/setup/word_renamed.sql");
const ALLOW: &str = include_str!("../../../../sql/setup/allow.sql");
const LIMIT: &str = include_str!("../../../../sql/setup/limit.sql");

macro_rules! views {
    ($($name:literal),+ $(,)?) => {
        &[$(($name, include_str!(concat!("../../../../sql/views/", $name, ".sql")))),+]
    };
}

/// Views on top of the tables, in dependency order.
const VIEWS: &[(&str, &str)] = views![
    "io",
    "io_stats",
    "io_histogram",
    "process_io",
    "file_usage",
    "file_fills",
    "disk_latency",
    "thread_time",
    "lock_usage",
    "function_usage",
    "stack_frame",
    "dns_usage",
    "request_usage",
    "request_phase_usage",
];

/// All statements up to the lock. With `by_reference`, views read the recording's files, which stay
/// accessible; otherwise tables are copies and no file is accessible.
pub fn set_up(
    info: &RecordingInfo,
    folder: &Path,
    by_reference: bool,
) -> Result<Vec<String>, Failure> {
    let mut statements = Vec::new();
    let mut allowed = Vec::new();
    for table in tables::ALL {
        let files = files_of(info, folder, table)?;
        statements.push(match (files.is_empty(), by_reference) {
            (true, _) => empty(table),
            (false, true) => over(TABLE, table, info.format_version, &files),
            (false, false) => over(TABLE_COPY, table, info.format_version, &files),
        });
        allowed.extend(files);
    }
    statements.extend(VIEWS.iter().map(|(_, text)| code(text)));
    if by_reference {
        statements.push(code(ALLOW).replace("{files}", &allowed.join(", ")));
    }
    Ok(statements)
}

/// Sets an option of the session.
pub fn limit(name: &str, value: &str) -> String {
    code(LIMIT)
        .replace("{name}", name)
        .replace("{value}", &quoted(value))
}

fn over(template: &str, table: &Table, version: u32, files: &[String]) -> String {
    let columns: Vec<String> = table
        .columns
        .iter()
        .map(|column| as_today(version, table.name, column.name))
        .collect();
    code(template)
        .replace("{view}", table.name)
        .replace("{columns}", &columns.join(", "))
        .replace("{files}", &files.join(", "))
}

/// A column of files of this format version, with its name and words as of today.
fn as_today(version: u32, table: &str, column: &'static str) -> String {
    let in_files = renamed::column_in_files(version, table, column);
    let words: Vec<String> = renamed::words_in_files(version, table, column)
        .map(|word| {
            code(WORD_RENAMED)
                .replace("{old}", &quoted(word.old))
                .replace("{new}", &quoted(word.new))
        })
        .collect();
    if words.is_empty() && in_files == column {
        return column.to_owned();
    }
    let template = if words.is_empty() {
        COLUMN_RENAMED
    } else {
        WORDS_RENAMED
    };
    code(template)
        .replace("{column_in_files}", in_files)
        .replace("{words}", &words.join("\n"))
        .replace("{column}", column)
}

fn empty(table: &Table) -> String {
    let column = code(COLUMN_EMPTY);
    let columns: Vec<String> = table
        .columns
        .iter()
        .map(|c| {
            column
                .replace("{type}", type_name(c.kind))
                .replace("{column}", c.name)
        })
        .collect();
    code(TABLE_EMPTY)
        .replace("{view}", table.name)
        .replace("{columns}", &columns.join(", "))
}

/// Files of a table as SQL literals.
fn files_of(info: &RecordingInfo, folder: &Path, table: &Table) -> Result<Vec<String>, Failure> {
    let Some(found) = info.tables.get(table.name) else {
        return Ok(Vec::new());
    };
    let files = found.files.iter().chain(&found.long_files);
    files
        .map(|file| match folder.join(file).to_str() {
            Some(path) => Ok(quoted(path)),
            None => Err(Failure::new(format!(
                "cannot use `{}` in duckdb: the path is not UTF-8",
                folder.display()
            ))
            .hint("rename the directory")),
        })
        .collect()
}

/// A template without its comments.
fn code(template: &str) -> String {
    let lines = template.lines().filter(|line| !line.starts_with("--"));
    lines.collect::<Vec<_>>().join("\n")
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

fn type_name(kind: ColumnType) -> &'static str {
    match kind {
        ColumnType::I64 => "BIGINT",
        ColumnType::I32 => "INTEGER",
        ColumnType::F64 => "DOUBLE",
        ColumnType::Bool => "BOOLEAN",
        ColumnType::Utf8 => "VARCHAR",
    }
}

/// `--tables`: the tables and views, and the meaning of their columns.
pub fn describe() -> String {
    let mut out = String::new();
    for (_, text) in VIEWS {
        for line in text.lines().map_while(|line| line.strip_prefix("--")) {
            let _ = writeln!(out, "{}", line.strip_prefix(' ').unwrap_or(line));
        }
        out.push('\n');
    }
    for table in tables::ALL {
        let _ = writeln!(out, "{}: {}", table.name, table.doc.trim());
        for column in table.columns {
            let unit = match column.unit {
                Unit::Time => ", ns since the epoch",
                Unit::Duration => ", ns",
                Unit::Bytes => ", bytes",
                Unit::Sectors => ", 512-byte sectors",
                Unit::None | Unit::Count | Unit::Id => "",
            };
            let kind = type_name(column.kind);
            let _ = writeln!(
                out,
                "{:<18} {kind:<8} {}{unit}",
                column.name,
                column.doc.trim().trim_end_matches('.')
            );
        }
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_view_of_the_repository_is_in_the_session() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../sql/views");
        let mut files: Vec<String> = std::fs::read_dir(folder)
            .expect("the views are part of the repository")
            .map(|entry| {
                entry
                    .expect("readable")
                    .file_name()
                    .to_string_lossy()
                    .into_owned()
            })
            .collect();
        files.sort();
        let mut known: Vec<String> = VIEWS
            .iter()
            .map(|(name, _)| format!("{name}.sql"))
            .collect();
        known.sort();
        assert_eq!(files, known);
    }

    #[test]
    fn names_of_files_cannot_leave_their_quotes() {
        assert_eq!(quoted("a'b"), "'a''b'");
        assert_eq!(limit("threads", "2"), "SET threads = '2';");
    }

    #[test]
    fn older_files_have_the_names_of_today() {
        assert_eq!(as_today(3, "counter", "reported_by"), "reported_by");
        assert_eq!(
            as_today(2, "counter", "reported_by"),
            "told_by AS reported_by"
        );
        let names = as_today(2, "trace_stat", "name");
        assert!(names.starts_with("CASE name\n"), "{names}");
        assert!(
            names.contains("\nWHEN 'PERF_HURRIED' THEN 'PERF_SORTED_EARLY'\n"),
            "{names}"
        );
        assert!(names.ends_with("END AS name"), "{names}");
    }

    #[test]
    fn every_table_and_view_is_described() {
        let text = describe();
        for table in tables::ALL {
            assert!(
                text.contains(&format!("\n{}: ", table.name)),
                "{}",
                table.name
            );
        }
        for (name, _) in VIEWS {
            assert!(text.contains(&format!("{name}: ")), "{name}");
        }
    }
}
