//! Calls in logs match those counted by strace itself, in the table that it writes after a log.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use whyslow_ingest::{InMemory, import_in_memory};
use whyslow_testkit::{Need, skip};

/// Calls, errors and seconds by name.
type Sums = BTreeMap<String, (u64, u64, f64)>;

/// `  0.22    0.000590         196         3         1 clone`
fn summary(log: &str) -> Sums {
    let table = log.lines().skip_while(|line| !line.starts_with("% time"));
    let rows = table.filter_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let (name, figures) = words.split_last()?;
        let numbers: Vec<f64> = figures
            .iter()
            .filter_map(|word| word.parse().ok())
            .collect();
        let (seconds, calls) = (*numbers.get(1)?, *numbers.get(3)?);
        let errors = numbers.get(4).copied().unwrap_or(0.0);
        let is_row = numbers.len() == figures.len() && *name != "total";
        is_row.then(|| ((*name).to_owned(), (calls as u64, errors as u64, seconds)))
    });
    rows.collect()
}

fn imported_sums(imported: &InMemory) -> Sums {
    let mut sums = Sums::new();
    for row in &imported.rows.syscall {
        let name = imported.symbols.get(row.name).to_owned();
        let (calls, errors, seconds) = sums.entry(name).or_default();
        *calls += 1;
        *errors += u64::from(row.errno.is_some_and(|errno| errno > 0));
        *seconds += row.dur.unwrap_or(0) as f64 / 1e9;
    }
    sums
}

fn check(path: &Path) -> InMemory {
    let log = std::fs::read_to_string(path).expect("a log");
    let imported = import_in_memory(&[path.to_owned()]).expect("it can be imported");
    let errors = imported
        .anomalies
        .iter()
        .filter(|one| one.name == "STRACE_LINE_BAD");
    assert_eq!(errors.count(), 0, "{:?}", imported.anomalies);
    let (wanted, mut imported_sums) = (summary(&log), imported_sums(&imported));
    assert!(wanted.len() > 10, "{wanted:?}");
    // strace does not count calls that do not return.
    for name in ["exit", "exit_group", "rt_sigreturn"] {
        if !wanted.contains_key(name) {
            imported_sums.remove(name);
        }
    }
    let names = |sums: &Sums| sums.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&imported_sums), names(&wanted));
    for (name, (calls, errors, seconds)) in &wanted {
        let (found, failed, took) = imported_sums[name];
        assert_eq!((found, failed), (*calls, *errors), "{name}");
        // Lines have truncated microseconds; the table sums the exact values.
        let slack = 1e-6 * (*calls as f64 + 1.0);
        assert!(
            (took - seconds).abs() <= slack,
            "{name}: {took} s, not {seconds}"
        );
    }
    imported
}

fn fixture() -> PathBuf {
    whyslow_testkit::fixture("strace/log.strace")
}

#[test]
fn calls_are_those_that_strace_counts() {
    let imported = check(&fixture());
    let rows = &imported.rows.syscall;
    let path = |row: &whyslow_model::tables::SyscallRow| {
        row.path.map(|path| imported.symbols.get(path).to_owned())
    };
    let written: i64 = rows
        .iter()
        .filter(|row| path(row).as_deref() == Some("/srv/demo/big"))
        .filter(|row| imported.symbols.get(row.name) == "write")
        .filter_map(|row| row.bytes)
        .sum();
    assert_eq!(written, 3 * 64 * 1024);
    // A name with a space, as it was opened and as it was removed.
    let of_name = rows
        .iter()
        .filter(|row| path(row).as_deref() == Some("/srv/demo/tmp 1"));
    assert!(of_name.count() >= 3);
    let comms: Vec<&str> = imported
        .rows
        .thread_comm
        .iter()
        .map(|row| imported.symbols.get(row.comm))
        .collect();
    for comm in ["sh", "dd", "sort", "head", "rm"] {
        assert!(comms.contains(&comm), "{comms:?}");
    }
}

#[test]
fn so_they_are_in_a_log_made_now() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let log = folder.path().join("log.strace");
    let script =
        "for i in 1 2 3; do echo $i > f; cat f > /dev/null & done; wait; cat none 2> /dev/null";
    let made = Command::new("strace")
        .args(["-f", "-C", "-w", "-ttt", "-T", "-yy", "-o"])
        .arg(&log)
        .args(["sh", "-c", script])
        .env("LC_ALL", "C")
        .current_dir(folder.path())
        .output();
    match made {
        Ok(done) if done.status.code().is_some() && log.exists() => drop(check(&log)),
        Ok(done) => skip(
            Need::Tools,
            format!("strace: {}", String::from_utf8_lossy(&done.stderr)),
        ),
        Err(error) => skip(Need::Tools, format!("strace: {error}")),
    }
}

/// The same log as other flags would have written it.
#[test]
fn other_flags_tell_less_and_nothing_else() {
    let log = std::fs::read_to_string(fixture()).expect("a log");
    let folder = tempfile::tempdir().expect("a temporary folder");
    let import = |name: &str, log: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, log).expect("a temporary folder takes it");
        import_in_memory(&[path]).expect("it can be imported")
    };
    let whole = imported_sums(&import("whole", &log));
    // Without -T.
    let untimed: String = log
        .lines()
        .map(|line| match line.rsplit_once(" <") {
            Some((before, length)) if length.trim_end_matches('>').parse::<f64>().is_ok() => {
                format!("{before}\n")
            }
            _ => format!("{line}\n"),
        })
        .collect();
    let without = import("untimed", &untimed);
    let counts = |sums: &Sums| {
        let counted = sums
            .iter()
            .map(|(name, (calls, errors, _))| (name.clone(), *calls, *errors));
        counted.collect::<Vec<_>>()
    };
    assert_eq!(counts(&imported_sums(&without)), counts(&whole));
    let dropped = without
        .anomalies
        .iter()
        .find(|one| one.name == "STRACE_NO_DURATIONS");
    let open = without
        .rows
        .syscall
        .iter()
        .filter(|row| row.dur.is_none() && row.ret.is_some());
    assert_eq!(dropped.map(|one| one.count), Some(open.count() as u64));
    // In brackets, as strace writes to a terminal.
    let bracketed: String = log
        .lines()
        .map(|line| match line.split_once(' ') {
            Some((tid, rest)) if tid.parse::<i32>().is_ok() => format!("[pid {tid:>5}] {rest}\n"),
            _ => format!("{line}\n"),
        })
        .collect();
    assert_eq!(imported_sums(&import("bracketed", &bracketed)), whole);
}

/// Truncated anywhere, and damaged anywhere: the rest is read, and errors are counted.
#[test]
fn damaged_logs_lose_what_is_damaged() {
    let log = std::fs::read(fixture()).expect("a log");
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("damaged.strace");
    let whole = import_in_memory(&[fixture()]).expect("it can be imported");
    for part in 1..8 {
        let cut = log.len() * part / 8;
        std::fs::write(&path, &log[..cut]).expect("a temporary folder takes it");
        let imported = import_in_memory(std::slice::from_ref(&path)).expect("it can be imported");
        assert!(imported.rows.syscall.len() < whole.rows.syscall.len());
        let mut damaged = log.clone();
        for at in (cut / 2..log.len()).step_by(997) {
            damaged[at] ^= 1 << (part % 8);
        }
        std::fs::write(&path, &damaged).expect("a temporary folder takes it");
        let imported = import_in_memory(std::slice::from_ref(&path)).expect("it can be imported");
        assert!(imported.rows.syscall.len() * 2 > whole.rows.syscall.len());
    }
}
