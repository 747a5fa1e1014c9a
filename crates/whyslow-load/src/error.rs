//! Errors that keep a load from starting or from being written down.

use std::io;
use std::path::PathBuf;

/// Why no load can be made; what goes wrong with a single request is its [`Outcome`](crate::Outcome).
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// An address that no request can be sent to.
    #[error("`{text}` is no address of a server: {reason}")]
    Url {
        /// Text that was given.
        text: String,
        /// The rule that it breaks.
        reason: String,
    },
    /// A header line that HTTP does not allow, or that the client sets itself.
    #[error("`{text}` is no header: {reason}")]
    Header {
        /// Text that was given.
        text: String,
        /// The rule that it breaks.
        reason: &'static str,
    },
    /// A request method that HTTP does not allow.
    #[error("`{text}` is no method")]
    Method {
        /// Text that was given.
        text: String,
    },
    /// No target has a weight above 0, or there are no workers.
    #[error("nothing is asked for: there is no address")]
    NoTarget,
    /// A closed load without any of its [`Limits`](crate::Limits).
    #[error("a load of {what} has no end")]
    NoEnd {
        /// What would go on, for the message.
        what: &'static str,
    },
    /// An open load whose rate is not positive, or that has 10^15 requests or more.
    #[error("{requests} requests cannot be scheduled")]
    Schedule {
        /// Requests that it would have.
        requests: f64,
    },
    /// The PEM file of [`Trust::File`](crate::Trust::File) has no usable certificate.
    #[error("no certificate of an authority can be read from `{path}`: {reason}")]
    Authorities {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// rustls rejects the configuration.
    #[error("failed to set up TLS")]
    Tls(#[source] tokio_rustls::rustls::Error),
    /// The operating system refuses a thread.
    #[error("failed to begin a thread")]
    Thread(#[source] io::Error),
    /// The kernel gives no random numbers, which trace ids are made of.
    #[error("no random number from the kernel: {0}")]
    Random(getrandom::Error),
    /// The spool could not be created or written.
    #[error("failed to write `{path}`")]
    Spool {
        /// The spool.
        path: PathBuf,
        /// Error of the operating system.
        #[source]
        source: io::Error,
    },
}
