//! Where a lake is: a URL, or a folder.

use std::path::{Path as FilePath, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::azure::MicrosoftAzureBuilder;
use object_store::gcp::GoogleCloudStorageBuilder;
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::{ClientOptions, ObjectStore, RetryConfig};
use url::Url;

use super::LakeError;

const FORMS: &str = "name one as s3://BUCKET/PATH, gs://BUCKET/PATH, az://CONTAINER/PATH, file:///PATH, or as a folder";
/// A store that does not answer one request for so long is asked again.
const TIMEOUT: Duration = Duration::from_secs(30);
/// It is given up after so long, or so many times.
const RETRY_TIMEOUT: Duration = Duration::from_secs(90);
const RETRIES: usize = 8;

/// The store of a lake, and where it begins there.
pub(super) fn open(text: &str, make: bool) -> Result<(Arc<dyn ObjectStore>, Path), LakeError> {
    let Some((scheme, _)) = text.split_once("://") else {
        return folder(text, FilePath::new(text), make);
    };
    let bad = |reason: String| LakeError::Url {
        url: text.to_owned(),
        reason,
        hint: FORMS.to_owned(),
    };
    let url = Url::parse(text).map_err(|error| bad(error.to_string()))?;
    if scheme == "file" {
        let path = url
            .to_file_path()
            .map_err(|()| bad("it names no path of this machine".into()))?;
        return folder(text, &path, make);
    }
    if url.host_str().is_none_or(str::is_empty) {
        return Err(bad("it names no bucket".into()));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(bad(
            "it holds a password, which others would read in it".into()
        ));
    }
    let root = Path::from_url_path(url.path()).map_err(|error| bad(error.to_string()))?;
    let refused = |error: object_store::Error| bad(error.to_string());
    let store: Arc<dyn ObjectStore> = match scheme {
        "s3" | "s3a" => {
            let builder = AmazonS3Builder::from_env();
            // What is no URL would be met only when the first request is signed, by a panic.
            if let Some(endpoint) = builder.get_config_value(&AmazonS3ConfigKey::Endpoint)
                && Url::parse(&endpoint).is_err()
            {
                return Err(LakeError::Url {
                    url: text.to_owned(),
                    reason: format!("AWS_ENDPOINT_URL is `{endpoint}`, which is no URL"),
                    hint: "write it like https://minio.example.org:9000, or unset it".to_owned(),
                });
            }
            Arc::new(s3(builder, &url).map_err(refused)?)
        }
        "gs" => Arc::new(
            GoogleCloudStorageBuilder::from_env()
                .with_url(url.as_str())
                .with_client_options(client())
                .with_retry(retry())
                .build()
                .map_err(refused)?,
        ),
        "az" | "abfs" | "abfss" => Arc::new(
            MicrosoftAzureBuilder::from_env()
                .with_url(url.as_str())
                .with_client_options(client())
                .with_retry(retry())
                .build()
                .map_err(refused)?,
        ),
        other => return Err(bad(format!("there is no store for {other}://"))),
    };
    Ok((store, root))
}

fn s3(
    builder: AmazonS3Builder,
    url: &Url,
) -> Result<object_store::aws::AmazonS3, object_store::Error> {
    let bucket = url.host_str().unwrap_or_default();
    let builder = builder.with_bucket_name(bucket);
    // Few objects are deleted, and some stores know only how to delete one.
    let builder = builder.with_disable_bulk_delete(true);
    let endpoint = builder.get_config_value(&AmazonS3ConfigKey::Endpoint);
    // Nobody listens on the way to this machine itself.
    let is_here = endpoint
        .and_then(|endpoint| Url::parse(&endpoint).ok())
        .is_some_and(|endpoint| {
            matches!(
                endpoint.host_str(),
                Some("localhost" | "127.0.0.1" | "[::1]")
            )
        });
    let allows_http = builder
        .get_config_value(&AmazonS3ConfigKey::Client(
            object_store::ClientConfigKey::AllowHttp,
        ))
        .is_some_and(|value| value == "true");
    builder
        .with_client_options(client().with_allow_http(is_here || allows_http))
        .with_retry(retry())
        .build()
}

fn client() -> ClientOptions {
    // With the ciphers that the program has anyway; somebody else may have chosen already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    ClientOptions::new().with_timeout(TIMEOUT)
}

fn retry() -> RetryConfig {
    RetryConfig {
        max_retries: RETRIES,
        retry_timeout: RETRY_TIMEOUT,
        ..RetryConfig::default()
    }
}

fn folder(
    text: &str,
    path: &FilePath,
    make: bool,
) -> Result<(Arc<dyn ObjectStore>, Path), LakeError> {
    let bad = |reason: String| LakeError::Url {
        url: text.to_owned(),
        reason,
        hint: FORMS.to_owned(),
    };
    if text.is_empty() {
        return Err(bad("it is empty".into()));
    }
    if make {
        std::fs::create_dir_all(path).map_err(|source| LakeError::Io {
            what: "make the folder",
            path: text.to_owned(),
            source,
        })?;
    }
    let path: PathBuf = path.canonicalize().map_err(|source| LakeError::Io {
        what: "open the folder",
        path: text.to_owned(),
        source,
    })?;
    let store = LocalFileSystem::new_with_prefix(&path)
        .map_err(|error| bad(error.to_string()))?
        .with_fsync(true);
    Ok((Arc::new(store), Path::default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_that_are_none_are_refused_with_the_forms() {
        for text in [
            "",
            "ftp://x/y",
            "s3:///path",
            "s3://key:secret@bucket/x",
            "file://host/x",
        ] {
            let error = open(text, true).map(|_| ()).unwrap_err();
            assert!(
                error
                    .hint()
                    .is_some_and(|hint| hint.contains("s3://BUCKET")),
                "{text}: {error}"
            );
            assert!(!error.to_string().contains("secret") || text.contains("secret"));
        }
    }

    #[test]
    fn a_folder_and_buckets_are_opened_without_asking_them() {
        let room = tempfile::tempdir().unwrap();
        let lake = room.path().join("a b");
        open(lake.to_str().unwrap(), false).unwrap_err();
        open(lake.to_str().unwrap(), true).unwrap();
        assert!(lake.is_dir());
        let url = format!("file://{}", room.path().join("c").display());
        open(&url, true).unwrap();
        let (_, root) = open("s3://bucket/some/where", false).unwrap();
        assert_eq!(root, Path::from("some/where"));
    }
}
