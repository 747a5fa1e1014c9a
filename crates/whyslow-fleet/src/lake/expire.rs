//! Deletes days that are too old or exceed the size limit, and files that nothing reads.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use jiff::Timestamp;
use object_store::path::Path;
use object_store::{ObjectMeta, ObjectStore as _};

use super::commit::Day;
use super::compact::{age, member};
use super::layout::{self, COMMITS, Member, Partition, VERSION};
use super::lock::Lock;
use super::push::check;
use super::{Lake, LakeError};
use crate::tables;

/// A push that sent files but committed none of them for this long is considered abandoned.
const ABANDONED: Duration = Duration::from_hours(24);

/// What is deleted: days that are too old, and the oldest ones above a size.
#[derive(Debug, Clone, Copy, Default)]
pub struct ExpireOptions {
    /// Days that ended longer ago are deleted.
    pub keep: Option<Duration>,
    /// The oldest days are deleted until this many bytes are left.
    pub bytes_max: Option<u64>,
    /// Only report what would be deleted.
    pub dry_run: bool,
}

/// What was deleted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Expired {
    /// Deleted days, by cluster.
    pub days: Vec<Partition>,
    /// Recordings of these days.
    pub recordings: u64,
    /// Deleted objects, including unread ones.
    pub objects: u64,
    /// Bytes of these objects.
    pub bytes: u64,
    /// Bytes left.
    pub bytes_left: u64,
}

impl Lake {
    /// Deletes whole days of clusters, commits first, so that no query sees a partial day.
    pub fn expire(
        &self,
        options: &ExpireOptions,
        cancel: &AtomicBool,
    ) -> Result<Expired, LakeError> {
        // Without space for a lock, expiring is what frees some.
        let lock = if options.dry_run {
            None
        } else {
            match Lock::take(self) {
                Err(error) if error.is_full() => None,
                lock => Some(lock?),
            }
        };
        let listing = self.listing()?;
        let mut objects: BTreeMap<Partition, Vec<ObjectMeta>> = BTreeMap::new();
        for object in self.wait(self.list(VERSION))? {
            if let Some(partition) = partition_of(&object) {
                objects.entry(partition).or_default().push(object);
            }
        }
        let bytes = |objects: &[ObjectMeta]| objects.iter().map(|object| object.size).sum::<u64>();
        let mut left: u64 = objects.values().map(|objects| bytes(objects)).sum();
        let mut expired = Expired::default();
        // Days are sorted, oldest first.
        for (partition, objects) in &objects {
            check(cancel)?;
            let is_old = options
                .keep
                .is_some_and(|keep| ended(partition).is_some_and(|end| age(end) > keep));
            let is_much = options.bytes_max.is_some_and(|most| left > most);
            if !is_old && !is_much {
                continue;
            }
            if !options.dry_run {
                if let Some(lock) = &lock {
                    lock.renew()?;
                }
                self.wait(self.delete_all(objects))?;
            }
            left -= bytes(objects);
            expired.bytes += bytes(objects);
            expired.objects += objects.len() as u64;
            expired.recordings += listing.days.get(partition).map_or(0, recordings);
            expired.days.push(partition.clone());
        }
        expired.bytes_left = left;
        Ok(expired)
    }

    async fn delete_all(&self, objects: &[ObjectMeta]) -> Result<(), LakeError> {
        let is_commit = |object: &&ObjectMeta| {
            layout::parse(&object.location).is_some_and(|(under, ..)| under == COMMITS)
        };
        let (commits, others): (Vec<&ObjectMeta>, Vec<&ObjectMeta>) =
            objects.iter().partition(is_commit);
        for object in commits.into_iter().chain(others) {
            self.delete(object.location.as_ref()).await?;
        }
        Ok(())
    }

    /// Directories that contain tables.
    async fn tables(&self) -> Result<Vec<String>, LakeError> {
        let found = self
            .store
            .list_with_delimiter(Some(&self.path(VERSION)))
            .await;
        let found = found.map_err(LakeError::store("list", VERSION))?;
        let name = |path: &Path| path.filename().map(str::to_owned);
        let names = found.common_prefixes.iter().filter_map(name);
        Ok(names.filter(|name| !name.starts_with('_')).collect())
    }

    /// Deletes files of a day that nothing reads: those of recordings whose rows have been in a
    /// compacted file for longer than `grace`, and those of abandoned pushes. Returns their number.
    pub(super) fn sweep(
        &self,
        partition: &Partition,
        grace: Duration,
        cancel: &AtomicBool,
    ) -> Result<u64, LakeError> {
        let day = self.wait(self.day(partition))?;
        let mut deleted = 0;
        for table in self.wait(self.tables())? {
            check(cancel)?;
            // Compacted files contain rows of our own tables only.
            let grace = tables::ALL
                .iter()
                .any(|ours| ours.name == table)
                .then_some(grace);
            for object in self.wait(self.list(&partition.prefix(&table)))? {
                let Some((_, of, member)) = layout::parse(&object.location) else {
                    continue;
                };
                if of == *partition && is_unread(&day, &member, &object, grace) {
                    self.wait(self.delete(object.location.as_ref()))?;
                    deleted += 1;
                }
            }
        }
        for spent in day
            .spent
            .iter()
            .filter(|member| matches!(member, Member::Many(_)))
        {
            self.wait(self.delete(&partition.commit(spent)))?;
        }
        Ok(deleted)
    }
}

/// `grace` applies to files that a compacted file replaces.
fn is_unread(day: &Day, member: &Member, object: &ObjectMeta, grace: Option<Duration>) -> bool {
    let written =
        Timestamp::from_second(object.last_modified.timestamp()).unwrap_or(Timestamp::UNIX_EPOCH);
    match member {
        Member::Many(id) => !day.many.contains_key(id) && age(written) >= ABANDONED,
        one @ Member::One { .. } => {
            if day.ones.keys().any(|held| self::member(held) == *one) {
                return false;
            }
            let holder = day.many.values().find(|(commit, _)| {
                commit
                    .recordings
                    .iter()
                    .any(|held| self::member(held) == *one)
            });
            match holder {
                Some((_, since)) => grace.is_some_and(|grace| age(*since) >= grace),
                None => age(written) >= ABANDONED,
            }
        }
    }
}

fn recordings(day: &Day) -> u64 {
    let many: BTreeSet<_> = day
        .many
        .values()
        .flat_map(|(commit, _)| &commit.recordings)
        .collect();
    (day.ones.len() + many.len()) as u64
}

/// The partition of any object in it, table or not.
fn partition_of(object: &ObjectMeta) -> Option<Partition> {
    let name = object.location.as_ref();
    let mut parts = name.split('/').skip(2);
    let (day, cluster) = (
        parts.next()?.strip_prefix("dt=")?,
        parts.next()?.strip_prefix("cluster=")?,
    );
    let partition = Partition {
        day: day.to_owned(),
        cluster: cluster.to_owned(),
    };
    (parts.count() == 1 && ended(&partition).is_some()).then_some(partition)
}

/// The end of a day.
fn ended(partition: &Partition) -> Option<Timestamp> {
    let day: jiff::civil::Date = partition.day.parse().ok()?;
    let next = day.tomorrow().ok()?;
    Some(next.to_zoned(jiff::tz::TimeZone::UTC).ok()?.timestamp())
}
