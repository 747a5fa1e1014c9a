//! Events: which of them are read, and the positions of the fields in use.

use super::bytes::Cursor;
use super::metadata::{Class, Field, Shape, Types};
use super::pools::Value;
use crate::profile::{RuntimeKind, SampleKind};

/// Meaning of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Meaning {
    Sample(SampleKind),
    Runtime(RuntimeKind),
    ThreadStart,
    ThreadEnd,
    /// A setting of the recording.
    Setting,
    /// Of the JVM: its process and arguments.
    Machine,
    /// Text of a thread dump.
    ThreadDump,
}

const MEANINGS: [(&str, Meaning); 25] = [
    (
        "jdk.ExecutionSample",
        Meaning::Sample(SampleKind::Execution),
    ),
    (
        "jdk.NativeMethodSample",
        Meaning::Sample(SampleKind::Native),
    ),
    (
        "profiler.WallClockSample",
        Meaning::Sample(SampleKind::Wall),
    ),
    (
        "jdk.JavaMonitorEnter",
        Meaning::Runtime(RuntimeKind::MonitorEnter),
    ),
    (
        "jdk.JavaMonitorWait",
        Meaning::Runtime(RuntimeKind::MonitorWait),
    ),
    ("jdk.ThreadPark", Meaning::Runtime(RuntimeKind::Park)),
    ("jdk.ThreadSleep", Meaning::Runtime(RuntimeKind::Sleep)),
    ("jdk.FileRead", Meaning::Runtime(RuntimeKind::FileRead)),
    ("jdk.FileWrite", Meaning::Runtime(RuntimeKind::FileWrite)),
    ("jdk.FileForce", Meaning::Runtime(RuntimeKind::FileForce)),
    ("jdk.SocketRead", Meaning::Runtime(RuntimeKind::SocketRead)),
    (
        "jdk.SocketWrite",
        Meaning::Runtime(RuntimeKind::SocketWrite),
    ),
    (
        "profiler.NativeLock",
        Meaning::Runtime(RuntimeKind::NativeLock),
    ),
    ("jdk.GCPhasePause", Meaning::Runtime(RuntimeKind::GcPause)),
    (
        "jdk.SafepointBegin",
        Meaning::Runtime(RuntimeKind::Safepoint),
    ),
    (
        "jdk.ExecuteVMOperation",
        Meaning::Runtime(RuntimeKind::VmOperation),
    ),
    (
        "jdk.ObjectAllocationInNewTLAB",
        Meaning::Runtime(RuntimeKind::Allocation),
    ),
    (
        "jdk.ObjectAllocationOutsideTLAB",
        Meaning::Runtime(RuntimeKind::Allocation),
    ),
    (
        "jdk.ObjectAllocationSample",
        Meaning::Runtime(RuntimeKind::Allocation),
    ),
    (
        "profiler.LiveObject",
        Meaning::Runtime(RuntimeKind::LiveObject),
    ),
    ("jdk.ThreadStart", Meaning::ThreadStart),
    ("jdk.ThreadEnd", Meaning::ThreadEnd),
    ("jdk.ActiveSetting", Meaning::Setting),
    ("jdk.JVMInformation", Meaning::Machine),
    ("jdk.ThreadDump", Meaning::ThreadDump),
];

/// Role of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    Start,
    Duration,
    Thread,
    Stack,
    State,
    Samples,
    Span,
    /// The object of a lock, a path, a host, the name of a phase.
    Object,
    Address,
    Owner,
    Bytes,
    Port,
    /// Name and value of a setting.
    Name,
    Value,
    Pid,
    Arguments,
    /// The event that a setting applies to.
    Of,
}

impl Role {
    const COUNT: usize = 17;

    fn of(meaning: Meaning, name: &str) -> Option<Self> {
        Some(match (meaning, name) {
            (_, "startTime") => Self::Start,
            (_, "duration") => Self::Duration,
            (Meaning::ThreadStart | Meaning::ThreadEnd, "thread") => Self::Thread,
            (Meaning::ThreadStart, "eventThread" | "stackTrace") => return None,
            (_, "sampledThread" | "eventThread") => Self::Thread,
            (_, "stackTrace") => Self::Stack,
            (_, "state") => Self::State,
            (_, "samples") => Self::Samples,
            (_, "timeSpan") => Self::Span,
            (Meaning::Setting, "name") => Self::Name,
            (Meaning::Setting, "value") => Self::Value,
            (Meaning::Setting, "id") => Self::Of,
            (Meaning::Machine, "pid") => Self::Pid,
            (Meaning::Machine, "javaArguments") => Self::Arguments,
            (Meaning::Machine, "jvmVersion") => Self::Value,
            (Meaning::Machine, "jvmName") => Self::Name,
            (Meaning::ThreadDump, "result") => Self::Object,
            (Meaning::Runtime(RuntimeKind::SocketRead | RuntimeKind::SocketWrite), "address") => {
                return None;
            }
            (Meaning::Runtime(_), name) => match name {
                "monitorClass" | "parkedClass" | "objectClass" | "path" | "host" | "name"
                | "operation" => Self::Object,
                "address" => Self::Address,
                "previousOwner" => Self::Owner,
                "bytesRead" | "bytesWritten" | "allocationSize" | "weight" => Self::Bytes,
                "port" => Self::Port,
                _ => return None,
            },
            _ => return None,
        })
    }
}

/// How an event type is read.
pub(super) struct Plan<'t> {
    pub(super) meaning: Meaning,
    steps: Vec<(Option<Role>, &'t Field)>,
    /// The same for samples, of which only numbers are needed.
    quick: Vec<Quick<'t>>,
    pub(super) has_span: bool,
}

/// Action for a field of a sample.
#[derive(Debug, Clone, Copy)]
enum Quick<'t> {
    /// Stores its number at this index of [`SampleFields`].
    Keep(usize),
    Number,
    Skip(&'t Field),
}

/// The fields of a sample; fields that its event type lacks are zero.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct SampleFields([i64; SampleFields::COUNT]);

impl SampleFields {
    /// Number of leading roles.
    const COUNT: usize = Role::Span as usize + 1;

    #[inline]
    pub(super) fn number(&self, role: Role) -> i64 {
        self.0.get(role as usize).copied().unwrap_or_default()
    }
}

/// The fields of one event; fields that its event type lacks are zero.
#[derive(Debug, Clone, Copy)]
pub(super) struct Fields<'b> {
    numbers: [i64; Role::COUNT],
    values: [Option<Value<'b>>; Role::COUNT],
}

impl<'b> Fields<'b> {
    pub(super) fn new() -> Self {
        Self {
            numbers: [0; Role::COUNT],
            values: [None; Role::COUNT],
        }
    }

    #[inline]
    pub(super) fn number(&self, role: Role) -> i64 {
        self.numbers[role as usize]
    }

    /// The value of a field; none if the event type lacks it.
    pub(super) fn value(&self, role: Role) -> Option<Value<'b>> {
        self.values[role as usize]
    }
}

impl<'t> Plan<'t> {
    fn of(class: &'t Class) -> Option<Self> {
        let (_, meaning) = MEANINGS.iter().find(|(name, _)| *name == class.name)?;
        let mut steps: Vec<_> = class
            .fields
            .iter()
            .map(|field| (Role::of(*meaning, &field.name), field))
            .collect();
        // Fields after the last one in use are not read.
        while steps.last().is_some_and(|(role, _)| role.is_none()) {
            steps.pop();
        }
        let quick = steps.iter().map(|(role, field)| {
            let is_number = field.shape == Shape::Number && !field.is_array;
            match role.map(|role| role as usize) {
                Some(at) if is_number && at < SampleFields::COUNT => Quick::Keep(at),
                _ if is_number => Quick::Number,
                _ => Quick::Skip(field),
            }
        });
        Some(Self {
            meaning: *meaning,
            has_span: steps.iter().any(|(role, _)| *role == Some(Role::Samples)),
            quick: quick.collect(),
            steps,
        })
    }

    /// Reads the fields of an event; `cursor` is at the first one.
    #[inline]
    pub(super) fn read<'b>(
        &self,
        types: &Types,
        cursor: &mut Cursor<'b>,
        fields: &mut Fields<'b>,
    ) -> Option<()> {
        *fields = Fields::new();
        for (role, field) in &self.steps {
            let Some(role) = role else {
                types.skip(cursor, field)?;
                continue;
            };
            let at = *role as usize;
            match field.shape {
                Shape::Number if !field.is_array => {
                    let value = Value {
                        cursor: *cursor,
                        class: field.class,
                        is_key: field.is_key,
                    };
                    fields.numbers[at] = cursor.varint()?;
                    fields.values[at] = Some(value);
                }
                _ => {
                    fields.values[at] = Some(Value {
                        cursor: *cursor,
                        class: field.class,
                        is_key: field.is_key,
                    });
                    types.skip(cursor, field)?;
                }
            }
        }
        Some(())
    }

    /// The same for samples.
    #[inline]
    pub(super) fn read_sample(
        &self,
        types: &Types,
        cursor: &mut Cursor<'_>,
    ) -> Option<SampleFields> {
        let mut fields = SampleFields::default();
        for quick in &self.quick {
            match quick {
                Quick::Keep(at) => fields.0[*at] = cursor.varint()?,
                Quick::Number => _ = cursor.varint()?,
                Quick::Skip(field) => types.skip(cursor, field)?,
            }
        }
        Some(fields)
    }
}

/// Plans by event type id.
pub(super) struct Plans<'t> {
    /// Ids are small numbers; larger ones are searched for.
    by_id: Vec<Option<Plan<'t>>>,
    rest: Vec<(i64, Plan<'t>)>,
}

const SMALL_IDS: i64 = 4096;

impl<'t> Plans<'t> {
    pub(super) fn new(types: &'t Types) -> Self {
        let mut plans = Self {
            by_id: Vec::new(),
            rest: Vec::new(),
        };
        for class in &types.classes {
            let Some(plan) = Plan::of(class) else {
                continue;
            };
            match usize::try_from(class.id) {
                Ok(id) if class.id < SMALL_IDS => {
                    if id >= plans.by_id.len() {
                        plans.by_id.resize_with(id + 1, || None);
                    }
                    plans.by_id[id] = Some(plan);
                }
                _ => plans.rest.push((class.id, plan)),
            }
        }
        plans
    }

    #[inline]
    pub(super) fn get(&self, id: i64) -> Option<&Plan<'t>> {
        if (0..SMALL_IDS).contains(&id) {
            return self.by_id.get(id as usize)?.as_ref();
        }
        self.rest
            .iter()
            .find(|(of, _)| *of == id)
            .map(|(_, plan)| plan)
    }
}
