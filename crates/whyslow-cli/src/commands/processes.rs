use std::path::Path;

use whyslow_base::failure::Failure;

/// Fails if one of the processes does not exist.
pub(super) fn check_processes(pids: &[i32]) -> Result<(), Failure> {
    let is_gone = |pid: &&i32| !Path::new("/proc").join(pid.to_string()).exists();
    match pids.iter().find(is_gone) {
        Some(pid) => Err(
            Failure::usage(format!("cannot record process {pid}: no such process"))
                .hint("find the process: pgrep -a NAME"),
        ),
        None => Ok(()),
    }
}
