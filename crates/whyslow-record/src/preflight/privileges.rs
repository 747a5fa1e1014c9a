//! Privileges of this process: capabilities by number, as in `/proc/self/status`.

use std::fs;

use super::{Check, State};

/// The capabilities that recording uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Privileges(u64);

const DAC_OVERRIDE: u32 = 1;
const DAC_READ_SEARCH: u32 = 2;
const SYS_PTRACE: u32 = 19;
const SYS_ADMIN: u32 = 21;
const SYSLOG: u32 = 34;
const PERFMON: u32 = 38;
const BPF: u32 = 39;

impl Privileges {
    fn has(self, capability: u32) -> bool {
        self.0 >> capability & 1 == 1
    }

    pub(super) fn may_load(self) -> bool {
        self.has(SYS_ADMIN) || self.has(BPF) && self.has(PERFMON)
    }

    pub(super) fn may_see_addresses(self) -> bool {
        self.has(SYSLOG)
    }

    fn may_read_everything(self) -> bool {
        self.has(DAC_OVERRIDE) || self.has(DAC_READ_SEARCH)
    }
}

pub(super) fn of_this_process() -> Privileges {
    parse(&fs::read_to_string("/proc/self/status").unwrap_or_default())
}

/// No capabilities if the status cannot be parsed.
fn parse(status: &str) -> Privileges {
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let effective = effective.and_then(|bits| u64::from_str_radix(bits.trim(), 16).ok());
    Privileges(effective.unwrap_or(0))
}

/// The minimum that a recorder needs, for one run. (File capabilities would grant them to every
/// user.)
const FEW: &str = "sudo setpriv --reuid \"$(id -u)\" --regid \"$(id -g)\" --init-groups --inh-caps +bpf,+perfmon,+sys_ptrace,+dac_read_search,+syslog --ambient-caps +bpf,+perfmon,+sys_ptrace,+dac_read_search,+syslog whyslow …";

pub(super) fn check(may: Privileges) -> Check {
    let check = |state, found: String| Check::new("privileges", state, found);
    if !may.may_load() {
        let fix = format!(
            "run as root: sudo whyslow record; or with only the required capabilities: {FEW}"
        );
        return check(State::Bad, "cannot load BPF programs".into()).fix(&fix);
    }
    let lacking: Vec<&str> = [
        (
            may.has(SYS_PTRACE),
            "CAP_SYS_PTRACE: initial descriptors, directories and executables of other users' processes unavailable",
        ),
        (
            may.may_read_everything(),
            "CAP_DAC_READ_SEARCH: no symbols for binaries that this user cannot read",
        ),
    ]
    .into_iter()
    .filter_map(|(has, lacking)| (!has).then_some(lacking))
    .collect();
    if lacking.is_empty() {
        return check(
            State::Good,
            "can load BPF programs and read all processes".into(),
        );
    }
    let found = format!("can load BPF programs; missing {}", lacking.join("; "));
    check(State::Limited, found).fix(&format!("sudo whyslow record, or {FEW}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capabilities_decide_what_can_be_recorded() {
        let state = |bits: &str| check(parse(&format!("Name:\tx\nCapEff:\t{bits}\n"))).state;
        assert_eq!(state("000001ffffffffff"), State::Good);
        assert_eq!(state("0000000000000000"), State::Bad);
        // CAP_BPF alone, and with CAP_PERFMON.
        assert_eq!(state("0000008000000000"), State::Bad);
        assert_eq!(state("000000c000000000"), State::Limited);
        // With CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH too.
        assert_eq!(state("000000c000080004"), State::Good);
        assert_eq!(state("not hexadecimal"), State::Bad);
        assert_eq!(check(parse("")).state, State::Bad);
    }
}
