use std::path::Path;

use whyslow_base::failure::Failure;

/// Refuses processes that do not run.
pub(super) fn check_processes(pids: &[i32]) -> Result<(), Failure> {
    let is_gone = |pid: &&i32| !Path::new("/proc").join(pid.to_string()).exists();
    match pids.iter().find(is_gone) {
        Some(pid) => {
            Err(Failure::usage(format!("there is no process {pid}"))
                .hint("`pgrep -a NAME` finds it"))
        }
        None => Ok(()),
    }
}
