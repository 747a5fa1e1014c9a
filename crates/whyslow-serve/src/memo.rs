//! Cache of explanations, in memory and on disk.
//!
//! A file is named after everything that determines its content: recording, program and query. The
//! files are in the user's cache directory, which is private; the least recently used ones are
//! evicted.

use std::collections::{BTreeMap, VecDeque};
use std::fs::{self, DirBuilder, File};
use std::io::{Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::SystemTime;

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use tokio::sync::Mutex as AsyncMutex;

/// Maximum size of all files together.
const DISK_BYTES_MAX: u64 = 64 << 20;
/// Maximum size of a document; larger ones are not cached.
const DOCUMENT_BYTES_MAX: u64 = 64 << 20;
const MEMORY_BYTES_MAX: usize = 32 << 20;
const KEY_DIGITS: usize = 40;
const ENDING: &str = "json.gz";

pub(crate) type Document = Arc<Vec<u8>>;

#[derive(Debug)]
pub(crate) struct Memo {
    folder: Option<PathBuf>,
    /// Identifies the build of the program, since another build may have different results.
    build: String,
    cached: Mutex<Cached>,
    key_locks: Mutex<BTreeMap<String, Weak<AsyncMutex<()>>>>,
}

#[derive(Debug, Default)]
struct Cached {
    /// In order of last use, most recent last.
    documents: VecDeque<(String, Document)>,
    bytes: usize,
}

impl Memo {
    /// In a subdirectory of the user's cache directory, which may be missing.
    pub(crate) fn new(cache: Option<&Path>) -> Self {
        Self {
            folder: cache.map(|cache| cache.join("explain")),
            build: build(),
            cached: Mutex::default(),
            key_locks: Mutex::default(),
        }
    }

    pub(crate) fn key(&self, digest: &str, query: &[&str]) -> String {
        let mut hasher = blake3::Hasher::new();
        for part in [self.build.as_str(), digest].iter().chain(query) {
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part.as_bytes());
        }
        hasher.finalize().to_hex()[..KEY_DIGITS].to_owned()
    }

    /// Serializes identical concurrent requests: the later ones wait for the first.
    pub(crate) fn key_lock(&self, key: &str) -> Arc<AsyncMutex<()>> {
        let mut key_locks = self
            .key_locks
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        key_locks.retain(|_, lock| lock.strong_count() > 0);
        if let Some(lock) = key_locks.get(key).and_then(Weak::upgrade) {
            return lock;
        }
        let lock = Arc::new(AsyncMutex::new(()));
        key_locks.insert(key.to_owned(), Arc::downgrade(&lock));
        lock
    }

    pub(crate) fn get(&self, key: &str) -> Option<Document> {
        if let Some(found) = self.cached().get(key) {
            return Some(found);
        }
        let document: Document = Arc::new(read(&self.path(key)?)?);
        self.cached().put(key, &document);
        Some(document)
    }

    /// Caches in memory only.
    pub(crate) fn hold(&self, key: &str, document: &Document) {
        self.cached().put(key, document);
    }

    /// Errors are ignored: the document is computed again next time.
    pub(crate) fn put(&self, key: &str, document: &Document) {
        self.cached().put(key, document);
        if let (Some(path), Some(folder)) = (self.path(key), &self.folder)
            && write(folder, &path, document).is_some()
        {
            evict(folder, &path);
        }
    }

    fn cached(&self) -> std::sync::MutexGuard<'_, Cached> {
        self.cached.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn path(&self, key: &str) -> Option<PathBuf> {
        let folder = self.folder.as_ref()?;
        Some(folder.join(format!("{key}.{ENDING}")))
    }
}

impl Cached {
    fn get(&mut self, key: &str) -> Option<Document> {
        let at = self.documents.iter().position(|(name, _)| name == key)?;
        let found = self.documents.remove(at)?;
        let document = Arc::clone(&found.1);
        self.documents.push_back(found);
        Some(document)
    }

    fn put(&mut self, key: &str, document: &Document) {
        if document.len() > MEMORY_BYTES_MAX || self.get(key).is_some() {
            return;
        }
        self.bytes += document.len();
        self.documents
            .push_back((key.to_owned(), Arc::clone(document)));
        while self.bytes > MEMORY_BYTES_MAX {
            let Some((_, oldest)) = self.documents.pop_front() else {
                break;
            };
            self.bytes -= oldest.len();
        }
    }
}

/// Version and build id.
fn build() -> String {
    let about = fs::metadata("/proc/self/exe").ok();
    let about = about.map(|about| (about.len(), about.mtime(), about.mtime_nsec()));
    format!("{} {about:?}", env!("CARGO_PKG_VERSION"))
}

fn read(path: &Path) -> Option<Vec<u8>> {
    let file = File::open(path).ok()?;
    // Mark as recently used.
    #[allow(clippy::disallowed_methods)]
    let now = SystemTime::now();
    let _ = file.set_modified(now);
    let mut document = Vec::new();
    let mut decoder = GzDecoder::new(file).take(DOCUMENT_BYTES_MAX);
    decoder.read_to_end(&mut document).ok()?;
    // Truncated or foreign files are ignored.
    let is_whole = serde_json::from_slice::<serde::de::IgnoredAny>(&document).is_ok();
    is_whole.then_some(document)
}

fn write(folder: &Path, path: &Path, document: &[u8]) -> Option<()> {
    if document.len() as u64 >= DOCUMENT_BYTES_MAX {
        return None;
    }
    let mut builder = DirBuilder::new();
    builder.recursive(true).mode(0o700).create(folder).ok()?;
    let file = tempfile::NamedTempFile::new_in(folder).ok()?;
    let mut encoder = GzEncoder::new(file, Compression::fast());
    encoder.write_all(document).ok()?;
    encoder.finish().ok()?.persist(path).ok()?;
    Some(())
}

/// Evicts the least recently used files, except the one just written.
fn evict(folder: &Path, kept: &Path) {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut files: Vec<(SystemTime, u64, PathBuf)> = entries
        .filter(|entry| entry.file_name().to_string_lossy().ends_with(ENDING))
        .filter_map(|entry| {
            let about = entry.metadata().ok()?;
            Some((about.modified().ok()?, about.len(), entry.path()))
        })
        .collect();
    files.sort();
    let mut bytes: u64 = files.iter().map(|(_, bytes, _)| bytes).sum();
    for (_, length, path) in files {
        if bytes <= DISK_BYTES_MAX {
            break;
        }
        if path != kept && fs::remove_file(&path).is_ok() {
            bytes -= length;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_put_is_found_again_in_memory_and_on_disk() {
        let cache = tempfile::tempdir().expect("a temporary folder");
        let memo = Memo::new(Some(cache.path()));
        let key = memo.key("recording", &["a", "b"]);
        assert!(memo.get(&key).is_none());
        let document: Document = Arc::new(b"{\"a\":1}".to_vec());
        memo.put(&key, &document);
        assert_eq!(memo.get(&key), Some(Arc::clone(&document)));
        let other = Memo::new(Some(cache.path()));
        assert_eq!(other.get(&key), Some(document));
        for (digest, query) in [
            ("recording", vec!["ab"]),
            ("recording", vec!["a", "c"]),
            ("recordin", vec!["ga", "b"]),
        ] {
            assert!(other.get(&other.key(digest, &query)).is_none());
        }
    }

    #[test]
    fn what_is_damaged_is_made_again() {
        let cache = tempfile::tempdir().expect("a temporary folder");
        let memo = Memo::new(Some(cache.path()));
        let key = memo.key("recording", &[]);
        memo.put(&key, &Arc::new(vec![b'1'; 5000]));
        let path = memo.path(&key).expect("a place");
        let bytes = fs::read(&path).expect("it was written");
        let fresh = || Memo::new(Some(cache.path()));
        assert!(fresh().get(&key).is_some());
        fs::write(&path, &bytes[..bytes.len() / 2]).expect("it can be written");
        assert!(fresh().get(&key).is_none());
        fs::write(&path, b"something else").expect("it can be written");
        assert!(fresh().get(&key).is_none());
    }

    #[test]
    fn memory_is_bounded() {
        let memo = Memo::new(None);
        let large: Document = Arc::new(vec![b'1'; MEMORY_BYTES_MAX / 3]);
        for number in 0..10 {
            memo.put(&number.to_string(), &large);
            assert!(memo.cached().bytes <= MEMORY_BYTES_MAX);
        }
        assert!(memo.get("0").is_none() && memo.get("9").is_some());
    }
}
