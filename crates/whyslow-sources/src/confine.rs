//! Confines the process with Landlock to reading specified paths.

use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access, AccessFs, AccessNet, CompatLevel, Compatible, Ruleset, RulesetAttr,
    RulesetCreatedAttr, RulesetError, RulesetStatus, path_beneath_rules,
};
use whyslow_base::failure::Failure;

/// Whether the process is confined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Confined {
    /// Landlock is in effect for this process and its children.
    Yes,
    /// The kernel has no Landlock, or Landlock is disabled.
    No,
}

/// What programs read to start, and for terminal, time zone and machine data.
const READABLE: &[&str] = &[
    "/bin",
    "/lib",
    "/lib64",
    "/usr",
    "/nix/store",
    "/gnu/store",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/localtime",
    "/etc/terminfo",
    "/etc/inputrc",
    "/proc/self",
    "/proc/meminfo",
    "/proc/cpuinfo",
    "/sys/devices/system/cpu",
    "/sys/fs/cgroup",
    "/dev/urandom",
];
/// The terminal, for interactive use, and /dev/null.
const WRITABLE: &[&str] = &["/dev/tty", "/dev/null"];

/// Confines this process, and programs that it executes, to reading the recording and the files
/// that `program` needs.
///
/// The process must be single-threaded: Landlock confines the calling thread and its children.
pub fn to_reading(recording: &Path, program: &Path) -> Result<Confined, Failure> {
    let mut readable: Vec<PathBuf> = READABLE.iter().map(PathBuf::from).collect();
    readable.push(recording.to_path_buf());
    readable.push(program.to_path_buf());
    readable.push(std::fs::canonicalize(program).unwrap_or_else(|_| program.to_path_buf()));
    restrict(&readable, &[]).map_err(|error| {
        Failure::new("cannot confine the query to the recording").caused_by(&error)
    })
}

/// Confines this thread, and the threads it starts, to reading `readable` and the files that
/// programs need to start, and to writing below `changeable`.
pub fn to_paths(readable: &[PathBuf], changeable: &[PathBuf]) -> Result<Confined, Failure> {
    let mut all: Vec<PathBuf> = READABLE.iter().map(PathBuf::from).collect();
    all.extend_from_slice(readable);
    restrict(&all, changeable)
        .map_err(|error| Failure::new("cannot confine the server").caused_by(&error))
}

fn restrict(readable: &[PathBuf], changeable: &[PathBuf]) -> Result<Confined, RulesetError> {
    let abi = ABI::V5;
    let status = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(abi))?
        .handle_access(AccessNet::from_all(abi))?
        .create()?
        .add_rules(path_beneath_rules(readable, AccessFs::from_read(abi)))?
        .add_rules(path_beneath_rules(WRITABLE, AccessFs::from_file(abi)))?
        .add_rules(path_beneath_rules(changeable, AccessFs::from_all(abi)))?
        .restrict_self()?;
    Ok(match status.ruleset {
        RulesetStatus::NotEnforced => Confined::No,
        // Old kernels cannot restrict truncation or device ioctls, but they can restrict opening
        // for writing.
        RulesetStatus::PartiallyEnforced | RulesetStatus::FullyEnforced => Confined::Yes,
    })
}
