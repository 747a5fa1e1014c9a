//! Kernel settings, available memory and disk space.

use std::fs;
use std::path::{Path, PathBuf};

use super::privileges::Privileges;
use super::{Check, State};
use crate::memory::PROGRAM_BYTES;
use crate::options::{BUFFER_BYTES, KEPT_BYTES, SPOOL_BYTES_MAX};

const MIB: u64 = 1 << 20;
/// Common sampling rates are 99 and 999 Hz.
const SAMPLES_FEW: u32 = 999;
/// A busy machine fills less than this within minutes.
const DISK_BYTES_FEW: u64 = 1 << 30;

pub(super) fn checks(may: Privileges) -> Vec<Check> {
    vec![
        of_others("kernel.unprivileged_bpf_disabled", may),
        of_others("kernel.perf_event_paranoid", may),
        symbols(may),
        sampling(
            &setting("kernel.perf_event_max_sample_rate").unwrap_or_default(),
            &setting("kernel.perf_cpu_time_max_percent").unwrap_or_default(),
        ),
        processes(&namespace()),
        tracefs(),
        memory(&fs::read_to_string("/proc/meminfo").unwrap_or_default()),
        disk(Path::new(".")),
    ]
}

/// `kernel.kptr_restrict` → its value
fn setting(name: &str) -> Option<String> {
    let path = Path::new("/proc/sys").join(name.replace('.', "/"));
    let value = fs::read_to_string(path).ok()?;
    Some(value.trim().to_owned())
}

/// Settings that apply only to processes without the capabilities.
fn of_others(name: &'static str, may: Privileges) -> Check {
    let value = setting(name).unwrap_or_else(|| "unknown".into());
    if may.may_load() {
        let found = format!("{value}; does not apply to this user");
        return Check::new(name, State::Good, found);
    }
    let found = format!("{value}; this user cannot record, whatever the value");
    Check::new(name, State::Limited, found).fix("grant the capabilities shown under privileges")
}

/// Whether kernel addresses can be symbolized, as stacks require.
fn symbols(may: Privileges) -> Check {
    let name = "kernel symbols";
    let restrict = setting("kernel.kptr_restrict").unwrap_or_else(|| "unknown".into());
    let Ok(file) = fs::File::open("/proc/kallsyms") else {
        return Check::new(name, State::Limited, "no /proc/kallsyms")
            .fix("use a kernel with CONFIG_KALLSYMS=y");
    };
    if are_visible(file) {
        let found = format!("readable (kernel.kptr_restrict = {restrict})");
        return Check::new(name, State::Good, found);
    }
    let found = format!("hidden (kernel.kptr_restrict = {restrict})");
    let fix = if may.may_see_addresses() {
        "sudo sysctl kernel.kptr_restrict=1"
    } else {
        "sudo whyslow record, or CAP_SYSLOG, or sudo sysctl kernel.kptr_restrict=0 kernel.perf_event_paranoid=1"
    };
    Check::new(name, State::Limited, found).fix(fix)
}

/// Sampling rate that the kernel permits per CPU. Where sampling takes more CPU time than the
/// percentage, the kernel lowers the rate and does not raise it again.
fn sampling(rate: &str, percent: &str) -> Check {
    let name = "sampling";
    let parse = |text: &str| text.parse::<u32>().ok();
    let Some(rate) = parse(rate) else {
        return Check::new(
            name,
            State::Good,
            "kernel.perf_event_max_sample_rate: unknown",
        );
    };
    let share = match parse(percent) {
        Some(0 | 100) => "never lowered by the kernel".to_owned(),
        Some(percent) => {
            format!("the kernel lowers it if sampling takes more than {percent} % CPU")
        }
        None => "kernel.perf_cpu_time_max_percent: unknown".to_owned(),
    };
    let found = format!("up to {rate} Hz; {share}");
    if rate >= SAMPLES_FEW {
        return Check::new(name, State::Good, found);
    }
    Check::new(name, State::Limited, found).fix(
        "sudo sysctl kernel.perf_event_max_sample_rate=10000; or sample less often with \
         --sample HZ",
    )
}

/// Without the privilege to read addresses, the kernel shows zeros.
fn are_visible(file: impl std::io::Read) -> bool {
    use std::io::{BufRead as _, BufReader};
    let lines = BufReader::new(file).lines().map_while(Result::ok).take(100);
    let mut addresses = lines.map(|line| {
        let address = line.split(' ').next().unwrap_or_default().to_owned();
        u64::from_str_radix(&address, 16).unwrap_or(0)
    });
    // Addresses of per-CPU variables are small; later ones are not.
    addresses.any(|address| address > u64::from(u32::MAX))
}

/// Inode number of the initial PID namespace, the same in every kernel.
const FIRST_NAMESPACE: &str = "pid:[4026531836]";

fn namespace() -> PathBuf {
    fs::read_link("/proc/self/ns/pid").unwrap_or_default()
}

/// An unknown namespace counts as the host's.
fn are_of_host(namespace: &Path) -> bool {
    namespace.as_os_str().is_empty() || namespace == Path::new(FIRST_NAMESPACE)
}

/// Kernel events carry the process ids of the host.
pub(crate) fn are_ids_those_of_the_host() -> bool {
    are_of_host(&namespace())
}

fn processes(namespace: &Path) -> Check {
    let name = "process ids";
    if are_of_host(namespace) {
        return Check::new(name, State::Good, "host namespace");
    }
    let found = format!(
        "{}: a container, whose /proc shows other ids than kernel events",
        namespace.display()
    );
    Check::new(name, State::Bad, found)
        .fix("record on the host, or in a container started with --pid=host")
}

fn tracefs() -> Check {
    let places = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];
    let found = places
        .iter()
        .find(|place| Path::new(place).join("events").exists());
    let found = found.map_or(
        "not mounted, or not readable by this user; not required",
        |place| place,
    );
    Check::new("tracefs", State::Good, found)
}

fn memory(meminfo: &str) -> Check {
    let name = "memory for events";
    let all = (PROGRAM_BYTES + BUFFER_BYTES) / MIB;
    let flight = all + 2 * KEPT_BYTES / MIB;
    let takes = format!("{all} MiB at most, with --ring {flight} MiB");
    let line = meminfo
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    let Some(kib) = kib else {
        return Check::new(name, State::Good, format!("{takes}; available: unknown"));
    };
    let available = kib.saturating_mul(1024);
    let found = format!("{takes}; available: {} MiB", available / MIB);
    if available < BUFFER_BYTES * 4 {
        return Check::new(name, State::Limited, found).fix("whyslow record --max-memory 72MiB");
    }
    Check::new(name, State::Good, found)
}

fn disk(folder: &Path) -> Check {
    let name = "disk space for the spool";
    let shown = fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned());
    let fix = "write elsewhere: whyslow record -o /other/disk/NAME.wsl";
    let Ok(about) = rustix::fs::statvfs(folder) else {
        let found = format!("unknown for {}", shown.display());
        return Check::new(name, State::Limited, found).fix(fix);
    };
    let free = about.f_bavail.saturating_mul(about.f_frsize);
    let found = format!(
        "{} MiB free in {} (--max-size: {} MiB)",
        free / MIB,
        shown.display(),
        SPOOL_BYTES_MAX / MIB
    );
    if rustix::fs::access(folder, rustix::fs::Access::WRITE_OK).is_err() {
        let found = format!("{} is not writable by this user", shown.display());
        return Check::new(name, State::Limited, found).fix(fix);
    }
    if free < DISK_BYTES_FEW {
        return Check::new(name, State::Limited, found).fix(fix);
    }
    Check::new(name, State::Good, found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zeros_are_no_addresses() {
        assert!(are_visible(
            &b"0000000000000000 A cpu\nffffffff81000000 T _text\n"[..]
        ));
        assert!(!are_visible(
            &b"0000000000000000 T _text\n0000000000000000 T x\n"[..]
        ));
        assert!(!are_visible(&b"\xff\xfe\n\n ffff"[..]));
    }

    #[test]
    fn little_memory_is_told() {
        let state = |meminfo: &str| memory(meminfo).state;
        assert_eq!(state("MemAvailable:    8000000 kB\n"), State::Good);
        assert_eq!(state("MemAvailable:     100000 kB\n"), State::Limited);
        assert_eq!(state("MemAvailable: many\n"), State::Good);
        assert_eq!(
            state("MemAvailable: 18446744073709551615 kB\n"),
            State::Good
        );
    }

    #[test]
    fn a_rate_of_samples_that_the_kernel_lowered_is_told_with_the_command() {
        let check = |rate: &str, percent: &str, state: State, words: &str| {
            let found = sampling(rate, percent);
            assert_eq!(found.state, state, "{found:?}");
            assert!(found.found.contains(words), "{found:?}");
            let has_command = found
                .fix
                .contains("sysctl kernel.perf_event_max_sample_rate=");
            assert_eq!(has_command, state == State::Limited, "{found:?}");
        };
        check(
            "100000",
            "25",
            State::Good,
            "up to 100000 Hz; the kernel lowers it",
        );
        check("250", "25", State::Limited, "more than 25 %");
        check("250", "0", State::Limited, "never lowered");
        check("", "", State::Good, "unknown");
        check("many", "25", State::Good, "unknown");
    }

    #[test]
    fn a_container_is_told() {
        assert_eq!(processes(Path::new("pid:[4026532211]")).state, State::Bad);
        assert_eq!(processes(Path::new(FIRST_NAMESPACE)).state, State::Good);
        assert_eq!(disk(Path::new("/nonexistent")).state, State::Limited);
    }
}
