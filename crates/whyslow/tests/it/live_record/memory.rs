//! Memory used for recording, as counted by the kernel: within the reported limit, and not charged
//! to the recorded processes.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Arc, Barrier};
use std::thread::sleep;
use std::time::{Duration, Instant};

use whyslow_testkit::{Need, skip};

use super::can_record;
use crate::common::Place;

const WHYSLOW: &str = env!("CARGO_BIN_EXE_whyslow");
const DEADLINE: Duration = Duration::from_mins(3);
/// The buffers are full after a fraction of it.
const FLOOD: Duration = Duration::from_secs(5);
const THREADS: usize = 2003;
const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

/// A child that is killed on drop.
pub(super) struct Running(pub(super) Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Endless system calls, more than a recorder can take.
pub(super) fn flood() -> Running {
    let mut dd = Command::new("dd");
    dd.args(["if=/dev/zero", "of=/dev/null", "bs=1"]);
    Running(dd.stderr(Stdio::null()).spawn().expect("it starts"))
}

/// Bytes of pages and of kernel maps, whose pages count once though they are mapped twice.
pub(super) fn taken(pid: u32) -> u64 {
    let read = |path: &Path| fs::read_to_string(path).unwrap_or_default();
    let process = PathBuf::from(format!("/proc/{pid}"));
    let (mut kib, mut is_map) = (0, false);
    for line in read(&process.join("smaps")).lines() {
        if let Some(rss) = line.strip_prefix("Rss:") {
            let rss = rss.trim().trim_end_matches(" kB").parse::<u64>();
            kib += if is_map { 0 } else { rss.expect("a number") };
        } else if line
            .split(' ')
            .next()
            .is_some_and(|range| range.contains('-'))
        {
            is_map = line.contains("bpf-map");
        }
    }
    let number = |about: &str, name: &str| -> Option<u64> {
        let text = about.lines().find_map(|line| line.strip_prefix(name))?;
        text.trim().parse().ok()
    };
    let descriptors = fs::read_dir(process.join("fdinfo")).into_iter().flatten();
    let abouts = descriptors.flatten().map(|entry| read(&entry.path()));
    let maps =
        abouts.filter_map(|about| Some((number(&about, "map_id:")?, number(&about, "memlock:")?)));
    let maps: std::collections::BTreeMap<u64, u64> = maps.collect();
    kib * KIB + maps.values().sum::<u64>()
}

fn ask_to_end(child: &Child) {
    let pid = child.id().to_string();
    let sent = Command::new("kill").args(["-s", "INT", &pid]).status();
    assert!(sent.expect("it starts").success());
}

fn wait_for(what: &str, mut is_there: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_there() {
        assert!(begun.elapsed() < DEADLINE, "{what} did not come");
        sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_flood_takes_no_more_memory_than_allowed_and_drops_are_counted() {
    if !can_record() {
        return;
    }
    let alone = super::floods_alone();
    let place = Place::new();
    let said = place.join("said.txt");
    let mut recorder = Command::new(WHYSLOW);
    recorder
        .args([
            "record",
            "-o",
            "rec.wsl",
            "--no-import",
            "--max-memory",
            "80MiB",
        ])
        .current_dir(place.path())
        .stderr(File::create(&said).expect("a disk"));
    let mut recorder = Running(recorder.spawn().expect("it starts"));
    let heard = || fs::read_to_string(&said).unwrap_or_default();
    wait_for("the recorder", || {
        heard().contains("recording started; press Ctrl-C")
    });
    let floods: Vec<Running> = (0..2).map(|_| flood()).collect();
    let begun = Instant::now();
    let mut most = 0;
    while begun.elapsed() < FLOOD {
        most = most.max(taken(recorder.0.id()));
        sleep(Duration::from_millis(50));
    }
    ask_to_end(&recorder.0);
    let status = recorder.0.wait().expect("it is ours");
    drop(floods);
    // The import below takes longer than the flood.
    drop(alone);
    let said = heard();
    assert!(status.success(), "{said}");
    assert!(
        (10 * MIB..=80 * MIB).contains(&most),
        "{} KiB; {said}",
        most / KIB
    );
    let reported = said.split_once("% of a CPU, ").map(|(_, rest)| rest);
    let reported = reported.and_then(|rest| rest.split_once(" MiB)")?.0.parse::<f64>().ok());
    let is_near = |reported: f64| (reported - most as f64 / MIB as f64).abs() < 8.0;
    assert!(reported.is_some_and(is_near), "{} KiB; {said}", most / KIB);
    assert!(said.contains(" records were lost"), "{said}");
    assert!(
        said.contains("whyslow import rec.wsl.spool -o rec.wsl"),
        "{said}"
    );
    // An import of the spool reports the losses, too.
    let imported = place
        .whyslow()
        .args(["import", "rec.wsl.spool", "-o", "rec.wsl"])
        .output();
    let imported = imported.expect("it starts").stderr;
    let imported = String::from_utf8_lossy(&imported);
    assert!(imported.contains("events were lost in"), "{imported}");
}

#[test]
fn too_little_memory_is_refused_with_the_least_that_will_do() {
    let place = Place::new();
    let refused = |options: &[&str]| {
        let done = place.whyslow().arg("record").args(options).output();
        let done = done.expect("it starts");
        assert_eq!(done.status.code(), Some(2));
        String::from_utf8_lossy(&done.stderr).into_owned()
    };
    let said = refused(&["--max-memory", "20MiB"]);
    assert!(said.contains("--max-memory to at least 65MiB"), "{said}");
    let said = refused(&[
        "--max-memory",
        "70MiB",
        "--ring",
        "10s",
        "--ring-memory",
        "8MiB",
    ]);
    assert!(said.contains("--max-memory to at least 81MiB"), "{said}");
}

/// A cgroup of this version, or why it cannot be created.
struct Group {
    folder: PathBuf,
    is_old: bool,
}

impl Group {
    fn make(name: &str) -> Result<Self, String> {
        let old = Path::new("/sys/fs/cgroup/memory");
        let new = Path::new("/sys/fs/cgroup");
        let is_old = old.join("memory.usage_in_bytes").exists();
        let control = fs::read_to_string(new.join("cgroup.subtree_control")).unwrap_or_default();
        if !is_old && !control.split_whitespace().any(|name| name == "memory") {
            return Err("no hierarchy of control groups here counts memory".into());
        }
        let parent = if is_old { old } else { new };
        let folder = parent.join(format!("whyslow-{name}-{}", std::process::id()));
        fs::create_dir(&folder)
            .map_err(|error| format!("no control group can be made: {error}"))?;
        Ok(Self { folder, is_old })
    }

    /// A file, by its name in versions 1 and 2.
    fn file(&self, old: &str, new: &str) -> PathBuf {
        self.folder.join(if self.is_old { old } else { new })
    }

    fn text(&self, old: &str, new: &str) -> String {
        fs::read_to_string(self.file(old, new)).expect("the group has it")
    }

    fn usage(&self) -> u64 {
        let text = self.text("memory.usage_in_bytes", "memory.current");
        text.trim().parse().expect("a number")
    }

    fn limit(&self, bytes: u64) {
        let file = self.file("memory.limit_in_bytes", "memory.max");
        fs::write(file, bytes.to_string()).expect("it may be set");
    }

    /// How often the limit was reached, and how often the OOM killer ran.
    fn hits(&self) -> (u64, u64) {
        let number = |text: &str, name: &str| -> u64 {
            let found = text.lines().find_map(|line| line.strip_prefix(name));
            found.map_or(0, |text| text.trim().parse().expect("a number"))
        };
        let events = self.text("memory.oom_control", "memory.events");
        let met = if self.is_old {
            self.text("memory.failcnt", "")
                .trim()
                .parse()
                .expect("a number")
        } else {
            number(&events, "max ")
        };
        (met, number(&events, "oom_kill "))
    }

    /// The command, started in the cgroup.
    fn command(&self, program: &str) -> Command {
        let mut command = Command::new("/bin/sh");
        command
            .args(["-c", "echo $$ >\"$0\" && exec \"$@\""])
            .arg(self.folder.join("cgroup.procs"))
            .arg(program);
        command
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let begun = Instant::now();
        // Its processes take a moment to exit.
        while fs::remove_dir(&self.folder).is_err() && begun.elapsed() < Duration::from_secs(10) {
            sleep(Duration::from_millis(50));
        }
    }
}

/// Not a test: run in a separate process by the test below. Each line that it reads starts a round
/// of calls by all of its threads; it writes a line when the round is over.
#[test]
#[ignore = "starts thousands of threads"]
#[allow(clippy::print_stdout, clippy::disallowed_methods)] // it is the whole process
fn a_target_of_many_threads() {
    let turn = Arc::new(Barrier::new(THREADS + 1));
    for _ in 0..THREADS {
        let turn = Arc::clone(&turn);
        let thread = std::thread::Builder::new()
            .stack_size(32 << 10)
            .spawn(move || {
                loop {
                    turn.wait();
                    for _ in 0..5 {
                        let _ = fs::metadata("/nonexistent-7919");
                        sleep(Duration::from_millis(2));
                    }
                    turn.wait();
                }
            });
        if thread.is_err() {
            // The others would wait forever otherwise.
            std::process::exit(75);
        }
    }
    println!("ready");
    for line in std::io::stdin().lines() {
        line.expect("a line");
        turn.wait();
        turn.wait();
        println!("done");
    }
    std::process::exit(0);
}

struct Target {
    child: Running,
    words: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Target {
    fn start(group: &Group) -> Self {
        let program = std::env::current_exe().expect("this test");
        let mut child = group
            .command(program.to_str().expect("UTF-8"))
            .args(["--ignored", "--exact", "--nocapture", "-q"])
            .arg("live_record::memory::a_target_of_many_threads")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("it starts");
        let words = child.stdin.take().expect("it is piped");
        let answers = BufReader::new(child.stdout.take().expect("it is piped"));
        Self {
            child: Running(child),
            words,
            answers,
        }
    }

    /// Whether it prints that.
    fn prints(&mut self, word: &str) -> bool {
        let mut line = String::new();
        while self
            .answers
            .read_line(&mut line)
            .is_ok_and(|bytes| bytes > 0)
        {
            if line.trim() == word {
                return true;
            }
            line.clear();
        }
        false
    }

    /// A round of its calls.
    fn work(&mut self) {
        writeln!(self.words, "go").expect("it listens");
        assert!(self.prints("done"), "it has ended");
    }
}

/// Per-thread data in the kernel is charged to the recorder, as are the rings.
#[test]
fn nothing_counts_for_the_control_group_that_is_recorded() {
    if !can_record() {
        return;
    }
    let (target_group, own_group) = match (Group::make("target"), Group::make("recorder")) {
        (Ok(target), Ok(own)) => (target, own),
        (Err(why), _) | (_, Err(why)) => return skip(Need::Isolation, &why),
    };
    let mut target = Target::start(&target_group);
    if !target.prints("ready") {
        return skip(
            Need::Machine,
            "this machine does not permit that many threads",
        );
    }
    for _ in 0..3 {
        target.work();
    }
    let before = target_group.usage();
    target_group.limit(before + MIB);
    let hits = target_group.hits();
    let place = Place::new();
    let own_before = own_group.usage();
    let said = place.join("said.txt");
    let recorder = own_group
        .command(WHYSLOW)
        .args(["record", "-o", "rec.wsl", "--no-import", "--buffer", "8MiB"])
        .current_dir(place.path())
        .stderr(File::create(&said).expect("a disk"))
        .spawn();
    let mut recorder = Running(recorder.expect("it starts"));
    let heard = || fs::read_to_string(&said).unwrap_or_default();
    wait_for("the recorder", || {
        heard().contains("recording started; press Ctrl-C")
    });
    let own_begin = own_group.usage();
    // The buffer is charged to the recorder.
    assert!(
        own_begin >= own_before + 8 * MIB,
        "{own_before} {own_begin}"
    );
    for _ in 0..3 {
        target.work();
    }
    let recorded = target_group.usage();
    ask_to_end(&recorder.0);
    let status = recorder.0.wait().expect("it is ours");
    assert!(status.success(), "{}", heard());
    target.work();
    assert!(target.child.0.try_wait().expect("it is ours").is_none());
    assert_eq!(target_group.hits(), hits);
    // CPUs reserve some pages in advance, usually 256 KiB each; per-thread data of this many
    // threads would be more.
    let cpus = std::thread::available_parallelism().map_or(1, usize::from) as u64;
    let slack = (256 * KIB * cpus).min(768 * KIB);
    assert!(recorded <= before + slack, "{before} {recorded}");
}
