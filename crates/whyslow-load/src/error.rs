//! Errors that prevent a load from starting or from being recorded.

use std::io;
use std::path::PathBuf;

/// Why a load cannot run; failures of single requests are an [`Outcome`](crate::Outcome).
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// A URL that no request can be sent to.
    #[error("`{text}` is not a valid URL: {reason}")]
    Url {
        /// The URL as given.
        text: String,
        /// The rule that it breaks.
        reason: String,
    },
    /// A header that HTTP does not allow, or that the client sets itself.
    #[error("`{text}` is not a valid header: {reason}")]
    Header {
        /// The header as given.
        text: String,
        /// The rule that it breaks.
        reason: &'static str,
    },
    /// A request method that HTTP does not allow.
    #[error("`{text}` is not an HTTP method")]
    Method {
        /// The method as given.
        text: String,
    },
    /// No target has a weight above 0, or there are no workers.
    #[error("cannot start the load: no URL to request")]
    NoTarget,
    /// A closed load without any of its [`Limits`](crate::Limits).
    #[error("cannot start the load: {what} never end without a limit")]
    NoEnd {
        /// What would never end, for the message.
        what: &'static str,
    },
    /// An open load whose rate is not positive, or that has 10^15 requests or more.
    #[error("cannot schedule {requests} requests")]
    Schedule {
        /// Number of requests in the schedule.
        requests: f64,
    },
    /// The PEM file of [`Trust::File`](crate::Trust::File) has no usable certificate.
    #[error("cannot read CA certificates from `{path}`: {reason}")]
    Authorities {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// rustls rejects the configuration.
    #[error("failed to set up TLS")]
    Tls(#[source] tokio_rustls::rustls::Error),
    /// The operating system refuses to create a thread.
    #[error("failed to start a thread")]
    Thread(#[source] io::Error),
    /// The kernel provides no random numbers, which trace ids are made of.
    #[error("cannot get random numbers from the kernel: {0}")]
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
