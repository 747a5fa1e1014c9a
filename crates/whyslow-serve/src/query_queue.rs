//! Queue of queries: one per CPU runs at a time, and the number of waiting ones is limited.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use axum::http::StatusCode;
use serde_json::{Value, json};
use tokio::sync::{Semaphore, SemaphorePermit};

use crate::limited::{Gauge, Resident};
use crate::reply::Refusal;

/// Maximum number of waiting queries; more are rejected.
const WAITING_MAX: usize = 64;

/// Limits of a query.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Costs {
    pub(crate) time: Duration,
    pub(crate) memory_bytes: u64,
}

#[derive(Debug)]
pub(crate) struct QueryQueue {
    places: Semaphore,
    places_max: usize,
    waiting: AtomicUsize,
    running: AtomicUsize,
    answered: AtomicU64,
    failed: AtomicU64,
    cancelled: AtomicU64,
    rejected: AtomicU64,
    rows: AtomicU64,
    costs: Costs,
    resident: Arc<Resident>,
    is_over: Arc<AtomicBool>,
}

impl QueryQueue {
    /// Runs up to `places_max` queries at once; `is_over` stops them all.
    pub(crate) fn new(
        places_max: usize,
        costs: Costs,
        (resident, is_over): (Arc<Resident>, Arc<AtomicBool>),
    ) -> Self {
        Self {
            places: Semaphore::new(places_max),
            places_max,
            waiting: AtomicUsize::new(0),
            running: AtomicUsize::new(0),
            answered: AtomicU64::new(0),
            failed: AtomicU64::new(0),
            cancelled: AtomicU64::new(0),
            rejected: AtomicU64::new(0),
            rows: AtomicU64::new(0),
            costs,
            resident,
            is_over,
        }
    }

    /// Runs `work` on its own thread when a place is free, and stops it when the caller goes away:
    /// axum drops this future when the client disconnects.
    pub(crate) async fn run<T: Send + 'static>(
        self: &Arc<Self>,
        work: impl FnOnce(&Gauge) -> Result<T, Refusal> + Send + 'static,
    ) -> Result<T, Refusal> {
        let permit = self.acquire().await?;
        permit.forget();
        let Costs { time, memory_bytes } = self.costs;
        let resident = Arc::clone(&self.resident);
        let gauge = Gauge::new(time, memory_bytes, resident, Arc::clone(&self.is_over));
        let gauge = Arc::new(gauge);
        let mut stop_on_drop = StopOnDrop {
            gauge: Arc::clone(&gauge),
            has_answer: false,
        };
        self.running.fetch_add(1, Ordering::Relaxed);
        let place = Place(Arc::clone(self));
        let task = tokio::task::spawn_blocking(move || {
            let done = work(&gauge);
            place.0.count(&gauge, done.is_ok());
            // The error shows that it was stopped, not why.
            done.map_err(|refusal| gauge.verdict().map_or(refusal, Refusal::stopped))
        });
        let done = task.await;
        stop_on_drop.has_answer = true;
        done.unwrap_or_else(|_| {
            let status = StatusCode::INTERNAL_SERVER_ERROR;
            Err(Refusal::new(status, "internal error")
                .hint("please report this with the output of the server on standard error"))
        })
    }

    async fn acquire(&self) -> Result<SemaphorePermit<'_>, Refusal> {
        if let Ok(permit) = self.places.try_acquire() {
            return Ok(permit);
        }
        let _waiting = Waiting::new(&self.waiting).ok_or_else(|| {
            self.rejected.fetch_add(1, Ordering::Relaxed);
            let status = StatusCode::TOO_MANY_REQUESTS;
            Refusal::new(status, "too many queries are waiting").hint("try again later")
        })?;
        let ended = |_| {
            Refusal::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "the server is shutting down",
            )
        };
        self.places.acquire().await.map_err(ended)
    }

    fn count(&self, gauge: &Gauge, is_answered: bool) {
        self.rows.fetch_add(gauge.rows(), Ordering::Relaxed);
        let counter = match gauge.verdict() {
            Some(crate::limited::Stop::Unwanted) => &self.cancelled,
            _ if is_answered => &self.answered,
            _ => &self.failed,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    /// Load of the queue.
    pub(crate) fn status(&self) -> Value {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        json!({
            "at_once": self.places_max,
            "running": self.running.load(Ordering::Relaxed),
            "waiting": self.waiting.load(Ordering::Relaxed),
            "answered": count(&self.answered),
            "failed": count(&self.failed),
            "cancelled": count(&self.cancelled),
            "rejected": count(&self.rejected),
            "rows_read": count(&self.rows),
            "time_max_ns": self.costs.time.as_nanos() as u64,
            "memory_max_bytes": self.costs.memory_bytes,
        })
    }
}

/// A place that is occupied until the work ends, even if the client is gone.
struct Place(Arc<QueryQueue>);

impl Drop for Place {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::Relaxed);
        self.0.places.add_permits(1);
    }
}

/// Stops the work if its result is no longer awaited.
struct StopOnDrop {
    gauge: Arc<Gauge>,
    has_answer: bool,
}

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        if !self.has_answer {
            self.gauge.abandon();
        }
    }
}

struct Waiting<'w>(&'w AtomicUsize);

impl<'w> Waiting<'w> {
    fn new(waiting: &'w AtomicUsize) -> Option<Self> {
        let before = waiting.fetch_add(1, Ordering::Relaxed);
        let waits = Self(waiting);
        (before < WAITING_MAX).then_some(waits)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
