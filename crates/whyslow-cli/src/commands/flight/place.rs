use std::path::{Path, PathBuf};

use whyslow_base::failure::Failure;

/// Where recordings are saved: a directory, and the prefix of their names.
#[derive(Debug, Clone)]
pub(super) struct Place {
    pub(super) folder: PathBuf,
    pub(super) stem: String,
}

impl Place {
    /// `-o web.wsl` → `web-20260102-030405.wsl` in the same directory.
    pub(super) fn of(output: Option<&Path>) -> Self {
        let output = output.unwrap_or(Path::new("flight.wsl"));
        let stem = output.file_stem().unwrap_or(output.as_os_str());
        let folder = output.parent().filter(|folder| *folder != Path::new(""));
        Self {
            folder: folder.unwrap_or(Path::new(".")).to_owned(),
            stem: stem.to_string_lossy().into_owned(),
        }
    }

    pub(super) fn check(&self) -> Result<(), Failure> {
        if self.folder.is_dir() {
            return Ok(());
        }
        let folder = self.folder.display();
        Err(Failure::usage(format!(
            "cannot save recordings in `{folder}`: no such directory"
        ))
        .hint(format!("create it: mkdir -p {folder}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_saved_lies_beside_what_was_named() {
        let check = |output: Option<&str>, folder: &str, stem: &str| {
            let place = Place::of(output.map(Path::new));
            assert_eq!(place.folder, Path::new(folder));
            assert_eq!(place.stem, stem);
        };
        check(None, ".", "flight");
        check(Some("web.wsl"), ".", "web");
        check(Some("/var/lib/whyslow/web.wsl"), "/var/lib/whyslow", "web");
        check(Some("a/web"), "a", "web");
    }
}
