//! `@live`: this machine now, where a recording is taken otherwise.

mod outliers;

pub(super) use outliers::{Watched, watch};

/// What stands for this machine now.
pub(super) const LIVE: &str = "@live";
