//! Events other than samples: runtime events, settings, the JVM, thread dumps.

use std::sync::Arc;

use rustc_hash::FxHashSet;

use super::Reader;
use super::bytes::NAME_BYTES_MAX;
use super::chunk::Chunk;
use super::events::{Fields, Meaning, Role};
use super::stacks::ResolvedConstants;
use crate::profile::{NO_STACK, RuntimeEvent, RuntimeKind};

/// Events that async-profiler's settings refer to: the recording, and its samples.
const OWN: [&str; 2] = ["jdk.ActiveRecording", "jdk.ExecutionSample"];
/// Settings of any event that define the sampling interval.
const INTERVALS: [&str; 2] = ["interval", "wall"];
/// Maximum length of a host name.
const HOST_CHARS_MAX: usize = 255;

impl Reader {
    #[cold]
    pub(super) fn other(
        &mut self,
        chunk: &Chunk,
        meaning: Meaning,
        fields: &Fields<'_>,
        resolved: &mut ResolvedConstants<'_>,
    ) {
        let ts = chunk.header.time(fields.number(Role::Start));
        match meaning {
            Meaning::Sample(_) => {}
            Meaning::Runtime(kind) => self.runtime(chunk, kind, fields, resolved),
            Meaning::ThreadStart | Meaning::ThreadEnd => {
                let profile = &mut self.out.profile;
                if let Some(thread) = resolved.thread(fields.number(Role::Thread), profile) {
                    profile.lives.push(match meaning {
                        Meaning::ThreadStart => (thread, Some(ts), None),
                        _ => (thread, None, Some(ts)),
                    });
                }
            }
            Meaning::Setting => self.setting(fields, resolved),
            Meaning::Machine => self.machine(fields, resolved),
            Meaning::ThreadDump => {
                let value = fields.value(Role::Object).filter(|_| self.dump_budget > 0);
                let text = value.and_then(|value| {
                    let constants = resolved.constants();
                    constants.long_text(value, self.dump_budget)
                });
                match text.filter(|text| !text.is_empty()) {
                    Some(text) => {
                        self.dump_budget = self.dump_budget.saturating_sub(text.len());
                        self.out.dumps.push((ts, text));
                    }
                    None => self.out.damage.dumps += 1,
                }
            }
        }
    }

    fn setting(&mut self, fields: &Fields<'_>, resolved: &mut ResolvedConstants<'_>) {
        let class = resolved.constants().types.class(fields.number(Role::Of));
        let of = class.map_or("", |class| class.name.as_str());
        let name = fields
            .value(Role::Name)
            .and_then(|value| resolved.constants().long_text(value, NAME_BYTES_MAX));
        let Some(name) = name else { return };
        let is_own = resolved.is_async() && OWN.contains(&of);
        if !is_own && !INTERVALS.contains(&name.as_str()) {
            return;
        }
        let value = fields.value(Role::Value);
        let value = value.and_then(|value| resolved.text(value, false, &mut self.texts));
        let Some(value) = value else { return };
        if is_own {
            self.own_settings.insert(name.clone(), Arc::clone(&value));
        }
        self.settings.insert(format!("{of}#{name}"), value);
    }

    fn machine(&mut self, fields: &Fields<'_>, resolved: &ResolvedConstants<'_>) {
        let profile = &mut self.out.profile;
        let pid = i32::try_from(fields.number(Role::Pid))
            .ok()
            .filter(|pid| *pid > 0);
        profile.pid = profile.pid.or(pid);
        for (role, fact) in [
            (Role::Name, "jvm"),
            (Role::Value, "jvm_version"),
            (Role::Arguments, "java_arguments"),
        ] {
            if profile.facts.iter().any(|(of, _)| of == fact) {
                continue;
            }
            let value = fields.value(role);
            let text = value.and_then(|value| resolved.constants().text(value));
            profile
                .facts
                .extend(text.map(|text| (fact.to_owned(), text)));
        }
    }

    fn runtime(
        &mut self,
        chunk: &Chunk,
        kind: RuntimeKind,
        fields: &Fields<'_>,
        resolved: &mut ResolvedConstants<'_>,
    ) {
        let is_class = matches!(
            kind,
            RuntimeKind::MonitorEnter | RuntimeKind::MonitorWait | RuntimeKind::Park
        );
        let is_socket = matches!(kind, RuntimeKind::SocketRead | RuntimeKind::SocketWrite);
        let object = fields.value(Role::Object);
        let object = object.and_then(|value| resolved.text(value, is_class, &mut self.texts));
        let port = fields.number(Role::Port);
        let object = object.map(|object| {
            if is_socket && port > 0 {
                let host: String = object.chars().take(HOST_CHARS_MAX).collect();
                intern(&mut self.texts, &format!("{host}:{port}"))
            } else {
                object
            }
        });
        let profile = &mut self.out.profile;
        let owner = match fields.number(Role::Owner) {
            0 => None,
            key => resolved.thread(key, profile),
        };
        let thread = match fields.number(Role::Thread) {
            0 => None,
            key => resolved.thread(key, profile),
        };
        let stack = match fields.number(Role::Stack) {
            0 => NO_STACK,
            key => resolved.stack(key, profile),
        };
        let address = fields.number(Role::Address) as u64;
        profile.events.push(RuntimeEvent {
            ts: chunk.header.time(fields.number(Role::Start)),
            dur: chunk.header.span(fields.number(Role::Duration)).max(0),
            kind,
            thread,
            stack,
            object: object.filter(|object| !object.is_empty()),
            address: (address != 0).then_some(address),
            owner,
            bytes: fields
                .value(Role::Bytes)
                .map(|_| fields.number(Role::Bytes)),
        });
    }

    /// Whether all samples of async-profiler are CPU samples. Until 2.9 these had the state of
    /// running threads, as wall-clock samples do, and only the settings make the difference.
    pub(super) fn is_of_cpu(&self) -> bool {
        let event = self.own_settings.get("event");
        let is_other = event.is_some_and(|event| !event.is_empty() && &**event != "wall");
        is_other && !self.own_settings.contains_key("wall") && !self.is_kind_known
    }
}

/// The same text, stored once.
pub(super) fn intern(texts: &mut FxHashSet<Arc<str>>, text: &str) -> Arc<str> {
    if let Some(resolved) = texts.get(text) {
        return Arc::clone(resolved);
    }
    let text: Arc<str> = text.into();
    texts.insert(Arc::clone(&text));
    text
}
