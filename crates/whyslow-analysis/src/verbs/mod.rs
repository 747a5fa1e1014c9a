//! How a kind is shown: each verb is written once for all kinds.

pub(crate) mod stats;
pub(crate) mod top;
