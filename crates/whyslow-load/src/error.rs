use std::io;
use std::path::PathBuf;

/// Why no load can be made; what goes wrong with a single request is its [`Outcome`](crate::Outcome).
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    #[error("`{text}` is no address of a server: {reason}")]
    Url { text: String, reason: String },
    #[error("`{text}` is no header: {reason}")]
    Header { text: String, reason: &'static str },
    #[error("`{text}` is no method")]
    Method { text: String },
    #[error("nothing is asked for: there is no address")]
    NoTarget,
    #[error("a load of {what} has no end")]
    NoEnd { what: &'static str },
    #[error("{requests} requests cannot be scheduled")]
    Schedule { requests: f64 },
    #[error("no certificate of an authority can be read from `{path}`: {reason}")]
    Authorities { path: PathBuf, reason: String },
    #[error("failed to set up TLS")]
    Tls(#[source] tokio_rustls::rustls::Error),
    #[error("failed to begin a thread")]
    Thread(#[source] io::Error),
    #[error("no random number from the kernel: {0}")]
    Random(getrandom::Error),
    #[error("failed to write `{path}`")]
    Spool {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
}
