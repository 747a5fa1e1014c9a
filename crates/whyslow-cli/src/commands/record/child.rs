//! The command of `record -- COMMAND`: it exists before recording starts, so that its process id is
//! known, and executes once recording has begun.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, ExitStatus};
use std::time::{Duration, Instant};

use rustix::fs::{Access, access};
use rustix::io::Errno;
use rustix::process::{
    Pid, Signal, WaitOptions, getppid, kill_process, set_parent_process_death_signal, waitpid,
};
use whyslow_base::args::TalkArgs;
use whyslow_base::failure::Failure;
use whyslow_base::private_folder::PrivateFolder;
use whyslow_base::talk;

use crate::cli::HeldArgs;

/// Prefix of the temporary directory with the report of a failed execution.
const FOLDER: &str = "whyslow-command-";
const REPORT: &str = "error";
/// Where commands are searched without `PATH`, as in shells.
const PATH_DEFAULT: &str = "/usr/local/bin:/usr/bin:/bin";
/// Time to exit for a command that received the same Ctrl-C as the recorder.
const GRACE: Duration = Duration::from_millis(500);
const POLL: Duration = Duration::from_millis(10);

/// A command that is stopped until the recorder resumes it.
pub(in crate::commands) struct Held {
    name: String,
    child: Child,
    status: Option<ExitStatus>,
    folder: PrivateFolder,
}

impl Held {
    /// `None` if there is no command.
    pub(in crate::commands) fn start(command: &[OsString]) -> Result<Option<Self>, Failure> {
        let Some(program) = command.first() else {
            return Ok(None);
        };
        let name = program.to_string_lossy().into_owned();
        // Before anything is recorded; the rest is known when the kernel executes it.
        find(program).map_err(|error| Failure::not_executed(&name, &error))?;
        let failed = |error: io::Error| {
            Failure::new(format!(
                "cannot start `{}`",
                whyslow_model::text::shown(&name, false)
            ))
            .caused_by(&error)
        };
        let folder = PrivateFolder::new(&std::env::temp_dir(), FOLDER)?;
        let child = Command::new("/proc/self/exe")
            .arg("held")
            .arg(std::process::id().to_string())
            .arg(folder.path().join(REPORT))
            .arg("--")
            .args(command)
            .spawn()
            .map_err(failed)?;
        if let Some(pid) = Pid::from_raw(child.id() as i32) {
            waitpid(Some(pid), WaitOptions::UNTRACED).map_err(|error| failed(error.into()))?;
        }
        Ok(Some(Self {
            name,
            child,
            status: None,
            folder,
        }))
    }

    pub(in crate::commands) fn pid(&self) -> i32 {
        self.child.id() as i32
    }

    pub(in crate::commands) fn resume(pid: i32) {
        if let Some(pid) = Pid::from_raw(pid) {
            // Fails if it has exited, which `has_ended` detects.
            let _ = kill_process(pid, Signal::CONT);
        }
    }

    pub(in crate::commands) fn has_ended(&mut self) -> bool {
        if self.status.is_none() {
            self.status = self.child.try_wait().ok().flatten();
        }
        self.status.is_some()
    }

    /// The exit status of the command, if it has ended. Kills a command that was never resumed; one
    /// that outlives the recording is left running. Fails if the command could not be executed.
    pub(in crate::commands) fn end(
        mut self,
        has_started: bool,
        talk: &TalkArgs,
    ) -> Result<Option<ExitStatus>, Failure> {
        if !has_started {
            let _ = self.child.kill();
            let _ = self.child.wait();
            return Ok(None);
        }
        let begun = Instant::now();
        while !self.has_ended() && begun.elapsed() < GRACE {
            std::thread::sleep(POLL);
        }
        if let Some(error) = self.report() {
            return Err(Failure::not_executed(&self.name, &error));
        }
        let note = match self.status {
            Some(status) if status.success() => None,
            Some(status) => Some(format!("note: the command exited with {status}")),
            None => Some(format!(
                "note: the command is still running (pid {})",
                self.pid()
            )),
        };
        if let Some(note) = note.filter(|_| !talk.quiet) {
            talk::line(&note);
        }
        Ok(self.status)
    }

    /// Why the command could not be executed.
    fn report(&self) -> Option<io::Error> {
        let text = fs::read_to_string(self.folder.path().join(REPORT)).ok()?;
        Some(io::Error::from_raw_os_error(text.trim().parse().ok()?))
    }
}

/// The exit code of the recorder: that of its command, or 128 plus the signal that ended it, as in
/// shells.
pub(in crate::commands) fn exit_code(status: Option<ExitStatus>) -> ExitCode {
    let Some(status) = status else {
        return ExitCode::SUCCESS;
    };
    let code = status
        .code()
        .or_else(|| status.signal().map(|signal| 128 + signal));
    ExitCode::from(code.map_or(1, |code| code as u8))
}

/// Searches a program as `execvp` does.
fn find(program: &OsStr) -> io::Result<PathBuf> {
    if program.as_bytes().contains(&b'/') {
        return executable(PathBuf::from(program));
    }
    let path = std::env::var_os("PATH").unwrap_or_else(|| PATH_DEFAULT.into());
    search(program, &path)
}

fn search(program: &OsStr, path: &OsStr) -> io::Result<PathBuf> {
    let mut refused = None;
    if !program.is_empty() {
        for folder in std::env::split_paths(path) {
            match executable(folder.join(program)) {
                Ok(found) => return Ok(found),
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                    refused = refused.or(Some(error));
                }
                Err(_) => {}
            }
        }
    }
    Err(refused.unwrap_or_else(|| Errno::NOENT.into()))
}

fn executable(path: PathBuf) -> io::Result<PathBuf> {
    if !fs::metadata(&path)?.is_file() {
        return Err(Errno::ACCESS.into());
    }
    access(Path::new(&path), Access::EXEC_OK)?;
    Ok(path)
}

/// The hidden command `held`: stops itself, and executes the command when it is resumed.
pub(in crate::commands) fn hold(args: &HeldArgs) -> Result<ExitCode, Failure> {
    // If the recorder is killed before, nothing would resume it.
    let _ = set_parent_process_death_signal(Some(Signal::KILL));
    if getppid().is_none_or(|pid| pid.as_raw_pid() != args.recorder) {
        return Err(Failure::new("the recorder has exited"));
    }
    if let Some(pid) = Pid::from_raw(std::process::id() as i32) {
        let _ = kill_process(pid, Signal::STOP);
    }
    let _ = set_parent_process_death_signal(None);
    let error = Command::new(&args.command[0])
        .args(&args.command[1..])
        .exec();
    let failure = Failure::not_executed(&args.command[0].to_string_lossy(), &error);
    let number = error.raw_os_error().unwrap_or_default().to_string();
    match fs::write(&args.report, number) {
        // The recorder prints it.
        Ok(()) => Ok(ExitCode::FAILURE),
        Err(_) => Err(failure),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn code(status: i32) -> String {
        format!("{:?}", exit_code(Some(ExitStatus::from_raw(status))))
    }

    #[test]
    fn the_status_of_the_command_is_passed_on() {
        let of = |code: u8| format!("{:?}", ExitCode::from(code));
        assert_eq!(format!("{:?}", exit_code(None)), of(0));
        // As returned by wait(2): the exit code above the signal.
        assert_eq!(code(0), of(0));
        assert_eq!(code(3 << 8), of(3));
        assert_eq!(code(9), of(137));
        assert_eq!(code(255 << 8), of(255));
    }

    #[test]
    fn commands_are_searched_as_shells_do() {
        let folder = tempfile::TempDir::new().expect("a temporary folder");
        let (first, second) = (folder.path().join("a"), folder.path().join("b"));
        for folder in [&first, &second] {
            fs::create_dir(folder).expect("a disk");
        }
        let write = |path: &Path, mode| {
            fs::write(path, "#!/bin/sh\n").expect("a disk");
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("it is ours");
        };
        write(&first.join("tool"), 0o644);
        write(&first.join("text"), 0o644);
        write(&second.join("tool"), 0o755);
        let path = std::env::join_paths([&first, &second]).expect("no colons");
        let search = |name: &str| search(OsStr::new(name), &path).map_err(|error| error.kind());
        assert_eq!(search("tool"), Ok(second.join("tool")));
        assert_eq!(search("text"), Err(io::ErrorKind::PermissionDenied));
        assert_eq!(search("none"), Err(io::ErrorKind::NotFound));
        assert_eq!(search(""), Err(io::ErrorKind::NotFound));
        // A directory cannot be executed.
        let found = find(first.as_os_str()).map_err(|error| error.kind());
        assert_eq!(found, Err(io::ErrorKind::PermissionDenied));
        assert!(find(second.join("tool").as_os_str()).is_ok());
    }

    #[test]
    fn a_command_that_does_not_exist_is_not_started() {
        let start = |name: &str| Held::start(&[name.into()]).map(|held| held.is_some());
        let failure = start("no-such-command-7919").expect_err("it does not exist");
        assert!(failure.message().contains("no-such-command-7919"));
        assert_eq!(
            format!("{:?}", failure.report()),
            format!("{:?}", ExitCode::from(127))
        );
        let failure = start("/").expect_err("a directory");
        assert_eq!(
            format!("{:?}", failure.report()),
            format!("{:?}", ExitCode::from(126))
        );
        assert!(Held::start(&[]).is_ok_and(|held| held.is_none()));
    }
}
