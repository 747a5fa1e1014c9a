//! Location of the duckdb command line.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use whyslow_base::failure::Failure;

/// Prints the path of the program in the wheel `duckdb-cli`.
const WHEEL: &str = "import os, duckdb_cli; \
                     print(os.path.join(os.path.dirname(duckdb_cli.__file__), 'duckdb'))";

/// The binary: from `WHYSLOW_DUCKDB`, PATH, or the Python package `duckdb-cli`, whose `duckdb` in
/// PATH is only a script that would need Python inside the confinement.
pub fn find() -> Result<PathBuf, Failure> {
    let named = std::env::var_os("WHYSLOW_DUCKDB").filter(|path| !path.is_empty());
    if let Some(path) = named.map(PathBuf::from) {
        return if is_program(&path) {
            Ok(path)
        } else {
            Err(Failure::new(format!(
                "cannot run `{}` from WHYSLOW_DUCKDB: not an executable",
                path.display()
            )))
        };
    }
    let in_path = search_path("duckdb");
    if let Some(program) = in_path.iter().find(|path| is_program(path)) {
        return Ok(program.clone());
    }
    let interpreters = in_path
        .iter()
        .filter_map(|script| python_of(script))
        .chain(search_path("python3"));
    for interpreter in interpreters {
        if let Some(program) = ask_python(&interpreter) {
            return Ok(program);
        }
    }
    Err(
        Failure::new("cannot run `sql`: the duckdb command line is not installed")
            .hint("pip install duckdb-cli"),
    )
}

fn search_path(name: &str) -> Vec<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .filter(|folder| folder.is_absolute())
        .map(|folder| folder.join(name))
        .filter(|candidate| is_executable(candidate))
        .collect()
}

fn is_executable(path: &Path) -> bool {
    path.metadata()
        .is_ok_and(|about| about.is_file() && about.permissions().mode() & 0o111 != 0)
}

fn is_program(path: &Path) -> bool {
    is_executable(path) && head(path).starts_with(b"\x7fELF")
}

fn head(path: &Path) -> Vec<u8> {
    let mut bytes = Vec::new();
    if let Ok(file) = File::open(path) {
        // An unreadable file cannot be executed either.
        let _ = file.take(256).read_to_end(&mut bytes);
    }
    bytes
}

/// The Python interpreter in the first line of a script.
fn python_of(script: &Path) -> Option<PathBuf> {
    let head = head(script);
    let line = head
        .strip_prefix(b"#!")?
        .split(|byte| *byte == b'\n')
        .next()?;
    let interpreter = std::str::from_utf8(line).ok()?.split_whitespace().next()?;
    let is_python = Path::new(interpreter)
        .file_name()?
        .to_string_lossy()
        .starts_with("python");
    is_python.then(|| PathBuf::from(interpreter))
}

fn ask_python(interpreter: &Path) -> Option<PathBuf> {
    let output = Command::new(interpreter)
        .args(["-c", WHEEL])
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .ok()?;
    let path = PathBuf::from(String::from_utf8(output.stdout).ok()?.trim_end());
    (output.status.success() && is_program(&path)).then_some(path)
}
