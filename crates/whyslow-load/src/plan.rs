//! What a load is to be.

use std::path::PathBuf;
use std::time::Duration;

use crate::LoadError;
use crate::target::{Asked, Target};

/// A load, complete: everything that a run needs to know.
#[derive(Debug)]
pub struct Plan {
    /// Addresses to send requests to, chosen by their weights.
    pub targets: Vec<Target>,
    /// What the requests have in common, for the targets that redirects lead to.
    pub asked: Asked,
    /// When requests begin, and when the load ends.
    pub model: Model,
    /// Workers, each with one request at a time; of several numbers one run after the other.
    pub workers: Vec<u32>,
    /// At most so many threads share the workers; fewer do the same with less time of the CPUs, so there are
    /// no more than the workers need.
    pub threads: usize,
    /// Of each worker between two requests.
    pub pause: Duration,
    /// No request begins after one that took so long.
    pub until_slow: Option<Duration>,
    /// Of a request from its begin to its end.
    pub timeout: Duration,
    /// Whether connections are reused.
    pub connections: Connections,
    /// What happens at a redirect.
    pub redirects: Redirects,
    /// Whether requests carry a trace id.
    pub trace: Trace,
    /// Version of HTTP.
    pub http: Http,
    /// Which certificates are accepted.
    pub tls: Trust,
}

/// When requests begin.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Model {
    /// A worker asks again when it has its answer; whichever limit is reached first ends the load.
    Closed(Limits),
    /// Requests have moments at which they should begin, whatever the answers take. Each is made by
    /// the next worker that is free, late if it must be.
    Open {
        /// Requests per second, evenly spaced.
        per_second: f64,
        /// Duration of the schedule; requests that are late begin after it.
        length: Duration,
    },
}

/// Ends of a closed load; at least one is needed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Limits {
    /// Requests of each worker.
    pub each: Option<u64>,
    /// Requests of all together.
    pub total: Option<u64>,
    /// No request begins later.
    pub length: Option<Duration>,
}

/// Whether a connection serves more than one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Connections {
    /// One of each worker and server, as long as the server keeps it.
    Kept,
    /// One for each request.
    New,
}

/// What happens when the answer is a redirect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Redirects {
    /// Their answer is the answer.
    Told,
    /// Followed to hosts that are asked anyway; each is a request of its own.
    Followed,
}

/// Whether requests carry a trace id, by which the server's view is joined to the client's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trace {
    /// Each request names its trace in `traceparent`.
    Sent,
    /// No `traceparent` header is sent.
    Silent,
}

/// Which version of HTTP is spoken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Http {
    /// HTTP/1.1; with TLS whichever the server prefers.
    Agreed,
    /// HTTP/1.1 only.
    One,
    /// Also without TLS, where the server has to know.
    Two,
}

/// Which certificates are believed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Trust {
    /// Those of this system's authorities.
    System,
    /// Those of the authorities in a file of PEM.
    File(PathBuf),
    /// All.
    Everyone,
}

impl Plan {
    /// Requests that so many workers make, where their number is known.
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
            Model::Closed(limits) if limits == Limits::default() => Err(LoadError::NoEnd {
                what: "workers that ask again and again",
            }),
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
