//! Converts rows to lines of the text format.

mod block;
mod calls;
mod counters;
mod net;
mod processes;

use std::collections::{BTreeSet, HashMap};
use std::fmt::{Arguments, Write as _};

use whyslow_model::Ns;

use super::super::sysstat::quoted;
use super::columns::{Field, Row, Tool};
use super::{FIRST_TID, MadeUp};

/// Maximum number of concurrent calls of one process.
const CONCURRENT_MAX: usize = 4096;
const KIB: f64 = 1024.0;

#[derive(Debug, Default)]
pub(super) struct Emit {
    /// By process and name: placeholder threads, and the end of the last call of each.
    threads: HashMap<(i32, String), Vec<(i32, Ns)>>,
    pub(super) made: MadeUp,
    named: BTreeSet<String>,
}

/// Thread of an event, as a context of the text format.
type ThreadContext = String;

impl Emit {
    /// Returns whether the thread is a placeholder.
    pub(super) fn event(
        &mut self,
        (tool, row): (Tool, &Row<'_>),
        (at, interval): (Ns, Option<Ns>),
        out: &mut String,
    ) -> Result<bool, String> {
        let begin = at.saturating_sub(row.latency().unwrap_or(0));
        match tool {
            Tool::Open | Tool::Stat => {
                let (tid, context) = self.thread(row, (at, at))?;
                calls::of_path(tool, row, (at, &context), out);
                return Ok(tid.is_some());
            }
            Tool::SlowFile => {
                let name = calls::name_of_kind(row)?;
                let (tid, context) = self.thread(row, (begin, at))?;
                calls::of_file((name, row), (tid, &context), (begin, at), out);
                return Ok(tid.is_some());
            }
            Tool::Block => {
                let (tid, context) = self.thread(row, (at, at))?;
                self.request(row, &context, (begin, at), out)?;
                return Ok(tid.is_some());
            }
            Tool::Lookup => {
                let (tid, context) = self.thread(row, (begin, at))?;
                let host = quoted(row.text(Field::Host).unwrap_or_default());
                let since = Time(begin);
                write_event(
                    at,
                    &context,
                    format_args!("lookup since={since} function=unknown host={host}"),
                    out,
                );
                return Ok(tid.is_some());
            }
            Tool::TcpRetransmit | Tool::TcpDrop => net::fault(tool, row, at, out)?,
            Tool::TcpLife | Tool::TcpConnect | Tool::TcpAccept => {
                let begin = match tool {
                    Tool::TcpLife => {
                        at.saturating_sub(row.scaled(Field::LengthMs, 1e6).unwrap_or(0).max(0))
                    }
                    _ => begin,
                };
                let (tid, context) = self.thread(row, (begin, at))?;
                self.connection((tool, row), &context, (begin, at), out);
                return Ok(tid.is_some());
            }
            Tool::Reclaim => {
                let (tid, context) = self.thread(row, (begin, at))?;
                let pages = row.int(Field::Pages).unwrap_or(0);
                write_event(
                    begin,
                    &context,
                    format_args!("reclaim_begin kind=direct"),
                    out,
                );
                write_event(
                    at,
                    &context,
                    format_args!("reclaim_end kind=direct pages={pages}"),
                    out,
                );
                return Ok(tid.is_some());
            }
            Tool::Sync => {
                let (tid, context) = self.thread(row, (at, at))?;
                let name = calls::name_of_sync(row.text(Field::Call).unwrap_or_default());
                write_event(at, &context, format_args!("syscall_enter name={name}"), out);
                write_event(
                    at,
                    &context,
                    format_args!("syscall_exit name={name} untimed=1"),
                    out,
                );
                return Ok(tid.is_some());
            }
            Tool::Exec => processes::exec(row, at, out)?,
            Tool::Exit => processes::exit(row, at, out)?,
            Tool::Signal => {
                let (tid, context) = self.thread(row, (at, at))?;
                let fields = [Field::Signal, Field::TargetPid, Field::Result];
                let [signal, target, result] =
                    fields.map(|field| row.text(field).unwrap_or_default());
                let text = quoted(&format!("signal {signal} to {target}, result {result}"));
                write_event(
                    at,
                    &context,
                    format_args!("marker name=signal text={text}"),
                    out,
                );
                return Ok(tid.is_some());
            }
            Tool::RunQueue | Tool::TopFile | Tool::BlockLatency => {
                counters::counters((tool, row), (at, interval), out)?;
            }
        }
        Ok(false)
    }

    /// A placeholder thread of the process that is idle during `begin..end`, and its context.
    fn thread(
        &mut self,
        row: &Row<'_>,
        (begin, end): (Ns, Ns),
    ) -> Result<(Option<i32>, ThreadContext), String> {
        let comm = row.text(Field::Comm).unwrap_or_default();
        // fileslower prints the tid but not the process.
        if let (Some(tid), None) = (row.id(Field::Tid), row.id(Field::Pid)) {
            return Ok((None, format!(" (tid={tid} comm={})", quoted(comm))));
        }
        let pid = row.id(Field::Pid).unwrap_or(0);
        let made = &mut self.made;
        let threads = self.threads.entry((pid, comm.to_owned())).or_default();
        let place = match threads.iter().position(|(_, until)| *until <= begin) {
            Some(place) => place,
            None if threads.len() < CONCURRENT_MAX => {
                made.threads = made.threads.saturating_add(1);
                threads.push((FIRST_TID.saturating_add(made.threads), begin));
                threads.len() - 1
            }
            None => {
                return Err(format!(
                    "more than {CONCURRENT_MAX} concurrent calls of {comm}"
                ));
            }
        };
        let (tid, until) = &mut threads[place];
        *until = end;
        let mut context = format!(" (tid={tid}");
        if pid > 0 {
            let _ = write!(context, " pid={pid}");
        }
        if !comm.is_empty() {
            let _ = write!(context, " comm={}", quoted(comm));
        }
        context.push(')');
        Ok((Some(*tid), context))
    }
}

/// `21:03:39 Triggered by PID 3297 ("ntpd"), OOM kill of PID 22516 ("perl"), …`
pub(super) fn oom_kill(text: &str, at: Ns, out: &mut String) {
    let text = quoted(text);
    write_event(
        at,
        "",
        format_args!("marker name=oom_kill text={text}"),
        out,
    );
}

struct Time(Ns);

impl std::fmt::Display for Time {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let sign = if self.0 < 0 { "-" } else { "" };
        let size = self.0.unsigned_abs();
        write!(
            f,
            "{sign}{}.{:09}",
            size / 1_000_000_000,
            size % 1_000_000_000
        )
    }
}

fn write_event(at: Ns, context: &str, what: Arguments<'_>, out: &mut String) {
    let _ = writeln!(out, "{} [-]{context} {what}", Time(at));
}
