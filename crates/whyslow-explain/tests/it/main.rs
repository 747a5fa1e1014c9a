//! Explanations of slow operations in synthetic traces, profiles, requests and recordings.

mod across;
mod blank;
mod detectors;
mod lookups;
mod named;
mod queued;
mod requests;
mod rows;
mod rules;
mod sampled;
mod simulated_bursts;
mod simulated_requests;
mod trigger;
