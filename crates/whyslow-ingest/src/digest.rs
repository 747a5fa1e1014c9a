//! Digest of the content of a source.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use whyslow_model::sort::IndexSort;

use crate::limits;

/// A file of a source.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SourceFile {
    /// Relative to the source, separated by `/`; empty for a source that is a single file.
    pub(crate) name: String,
    pub(crate) path: PathBuf,
    pub(crate) bytes: u64,
    /// Modification time, ns since the epoch.
    pub(crate) modified_ns: i128,
}

/// All files of a source, sorted by name.
pub(crate) fn files(source: &Path) -> io::Result<Vec<SourceFile>> {
    let mut files = Vec::new();
    collect(source, String::new(), 0, &mut files)?;
    files.index_sort();
    Ok(files)
}

fn collect(path: &Path, name: String, depth: usize, files: &mut Vec<SourceFile>) -> io::Result<()> {
    let about = fs::metadata(path)?;
    if about.is_file() {
        let modified = about.modified()?.duration_since(std::time::UNIX_EPOCH);
        files.push(SourceFile {
            name,
            path: path.to_owned(),
            bytes: about.len(),
            modified_ns: match modified {
                Ok(after) => after.as_nanos() as i128,
                Err(before) => -(before.duration().as_nanos() as i128),
            },
        });
        return Ok(());
    }
    if !about.is_dir() || depth == limits::SOURCE_DEPTH_MAX {
        return Ok(());
    }
    for entry in fs::read_dir(path)? {
        if files.len() >= limits::SOURCE_FILES_MAX {
            return Err(io::Error::other("too many files"));
        }
        let entry = entry?;
        let part = entry.file_name().to_string_lossy().into_owned();
        let name = if name.is_empty() {
            part
        } else {
            format!("{name}/{part}")
        };
        match collect(&entry.path(), name, depth + 1, files) {
            // a dangling link is not part of the source
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            result => result?,
        }
    }
    Ok(())
}

/// BLAKE3 of names and contents, and the total size. `None` if stopped.
pub(crate) fn digest(source: &Path, stop: &AtomicBool) -> io::Result<Option<(String, u64)>> {
    let mut hasher = blake3::Hasher::new();
    let mut total = 0;
    let mut buffer = vec![0; limits::DIGEST_BUFFER_BYTES];
    for file in files(source)? {
        hasher.update(&(file.name.len() as u64).to_le_bytes());
        hasher.update(file.name.as_bytes());
        hasher.update(&file.bytes.to_le_bytes());
        let mut reader = File::open(&file.path)?;
        loop {
            if stop.load(Ordering::Relaxed) {
                return Ok(None);
            }
            let read = reader.read(&mut buffer)?;
            if read == 0 {
                break;
            }
            hasher.update(&buffer[..read]);
            total += read as u64;
        }
    }
    Ok(Some((hasher.finalize().to_hex().to_string(), total)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_digest_follows_names_and_contents() {
        let run = AtomicBool::new(false);
        let of = |files: &[(&str, &str)]| {
            let folder = tempfile::tempdir().expect("a test");
            for (name, content) in files {
                let path = folder.path().join(name);
                fs::create_dir_all(path.parent().expect("a test")).expect("a test");
                fs::write(path, content).expect("a test");
            }
            digest(folder.path(), &run)
                .expect("a test")
                .expect("a test")
        };
        let (one, bytes) = of(&[("metadata", "abc"), ("k/x_0", "12")]);
        assert_eq!((one.len(), bytes), (64, 5));
        assert_eq!(of(&[("k/x_0", "12"), ("metadata", "abc")]).0, one);
        assert_ne!(of(&[("metadata", "abc"), ("k/x_1", "12")]).0, one);
        assert_ne!(of(&[("metadata", "ab"), ("k/x_0", "c12")]).0, one);
    }
}
