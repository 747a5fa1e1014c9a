//! A recording is put into the lake: its tables first, its commit at last.
//!
//! Everything that is sent follows from the recording, and lies under names that follow from it. So a
//! push that was cut is made again by the same command, two at once write the same, and one of what is
//! there already changes nothing.

use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use whyslow_store::Tables;

use super::commit::Commit;
use super::layout::{Member, Partition, is_name};
use super::{Lake, LakeError};
use crate::columns::LakeRow;
use crate::encode::encode;
use crate::summary::{Summary, Told};

/// Where commits go whose recordings are in compacted files.
pub(super) const MERGED: &str = "_merged";

#[derive(Debug, Clone)]
pub struct PushOptions {
    /// Cluster that the host belongs to.
    pub cluster: String,
    /// Send it also if it is there, because it was damaged or made by an earlier program.
    pub replace: bool,
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
        for (of, name) in [("host", &told.host), ("cluster", &options.cluster)] {
            if !is_name(name) {
                return Err(LakeError::Name {
                    of,
                    name: name.clone(),
                });
            }
        }
        let info = tables.info();
        let place = Place {
            partition: Partition::of(&options.cluster, info.begin_ns),
            member: Member::One {
                host: told.host.clone(),
                recording: told.recording.clone(),
            },
        };
        let there = self.wait(self.there(&place))?;
        let lacks_raw = told.raw && there.as_ref().is_some_and(|commit| !has_raw(commit));
        if there.is_some() && !options.replace && !lacks_raw {
            return Ok(Pushed::NOTHING);
        }
        // Whoever wants to stop has not sent anything yet.
        let files = files(&Summary::of(tables, told)?)?;
        let mut commit = Commit {
            host: Some(told.host.clone()),
            recording: Some(told.recording.clone()),
            digest: Some(told.digest.clone()),
            redacted: info.redacted.clone(),
            ..Commit::new(&options.cluster, info.begin_ns, info.end_ns)
        };
        let mut pushed = Pushed::NOTHING;
        for (table, rows, content) in files {
            check(cancel)?;
            let name = place.partition.file(table, &place.member);
            let bytes = content.len() as u64;
            self.wait(self.put(&name, content))?;
            commit.add(table, &name, rows, bytes);
            pushed.sent(bytes);
        }
        if told.raw {
            self.push_raw(tables, told, &place, (&mut commit, &mut pushed), cancel)?;
        }
        check(cancel)?;
        let (name, content) = (place.partition.commit(&place.member), commit.json());
        pushed.sent(content.len() as u64);
        self.wait(async {
            if there.is_some() {
                return self.put(&name, content).await;
            }
            if !self.create(&name, content.clone()).await? {
                // Somebody else pushed the same meanwhile, or an answer was lost on the way.
                Commit::parse(&name, &self.get(&name).await?)?;
            }
            self.check_committed(&name).await
        })?;
        Ok(pushed)
    }

    /// The commit of a recording, if it is in the lake.
    async fn there(&self, place: &Place) -> Result<Option<Commit>, LakeError> {
        let names = [place.partition.commit(&place.member), place.merged()];
        for name in names {
            if self.size(&name).await?.is_some() {
                match Commit::parse(&name, &self.get(&name).await?) {
                    // Cut on its way by a store that says nothing: the push goes on.
                    Err(LakeError::Damaged { .. }) => {}
                    commit => return commit.map(Some),
                }
            }
        }
        Ok(None)
    }

    /// What was committed is what others will read.
    async fn check_committed(&self, name: &str) -> Result<(), LakeError> {
        Commit::parse(name, &self.get(name).await?).map(|_| ())
    }
}

/// Where the files of a recording lie.
pub(super) struct Place {
    pub(super) partition: Partition,
    pub(super) member: Member,
}

impl Place {
    /// Its commit, once its rows are in a compacted file.
    pub(super) fn merged(&self) -> String {
        format!(
            "{}/{}.json",
            self.partition.prefix(MERGED),
            self.member.stem()
        )
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

fn has_raw(commit: &Commit) -> bool {
    let is_ours = |name: &&String| {
        crate::tables::ALL
            .iter()
            .any(|table| table.name == name.as_str())
    };
    commit.tables.keys().any(|name| !is_ours(&name))
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
