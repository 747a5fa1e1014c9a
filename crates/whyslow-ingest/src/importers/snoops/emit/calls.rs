//! System calls from tools that print one call per line.

use std::fmt::Write as _;

use whyslow_model::Ns;

use super::super::FIRST_TID;
use super::super::columns::{Field, Row, Tool};
use super::{KIB, quoted, write_event};

/// opensnoop and statsnoop report the return value but not the duration.
pub(super) fn of_path(tool: Tool, row: &Row<'_>, (at, context): (Ns, &str), out: &mut String) {
    let path = quoted(row.text(Field::Path).unwrap_or_default());
    let error = row.int(Field::Err).unwrap_or(0);
    let name = if tool == Tool::Open { "openat" } else { "stat" };
    let ret = match (error, tool) {
        (0, Tool::Open) => row.int(Field::Fd).unwrap_or(-1),
        (0, _) => 0,
        (error, _) => -error.abs(),
    };
    let flags = row.text(Field::Flags);
    let flags = flags.and_then(|flags| i64::from_str_radix(flags, 8).ok());
    let flags = flags.map_or_else(String::new, |flags| format!(" flags={flags}"));
    write_event(
        at,
        context,
        format_args!("syscall_enter name={name} path={path}{flags}"),
        out,
    );
    write_event(
        at,
        context,
        format_args!("syscall_exit name={name} ret={ret} untimed=1"),
        out,
    );
}

/// ext4slower and similar tools: only the type of the call is known.
pub(super) fn name_of_kind(row: &Row<'_>) -> Result<&'static str, String> {
    Ok(match row.text(Field::Letters).unwrap_or_default() {
        "O" => "open",
        // Printed by nfsslower only.
        "G" => "stat",
        "C" => "fsync",
        "R" => "pread64",
        "W" => "pwrite64",
        "S" | "F" => "fsync",
        kind => return Err(format!("unknown operation `{kind}`")),
    })
}

pub(super) fn of_file(
    (name, row): (&str, &Row<'_>),
    (tid, context): (Option<i32>, &str),
    (begin, end): (Ns, Ns),
    out: &mut String,
) {
    let path = quoted(row.text(Field::File).unwrap_or_default());
    let bytes = row.int(Field::Bytes).unwrap_or(0);
    if matches!(name, "open" | "stat") {
        write_event(
            begin,
            context,
            format_args!("syscall_enter name={name} path={path}"),
            out,
        );
        write_event(end, context, format_args!("syscall_exit name={name}"), out);
        return;
    }
    let offset = row
        .scaled(Field::OffsetKb, KIB)
        .or_else(|| row.int(Field::OffsetBytes));
    // No program has a descriptor with this number.
    let fd = tid.unwrap_or(FIRST_TID);
    let owner = row
        .id(Field::Pid)
        .or_else(|| row.id(Field::Tid))
        .unwrap_or(fd);
    write_event(
        begin,
        context,
        format_args!("state_fd pid={owner} fd={fd} path={path}"),
        out,
    );
    let mut enter = format!("syscall_enter name={name} fd={fd}");
    if name != "fsync" {
        let _ = write!(enter, " count={bytes}");
        if let Some(offset) = offset {
            let _ = write!(enter, " offset={offset}");
        }
    }
    write_event(begin, context, format_args!("{enter}"), out);
    let ret = if name == "fsync" { 0 } else { bytes };
    write_event(
        end,
        context,
        format_args!("syscall_exit name={name} ret={ret}"),
        out,
    );
}

/// From syncsnoop: `sync()`, `tracepoint:syscalls:sys_enter_fsync`.
pub(super) fn name_of_sync(text: &str) -> String {
    let name = text.trim().trim_end_matches("()");
    let name = name.rsplit("sys_enter_").next().unwrap_or_default();
    let name: String = name
        .chars()
        .filter(|c| c.is_ascii_alphanumeric() || *c == '_')
        .collect();
    if name.is_empty() {
        "sync".to_owned()
    } else {
        name
    }
}
