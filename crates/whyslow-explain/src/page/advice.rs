//! NOW, FIX, NEXT: what to do at once, what to change for good, and what to look at next.

use super::Drawn;
use super::model::{Advice, AdviceKind};
use crate::report::{ActorKind, Part};

/// First words of advice that shows more and changes nothing.
const LOOKS: &[&str] = &[
    "check", "compare", "explain", "find", "list", "profile", "record", "sample", "see",
];

/// Mechanisms of processes that share a CPU, a disk, memory or a kernel lock and nothing else: the
/// victim needs no work of the culprit.
const SHARED: &[&str] = &[
    "block_queue",
    "block_service",
    "cpu_runqueue",
    "dirty_throttle",
    "journal_wait",
    "lock_inode",
    "lock_kernel",
    "memory_throttle",
    "page_fault_io",
    "reclaim",
    "swap_in",
    "sync_storm",
    "temporary_files",
    "writeback_wait",
];

impl Drawn<'_> {
    pub(super) fn advice(&self) -> Vec<Advice> {
        let finding = self.finding;
        let mut advice: Vec<Advice> = self.now().into_iter().collect();
        let suggested = finding.suggestions.iter().map(|text| classified(text));
        let (fixes, mut looks): (Vec<Advice>, Vec<Advice>) =
            suggested.partition(|one| one.kind == AdviceKind::Fix);
        advice.extend(fixes);
        advice.push(Advice {
            kind: AdviceKind::Next,
            text: "all evidence".to_owned(),
            command: Some(finding.reproduce.clone()),
        });
        if self.culprit.is_none() {
            let missing = finding.missing.iter().map(|one| Advice {
                kind: AdviceKind::Next,
                text: format!("record {}: {}", one.events, one.decides),
                command: Some(one.record_with.clone()),
            });
            looks.extend(missing);
        }
        advice.extend(looks);
        advice
    }

    /// What to do if it happens again.
    fn now(&self) -> Option<Advice> {
        let part = self.culprit?;
        let text = match self.other() {
            Some(part) => self.against(part)?,
            None => match part.mechanism.as_str() {
                "cpu_throttled" => "raise cpu.max of its cgroup".to_owned(),
                "reclaim" | "memory_throttle" => {
                    "raise memory.high or memory.max of its cgroup, or free memory".to_owned()
                }
                "block_held" => "raise the I/O limit of its cgroup (io.max)".to_owned(),
                _ => return None,
            },
        };
        Some(Advice {
            kind: AdviceKind::Now,
            text,
            command: None,
        })
    }

    /// What ends the effect of another thread, device or host.
    fn against(&self, part: &Part) -> Option<String> {
        let actor = self.names.actor(&part.culprit);
        let is_own_process = part.culprit.host.is_none()
            && part.culprit.pid.is_some()
            && part.culprit.pid == self.finding.target.actor.pid;
        match part.culprit.kind {
            ActorKind::Process if is_own_process || !SHARED.contains(&part.mechanism.as_str()) => {
                None
            }
            ActorKind::Process => {
                let line = self.names.command_line(&part.culprit);
                let line = line.map_or_else(String::new, |line| format!(" ({line})"));
                let name = self.names.label(&part.culprit);
                let name = if line.is_empty() {
                    actor
                } else {
                    name.to_owned()
                };
                Some(match part.mechanism.as_str() {
                    "cpu_runqueue" => format!("lower the priority of {name}{line}"),
                    _ => format!("stop {name}{line}"),
                })
            }
            ActorKind::Device => Some(format!("move I/O away from {actor}")),
            ActorKind::Peer if part.mechanism == "dns_lookup" => {
                Some("use another name server".to_owned())
            }
            ActorKind::Cpu => {
                Some("check the host of the virtual machine for steal time".to_owned())
            }
            ActorKind::Cgroup => Some(format!("raise the limit of {actor}")),
            _ => None,
        }
    }
}

/// An advice is a fix, unless it is a command or points at something to inspect.
fn classified(text: &str) -> Advice {
    let (text, command) = match text.split_once(": whyslow ") {
        Some((text, command)) => (text, Some(format!("whyslow {command}"))),
        None => (text, None),
    };
    let first = text.split(' ').next().unwrap_or("");
    let kind = if command.is_some() || LOOKS.contains(&first) {
        AdviceKind::Next
    } else {
        AdviceKind::Fix
    };
    Advice {
        kind,
        text: text.to_owned(),
        command,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advice_with_a_command_is_to_look_and_the_rest_is_a_remedy() {
        let check = |text: &str, kind, command: Option<&str>| {
            let advice = classified(text);
            assert_eq!(
                (advice.kind, advice.command.as_deref()),
                (kind, command),
                "{text}"
            );
        };
        check("raise memory.high", AdviceKind::Fix, None);
        check(
            "compare the device with its peers: whyslow block outliers",
            AdviceKind::Next,
            Some("whyslow block outliers"),
        );
        check(
            "check for real-time threads: chrt -p PID",
            AdviceKind::Next,
            None,
        );
        // Every advice of the reference is one or the other, and none is empty.
        for mechanism in crate::DESCRIBED_MECHANISMS {
            for advice in mechanism.advice {
                assert!(!classified(advice.text).text.is_empty(), "{}", advice.text);
            }
        }
    }
}
