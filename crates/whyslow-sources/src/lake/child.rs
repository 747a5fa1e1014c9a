//! The Python package, as a process that answers one question.

use std::io::{Read, Write as _};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use serde::Deserialize;
use whyslow_base::failure::Failure;

use super::request::Request;

/// As `python3 -m whyslow.fleet`, which would first look for its modules in the working directory, where
/// anybody may have put some.
const PROGRAM: &str = "\
import sys
sys.path[:] = [path for path in sys.path if path]
import runpy
runpy.run_module('whyslow.fleet', run_name='__main__', alter_sys=True)";
const HINT: &str = "pip install './python' from a clone (with Spark: './python[spark]'); WHYSLOW_PYTHON names another python3";
/// Of what is said to be wrong.
const ERROR_BYTES_MAX: u64 = 64 << 10;
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// What the package says when it cannot answer.
#[derive(Debug, Deserialize)]
struct Said {
    error: String,
    #[serde(default)]
    causes: Vec<String>,
    #[serde(default)]
    hint: Option<String>,
}

/// The answer, as an Arrow stream.
pub fn ask(request: &Request, cancel: &AtomicBool) -> Result<Vec<u8>, Failure> {
    let python = std::env::var_os("WHYSLOW_PYTHON").filter(|path| !path.is_empty());
    let python = python.map_or_else(|| PathBuf::from("python3"), PathBuf::from);
    let missing = |error: &dyn std::error::Error| {
        Failure::new("questions of fleets need Python, which is not there")
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
        // Who ends before it has read says why.
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
            Ok(None) => thread::sleep(LOOK_EVERY),
            Err(error) => return Err(Failure::new("the question went astray").caused_by(&error)),
        }
    };
    let (answer, said) = (
        stdout.join().unwrap_or_default(),
        stderr.join().unwrap_or_default(),
    );
    if status.success() {
        return Ok(answer);
    }
    Err(refused(
        &String::from_utf8_lossy(&said),
        &status.to_string(),
    ))
}

fn reader(from: Option<impl Read + Send + 'static>, bytes_max: u64) -> thread::JoinHandle<Vec<u8>> {
    thread::spawn(move || {
        let mut content = Vec::new();
        if let Some(mut from) = from {
            let _ = from.by_ref().take(bytes_max).read_to_end(&mut content);
            // Who writes more must not wait for a reader.
            let _ = std::io::copy(&mut from, &mut std::io::sink());
        }
        content
    })
}

fn refused(said: &str, status: &str) -> Failure {
    let last = said
        .lines()
        .rev()
        .find_map(|line| serde_json::from_str::<Said>(line).ok());
    if let Some(Said {
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
    if said.contains("No module named") {
        let module = said.lines().last().unwrap_or_default().trim().to_owned();
        let message = "questions of fleets need the Python package whyslow, which is not installed";
        return Failure::new(message)
            .caused_by(&std::io::Error::other(module))
            .hint(HINT);
    }
    let why = said.lines().last().unwrap_or(status).to_owned();
    Failure::new("the Python package failed to answer").caused_by(&std::io::Error::other(why))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_package_says_is_told_as_ours() {
        let said = "progress\n{\"error\": \"there is no lake\", \"causes\": [\"ENOENT\"], \"hint\": \"push\"}\n";
        let (message, causes, hint) = refused(said, "exit status: 2").into_parts();
        assert_eq!(message, "there is no lake");
        assert_eq!(
            (causes, hint),
            (vec!["ENOENT".to_owned()], Some("push".to_owned()))
        );
        let said = "/usr/bin/python3: Error while finding module specification for 'whyslow.fleet' (ModuleNotFoundError: No module named 'whyslow')";
        let (message, _, hint) = refused(said, "exit status: 1").into_parts();
        assert!(
            message.contains("not installed")
                && hint.is_some_and(|hint| hint.contains("pip install"))
        );
        let (message, causes, _) =
            refused("Traceback\nValueError: x", "exit status: 1").into_parts();
        assert!(message.contains("failed to answer") && causes == ["ValueError: x"]);
    }
}
