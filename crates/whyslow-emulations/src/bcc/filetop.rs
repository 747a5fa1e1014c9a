//! `filetop`: reads and writes by thread and file.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::fmt::Write as _;

use clap::{Args, FromArgMatches, ValueEnum};
use whyslow_analysis::{Filter, Kind};
use whyslow_base::failure::Failure;

use super::columns::fit;
use crate::cells::Row;
use crate::front::{Front, FrontArgs, Positionals, shown, with_args};
use crate::tool::{Call, Tool};

pub(crate) static TOOL: Tool = Tool {
    name: "filetop",
    machine_name: None,
    about: "Show reads and writes by thread and file, like filetop, with full paths",
    args: |command| {
        let shape = "RECORDING [INTERVAL [COUNT]]";
        with_args::<FiletopArgs>(command, shape, NOTES)
    },
    run,
};

const NOTES: &str = "\
Without an interval there is one list for the whole window. FILE is the full path. R_Kb and W_Kb are
the bytes transferred (filetop counts the bytes requested), in units of 1024 bytes. A call counts in
the interval in which it returns; sendfile, splice and copy_file_range count as a read of one file
and a write of the other. T: R regular file, S socket, O other. The load average is not recorded.";

#[derive(Debug, Clone, Args)]
struct FiletopArgs {
    #[command(flatten)]
    front: FrontArgs,
    /// Do not clear the screen (always in effect)
    #[arg(short = 'C', long)]
    noclear: bool,
    /// Include non-regular files
    #[arg(short, long)]
    all: bool,
    /// Print ROWS rows per list; 0 prints all
    #[arg(short, long, default_value_t = 20)]
    rows: usize,
    /// Sort by COLUMN, largest first
    #[arg(short, long, value_name = "COLUMN", default_value = "all")]
    sort: Sort,
    /// Show only process PID
    #[arg(short, long)]
    pid: Option<i32>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Sort {
    /// Sum of calls and bytes
    All,
    Reads,
    Writes,
    Rbytes,
    Wbytes,
}

/// Thread and file of a transfer.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Key {
    tid: Option<i64>,
    comm: String,
    sort: char,
    file: String,
}

#[derive(Debug, Clone, Copy, Default)]
struct Sums {
    reads: i64,
    writes: i64,
    bytes_read: i64,
    bytes_written: i64,
}

impl Sums {
    fn rank(&self, sort: Sort) -> i64 {
        match sort {
            Sort::All => self.reads + self.writes + self.bytes_read + self.bytes_written,
            Sort::Reads => self.reads,
            Sort::Writes => self.writes,
            Sort::Rbytes => self.bytes_read,
            Sort::Wbytes => self.bytes_written,
        }
    }
}

fn run(call: &Call<'_>) -> Result<(), Failure> {
    let args = FiletopArgs::from_arg_matches(call.matches)
        .map_err(|error| Failure::usage(error.to_string()))?;
    let words = Positionals::without_names(&args.front.words)?;
    let (interval, count) = words.interval()?;
    let mut front = Front::open(call, &args.front, words.recording.as_deref())?;
    let parts = front.parts(interval, count)?;
    let mut found: Vec<HashMap<Key, Sums>> = vec![HashMap::new(); parts.count()];
    let filter = Filter {
        pids: args.pid.into_iter().collect(),
        ops: ["read", "write", "read_write"].map(String::from).to_vec(),
        ..Filter::default()
    };
    front.each(Kind::Io, filter, |row| {
        let Some(part) = row.int("ts_end_ns").and_then(|ts| parts.of(ts)) else {
            return Ok(());
        };
        let bytes = row.int("bytes").unwrap_or(0);
        let op = row.text("op");
        let mut add = |(sort, file): (char, &str), is_read: bool| {
            if !args.all && sort != 'R' {
                return;
            }
            let key = Key {
                tid: row.int("tid"),
                comm: row.text("comm").unwrap_or("?").to_owned(),
                sort,
                file: file.to_owned(),
            };
            let sums = found[part].entry(key).or_default();
            if is_read {
                sums.reads += 1;
                sums.bytes_read += bytes;
            } else {
                sums.writes += 1;
                sums.bytes_written += bytes;
            }
        };
        match op {
            Some("read") => add(first_object(row), true),
            Some("write") => add(first_object(row), false),
            _ => {
                add(first_object(row), true);
                add(second_object(row), false);
            }
        }
        Ok(())
    })?;
    for (part, found) in found.iter().enumerate() {
        let mut rows: Vec<(&Key, &Sums)> = found.iter().collect();
        rows.sort_by_key(|(key, sums)| (Reverse(sums.rank(args.sort)), *key));
        rows.truncate(if args.rows == 0 {
            usize::MAX
        } else {
            args.rows
        });
        front.put(&text(&front.clock(parts.end(part)), &rows))?;
    }
    front.finish()
}

fn first_object<'r>(row: &Row<'r>) -> (char, &'r str) {
    let sort = match row.text("fd_class") {
        Some("file") => 'R',
        Some("inet" | "inet6" | "unix" | "netlink" | "socket") => 'S',
        _ => 'O',
    };
    (sort, row.text("path").unwrap_or("?"))
}

/// Only the name of this object is known: a path, or `pipe:[…]`, `socket:[…]` and the like.
fn second_object<'r>(row: &Row<'r>) -> (char, &'r str) {
    let name = row.text("path2").unwrap_or("?");
    let sort = if name.starts_with('/') {
        'R'
    } else if name.starts_with("pipe") || name == "?" {
        'O'
    } else {
        'S'
    };
    (sort, name)
}

fn text(time: &str, rows: &[(&Key, &Sums)]) -> String {
    let mut text = format!("{time:>8} loadavg: -\n");
    let _ = writeln!(
        text,
        "{:<7} {:<16} {:<6} {:<6} {:<7} {:<7} {:1} FILE",
        "TID", "COMM", "READS", "WRITES", "R_Kb", "W_Kb", "T"
    );
    for (key, sums) in rows {
        let tid = key.tid.map_or_else(|| "-".into(), |tid| tid.to_string());
        let _ = writeln!(
            text,
            "{tid:<7} {:<16} {:<6} {:<6} {:<7} {:<7} {} {}",
            fit(&key.comm, 16),
            sums.reads,
            sums.writes,
            sums.bytes_read / 1024,
            sums.bytes_written / 1024,
            key.sort,
            shown(&key.file),
        );
    }
    text.push('\n');
    text
}
