//! Where a lake is: a URL or a directory.

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

const FORMS: &str =
    "use s3://BUCKET/PATH, gs://BUCKET/PATH, az://CONTAINER/PATH, file:///PATH or a directory";
/// A request without a response is retried after this time.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Retries end after this time or number.
const RETRY_TIMEOUT: Duration = Duration::from_secs(90);
const RETRIES: usize = 8;

/// The store of a lake, and its prefix there.
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
            .map_err(|()| bad("it is not a local path".into()))?;
        return folder(text, &path, make);
    }
    if url.host_str().is_none_or(str::is_empty) {
        return Err(bad("it has no bucket".into()));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(bad(
            "it contains a password, which would be visible to others".into(),
        ));
    }
    let root = Path::from_url_path(url.path()).map_err(|error| bad(error.to_string()))?;
    let refused = |error: object_store::Error| bad(error.to_string());
    let store: Arc<dyn ObjectStore> = match scheme {
        "s3" | "s3a" => {
            let builder = AmazonS3Builder::from_env();
            // An invalid URL would only be detected by a panic, when the first request is signed.
            if let Some(endpoint) = builder.get_config_value(&AmazonS3ConfigKey::Endpoint)
                && Url::parse(&endpoint).is_err()
            {
                return Err(LakeError::Url {
                    url: text.to_owned(),
                    reason: format!("AWS_ENDPOINT_URL is `{endpoint}`, which is not a URL"),
                    hint: "set it to a URL such as https://minio.example.org:9000, or unset it"
                        .to_owned(),
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
        other => return Err(bad(format!("scheme {other}:// is not supported"))),
    };
    Ok((store, root))
}

fn s3(
    builder: AmazonS3Builder,
    url: &Url,
) -> Result<object_store::aws::AmazonS3, object_store::Error> {
    let bucket = url.host_str().unwrap_or_default();
    let builder = builder.with_bucket_name(bucket);
    // Few objects are deleted, and some stores only support deleting one at a time.
    let builder = builder.with_disable_bulk_delete(true);
    let endpoint = builder.get_config_value(&AmazonS3ConfigKey::Endpoint);
    // Unencrypted HTTP is safe on loopback.
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
    // The cipher suites that the program already contains; another provider may already be
    // installed.
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
        return Err(bad("the path is empty".into()));
    }
    if make {
        std::fs::create_dir_all(path).map_err(|source| LakeError::Io {
            what: "create the directory",
            path: text.to_owned(),
            source,
        })?;
    }
    let path: PathBuf = path.canonicalize().map_err(|source| LakeError::Io {
        what: "open the directory",
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
        let dir = tempfile::tempdir().unwrap();
        let lake = dir.path().join("a b");
        open(lake.to_str().unwrap(), false).unwrap_err();
        open(lake.to_str().unwrap(), true).unwrap();
        assert!(lake.is_dir());
        let url = format!("file://{}", dir.path().join("c").display());
        open(&url, true).unwrap();
        let (_, root) = open("s3://bucket/some/where", false).unwrap();
        assert_eq!(root, Path::from("some/where"));
    }
}
