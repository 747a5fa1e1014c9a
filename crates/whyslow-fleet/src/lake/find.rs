//! Locates the recording that a row of the lake came from.

use std::io::Write;

use futures_util::TryStreamExt as _;
use object_store::ObjectStoreExt as _;

use super::commit::Commit;
use super::layout::{self, COMMITS, Member, VERSION};
use super::push::MERGED;
use super::{Lake, LakeError};
use crate::identity;

/// A recording in the lake.
#[derive(Debug, Clone)]
pub struct Found {
    /// UTC day of its partition: `YYYY-MM-DD`.
    pub day: String,
    /// Its commit.
    pub commit: Commit,
}

impl Lake {
    /// The commit of a recording; `None` if it is not in the lake. The day follows from its id.
    pub fn find(&self, recording: &str) -> Result<Option<Found>, LakeError> {
        let Some(day) = identity::ms_of(recording).map(layout::day_of_ms) else {
            return Err(LakeError::Name {
                of: "recording",
                name: recording.to_owned(),
            });
        };
        self.wait(async {
            for under in [COMMITS, MERGED] {
                for object in self.list(&format!("{VERSION}/{under}/dt={day}")).await? {
                    let name = object.location.as_ref();
                    let is_it = match Member::of_name(name) {
                        Some(Member::One { recording: of, .. }) => of == recording,
                        _ => false,
                    };
                    if is_it {
                        let commit = Commit::parse(name, &self.get(name).await?)?;
                        return Ok(Some(Found { day, commit }));
                    }
                }
            }
            Ok(None)
        })
    }

    /// Writes a packed recording (pushed with `--whole`) and returns its bytes; `None` if it was
    /// not pushed.
    pub fn fetch(&self, found: &Found, out: &mut dyn Write) -> Result<Option<u64>, LakeError> {
        let Some(whole) = &found.commit.whole else {
            return Ok(None);
        };
        let name = format!("{VERSION}/{}", whole.file);
        let bytes = self.wait(async {
            let read = self.store.get(&self.path(&name)).await;
            let mut content = read.map_err(LakeError::store("read", &name))?.into_stream();
            let mut bytes = 0;
            while let Some(part) = content
                .try_next()
                .await
                .map_err(LakeError::store("read", &name))?
            {
                bytes += part.len() as u64;
                out.write_all(&part).map_err(|source| LakeError::Io {
                    what: "write the copy of",
                    path: name.clone(),
                    source,
                })?;
            }
            Ok::<u64, LakeError>(bytes)
        })?;
        if bytes != whole.bytes {
            return Err(LakeError::Cut {
                object: name,
                sent: whole.bytes,
                found: bytes,
            });
        }
        Ok(Some(bytes))
    }
}
