//! Mutual exclusion: the process that compacts or expires a lake holds a lock object.
//!
//! Pushes and queries need no lock. A lock that was not renewed for an hour is left over from a
//! killed process.

use bytes::Bytes;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::layout::VERSION;
use super::{Lake, LakeError};

const STALE_SECONDS: i64 = 3600;

#[derive(Debug, Serialize, Deserialize)]
struct Owner {
    /// When it was taken or renewed, RFC 3339.
    at: String,
    /// Random id of the owner.
    id: String,
}

/// Held until dropped.
pub(super) struct Lock<'l> {
    lake: &'l Lake,
    id: String,
}

fn name() -> String {
    format!("{VERSION}/_lock.json")
}

impl Owner {
    fn json(id: &str) -> Bytes {
        let owner = Self {
            at: Timestamp::now().to_string(),
            id: id.to_owned(),
        };
        serde_json::to_vec(&owner).expect("texts only").into()
    }
}

impl<'l> Lock<'l> {
    pub(super) fn take(lake: &'l Lake) -> Result<Self, LakeError> {
        let id = own_id();
        lake.wait(async {
            if lake.create(&name(), Owner::json(&id)).await? {
                return Ok(());
            }
            let content = lake.get(&name()).await?;
            let owner: Option<Owner> = serde_json::from_slice(&content).ok();
            let since = owner.and_then(|owner| owner.at.parse::<Timestamp>().ok());
            let age = since.map_or(i64::MAX, |since| {
                Timestamp::now().as_second() - since.as_second()
            });
            if age < STALE_SECONDS {
                return Err(LakeError::Busy {
                    since: since.map(|since| since.to_string()).unwrap_or_default(),
                    object: name(),
                });
            }
            lake.put(&name(), Owner::json(&id)).await
        })?;
        let lock = Self { lake, id };
        // If two found a stale lock, the last writer owns it.
        lock.check()?;
        Ok(lock)
    }

    /// Renews the lock; fails if it was lost.
    pub(super) fn renew(&self) -> Result<(), LakeError> {
        self.check()?;
        self.lake
            .wait(self.lake.put(&name(), Owner::json(&self.id)))
    }

    fn check(&self) -> Result<(), LakeError> {
        let content = self.lake.wait(self.lake.get(&name()))?;
        let owner: Option<Owner> = serde_json::from_slice(&content).ok();
        match owner {
            Some(owner) if owner.id == self.id => Ok(()),
            owner => Err(LakeError::Busy {
                since: owner.map(|owner| owner.at).unwrap_or_default(),
                object: name(),
            }),
        }
    }
}

impl Drop for Lock<'_> {
    fn drop(&mut self) {
        if self.check().is_ok() {
            // If this fails, the lock expires in an hour.
            let _ = self.lake.wait(self.lake.delete(&name()));
        }
    }
}

fn own_id() -> String {
    let mut hasher = blake3::Hasher::new();
    hasher.update(Timestamp::now().as_nanosecond().to_string().as_bytes());
    hasher.update(&std::process::id().to_le_bytes());
    let address = std::ptr::from_ref(&hasher) as usize;
    hasher.update(&address.to_le_bytes());
    hasher.finalize().to_hex()[..16].to_owned()
}
