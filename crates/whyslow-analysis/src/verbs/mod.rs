//! How a kind is shown: each verb is implemented once for all kinds.

pub(crate) mod chains;
pub(crate) mod cpu;
pub(crate) mod devices;
pub(crate) mod differs;
pub(crate) mod dump;
pub(crate) mod files;
pub(crate) mod gaps;
pub(crate) mod heat;
pub(crate) mod hist;
pub(crate) mod interfaces;
pub(crate) mod irq;
pub(crate) mod log;
pub(crate) mod mem;
pub(crate) mod mounted;
pub(crate) mod net;
pub(crate) mod outliers;
pub(crate) mod page_cache_fill;
pub(crate) mod passes;
pub(crate) mod pools;
pub(crate) mod requests;
pub(crate) mod resolvers;
pub(crate) mod resources;
pub(crate) mod sharers;
pub(crate) mod stacks;
pub(crate) mod states;
pub(crate) mod stats;
pub(crate) mod summed;
pub(crate) mod syscalls;
pub(crate) mod threads;
pub(crate) mod timeline;
pub(crate) mod top;
pub(crate) mod usage;

/// Part of a table's name in machine-readable formats.
fn slug(label: &str) -> String {
    let plain = |c: char| {
        if c.is_ascii_alphanumeric() {
            c.to_ascii_lowercase()
        } else {
            '_'
        }
    };
    label.chars().map(plain).collect()
}
