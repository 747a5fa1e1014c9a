//! Parameters of a load.

use std::path::PathBuf;
use std::time::Duration;

use crate::LoadError;
use crate::target::{RequestTemplate, Target};

/// A complete load: everything that a run needs to know.
#[derive(Debug)]
pub struct Plan {
    /// URLs to send requests to, chosen by their weights.
    pub targets: Vec<Target>,
    /// What the requests have in common, also for the targets of redirects.
    pub template: RequestTemplate,
    /// When requests start, and when the load ends.
    pub model: Model,
    /// Number of workers, each with one request at a time; several numbers run one after the other.
    pub workers: Vec<u32>,
    /// Maximum number of threads that share the workers. Fewer threads use less CPU for the same
    /// load, so no more are started than the workers need.
    pub threads: usize,
    /// Pause of each worker between two requests.
    pub pause: Duration,
    /// No request starts after one that took this long.
    pub until_slow: Option<Duration>,
    /// Time limit of a request, from its start to its end.
    pub timeout: Duration,
    /// Whether connections are reused.
    pub connections: Connections,
    /// What happens at a redirect.
    pub redirects: Redirects,
    /// Whether requests carry a trace id.
    pub trace: Trace,
    /// HTTP version.
    pub http: Http,
    /// Which certificates are accepted.
    pub tls: Trust,
}

/// When requests start.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Model {
    /// A worker sends its next request when it has the response; the first limit that is reached
    /// ends the load.
    Closed(Limits),
    /// Requests have scheduled start times, regardless of responses. Each is sent by the next idle
    /// worker, late if necessary.
    Open {
        /// Requests per second, evenly spaced.
        per_second: f64,
        /// Duration of the schedule; late requests start after it.
        length: Duration,
    },
}

/// Limits of a closed load; at least one is required.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Limits {
    /// Requests per worker.
    pub each: Option<u64>,
    /// Requests of all workers together.
    pub total: Option<u64>,
    /// No request starts after this time.
    pub length: Option<Duration>,
}

/// Whether a connection serves more than one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Connections {
    /// One per worker and server, as long as the server keeps it open.
    Kept,
    /// One per request.
    New,
}

/// What happens at a redirect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Redirects {
    /// The redirect is the response.
    Reported,
    /// Followed if the load has the host as a target; each is a request of its own.
    Followed,
}

/// Whether requests carry a trace id, by which client and server records are joined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trace {
    /// Each request has a `traceparent` header.
    Sent,
    /// No `traceparent` header is sent.
    Silent,
}

/// HTTP version to use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Http {
    /// HTTP/1.1; with TLS whichever the server prefers.
    Agreed,
    /// HTTP/1.1 only.
    One,
    /// HTTP/2, also without TLS, where the server has to support prior knowledge.
    Two,
}

/// Which certificates are trusted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Trust {
    /// Those of the system's CAs.
    System,
    /// Those of the CAs in a PEM file.
    File(PathBuf),
    /// All.
    Everyone,
}

impl Plan {
    /// Number of requests that this many workers send, if it is known.
    pub fn requests(&self, workers: u32) -> Option<u64> {
        match self.model {
            Model::Closed(Limits { each, total, .. }) => {
                let each = each.map(|each| each.saturating_mul(workers.into()));
                each.into_iter().chain(total).min()
            }
            Model::Open { per_second, length } => {
                Some((per_second * length.as_secs_f64()).round() as u64)
            }
        }
    }

    pub(crate) fn check(&self) -> Result<(), LoadError> {
        if self.targets.iter().all(|target| target.weight == 0) || self.workers.is_empty() {
            return Err(LoadError::NoTarget);
        }
        match self.model {
            Model::Closed(limits) if limits == Limits::default() => {
                Err(LoadError::NoEnd { what: "workers" })
            }
            Model::Open { per_second, length } => {
                let requests = per_second * length.as_secs_f64();
                let is_possible = per_second.is_finite() && per_second > 0.0 && requests < 1e15;
                if is_possible {
                    Ok(())
                } else {
                    Err(LoadError::Schedule { requests })
                }
            }
            Model::Closed(_) => Ok(()),
        }
    }
}
