//! Runs a query in a process of the Python package.

use std::io::{Read, Write as _};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use serde::Deserialize;
use whyslow_base::failure::Failure;

use super::request::Request;

/// Like `python3 -m whyslow.fleet`, but without searching modules in the working directory, where
/// other users may have placed files.
const PROGRAM: &str = "\
import sys
sys.path[:] = [path for path in sys.path if path]
import runpy
runpy.run_module('whyslow.fleet', run_name='__main__', alter_sys=True)";
const HINT: &str = "in a clone of the repository, run pip install ./python (for Spark: pip install './python[spark]'), or set WHYSLOW_PYTHON to another python3";
/// Maximum size of error messages.
const ERROR_BYTES_MAX: u64 = 64 << 10;
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// The error output of the package.
#[derive(Debug, Deserialize)]
struct PackageError {
    error: String,
    #[serde(default)]
    causes: Vec<String>,
    #[serde(default)]
    hint: Option<String>,
}

/// The answer, as an Arrow stream.
pub fn evaluate(request: &Request, cancel: &AtomicBool) -> Result<Vec<u8>, Failure> {
    let python = std::env::var_os("WHYSLOW_PYTHON").filter(|path| !path.is_empty());
    let python = python.map_or_else(|| PathBuf::from("python3"), PathBuf::from);
    let missing = |error: &dyn std::error::Error| {
        let program = python.display();
        Failure::new(format!(
            "cannot run fleet queries: cannot start `{program}`"
        ))
        .caused_by(error)
        .hint(HINT)
    };
    let mut child = Command::new(&python)
        .args(["-c", PROGRAM])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| missing(&error))?;
    let words = serde_json::to_vec(request).unwrap_or_default();
    if let Some(mut stdin) = child.stdin.take() {
        // If the process exits before reading, it reports the reason.
        let _ = stdin.write_all(&words);
    }
    let stdout = reader(child.stdout.take(), u64::MAX);
    let stderr = reader(child.stderr.take(), ERROR_BYTES_MAX);
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) if cancel.load(Ordering::Relaxed) => {
                let _ = child.kill();
                let _ = child.wait();
                return Err(Failure::interrupted());
            }
            Ok(None) => thread::sleep(POLL_INTERVAL),
            Err(error) => {
                return Err(Failure::new("cannot wait for the Python process").caused_by(&error));
            }
        }
    };
    let (answer, errors) = (
        stdout.join().unwrap_or_default(),
        stderr.join().unwrap_or_default(),
    );
    if status.success() {
        return Ok(answer);
    }
    Err(refused(
        &String::from_utf8_lossy(&errors),
        &status.to_string(),
    ))
}

fn reader(from: Option<impl Read + Send + 'static>, bytes_max: u64) -> thread::JoinHandle<Vec<u8>> {
    thread::spawn(move || {
        let mut content = Vec::new();
        if let Some(mut from) = from {
            let _ = from.by_ref().take(bytes_max).read_to_end(&mut content);
            // Drain the rest, so that the process does not block on a full pipe.
            let _ = std::io::copy(&mut from, &mut std::io::sink());
        }
        content
    })
}

fn refused(errors: &str, status: &str) -> Failure {
    let last = errors
        .lines()
        .rev()
        .find_map(|line| serde_json::from_str::<PackageError>(line).ok());
    if let Some(PackageError {
        error,
        causes,
        hint,
    }) = last
    {
        let cause = causes.into_iter().map(std::io::Error::other);
        let failure = cause.fold(Failure::usage(error), |failure, cause| {
            failure.caused_by(&cause)
        });
        return match hint {
            Some(hint) => failure.hint(hint),
            None => failure,
        };
    }
    if errors.contains("No module named") {
        let module = errors.lines().last().unwrap_or_default().trim().to_owned();
        let message = "cannot run fleet queries: the Python package whyslow is not installed";
        return Failure::new(message)
            .caused_by(&std::io::Error::other(module))
            .hint(HINT);
    }
    let why = errors.lines().last().unwrap_or(status).to_owned();
    Failure::new("cannot query the lake: the Python package failed")
        .caused_by(&std::io::Error::other(why))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_package_says_is_told_as_ours() {
        let errors = "progress\n{\"error\": \"there is no lake\", \"causes\": [\"ENOENT\"], \"hint\": \"push\"}\n";
        let (message, causes, hint) = refused(errors, "exit status: 2").into_parts();
        assert_eq!(message, "there is no lake");
        assert_eq!(
            (causes, hint),
            (vec!["ENOENT".to_owned()], Some("push".to_owned()))
        );
        let errors = "/usr/bin/python3: Error while finding module specification for 'whyslow.fleet' (ModuleNotFoundError: No module named 'whyslow')";
        let (message, _, hint) = refused(errors, "exit status: 1").into_parts();
        assert!(
            message.contains("not installed")
                && hint.is_some_and(|hint| hint.contains("pip install"))
        );
        let (message, causes, _) =
            refused("Traceback\nValueError: x", "exit status: 1").into_parts();
        assert!(message.contains("the Python package failed") && causes == ["ValueError: x"]);
    }
}
