//! Recorders that are killed at any time: the complete blocks that they wrote form a recording, and
//! nothing else does.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use whyslow_model::spool::{BLOCK_BYTES, Block};

use super::can_record;
use crate::common::Place;

/// Some thousand calls ten times a second, so that blocks fill; ends by itself.
const WORK: &str = "i=0; while [ $i -lt 6000 ]; do i=$((i+1))
    dd if=/dev/zero of=/dev/null bs=1 count=3000 2>/dev/null; sleep 0.1; done";

/// A reproducible random sequence.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

/// A child that is killed on drop.
struct Started(Child);

impl Drop for Started {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Complete blocks of a file: the end of the last one, and their number of records.
fn whole_blocks(bytes: &[u8]) -> (usize, u64) {
    let (mut end, mut records) = (0, 0);
    while let Some(head) = bytes[end..].first_chunk::<BLOCK_BYTES>() {
        let block = Block::parse(head).expect("what was written before is whole");
        let next = end + BLOCK_BYTES + block.payload_bytes as usize;
        if next > bytes.len() {
            break;
        }
        records += u64::from(block.records);
        end = next;
    }
    (end, records)
}

/// The output of `import` for a spool, and whether it made a recording.
fn import(place: &Place, spool: &Path, output: &str) -> (bool, String) {
    let done = place
        .whyslow()
        .arg("import")
        .arg(spool)
        .args(["--force", "-o", output])
        .output()
        .expect("it starts");
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(!said.contains("panicked"), "{said}");
    (done.status.success(), said)
}

/// Tables of a recording, except those about the import.
fn tables(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let entries = fs::read_dir(folder).expect("a recording").flatten();
    let mut tables: Vec<_> = entries
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "parquet"))
        .map(|path| {
            let name = path.file_stem().expect("a name").to_string_lossy();
            (name.into_owned(), fs::read(&path).expect("a table"))
        })
        .filter(|(name, _)| !["import_log", "trace_stat"].contains(&name.as_str()))
        .collect();
    tables.sort();
    tables
}

/// A spool with these bytes.
fn spool_of(place: &Place, bytes: &[u8]) -> PathBuf {
    let folder = place.join("cut.spool");
    fs::create_dir_all(&folder).expect("a temporary folder");
    fs::write(folder.join("000001.blocks"), bytes).expect("a temporary folder");
    folder
}

/// Starts a recorder and kills it after a delay, or that long after its first block. Its blocks.
fn killed(place: &Place, number: u64, pid: u32, (pause, waits): (Duration, bool)) -> Vec<u8> {
    let name = format!("{number}.wsl");
    let file = place.join(&format!("{name}.spool/000001.blocks"));
    let mut recorder = Command::new(env!("CARGO_BIN_EXE_whyslow"))
        .args(["-q", "record", "--what", "syscalls", "-o", &name, "-p"])
        .arg(pid.to_string())
        .current_dir(place.path())
        .stderr(Stdio::null())
        .spawn()
        .expect("it starts");
    let begun = Instant::now();
    let is_empty = || fs::metadata(&file).map_or(0, |file| file.len()) == 0;
    while waits && is_empty() && begun.elapsed() < Duration::from_mins(1) {
        sleep(Duration::from_millis(5));
    }
    sleep(pause);
    recorder.kill().expect("it is ours");
    recorder.wait().expect("it is ours");
    fs::read(file).unwrap_or_default()
}

fn check(place: &Place, bytes: &[u8]) -> u64 {
    let (end, records) = whole_blocks(bytes);
    let spool = spool_of(place, bytes);
    let (is_made, said) = import(place, &spool, "cut.wsl");
    if end == 0 {
        assert!(!is_made, "{said}");
        assert!(
            said.contains("error: ") && said.contains("hint: "),
            "{said}"
        );
        return 0;
    }
    assert!(is_made, "{said}");
    let errors = u32::from(end < bytes.len());
    assert!(said.contains(&format!("; {errors} errors")), "{said}");
    let without_separators = said.replace(',', "");
    assert!(
        without_separators.contains(&format!("{records} accepted 0 skipped")),
        "{said}"
    );
    if end < bytes.len() {
        let of_cut = tables(&place.join("cut.wsl"));
        let spool = spool_of(place, &bytes[..end]);
        let (is_made, said) = import(place, &spool, "cut.wsl");
        assert!(is_made && said.contains("; 0 errors"), "{said}");
        let of_whole = tables(&place.join("cut.wsl"));
        for (of_cut, of_whole) in of_cut.iter().zip(&of_whole) {
            assert!(of_cut == of_whole, "{} of {}", of_cut.0, of_whole.0);
        }
        assert_eq!(of_cut.len(), of_whole.len());
    }
    records
}

#[test]
fn whole_blocks_are_all_that_a_killed_recorder_leaves() {
    if !can_record() {
        return;
    }
    let place = Place::new();
    let work = Command::new("/bin/sh").args(["-c", WORK]).spawn();
    let work = Started(work.expect("a shell"));
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let mut recorded = 0;
    for number in 0..20 {
        // Some are killed during start-up, the others while recording.
        let waits = number >= 6;
        let pause = Duration::from_millis(if waits {
            random.below(1_200)
        } else {
            random.below(300)
        });
        let bytes = killed(&place, number, work.0.id(), (pause, waits));
        let records = check(&place, &bytes);
        recorded += u64::from(records > 0);
        // A power failure may leave any prefix of it on disk.
        if records > 0 {
            let cut = random.below(bytes.len() as u64) as usize;
            check(&place, &bytes[..cut]);
        }
    }
    assert!(recorded >= 10, "{recorded}");
}

#[test]
fn a_command_that_was_not_let_go_ends_with_its_recorder() {
    if !can_record() {
        return;
    }
    let place = Place::new();
    // The moment at which it holds its command is unknown: it is killed at several times.
    for pause in [10, 30, 60, 100, 150] {
        let mut recorder = Command::new(env!("CARGO_BIN_EXE_whyslow"))
            .args(["-q", "record", "--force", "--", "sleep", "8641"])
            .current_dir(place.path())
            .stderr(Stdio::null())
            .spawn()
            .expect("it starts");
        sleep(Duration::from_millis(pause));
        let children = children_of(recorder.id());
        recorder.kill().expect("it is ours");
        recorder.wait().expect("it is ours");
        let is_held = |pid: &u32| {
            let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            words.split(|byte| *byte == 0).any(|word| word == b"held")
        };
        let begun = Instant::now();
        while children.iter().any(is_held) {
            assert!(begun.elapsed() < Duration::from_secs(30), "{children:?}");
            sleep(Duration::from_millis(10));
        }
        end(&children);
    }
}

fn children_of(pid: u32) -> Vec<u32> {
    let text = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
    let text = text.unwrap_or_default();
    text.split_whitespace()
        .filter_map(|pid| pid.parse().ok())
        .collect()
}

/// Kills the commands that were resumed just before.
fn end(children: &[u32]) {
    for pid in children {
        let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        if words == b"sleep\x008641\x00" {
            let _ = Command::new("kill").arg(pid.to_string()).status();
        }
    }
}
