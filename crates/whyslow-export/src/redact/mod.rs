//! Redaction: hides what texts reveal about people and their machines, so that findings can be
//! shared.
//!
//! Each text is replaced according to its [`Class`], with a replacement that is the same for the
//! same key: equal texts stay equal, paths stay below the same directories, and patterns stay
//! patterns. The key is random and discarded, unless the user keeps it to make several exports
//! consistent. Without the key, guesses cannot be verified. `docs/redaction.md` lists what stays
//! and what does not.

mod address;
mod class;
mod keep;
mod lines;
mod path;
mod permute;
mod public;
mod tables;
#[cfg(test)]
mod tests;
mod words;

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::{PoisonError, RwLock};

use rustc_hash::FxHashMap;
use whyslow_store::{RecordingInfo, SourceInfo};

pub use class::Class;
pub use keep::Keep;
pub use tables::RedactedTables;

use permute::Cipher;
use words::Lexicon;

/// Maximum size of the cache of replacements.
const REMEMBERED: usize = 1 << 18;
/// Maximum size of a key file, so that a disk is not read by mistake.
const KEY_FILE_BYTES: u64 = 1 << 20;
const KEY_BYTES_MIN: usize = 16;

/// Determines the replacements.
#[derive(Clone)]
pub struct Key([u8; 32]);

impl std::fmt::Debug for Key {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("Key(…)")
    }
}

impl Key {
    /// A random key, which is not stored.
    pub fn random() -> io::Result<Self> {
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes).map_err(|error| io::Error::other(error.to_string()))?;
        Ok(Self(bytes))
    }

    /// From a file with at least 16 bytes of secret content.
    pub fn read(path: &Path) -> io::Result<Self> {
        let mut content = Vec::new();
        File::open(path)?
            .take(KEY_FILE_BYTES)
            .read_to_end(&mut content)?;
        if content.len() < KEY_BYTES_MIN {
            let reason = format!(
                "it has {} bytes; a key needs at least {KEY_BYTES_MIN}",
                content.len()
            );
            return Err(io::Error::new(io::ErrorKind::InvalidData, reason));
        }
        Ok(Self::of(&content))
    }

    pub(crate) fn of(content: &[u8]) -> Self {
        Self(blake3::derive_key("whyslow redaction 1", content))
    }

    fn bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

/// What is hidden.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Scope {
    /// Paths, arguments, addresses, hosts, users, containers and free text.
    #[default]
    Texts,
    /// Also names of threads, of user-space functions, and of program events.
    Names,
}

impl Scope {
    /// The name in the manifest and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Texts => "texts",
            Self::Names => "names",
        }
    }
}

type Remembered = FxHashMap<Box<str>, Box<str>>;

/// Replaces texts; can be used from several threads.
#[derive(Debug)]
pub struct Redactor {
    cipher: Cipher,
    scope: Scope,
    /// Kernel functions, the names of which stay.
    kernel: BTreeSet<String>,
    keep: Keep,
    /// Replacements of words, by [`Lexicon`].
    words: [RwLock<Remembered>; 2],
}

impl Redactor {
    /// A redactor that keeps only what its scope keeps.
    pub fn new(key: Key, scope: Scope) -> Self {
        Self {
            cipher: Cipher::new(key),
            scope,
            kernel: BTreeSet::new(),
            keep: Keep::default(),
            words: Default::default(),
        }
    }

    /// Keeps these function names.
    pub fn with_kernel(mut self, functions: BTreeSet<String>) -> Self {
        self.kernel = functions;
        self
    }

    /// Keeps these names.
    pub fn keeping(mut self, keep: Keep) -> Self {
        self.keep = keep;
        self
    }

    /// What it hides.
    pub fn scope(&self) -> Scope {
        self.scope
    }

    /// The replacement of a text.
    pub fn text(&self, class: Class, text: &str) -> String {
        let hides_names = self.scope == Scope::Names;
        if self.keep.name(text) && !class.holds_others() {
            return text.to_owned();
        }
        match class {
            Class::Object => self.object(text),
            Class::Address => self.addresses(text),
            Class::Host => self.host(text),
            Class::Command => self.command(text),
            Class::Argument => self.argument(text),
            Class::Name => self.words(text, Lexicon::Common),
            Class::Text | Class::Fact => self.free(text),
            Class::Log => self.log(text),
            Class::ResolverFile => self.resolver(text),
            Class::MountSource => self.mount_source(text),
            Class::MountOptions => self.mount_options(text),
            Class::Comm if hides_names => self.comm(text),
            Class::Function if hides_names && !self.kernel.contains(text) => {
                self.words(text, Lexicon::Common)
            }
            Class::Event if hides_names && text.contains(':') => self.words(text, Lexicon::Common),
            Class::Public | Class::Comm | Class::Function | Class::Event => text.to_owned(),
        }
    }

    /// The manifest: time range and table sizes stay.
    pub fn info(&self, info: &RecordingInfo) -> RecordingInfo {
        let source = |source: &SourceInfo| SourceInfo {
            path: self.object(&source.path),
            kind: source.kind.clone(),
            bytes: source.bytes,
            digest: self.token(&source.digest),
        };
        // Field by field: each new field requires a decision here.
        let RecordingInfo {
            format_version,
            written_by,
            sources,
            host,
            zone,
            begin_ns,
            end_ns,
            tables,
            cut,
            redacted,
        } = info;
        RecordingInfo {
            format_version: *format_version,
            written_by: written_by.clone(),
            sources: sources.iter().map(source).collect(),
            host: host.as_deref().map(|host| self.host(host)),
            zone: zone.clone(),
            begin_ns: *begin_ns,
            end_ns: *end_ns,
            tables: tables.clone(),
            cut: cut.clone(),
            redacted: Some(match (redacted.as_deref(), self.scope) {
                // What was redacted before remains redacted.
                (Some(before), Scope::Texts) => before.to_owned(),
                (_, scope) => scope.name().to_owned(),
            }),
        }
    }

    /// Kernel threads have the same names everywhere: they stay.
    fn comm(&self, comm: &str) -> String {
        const KERNEL: [&str; 22] = [
            "kworker/",
            "ksoftirqd/",
            "migration/",
            "cpuhp/",
            "idle_inject/",
            "rcu_",
            "rcuog/",
            "rcuop/",
            "rcuob/",
            "kswapd",
            "kcompactd",
            "jbd2/",
            "xfs-",
            "xfsaild/",
            "btrfs-",
            "ext4-",
            "irq/",
            "scsi_",
            "swapper",
            "dmcrypt_write",
            "kdmflush",
            "nvme-",
        ];
        if KERNEL.iter().any(|name| comm.starts_with(name)) {
            return comm.to_owned();
        }
        self.words(comm, Lexicon::Common)
    }

    fn cipher(&self) -> &Cipher {
        &self.cipher
    }

    fn remembered(&self, word: &str, lexicon: Lexicon) -> Option<String> {
        let words = self.words[lexicon as usize].read();
        let words = words.unwrap_or_else(PoisonError::into_inner);
        words.get(word).map(ToString::to_string)
    }

    fn remember(&self, word: &str, lexicon: Lexicon, new: &str) {
        let words = self.words[lexicon as usize].write();
        let mut words = words.unwrap_or_else(PoisonError::into_inner);
        if words.len() < REMEMBERED {
            words.insert(word.into(), new.into());
        }
    }
}
