//! `record --jvm`: runs async-profiler in a JVM during the recording and imports its profile.
//!
//! The JVM writes the profile into a directory in its own mount namespace. It may run as another
//! user in another container and is not trusted: the profile is copied, and no symlinks of its file
//! system are followed.

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
/// Shorter lock waits are not recorded.
const LOCK: &str = "1ms";
/// Chunk length of the profile in seconds: a killed JVM loses the names of its last chunk.
const CHUNK: &str = "10";
/// A JVM that does not respond within this time is considered stuck.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Timeout of the stop request to a stuck JVM. The request remains queued in the JVM after that.
const TIMEOUT_STUCK: Duration = Duration::from_secs(3);
const PROFILE_MAX: u64 = 4 << 30;
/// Usual installation directories.
const HOMES: &[&str] = &[
    "/opt/async-profiler",
    "/usr/lib/async-profiler",
    "/usr/local/async-profiler",
];

/// The program that starts and stops the profiler.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Program {
    /// Its own command.
    Asprof(PathBuf),
    /// The library alone, which the JDK's `jcmd` loads.
    Library(PathBuf),
}

impl Program {
    /// The given program, else the installed one.
    fn find(named: &OsStr) -> Result<Self, Failure> {
        if !named.is_empty() {
            let path = PathBuf::from(named);
            if !path.is_file() {
                return Err(
                    Failure::usage(format!("cannot use `{}`: no such file", text(&path)))
                        .hint("give the path of asprof or libasyncProfiler.so: --jvm=PATH"),
                );
            }
            // The JVM has another working directory, and a bare program name would be searched in
            // PATH.
            let path = std::path::absolute(&path).map_err(|error| {
                Failure::new(format!("cannot resolve `{}`", text(&path))).caused_by(&error)
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
                Failure::new("cannot profile the JVM: async-profiler is not installed").hint(
                    "install it from github.com/async-profiler/async-profiler, or give the path of asprof: --jvm=PATH",
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
                let options = format!(
                    "start,event=wall,interval={INTERVAL},lock={LOCK},chunktime={CHUNK},jfr,file={file}"
                );
                load(path, pid, &options)
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

    /// Whether it succeeded. `jcmd` exits successfully once the library is loaded, and prints the
    /// library's return code.
    fn has_succeeded(&self, done: &Output) -> bool {
        const GOOD: &[u8] = b"return code: 0";
        let mut lines = done.stdout.split(|byte| *byte == b'\n');
        done.status.success()
            && match self {
                Self::Asprof(_) => true,
                Self::Library(_) => lines.any(|line| line.trim_ascii() == GOOD),
            }
    }
}

/// `jcmd` splits unquoted arguments at `=`.
fn load(library: &Path, pid: i32, options: &str) -> Command {
    let mut command = Command::new("jcmd");
    let mut quoted = OsString::from("\"");
    quoted.push(library);
    quoted.push("\"");
    command.arg(pid.to_string()).arg("JVMTI.agent_load");
    command.arg(quoted).arg(format!("\"{options}\""));
    command
}

/// A profiler running in a JVM.
pub(super) struct Profiler {
    program: Program,
    pid: i32,
    /// Name of the profile in the temporary directory, as the JVM sees it.
    name: String,
    /// That directory, kept open so that it can be read after the JVM has exited.
    folder: OwnedFd,
    is_running: bool,
}

impl Profiler {
    pub(super) fn start(named: &OsStr, pid: i32) -> Result<Self, Failure> {
        let program = Program::find(named)?;
        // Attaching sends SIGQUIT, which terminates other programs.
        if !is_jvm(pid) {
            return Err(Failure::usage(format!(
                "cannot use process {pid}: it is not a JVM (libjvm.so is not mapped)"
            ))
            .hint("find the JVM: pgrep -a java"));
        }
        let root = PathBuf::from(format!("/proc/{pid}/root"));
        let failed = |error: io::Error| {
            Failure::new(format!(
                "cannot open the temporary directory of process {pid}"
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
        let done = run(&mut command, TIMEOUT).map_err(|error| {
            if error.kind() == io::ErrorKind::TimedOut {
                // The profiler may start when the JVM responds again, and would then never be
                // stopped.
                let _ = run(&mut program.stop(pid), TIMEOUT_STUCK);
                let _ = unlinkat(&folder, name.as_str(), AtFlags::empty());
            }
            Failure::new(format!("cannot run `{}`", text(program.path()))).caused_by(&error)
        })?;
        if !program.has_succeeded(&done) {
            return Err(Failure::new(format!(
                "cannot start async-profiler in process {pid}: {}",
                output_text(&done)
            ))
            .hint("check that no async-profiler is running in the JVM, and that the JVM can read the library"));
        }
        Ok(Self {
            program,
            pid,
            name,
            folder,
            is_running: true,
        })
    }

    /// Stops the profiler and copies the profile to a file.
    pub(super) fn finish(mut self, to: &Path) -> Result<(), Failure> {
        self.stop();
        let copied = self.copy(to);
        // Fails if it was never written.
        let _ = unlinkat(&self.folder, self.name.as_str(), AtFlags::empty());
        copied.map_err(|error| {
            Failure::new(format!("cannot read the profile of process {}", self.pid))
                .caused_by(&error)
        })
    }

    fn stop(&mut self) {
        self.is_running = false;
        match run(&mut self.program.stop(self.pid), TIMEOUT) {
            Ok(done) if self.program.has_succeeded(&done) => {}
            Ok(done) => talk::line(&format!(
                "note: cannot stop async-profiler in process {}: {}",
                self.pid,
                output_text(&done)
            )),
            Err(error) => talk::line(&format!(
                "note: cannot stop async-profiler in process {}: {error}",
                self.pid
            )),
        }
    }

    fn copy(&self, to: &Path) -> io::Result<()> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let safe = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
        let from = openat2(&self.folder, self.name.as_str(), flags, Mode::empty(), safe)?;
        if FileType::from_raw_mode(fstat(&from)?.st_mode) != FileType::RegularFile {
            return Err(io::Error::other("not a regular file"));
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

/// Runs a command with a timeout, in a process group that Ctrl-C does not reach.
fn run(command: &mut Command, timeout: Duration) -> io::Result<Output> {
    let mut child = command
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let deadline = Instant::now() + timeout;
    while child.try_wait()?.is_none() {
        if Instant::now() >= deadline {
            let _ = child.kill();
            let _ = child.wait();
            let stuck = "the JVM does not respond";
            return Err(io::Error::new(io::ErrorKind::TimedOut, stuck));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    child.wait_with_output()
}

/// Whether the process has mapped the HotSpot JVM.
pub(super) fn is_jvm(pid: i32) -> bool {
    has_jvm(&std::fs::read(format!("/proc/{pid}/maps")).unwrap_or_default())
}

/// The file may be deleted, for example by a package upgrade.
fn has_jvm(maps: &[u8]) -> bool {
    let mut lines = maps.split(|byte| *byte == b'\n');
    lines.any(|line| {
        let path = line.strip_suffix(b" (deleted)").unwrap_or(line);
        path.ends_with(b"/libjvm.so")
    })
}

/// The output of a program in one line.
fn output_text(done: &Output) -> String {
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
        assert!(library.has_succeeded(&printed("7:\nreturn code: 0\n")));
        for text in [
            "7:\nreturn code: 200\n",
            "7:\n/opt/lib.so was not loaded.\n",
            "",
        ] {
            assert!(!library.has_succeeded(&printed(text)), "{text}");
        }
        assert!(Program::Asprof("/opt/asprof".into()).has_succeeded(&printed("")));
    }

    #[test]
    fn paths_are_those_that_a_jvm_finds() {
        let folder = std::env::current_dir().expect("a current directory");
        let found = Program::find(OsStr::new("Cargo.toml")).expect("it exists");
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
        // This test process, which the SIGQUIT for a JVM would terminate.
        let error = Profiler::start(OsStr::new("/bin/sh"), std::process::id() as i32);
        assert!(error.is_err_and(|error| error.message().contains("not a JVM")));
    }
}
