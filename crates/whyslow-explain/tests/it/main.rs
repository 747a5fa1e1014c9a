//! Explanations of slow operations in synthetic traces, profiles, requests and recordings.

mod across;
mod blank;
mod contended;
mod detectors;
mod groups;
mod judged;
mod lookups;
mod loopback;
mod lossy;
mod named;
mod occupied;
mod page;
mod queued;
mod requests;
mod results;
mod rows;
mod rules;
mod runs;
mod sampled;
mod services;
mod simulated_bursts;
mod simulated_requests;
mod trigger;
