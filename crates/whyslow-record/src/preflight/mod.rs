//! Checks of this machine: what can be recorded on it.

mod instead;
mod privileges;
mod settings;

use std::fs;
use std::path::Path;

use crate::load;
use crate::options::Options;
use crate::programs::{Off, StandIn, Topic, WALL_ITERATOR};
use crate::wall::WALL_MIN;

pub(crate) use settings::are_ids_those_of_the_host;

pub use instead::{Instead, instead};

/// BTF of the kernel, which every program needs to locate fields.
pub(crate) const TYPES: &str = "/sys/kernel/btf/vmlinux";

/// Result of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// Nothing is missing.
    Good,
    /// Something is not recorded, or recorded more slowly.
    Limited,
    /// Nothing can be recorded.
    Bad,
}

impl State {
    /// As `doctor` prints it.
    pub fn name(self) -> &'static str {
        match self {
            State::Good => "ok",
            State::Limited => "limited",
            State::Bad => "missing",
        }
    }
}

/// One check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Check {
    /// What was checked, for the first column of `doctor`.
    pub name: &'static str,
    /// Its result.
    pub state: State,
    /// What was found.
    pub found: String,
    /// How to improve it; empty if there is nothing to improve.
    pub fix: String,
}

impl Check {
    fn new(name: &'static str, state: State, found: impl Into<String>) -> Self {
        Self {
            name,
            state,
            found: found.into(),
            fix: String::new(),
        }
    }

    fn fix(self, fix: &str) -> Self {
        Self {
            fix: fix.to_owned(),
            ..self
        }
    }
}

/// Runs all checks. Loads every program, attaches none.
pub fn checks() -> Vec<Check> {
    let may = privileges::of_this_process();
    let mut checks = vec![kernel(), privileges::check(may), types(), lockdown()];
    checks.extend(settings::checks(may));
    let are_possible = checks.iter().all(|check| check.state != State::Bad);
    if are_possible {
        checks.extend(programs());
        checks.push(functions());
    }
    checks
}

/// Whether the kernel is of this version or newer.
pub(crate) fn is_kernel_since(version: [u32; 2]) -> bool {
    let system = rustix::system::uname();
    let release = system.release().to_string_lossy();
    let numbers: Vec<u32> = release
        .split(|letter: char| !letter.is_ascii_digit())
        .filter_map(|number| number.parse().ok())
        .take(2)
        .collect();
    numbers.as_slice() >= version.as_slice()
}

fn kernel() -> Check {
    let system = rustix::system::uname();
    let release = system.release().to_string_lossy();
    // Task storage for tracing programs, and ring buffers.
    if is_kernel_since([5, 11]) {
        Check::new("kernel", State::Good, release)
    } else {
        Check::new("kernel", State::Bad, release)
            .fix("use Linux 5.11 or newer, or record with LTTng as shown below")
    }
}

fn types() -> Check {
    if Path::new(TYPES).exists() {
        Check::new("kernel types (BTF)", State::Good, TYPES)
    } else {
        let found = format!("no {TYPES}");
        Check::new("kernel types (BTF)", State::Bad, found)
            .fix("use a kernel with CONFIG_DEBUG_INFO_BTF=y, or record with LTTng as shown below")
    }
}

/// `none [integrity] confidentiality`
fn lockdown() -> Check {
    let modes = fs::read_to_string("/sys/kernel/security/lockdown").unwrap_or_default();
    let mode = modes
        .split_whitespace()
        .find_map(|mode| mode.strip_prefix('[')?.strip_suffix(']'));
    match mode {
        Some("confidentiality") => Check::new("lockdown", State::Bad, "confidentiality").fix(
            "boot with lockdown=integrity: in this mode BPF programs cannot read kernel memory",
        ),
        Some(mode) => Check::new("lockdown", State::Good, mode),
        None => Check::new("lockdown", State::Good, "none or unknown"),
    }
}

/// `; raw_switch for on_switch, …`
fn instead_of<'s>(stand_ins: impl Iterator<Item = &'s StandIn>) -> String {
    let forms = stand_ins.map(|form| format!("{} for {}", form.form, form.program));
    let forms: Vec<String> = forms.collect();
    if forms.is_empty() {
        return String::new();
    }
    format!("; {}", forms.join(", "))
}

/// Whether uprobes work: tries one on this program's entry point.
fn functions() -> Check {
    let name = "functions (uprobes)";
    match load::try_function() {
        Ok(()) => Check::new(name, State::Good, "available: record --function"),
        Err(reason) => Check::new(name, State::Limited, reason).fix(
            "use Linux 5.15 or newer with CONFIG_UPROBES=y and CONFIG_BPF_EVENTS=y; newer kernels require CAP_SYS_ADMIN: sudo whyslow record",
        ),
    }
}

/// How wall-clock sampling reads all threads.
fn wall(off: &[Off]) -> Check {
    let name = "wall-clock sampling";
    match off.iter().find(|off| off.program == WALL_ITERATOR) {
        None => Check::new(
            name,
            State::Good,
            "by BPF iterator: record --stacks wall:10ms",
        ),
        Some(off) => {
            let found = format!("by /proc, at a higher cost ({})", off.reason);
            Check::new(name, State::Limited, found)
        }
    }
}

/// One check per topic.
fn programs() -> Vec<Check> {
    let mut options = Options::new("");
    options.topics = Topic::ALL.iter().copied().collect();
    options.wall = Some(WALL_MIN);
    let (off, stand_ins) = match load::trial(&options) {
        Ok(found) => found,
        Err(error) => {
            return vec![Check::new("programs", State::Bad, error.to_string())];
        }
    };
    let check = |topic: Topic| {
        let lacking: Vec<&Off> = off.iter().filter(|off| off.topic == Some(topic)).collect();
        let stand_ins = stand_ins.iter().filter(|form| form.topic == Some(topic));
        let instead = instead_of(stand_ins);
        if lacking.is_empty() {
            let found = format!("all programs load{instead}");
            return Check::new(topic.name(), State::Good, found);
        }
        let lacking = lacking.iter().map(|off| {
            format!(
                "{} unavailable ({}: {})",
                off.provides, off.program, off.reason
            )
        });
        let lacking: Vec<String> = lacking.collect();
        let found = format!("{}{instead}", lacking.join("; "));
        Check::new(topic.name(), State::Limited, found)
    };
    let mut checks: Vec<Check> = Topic::ALL.iter().copied().map(check).collect();
    checks.push(wall(&off));
    checks
}
