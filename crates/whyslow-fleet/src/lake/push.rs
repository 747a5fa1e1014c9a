//! Pushes a recording into the lake: its tables first, its commit last.
//!
//! All content and all object names are derived from the recording. So an interrupted push is
//! completed by the same command, two concurrent pushes write the same objects, and pushing a
//! recording that is already there changes nothing.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use whyslow_model::text::is_name;
use whyslow_store::{RecordingInfo, Tables};

use super::commit::Commit;
use super::layout::{Member, Partition, VERSION};
use super::{Lake, LakeError};
use crate::columns::LakeRow;
use crate::encode::encode;
use crate::summary::{RecordingFacts, Summary};

/// Commits of recordings that are in compacted files.
pub(super) const MERGED: &str = "_merged";
/// Packed recordings (`--whole`).
pub(super) const WHOLE: &str = "_recordings";

/// How a recording is pushed.
#[derive(Debug, Clone)]
pub struct PushOptions {
    /// Cluster that the host belongs to.
    pub cluster: String,
    /// Send it even if it is there, because it was damaged or written by an older version.
    pub replace: bool,
    /// The packed recording, to be uploaded.
    pub whole: Option<PathBuf>,
}

/// Result of a push.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pushed {
    /// Number of objects sent; 0 if it was there already.
    pub objects: u64,
    /// Bytes of these objects.
    pub bytes: u64,
    /// Those of them that an earlier, interrupted push had already sent.
    pub kept: u64,
}

impl Pushed {
    const NOTHING: Self = Self {
        objects: 0,
        bytes: 0,
        kept: 0,
    };

    /// Whether the recording was in the lake before.
    pub fn was_there(&self) -> bool {
        self.objects == 0
    }
}

impl Lake {
    /// Pushes a recording into the lake, unless it is there.
    pub fn push(
        &self,
        tables: &dyn Tables,
        facts: &RecordingFacts,
        options: &PushOptions,
        cancel: &AtomicBool,
    ) -> Result<Pushed, LakeError> {
        let info = tables.info();
        let place = Place::of(facts, options, info)?;
        let there = self.existing_commit(&place, facts, info, options.replace)?;
        let has_all = |(commit, _): &(Commit, Kept)| {
            (commit.raw || !facts.raw) && (commit.whole.is_some() || options.whole.is_none())
        };
        if there.as_ref().is_some_and(has_all) && !options.replace {
            return Ok(Pushed::NOTHING);
        }
        // What was sent before is kept.
        let has_raw = facts.raw || there.as_ref().is_some_and(|(before, _)| before.raw);
        let mut commit = Commit {
            host: Some(facts.host.clone()),
            recording: Some(facts.recording.clone()),
            digest: Some(facts.digest.clone()),
            redacted: info.redacted.clone(),
            origin: facts.origin.clone(),
            raw: has_raw,
            ..Commit::new(&options.cluster, info.begin_ns, info.end_ns)
        };
        let mut pushed = Pushed::NOTHING;
        let (before, kept) = there.unzip();
        match kept {
            Some(kept) if options.replace && self.is_merged(&place, kept)? => {
                return Err(LakeError::Merged {
                    recording: facts.recording.clone(),
                });
            }
            // Its rows are in the compacted file.
            Some(Kept::Merged) => {}
            _ => {
                let facts = RecordingFacts {
                    raw: has_raw,
                    ..facts.clone()
                };
                self.push_summary(tables, &facts, &place, (&mut commit, &mut pushed), cancel)?;
            }
        }
        if facts.raw {
            self.push_raw(
                tables,
                (facts, options),
                &place,
                (&mut commit, &mut pushed),
                cancel,
            )?;
        }
        if let Some(path) = &options.whole {
            self.push_whole((path, options), &place, (&mut commit, &mut pushed), cancel)?;
        }
        if let Some(before) = &before {
            keep(before, &mut commit);
        }
        check(cancel)?;
        let name = match kept {
            Some(Kept::Merged) => place.merged(),
            _ => place.partition.commit(&place.member),
        };
        let content = commit.json();
        pushed.sent(content.len() as u64);
        self.wait(self.commit_as(&name, content))?;
        Ok(pushed)
    }

    /// The existing commit, unless its texts are redacted differently: unredacted texts must not be
    /// taken for redacted ones, nor stay readable next to them.
    fn existing_commit(
        &self,
        place: &Place,
        facts: &RecordingFacts,
        info: &RecordingInfo,
        replace: bool,
    ) -> Result<Option<(Commit, Kept)>, LakeError> {
        let there = self.wait(self.committed(place))?;
        let Some((before, kept)) = there else {
            // It may be there under another host name, because redaction changes host names.
            let elsewhere = match info.redacted {
                Some(_) => self.find(&facts.recording)?,
                None => None,
            };
            return match elsewhere {
                Some(found) => Err(redaction_mismatch(facts, &found.commit)),
                None => Ok(None),
            };
        };
        if before.redacted == info.redacted {
            return Ok(Some((before, kept)));
        }
        if !replace || self.is_merged(place, kept)? {
            return Err(redaction_mismatch(facts, &before));
        }
        // The commit is deleted last, so that the same command completes an interrupted run.
        let files = before.tables.values().chain(&before.whole);
        let own = files.filter(|file| file.file.contains(&place.member.stem()));
        for file in own {
            self.wait(self.delete(&format!("{VERSION}/{}", file.file)))?;
        }
        self.wait(self.delete(&place.partition.commit(&place.member)))?;
        Ok(None)
    }

    fn push_summary(
        &self,
        tables: &dyn Tables,
        facts: &RecordingFacts,
        place: &Place,
        (commit, pushed): (&mut Commit, &mut Pushed),
        cancel: &AtomicBool,
    ) -> Result<(), LakeError> {
        for (table, rows, content) in files(&Summary::of(tables, facts)?)? {
            check(cancel)?;
            let name = place.partition.file(table, &place.member);
            let bytes = content.len() as u64;
            self.wait(self.put(&name, content))?;
            commit.add(table, &name, rows, bytes);
            pushed.sent(bytes);
        }
        Ok(())
    }

    /// The commit of a recording, if it is in the lake.
    async fn committed(&self, place: &Place) -> Result<Option<(Commit, Kept)>, LakeError> {
        let names = [
            (place.merged(), Kept::Merged),
            (place.partition.commit(&place.member), Kept::Own),
        ];
        for (name, kept) in names {
            if self.size(&name).await?.is_some() {
                match Commit::parse(&name, &self.get(&name).await?) {
                    // Truncated by a store that reported no error: the push continues.
                    Err(LakeError::Damaged { .. }) => {}
                    commit => return Ok(Some((commit?, kept))),
                }
            }
        }
        Ok(None)
    }

    /// Whether its rows are in a compacted file, even if the compaction was killed before it moved
    /// the commit.
    fn is_merged(&self, place: &Place, kept: Kept) -> Result<bool, LakeError> {
        if kept == Kept::Merged {
            return Ok(true);
        }
        let day = self.wait(self.day(&place.partition))?;
        Ok(day.spent.contains(&place.member))
    }

    /// Publishes what was sent. A concurrent push may have written the same commit, and a response
    /// may have been lost; a truncated commit is rewritten.
    pub(super) async fn commit_as(&self, name: &str, content: Bytes) -> Result<(), LakeError> {
        if !self.create(name, content.clone()).await? && self.get(name).await? != content {
            self.put(name, content.clone()).await?;
        }
        if self.get(name).await? == content {
            return Ok(());
        }
        Err(LakeError::Damaged {
            object: name.to_owned(),
            reason: "the stored content differs from what was sent".to_owned(),
        })
    }
}

fn redaction_mismatch(facts: &RecordingFacts, there: &Commit) -> LakeError {
    LakeError::Otherwise {
        recording: facts.recording.clone(),
        host: there.host.clone().unwrap_or_default(),
        is_hidden: there.redacted.is_some(),
    }
}

/// Where the rows of a recording are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kept {
    /// In files of their own.
    Own,
    /// In those of a compaction.
    Merged,
}

/// Location of a recording's files.
pub(super) struct Place {
    pub(super) partition: Partition,
    pub(super) member: Member,
}

impl Place {
    fn of(
        facts: &RecordingFacts,
        options: &PushOptions,
        info: &RecordingInfo,
    ) -> Result<Self, LakeError> {
        for (of, name) in [("host", &facts.host), ("cluster", &options.cluster)] {
            if !is_name(name) {
                return Err(LakeError::Name {
                    of,
                    name: name.clone(),
                });
            }
        }
        Ok(Self {
            partition: Partition::of(&options.cluster, info.begin_ns),
            member: Member::One {
                host: facts.host.clone(),
                recording: facts.recording.clone(),
            },
        })
    }

    /// Its commit, once its rows are in a compacted file.
    pub(super) fn merged(&self) -> String {
        format!(
            "{}/{}.json",
            self.partition.prefix(MERGED),
            self.member.stem()
        )
    }

    /// The packed recording.
    pub(super) fn whole(&self) -> String {
        let folder = self.partition.prefix(WHOLE);
        format!("{folder}/{}.wsl.tar.zst", self.member.stem())
    }
}

impl Pushed {
    pub(super) fn sent(&mut self, bytes: u64) {
        self.objects += 1;
        self.bytes += bytes;
    }
}

pub(super) fn check(cancel: &AtomicBool) -> Result<(), LakeError> {
    if cancel.load(Ordering::Relaxed) {
        return Err(LakeError::Interrupted);
    }
    Ok(())
}

/// Keeps earlier raw tables and packed recordings in the new commit.
fn keep(before: &Commit, commit: &mut Commit) {
    for (table, file) in &before.tables {
        commit
            .tables
            .entry(table.clone())
            .or_insert_with(|| file.clone());
    }
    if commit.whole.is_none() {
        commit.whole.clone_from(&before.whole);
    }
}

type File = (&'static str, u64, Bytes);

fn files(summary: &Summary) -> Result<Vec<File>, LakeError> {
    fn file<R: LakeRow>(rows: &[R]) -> Result<File, LakeError> {
        let table = R::TABLE.name;
        let content = encode(rows).map_err(|source| LakeError::Encode {
            table: table.to_owned(),
            source,
        })?;
        Ok((table, rows.len() as u64, content))
    }
    Ok(vec![
        file(std::slice::from_ref(&summary.recording))?,
        file(&summary.labels)?,
        file(&summary.findings)?,
        file(&summary.rollups)?,
        file(&summary.histograms)?,
        file(&summary.slowest)?,
    ])
}
