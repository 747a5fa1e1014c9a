//! Stacks and lock waits: functions by name only. Modules, offsets in them and addresses are left
//! out, and so are frames without a name.

use whyslow_model::event::{Frame, LockKind, LockWait, Stack, StackKind, WallSample};
use whyslow_model::spool::WallEnd;

use super::line;
use super::reader::{Fields, Read, bad, prev_state};
use super::values::{Hex, State, Time};
use super::writer::LineWriter;

impl<'a> Fields<'a> {
    pub(super) fn stack(&self, frames: &'a mut Vec<Frame<'a>>) -> Read<Stack<'a>> {
        let state = self.special("state", prev_state)?;
        let kind = match (self.required::<&str>("kind")?, state) {
            ("back", Some(state)) => StackKind::Back {
                state,
                user_follows: self.optional("user_follows")?.unwrap_or(false),
            },
            ("back", None) => return Err("missing `state`".into()),
            ("user", _) => StackKind::User,
            ("sample", _) => StackKind::Sample,
            (kind, _) => return Err(bad("kind", kind.as_bytes())),
        };
        self.frames(frames)?;
        Ok(Stack {
            kind,
            since: self.special_required("since", line::time_of)?,
            cpu: self.optional("cpu")?,
            frames,
        })
    }

    pub(super) fn wall(&self, frames: &'a mut Vec<Frame<'a>>) -> Read<WallSample<'a>> {
        self.frames(frames)?;
        let is_cut: Option<bool> = self.optional("is_cut")?;
        Ok(WallSample {
            since: self.special_required("since", line::time_of)?,
            state: self.special("state", prev_state)?,
            credits: self.optional("credits")?.unwrap_or(1),
            syscall: self.optional("syscall")?,
            cpu: self.optional("cpu")?,
            end: match is_cut {
                Some(true) => WallEnd::Cut,
                Some(false) => WallEnd::Whole,
                None => WallEnd::None,
            },
            frames,
        })
    }

    pub(super) fn lock_wait(&self, frames: &'a mut Vec<Frame<'a>>) -> Read<LockWait<'a>> {
        let kind = |text: &str| LockKind::ALL.into_iter().find(|kind| kind.name() == text);
        self.frames(frames)?;
        Ok(LockWait {
            kind: self.special_required("kind", kind)?,
            is_write: self.optional("is_write")?,
            slept: self.optional("slept")?.unwrap_or(true),
            lock: self.required("lock")?,
            since: self.special_required("since", line::time_of)?,
            ret: self.optional("ret")?.unwrap_or(0),
            frames,
        })
    }

    /// Functions, innermost first; kernel frames are called from user frames.
    fn frames(&self, frames: &mut Vec<Frame<'a>>) -> Read<()> {
        for (key, is_kernel) in [("kernel", true), ("user", false)] {
            let functions: Option<&'a str> = self.optional(key)?;
            let functions = functions.into_iter().flat_map(names);
            frames.extend(functions.map(|function| Frame {
                is_kernel,
                // Frames are distinguished by address; without one, frames of the same name are
                // equal.
                address: 0,
                function: Some(function.as_bytes()),
                ..Frame::default()
            }));
        }
        Ok(())
    }
}

impl LineWriter<'_> {
    pub(super) fn stack(&mut self, stack: &Stack<'_>) {
        self.name("stack");
        let kind = match stack.kind {
            StackKind::Back { .. } => "back",
            StackKind::User => "user",
            StackKind::Sample => "sample",
        };
        self.field("kind", kind);
        self.field("since", Time(stack.since));
        let follows = match stack.kind {
            StackKind::Back {
                state,
                user_follows,
            } => {
                self.field("state", State(state));
                user_follows
            }
            _ => false,
        };
        self.some("cpu", stack.cpu);
        if follows {
            self.field("user_follows", true);
        }
        self.frames(stack.frames);
    }

    pub(super) fn wall(&mut self, look: &WallSample<'_>) {
        self.name("wall");
        self.field("since", Time(look.since));
        self.some("state", look.state.map(State));
        self.field("credits", look.credits);
        self.some("syscall", look.syscall);
        self.some("cpu", look.cpu);
        let is_cut = match look.end {
            WallEnd::Whole => Some(false),
            WallEnd::Cut => Some(true),
            _ => None,
        };
        self.some("is_cut", is_cut);
        self.frames(look.frames);
    }

    pub(super) fn lock_wait(&mut self, wait: &LockWait<'_>) {
        self.name("lock_wait");
        self.field("kind", wait.kind.name());
        self.field("lock", Hex(wait.lock));
        self.field("since", Time(wait.since));
        self.some("is_write", wait.is_write);
        self.field("slept", wait.slept);
        self.field("ret", wait.ret);
        self.frames(wait.frames);
    }

    fn frames(&mut self, frames: &[Frame<'_>]) {
        for (key, is_kernel) in [("kernel", true), ("user", false)] {
            let of_kind = frames.iter().filter(|frame| frame.is_kernel == is_kernel);
            let named = of_kind.filter_map(|frame| frame.function);
            let functions: Vec<&[u8]> = named.collect();
            if functions.iter().any(|name| name.contains(&b';')) {
                self.bytes(key, &[b"\n", &functions.join(&b'\n')[..]].concat());
            } else if !functions.is_empty() {
                self.bytes(key, &functions.join(&b';'));
            }
        }
    }
}

/// Function names, separated by semicolons or, if a name contains one (`Lorg/apache/Foo;::bar` of
/// JIT-compiled Java code), each preceded by a line break.
fn names(functions: &str) -> std::str::Split<'_, char> {
    match functions.strip_prefix('\n') {
        Some(functions) => functions.split('\n'),
        None => functions.split(';'),
    }
}
