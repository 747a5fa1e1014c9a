//! `iostat` and `pidstat` of sysstat 12, in its layout with ISO dates.

mod banner;
mod disks;
pub(crate) mod iostat;
pub(crate) mod pidstat;
