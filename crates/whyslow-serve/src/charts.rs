//! Data for charts: tiles of a recording, built in the background if missing.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use axum::http::StatusCode;
use serde_json::{Value, json};
use whyslow_base::failure::Failure;
use whyslow_store::Tables;
use whyslow_tiles::{Place, Tiles};

use crate::reply::Refusal;

/// Tiles of one recording, and the progress of building them.
#[derive(Debug)]
pub(crate) struct Charts {
    state: RwLock<State>,
    /// Progress in millionths.
    done: AtomicU64,
}

#[derive(Debug, Clone)]
enum State {
    Building,
    Ready(Arc<Tiles>),
    Failed { error: String, causes: Vec<String> },
}

const MILLION: f64 = 1e6;

impl Charts {
    pub(crate) fn new() -> Self {
        Self {
            state: RwLock::new(State::Building),
            done: AtomicU64::new(0),
        }
    }

    /// Opens existing tiles, or builds them.
    pub(crate) fn prepare(&self, place: &Place, tables: &dyn Tables, is_over: &AtomicBool) {
        let progress = |done: f64| {
            let done = (done * MILLION) as u64;
            self.done.store(done, Ordering::Relaxed);
        };
        let made = match place.open() {
            Some(tiles) => Ok(tiles),
            None => place.build(tables, &progress, is_over),
        };
        let made = made.map_err(Failure::from);
        let state = match made {
            Ok(tiles) => State::Ready(Arc::new(tiles)),
            Err(failure) => {
                let (error, causes, _) = failure.into_parts();
                State::Failed { error, causes }
            }
        };
        *self.state.write().unwrap_or_else(PoisonError::into_inner) = state;
    }

    fn state(&self) -> State {
        let state = self.state.read();
        state.unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn about(&self) -> Value {
        match self.state() {
            State::Building => {
                let done = self.done.load(Ordering::Relaxed) as f64 / MILLION;
                json!({"state": "building", "done": done.clamp(0.0, 1.0)})
            }
            State::Ready(_) => json!({"state": "ready", "done": 1.0}),
            State::Failed { error, causes } => {
                let error = std::iter::once(error).chain(causes);
                let error: Vec<String> = error.collect();
                json!({"state": "failed", "done": 0.0, "error": error.join(": ")})
            }
        }
    }

    pub(crate) fn tiles(&self) -> Result<Arc<Tiles>, Refusal> {
        let status = StatusCode::SERVICE_UNAVAILABLE;
        match self.state() {
            State::Ready(tiles) => Ok(tiles),
            State::Building => {
                Err(Refusal::new(status, "building").hint("see `recordings` for the progress"))
            }
            State::Failed { error, causes } => {
                let error = format!("cannot draw charts: {error}");
                Err(Refusal::new(status, error).causes(causes))
            }
        }
    }
}
