//! Restrictions of a recorder: no BTF, refused programs, no space for the spool; and unusual kinds
//! of processes.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Output};

use serde_json::Value;
use whyslow_testkit::{Need, skip};

use super::{can_record, record, rows};
use crate::common::Place;

const WHYSLOW: &str = env!("CARGO_BIN_EXE_whyslow");

/// Runs a shell script in a mount namespace; `None` if that is not permitted.
pub(super) fn with_mounts(place: &Place, script: &str) -> Option<Output> {
    let can = Command::new("unshare").args(["--mount", "true"]).status();
    if !can.is_ok_and(|status| status.success()) {
        skip(Need::Isolation, "mounts of our own are not allowed");
        return None;
    }
    let output = Command::new("unshare")
        .args(["--mount", "/bin/sh", "-e", "-c", script])
        .env("WHYSLOW", WHYSLOW)
        .env("LC_ALL", "C.UTF-8")
        .current_dir(place.path())
        .output();
    Some(output.expect("it started before"))
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn assert_explained(output: &Output, message: &str) {
    let said = said(output);
    assert!(!output.status.success(), "{said}");
    assert!(said.contains(&format!("error: {message}")), "{said}");
    assert!(
        said.contains("hint: ") && !said.contains("panicked"),
        "{said}"
    );
}

#[test]
fn a_kernel_that_hides_its_types_is_named() {
    if !can_record() {
        return;
    }
    let place = Place::new();
    let hide = "mount -t tmpfs none /sys/kernel/btf; exec \"$WHYSLOW\"";
    let script = format!("{hide} record -o rec.wsl -- touch ran");
    let Some(output) = with_mounts(&place, &script) else {
        return;
    };
    assert_explained(&output, "cannot load BPF programs: the kernel has no BTF");
    for left in ["rec.wsl", "rec.wsl.spool", "ran"] {
        assert!(!place.join(left).exists(), "{left}");
    }
}

#[test]
fn a_container_with_ids_of_its_own_is_told_what_to_do() {
    if !can_record() {
        return;
    }
    let place = Place::new();
    let output = Command::new("unshare")
        .args(["--pid", "--fork", "--mount-proc", WHYSLOW, "record"])
        .args(["-o", "rec.wsl", "--", "touch", "ran"])
        .current_dir(place.path())
        .output();
    let Some(output) = output
        .ok()
        .filter(|output| !said(output).contains("unshare"))
    else {
        return skip(
            Need::Isolation,
            "processes of our own namespace are not allowed",
        );
    };
    assert_explained(&output, "cannot record inside a PID namespace");
    for left in ["rec.wsl", "rec.wsl.spool", "ran"] {
        assert!(!place.join(left).exists(), "{left}");
    }
}

#[test]
fn a_full_disk_ends_the_recording_and_what_it_has_is_kept() {
    if !can_record() {
        return;
    }
    let place = Place::new();
    fs::create_dir(place.join("small")).expect("a temporary folder");
    let script = "mount -t tmpfs -o size=1m none small; cd small
        \"$WHYSLOW\" record --for 60s -o rec.wsl -- \
            dd if=/dev/zero of=/dev/null bs=1 count=3000000 || echo $? >../status
        exec \"$WHYSLOW\" import rec.wsl.spool -o ../rec.wsl";
    let Some(output) = with_mounts(&place, script) else {
        return;
    };
    let said = said(&output);
    assert!(output.status.success(), "{said}");
    assert_eq!(
        fs::read(place.join("status")).ok().as_deref(),
        Some(&b"1\n"[..])
    );
    assert!(said.contains("error: cannot write the spool"), "{said}");
    assert!(said.contains("No space left"), "{said}");
    assert!(
        said.contains("hint: import what was written so far: whyslow import rec.wsl.spool -o"),
        "{said}"
    );
    assert!(
        said.contains("; 0 errors") || said.contains("error: 1 × spool_block_damaged"),
        "{said}"
    );
    assert!(!rows(&place, &["syscalls", "top", "rec.wsl", "--comm", "dd"]).is_empty());
}

#[test]
fn a_user_without_privileges_is_told_what_to_do() {
    if !can_record() {
        return;
    }
    let place = Place::new();
    open_to_all(&place);
    let output = Command::new("setpriv")
        .args(["--reuid", "65534", "--regid", "65534", "--clear-groups"])
        .args(["./whyslow", "record", "-o", "rec.wsl", "--", "touch", "ran"])
        .current_dir(place.path())
        .output();
    let Ok(output) = output else {
        return skip(Need::Isolation, "setpriv is not installed");
    };
    assert_explained(&output, "cannot load BPF programs: permission denied");
    for left in ["rec.wsl", "rec.wsl.spool", "ran"] {
        assert!(!place.join(left).exists(), "{left}");
    }
}

/// A world-accessible directory with a copy of the program, which may be in an inaccessible one.
pub(super) fn open_to_all(place: &Place) {
    let all = fs::Permissions::from_mode(0o777);
    fs::set_permissions(place.path(), all.clone()).expect("it is ours");
    let program = place.join("whyslow");
    fs::copy(WHYSLOW, &program).expect("a disk with room");
    fs::set_permissions(program, all).expect("it is ours");
}

#[test]
fn what_is_refused_is_told_and_the_rest_recorded() {
    if !can_record() {
        return;
    }
    let place = Place::new();
    let output = Command::new("strace")
        .args([
            "-f",
            "-qq",
            "-o",
            "/dev/null",
            "-e",
            "trace=perf_event_open",
        ])
        .args(["-e", "inject=perf_event_open:error=EACCES", WHYSLOW])
        .args(["record", "-o", "rec.wsl", "--", "/bin/sh", "-c"])
        .arg("i=0; while [ $i -lt 37 ]; do cd /; i=$((i+1)); done")
        .current_dir(place.path())
        .output();
    let Some(output) = output.ok().filter(|output| output.status.code().is_some()) else {
        return skip(Need::Tools, "strace is not installed");
    };
    let said = said(&output);
    if said.contains("PTRACE") {
        return skip(Need::Tools, "strace may not trace");
    }
    assert!(output.status.success(), "{said}");
    let note = "note: not recorded: long calls before they end (on_tick: permission denied)";
    assert!(said.contains(note), "{said}");
    let calls = rows(&place, &["syscalls", "log", "rec.wsl", "--name", "chdir"]);
    assert_eq!(calls.len(), 37);
}

#[test]
fn processes_of_a_container_have_the_ids_of_the_host() {
    if !can_record() {
        return;
    }
    let place = Place::new();
    place.write(
        "inside",
        "read pid rest </proc/self/stat; echo $pid $$ >ids
        i=0; while [ $i -lt 19 ]; do cd /; i=$((i+1)); done",
    );
    record(&place, &[], "unshare --pid --fork /bin/sh ./inside; true");
    let Ok(ids) = fs::read_to_string(place.join("ids")) else {
        return skip(
            Need::Isolation,
            "processes of our own namespace are not allowed",
        );
    };
    let (host, inside) = ids.trim().split_once(' ').expect("two numbers");
    assert_eq!(inside, "1");
    let calls = rows(&place, &["syscalls", "log", "rec.wsl", "--name", "chdir"]);
    let pid: i64 = host.parse().expect("a number");
    assert_eq!(calls.len(), 19);
    assert!(calls.iter().all(|call| call["pid"] == pid));
}

/// A program without libraries that makes a given number of writes.
#[cfg(target_arch = "x86_64")]
fn static_program(is_wide: bool, count: u8) -> Vec<u8> {
    let base: u32 = 0x40_0000;
    let address = base.to_le_bytes();
    let (mut code, rest): (Vec<u8>, &[u8]) = if is_wide {
        // mov r12d, count; 1: mov eax, 1 (write); mov edi, 1; mov esi, base
        let head = [
            0x41, 0xbc, count, 0, 0, 0, 0xb8, 1, 0, 0, 0, 0xbf, 1, 0, 0, 0, 0xbe,
        ];
        // mov edx, 1; syscall; dec r12d; jnz 1b; mov eax, 60 (exit); xor edi, edi; syscall
        let rest = &[
            0xba, 1, 0, 0, 0, 0x0f, 0x05, 0x41, 0xff, 0xcc, 0x75, 0xe5, 0xb8, 60, 0, 0, 0, 0x31,
            0xff, 0x0f, 0x05,
        ];
        (head.to_vec(), rest)
    } else {
        // mov esi, count; 1: mov eax, 4 (write); mov ebx, 1; mov ecx, base
        let head = [
            0xbe, count, 0, 0, 0, 0xb8, 4, 0, 0, 0, 0xbb, 1, 0, 0, 0, 0xb9,
        ];
        // mov edx, 1; int 0x80; dec esi; jnz 1b; mov eax, 1 (exit); xor ebx, ebx; int 0x80
        let rest = &[
            0xba, 1, 0, 0, 0, 0xcd, 0x80, 0x4e, 0x75, 0xe7, 0xb8, 1, 0, 0, 0, 0x31, 0xdb, 0xcd,
            0x80,
        ];
        (head.to_vec(), rest)
    };
    code.extend(address);
    code.extend_from_slice(rest);
    elf(is_wide, base, &code)
}

/// Wraps code in an executable that is loaded as is.
#[cfg(target_arch = "x86_64")]
fn elf(is_wide: bool, base: u32, code: &[u8]) -> Vec<u8> {
    let (head, part): (u16, u16) = if is_wide { (64, 56) } else { (52, 32) };
    let size = usize::from(head + part) + code.len();
    let mut bytes = vec![0x7f, b'E', b'L', b'F', if is_wide { 2 } else { 1 }, 1, 1];
    bytes.resize(16, 0);
    let machine: u16 = if is_wide { 62 } else { 3 };
    for half in [2, machine, 1, 0] {
        bytes.extend(half.to_le_bytes());
    }
    let word = |bytes: &mut Vec<u8>, value: u32| {
        bytes.extend(value.to_le_bytes());
        bytes.resize(bytes.len() + if is_wide { 4 } else { 0 }, 0);
    };
    // Entry point, offset of the program headers, no section headers.
    for value in [base + u32::from(head + part), head.into(), 0] {
        word(&mut bytes, value);
    }
    bytes.extend([0; 4]);
    for half in [head, part, 1, 0, 0, 0] {
        bytes.extend(half.to_le_bytes());
    }
    // One segment, readable and executable: its flags are the second or the last but one field.
    bytes.extend(1u32.to_le_bytes());
    if is_wide {
        bytes.extend(5u32.to_le_bytes());
    }
    for value in [0, base, base, size as u32, size as u32] {
        word(&mut bytes, value);
    }
    if !is_wide {
        bytes.extend(5u32.to_le_bytes());
    }
    word(&mut bytes, 4096);
    bytes.extend_from_slice(code);
    bytes
}

#[cfg(target_arch = "x86_64")]
#[test]
fn programs_without_libraries_and_of_32_bits_make_calls_like_others() {
    if !can_record() {
        return;
    }
    let place = Place::new();
    let programs = [("static-wide-43", true, 43), ("static-few-41", false, 41)];
    let add = |name: &str, is_wide, count| {
        let path = place.write(name, static_program(is_wide, count));
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("it is ours");
    };
    for (name, is_wide, count) in programs {
        add(name, is_wide, count);
        record_alone(&place, name);
        if !is_wide && !ran(&place) {
            return skip(Need::Machine, "this kernel runs no programs of 32 bits");
        }
        assert!(ran(&place), "{name}");
        let calls = rows(
            &place,
            &["syscalls", "stats", "rec.wsl", "--by", "comm,name"],
        );
        let own: Vec<_> = calls.iter().filter(|row| row["comm"] == name).collect();
        let number = |call: &str| {
            let row = own.iter().find(|row| row["name"] == call);
            row.and_then(|row| row["count"].as_i64())
        };
        assert_eq!(number("write"), Some(count.into()), "{own:?}");
        assert_eq!(number("exit"), Some(1), "{own:?}");
        let files = rows(&place, &["files", "top", "rec.wsl"]);
        let is_written = |row: &&Value| {
            let file = row["file"].as_str().unwrap_or_default();
            file.ends_with("/out")
        };
        let written = files.iter().filter(is_written);
        let bytes = written.filter_map(|row| row["write_bytes"].as_i64());
        assert_eq!(bytes.sum::<i64>(), i64::from(count), "{name}");
    }
}

#[cfg(target_arch = "x86_64")]
fn record_alone(place: &Place, name: &str) {
    record(
        place,
        &["--force"],
        &format!("./{name} >out; echo $? >status"),
    );
}

#[cfg(target_arch = "x86_64")]
fn ran(place: &Place) -> bool {
    fs::read_to_string(place.join("status")).is_ok_and(|status| status.trim() == "0")
}
