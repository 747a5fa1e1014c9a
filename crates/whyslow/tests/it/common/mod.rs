//! A recording shared by all tests, and the program in an isolated environment.

pub(crate) mod held;

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use assert_cmd::Command;
use tempfile::TempDir;
use whyslow_testkit::made_once;

/// A machine at -05:00 on which one open is slow while a sync runs. Two files have hostile names,
/// 7002 events are lost, and a few more records follow two days later.
pub(crate) const TRACE: &str = r#"whyslow-text 1
meta hostname=web1
meta trace_creation_datetime=20150115T121837-0500
1421342317.200000000 [0] (tid=10 pid=10 comm=sync) syscall_enter name=sync
1421342317.300000000 [1] (tid=20 pid=20 comm=apache2) syscall_enter name=openat path="/var/lib/php5/sess_1" flags=66
1421342317.400000000 [1] (tid=20 pid=20 comm=apache2) syscall_exit name=openat ret=13
1421342317.410000000 [1] (tid=20 pid=20 comm=apache2) syscall_enter name=write fd=13 count=100
1421342317.410050000 [1] (tid=20 pid=20 comm=apache2) syscall_exit name=write ret=100
1421342317.500000000 [0] (tid=10 pid=10 comm=sync) syscall_exit name=sync ret=0
1421342317.600000000 [1] (tid=20 pid=20 comm=apache2) syscall_enter name=openat path="/tmp/\x1b[2J\x1b]0;owned\x07" flags=0
1421342317.600010000 [1] (tid=20 pid=20 comm=apache2) syscall_exit name=openat ret=14
1421342317.700000000 [1] (tid=20 pid=20 comm=apache2) syscall_enter name=openat path="=cmd|' /C calc'!A0,x" flags=0
1421342317.700020000 [1] (tid=20 pid=20 comm=apache2) syscall_exit name=openat ret=-2
1421342317.800000000 [0] lost kind=events until=1421342317.900000000 count=7002 stream=ch0
1421342318.000000000 [0] (tid=10 pid=10 comm=sync) block_rq_issue dev=8:0 sector=1000 sectors=8 rwbs=WS bytes=4096
1421342318.004000000 [0] block_rq_complete dev=8:0 sector=1000 sectors=8 rwbs=WS error=0
1421515117.000000000 [1] (tid=20 pid=20 comm=apache2) syscall_enter name=read fd=13 count=10
1421515117.000100000 [1] (tid=20 pid=20 comm=apache2) syscall_exit name=read ret=10
"#;

/// A directory for one test, or for several that only read it.
pub(crate) struct Place {
    folder: PathBuf,
    /// Deletes the directory on drop; `None` if all tests of the run share it.
    _own: Option<TempDir>,
}

impl Place {
    pub(crate) fn new() -> Self {
        let own = TempDir::new().expect("a temporary folder");
        Self {
            folder: own.path().to_owned(),
            _own: Some(own),
        }
    }

    /// The place `name`, filled once by `fill` for all tests of the run.
    pub(crate) fn shared(name: &str, fill: impl Fn(&Self)) -> Self {
        let of = |folder: &Path| Self {
            folder: folder.to_owned(),
            _own: None,
        };
        if let Some(folder) = made_once(name, |folder| fill(&of(folder))) {
            return of(&folder);
        }
        let place = Self::new();
        fill(&place);
        place
    }

    pub(crate) fn path(&self) -> &Path {
        &self.folder
    }

    pub(crate) fn join(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    pub(crate) fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.join(name);
        std::fs::write(&path, bytes).expect("a temporary folder takes it");
        path
    }

    /// The program with its state and cache in this place.
    pub(crate) fn whyslow(&self) -> Command {
        let mut command = Command::cargo_bin("whyslow").expect("cargo built it");
        command
            .current_dir(self.path())
            .env("HOME", self.path())
            .env("XDG_STATE_HOME", self.join("state"))
            .env("XDG_CACHE_HOME", self.join("cache"))
            // Otherwise `@live` would follow recorders of other tests.
            .env("WHYSLOW_RUN_DIR", self.join("run"))
            .env("LC_ALL", "C.UTF-8");
        for name in [
            "NO_COLOR",
            "CLICOLOR_FORCE",
            "PAGER",
            "WHYSLOW_PAGER",
            "WHYSLOW_DUCKDB",
        ] {
            command.env_remove(name);
        }
        command
    }

    /// The same as a `Command`, for tests that interact with the running program.
    pub(crate) fn program(&self) -> std::process::Command {
        let prepared = self.whyslow();
        let mut command = std::process::Command::new(prepared.get_program());
        command.current_dir(self.path());
        for (name, value) in prepared.get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        command
    }

    /// Standard output of a command that must succeed.
    pub(crate) fn stdout(&self, args: &[&str]) -> String {
        let output = self.whyslow().args(args).assert().success();
        String::from_utf8(output.get_output().stdout.clone()).expect("UTF-8")
    }
}

/// A place with `t.txt` and its recording `t.wsl`, shared by all tests: @last of it may change at
/// any time.
pub(crate) fn recorded() -> &'static Place {
    static PLACE: OnceLock<Place> = OnceLock::new();
    PLACE.get_or_init(|| Place::shared("recorded", record_trace))
}

/// The same for a single test.
pub(crate) fn newly_recorded() -> Place {
    let place = Place::new();
    record_trace(&place);
    place
}

fn record_trace(place: &Place) {
    place.write("t.txt", TRACE);
    place
        .whyslow()
        .args(["import", "t.txt", "-o", "t.wsl"])
        .assert()
        .success();
}
