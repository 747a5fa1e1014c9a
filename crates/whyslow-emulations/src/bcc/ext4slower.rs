//! `ext4slower`: slow reads, writes, opens and syncs of files.

use clap::{Args, FromArgMatches};
use whyslow_analysis::{Filter, Kind};
use whyslow_base::failure::Failure;

use super::columns::{fit, path};
use crate::cells::Row;
use crate::front::{ByEnd, Front, FrontArgs, Positionals, with_args};
use crate::tool::{Call, Tool};

pub(crate) static TOOL: Tool = Tool {
    name: "ext4slower",
    machine_name: None,
    about: "Show slow file reads, writes, opens and syncs, like ext4slower",
    args: |command| with_args::<Ext4slowerArgs>(command, "RECORDING [MIN_MS]", NOTES),
    run,
};

const NOTES: &str = "\
MIN_MS defaults to 10; 0 shows everything. The latency is that of system calls on regular files (R
read, W write, O open, S fsync, fdatasync, sync_file_range), from entry to exit. File system types
are not recorded, so files on all file systems are shown. OFF_KB is known only if a call passes an
offset (pread64, pwrite64), otherwise -. FILENAME is the full path. -j prints offsets in bytes.";

#[derive(Debug, Clone, Args)]
struct Ext4slowerArgs {
    #[command(flatten)]
    front: FrontArgs,
    /// Show only process PID
    #[arg(short, long)]
    pid: Option<i32>,
    /// Print comma-separated values
    #[arg(short = 'j', long, visible_short_alias = 'c')]
    csv: bool,
    /// Show only operations of at least MIN_MS milliseconds
    #[arg(short, long, value_name = "MIN_MS")]
    min: Option<String>,
}

const MIN_MS: f64 = 10.0;

fn run(call: &Call<'_>) -> Result<(), Failure> {
    let args = Ext4slowerArgs::from_arg_matches(call.matches)
        .map_err(|error| Failure::usage(error.to_string()))?;
    let words = Positionals::without_names(&args.front.words)?;
    let number = words.number()?;
    if let (Some(_), Some(min)) = (number, &args.min) {
        return Err(
            Failure::usage(format!("cannot use both `--min {min}` and MIN_MS"))
                .hint("use only one of them"),
        );
    }
    let min_ms = match number.or(args.min.as_deref()) {
        None => MIN_MS,
        Some(text) => milliseconds(text)?,
    };
    let front = Front::open(call, &args.front, words.recording.as_deref())?;
    front.put_first(&header(&args, min_ms))?;
    let filter = Filter {
        pids: args.pid.into_iter().collect(),
        ops: ["read", "write", "open", "sync"].map(String::from).to_vec(),
        dur_min: Some((min_ms * 1e6).round() as i64),
        ..Filter::default()
    };
    let end = front.span().end;
    let mut lines = ByEnd::default();
    front.each(Kind::Syscalls, filter, |row| {
        let (Some(begin), Some(returned)) = (row.int("ts_ns"), row.int("ts_end_ns")) else {
            return Ok(());
        };
        if returned > end {
            return Ok(());
        }
        if let Some(letter) = letter(row) {
            let line = line(&args, &front, (row, letter, returned));
            for line in lines.take((begin, returned), line) {
                front.put(&line)?;
            }
        }
        Ok(())
    })?;
    for line in lines.rest() {
        front.put(&line)?;
    }
    front.finish()
}

fn milliseconds(text: &str) -> Result<f64, Failure> {
    let digits = text.strip_suffix("ms").unwrap_or(text);
    let number = digits.parse().ok();
    let number = number.filter(|ms: &f64| ms.is_finite() && (0.0..1e12).contains(ms));
    number.ok_or_else(|| {
        Failure::usage(format!("cannot use `{text}` as the number of milliseconds"))
            .hint("use a number such as 10 or 0.5")
    })
}

fn header(args: &Ext4slowerArgs, min_ms: f64) -> String {
    if args.csv {
        return "ENDTIME_us,TASK,PID,TYPE,BYTES,OFFSET_b,LATENCY_us,FILE\n".into();
    }
    let title = if min_ms > 0.0 {
        format!("Tracing file operations slower than {min_ms} ms\n")
    } else {
        "Tracing file operations\n".into()
    };
    format!(
        "{title}{:<8} {:<14} {:<6} {:1} {:<7} {:<8} {:>7} {}\n",
        "TIME", "COMM", "PID", "T", "BYTES", "OFF_KB", "LAT(ms)", "FILENAME"
    )
}

/// The operation of a call on a file, if it is one.
fn letter(row: &Row<'_>) -> Option<&'static str> {
    let is_file = row.text("fd_class") == Some("file");
    match (row.text("op")?, row.text("name")?) {
        ("read", _) if is_file => Some("R"),
        ("write", _) if is_file => Some("W"),
        ("open", "open" | "openat" | "openat2" | "creat") if is_file => Some("O"),
        ("sync", "fsync" | "fdatasync" | "sync_file_range" | "arm_sync_file_range") => Some("S"),
        _ => None,
    }
}

fn line(
    args: &Ext4slowerArgs,
    front: &Front<'_>,
    (row, letter, returned): (&Row<'_>, &str, i64),
) -> String {
    let moved = row
        .int("ret")
        .filter(|ret| *ret > 0 && matches!(letter, "R" | "W"));
    let bytes = moved.unwrap_or(0);
    let offset = row.int("offset");
    let comm = row.text("comm").unwrap_or("?");
    let pid = row
        .int("pid")
        .map_or_else(|| "-".into(), |pid| pid.to_string());
    let dur = row.int("dur_ns").unwrap_or(0);
    if args.csv {
        let offset = offset.map_or_else(String::new, |offset| offset.to_string());
        return format!(
            "{},{},{pid},{letter},{bytes},{offset},{},{}\n",
            returned / 1000,
            field(&path(row, "comm")),
            dur / 1000,
            field(&path(row, "path")),
        );
    }
    let offset = offset.map_or_else(|| "-".into(), |offset| (offset / 1024).to_string());
    format!(
        "{:<8} {:<14} {pid:<6} {letter:1} {bytes:<7} {offset:<8} {:>7.2} {}\n",
        front.clock(returned),
        fit(comm, 14),
        dur as f64 / 1e6,
        path(row, "path"),
    )
}

/// Quoted as in RFC 4180 if it contains a comma or a quote.
fn field(text: &str) -> String {
    if text.contains([',', '"']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}
