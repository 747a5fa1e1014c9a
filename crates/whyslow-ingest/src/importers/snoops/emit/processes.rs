//! Process starts and exits.

use whyslow_model::Ns;

use super::super::columns::{Field, Row};
use super::{Time, quoted, write_event};

pub(super) fn exec(row: &Row<'_>, at: Ns, out: &mut String) -> Result<(), String> {
    let pid = row.id(Field::Pid).ok_or("no process")?;
    let args = row.text(Field::Args).unwrap_or_default();
    let program = args
        .split_whitespace()
        .next()
        .unwrap_or_default()
        .trim_matches('"');
    let ret = row.int(Field::Ret).unwrap_or(0);
    let comm = row.text(Field::Comm).filter(|comm| !comm.is_empty());
    let comm = comm.map_or_else(String::new, |comm| format!(" comm={}", quoted(comm)));
    let context = format!(" (tid={pid} pid={pid}{comm})");
    let path = quoted(program);
    write_event(
        at,
        &context,
        format_args!("syscall_enter name=execve path={path}"),
        out,
    );
    if ret == 0 {
        write_event(at, &context, format_args!("exec filename={path}"), out);
        let parent = row.id(Field::Ppid);
        let parent = parent.map_or_else(String::new, |parent| format!(" ppid={parent}"));
        let line = quoted(args);
        write_event(
            at,
            "",
            format_args!("process pid={pid}{parent} command_line={line}"),
            out,
        );
    }
    write_event(
        at,
        &context,
        format_args!("syscall_exit name=execve ret={ret} untimed=1"),
        out,
    );
    Ok(())
}

pub(super) fn exit(row: &Row<'_>, at: Ns, out: &mut String) -> Result<(), String> {
    let pid = row.id(Field::Pid).ok_or("no process")?;
    let tid = row.id(Field::Tid).unwrap_or(pid);
    let comm = quoted(row.text(Field::Comm).unwrap_or_default());
    let context = format!(" (tid={tid} pid={pid} comm={comm})");
    if let Some(age) = row
        .scaled(Field::AgeSeconds, 1e9)
        .filter(|age| *age >= 0 && tid == pid)
    {
        let created = Time(at.saturating_sub(age));
        let parent = row.id(Field::Ppid);
        let parent = parent.map_or_else(String::new, |parent| format!(" ppid={parent}"));
        write_event(
            at,
            "",
            format_args!("process pid={pid}{parent} created={created}"),
            out,
        );
    }
    let code = quoted(row.text(Field::ExitCode).unwrap_or_default());
    write_event(
        at,
        &context,
        format_args!("marker name=exit text={code}"),
        out,
    );
    write_event(
        at,
        &context,
        format_args!("exit tid={tid} comm={comm}"),
        out,
    );
    Ok(())
}
