//! Why operations were slow: in traces, profiles, requests and recordings made up for it.

mod across;
mod blank;
mod detectors;
mod lookups;
mod queued;
mod requests;
mod rules;
mod sampled;
mod simulated_bursts;
mod simulated_requests;
