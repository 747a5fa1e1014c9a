//! The object store of `workloads/object_store.py`, and a lake in it.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use object_store::aws::AmazonS3Builder;
use object_store::{BackoffConfig, ClientOptions, RetryConfig};
use serde::Deserialize;
use whyslow_fleet::lake::Lake;

/// Stopped when dropped.
pub(crate) struct Store {
    process: Child,
    pub(crate) address: String,
}

#[derive(Debug, Deserialize, PartialEq, Eq, Clone)]
pub(crate) struct Object {
    pub(crate) size: u64,
    pub(crate) sha256: String,
}

/// The contents of the store.
#[derive(Debug, Deserialize)]
pub(crate) struct State {
    pub(crate) objects: BTreeMap<String, Object>,
    pub(crate) requests: BTreeMap<String, u64>,
}

impl Store {
    pub(crate) fn start(more: &[&str]) -> Self {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../workloads/object_store.py");
        let mut process = Command::new("python3")
            .arg(script)
            .args(more)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("python3 is there");
        let mut address = String::new();
        let stdout = process.stdout.take().expect("it is piped");
        BufReader::new(stdout)
            .read_line(&mut address)
            .expect("it prints its address");
        let address = address.trim().trim_start_matches("http://").to_owned();
        Self { process, address }
    }

    /// A lake whose requests time out before a stall ends.
    pub(crate) fn lake(&self) -> Lake {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = ClientOptions::new()
            .with_allow_http(true)
            .with_timeout(Duration::from_millis(400));
        let retry = RetryConfig {
            backoff: BackoffConfig {
                init_backoff: Duration::from_millis(1),
                max_backoff: Duration::from_millis(20),
                base: 2.0,
            },
            max_retries: 3,
            retry_timeout: Duration::from_secs(3),
        };
        let store = AmazonS3Builder::new()
            .with_endpoint(format!("http://{}", self.address))
            .with_region("here")
            .with_bucket_name("lake")
            .with_access_key_id("a")
            .with_secret_access_key("b")
            .with_disable_bulk_delete(true)
            .with_client_options(client)
            .with_retry(retry)
            .build()
            .expect("a store");
        Lake::of(Arc::new(store), "some/where".into(), "s3://lake/some/where").expect("a lake")
    }

    /// The contents, without faults.
    pub(crate) fn state(&self) -> State {
        serde_json::from_str(&self.request("GET /_state", "")).expect("it is JSON")
    }

    /// Sets the fault rates from now on.
    pub(crate) fn fail(&self, faults: &str) {
        self.request("POST /_faults", faults);
    }

    /// Deletes an object.
    pub(crate) fn forget(&self, name: &str) {
        self.request("POST /_forget", name);
    }

    fn request(&self, line: &str, body: &str) -> String {
        let mut connection = TcpStream::connect(&self.address).expect("it listens");
        let request = format!(
            "{line} HTTP/1.1\r\nHost: here\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        connection
            .write_all(request.as_bytes())
            .expect("it takes it");
        let mut answer = String::new();
        connection.read_to_string(&mut answer).expect("it answers");
        let (_, body) = answer.split_once("\r\n\r\n").expect("an answer");
        body.to_owned()
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        drop(self.process.stdin.take());
        let _ = self.process.wait();
    }
}
