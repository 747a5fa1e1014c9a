//! Budgets of the build: number of test executables, size and libraries of the program, compile time.
//!
//! The number of executables is read from the manifests. Size and compile time are checked only if
//! the target directory has a build. Compile time is in unit seconds: the sum of the durations that
//! `cargo build --timings` reports per crate. They depend on the machine, so they are compared with
//! those of `syn`, which changes only with its version.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Test executables of the workspace, each of which links the tested crates.
const EXECUTABLES_MAX: usize = 20;
/// Size of the stripped program, in bytes.
const PROGRAM_BYTES_MAX: u64 = 25_000_000;
/// The same with the features `fleet` and `load`, as in packages.
const FULL_PROGRAM_BYTES_MAX: u64 = 31_000_000;
/// Libraries that the program may link: parts of glibc, and gcc's unwinder.
const LIBRARIES: [&str; 5] = [
    "libc.so",
    "libm.so",
    "libgcc_s.so",
    "ld-linux",
    "linux-vdso.so",
];
/// Unit seconds of a clean build of the program, as a multiple of those of `syn` (127 when this was
/// written).
const UNITS_MAX: f64 = 200.0;

pub(super) fn check(root: &Path, complaints: &mut Vec<String>) {
    executables(root, complaints);
    let target =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    for profile in ["release", "dist"] {
        program(&target.join(profile).join("whyslow"), complaints);
    }
    if let Ok(report) = std::fs::read_to_string(target.join("cargo-timings/cargo-timing.html")) {
        unit_seconds(&report, complaints);
    }
}

fn executables(root: &Path, complaints: &mut Vec<String>) {
    let mut found = Vec::new();
    let crates = std::fs::read_dir(root.join("crates"))
        .into_iter()
        .flatten()
        .flatten();
    for folder in crates.map(|entry| entry.path()).chain([root.join("xtask")]) {
        let Ok(manifest) = std::fs::read_to_string(folder.join("Cargo.toml")) else {
            continue;
        };
        let name = folder
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        if has_tests(&folder.join("src")) {
            found.push(name.clone());
        }
        if manifest
            .lines()
            .any(|line| line.trim() == "autotests = false")
        {
            continue;
        }
        let tests = std::fs::read_dir(folder.join("tests"))
            .into_iter()
            .flatten()
            .flatten();
        for path in tests.map(|entry| entry.path()) {
            let is_file = path.extension().is_some_and(|ending| ending == "rs");
            if is_file || path.join("main.rs").exists() {
                let stem = path
                    .file_stem()
                    .unwrap_or_default()
                    .to_string_lossy()
                    .into_owned();
                found.push(format!("{name}/tests/{stem}"));
            }
        }
    }
    if found.len() > EXECUTABLES_MAX {
        found.sort();
        complaints.push(format!(
            "{} test executables, at most {EXECUTABLES_MAX}: {}",
            found.len(),
            found.join(", ")
        ));
    }
}

/// Whether a crate has unit tests. Without them, it builds an empty test executable, unless its manifest
/// has `test = false`.
fn has_tests(folder: &Path) -> bool {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).any(|path| {
        if path.is_dir() {
            return has_tests(&path);
        }
        std::fs::read_to_string(&path).is_ok_and(|text| text.contains("#[cfg(test)]"))
    })
}

fn program(path: &Path, complaints: &mut Vec<String>) {
    let Ok(file) = std::fs::metadata(path) else {
        return;
    };
    let bytes_max = bytes_max(path);
    if file.len() > bytes_max {
        complaints.push(format!(
            "{}: {} bytes, at most {bytes_max}",
            path.display(),
            file.len()
        ));
    }
    let listed = Command::new("ldd")
        .arg(path)
        .output()
        .map(|done| done.stdout)
        .unwrap_or_default();
    for line in String::from_utf8_lossy(&listed).lines() {
        if !LIBRARIES.iter().any(|known| line.contains(known)) {
            complaints.push(format!("{}: must not link {}", path.display(), line.trim()));
        }
    }
}

/// Whether a program has the feature `fleet`: one without reports an error.
fn bytes_max(program: &Path) -> u64 {
    let printed = Command::new(program).args(["fleet", "hosts"]).output();
    let is_full = printed
        .is_ok_and(|done| !String::from_utf8_lossy(&done.stderr).contains("this build has no"));
    if is_full {
        FULL_PROGRAM_BYTES_MAX
    } else {
        PROGRAM_BYTES_MAX
    }
}

/// Sums the durations in the report of `cargo build --timings`, which has one JSON object per unit.
fn unit_seconds(report: &str, complaints: &mut Vec<String>) {
    let (mut sum, mut syn) = (0.0, 0.0f64);
    for unit in report.split("\"name\":").skip(1) {
        let Some(duration) = number_after(unit, "\"duration\":") else {
            continue;
        };
        sum += duration;
        if unit.trim_start().starts_with("\"syn\"") {
            syn = syn.max(duration);
        }
    }
    if syn > 0.0 && sum > UNITS_MAX * syn {
        complaints.push(format!(
            "the program takes {sum:.0} unit seconds to build, {:.0} times those of syn, at most {UNITS_MAX}; \
             see cargo build --timings",
            sum / syn
        ));
    }
}

fn number_after(text: &str, mark: &str) -> Option<f64> {
    let rest = text[text.find(mark)? + mark.len()..].trim_start();
    let end = rest
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(rest.len());
    rest[..end].parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_many_executables_are_a_complaint() {
        let folder = tempfile::tempdir().expect("a folder");
        let krate = folder.path().join("crates/k");
        std::fs::create_dir_all(krate.join("tests/it")).expect("a folder");
        std::fs::create_dir_all(krate.join("src")).expect("a folder");
        std::fs::write(krate.join("Cargo.toml"), "[package]\n").expect("a file");
        std::fs::write(krate.join("src/lib.rs"), "#[cfg(test)]\nmod tests {}\n").expect("a file");
        std::fs::write(krate.join("tests/it/main.rs"), "").expect("a file");
        let count = |more: usize| {
            for number in 0..more {
                std::fs::write(krate.join(format!("tests/t{number}.rs")), "").expect("a file");
            }
            let mut complaints = Vec::new();
            executables(folder.path(), &mut complaints);
            complaints
        };
        assert!(count(EXECUTABLES_MAX - 2).is_empty());
        let complaints = count(EXECUTABLES_MAX - 1);
        assert!(
            complaints[0].starts_with("21 test executables"),
            "{complaints:?}"
        );
    }

    #[test]
    fn a_large_program_is_a_complaint() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("whyslow");
        let file = std::fs::File::create(&path).expect("a file");
        let complaints = |bytes| {
            file.set_len(bytes).expect("a length");
            let mut complaints = Vec::new();
            program(&path, &mut complaints);
            complaints
                .iter()
                .filter(|complaint| complaint.contains("bytes"))
                .count()
        };
        assert_eq!(complaints(PROGRAM_BYTES_MAX), 0);
        assert_eq!(complaints(PROGRAM_BYTES_MAX + 1), 1);
    }

    #[test]
    fn unit_seconds_are_added_up() {
        let units = |seconds: f64| {
            format!(
                r#"[{{"i": 0, "name": "syn", "duration": 2.5}}, {{"i": 1, "name": "a", "duration": {seconds}}}]"#
            )
        };
        let complaints = |seconds| {
            let mut complaints = Vec::new();
            unit_seconds(&units(seconds), &mut complaints);
            complaints.len()
        };
        assert_eq!(complaints(2.5 * UNITS_MAX - 2.6), 0);
        assert_eq!(complaints(2.5 * UNITS_MAX), 1);
    }
}
