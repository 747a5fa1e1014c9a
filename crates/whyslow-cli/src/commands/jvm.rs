//! `record --jvm`: async-profiler runs in a JVM as long as the recording, and its profile becomes part of it.
//!
//! The JVM writes the profile itself, where it sees a folder for that: it may be another user in another
//! container, whom nobody here trusts. What it wrote is copied, and no link of its file system is followed.

use std::ffi::{OsStr, OsString};
use std::fs::{File, OpenOptions};
use std::hash::{BuildHasher as _, RandomState};
use std::io::{self, Read as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use rustix::fd::OwnedFd;
use rustix::fs::{AtFlags, FileType, Mode, OFlags, ResolveFlags, fstat, open, openat2, unlinkat};
use whyslow_base::failure::Failure;
use whyslow_base::talk;
use whyslow_model::text::shown;

const INTERVAL: &str = "10ms";
/// Shorter waits for locks are left out.
const LOCK: &str = "1ms";
/// Seconds until a part of the profile is finished: what a killed JVM loses of names.
const CHUNK: &str = "10";
/// A JVM that answers later is stuck.
const PATIENCE: Duration = Duration::from_secs(30);
/// It is asked to stop what it may still begin; the question stays with it when nobody waits any more.
const PATIENCE_STUCK: Duration = Duration::from_secs(3);
const PROFILE_MAX: u64 = 4 << 30;
/// Where people put it.
const HOMES: &[&str] = &[
    "/opt/async-profiler",
    "/usr/lib/async-profiler",
    "/usr/local/async-profiler",
];

/// What starts and stops the profiler.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Program {
    /// Its own command.
    Asprof(PathBuf),
    /// The library alone, which the JDK's `jcmd` loads.
    Library(PathBuf),
}

impl Program {
    /// What was named, else what is installed.
    fn find(named: &OsStr) -> Result<Self, Failure> {
        if !named.is_empty() {
            let path = PathBuf::from(named);
            if !path.is_file() {
                return Err(Failure::usage(format!("there is no `{}`", text(&path)))
                    .hint("--jvm=PATH names asprof or libasyncProfiler.so"));
            }
            // The JVM has another folder, and a program without one would be looked for.
            let path = std::path::absolute(&path).map_err(|error| {
                Failure::new(format!("failed to find `{}`", text(&path))).caused_by(&error)
            })?;
            let is_library = path.extension() == Some(OsStr::new("so"));
            return Ok(if is_library {
                Self::Library(path)
            } else {
                Self::Asprof(path)
            });
        }
        let in_path = std::env::var_os("PATH").unwrap_or_default();
        let home = std::env::var_os("ASPROF_HOME").map(PathBuf::from);
        let homes = home.into_iter().chain(HOMES.iter().map(PathBuf::from));
        let homes: Vec<PathBuf> = homes.collect();
        let commands = std::env::split_paths(&in_path)
            .chain(homes.iter().map(|home| home.join("bin")))
            .map(|folder| folder.join("asprof"));
        let libraries = homes
            .iter()
            .map(|home| home.join("lib/libasyncProfiler.so"));
        commands
            .map(Self::Asprof)
            .chain(libraries.map(Self::Library))
            .find(|program| program.path().is_file())
            .ok_or_else(|| {
                Failure::new("async-profiler is not installed").hint(
                    "get it from github.com/async-profiler/async-profiler; --jvm=PATH tells where asprof or libasyncProfiler.so is",
                )
            })
    }

    fn path(&self) -> &Path {
        match self {
            Self::Asprof(path) | Self::Library(path) => path,
        }
    }

    fn start(&self, pid: i32, file: &str) -> Command {
        match self {
            Self::Asprof(path) => {
                let mut command = Command::new(path);
                command.args(["start", "-e", "wall", "-i", INTERVAL, "--lock", LOCK]);
                command.args(["--chunktime", CHUNK, "-o", "jfr", "-f", file]);
                command.arg(pid.to_string());
                command
            }
            Self::Library(path) => {
                let asked = format!(
                    "start,event=wall,interval={INTERVAL},lock={LOCK},chunktime={CHUNK},jfr,file={file}"
                );
                load(path, pid, &asked)
            }
        }
    }

    fn stop(&self, pid: i32) -> Command {
        match self {
            Self::Asprof(path) => {
                let mut command = Command::new(path);
                command.arg("stop").arg(pid.to_string());
                command
            }
            Self::Library(path) => load(path, pid, "stop"),
        }
    }

    /// Whether it did what it was asked to. `jcmd` ends well as soon as the library is loaded; what came
    /// of that it prints.
    fn has_done(&self, done: &Output) -> bool {
        const GOOD: &[u8] = b"return code: 0";
        let mut lines = done.stdout.split(|byte| *byte == b'\n');
        done.status.success()
            && match self {
                Self::Asprof(_) => true,
                Self::Library(_) => lines.any(|line| line.trim_ascii() == GOOD),
            }
    }
}

/// `jcmd` splits at `=` what is not quoted.
fn load(library: &Path, pid: i32, asked: &str) -> Command {
    let mut command = Command::new("jcmd");
    let mut quoted = OsString::from("\"");
    quoted.push(library);
    quoted.push("\"");
    command.arg(pid.to_string()).arg("JVMTI.agent_load");
    command.arg(quoted).arg(format!("\"{asked}\""));
    command
}

/// A profiler that runs in a JVM.
pub(super) struct Profiler {
    program: Program,
    pid: i32,
    /// Name in the folder for temporary files, as the JVM sees it.
    name: String,
    /// That folder, held so that it can be read when the JVM has ended.
    folder: OwnedFd,
    is_running: bool,
}

impl Profiler {
    pub(super) fn start(named: &OsStr, pid: i32) -> Result<Self, Failure> {
        let program = Program::find(named)?;
        // Attaching sends SIGQUIT, which ends whatever is none.
        if !is_jvm(pid) {
            return Err(Failure::usage(format!("process {pid} is no JVM"))
                .hint("--jvm profiles those that have libjvm.so in memory: `pgrep -a java`"));
        }
        let root = PathBuf::from(format!("/proc/{pid}/root"));
        let failed = |error: io::Error| {
            Failure::new(format!(
                "failed to open the temporary folder of process {pid}"
            ))
            .caused_by(&error)
        };
        let path_only = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = open(&root, path_only, Mode::empty()).map_err(|error| failed(error.into()))?;
        let safe = ResolveFlags::IN_ROOT | ResolveFlags::NO_SYMLINKS;
        let folder = openat2(&root, "tmp", path_only, Mode::empty(), safe)
            .map_err(|error| failed(error.into()))?;
        let nonce = RandomState::new().hash_one(pid);
        let name = format!("whyslow-{pid}-{nonce:016x}.jfr");
        let mut command = program.start(pid, &format!("/tmp/{name}"));
        let done = run(&mut command, PATIENCE).map_err(|error| {
            if error.kind() == io::ErrorKind::TimedOut {
                // It may begin when it answers again, and nobody would end it then.
                let _ = run(&mut program.stop(pid), PATIENCE_STUCK);
                let _ = unlinkat(&folder, name.as_str(), AtFlags::empty());
            }
            Failure::new(format!("failed to run `{}`", text(program.path()))).caused_by(&error)
        })?;
        if !program.has_done(&done) {
            return Err(Failure::new(format!(
                "async-profiler does not start in process {pid}: {}",
                said(&done)
            ))
            .hint("does async-profiler run there already, and may its JVM read the library?"));
        }
        Ok(Self {
            program,
            pid,
            name,
            folder,
            is_running: true,
        })
    }

    /// Ends the profile and copies it to a file.
    pub(super) fn finish(mut self, to: &Path) -> Result<(), Failure> {
        self.stop();
        let copied = self.copy(to);
        // Fails where it was never written.
        let _ = unlinkat(&self.folder, self.name.as_str(), AtFlags::empty());
        copied.map_err(|error| {
            Failure::new(format!(
                "failed to read the profile of process {}",
                self.pid
            ))
            .caused_by(&error)
        })
    }

    fn stop(&mut self) {
        self.is_running = false;
        match run(&mut self.program.stop(self.pid), PATIENCE) {
            Ok(done) if self.program.has_done(&done) => {}
            Ok(done) => talk::line(&format!(
                "note: async-profiler in process {} was not stopped: {}",
                self.pid,
                said(&done)
            )),
            Err(error) => talk::line(&format!(
                "note: async-profiler in process {} was not stopped: {error}",
                self.pid
            )),
        }
    }

    fn copy(&self, to: &Path) -> io::Result<()> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let safe = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
        let from = openat2(&self.folder, self.name.as_str(), flags, Mode::empty(), safe)?;
        if FileType::from_raw_mode(fstat(&from)?.st_mode) != FileType::RegularFile {
            return Err(io::Error::other("it is no regular file"));
        }
        let mut from = File::from(from).take(PROFILE_MAX);
        let mut to = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(to)?;
        io::copy(&mut from, &mut to).map(drop)
    }
}

impl Drop for Profiler {
    fn drop(&mut self) {
        if self.is_running {
            self.stop();
            let _ = unlinkat(&self.folder, self.name.as_str(), AtFlags::empty());
        }
    }
}

/// Runs it, for a while; Ctrl-C is not for it.
fn run(command: &mut Command, patience: Duration) -> io::Result<Output> {
    let mut child = command
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let give_up = Instant::now() + patience;
    while child.try_wait()?.is_none() {
        if Instant::now() >= give_up {
            let _ = child.kill();
            let _ = child.wait();
            let stuck = "the JVM does not answer";
            return Err(io::Error::new(io::ErrorKind::TimedOut, stuck));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    child.wait_with_output()
}

/// Whether the HotSpot virtual machine is mapped there.
pub(super) fn is_jvm(pid: i32) -> bool {
    has_jvm(&std::fs::read(format!("/proc/{pid}/maps")).unwrap_or_default())
}

/// Its file may be gone, as when its package was upgraded.
fn has_jvm(maps: &[u8]) -> bool {
    let mut lines = maps.split(|byte| *byte == b'\n');
    lines.any(|line| {
        let path = line.strip_suffix(b" (deleted)").unwrap_or(line);
        path.ends_with(b"/libjvm.so")
    })
}

/// What a program said, in one line.
fn said(done: &Output) -> String {
    let all = [&done.stderr[..], &done.stdout[..]].concat();
    let words = String::from_utf8_lossy(&all);
    let words: Vec<&str> = words.split_whitespace().take(60).collect();
    if words.is_empty() {
        return done.status.to_string();
    }
    shown(&words.join(" "), false).into_owned()
}

fn text(path: &Path) -> String {
    shown(&String::from_utf8_lossy(path.as_os_str().as_bytes()), false).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(command: &Command) -> String {
        let words = std::iter::once(command.get_program()).chain(command.get_args());
        let words: Vec<_> = words.map(OsStr::to_string_lossy).collect();
        words.join(" ")
    }

    #[test]
    fn commands_are_those_that_the_profiler_knows() {
        let asprof = Program::Asprof("/opt/bin/asprof".into());
        assert_eq!(
            words(&asprof.start(7, "/tmp/x.jfr")),
            "/opt/bin/asprof start -e wall -i 10ms --lock 1ms --chunktime 10 -o jfr -f /tmp/x.jfr 7"
        );
        let library = Program::Library("/opt/lib.so".into());
        assert_eq!(
            words(&library.stop(7)),
            "jcmd 7 JVMTI.agent_load \"/opt/lib.so\" \"stop\""
        );
    }

    #[test]
    fn a_library_that_is_loaded_need_not_have_done_anything() {
        let printed = |text: &str| Output {
            status: std::os::unix::process::ExitStatusExt::from_raw(0),
            stdout: text.as_bytes().to_vec(),
            stderr: Vec::new(),
        };
        let library = Program::Library("/opt/lib.so".into());
        assert!(library.has_done(&printed("7:\nreturn code: 0\n")));
        for text in [
            "7:\nreturn code: 200\n",
            "7:\n/opt/lib.so was not loaded.\n",
            "",
        ] {
            assert!(!library.has_done(&printed(text)), "{text}");
        }
        assert!(Program::Asprof("/opt/asprof".into()).has_done(&printed("")));
    }

    #[test]
    fn paths_are_those_that_a_jvm_finds() {
        let folder = std::env::current_dir().expect("there is one");
        let found = Program::find(OsStr::new("Cargo.toml")).expect("it is there");
        assert_eq!(found, Program::Asprof(folder.join("Cargo.toml")));
    }

    #[test]
    fn a_jvm_whose_file_was_replaced_is_one() {
        let there = b"7f10-7f20 r-xp 0 08:01 42  /usr/lib/jvm/lib/server/libjvm.so";
        assert!(has_jvm(there));
        assert!(has_jvm(
            &[&there[..], b" (deleted)\n7f20-7f30 r-xp 0 08:01 43 /x\n"].concat()
        ));
        assert!(!has_jvm(b"7f10-7f20 r-xp 0 08:01 42  /a/libjvm.so.d/x\n"));
    }

    #[test]
    fn who_does_not_answer_is_not_waited_for() {
        let mut command = Command::new("sleep");
        let run = run(command.arg("60"), Duration::from_millis(50));
        assert_eq!(
            run.map_err(|error| error.kind()).err(),
            Some(io::ErrorKind::TimedOut)
        );
    }

    #[test]
    fn what_is_not_there_is_an_error() {
        assert!(Program::find(OsStr::new("/no/such/asprof")).is_err());
        // This program, which a signal to a JVM would end.
        let error = Profiler::start(OsStr::new("/bin/sh"), std::process::id() as i32);
        assert!(error.is_err_and(|error| error.message().contains("no JVM")));
    }
}
