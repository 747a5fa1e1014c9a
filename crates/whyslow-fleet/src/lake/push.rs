//! A recording is put into the lake: its tables first, its commit at last.
//!
//! Everything that is sent follows from the recording, and lies under names that follow from it. So a
//! push that was cut is made again by the same command, two at once write the same, and one of what is
//! there already changes nothing.

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
use crate::summary::{Summary, Told};

/// Where commits go whose recordings are in compacted files.
pub(super) const MERGED: &str = "_merged";
/// Where recordings go that are pushed whole.
pub(super) const WHOLE: &str = "_recordings";

#[derive(Debug, Clone)]
pub struct PushOptions {
    /// Cluster that the host belongs to.
    pub cluster: String,
    /// Send it also if it is there, because it was damaged or made by an earlier program.
    pub replace: bool,
    /// Where the recording is packed, to be sent whole.
    pub whole: Option<PathBuf>,
}

/// What a push did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pushed {
    /// Objects and bytes that were sent; none if it was there already.
    pub objects: u64,
    pub bytes: u64,
    /// Those of them, of an earlier push that was cut, that needed not be sent again.
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
    /// Puts a recording into the lake, unless it is there.
    pub fn push(
        &self,
        tables: &dyn Tables,
        told: &Told,
        options: &PushOptions,
        cancel: &AtomicBool,
    ) -> Result<Pushed, LakeError> {
        let info = tables.info();
        let place = Place::of(told, options, info)?;
        let there = self.there_as_hidden(&place, told, info, options.replace)?;
        let has_all = |(commit, _): &(Commit, Kept)| {
            (commit.raw || !told.raw) && (commit.whole.is_some() || options.whole.is_none())
        };
        if there.as_ref().is_some_and(has_all) && !options.replace {
            return Ok(Pushed::NOTHING);
        }
        // What was sent before stays.
        let has_raw = told.raw || there.as_ref().is_some_and(|(before, _)| before.raw);
        let mut commit = Commit {
            host: Some(told.host.clone()),
            recording: Some(told.recording.clone()),
            digest: Some(told.digest.clone()),
            redacted: info.redacted.clone(),
            origin: told.origin.clone(),
            raw: has_raw,
            ..Commit::new(&options.cluster, info.begin_ns, info.end_ns)
        };
        let mut pushed = Pushed::NOTHING;
        let (before, kept) = there.unzip();
        match kept {
            Some(kept) if options.replace && self.is_merged(&place, kept)? => {
                return Err(LakeError::Merged {
                    recording: told.recording.clone(),
                });
            }
            // Its rows are in the compacted file.
            Some(Kept::Merged) => {}
            _ => {
                let told = Told {
                    raw: has_raw,
                    ..told.clone()
                };
                self.push_summary(tables, &told, &place, (&mut commit, &mut pushed), cancel)?;
            }
        }
        if told.raw {
            self.push_raw(
                tables,
                (told, options),
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

    /// What is there of it, unless its texts are hidden in another way: what is readable must not pass
    /// for hidden, nor stay readable beside it.
    fn there_as_hidden(
        &self,
        place: &Place,
        told: &Told,
        info: &RecordingInfo,
        replace: bool,
    ) -> Result<Option<(Commit, Kept)>, LakeError> {
        let there = self.wait(self.there(place))?;
        let Some((before, kept)) = there else {
            // Of another host, perhaps: hidden hosts have other names.
            let elsewhere = match info.redacted {
                Some(_) => self.find(&told.recording)?,
                None => None,
            };
            return match elsewhere {
                Some(found) => Err(otherwise(told, &found.commit)),
                None => Ok(None),
            };
        };
        if before.redacted == info.redacted {
            return Ok(Some((before, kept)));
        }
        if !replace || self.is_merged(place, kept)? {
            return Err(otherwise(told, &before));
        }
        // The commit last: what is cut here is made again by the same command.
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
        told: &Told,
        place: &Place,
        (commit, pushed): (&mut Commit, &mut Pushed),
        cancel: &AtomicBool,
    ) -> Result<(), LakeError> {
        for (table, rows, content) in files(&Summary::of(tables, told)?)? {
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
    async fn there(&self, place: &Place) -> Result<Option<(Commit, Kept)>, LakeError> {
        let names = [
            (place.merged(), Kept::Merged),
            (place.partition.commit(&place.member), Kept::Own),
        ];
        for (name, kept) in names {
            if self.size(&name).await?.is_some() {
                match Commit::parse(&name, &self.get(&name).await?) {
                    // Cut on its way by a store that says nothing: the push goes on.
                    Err(LakeError::Damaged { .. }) => {}
                    commit => return Ok(Some((commit?, kept))),
                }
            }
        }
        Ok(None)
    }

    /// Whether its rows are in a compacted file, also if the compaction was ended before it said so there.
    fn is_merged(&self, place: &Place, kept: Kept) -> Result<bool, LakeError> {
        if kept == Kept::Merged {
            return Ok(true);
        }
        let day = self.wait(self.day(&place.partition))?;
        Ok(day.spent.contains(&place.member))
    }

    /// Makes what was sent count. Another one may have pushed the same meanwhile, and an answer may have
    /// been lost on the way; what was cut there is written anew.
    pub(super) async fn commit_as(&self, name: &str, content: Bytes) -> Result<(), LakeError> {
        if !self.create(name, content.clone()).await? && self.get(name).await? != content {
            self.put(name, content.clone()).await?;
        }
        if self.get(name).await? == content {
            return Ok(());
        }
        Err(LakeError::Damaged {
            object: name.to_owned(),
            reason: "the store has something else than what was sent".to_owned(),
        })
    }
}

fn otherwise(told: &Told, there: &Commit) -> LakeError {
    LakeError::Otherwise {
        recording: told.recording.clone(),
        host: there.host.clone().unwrap_or_default(),
        is_hidden: there.redacted.is_some(),
    }
}

/// Where the rows of a recording are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kept {
    /// In files of its own.
    Own,
    /// In those of a compaction.
    Merged,
}

/// Where the files of a recording lie.
pub(super) struct Place {
    pub(super) partition: Partition,
    pub(super) member: Member,
}

impl Place {
    fn of(told: &Told, options: &PushOptions, info: &RecordingInfo) -> Result<Self, LakeError> {
        for (of, name) in [("host", &told.host), ("cluster", &options.cluster)] {
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
                host: told.host.clone(),
                recording: told.recording.clone(),
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

    /// The recording itself, packed.
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

/// What was pushed before beside the lake's own tables stays known.
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
