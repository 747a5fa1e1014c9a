//! The reference of the format, in Markdown, from the declarations of the tables.

use std::fmt::Write;

use whyslow_model::tables;
use whyslow_model::{Column, ColumnType, Shape, Table, Unit};

use crate::manifest::FORMAT_VERSION;

/// What the generated reference says before the tables.
const PREFACE: &str = "\
A recording is a directory, by custom called `NAME.wsl`.
It holds `manifest.json`, Parquet files and `checksums`, and needs no program of ours to be read: DuckDB, Spark, Polars, pandas and others open the files as they are.

- Every table has its file `TABLE.parquet`, also when it has no rows; very large tables go on in `TABLE-00001.parquet` and so on, by time.
- Rows are sorted by `ts` and id; tables of things (shape *entity*) by id alone.
- `TABLE_long.parquet`, where it exists, holds rows of the same table that became known too late for their place in the main file, usually because they lasted very long. It is sorted too. A table is the union of all of its files.
- Times are nanoseconds since the Unix epoch, lengths nanoseconds, both signed 64-bit integers.
- An interval that was not finished, or whose begin was not recorded, has no `dur`; without an end it has no `ts_end` either. `cut` tells which side is missing.
- Text is UTF-8; bytes that are not are replaced by U+FFFD.
- Compression is zstd. Times, lengths, sectors and running ids are delta-encoded, everything else is dictionary-encoded. `ts` and `ts_end` have statistics for every page of about 20,000 rows.

`manifest.json` has these keys: `format_version`; `written_by`; `sources` (for each `path`, `kind`, `bytes`, and `digest`, the BLAKE3 of its files in order of their names); `host`; `zone` (IANA name or fixed offset, where a source told); `begin_ns` and `end_ns`, the range of time; and `tables`, for each `rows`, `files`, `long_files`, `dur_max_ns` (the greatest distance of `ts_end` from `ts` in the main files) and `unfinished` (rows without an end).

`checksums` is for programs of ours, which decode nothing that is not what was written: the eight bytes `WSLSUMS1`; the number of files (4 bytes, all numbers little-endian); for each file the length of its name (2), its name, its size (8), and a CRC-32 (4) of every block of 16 KiB; at the end a CRC-32 (4) of everything before.

A program refuses a recording of a later `format_version` than it knows.
Within a version, tables may be added, and columns that can be null: unknown ones are ignored, missing ones are read as null.
";

/// The reference of the recording format: all tables and columns, as Markdown.
pub fn describe() -> String {
    let mut text = format!("# Format of a recording, version {FORMAT_VERSION}\n\n{PREFACE}");
    for table in tables::ALL {
        describe_table(&mut text, table).expect("writing to a string succeeds");
    }
    text
}

fn describe_table(text: &mut String, table: &Table) -> std::fmt::Result {
    let shape = match table.shape {
        Shape::Interval => "interval, sorted by (`ts`, `id`)".to_owned(),
        Shape::Point => "point in time, sorted by (`ts`, `id`)".to_owned(),
        Shape::Entity => format!("entity, sorted by `{}`", table.id),
    };
    writeln!(
        text,
        "\n## `{}`\n\n{}\n\nShape: {shape}.\n",
        table.name,
        table.doc.trim()
    )?;
    writeln!(text, "| column | type | unit | null | meaning |")?;
    writeln!(text, "|---|---|---|---|---|")?;
    for column in table.columns {
        writeln!(
            text,
            "| `{}` | {} | {} | {} | {} |",
            column.name,
            type_name(column),
            unit_name(column.unit),
            if column.nullable { "yes" } else { "" },
            column.doc.trim().replace('|', "\\|")
        )?;
    }
    Ok(())
}

fn type_name(column: &Column) -> &'static str {
    match column.kind {
        ColumnType::I64 => "INT64",
        ColumnType::I32 => "INT32",
        ColumnType::F64 => "DOUBLE",
        ColumnType::Bool => "BOOLEAN",
        ColumnType::Utf8 => "UTF-8",
    }
}

fn unit_name(unit: Unit) -> &'static str {
    match unit {
        Unit::None => "",
        Unit::Time => "ns since 1970-01-01 UTC",
        Unit::Duration => "ns",
        Unit::Bytes => "bytes",
        Unit::Sectors => "sectors of 512 bytes",
        Unit::Count => "count",
        Unit::Id => "id",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_column_of_every_table_is_described() {
        let text = describe();
        for table in tables::ALL {
            let begin = text
                .find(&format!("\n## `{}`\n", table.name))
                .expect("a section");
            let section = &text[begin..];
            for column in table.columns {
                let row = format!("| `{}` | {} |", column.name, type_name(column));
                assert!(section.contains(&row), "{}.{}", table.name, column.name);
            }
        }
    }
}
