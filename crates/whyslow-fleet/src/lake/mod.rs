//! Objects that hold the tables of a fleet: in S3, Google or Azure storage, or in a directory.
//!
//! Data without a commit does not exist for readers. A commit is one object, written last, so a
//! reader sees either all of a recording or none of it, whenever a push ends.

mod commit;
mod compact;
mod error;
mod expire;
mod find;
mod layout;
mod lock;
mod place;
mod push;
mod raw;
mod read;

use std::future::Future;
use std::sync::Arc;

use whyslow_model::sort::IndexSort;

use bytes::Bytes;
use futures_util::TryStreamExt as _;
use object_store::path::Path;
use object_store::{ObjectMeta, ObjectStore, ObjectStoreExt as _, PutMode, PutOptions};

pub use commit::{Commit, FileInfo, Listing};
pub use compact::{CompactOptions, Compacted};
pub use error::LakeError;
pub use expire::{ExpireOptions, Expired};
pub use find::Found;
pub use layout::{Member, Partition};
pub use push::{PushOptions, Pushed};

use layout::{COMMITS, VERSION};

/// A lake, possibly empty.
pub struct Lake {
    store: Arc<dyn ObjectStore>,
    /// Prefix within the store.
    root: Path,
    /// URL or path as the user wrote it.
    url: String,
    runtime: tokio::runtime::Runtime,
}

impl Lake {
    /// Opens a lake. No request is sent to the store yet; a directory must exist.
    pub fn open(url: &str) -> Result<Self, LakeError> {
        let (store, root) = place::open(url, false)?;
        Self::of(store, root, url)
    }

    /// Like [`Lake::open`], but creates a missing directory.
    pub fn make(url: &str) -> Result<Self, LakeError> {
        let (store, root) = place::open(url, true)?;
        Self::of(store, root, url)
    }

    /// On the caller's own store.
    pub fn of(store: Arc<dyn ObjectStore>, root: Path, url: &str) -> Result<Self, LakeError> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|source| LakeError::Io {
                what: "start the client for",
                path: url.to_owned(),
                source,
            })?;
        Ok(Self {
            store,
            root,
            url: url.to_owned(),
            runtime,
        })
    }

    /// URL or path, as passed to [`Lake::open`].
    pub fn url(&self) -> &str {
        &self.url
    }

    fn wait<T>(&self, future: impl Future<Output = T>) -> T {
        self.runtime.block_on(future)
    }

    /// The object with this name below the lake's root.
    fn path(&self, name: &str) -> Path {
        let name = Path::from(name);
        let parts = self.root.parts().chain(name.parts());
        parts.collect()
    }

    /// Its name below the lake's root.
    fn below(&self, path: &Path) -> Option<Path> {
        Some(path.prefix_match(&self.root)?.collect())
    }

    /// Everything under a directory, with names below the lake's root.
    async fn list(&self, folder: &str) -> Result<Vec<ObjectMeta>, LakeError> {
        let prefix = self.path(folder);
        let found: Vec<ObjectMeta> = self
            .store
            .list(Some(&prefix))
            .try_collect()
            .await
            .map_err(LakeError::store("list", folder))?;
        let below = found.into_iter().filter_map(|object| {
            let location = self.below(&object.location)?;
            Some(ObjectMeta { location, ..object })
        });
        let mut below: Vec<ObjectMeta> = below.collect();
        below.index_sort_by(|a, b| a.location.cmp(&b.location));
        Ok(below)
    }

    /// `None` if there is no such object.
    async fn size(&self, name: &str) -> Result<Option<u64>, LakeError> {
        match self.store.head(&self.path(name)).await {
            Ok(meta) => Ok(Some(meta.size)),
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(LakeError::store("stat", name)(error)),
        }
    }

    async fn get(&self, name: &str) -> Result<Bytes, LakeError> {
        let read = async { self.store.get(&self.path(name)).await?.bytes().await };
        read.await.map_err(LakeError::store("read", name))
    }

    /// Writes an object and verifies its size; retries if it is incomplete.
    async fn put(&self, name: &str, content: Bytes) -> Result<(), LakeError> {
        const TIMES: usize = 3;
        let mut result = self.put_once(name, content.clone()).await;
        for _ in 1..TIMES {
            if !matches!(result, Err(LakeError::Cut { .. })) {
                break;
            }
            result = self.put_once(name, content.clone()).await;
        }
        result
    }

    async fn put_once(&self, name: &str, content: Bytes) -> Result<(), LakeError> {
        let sent = content.len() as u64;
        let path = self.path(name);
        let put = self.store.put(&path, content.into());
        put.await.map_err(LakeError::store("write", name))?;
        self.check(name, sent).await
    }

    async fn check(&self, name: &str, sent: u64) -> Result<(), LakeError> {
        let found = self.size(name).await?.unwrap_or(0);
        if found == sent {
            return Ok(());
        }
        Err(LakeError::Cut {
            object: name.to_owned(),
            sent,
            found,
        })
    }

    /// Writes an object that must not exist yet: `false` if it does.
    async fn create(&self, name: &str, content: Bytes) -> Result<bool, LakeError> {
        let options = PutOptions::from(PutMode::Create);
        let path = self.path(name);
        match self
            .store
            .put_opts(&path, content.clone().into(), options)
            .await
        {
            Ok(_) => Ok(true),
            Err(
                object_store::Error::AlreadyExists { .. }
                | object_store::Error::Precondition { .. },
            ) => Ok(false),
            // Stores without conditional writes: all writers write the same content.
            Err(
                object_store::Error::NotImplemented { .. }
                | object_store::Error::NotSupported { .. },
            ) => {
                self.put(name, content).await?;
                Ok(true)
            }
            Err(error) => Err(LakeError::store("write", name)(error)),
        }
    }

    /// A missing object is not an error.
    async fn delete(&self, name: &str) -> Result<(), LakeError> {
        match self.store.delete(&self.path(name)).await {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(LakeError::store("delete", name)(error)),
        }
    }

    fn commits_folder() -> String {
        format!("{VERSION}/{COMMITS}")
    }
}
