//! Commits: one for each recording in the lake and one for each compaction.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use jiff::Timestamp;
use object_store::ObjectMeta;
use serde::{Deserialize, Serialize};
use whyslow_model::Ns;

use super::layout::{self, COMMITS, Member, Partition, VERSION};
use super::{Lake, LakeError};

/// Version of the commit format and of the tables' columns, within one layout. Version 2 renamed
/// columns of `finding`; those of version 1 are translated when they are read (`encode`).
const COMMIT_VERSION: u32 = 2;
/// A larger commit was not written by us.
const COMMIT_BYTES_MAX: u64 = 256 << 20;

/// One file of a table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileInfo {
    /// Below `v1/`.
    pub file: String,
    /// Number of rows; 0 for a packed recording.
    pub rows: u64,
    /// Size of the object.
    pub bytes: u64,
}

/// A recording contained in a compaction.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct RecordingKey {
    pub host: String,
    pub recording: String,
}

/// States that these files are in the lake, and what they contain.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Commit {
    /// Version of the commit; readers reject later ones.
    pub version: u32,
    /// Id of the recording; `None` for a compaction.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recording: Option<String>,
    /// Host of the recording; `None` for a compaction.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// Cluster that the host belongs to.
    pub cluster: String,
    /// Start, ns since the epoch.
    pub begin_ns: Ns,
    /// End, ns since the epoch.
    pub end_ns: Ns,
    /// Digest of the recording's content.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// What was redacted in its texts, as in
    /// [`RecordingInfo::redacted`](whyslow_store::RecordingInfo::redacted).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub redacted: Option<String>,
    /// Where the recording was when it was pushed: `HOST:PATH`; `None` if that is redacted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<String>,
    /// Its file in each table that has rows.
    pub tables: BTreeMap<String, FileInfo>,
    /// Whether it was pushed with its own tables, of which it may have none.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub raw: bool,
    /// The packed recording, if it was pushed; its rows are not counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub whole: Option<FileInfo>,
    /// Of a compaction: the recordings whose rows its files contain. They replace the files of
    /// these recordings.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub recordings: Vec<RecordingKey>,
    /// Compactions that are no longer valid.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub replaces: Vec<String>,
    /// Program and version.
    pub written_by: String,
}

impl Commit {
    pub(crate) fn new(cluster: &str, begin_ns: Ns, end_ns: Ns) -> Self {
        Self {
            version: COMMIT_VERSION,
            cluster: cluster.to_owned(),
            begin_ns,
            end_ns,
            written_by: format!("whyslow {}", env!("CARGO_PKG_VERSION")),
            ..Self::default()
        }
    }

    pub(crate) fn json(&self) -> Bytes {
        let mut json = serde_json::to_vec_pretty(self).expect("texts and numbers only");
        json.push(b'\n');
        json.into()
    }

    pub(crate) fn parse(name: &str, json: &[u8]) -> Result<Self, LakeError> {
        let damaged = |reason: String| LakeError::Damaged {
            object: name.to_owned(),
            reason,
        };
        let commit: Self =
            serde_json::from_slice(json).map_err(|error| damaged(error.to_string()))?;
        if commit.version > COMMIT_VERSION {
            return Err(damaged(format!(
                "its version is {}, the latest supported is {COMMIT_VERSION}",
                commit.version
            )));
        }
        Ok(commit)
    }

    /// Adds a file of a table.
    pub(crate) fn add(&mut self, table: &str, file: &str, rows: u64, bytes: u64) {
        self.tables
            .insert(table.to_owned(), FileInfo::new(file, rows, bytes));
    }
}

impl FileInfo {
    pub(crate) fn new(file: &str, rows: u64, bytes: u64) -> Self {
        let below = file.strip_prefix(VERSION).unwrap_or(file);
        Self {
            file: below.trim_start_matches('/').to_owned(),
            rows,
            bytes,
        }
    }
}

/// Commits of one day of a cluster.
#[derive(Debug, Clone, Default)]
pub struct Day {
    /// Recordings with files of their own, and when they were committed.
    pub ones: BTreeMap<RecordingKey, Timestamp>,
    /// Valid compactions, and when they were committed.
    pub many: BTreeMap<String, (Commit, Timestamp)>,
    /// Commits of superseded recordings and compactions: their rows are in another compaction.
    pub spent: BTreeSet<Member>,
}

/// Contents of the lake.
#[derive(Debug, Clone, Default)]
pub struct Listing {
    /// Commits, by day and cluster.
    pub days: BTreeMap<Partition, Day>,
}

impl Listing {
    /// Number of recordings.
    pub fn recordings(&self) -> usize {
        let of = |day: &Day| {
            let many: usize = day
                .many
                .values()
                .map(|(commit, _)| commit.recordings.len())
                .sum();
            day.ones.len() + many
        };
        self.days.values().map(of).sum()
    }
}

impl Lake {
    /// All commits; those of compactions are read.
    pub fn listing(&self) -> Result<Listing, LakeError> {
        self.wait(self.listed(&Self::commits_folder()))
    }

    pub(super) async fn day(&self, partition: &Partition) -> Result<Day, LakeError> {
        let listed = self.listed(&partition.prefix(COMMITS)).await?;
        Ok(listed.days.into_values().next().unwrap_or_default())
    }

    async fn listed(&self, folder: &str) -> Result<Listing, LakeError> {
        let mut listing = Listing::default();
        for object in self.list(folder).await? {
            let Some((_, partition, member)) = layout::parse(&object.location) else {
                continue;
            };
            let at = timestamp(&object);
            let day = listing.days.entry(partition).or_default();
            match member {
                Member::One { host, recording } => {
                    day.ones.insert(RecordingKey { host, recording }, at);
                }
                Member::Many(id) => {
                    let commit = self.commit_of(&object).await?;
                    day.many.insert(id, (commit, at));
                }
            }
        }
        listing.days.values_mut().for_each(settle);
        Ok(listing)
    }

    async fn commit_of(&self, object: &ObjectMeta) -> Result<Commit, LakeError> {
        let name = object.location.as_ref();
        if object.size > COMMIT_BYTES_MAX {
            return Err(LakeError::Damaged {
                object: name.to_owned(),
                reason: format!("a commit cannot have {} bytes", object.size),
            });
        }
        Commit::parse(name, &self.get(name).await?)
    }
}

/// Removes superseded commits.
fn settle(day: &mut Day) {
    let replaced: BTreeSet<String> = day
        .many
        .values()
        .flat_map(|(commit, _)| &commit.replaces)
        .map(|id| id.trim_start_matches(layout::COMPACTED).to_owned())
        .collect();
    for id in replaced {
        if day.many.remove(&id).is_some() {
            day.spent.insert(Member::Many(id));
        }
    }
    let held: BTreeSet<RecordingKey> = day
        .many
        .values()
        .flat_map(|(commit, _)| commit.recordings.iter().cloned())
        .collect();
    for one in held {
        if day.ones.remove(&one).is_some() {
            day.spent.insert(Member::One {
                host: one.host,
                recording: one.recording,
            });
        }
    }
}

/// Truncated to seconds, the resolution of object stores.
fn timestamp(object: &ObjectMeta) -> Timestamp {
    Timestamp::from_second(object.last_modified.timestamp()).unwrap_or(Timestamp::UNIX_EPOCH)
}
