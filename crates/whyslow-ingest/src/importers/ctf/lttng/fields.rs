//! Requested fields of one event, by the slot in a family's table.

use whyslow_model::syscall::Abi;

use crate::importers::ctf::class::{EnvironmentValue, FieldClass, StructClass, TraceClass};
use crate::importers::task_state;
use crate::importers::tracepoint::Facts;

/// LTTng records priorities without the 100 real-time levels below them.
const PRIO_BASE: i32 = 100;

pub(super) fn facts_of(trace: &TraceClass) -> Facts {
    let release = trace
        .environment
        .iter()
        .find_map(|(name, value)| match value {
            EnvironmentValue::Text(text) if name == "kernel_release" => Some(text.as_str()),
            _ => None,
        });
    Facts {
        prio_base: PRIO_BASE,
        pids_are_tids: false,
        kernel: release.and_then(task_state::kernel_version),
        abi: abi_by_calls(trace).or_else(|| release.and_then(abi_by_release)),
    }
}

/// Metadata without the architecture still declares the system calls of the kernel.
fn abi_by_calls(trace: &TraceClass) -> Option<Abi> {
    const TELLING: [(&str, Abi); 5] = [
        ("arch_prctl", Abi::X86_64),
        ("vm86old", Abi::I386),
        ("vm86", Abi::I386),
        ("arm_fadvise64_64", Abi::Arm),
        ("recv", Abi::Arm),
    ];
    let events = || trace.streams.iter().flat_map(|stream| &stream.events);
    TELLING.into_iter().find_map(|(call, abi)| {
        let declared = events().any(|event| {
            let name = event.name.strip_prefix("syscall_entry_");
            name.or_else(|| event.name.strip_prefix("sys_")) == Some(call)
        });
        declared.then_some(abi)
    })
}

/// Distributions include the architecture in the release; a plain `generic` kernel is assumed to be
/// of the most common one.
fn abi_by_release(release: &str) -> Option<Abi> {
    const TELLING: [(&str, Abi); 8] = [
        ("amd64", Abi::X86_64),
        ("x86_64", Abi::X86_64),
        ("aarch64", Abi::Aarch64),
        ("arm64", Abi::Aarch64),
        ("armv7", Abi::Arm),
        ("armmp", Abi::Arm),
        ("i686", Abi::I386),
        ("generic", Abi::X86_64),
    ];
    let found = TELLING.into_iter().find(|(word, _)| release.contains(word));
    found.map(|(_, abi)| abi)
}

/// Selects from `a|b|c` the first path that the class has. A field that became a structure around
/// the same number (`prev_state` did) is resolved to that number.
pub(super) fn resolve(class: Option<&StructClass>, alternatives: &str) -> String {
    let first = || alternatives.split('|').next().unwrap_or_default();
    let Some(class) = class else {
        return first().to_owned();
    };
    for path in alternatives.split('|') {
        let head = path.split('.').next().unwrap_or(path);
        let Some(member) = class.members.iter().find(|member| member.name == head) else {
            continue;
        };
        if let (false, FieldClass::Struct(inner)) = (path.contains('.'), &member.class)
            && let Some(inner) = inner
                .members
                .iter()
                .find(|member| matches!(member.class, FieldClass::Integer(_)))
        {
            return format!("{path}.{}", inner.name);
        }
        return path.to_owned();
    }
    first().to_owned()
}

pub(super) fn has_field(class: Option<&StructClass>, name: &str) -> bool {
    class.is_some_and(|class| class.members.iter().any(|member| member.name == name))
}
