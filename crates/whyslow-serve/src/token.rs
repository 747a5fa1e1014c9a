//! The access token: random at each start, or kept in a file for recurring clients.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::io::Errno;
use subtle::ConstantTimeEq as _;
use whyslow_base::failure::Failure;
use whyslow_render::quoted;

const BYTES: usize = 16;
/// Shorter tokens could be guessed.
const LENGTH_MIN: usize = 2 * BYTES;
const LENGTH_MAX: usize = 4_096;
/// Permissions of group and others.
const FOREIGN: u32 = 0o077;

#[derive(Debug)]
pub(crate) struct Token(String);

impl Token {
    /// Reads the token from the file, which is created if missing; without a file, a random token.
    pub(crate) fn new(file: Option<&Path>) -> Result<Self, Failure> {
        match file {
            None => Self::random(),
            Some(path) => Self::kept(path),
        }
    }

    fn random() -> Result<Self, Failure> {
        let mut bytes = [0_u8; BYTES];
        getrandom::fill(&mut bytes)
            .map_err(|error| Failure::new(format!("cannot read random numbers: {error}")))?;
        let digits = bytes.iter().map(|byte| format!("{byte:02x}"));
        Ok(Self(digits.collect()))
    }

    fn kept(path: &Path) -> Result<Self, Failure> {
        // Do not follow links, and do not block on the writer of a FIFO.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
        match openat(CWD, path, flags, Mode::empty()) {
            Ok(file) => Self::read(path, File::from(file)),
            Err(Errno::NOENT) => Self::make(path),
            Err(Errno::LOOP) => Err(wrong(path, "is a symbolic link")),
            Err(error) => Err(Failure::reading(path, error.into())),
        }
    }

    fn read(path: &Path, file: File) -> Result<Self, Failure> {
        let about = file
            .metadata()
            .map_err(|error| Failure::reading(path, error))?;
        if !about.is_file() {
            return Err(wrong(path, "is not a file"));
        }
        let us = rustix::process::geteuid().as_raw();
        if about.uid() != us && about.uid() != 0 {
            return Err(wrong(path, "is owned by another user"));
        }
        if about.mode() & FOREIGN != 0 {
            return Err(wrong(path, "is accessible by other users").hint(format!(
                "run chmod 600 {}",
                quoted(&path.display().to_string())
            )));
        }
        let mut text = String::new();
        let read = file.take(LENGTH_MAX as u64).read_to_string(&mut text);
        read.map_err(|error| Failure::reading(path, error))?;
        let token = text.trim_end_matches(['\r', '\n']);
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~+/=".contains(&byte);
        if token.len() < LENGTH_MIN || !token.bytes().all(is_plain) {
            let reason =
                format!("does not contain a token of at least {LENGTH_MIN} letters and digits");
            return Err(wrong(path, &reason).hint("remove the file to create a new token"));
        }
        Ok(Self(token.to_owned()))
    }

    fn make(path: &Path) -> Result<Self, Failure> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
        let mode = Mode::RUSR | Mode::WUSR;
        let failed = |error| Failure::writing(path, error);
        let file = openat(CWD, path, flags | OFlags::CLOEXEC, mode);
        let mut file = File::from(file.map_err(|error| failed(error.into()))?);
        let token = Self::random()?;
        writeln!(file, "{}", token.0).map_err(failed)?;
        file.sync_all().map_err(failed)?;
        Ok(token)
    }

    pub(crate) fn text(&self) -> &str {
        &self.0
    }

    /// Constant-time comparison.
    pub(crate) fn is(&self, text: &str) -> bool {
        bool::from(self.0.as_bytes().ct_eq(text.as_bytes()))
    }
}

fn wrong(path: &Path, reason: &str) -> Failure {
    Failure::usage(format!(
        "cannot use token file `{}`: it {reason}",
        path.display()
    ))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    #[test]
    fn a_token_is_kept_for_its_owner_alone() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("token");
        let made = Token::new(Some(&path)).expect("created");
        assert_eq!(made.text().len(), LENGTH_MIN);
        let mode = fs::metadata(&path).expect("it exists").mode();
        assert_eq!(mode & 0o777, 0o600);
        let again = Token::new(Some(&path)).expect("kept");
        assert!(again.is(made.text()));
        assert!(!Token::new(None).expect("random").is(made.text()));
        let text = made.text();
        for wrong in ["", "x", &text[1..], &format!("{text}0")] {
            assert!(!made.is(wrong), "{wrong}");
        }
    }

    #[test]
    fn what_is_no_secret_is_refused() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("token");
        let check = |text: &str, mode, want: &str| {
            fs::write(&path, text).expect("writable");
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("our own file");
            let error = Token::new(Some(&path)).expect_err(text);
            assert!(error.message().contains(want), "{}", error.message());
        };
        let good = "a".repeat(LENGTH_MIN);
        check(&good, 0o644, "is accessible by other users");
        check(&good, 0o620, "is accessible by other users");
        check("", 0o600, "does not contain a token");
        check(&good[1..], 0o600, "does not contain a token");
        check(&format!("{good} b"), 0o600, "does not contain a token");
        check(&format!("{good}\u{e9}"), 0o600, "does not contain a token");
        let link = folder.path().join("link");
        symlink(&path, &link).expect("a link");
        let error = Token::new(Some(&link)).expect_err("a link");
        assert!(error.message().contains("symbolic link"));
        let error = Token::new(Some(folder.path())).expect_err("a folder");
        assert!(error.message().contains("is not a file"));
    }
}
