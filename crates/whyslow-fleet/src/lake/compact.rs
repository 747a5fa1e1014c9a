//! Compaction: merges many small files into few. Thousands of hosts push one file per recording and
//! table, and a query that opens each of them mostly waits for the store.
//!
//! The rows of some recordings of a day are sorted together into one file per table, and a single
//! commit publishes it; from then on the original files are no longer read. They are kept for a
//! while for queries that listed them earlier ([`CompactOptions::grace`]) and deleted by a later
//! run. A file is never modified.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use arrow_array::{ArrayRef, RecordBatch};
use arrow_select::concat::concat_batches;
use arrow_select::take::take_record_batch;
use jiff::Timestamp;
use parquet::errors::ParquetError;

use super::commit::{Commit, Day, RecordingKey};
use super::layout::{Member, Partition};
use super::lock::Lock;
use super::push::{Place, check};
use super::{Lake, LakeError};
use crate::columns::LakeTable;
use crate::encode::{decode, encode_batch};
use crate::identity::ulid;
use crate::row_order::row_order;
use crate::tables;

/// Maximum number of recordings in a compacted file: their rows are in memory together.
const RECORDINGS_MAX: usize = 500;
/// Maximum size of their files together.
const BYTES_MAX: u64 = 24 << 20;

/// What is compacted, and when the originals are deleted.
#[derive(Debug, Clone, Copy)]
pub struct CompactOptions {
    /// Days with fewer uncompacted files are left unchanged.
    pub files_min: usize,
    /// How long superseded files are kept.
    pub grace: Duration,
}

impl Default for CompactOptions {
    fn default() -> Self {
        Self {
            files_min: 8,
            grace: Duration::from_hours(1),
        }
    }
}

/// Result of a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Compacted {
    /// Recordings that were merged.
    pub recordings: u64,
    /// Number of compactions written.
    pub compactions: u64,
    /// Bytes of their tables before.
    pub bytes_before: u64,
    /// Bytes of the compacted files.
    pub bytes_after: u64,
    /// Files that were deleted because nothing reads them any more.
    pub deleted: u64,
}

/// A recording that may be merged with others.
struct One {
    held: RecordingKey,
    commit: Commit,
}

impl Lake {
    /// Merges small files, day by day.
    pub fn compact(
        &self,
        options: &CompactOptions,
        cancel: &AtomicBool,
    ) -> Result<Compacted, LakeError> {
        let lock = Lock::take(self)?;
        let listing = self.listing()?;
        let mut done = Compacted::default();
        for (partition, day) in &listing.days {
            check(cancel)?;
            lock.renew()?;
            self.finish(partition, day, cancel)?;
            if day.ones.len() >= options.files_min.max(2) {
                self.compact_day(partition, day, (&lock, cancel), &mut done)?;
            }
            done.deleted += self.sweep(partition, options.grace, cancel)?;
        }
        Ok(done)
    }

    /// Completes an earlier run that was killed after its commit: moves the commits of recordings
    /// whose rows it contains.
    fn finish(
        &self,
        partition: &Partition,
        day: &Day,
        cancel: &AtomicBool,
    ) -> Result<(), LakeError> {
        for member in &day.spent {
            check(cancel)?;
            if let Member::One { .. } = member {
                let name = partition.commit(member);
                let commit = Commit::parse(&name, &self.wait(self.get(&name))?)?;
                self.wait(self.supersede(partition, member, &commit))?;
            }
        }
        Ok(())
    }

    /// Moves a superseded commit to where pushes still find it and readers do not.
    async fn supersede(
        &self,
        partition: &Partition,
        member: &Member,
        commit: &Commit,
    ) -> Result<(), LakeError> {
        let place = Place {
            partition: partition.clone(),
            member: member.clone(),
        };
        self.put(&place.merged(), commit.json()).await?;
        self.delete(&partition.commit(member)).await
    }

    fn compact_day(
        &self,
        partition: &Partition,
        day: &Day,
        (lock, cancel): (&Lock<'_>, &AtomicBool),
        done: &mut Compacted,
    ) -> Result<(), LakeError> {
        let (mut batch, mut bytes) = (Vec::new(), 0);
        for held in day.ones.keys() {
            check(cancel)?;
            let member = member(held);
            let name = partition.commit(&member);
            let commit = Commit::parse(&name, &self.wait(self.get(&name))?)?;
            let own = own_bytes(&commit);
            if !batch.is_empty() && (batch.len() >= RECORDINGS_MAX || bytes + own > BYTES_MAX) {
                self.merge(partition, std::mem::take(&mut batch), done)?;
                lock.renew()?;
                bytes = 0;
            }
            bytes += own;
            batch.push(One {
                held: held.clone(),
                commit,
            });
        }
        if batch.len() > 1 {
            self.merge(partition, batch, done)?;
        }
        Ok(())
    }

    fn merge(
        &self,
        partition: &Partition,
        ones: Vec<One>,
        done: &mut Compacted,
    ) -> Result<(), LakeError> {
        let begin = ones
            .iter()
            .map(|one| one.commit.begin_ns)
            .min()
            .unwrap_or(0);
        let end = ones.iter().map(|one| one.commit.end_ns).max().unwrap_or(0);
        let id = id_of(begin, &ones);
        let member = Member::Many(id);
        let mut commit = Commit {
            recordings: ones.iter().map(|one| one.held.clone()).collect(),
            ..Commit::new(&partition.cluster, begin, end)
        };
        for table in tables::ALL {
            let batch = self.wait(self.rows_of(table, partition, &ones))?;
            let failed = |source: ParquetError| LakeError::Encode {
                table: table.name.to_owned(),
                source,
            };
            let content = encode_batch(table, &batch).map_err(failed)?;
            let (name, bytes) = (partition.file(table.name, &member), content.len() as u64);
            self.wait(self.put(&name, content))?;
            commit.add(table.name, &name, batch.num_rows() as u64, bytes);
            done.bytes_after += bytes;
        }
        let name = partition.commit(&member);
        self.wait(self.commit_as(&name, commit.json()))?;
        // From here on, the original files are no longer read.
        for one in &ones {
            self.wait(self.supersede(partition, &self::member(&one.held), &one.commit))?;
            done.bytes_before += own_bytes(&one.commit);
        }
        done.recordings += ones.len() as u64;
        done.compactions += 1;
        Ok(())
    }

    /// Rows of all of them, in table order.
    async fn rows_of(
        &self,
        table: &'static LakeTable,
        partition: &Partition,
        ones: &[One],
    ) -> Result<RecordBatch, LakeError> {
        let mut batches = Vec::new();
        for one in ones {
            let name = partition.file(table.name, &member(&one.held));
            let content = self.get(&name).await?;
            let file = one.commit.tables.get(table.name);
            if let Some(file) = file.filter(|file| file.bytes != content.len() as u64) {
                return Err(LakeError::Cut {
                    object: name,
                    sent: file.bytes,
                    found: content.len() as u64,
                });
            }
            let decoded = decode(table, content).map_err(|error| LakeError::Damaged {
                object: name,
                reason: error.to_string(),
            })?;
            batches.extend(decoded);
        }
        sorted(table, &batches).map_err(|source| LakeError::Encode {
            table: table.name.to_owned(),
            source,
        })
    }
}

fn sorted(table: &LakeTable, batches: &[RecordBatch]) -> Result<RecordBatch, ParquetError> {
    let all = concat_batches(&table.schema(), batches)?;
    // Ties are broken by the owner of the rows, so that equal lakes have equal files.
    let last = ["recording", "nr", "id"]
        .into_iter()
        .filter(|name| all.column_by_name(name).is_some());
    let names = table.sorted_by.iter().copied().chain(last);
    let columns: Vec<ArrayRef> = names
        .filter_map(|name| all.column_by_name(name))
        .map(Arc::clone)
        .collect();
    Ok(take_record_batch(&all, &row_order(&columns)?)?)
}

pub(super) fn member(held: &RecordingKey) -> Member {
    Member::One {
        host: held.host.clone(),
        recording: held.recording.clone(),
    }
}

/// Size of the lake's own tables; raw tables are not compacted.
fn own_bytes(commit: &Commit) -> u64 {
    let ours = |name: &str| tables::ALL.iter().any(|table| table.name == name);
    let files = commit.tables.iter().filter(|(name, _)| ours(name));
    files.map(|(_, file)| file.bytes).sum()
}

/// Depends only on the recordings, so an interrupted run is repeated under the same names.
fn id_of(begin_ns: i64, ones: &[One]) -> String {
    let mut hasher = blake3::Hasher::new_derive_key("whyslow compaction 1");
    for one in ones {
        for text in [&one.held.host, &one.held.recording] {
            hasher.update(&(text.len() as u64).to_le_bytes());
            hasher.update(text.as_bytes());
        }
    }
    let mut random = [0; 10];
    random.copy_from_slice(&hasher.finalize().as_bytes()[..10]);
    ulid(begin_ns.div_euclid(1_000_000), random)
}

/// Time since `at`.
pub(super) fn age(at: Timestamp) -> Duration {
    let seconds = Timestamp::now().as_second() - at.as_second();
    Duration::from_secs(seconds.max(0) as u64)
}
