//! Kernel tracepoints as text: tracefs `trace`, `trace-cmd report`, `perf script`.
//!
//! A line is an event prefixed with thread, CPU and time; stack frames follow on lines of their
//! own. Each event becomes a line of the text format ([`super::text`]), as in the strace importer.
//! The event definitions are those of the LTTng and perf importers ([`super::tracepoint`]).

mod fields;
mod line;
mod losses;
mod stack;

use std::collections::{BTreeMap, HashMap};

use whyslow_model::Ns;
use whyslow_model::event::{Body, Context, Event, Stack, StackKind};
use whyslow_model::syscall::Abi;

use super::tracepoint::syscall::{self, SyscallClass};
use super::tracepoint::value::Value;
use super::tracepoint::{Declared, Facts, Mapping, Source, find};
use super::{Bad, text};
use fields::Fields;
use line::Line;
use losses::{Losses, Lost};
use stack::Frames;

/// Maximum number of fields that a definition uses.
const SLOTS_MAX: usize = 16;
/// Maximum number of event classes by name; a file with more is not a trace.
const CLASSES_MAX: usize = 4096;
/// Name under which events beyond the limit are counted.
const OVER_LIMIT: &str = "events beyond 4096 names";

/// A file in the text format.
#[derive(Debug, Default)]
pub struct Translated {
    /// Its lines, for [`super::text`].
    pub text: String,
    /// Examples of lines that cannot be parsed, the first ones.
    pub bad: Vec<Bad>,
    /// Number of all such lines.
    pub bad_count: u64,
    /// Events without a table, by name.
    pub unused: BTreeMap<String, u64>,
    /// Events that were translated.
    pub events: u64,
}

/// Whether a file starting with `head` is such a trace.
pub fn is_trace(head: &str) -> bool {
    if head.starts_with("# tracer:") {
        return true;
    }
    let mut lines = head.lines().filter(|line| {
        let line = line.trim();
        // trace-cmd starts with `cpus=2`, perf with comments.
        !(line.is_empty()
            || line.starts_with('#')
            || line.starts_with("cpus=")
            || Lost::read(line).is_some())
    });
    // The first event decides; the following lines may be its stack, and the last one may be
    // truncated.
    lines.next().is_some_and(|line| Line::read(line).is_some())
}

/// `written` is the modification time of the file: the clock has no date, so the trace is assumed
/// to end at that time.
pub fn translate(trace: &str, written: Option<Ns>, bad_max: usize) -> Translated {
    let last = trace.lines().rev().find_map(Line::read);
    let shift = match (written, last) {
        (Some(written), Some(last)) => written.saturating_sub(last.ts),
        _ => 0,
    };
    let mut translator = Translator {
        shift,
        classes: Classes {
            facts: Facts {
                kernel: None,
                // The file does not state it.
                abi: Some(Abi::X86_64),
                prio_base: 0,
                pids_are_tids: true,
            },
            known: HashMap::new(),
        },
        pending: None,
        away: HashMap::new(),
        losses: Losses::default(),
        done: Translated {
            text: format!("{}\n", text::MAGIC),
            ..Translated::default()
        },
    };
    let mut offset = 0;
    for (number, line) in trace.split_inclusive('\n').enumerate() {
        if let Err(what) = translator.line(line.trim_end()) {
            translator.done.bad_count += 1;
            if translator.done.bad.len() < bad_max {
                let line = number + 1;
                translator.done.bad.push(Bad { line, offset, what });
            }
        }
        offset += line.len();
    }
    translator.flush();
    translator.losses.finish(&mut translator.done.text);
    translator.done
}

enum Meaning {
    Table(&'static Mapping),
    Syscall(SyscallClass),
    Other,
}

struct Class {
    meaning: Meaning,
    /// Field names by slot, with all their spellings.
    slots: Vec<String>,
}

/// An event that a stack may follow.
struct Pending {
    ts: Ns,
    cpu: Option<i32>,
    pid: Option<i32>,
    tid: i32,
    /// A switch away from this thread in that state; none for a sample of CPU time.
    switch: Option<(i32, whyslow_model::event::PrevState)>,
    is_sample: bool,
    frames: Frames,
}

struct Away {
    since: Ns,
    state: whyslow_model::event::PrevState,
    pid: Option<i32>,
    frames: Frames,
}

struct Translator {
    shift: Ns,
    classes: Classes,
    pending: Option<Pending>,
    away: HashMap<i32, Away>,
    losses: Losses,
    done: Translated,
}

impl Translator {
    fn line(&mut self, line: &str) -> Result<(), String> {
        let trimmed = line.trim();
        if trimmed.is_empty() || trimmed.starts_with('#') || trimmed.starts_with("cpus=") {
            self.flush();
            return Ok(());
        }
        if let Some(lost) = Lost::read(trimmed) {
            self.flush();
            self.losses.add(lost);
            return Ok(());
        }
        if let Some(read) = Line::read(line) {
            self.flush();
            self.event(&read);
            return Ok(());
        }
        if let Some(pending) = &mut self.pending {
            if pending.frames.add(trimmed) {
                return Ok(());
            }
        } else if stack::is_frame(trimmed) {
            return Ok(());
        }
        if is_remark(trimmed) {
            return Ok(());
        }
        Err("neither an event nor a stack frame".to_owned())
    }

    fn event(&mut self, line: &Line<'_>) {
        self.done.events += 1;
        let ts = line.ts.saturating_add(self.shift);
        self.losses.event(line.cpu, ts, &mut self.done.text);
        let (system, name) = match line.event.rsplit_once(':') {
            Some((system, name)) if !name.is_empty() => (system, name),
            _ => ("", line.event),
        };
        let context = Context {
            tid: Some(line.tid),
            pid: line.pid,
            comm: Some(line.comm.as_bytes()).filter(|comm| !comm.is_empty()),
            interrupt: line.interrupt,
            ..Context::default()
        };
        let mut pending = Pending {
            ts,
            cpu: line.cpu,
            pid: line.pid,
            tid: line.tid,
            switch: None,
            is_sample: is_of_cpu(line.event),
            frames: Frames::default(),
        };
        let fields = Fields::read(name, line.text);
        let mut back = None;
        let mut body = None;
        let mut args = None;
        let mut is_other = pending.is_sample;
        let facts = self.classes.facts;
        if let Some(class) = self.classes.of(system, name, line.text, &fields) {
            let values = slots(&class.slots, &fields);
            let of = super::tracepoint::Fields {
                source: Source::Slots(&values),
                facts,
            };
            match &class.meaning {
                Meaning::Table(mapping) => body = (mapping.body)(&of),
                Meaning::Syscall(call) => body = Some(call.body(&of, &mut args)),
                Meaning::Other => is_other = true,
            }
            if let Some(Body::SchedSwitch {
                prev_tid,
                prev_state,
                next_tid,
                ..
            }) = body
            {
                pending.switch = Some((prev_tid, prev_state));
                back = Some(next_tid);
            }
            let event = Event {
                ts,
                cpu: line.cpu,
                context,
                body: body.unwrap_or(Body::Other),
            };
            if is_other && !pending.is_sample {
                *self.done.unused.entry(line.event.to_owned()).or_default() += 1;
            }
            text::write_event(&event, &mut self.done.text);
        } else {
            *self.done.unused.entry(OVER_LIMIT.to_owned()).or_default() += 1;
        }
        if let Some(tid) = back {
            self.back(tid, ts, line.cpu);
        }
        self.pending = Some(pending);
    }

    /// The stack after an event is complete.
    fn flush(&mut self) {
        let Some(pending) = self.pending.take() else {
            return;
        };
        if pending.frames.is_empty() {
            return;
        }
        if let Some((tid, state)) = pending.switch {
            self.away.insert(
                tid,
                Away {
                    since: pending.ts,
                    state,
                    pid: pending.pid,
                    frames: pending.frames,
                },
            );
        } else if pending.is_sample {
            let of = (pending.tid, pending.pid, pending.cpu);
            self.stack(
                &pending.frames,
                StackKind::Sample,
                (pending.ts, pending.ts),
                of,
            );
        }
    }

    fn back(&mut self, tid: i32, ts: Ns, cpu: Option<i32>) {
        // It left the CPU with the stack printed after its switch.
        self.flush();
        if let Some(away) = self.away.remove(&tid) {
            let kind = StackKind::Back {
                state: away.state,
                user_follows: false,
            };
            self.stack(&away.frames, kind, (away.since, ts), (tid, away.pid, cpu));
        }
    }

    fn stack(
        &mut self,
        frames: &Frames,
        kind: StackKind,
        (since, ts): (Ns, Ns),
        (tid, pid, cpu): (i32, Option<i32>, Option<i32>),
    ) {
        let event = Event {
            ts,
            cpu,
            context: Context {
                tid: Some(tid),
                pid,
                ..Context::default()
            },
            body: Body::Stack(Stack {
                kind,
                since,
                cpu,
                frames: &frames.frames(),
            }),
        };
        text::write_event(&event, &mut self.done.text);
    }
}

/// Definitions of events by name, each looked up once.
struct Classes {
    facts: Facts,
    known: HashMap<String, Class>,
}

impl Classes {
    fn of<'c>(
        &'c mut self,
        system: &str,
        name: &str,
        printed: &str,
        fields: &Fields<'_>,
    ) -> Option<&'c Class> {
        // In ftrace, entry and return of a system call have the same name.
        let is_return = name.starts_with("sys_") && printed.starts_with("->");
        let key = if is_return {
            format!("{name} ->")
        } else {
            name.to_owned()
        };
        if !self.known.contains_key(&key) {
            if self.known.len() >= CLASSES_MAX {
                return None;
            }
            let class = self.meaning(system, name, is_return, fields);
            self.known.insert(key.clone(), class);
        }
        self.known.get(&key)
    }

    fn meaning(&self, system: &str, name: &str, is_return: bool, fields: &Fields<'_>) -> Class {
        let declared = Printed(fields);
        let call = match name {
            "sys_enter" => Some("syscall_entry_unknown".to_owned()),
            "sys_exit" => Some("syscall_exit_unknown".to_owned()),
            name => {
                let (word, call) = if let Some(call) = name.strip_prefix("sys_enter_") {
                    ("entry", Some(call))
                } else if let Some(call) = name.strip_prefix("sys_exit_") {
                    ("exit", Some(call))
                } else if system.is_empty() || system == "syscalls" {
                    let word = if is_return { "exit" } else { "entry" };
                    (word, name.strip_prefix("sys_"))
                } else {
                    ("entry", None)
                };
                call.map(|call| format!("syscall_{word}_{call}"))
            }
        };
        let call = call.and_then(|call| syscall::classify(&call, &declared, self.facts));
        if let Some((call, slots)) = call {
            return Class {
                meaning: Meaning::Syscall(call),
                slots,
            };
        }
        match find(name) {
            Some(mapping) => Class {
                meaning: Meaning::Table(mapping),
                slots: mapping
                    .fields
                    .iter()
                    .map(|field| (*field).to_owned())
                    .collect(),
            },
            None => Class {
                meaning: Meaning::Other,
                slots: Vec::new(),
            },
        }
    }
}

/// The fields present in a line.
struct Printed<'f, 't>(&'f Fields<'t>);

impl Declared for Printed<'_, '_> {
    fn has(&self, name: &str) -> bool {
        name == "args" && self.0.args.is_some() || self.0.pairs.iter().any(|(has, _)| *has == name)
    }

    fn resolve(&self, alternatives: &str) -> String {
        let mut names = alternatives.split('|');
        let first = names.clone().next().unwrap_or_default();
        names
            .find(|name| self.has(name))
            .unwrap_or(first)
            .to_owned()
    }
}

fn slots<'v>(names: &[String], fields: &'v Fields<'_>) -> Vec<Value<'v>> {
    let value = |alternatives: &String| {
        if alternatives == "args" {
            return fields
                .args
                .as_ref()
                .map_or(Value::Absent, |args| Value::Ints(args));
        }
        let mut names = alternatives.split('|');
        let found = names.find_map(|name| fields.pairs.iter().find(|(has, _)| *has == name));
        found.map_or(Value::Absent, |(_, value)| *value)
    };
    names.iter().take(SLOTS_MAX).map(value).collect()
}

/// CPU samples.
fn is_of_cpu(event: &str) -> bool {
    event.starts_with("cpu-clock") || event.starts_with("task-clock") || event.starts_with("cycles")
}

/// Comments of the tools.
fn is_remark(line: &str) -> bool {
    line.starts_with("version = ")
}
