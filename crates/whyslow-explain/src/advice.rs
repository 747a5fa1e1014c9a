//! Advice, and on which machines it applies.
//!
//! Advice that cannot help on the recorded machine is left out: `ionice` without an I/O scheduler
//! that honours it, files of cgroup v2 on a host with v1, a comparison with devices that do not
//! exist. What the recording does not show becomes a condition that the reader can check.

use whyslow_analysis::AnalysisError;
use whyslow_store::Tables;

use crate::addresses::OwnAddresses;
use crate::machine::{Disk, Machine};
use crate::mechanism;
use crate::report::{ActorKind, Finding, Observation, Part, Report};

/// What advice needs to be of use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Applies {
    /// Nothing.
    Always,
    /// Controllers of cgroup v1.
    CgroupV1,
    /// Controllers of cgroup v2.
    CgroupV2,
    /// An I/O scheduler that honours I/O priorities.
    Bfq,
    /// A disk without an I/O scheduler.
    Unscheduled,
    /// A physical or virtual disk, not a loop device or volume.
    Disk,
    /// A disk, and others to compare it with.
    Peers,
    /// A peer on another host.
    OtherHost,
}

/// One piece of advice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AdviceRule {
    /// What to do. `PID` stands for the process id of the culprit.
    pub text: &'static str,
    /// Where it applies.
    pub applies: Applies,
}

impl AdviceRule {
    /// The text with the condition under which it applies, for readers without a recording.
    pub fn general(&self) -> String {
        let condition = match self.applies {
            Applies::Always => return self.text.to_owned(),
            Applies::CgroupV1 => "with cgroup v1",
            Applies::CgroupV2 => "with cgroup v2",
            Applies::Bfq => "if the I/O scheduler of the disk is bfq",
            Applies::Unscheduled => "if the disk has no I/O scheduler",
            Applies::Disk => "if it is a disk",
            Applies::Peers => "if there are similar disks",
            Applies::OtherHost => "if the peer is another host",
        };
        format!("{condition}: {}", self.text)
    }

    /// The text for a machine; `None` if it does not apply there.
    fn fitted(&self, machine: &Machine, subject: &Subject<'_>) -> Option<String> {
        let if_known = |is: Option<bool>, condition: &str| match is {
            Some(true) => Some(self.text.to_owned()),
            Some(false) => None,
            None => Some(format!("{condition}: {}", self.text)),
        };
        let cgroups = machine.cgroup_version;
        let disk = subject.device.and_then(|name| machine.disk(name));
        match self.applies {
            Applies::Always => Some(self.text.to_owned()),
            // Hosts with version 1 become rare; without the fact, one of the two is enough.
            Applies::CgroupV1 => (cgroups == Some(1)).then(|| self.text.to_owned()),
            Applies::CgroupV2 => if_known(cgroups.map(|version| version == 2), "with cgroup v2"),
            Applies::Bfq => {
                let text = subject.with_pid(self.text);
                by_scheduler(machine, disk, "bfq", text)
            }
            Applies::Unscheduled => by_scheduler(machine, disk, "none", self.text.to_owned()),
            Applies::Disk => {
                let is_disk = disk.is_none_or(|disk| disk.is_whole);
                is_disk.then(|| self.text.to_owned())
            }
            Applies::Peers => {
                let has_peers = disk.is_some_and(|disk| machine.has_peers(disk));
                has_peers.then(|| self.text.to_owned())
            }
            Applies::OtherHost => (!subject.is_own_peer).then(|| self.text.to_owned()),
        }
    }
}

/// Advice that needs a scheduler: as it is, with a condition to check, or not at all.
fn by_scheduler(
    machine: &Machine,
    disk: Option<&Disk>,
    wanted: &str,
    text: String,
) -> Option<String> {
    let Some(disk) = disk else {
        // The disk is not known: any of them may have it.
        let mut known = machine.schedulers().peekable();
        let is_known = known.peek().is_some();
        return (!is_known || known.any(|scheduler| scheduler == wanted)).then(|| {
            format!("if `cat /sys/block/*/queue/scheduler` shows [{wanted}] for the disk: {text}")
        });
    };
    // Requests to a loop device or volume are scheduled by the disk below it.
    if !disk.is_whole {
        return None;
    }
    match disk.scheduler.as_deref() {
        Some(scheduler) => (scheduler == wanted).then_some(text),
        None => Some(format!(
            "if `cat /sys/block/{}/queue/scheduler` shows [{wanted}]: {text}",
            disk.name
        )),
    }
}

/// What the advice of a finding or an observation is about.
#[derive(Debug, Clone, Copy, Default)]
struct Subject<'r> {
    device: Option<&'r str>,
    pid: Option<i32>,
    is_own_peer: bool,
}

impl<'r> Subject<'r> {
    fn of_part(part: &'r Part) -> Self {
        let device = part
            .object
            .as_ref()
            .filter(|object| object.kind == "device");
        let culprit = &part.culprit;
        let is_device = culprit.kind == ActorKind::Device;
        Self {
            device: device
                .map(|object| object.name.as_str())
                .or(is_device.then_some(culprit.name.as_str())),
            pid: culprit.pid,
            is_own_peer: false,
        }
    }

    fn of_observation(observation: &'r Observation) -> Self {
        let object = observation.object.as_ref();
        let device = object.filter(|object| object.kind == "device");
        Self {
            device: device.map(|object| object.name.as_str()),
            pid: observation.culprit.pid,
            is_own_peer: false,
        }
    }

    fn with_pid(&self, text: &str) -> String {
        match self.pid {
            Some(pid) => text.replace("PID", &pid.to_string()),
            None => text.to_owned(),
        }
    }
}

pub(crate) const fn any(text: &'static str) -> AdviceRule {
    of(text, Applies::Always)
}

pub(crate) const fn v1(text: &'static str) -> AdviceRule {
    of(text, Applies::CgroupV1)
}

pub(crate) const fn v2(text: &'static str) -> AdviceRule {
    of(text, Applies::CgroupV2)
}

pub(crate) const fn bfq(text: &'static str) -> AdviceRule {
    of(text, Applies::Bfq)
}

pub(crate) const fn unscheduled(text: &'static str) -> AdviceRule {
    of(text, Applies::Unscheduled)
}

pub(crate) const fn disk(text: &'static str) -> AdviceRule {
    of(text, Applies::Disk)
}

pub(crate) const fn peers(text: &'static str) -> AdviceRule {
    of(text, Applies::Peers)
}

pub(crate) const fn other_host(text: &'static str) -> AdviceRule {
    of(text, Applies::OtherHost)
}

const fn of(text: &'static str, applies: Applies) -> AdviceRule {
    AdviceRule { text, applies }
}

/// Texts of the advice on a mechanism, and on the culprit's own mechanism if that differs. What
/// does not apply to the machine is removed by [`fit`].
pub(crate) fn on(mechanism: &str, root: &str) -> Vec<String> {
    let of = |id: &str| mechanism::mechanism(id).map_or(&[][..], |mechanism| mechanism.advice);
    let mut texts: Vec<String> = Vec::new();
    let both = of(mechanism)
        .iter()
        .chain(if root == mechanism { &[] } else { of(root) });
    for advice in both {
        if !texts.iter().any(|text| text == advice.text) {
            texts.push(advice.text.to_owned());
        }
    }
    texts
}

/// Adapts the advice of a report to the recorded machine.
pub(crate) fn fit(tables: &dyn Tables, report: &mut Report) -> Result<(), AnalysisError> {
    let machine = Machine::read(tables)?;
    let mut own: Option<OwnAddresses> = None;
    for finding in &mut report.findings {
        let Some(part) = finding.culprit.and_then(|place| finding.parts.get(place)) else {
            continue;
        };
        let mut subject = Subject::of_part(part);
        // What another host's machine is like is in its own recording.
        let elsewhere = Machine::default();
        let machine = if part.culprit.host.is_some() {
            &elsewhere
        } else {
            &machine
        };
        if let Some(peer) = peer_of(finding, part) {
            let own = match &mut own {
                Some(own) => own,
                None => own.insert(OwnAddresses::read(tables)?),
            };
            subject.is_own_peer = own.contains(peer);
        }
        let fitted = fitted(&finding.suggestions, machine, &subject);
        finding.suggestions = fitted;
    }
    for observation in &mut report.observations {
        let subject = Subject::of_observation(observation);
        observation.suggestions = fitted(&observation.suggestions, &machine, &subject);
    }
    Ok(())
}

/// The peer that a finding waits for, if any of its advice depends on that.
fn peer_of<'r>(finding: &Finding, part: &'r Part) -> Option<&'r str> {
    let depends = |text: &String| {
        conditional(text).is_some_and(|advice| advice.applies == Applies::OtherHost)
    };
    if !finding.suggestions.iter().any(depends) {
        return None;
    }
    let object = part.object.as_ref().filter(|object| object.kind == "peer");
    let is_peer = part.culprit.kind == ActorKind::Peer;
    object
        .map(|object| object.name.as_str())
        .or(is_peer.then_some(part.culprit.name.as_str()))
}

fn fitted(texts: &[String], machine: &Machine, subject: &Subject<'_>) -> Vec<String> {
    let fit = |text: &String| match conditional(text) {
        Some(advice) => advice.fitted(machine, subject),
        None => Some(text.clone()),
    };
    texts.iter().filter_map(fit).collect()
}

/// The advice with this text that does not always apply.
fn conditional(text: &str) -> Option<&'static AdviceRule> {
    let mut all = mechanism::ALL.iter().flat_map(|mechanism| mechanism.advice);
    all.find(|advice| advice.text == text && advice.applies != Applies::Always)
}

#[cfg(test)]
mod tests {
    use super::{Subject, fitted, on};
    use crate::machine::{Disk, Machine};

    fn disk(name: &str, scheduler: Option<&str>, is_whole: bool) -> Disk {
        Disk {
            name: name.into(),
            is_whole,
            scheduler: scheduler.map(str::to_owned),
        }
    }

    fn advice(mechanism: &str, machine: &Machine, device: Option<&str>) -> String {
        let subject = Subject {
            device,
            pid: Some(99),
            is_own_peer: false,
        };
        fitted(&on(mechanism, mechanism), machine, &subject).join("\n")
    }

    #[test]
    fn io_priorities_need_bfq() {
        let machine = |scheduler| Machine::of(Some(2), vec![disk("vda", scheduler, true)]);
        let at = |scheduler| advice("block_queue", &machine(scheduler), Some("vda"));
        for without in ["none", "mq-deadline", "kyber"] {
            assert!(!at(Some(without)).contains("ionice"), "{without}");
        }
        assert!(
            at(Some("bfq"))
                .contains("\nlower the I/O priority of the other process: ionice -c 3 -p 99")
        );
        // A scheduler is recommended only where there is none.
        assert!(at(Some("none")).contains("\nuse an I/O scheduler"));
        assert!(!at(Some("mq-deadline")).contains("use an I/O scheduler"));
        // Not recorded: a condition that can be checked.
        let unknown = at(None);
        assert!(
            unknown.contains("if `cat /sys/block/vda/queue/scheduler` shows [bfq]: lower"),
            "{unknown}"
        );
        let unknown = advice("sync_storm", &Machine::default(), None);
        assert!(
            unknown.contains("if `cat /sys/block/*/queue/scheduler` shows [bfq]"),
            "{unknown}"
        );
    }

    #[test]
    fn loop_devices_have_neither_schedulers_nor_peers() {
        let disks = vec![
            disk("loop0", Some("none"), false),
            disk("loop1", Some("none"), false),
        ];
        let machine = Machine::of(Some(2), disks);
        for mechanism in ["block_queue", "block_service", "misbehaving_disk"] {
            let text = advice(mechanism, &machine, Some("loop0"));
            for word in ["ionice", "scheduler", "peers", "smartctl"] {
                assert!(!text.contains(word), "{mechanism}: {text}");
            }
        }
    }

    #[test]
    fn a_comparison_needs_several_disks() {
        let one = vec![disk("vda", None, true), disk("loop0", None, false)];
        let machine = Machine::of(None, one);
        assert!(!advice("block_service", &machine, Some("vda")).contains("peers"));
        let two = vec![disk("sda", None, true), disk("sdb", None, true)];
        let machine = Machine::of(None, two);
        assert!(advice("block_service", &machine, Some("sda")).contains("whyslow block outliers"));
        // A partition is compared as its disk.
        assert!(advice("block_service", &machine, Some("sda1")).contains("whyslow block outliers"));
    }

    #[test]
    fn files_of_cgroups_are_those_of_the_host() {
        let at = |version| advice("block_held", &Machine::of(version, Vec::new()), Some("vda"));
        assert!(at(Some(2)).starts_with("raise the I/O limit of the cgroup: io.max"));
        assert!(at(Some(1)).starts_with("raise the I/O limit of the cgroup: blkio.throttle.*"));
        assert!(at(None).starts_with("with cgroup v2: raise"));
        for version in [Some(1), Some(2), None] {
            assert_eq!(at(version).matches("raise").count(), 1);
        }
    }

    #[test]
    fn a_peer_on_this_host_has_no_other_recording() {
        let subject = Subject {
            is_own_peer: true,
            ..Subject::default()
        };
        let texts = on("network_remote", "network_remote");
        let fitted = fitted(&texts, &Machine::default(), &subject);
        assert!(texts.iter().any(|text| text.contains("other host")));
        assert!(
            !fitted.iter().any(|text| text.contains("other host")),
            "{fitted:?}"
        );
    }
}
