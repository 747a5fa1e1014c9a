//! Converts threads, methods and stacks of a chunk to those of the profile.

use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use super::bytes::{Cursor, NAME_BYTES_MAX};
use super::keyed::Keyed;
use super::metadata::{Class, Field, Types};
use super::pools::{Constants, Value};
use super::runtime::intern;
use crate::profile::{CodeFrame, CodeKind, NO_STACK, Profile, SampledThread};

/// Maximum number of frames of a stack.
const FRAMES_MAX: usize = 4096;
/// Bytes of frame names stored per byte of a chunk: a frame takes five bytes, and refers to a
/// method shared with others.
const NAMES_A_BYTE: usize = 32;
/// For short chunks.
const NAMES_MIN: usize = 1 << 20;

/// Thread states of async-profiler and of the JDK.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StateWord {
    Runnable,
    Sleeping,
    /// In CPU samples.
    Default,
    Other,
}

impl StateWord {
    fn of(word: &str) -> Self {
        match word {
            "STATE_RUNNABLE" => Self::Runnable,
            "STATE_SLEEPING" => Self::Sleeping,
            "STATE_DEFAULT" => Self::Default,
            _ => Self::Other,
        }
    }
}

/// Definitions from previous chunks of async-profiler, whose keys persist: for an unfinished chunk.
#[derive(Debug, Default)]
pub(super) struct Carried {
    threads: FxHashMap<i64, u32>,
    stacks: FxHashMap<i64, u32>,
}

/// Class and key of a constant, and whether it is displayed as a class name.
type TextKey = ((i64, i64), bool);

/// Resolved keys of one chunk.
pub(super) struct ResolvedConstants<'c> {
    constants: Constants<'c>,
    keys_are_tids: bool,
    classes: Classes<'c>,
    threads: Keyed<Option<u32>>,
    states: Keyed<StateWord>,
    stacks: Keyed<u32>,
    /// Frames by method, line and type.
    frames: FxHashMap<(i64, i32, i64), u32>,
    /// Texts of constants, plain or as displayed class names.
    texts: FxHashMap<TextKey, Option<Arc<str>>>,
    /// Bytes of frame names that may still be stored.
    name_bytes_left: usize,
    /// Methods by key: name, and whether it is native, kernel or Java code.
    methods: FxHashMap<i64, Option<Method>>,
    pub(super) unresolved: u64,
    /// Stacks truncated by the writer.
    pub(super) truncated: u64,
}

/// Classes in use.
#[derive(Clone, Copy)]
struct Classes<'c> {
    thread: Option<&'c Class>,
    state: Option<&'c Class>,
    trace: Option<&'c Class>,
    frame: Option<&'c Class>,
    method: Option<&'c Class>,
}

impl<'c> Classes<'c> {
    fn of(types: &'c Types) -> Self {
        let trace = types.named("jdk.types.StackTrace");
        Self {
            thread: types.named("java.lang.Thread"),
            state: types.named("jdk.types.ThreadState"),
            trace,
            frame: types.named("jdk.types.StackFrame"),
            method: types.named("jdk.types.Method"),
        }
    }
}

impl<'c> ResolvedConstants<'c> {
    pub(super) fn new(constants: Constants<'c>, keys_are_tids: bool) -> Self {
        Self {
            constants,
            keys_are_tids,
            classes: Classes::of(constants.types),
            threads: Keyed::within(constants.bytes.len()),
            states: Keyed::within(constants.bytes.len()),
            stacks: Keyed::within(constants.bytes.len()),
            frames: FxHashMap::default(),
            texts: FxHashMap::default(),
            name_bytes_left: constants
                .bytes
                .len()
                .saturating_mul(NAMES_A_BYTE)
                .max(NAMES_MIN),
            methods: FxHashMap::default(),
            unresolved: 0,
            truncated: 0,
        }
    }

    pub(super) fn constants(&self) -> &Constants<'c> {
        &self.constants
    }

    /// Whether async-profiler wrote the file.
    pub(super) fn is_async(&self) -> bool {
        self.keys_are_tids
    }

    /// The text of a value, or the displayed class name; stored once for equal constants.
    pub(super) fn text(
        &mut self,
        value: Value<'_>,
        is_class: bool,
        all: &mut FxHashSet<Arc<str>>,
    ) -> Option<Arc<str>> {
        let constants = self.constants;
        let mut read = || {
            let text = constants.text(value)?;
            let text = if is_class {
                text.replace('/', ".")
            } else {
                text
            };
            Some(intern(all, &text))
        };
        match value.constant() {
            Some(constant) => {
                let resolved = self.texts.entry((constant, is_class));
                resolved.or_insert_with(read).clone()
            }
            None => read(),
        }
    }

    /// Adds definitions of previous chunks for keys that this chunk does not define.
    pub(super) fn carry(&mut self, carried: &Carried) {
        let pools = self.constants.pools;
        let is_defined = |class: Option<&Class>, key: i64| {
            class.is_some_and(|class| pools.place(class.id, key).is_some())
        };
        let threads = carried
            .threads
            .iter()
            .map(|(key, thread)| (*key, Some(*thread)));
        let classes = self.classes;
        for (key, thread) in threads.filter(|(key, _)| !is_defined(classes.thread, *key)) {
            self.threads.insert(key, thread);
        }
        let stacks = carried.stacks.iter().map(|(key, stack)| (*key, *stack));
        for (key, stack) in stacks.filter(|(key, _)| !is_defined(classes.trace, *key)) {
            self.stacks.insert(key, stack);
        }
    }

    /// Stores its definitions for following chunks.
    pub(super) fn store_carried(&self, carried: &mut Carried) {
        let threads = self.threads.iter();
        carried
            .threads
            .extend(threads.filter_map(|(key, thread)| Some((key, thread?))));
        let resolved = self.stacks.iter().filter(|(_, stack)| *stack != NO_STACK);
        carried.stacks.extend(resolved);
    }

    /// The thread of this key; undefined keys are thread ids in files of async-profiler.
    #[inline]
    pub(super) fn thread(&mut self, key: i64, profile: &mut Profile) -> Option<u32> {
        if let Some(resolved) = self.threads.get(key) {
            return resolved;
        }
        let mut found = self.read_thread(key);
        if found.is_none() && key != 0 {
            self.unresolved += 1;
            let tid = i32::try_from(key)
                .ok()
                .filter(|tid| self.keys_are_tids && *tid > 0);
            found = tid.map(|tid| SampledThread {
                tid: Some(tid),
                ..SampledThread::default()
            });
        }
        let found = found.map(|thread| profile.thread(thread));
        self.threads.insert(key, found);
        found
    }

    fn read_thread(&self, key: i64) -> Option<SampledThread> {
        let class = self.classes.thread?;
        let number = |name| {
            let mut value = self.constants.field(class, key, name)?;
            value.cursor.varint()
        };
        let text = |name| {
            let value = self.constants.field(class, key, name)?;
            let text = self.constants.long_text(value, NAME_BYTES_MAX);
            text.filter(|text| !text.is_empty())
        };
        let tid = number("osThreadId").and_then(|tid| i32::try_from(tid).ok());
        let thread = SampledThread {
            tid: tid.filter(|tid| *tid > 0),
            runtime_id: number("javaThreadId").filter(|id| *id > 0),
            name: text("javaName").or_else(|| text("osName")),
        };
        (thread != SampledThread::default()).then_some(thread)
    }

    #[inline]
    pub(super) fn state(&mut self, key: i64) -> StateWord {
        if let Some(resolved) = self.states.get(key) {
            return resolved;
        }
        let class = self.classes.state;
        let word = class.and_then(|class| self.constants.constant_text(class.id, key));
        let state = word.map_or(StateWord::Other, |word| StateWord::of(&word));
        self.states.insert(key, state);
        state
    }

    #[inline]
    pub(super) fn stack(&mut self, key: i64, profile: &mut Profile) -> u32 {
        if let Some(resolved) = self.stacks.get(key) {
            return resolved;
        }
        let stack = self.read_stack(key, profile).unwrap_or_else(|| {
            self.unresolved += u64::from(key != 0);
            NO_STACK
        });
        self.stacks.insert(key, stack);
        stack
    }

    fn read_stack(&mut self, key: i64, profile: &mut Profile) -> Option<u32> {
        let class = self.classes.trace?;
        let frame_class = self.classes.frame?;
        let place = self.constants.pools.place(class.id, key)?;
        let types = self.constants.types;
        let mut cursor = Cursor::new(self.constants.bytes, place);
        let mut frames = Vec::new();
        for field in &class.fields {
            match field.name.as_str() {
                "truncated" => self.truncated += u64::from(cursor.byte()? != 0),
                "frames" if field.is_array && !field.is_key => {
                    for _ in 0..cursor.count()? {
                        let frame = self.read_frame(&mut cursor, frame_class, profile)?;
                        if frames.len() < FRAMES_MAX {
                            frames.push(frame);
                        }
                    }
                }
                _ => types.skip(&mut cursor, field)?,
            }
        }
        Some(profile.stack(&frames))
    }

    fn read_frame(
        &mut self,
        cursor: &mut Cursor<'c>,
        class: &'c Class,
        profile: &mut Profile,
    ) -> Option<u32> {
        let (mut method, mut line, mut kind) = (0, 0, (0, 0));
        for field in &class.fields {
            match field.name.as_str() {
                "method" if is_number(field) => method = cursor.varint()?,
                "lineNumber" if is_number(field) => line = cursor.varint()? as i32,
                "type" if is_number(field) => kind = (field.class, cursor.varint()?),
                _ => self.constants.types.skip(cursor, field)?,
            }
        }
        if let Some(resolved) = self.frames.get(&(method, line, kind.1)) {
            return Some(*resolved);
        }
        let word = self.constants.constant_text(kind.0, kind.1);
        let frame = self.code_frame(method, line, word.as_deref());
        let id = profile.frame(frame);
        self.frames.insert((method, line, kind.1), id);
        Some(id)
    }

    fn code_frame(&mut self, method: i64, line: i32, kind: Option<&str>) -> CodeFrame {
        let found = self.method(method);
        let found = found.filter(|found| self.reserve_name(found));
        let kind = match (kind, &found) {
            (Some("Kernel"), _) => CodeKind::Kernel,
            // The JDK also reports native methods of Java classes like this.
            (Some("Native"), Some(found)) if found.is_of_class => CodeKind::Managed,
            (Some("Native" | "C++"), _) => CodeKind::User,
            _ => CodeKind::Managed,
        };
        let Some(Method { class, name, .. }) = found else {
            self.unresolved += 1;
            return CodeFrame {
                kind,
                function: format!("unresolved 0x{method:x}"),
                module: None,
                line: None,
            };
        };
        if kind == CodeKind::Managed {
            let class = class.replace('/', ".");
            let function = if class.is_empty() {
                name
            } else {
                format!("{class}.{name}")
            };
            let line = (line > 0).then_some(line);
            return CodeFrame {
                kind,
                function,
                module: None,
                line,
            };
        }
        // async-profiler marks kernel functions by a suffix.
        let name = name
            .strip_suffix("_[k]")
            .map_or(name.clone(), str::to_owned);
        CodeFrame {
            kind,
            function: name,
            module: (!class.is_empty()).then_some(class),
            line: None,
        }
    }

    /// Whether one more copy of its names fits the limit, which is then reduced.
    fn reserve_name(&mut self, method: &Method) -> bool {
        let bytes = method.class.len() + method.name.len();
        let left = self.name_bytes_left.checked_sub(bytes);
        self.name_bytes_left = left.unwrap_or(self.name_bytes_left);
        left.is_some()
    }

    fn method(&mut self, key: i64) -> Option<Method> {
        if let Some(resolved) = self.methods.get(&key) {
            return resolved.clone();
        }
        let read = || {
            let class = self.classes.method?;
            let text = |field| {
                let value = self.constants.field(class, key, field)?;
                self.constants.text(value)
            };
            let descriptor = text("descriptor").unwrap_or_default();
            Some(Method {
                name: text("name")?,
                class: text("type").unwrap_or_default(),
                is_of_class: !descriptor.is_empty() && descriptor != NO_DESCRIPTOR,
            })
        };
        let method = read().filter(|found| self.reserve_name(found));
        self.methods.insert(key, method.clone());
        method
    }
}

/// async-profiler's descriptor of library functions.
const NO_DESCRIPTOR: &str = "()L;";

#[derive(Debug, Clone)]
struct Method {
    /// Class or library.
    class: String,
    name: String,
    /// It has argument types, like methods of classes.
    is_of_class: bool,
}

fn is_number(field: &Field) -> bool {
    !field.is_array && field.shape == super::metadata::Shape::Number
}
